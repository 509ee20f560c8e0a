/* "system" and "messages" of a Messages request (openai-wire §10.1). */
#include "worker/dialect/messages_out.h"

static bool
is_system(const struct message *m)
{
	return m->role == MESSAGE_SYSTEM || m->role == MESSAGE_DEVELOPER;
}

/* As sent by a Messages client: a whole message, not the top-level system text. */
static bool
is_whole(const struct message *m)
{
	return m->raw.len > 0 && m->raw_wire == WIRE_MESSAGES && m->raw.ptr[0] == '{';
}

/* --- system --- */

/* Leading system messages are the top-level text; returns the first message behind them. */
static const struct message *
write_system(struct messages_writer *mw)
{
	struct jw *w = &mw->w;
	const struct message *first = mw->conv->messages, *m = first;
	bool any = false;
	while (m != NULL && is_system(m) && !is_whole(m))
		m = m->next;
	if (first == m)
		return m;
	if (first->next == m && first->raw.ptr != NULL && first->raw_wire == WIRE_MESSAGES) {
		jw_kraw(w, "system", first->raw);
		return m;
	}
	for (const struct message *s = first; s != m; s = s->next)
		for (const struct part *p = s->parts; p != NULL; p = p->next) {
			if (!messages_part_is_sendable(mw, p))
				continue;
			if (!any) {
				jw_key(w, "system");
				jw_array(w);
			}
			any = true;
			messages_write_block(mw, p);
		}
	if (any)
		jw_end_array(w);
	return m;
}

/* --- messages --- */

static void
open_message(struct jw *w, const char *role)
{
	jw_object(w);
	jw_kcstr(w, "role", role);
	jw_key(w, "content");
	jw_array(w);
}

static void
close_message(struct jw *w)
{
	jw_end_array(w);
	jw_end_object(w);
}

/* How a message speaks on this wire; late system text becomes the user's. */
static const char *
role_of(const struct messages_writer *mw, const struct message *m)
{
	if (m->role == MESSAGE_ASSISTANT)
		return "assistant";
	return is_system(m) && mw->conv->wire == WIRE_MESSAGES ? "system" : "user";
}

enum pass { RESULTS, OTHERS };

static void
write_parts(struct messages_writer *mw, const struct message *m, enum pass pass, bool *open)
{
	struct jw *w = &mw->w;
	const char *role = role_of(mw, m);
	bool note = is_system(m) && role[0] == 'u';
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		if ((p->kind == PART_RESULT) != (pass == RESULTS) ||
		    !messages_part_is_sendable(mw, p))
			continue;
		if (!*open)
			open_message(w, role);
		*open = true;
		if (note) {
			struct part mark = {.kind = PART_TEXT, .text = STR("System note:")};
			messages_write_block(mw, &mark);
			note = false;
		}
		messages_write_block(mw, p);
	}
}

/* Messages of one role that follow one another are one turn here: results first, then the rest. */
static const struct message *
write_turn(struct messages_writer *mw, const struct message *m)
{
	const struct message *end = m->next;
	const char *role = role_of(mw, m);
	bool open = false, merge = mw->conv->wire != WIRE_MESSAGES;
	while (merge && end != NULL && role_of(mw, end)[0] == role[0])
		end = end->next;
	for (const struct message *t = m; t != end; t = t->next)
		write_parts(mw, t, RESULTS, &open);
	for (const struct message *t = m; t != end; t = t->next)
		write_parts(mw, t, OTHERS, &open);
	if (open)
		close_message(&mw->w);
	return end;
}

void
messages_write_messages(struct messages_writer *mw)
{
	struct jw *w = &mw->w;
	const struct message *m = write_system(mw);
	jw_key(w, "messages");
	jw_array(w);
	if (mw->conv->wire != WIRE_MESSAGES && m != NULL && m->role == MESSAGE_ASSISTANT) {
		open_message(w, "user"); /* the wire wants the user to begin */
		struct part p = {.kind = PART_TEXT, .text = STR("(conversation continues)")};
		messages_write_block(mw, &p);
		close_message(w);
	}
	while (m != NULL) {
		if (is_whole(m)) {
			jw_raw(w, m->raw);
			m = m->next;
		} else {
			m = write_turn(mw, m);
		}
	}
	jw_end_array(w);
}
