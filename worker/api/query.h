/* query.h - the query parameters of list routes. Pure.
 *
 * Process: worker. Results are in the given arena or point into the query. The readers return 0, or
 * the status to refuse with (400 for what cannot be meant, 422 for a value out of range) and a text
 * for the caller.
 */
#ifndef OTARI_WORKER_API_QUERY_H
#define OTARI_WORKER_API_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/dialect/conversation.h"

#define QUERY_FILE_IDS_MAX   100u
#define QUERY_LIMIT_MAX      1000u
#define QUERY_LIMIT_DEFAULT  100u
#define QUERY_OPENAI_MAX     10000u /* OpenAI's own ceiling; served in pages of QUERY_LIMIT_MAX */
#define QUERY_MODELS_DEFAULT 20u    /* Anthropic's */

/* GET /files: OpenAI's `after`, both generations of Anthropic's paging, and ours. */
struct file_query {
	uint32_t limit;
	bool ascending;
	struct str after;    /* STR_NULL: none */
	struct str before;   /* STR_NULL: none */
	bool after_is_token; /* it came as page=…: a foreign one is a 400, not a 404 */
	struct str purpose, user, workspace_id; /* STR_NULL: none; the UUID in lower case */
	struct str *ids; /* distinct; with id_count > 0 nothing else counts */
	size_t id_count;
	bool by_ids;
};
int query_read_files(
    struct arena *a, struct str query, enum wire wire, struct file_query *ret, struct err *reterr);
/* The opaque token of a page that follows this id. Empty when the arena is full. */
struct str query_page_token(struct arena *a, struct str last_id);

/* GET /models as Anthropic asks it. */
struct model_query {
	uint32_t limit;
	struct str after_id, before_id; /* STR_NULL: none; never both */
};
int query_read_models(
    struct arena *a, struct str query, struct model_query *ret, struct err *reterr);
struct page_slice {
	size_t first, count;
	bool has_more; /* in the direction asked */
};
struct page_slice page_from(size_t total, size_t from, uint32_t limit);
/* The page that ends just before this position. */
struct page_slice page_before(size_t position, uint32_t limit);

/* Administrative lists. */
struct admin_query {
	uint32_t skip, limit;
};
int query_read_admin(
    struct arena *a, struct str query, struct admin_query *ret, struct err *reterr);

/* A UUID in any case, as 8-4-4-4-12 hex digits; *ret in lower case, in the arena. */
bool query_uuid(struct arena *a, struct str s, struct str *ret);

#endif
