/* live_string.h - names and strings of a live input, a character at a time
 *
 * Process: worker; pure. Private to live_input.c, which reads what is between them.
 * Rule:    an escape, a pair of them and a character go out whole; a name is held until its value
 *          begins.
 */
#ifndef OTARI_WORKER_DIALECT_LIVE_STRING_H
#define OTARI_WORKER_DIALECT_LIVE_STRING_H

#include "worker/dialect/live_input.h"

struct live_out {
	struct buf *json, *text;
};

void live_stop(struct live_input *in); /* it cannot become an object any more */
/* s goes out with the value that follows; what does not fit stops it. */
void live_hold(struct live_input *in, struct str s);
void live_name_begins(struct live_input *in); /* its quote is there */
/* Of the object itself. */
struct str live_last_name(const struct live_input *in);
/* In a name or a string, s not empty: how many bytes of it were taken. */
size_t live_string_bytes(struct live_input *in, struct live_out *o, struct str s);

#endif
