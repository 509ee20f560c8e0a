/* input_text.h - the free text of a custom tool out of {"input": "…"}, while a model writes it
 *
 * Process: worker; pure. Takes the arguments in pieces, gives the text as far as it is certain:
 * what an escape or half of a surrogate pair may still become is held back. Anything that is no
 * such object gives nothing; the caller settles that at the end, with all of the arguments at hand.
 */
#ifndef OTARI_WORKER_DIALECT_INPUT_TEXT_H
#define OTARI_WORKER_DIALECT_INPUT_TEXT_H

#include <stdint.h>

#include "base/buf.h"

enum input_state {
	INPUT_START, /* { */
	INPUT_KEY,   /* "input" */
	INPUT_COLON,
	INPUT_QUOTE,
	INPUT_TEXT,
	INPUT_ESCAPE, /* behind \ */
	INPUT_HEX,    /* behind \u */
	INPUT_DONE,
	INPUT_OTHER, /* no such object */
};

struct input_text { /* zeroed is ready */
	enum input_state state;
	unsigned seen;            /* characters of the key, digits of a code */
	uint32_t code, surrogate; /* high half that waits for its low half, or 0 */
};

void input_text_feed(struct input_text *t, struct str piece, struct buf *out);

#endif
