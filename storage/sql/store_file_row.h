/* store_file_row.h - the columns of a file's row. Private to storage/sql. */
#ifndef OTARI_STORAGE_SQL_STORE_FILE_ROW_H
#define OTARI_STORAGE_SQL_STORE_FILE_ROW_H

#include "storage/sql/store_file.h"

#define STORE_FILE_COLS                                                                            \
	"id, user_id, workspace_id, filename, mime_type, purpose, sha256, storage_ref, provider,"  \
	" provider_instance, provider_container_id, metadata, bytes, created_at_ms,"               \
	" expires_at_ms, deleted_at_ms"

void store_file_copy_row(struct arena *a, struct db_rows *rows, struct store_file *ret);

#endif
