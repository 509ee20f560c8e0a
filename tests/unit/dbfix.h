/* dbfix.h - databases for tests: a new SQLite file, or a private mariadbd, in a temporary folder
 *
 * The server dies with the test's process. Not installed: DBFIX_MYSQL is left out, unless
 * OTARI_TEST_REQUIRE names "mysql".
 */
#ifndef OTARI_TESTS_UNIT_DBFIX_H
#define OTARI_TESTS_UNIT_DBFIX_H

#include <sys/types.h>

#include "storage/sql/db.h"

struct dbfix {
	enum db_kind kind;
	const char *name; /* for messages */
	char dir[64];
	char url[160];
	int port;
	pid_t server;
	struct db *db; /* open, migrated */
};

bool dbfix_has_mysql(void);
void dbfix_open(struct dbfix *f, enum db_kind kind);
struct db *dbfix_connect(const struct dbfix *f); /* one more connection */
/* MySQL: the server ends in good order, and comes back with its data at the same place. */
void dbfix_stop(struct dbfix *f);
void dbfix_start_again(struct dbfix *f);
void dbfix_close(struct dbfix *f);
void dbfix_rmtree(const char *dir);
/* Runs fn on each database that is there. */
void dbfix_each(void (*fn)(struct dbfix *f));

#endif
