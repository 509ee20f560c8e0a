/* store_tool_result.h - table tool_results: what our tool calls gave in a turn that ended with
 * calls of the client's own tools, kept until the client comes back with the results of those
 *
 * Process: worker (job threads), sweeper. Whole units. Results are in arena a.
 * Key:     scope and a digest of the call id: any bytes of any length. The text is opaque here.
 * Rule:    a call id that is put twice with different texts while the first still counts means that
 *          the provider gives ids again. Nobody could tell whose text it is: it is emptied and
 * stays so until it expires. Limits:  STORE_TOOL_RESULT_MAX_BYTES a text, STORE_TOOL_RESULT_IDS_MAX
 * ids a call.
 */
#ifndef OTARI_STORAGE_SQL_STORE_TOOL_RESULT_H
#define OTARI_STORAGE_SQL_STORE_TOOL_RESULT_H

#include "storage/sql/store_response.h"

#define STORE_TOOL_RESULT_MAX_BYTES (768u * 1024u)
#define STORE_TOOL_RESULT_IDS_MAX   256u

struct store_tool_result {
	struct store_response_scope scope;
	struct str call_id;
	struct str text; /* valid UTF-8 */
	int64_t expires_at_s;
};

/* ERR_TOOLARGE: over the limit. */
MUST_CHECK enum err_code store_tool_result_put(
    struct db *db, const struct store_tool_result *r, int64_t now_s, struct err *reterr);
/* texts[i] is what belongs to call_ids[i], STR_NULL when there is nothing. Stops, with ERR_OK, when
 * the texts together are over max_bytes: the last ids come first. */
MUST_CHECK enum err_code store_tool_result_get(struct db *db, struct arena *a,
    const struct store_response_scope *scope, const struct str *call_ids, size_t n,
    size_t max_bytes, int64_t now_s, struct str *texts, struct err *reterr);
/* Removes up to limit rows that expired before now_s; *ret_n counts them. */
MUST_CHECK enum err_code store_tool_result_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr);

#endif
