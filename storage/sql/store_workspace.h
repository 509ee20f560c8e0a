/* store_workspace.h - table workspaces
 *
 * Process: worker (job threads), builder. Whole units. Times are UTC epoch seconds.
 */
#ifndef OTARI_STORAGE_SQL_STORE_WORKSPACE_H
#define OTARI_STORAGE_SQL_STORE_WORKSPACE_H

#include "base/arena.h"
#include "storage/sql/store_generation.h"

/* The workspace that exists from the start. */
#define STORE_WORKSPACE_DEFAULT "00000000-0000-4000-8000-000000000001"

struct store_workspace {
	struct str id; /* UUID, lower case */
	struct str name;
	int64_t created_at_s;
};

MUST_CHECK enum err_code store_workspace_create(struct db *db, const struct store_workspace *ws,
    struct store_generation *ret_gen, struct err *reterr);
/* The same for what a person asked for: ERR_CONFLICT also when another workspace has the name. */
MUST_CHECK enum err_code store_workspace_add(struct db *db, const struct store_workspace *ws,
    struct store_generation *ret_gen, struct err *reterr);
/* ERR_NOTFOUND; ERR_CONFLICT: another workspace has the name. */
MUST_CHECK enum err_code store_workspace_rename(struct db *db, struct str id, struct str name,
    struct store_generation *ret_gen, struct err *reterr);
MUST_CHECK enum err_code store_workspace_get(
    struct db *db, struct arena *a, struct str id, struct store_workspace *ret, struct err *reterr);
/* All of them, oldest first. */
MUST_CHECK enum err_code store_workspace_list(struct db *db, struct arena *a,
    struct store_workspace **ret, size_t *ret_n, struct err *reterr);
/* With its policy; keys that are left become inactive. ERR_CONFLICT, whose text is for the caller:
 * the default workspace, one with keys that otari.conf declares, and, unless even_in_use, one with
 * keys that still open the door. */
MUST_CHECK enum err_code store_workspace_delete(struct db *db, struct str id, bool even_in_use,
    struct store_generation *ret_gen, struct err *reterr);

#endif
