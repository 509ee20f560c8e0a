#include "worker/dialect/origin.h"

#define MESSAGES_MARK  ORIGIN_SIGNATURE "m."
#define REDACTED_MARK  ORIGIN_SIGNATURE "d."
#define RESPONSES_MARK ORIGIN_SIGNATURE "r."

struct str
origin_mark(struct arena *a, enum wire from, struct str name, struct str id, struct str secret,
    bool is_redacted)
{
	switch (from) {
	case WIRE_CHAT:
		return str_eq(name, STR("reasoning")) ? STR(ORIGIN_SIGNATURE "reasoning")
						      : STR(ORIGIN_SIGNATURE "reasoning_content");
	case WIRE_MESSAGES:
		return arena_printf(
		    a, "%s%.*s", is_redacted ? REDACTED_MARK : MESSAGES_MARK, STR_FMT(secret));
	case WIRE_RESPONSES:
		break;
	}
	return arena_printf(a, RESPONSES_MARK "%.*s.%.*s", STR_FMT(id), STR_FMT(secret));
}

bool
origin_restore(struct part *p, struct str mark)
{
	const size_t head = sizeof(MESSAGES_MARK) - 1;
	struct str member = STR_NULL, rest = str_from(mark, head);
	if (!origin_of_signature(mark, &member))
		return false;
	p->raw = p->signature = p->encrypted = p->name = p->id = STR_NULL;
	if (str_starts(mark, STR(MESSAGES_MARK))) {
		p->raw_wire = WIRE_MESSAGES;
		p->signature = rest;
	} else if (str_starts(mark, STR(REDACTED_MARK))) {
		p->raw_wire = WIRE_MESSAGES;
		p->encrypted = rest;
	} else if (str_starts(mark, STR(RESPONSES_MARK))) {
		/* ids hold no dot; encrypted content may */
		size_t dot = str_chr(rest, '.');
		p->raw_wire = WIRE_RESPONSES;
		p->id = str_sub(rest, 0, dot);
		p->encrypted = dot == SIZE_MAX ? STR_NULL : str_from(rest, dot + 1);
	} else {
		p->raw_wire = WIRE_CHAT;
		p->name = member;
	}
	return true;
}
