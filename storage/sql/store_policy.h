/* store_policy.h - table code_execution_policies: who runs code for a workspace, and how
 *
 * Process: worker (job threads), builder. Whole units. Values were validated by conf's validators.
 */
#ifndef OTARI_STORAGE_SQL_STORE_POLICY_H
#define OTARI_STORAGE_SQL_STORE_POLICY_H

#include "base/arena.h"
#include "storage/sql/store_generation.h"

struct store_policy {
	struct str workspace_id;
	bool enabled;
	struct str executor; /* "auto", "otari", "provider"; STR_NULL: the deployment's */
	struct str default_purpose_hint;    /* STR_NULL: none */
	int64_t max_iterations;             /* 0: the deployment's */
	int64_t exec_timeout_s;             /* 0: the deployment's */
	struct str image;                   /* STR_NULL: the deployment's */
	struct str tools_json;              /* array of names; STR_NULL: all */
	int64_t created_at_s, updated_at_s; /* created_at_s is kept by a replacement */
};

/* Whole replacement; the last writer wins. ERR_NOTFOUND: no such workspace. */
MUST_CHECK enum err_code store_policy_put(struct db *db, const struct store_policy *policy,
    struct store_generation *ret_gen, struct err *reterr);
/* ERR_NOTFOUND: none is set. */
MUST_CHECK enum err_code store_policy_get(struct db *db, struct arena *a, struct str workspace_id,
    struct store_policy *ret, struct err *reterr);
/* Idempotent. */
MUST_CHECK enum err_code store_policy_delete(
    struct db *db, struct str workspace_id, struct store_generation *ret_gen, struct err *reterr);
MUST_CHECK enum err_code store_policy_list(
    struct db *db, struct arena *a, struct store_policy **ret, size_t *ret_n, struct err *reterr);

#endif
