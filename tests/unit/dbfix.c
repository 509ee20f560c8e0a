#include "tests/unit/dbfix.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/id.h"
#include "storage/sql/migrate.h"

#define TEMPLATE "build/mariadb-template"

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
dbfix_rmtree(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool
dbfix_has_mysql(void)
{
	bool has =
	    (access("/usr/sbin/mariadbd", X_OK) == 0 || access("/usr/bin/mariadbd", X_OK) == 0) &&
	    access("/usr/bin/mariadb-install-db", X_OK) == 0;
	const char *required = getenv("OTARI_TEST_REQUIRE");
	cr_assert(has || required == NULL || strstr(required, "mysql") == NULL,
	    "mariadbd is required but not installed");
	return has;
}

static void
pause_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	(void)nanosleep(&ts, NULL);
}

static bool
run_server(struct dbfix *f)
{
	char data[96], port[16];
	(void)snprintf(data, sizeof(data), "%s/my%d", f->dir, f->port);
	(void)snprintf(port, sizeof(port), "%d", f->port);
	f->server = fork();
	cr_assert_neq(f->server, -1);
	if (f->server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(
		    "tests/fake/mariadb.sh", "mariadb.sh", TEMPLATE, data, port, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 600; i++) {
		int status;
		if (waitpid(f->server, &status, WNOHANG) == f->server) {
			f->server = 0;
			return false; /* the port was taken */
		}
		if (db_open(str_c(f->url), DB_OPEN_NOW, &f->db, NULL) == ERR_OK)
			return true;
		pause_ms(50);
	}
	return false;
}

static bool
start_server(struct dbfix *f)
{
	uint16_t r;
	id_random(&r, sizeof(r));
	f->port = 20000 + r % 12000;
	(void)snprintf(
	    f->url, sizeof(f->url), "mysql://otari:s%%40cret@127.0.0.1:%d/otari", f->port);
	return run_server(f);
}

void
dbfix_stop(struct dbfix *f)
{
	db_close(&f->db);
	(void)kill(f->server, SIGTERM);
	(void)waitpid(f->server, NULL, 0);
	f->server = 0;
}

void
dbfix_start_again(struct dbfix *f)
{
	cr_assert(run_server(f), "mariadbd does not start again");
}

void
dbfix_open(struct dbfix *f, enum db_kind kind)
{
	*f = (struct dbfix){.kind = kind, .name = kind == DB_SQLITE ? "sqlite" : "mysql"};
	/* Short: the server's socket is below it. */
	const char *tmp = getenv("OTARI_TEST_TMP");
	bool fits = tmp != NULL && strlen(tmp) < 40;
	(void)snprintf(f->dir, sizeof(f->dir), "%s/otari-db-XXXXXX", fits ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(f->dir));
	struct err err = {0};
	if (kind == DB_SQLITE) {
		(void)snprintf(f->url, sizeof(f->url), "sqlite:///%s/t.db", f->dir);
		cr_assert_eq(
		    db_open(str_c(f->url), DB_OPEN_NOW, &f->db, &err), ERR_OK, "%s", err.msg);
	} else {
		bool up = false;
		for (int i = 0; i < 4 && !up; i++)
			up = start_server(f);
		cr_assert(up, "mariadbd does not start; see %s", f->dir);
	}
	cr_assert_eq(migrate_run(f->db, NULL, &err), ERR_OK, "%s: %s", f->name, err.msg);
}

struct db *
dbfix_connect(const struct dbfix *f)
{
	struct db *db = NULL;
	struct err err = {0};
	cr_assert_eq(db_open(str_c(f->url), DB_OPEN_NOW, &db, &err), ERR_OK, "%s", err.msg);
	return db;
}

void
dbfix_close(struct dbfix *f)
{
	db_close(&f->db);
	if (f->server > 0) {
		(void)kill(f->server, SIGKILL);
		(void)waitpid(f->server, NULL, 0);
	}
	dbfix_rmtree(f->dir);
}

void
dbfix_each(void (*fn)(struct dbfix *f))
{
	for (int kind = DB_SQLITE; kind <= DB_MYSQL; kind++) {
		if (kind == DB_MYSQL && !dbfix_has_mysql())
			continue;
		struct dbfix f;
		dbfix_open(&f, (enum db_kind)kind);
		fn(&f);
		dbfix_close(&f);
	}
}
