/* responses_page.h - GET /responses/{id}/input_items: a page of a kept input. Pure.
 *
 * Process: worker.
 * Rule:    OpenAI's cursor pages: newest first unless order=asc; `after` is the id that the page
 *          follows in that order.
 */
#ifndef OTARI_WORKER_API_RESPONSES_PAGE_H
#define OTARI_WORKER_API_RESPONSES_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define RESPONSES_PAGE_MAX     100u
#define RESPONSES_PAGE_DEFAULT 20u

struct responses_page_query {
	uint32_t limit;
	bool ascending;
	struct str after; /* STR_NULL: from the start */
};

/* ERR_INPUT: the text is for the caller; *ret_param names the parameter (static). */
MUST_CHECK enum err_code responses_page_read(struct arena *a, struct str query,
    struct responses_page_query *ret, const char **ret_param, struct err *reterr);
/* input_json: as kept. ERR_INPUT: no item has the id `after`. */
MUST_CHECK enum err_code responses_page_write(struct arena *a, struct str input_json,
    const struct responses_page_query *q, struct buf *out, struct err *reterr);

#endif
