/* turn_collect: the events of one round as an assistant message, for the next round's transcript.
 */
#include <string.h>

#include "worker/dialect/arguments.h"
#include "worker/dialect/dialect.h"

void
turn_collect_init(struct turn_collect *c, struct conversation *conv, size_t max_bytes)
{
	*c = (struct turn_collect){.conv = conv, .message = ARENA_NEW(conv->arena, struct message)};
	if (c->message != NULL) {
		c->message->role = MESSAGE_ASSISTANT;
		c->message->raw_wire = conv->wire;
	}
	buf_init(&c->text, max_bytes);
}

static struct part *
start_part(struct turn_collect *c, const struct turn_event *ev)
{
	static const enum part_kind kinds[] = {
	    [BLOCK_TEXT] = PART_TEXT,
	    [BLOCK_REASONING] = PART_REASONING,
	    [BLOCK_CALL] = PART_CALL,
	    [BLOCK_REFUSAL] = PART_REFUSAL,
	    [BLOCK_AUDIO] = PART_AUDIO,
	    [BLOCK_OPAQUE] = PART_OPAQUE,
	};
	struct part *p = message_add(c->conv, c->message, kinds[ev->kind]);
	if (p == NULL)
		return NULL;
	p->raw_wire = ev->raw_wire;
	p->id = arena_str(c->conv->arena, ev->id);
	p->name = arena_str(c->conv->arena, ev->name);
	if (ev->kind == BLOCK_OPAQUE)
		p->raw = arena_str(c->conv->arena, ev->raw);
	return p;
}

/* One buffer counts all blocks against the maximum; from says where the open one began. */
static void
block_delta(struct turn_collect *c, const struct turn_event *ev)
{
	struct arena *a = c->conv->arena;
	struct jval v;
	switch (ev->field) {
	case DELTA_TEXT:
		buf_add(&c->text, ev->text);
		break;
	case DELTA_SIGNATURE:
		if (ev->text.len > 0)
			c->last->signature = arena_str(a, ev->text);
		break;
	case DELTA_ENCRYPTED:
		c->last->encrypted = arena_str(a, ev->text);
		break;
	case DELTA_RAW:
		if (c->last->kind == PART_CALL) /* extra_content: the server wants it back */
			c->last->encrypted = arena_str(a, ev->raw);
		else if (c->last->kind == PART_OPAQUE && jdoc_parse(a, ev->raw, &v, NULL) == ERR_OK)
			buf_add(&c->text, jv_str(a, jv_get(v, "partial_json")));
		break;
	}
}

static void
block_stop(struct turn_collect *c)
{
	struct part *p = c->last;
	struct str text = arena_str(c->conv->arena, str_from(buf_str(&c->text), c->from));
	switch (p->kind) {
	case PART_CALL:
		p->arguments = text;
		break;
	case PART_OPAQUE:
		p->raw = block_with_input(c->conv->arena, p->raw, text);
		break;
	case PART_TEXT:
	case PART_REASONING:
	case PART_REFUSAL:
		p->text = text;
		break;
	case PART_IMAGE:
	case PART_DOCUMENT:
	case PART_AUDIO:
	case PART_UPLOAD:
	case PART_RESULT:
		break;
	}
	c->last = NULL;
}

void
turn_collect_event(struct turn_collect *c, const struct turn_event *ev)
{
	if (ev->choice != 0 || c->message == NULL)
		return;
	if (ev->type == TURN_BLOCK_START) {
		c->last = start_part(c, ev);
		c->from = c->text.len;
	} else if (ev->type == TURN_BLOCK_DELTA && c->last != NULL) {
		block_delta(c, ev);
	} else if (ev->type == TURN_BLOCK_STOP && c->last != NULL) {
		block_stop(c);
	}
}

enum err_code
turn_collect_end(struct turn_collect *c, struct message **ret, struct err *reterr)
{
	if (c->message == NULL || c->text.overflowed)
		return err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	if (c->last != NULL)
		block_stop(c);
	if (c->conv->last != NULL)
		c->conv->last->next = c->message;
	else
		c->conv->messages = c->message;
	c->conv->last = c->message;
	c->conv->added_bytes += c->text.len;
	*ret = c->message;
	return ERR_OK;
}

void
turn_collect_done(struct turn_collect *c)
{
	buf_done(&c->text);
}
