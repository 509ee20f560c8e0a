/* migrations.h - the files of schema/, embedded by tools/embed-sql.sh at build time */
#ifndef OTARI_SCHEMA_MIGRATIONS_H
#define OTARI_SCHEMA_MIGRATIONS_H

#include <stddef.h>

struct schema_step {
	int version; /* of the file's name; 1, 2, … without a gap */
	const char *name;
	const unsigned char *sql;
	size_t len;
};

extern const struct schema_step schema_sqlite[], schema_mysql[];
extern const size_t schema_sqlite_count, schema_mysql_count;

#endif
