/* Messages of a conversation in Chat's shape (openai-wire §10.1, 10.4). */
#include "worker/dialect/arguments.h"
#include "worker/dialect/chat_out.h"
#include "worker/dialect/names.h"

/* Mistral refuses the ids of others; raw spans hold them. */
static bool
is_as_sent(const struct chat_writer *cw, const struct part *p)
{
	return chat_has_raw(p) && !cw->opt->is_mistral;
}

static struct str
call_id(struct chat_writer *cw, struct str id)
{
	return cw->opt->is_mistral ? id_for_mistral(cw->conv->arena, id) : id;
}

/* --- content --- */

static bool
has_own_form(struct chat_writer *cw, const struct part *p)
{
	return chat_has_raw(p) || chat_part_text(cw, p).ptr == NULL;
}

/* Joins what parts say as text. Text blocks that a citation cut apart belong together. */
static void
join_text(struct chat_writer *cw, const struct part *list, const char *separator, struct buf *b)
{
	const struct part *before = NULL;
	for (const struct part *p = list; p != NULL; p = p->next) {
		struct str s = chat_part_text(cw, p);
		if (s.len == 0 || p->kind == PART_REFUSAL)
			continue;
		bool cited =
		    before != NULL && (before->citations_raw.len > 2 || p->citations_raw.len > 2);
		if (b->len > 0 && !cited && !str_starts(s, str_c(separator)))
			buf_add(b, str_c(separator));
		buf_add(b, s);
		before = p;
	}
}

/* "content": a string when everything is text (some servers take nothing else), else parts. False
 * when there is nothing to say; then nothing was written. */
static bool
write_content(struct chat_writer *cw, const struct part *list, const char *role, struct str name)
{
	struct jw *w = &cw->w;
	bool parts = false;
	struct buf b = BUF_INIT(cw->w.out->max);
	for (const struct part *p = list; p != NULL; p = p->next)
		parts = parts || has_own_form(cw, p);
	if (!parts)
		join_text(cw, list, "\n\n", &b);
	if (parts || b.len > 0) {
		jw_object(w);
		jw_kcstr(w, "role", role);
		if (name.len > 0)
			jw_kstr(w, "name", name);
		jw_key(w, "content");
		if (parts) {
			jw_array(w);
			for (const struct part *p = list; p != NULL; p = p->next)
				chat_write_part(cw, p);
			jw_end_array(w);
		} else {
			jw_str(w, buf_str(&b));
		}
		jw_end_object(w);
	}
	bool any = parts || b.len > 0;
	buf_done(&b);
	return any;
}

/* --- system --- */

static bool
is_system(const struct message *m)
{
	return m->role == MESSAGE_SYSTEM || m->role == MESSAGE_DEVELOPER;
}

static struct part *
text_part(struct chat_writer *cw, struct str text)
{
	struct part *p = ARENA_NEW(cw->conv->arena, struct part);
	if (p != NULL) {
		p->kind = PART_TEXT;
		p->text = text;
	}
	return p;
}

static void
write_system(struct chat_writer *cw, const struct message *m, bool leading)
{
	bool developer = m->role == MESSAGE_DEVELOPER && cw->opt->native_openai;
	if (leading || cw->opt->native_openai || cw->conv->wire == WIRE_CHAT) {
		(void)write_content(cw, m->parts, developer ? "developer" : "system", m->name);
		return;
	}
	/* The templates of many models take system text only in front. */
	struct part *note = text_part(cw, STR("System note:"));
	if (note == NULL)
		return;
	note->next = m->parts;
	(void)write_content(cw, note, "user", STR_NULL);
}

/* Several leading system messages become one: many models' templates take only one. */
static const struct message *
write_leading_system(struct chat_writer *cw, const struct message *m)
{
	struct part *first = NULL, **end = &first;
	bool raw = m->raw.ptr != NULL && m->raw_wire == WIRE_CHAT;
	if (raw || m->next == NULL || !is_system(m->next))
		return m;
	for (; m != NULL && is_system(m); m = m->next)
		for (const struct part *p = m->parts; p != NULL; p = p->next) {
			struct part *copy = ARENA_NEW(cw->conv->arena, struct part);
			if (copy == NULL)
				return m;
			*copy = *p;
			copy->next = NULL;
			*end = copy;
			end = &copy->next;
		}
	(void)write_content(cw, first, "system", STR_NULL);
	return m;
}

/* --- user --- */

static void
write_result(struct chat_writer *cw, const struct part *p)
{
	struct jw *w = &cw->w;
	if (is_as_sent(cw, p)) {
		jw_raw(w, p->raw);
		return;
	}
	struct buf b = BUF_INIT(cw->w.out->max);
	if (p->is_error)
		buf_add(&b, STR("Error: "));
	size_t empty = b.len;
	struct buf text = BUF_INIT(cw->w.out->max);
	join_text(cw, p->content, "\n", &text);
	buf_add(&b, buf_str(&text));
	buf_done(&text);
	if (b.len == empty)
		buf_add(&b, STR("(no output)"));
	jw_object(w);
	jw_kcstr(w, "role", "tool");
	jw_kstr(w, "tool_call_id", call_id(cw, p->id));
	jw_kstr(w, "content", buf_str(&b));
	jw_end_object(w);
	buf_done(&b);
}

/* A list of copies, so that parts of several places can stand in one message. */
struct gathered {
	struct part *first, **end;
};

static void
gather(struct chat_writer *cw, struct gathered *g, const struct part *p)
{
	struct part *copy = ARENA_NEW(cw->conv->arena, struct part);
	if (copy == NULL)
		return;
	*copy = *p;
	copy->next = NULL;
	*g->end = copy;
	g->end = &copy->next;
}

/* A tool message holds text only: images and files of a result follow as the user's. */
static void
gather_media_of_result(struct chat_writer *cw, struct gathered *g, const struct part *result)
{
	bool said = false;
	for (const struct part *p = result->content; p != NULL; p = p->next) {
		if (!has_own_form(cw, p))
			continue;
		struct part *marker = text_part(
		    cw, arena_printf(cw->conv->arena, "[Attached to the result of tool call %.*s]",
			    (int)(result->id.len < 128 ? result->id.len : 128), result->id.ptr));
		if (!said && marker != NULL)
			gather(cw, g, marker);
		said = true;
		gather(cw, g, p);
	}
}

/* Between tool and user some servers insist on the assistant. */
static void
write_bridge(struct chat_writer *cw)
{
	struct part p = {.kind = PART_TEXT, .text = STR("I have the results.")};
	(void)write_content(cw, &p, "assistant", STR_NULL);
}

static void
write_user(struct chat_writer *cw, const struct message *m)
{
	struct gathered g = {.first = NULL};
	bool results = false;
	g.end = &g.first;
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		if (p->kind != PART_RESULT)
			continue;
		write_result(cw, p);
		results = true;
		if (!chat_has_raw(p))
			gather_media_of_result(cw, &g, p);
	}
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		if (p->kind == PART_RESULT)
			continue;
		gather(cw, &g, p);
		for (const struct part *inner = p->content; inner != NULL; inner = inner->next)
			if (has_own_form(cw, inner))
				gather(cw, &g, inner);
	}
	bool user_next = m->next != NULL && m->next->role != MESSAGE_ASSISTANT;
	if (results && cw->opt->is_mistral && (g.first != NULL || user_next))
		write_bridge(cw);
	(void)write_content(cw, g.first, "user", m->name);
}

/* --- assistant --- */

static void
write_call(struct chat_writer *cw, const struct part *p)
{
	struct jw *w = &cw->w;
	if (is_as_sent(cw, p)) {
		jw_raw(w, p->raw);
		return;
	}
	jw_object(w);
	jw_kstr(w, "id", call_id(cw, p->id));
	jw_kcstr(w, "type", "function");
	jw_key(w, "function");
	jw_object(w);
	jw_kstr(w, "name", name_for_chat(cw->conv->arena, p->name));
	jw_kstr(w, "arguments", arguments_text(p->arguments));
	jw_end_object(w);
	if (p->encrypted.len > 0 && p->raw_wire == WIRE_CHAT)
		jw_kraw(w, "extra_content", p->encrypted);
	jw_end_object(w);
}

static void
write_calls(struct chat_writer *cw, const struct message *m)
{
	struct jw *w = &cw->w;
	jw_key(w, "tool_calls");
	jw_array(w);
	for (const struct part *p = m->parts; p != NULL; p = p->next)
		if (p->kind == PART_CALL)
			write_call(cw, p);
	jw_end_array(w);
}

/* Reasoning goes back only to where it came from, and only beside calls: there some servers insist
 * on it, elsewhere others refuse it (openai-wire §8, DeepSeek). */
static void
write_reasoning(struct chat_writer *cw, const struct message *m)
{
	for (const struct part *p = m->parts; p != NULL; p = p->next)
		if (p->kind == PART_REASONING && p->raw_wire == WIRE_CHAT && p->text.len > 0) {
			bool plain = str_eq(p->name, STR("reasoning"));
			jw_kstr(&cw->w, plain ? "reasoning" : "reasoning_content", p->text);
			return;
		}
}

static void
write_assistant(struct chat_writer *cw, const struct message *m)
{
	struct jw *w = &cw->w;
	struct str refusal = STR_NULL;
	bool calls = false;
	struct buf text = BUF_INIT(cw->w.out->max);
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		calls = calls || p->kind == PART_CALL;
		if (p->kind == PART_REFUSAL)
			refusal = p->text;
	}
	join_text(cw, m->parts, "\n\n", &text);
	if (calls || text.len > 0 || refusal.len > 0) {
		jw_object(w);
		jw_kcstr(w, "role", "assistant");
		if (m->name.len > 0)
			jw_kstr(w, "name", m->name);
		jw_key(w, "content");
		if (text.len > 0)
			jw_str(w, buf_str(&text));
		else
			jw_null(w);
		if (refusal.len > 0)
			jw_kstr(w, "refusal", refusal);
		if (calls) {
			write_reasoning(cw, m);
			write_calls(cw, m);
		}
		jw_end_object(w);
	}
	buf_done(&text);
}

/* Each item of a Responses input is a message; here what one side says between two turns of the
 * other is one. Returns the last message that was written. */
static const struct message *
write_joined_assistant(struct chat_writer *cw, const struct message *m)
{
	struct message joined = {.role = MESSAGE_ASSISTANT, .name = m->name};
	struct gathered g = {.first = NULL};
	g.end = &g.first;
	for (;; m = m->next) {
		for (const struct part *p = m->parts; p != NULL; p = p->next)
			gather(cw, &g, p);
		if (m->next == NULL || m->next->role != MESSAGE_ASSISTANT)
			break;
	}
	joined.parts = g.first;
	write_assistant(cw, &joined);
	return m;
}

void
chat_write_messages(struct chat_writer *cw)
{
	const struct message *m = cw->conv->messages;
	bool leading = true;
	if (m != NULL && is_system(m))
		m = write_leading_system(cw, m);
	for (; m != NULL; m = m->next) {
		bool translate = (m->role == MESSAGE_DEVELOPER && !cw->opt->native_openai) ||
				 (m->role == MESSAGE_ASSISTANT && cw->opt->is_mistral);
		leading = leading && is_system(m);
		if (m->raw.ptr != NULL && m->raw_wire == WIRE_CHAT && !translate)
			jw_raw(&cw->w, m->raw);
		else if (is_system(m))
			write_system(cw, m, leading);
		else if (m->role == MESSAGE_USER)
			write_user(cw, m);
		else if (cw->conv->wire == WIRE_RESPONSES)
			m = write_joined_assistant(cw, m);
		else
			write_assistant(cw, m);
	}
}
