/* responses_out.h - what the parts of the Responses request writer share; private to
 * responses_out*.c */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_OUT_H
#define OTARI_WORKER_DIALECT_RESPONSES_OUT_H

#include "base/json_write.h"
#include "base/map.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/fold.h"

struct responses_writer {
	struct conversation *conv;
	const struct encode_options *opt;
	struct jw w;
	struct fold fold;
	struct map *custom_tools; /* names; NULL: none declared */
	struct map *custom_calls; /* ids of the calls of those; their outputs have a type of their
				     own */
};

/* "instructions" (when there are any) and "input". */
void responses_write_input(struct responses_writer *rw);
/* A content part; assistant: in the words of a message that the model wrote. */
bool responses_part_is_sendable(struct responses_writer *rw, const struct part *p);
void responses_write_part(struct responses_writer *rw, const struct part *p, bool assistant);
/* "tools", "tool_choice", "parallel_tool_calls". */
void responses_write_tools(struct responses_writer *rw);
bool responses_is_custom(const struct responses_writer *rw, struct str tool_name);

static inline bool
responses_has_raw(const struct part *p)
{
	return p->raw.ptr != NULL && p->raw_wire == WIRE_RESPONSES;
}

#endif
