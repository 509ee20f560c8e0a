/* live_input.h - a call's arguments while a model writes them, as far as they are certain
 *
 * Process: worker; pure. Takes the arguments in pieces, whatever the borders, and gives
 *   json  the same object without white space between its tokens. At every moment it ends where the
 *         object can be closed: never inside a name, a number, an escape or a character.
 *   text  the decoded value of one string member of the object, as far as it is known.
 * What came out never changes with the borders of the pieces. Anything that cannot become one JSON
 * object stops both for good; live_input_end then closes the object validly.
 * Limits:  of depth, of bytes, of members and the length of their names at the top level, where a
 * name that is written twice stops it too: two readers would take two values. A lone surrogate
 * becomes U+FFFD, in json as in text: strict readers refuse it.
 */
#ifndef OTARI_WORKER_DIALECT_LIVE_INPUT_H
#define OTARI_WORKER_DIALECT_LIVE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define LIVE_INPUT_DEPTH      32u
#define LIVE_INPUT_NAMES      16u  /* of members of the object itself */
#define LIVE_INPUT_NAME_BYTES 64u  /* of each, decoded */
#define LIVE_INPUT_HELD_BYTES 512u /* a name, or a number, as it was written */

enum live_state {
	LIVE_START,
	LIVE_NAME_OR_END,
	LIVE_NAME, /* wants one */
	LIVE_IN_NAME,
	LIVE_COLON,
	LIVE_VALUE,
	LIVE_VALUE_OR_END,
	LIVE_STRING,
	LIVE_NUMBER,
	LIVE_LITERAL,
	LIVE_BEHIND_VALUE,
	LIVE_DONE,
	LIVE_BROKEN,
};

struct live_input {
	enum live_state state;
	struct str member; /* of text */
	size_t bytes, max_bytes;
	uint32_t arrays; /* bit n: the container at depth n + 1 is an array */
	unsigned depth;
	bool has_begun; /* { is out */
	bool in_string; /* a value's quote is out, its end is not */
	bool in_member; /* … of the value of `member` */
	/* what must not go out before it is whole */
	char unit[12]; /* an escape, a pair of them, a character */
	unsigned unit_len;
	char held[LIVE_INPUT_HELD_BYTES]; /* a comma, a name and its colon; or a scalar */
	unsigned held_len, scalar_at;     /* scalar_at: where a number or literal begins in it */
	/* names at the top level; the last is under way while in a name */
	char names[LIVE_INPUT_NAMES][LIVE_INPUT_NAME_BYTES];
	uint8_t name_len[LIVE_INPUT_NAMES];
	unsigned name_count;
};

/* member is borrowed. */
void live_input_init(struct live_input *in, struct str member, size_t max_bytes);
void live_input_feed(struct live_input *in, struct str piece, struct buf *json, struct buf *text);
/* Appends what closes json ("{}" when nothing came of it). True: the arguments were one whole
 * object. Nothing may be fed behind it. */
bool live_input_end(struct live_input *in, struct buf *json);

#endif
