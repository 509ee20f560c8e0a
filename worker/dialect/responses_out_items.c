/* "instructions" and "input" of a Responses request (openai-wire §10.1, 10.4, 10.7). */
#include "worker/dialect/arguments.h"
#include "worker/dialect/names.h"
#include "worker/dialect/responses_out.h"

static bool
is_system(const struct message *m)
{
	return m->role == MESSAGE_SYSTEM || m->role == MESSAGE_DEVELOPER;
}

/* --- instructions --- */

static void
join_text(struct buf *b, const struct message *m)
{
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		if (p->kind != PART_TEXT || p->text.len == 0)
			continue;
		if (b->len > 0 && !str_starts(p->text, STR("\n\n")))
			buf_add(b, STR("\n\n"));
		buf_add(b, p->text);
	}
}

static bool
is_text_alone(const struct message *m)
{
	for (const struct part *p = m->parts; p != NULL; p = p->next)
		if (p->kind != PART_TEXT)
			return false;
	return true;
}

/* Leading system text of other wires; of a Responses client what it wrote there, or what the
 * gateway put in front of its input. Returns the first message behind it. */
static const struct message *
write_instructions(struct responses_writer *rw)
{
	const struct conversation *c = rw->conv;
	const struct message *first = c->messages, *end = first;
	if (c->wire == WIRE_RESPONSES) {
		bool ours = first != NULL && is_system(first) && first->raw.ptr == NULL &&
			    c->instructions_raw.ptr == NULL && is_text_alone(first);
		if (first != NULL && (first->is_instructions || ours))
			end = first->next;
	} else {
		while (end != NULL && is_system(end))
			end = end->next;
	}
	if (first == end)
		return end;
	if (first->is_instructions && first->raw.ptr != NULL) {
		jw_kraw(&rw->w, "instructions", first->raw);
		return end;
	}
	struct buf b = BUF_INIT(rw->w.out->max);
	for (const struct message *m = first; m != end; m = m->next)
		join_text(&b, m);
	if (b.len > 0)
		jw_kstr(&rw->w, "instructions", buf_str(&b));
	buf_done(&b);
	return end;
}

/* --- messages --- */

static void
open_message(struct jw *w, const char *role, bool *open)
{
	if (*open)
		return;
	*open = true;
	jw_object(w);
	jw_kcstr(w, "type", "message");
	jw_kcstr(w, "role", role);
	jw_key(w, "content");
	jw_array(w);
}

static void
close_message(struct jw *w, bool *open)
{
	if (!*open)
		return;
	*open = false;
	jw_end_array(w);
	jw_end_object(w);
}

static const char *
role_of(const struct responses_writer *rw, const struct message *m)
{
	if (m->role == MESSAGE_ASSISTANT)
		return "assistant";
	if (!is_system(m))
		return "user";
	/* Other servers' templates know no developer. */
	bool developer = m->role == MESSAGE_DEVELOPER || rw->conv->wire != WIRE_RESPONSES;
	return developer && rw->opt->native_openai ? "developer" : "system";
}

static void
write_content(struct responses_writer *rw, const struct message *m)
{
	bool open = false;
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		if (p->kind == PART_RESULT || !responses_part_is_sendable(rw, p))
			continue;
		open_message(&rw->w, role_of(rw, m), &open);
		responses_write_part(rw, p, false);
	}
	close_message(&rw->w, &open);
}

/* --- results --- */

static bool
is_all_text(struct responses_writer *rw, const struct part *list)
{
	for (const struct part *p = list; p != NULL; p = p->next)
		if (p->kind != PART_TEXT && responses_part_is_sendable(rw, p))
			return false;
	return true;
}

static void
write_text_output(struct responses_writer *rw, const struct part *p)
{
	struct buf b = BUF_INIT(rw->w.out->max);
	bool any = false;
	if (p->is_error)
		buf_add(&b, STR("Error: "));
	for (const struct part *t = p->content; t != NULL; t = t->next) {
		if (t->kind != PART_TEXT || t->text.len == 0)
			continue;
		if (any)
			buf_addc(&b, '\n');
		any = true;
		buf_add(&b, t->text);
	}
	jw_str(&rw->w, buf_str(&b));
	buf_done(&b);
}

static void
write_result(struct responses_writer *rw, const struct part *p)
{
	struct jw *w = &rw->w;
	if (responses_has_raw(p)) {
		jw_raw(w, p->raw);
		return;
	}
	bool custom = rw->custom_calls != NULL && map_get(rw->custom_calls, p->id) != NULL;
	jw_object(w);
	jw_kcstr(w, "type", custom ? "custom_tool_call_output" : "function_call_output");
	jw_kstr(w, "call_id", id_for_responses(rw->conv->arena, p->id));
	jw_key(w, "output");
	if (is_all_text(rw, p->content)) {
		write_text_output(rw, p);
	} else {
		jw_array(w);
		if (p->is_error) {
			struct part mark = {.kind = PART_TEXT, .text = STR("Error:")};
			responses_write_part(rw, &mark, false);
		}
		for (const struct part *c = p->content; c != NULL; c = c->next)
			if (responses_part_is_sendable(rw, c))
				responses_write_part(rw, c, false);
		jw_end_array(w);
	}
	jw_end_object(w);
}

static void
write_user(struct responses_writer *rw, const struct message *m)
{
	for (const struct part *p = m->parts; p != NULL; p = p->next)
		if (p->kind == PART_RESULT)
			write_result(rw, p);
	write_content(rw, m);
}

/* --- assistant --- */

static void
note_custom(struct responses_writer *rw, const struct part *p)
{
	if (p->kind != PART_CALL || !responses_is_custom(rw, p->name))
		return;
	if (rw->custom_calls == NULL)
		rw->custom_calls = map_new();
	map_put(rw->custom_calls, p->id, rw);
}

static void
write_call(struct responses_writer *rw, const struct part *p)
{
	struct arena *a = rw->conv->arena;
	struct jw *w = &rw->w;
	bool custom = responses_is_custom(rw, p->name);
	jw_object(w);
	jw_kcstr(w, "type", custom ? "custom_tool_call" : "function_call");
	jw_kstr(w, "call_id", id_for_responses(a, p->id));
	jw_kstr(w, "name", name_for_chat(a, p->name));
	if (custom)
		jw_kstr(w, "input", arguments_input(a, p->arguments));
	else
		jw_kstr(w, "arguments", arguments_text(p->arguments));
	jw_end_object(w);
}

/* Reasoning goes back only to where it came from, and only in the form that does not lean on what
 * the provider may have kept; except for a Responses client, whose provider keeps it unless told
 * otherwise. */
static bool
is_own_reasoning(const struct responses_writer *rw, const struct part *p)
{
	if (p->raw_wire != WIRE_RESPONSES)
		return false;
	bool kept = rw->conv->wire == WIRE_RESPONSES && rw->conv->store != 0 && p->id.len > 0;
	return p->encrypted.len > 0 || kept || (p->text.len > 0 && !rw->opt->native_openai);
}

static void
write_reasoning(struct responses_writer *rw, const struct part *p)
{
	struct jw *w = &rw->w;
	jw_object(w);
	jw_kcstr(w, "type", "reasoning");
	if (p->id.len > 0)
		jw_kstr(w, "id", p->id);
	jw_key(w, "summary");
	jw_array(w);
	if (p->text.len > 0) {
		jw_object(w);
		jw_kcstr(w, "type", "summary_text");
		jw_kstr(w, "text", p->text);
		jw_end_object(w);
	}
	jw_end_array(w);
	if (p->encrypted.len > 0)
		jw_kstr(w, "encrypted_content", p->encrypted);
	jw_end_object(w);
}

static void
write_assistant(struct responses_writer *rw, const struct message *m)
{
	bool open = false;
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		bool item = p->kind == PART_CALL || p->kind == PART_REASONING ||
			    (p->kind == PART_OPAQUE && responses_has_raw(p));
		if (!item) {
			if (!responses_part_is_sendable(rw, p))
				continue;
			open_message(&rw->w, "assistant", &open);
			responses_write_part(rw, p, true);
			continue;
		}
		close_message(&rw->w, &open);
		if (responses_has_raw(p))
			jw_raw(&rw->w, p->raw);
		else if (p->kind == PART_CALL)
			write_call(rw, p);
		else if (is_own_reasoning(rw, p))
			write_reasoning(rw, p);
	}
	close_message(&rw->w, &open);
}

/* --- input --- */

static bool
is_item_as_sent(const struct message *m)
{
	return m->raw.len > 0 && m->raw_wire == WIRE_RESPONSES && m->raw.ptr[0] == '{';
}

static void
write_message(struct responses_writer *rw, const struct message *m)
{
	for (const struct part *p = m->parts; p != NULL; p = p->next)
		note_custom(rw, p);
	if (is_item_as_sent(m))
		jw_raw(&rw->w, m->raw);
	else if (m->role == MESSAGE_ASSISTANT)
		write_assistant(rw, m);
	else
		write_user(rw, m);
}

void
responses_write_input(struct responses_writer *rw)
{
	struct jw *w = &rw->w;
	const struct message *m = write_instructions(rw);
	bool text = m != NULL && m->next == NULL && m->role == MESSAGE_USER && m->raw.len > 0 &&
		    m->raw_wire == WIRE_RESPONSES && m->raw.ptr[0] == '"';
	if (text) {
		jw_kraw(w, "input", m->raw);
		return;
	}
	if (m == NULL && rw->conv->previous_response_id.len > 0)
		return;
	jw_key(w, "input");
	jw_array(w);
	for (; m != NULL; m = m->next)
		write_message(rw, m);
	jw_end_array(w);
}
