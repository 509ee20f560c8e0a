#include "worker/dialect/conversation.h"

#define DROPPED_MAX 64u /* names; it ends up in a response header */

struct message *
conversation_add(struct conversation *c, enum message_role role)
{
	struct message *m = ARENA_NEW(c->arena, struct message);
	if (m == NULL)
		return NULL;
	m->role = role;
	m->raw_wire = c->wire;
	if (c->last != NULL)
		c->last->next = m;
	else
		c->messages = m;
	c->last = m;
	return m;
}

struct part *
message_add(struct conversation *c, struct message *m, enum part_kind kind)
{
	struct part *p = ARENA_NEW(c->arena, struct part);
	if (p == NULL || m == NULL)
		return NULL;
	p->kind = kind;
	p->raw_wire = c->wire;
	/* Parts may have been linked by hand, so the hint is only where the search begins. */
	struct part **end = m->tail != NULL ? &m->tail->next : &m->parts;
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	m->tail = p;
	return p;
}

static bool
rewrite_parts(struct part *p, bool (*change)(void *arg, struct part *p), void *arg)
{
	bool changed = false;
	for (; p != NULL; p = p->next) {
		bool inside = p->kind == PART_RESULT && rewrite_parts(p->content, change, arg);
		if (inside)
			p->raw = STR_NULL;
		changed |= change(arg, p) || inside;
	}
	return changed;
}

void
conversation_rewrite(struct conversation *c, bool (*change)(void *arg, struct part *p), void *arg)
{
	for (struct message *m = c->messages; m != NULL; m = m->next)
		if (rewrite_parts(m->parts, change, arg))
			m->raw = STR_NULL;
}

void
part_become_text(struct part *p, struct str text)
{
	p->kind = PART_TEXT;
	p->text = text;
	p->raw = STR_NULL;
	p->media = (struct media){.source = MEDIA_NONE};
}

void
conversation_drop(struct conversation *c, struct str what)
{
	struct dropped **end = &c->dropped;
	unsigned n = 0;
	for (; *end != NULL; end = &(*end)->next, n++)
		if (str_eq((*end)->what, what))
			return;
	struct dropped *d = n < DROPPED_MAX ? ARENA_NEW(c->arena, struct dropped) : NULL;
	if (d == NULL)
		return;
	d->what = arena_str(c->arena, what);
	*end = d;
}

bool
conversation_includes(const struct conversation *c, const char *what)
{
	for (size_t i = 0; i < c->include_count; i++)
		if (str_eq(c->include[i], str_c(what)))
			return true;
	return false;
}

const char *
wire_name(enum wire w)
{
	switch (w) {
	case WIRE_CHAT:
		return "chat";
	case WIRE_MESSAGES:
		return "messages";
	case WIRE_RESPONSES:
		return "responses";
	}
	return "unknown";
}
