/* migrate.h - brings a database to this program's schema
 *
 * Process: builder, before every build. Steps are schema/<database>/NNNN_*.sql, append-only.
 * Several hosts and processes may call it at once: one works, the others wait (30 s, then
 * ERR_BUSY).
 */
#ifndef OTARI_STORAGE_SQL_MIGRATE_H
#define OTARI_STORAGE_SQL_MIGRATE_H

#include "storage/sql/db.h"

/* *ret_version (NULL allowed): the schema's version afterwards. ERR_UNSUPPORTED: the database was
 * written by a newer program; nothing is changed. */
MUST_CHECK enum err_code migrate_run(struct db *db, int64_t *ret_version, struct err *reterr);

#endif
