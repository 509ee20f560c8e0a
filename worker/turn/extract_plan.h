/* extract_plan.h - which documents of a conversation the model's service cannot read, and their
 * text in their place
 *
 * Process: worker. Pure: extract.c finds the text between the two steps. A document without text
 * stays as it is.
 * Limits:  EXTRACT_DOCUMENTS_MAX different documents a request, EXTRACT_TEXT_FILES_MAX bytes of
 * text files, which are read at once; more stay as they are.
 */
#ifndef OTARI_WORKER_TURN_EXTRACT_PLAN_H
#define OTARI_WORKER_TURN_EXTRACT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "worker/turn/document.h"

#define EXTRACT_DOCUMENTS_MAX  32u
#define EXTRACT_TEXT_FILES_MAX (4u << 20)

struct extract_document { /* one different document, in the order of its first mention */
	struct extract_document *next;
	struct str data; /* base64, borrowed from the conversation */
	enum code_extractor extractor;
	struct str text;   /* filled in by whoever reads it; ptr NULL: not read */
	bool is_text_file; /* read already */
};

struct extract_plan {
	struct extract_document *first;
	size_t count;
	size_t unread; /* need an extractor */
};

/* The documents that came inline and whose format is not in `reads` (documents_read), also those in
 * tools' results. The same bytes count once; their parts share them from now on. */
void extract_collect(struct conversation *conv, uint32_t reads, struct extract_plan *ret);
/* Would extract_collect find any? */
bool extract_is_needed(struct conversation *conv, uint32_t reads);
/* What an extractor wrote, fit for the model: valid UTF-8 without control characters, at most
 * max bytes; text that was cut says so in a line more. total: of all that was written. In the
 * arena; STR_NULL when there is nothing but white space, as of a scanned page. */
struct str extract_text(struct arena *a, struct str out, uint64_t total, size_t max);
/* Puts the texts in place of their documents. */
void extract_rewrite(struct conversation *conv, const struct extract_plan *plan);

#endif
