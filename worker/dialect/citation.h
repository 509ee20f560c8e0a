/* citation.h - an annotation of any wire as what all three have words for: a page that a piece of
 * the text was taken from (openai-wire §10.9)
 *
 * Process: worker; pure. Annotations of another wire than the client's wait for the end of their
 * block: only then it is known which text one of Messages' stands for.
 */
#ifndef OTARI_WORKER_DIALECT_CITATION_H
#define OTARI_WORKER_DIALECT_CITATION_H

#include "base/json.h"
#include "worker/dialect/turn_event.h"

struct citation {
	struct str url, title;
	int64_t first, behind; /* characters of the block's text */
};

struct citation_note { /* as it came */
	struct citation_note *next;
	struct str raw;
	enum wire wire;
};

struct citation_list {
	struct citation_note *first, *last;
};

void citation_keep(struct arena *a, struct citation_list *list, const struct turn_event *ev);
/* False when it cites no page. block_chars: all of the block's text, for Messages, whose citations
 * stand for the block. */
bool citation_read(
    struct arena *a, enum wire w, struct jval v, int64_t block_chars, struct citation *ret);
/* Characters of UTF-8 text. */
int64_t citation_chars(struct str s);

#endif
