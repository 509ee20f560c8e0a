#include <sys/wait.h>

#include <unistd.h>

#include <criterion/criterion.h>

#include "schema/migrations.h"
#include "storage/sql/migrate.h"
#include "tests/unit/dbfix.h"

static enum err_code
set_version_99(struct db *db, void *arg, struct err *reterr)
{
	(void)arg;
	return db_exec(db,
	    "INSERT INTO schema_version (version, name, applied_at_s) VALUES (99, 'x', 1)",
	    DB_NO_ARGS, reterr);
}

static enum err_code
count_defaults(struct db *db, void *arg, struct err *reterr)
{
	return db_query_i64(db,
	    "SELECT (SELECT COUNT(*) FROM users) + (SELECT COUNT(*) FROM workspaces)"
	    " + (SELECT COUNT(*) FROM config_generation)",
	    DB_NO_ARGS, arg, reterr);
}

static void
run_again_and_newer(struct dbfix *f)
{
	struct err err = {0};
	int64_t version = 0, n = 0;
	cr_assert_eq(migrate_run(f->db, &version, &err), ERR_OK, "%s: %s", f->name, err.msg);
	cr_assert_eq(version, (int64_t)schema_sqlite_count);
	cr_assert_eq(db_unit(f->db, DB_READ, count_defaults, &n, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(n, 3, "%s: one of each default", f->name);
	cr_assert_eq(db_unit(f->db, DB_WRITE, set_version_99, NULL, &err), ERR_OK);
	cr_assert_eq(migrate_run(f->db, NULL, &err), ERR_UNSUPPORTED, "%s", f->name);
}

Test(migrate, runs_once_and_refuses_a_newer_schema, .timeout = 60)
{
	dbfix_each(run_again_and_newer);
}

static enum err_code
drop_all(struct db *db, void *arg, struct err *reterr)
{
	(void)arg;
	return db_script(db,
	    STR("DROP TABLE schema_version;\nDROP TABLE files;\nDROP TABLE usage_logs;\n"), reterr);
}

static void
race(struct dbfix *f)
{
	struct err err = {0};
	cr_assert_eq(db_unit(f->db, DB_WRITE, drop_all, NULL, &err), ERR_OK, "%s", err.msg);
	db_close(&f->db);
	pid_t pids[4];
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct db *db = NULL;
			int64_t version = 0;
			bool ok = db_open(str_c(f->url), DB_OPEN_NOW, &db, &err) == ERR_OK &&
				  migrate_run(db, &version, &err) == ERR_OK &&
				  version == (int64_t)schema_sqlite_count;
			if (!ok)
				(void)write(2, err.msg, sizeof(err.msg));
			db_close(&db);
			_exit(ok ? 0 : 1);
		}
	}
	for (int i = 0; i < 4; i++) {
		int status = -1;
		(void)waitpid(pids[i], &status, 0);
		cr_assert_eq(status, 0, "%s: process %d", f->name, i);
	}
	f->db = dbfix_connect(f);
	int64_t n = 0;
	cr_assert_eq(db_unit(f->db, DB_READ, count_defaults, &n, &err), ERR_OK);
	cr_assert_eq(n, 3);
}

Test(migrate, bears_four_processes_at_once, .timeout = 60)
{
	dbfix_each(race);
}
