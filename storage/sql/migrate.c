#include "storage/sql/migrate.h"

#include "base/clock.h"
#include "schema/migrations.h"

#define LOCK_WAIT_S 30

static const char SQL_HAS_TABLE_SQLITE[] =
    "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'";
static const char SQL_HAS_TABLE_MYSQL[] =
    "SELECT COUNT(*) FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name = 'schema_version'";
static const char SQL_VERSION[] = "SELECT COALESCE(MAX(version), 0) FROM schema_version";
static const char SQL_TABLE_SQLITE[] =
    "CREATE TABLE IF NOT EXISTS schema_version ("
    "version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at_s INTEGER NOT NULL) STRICT;\n";
static const char SQL_TABLE_MYSQL[] =
    "CREATE TABLE IF NOT EXISTS schema_version (version INT NOT NULL PRIMARY KEY,"
    " name VARCHAR(128) NOT NULL, applied_at_s BIGINT NOT NULL)"
    " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\n";
static const char SQL_RECORD_SQLITE[] =
    "INSERT OR IGNORE INTO schema_version (version, name, applied_at_s) VALUES (?, ?, ?)";
static const char SQL_RECORD_MYSQL[] =
    "INSERT IGNORE INTO schema_version (version, name, applied_at_s) VALUES (?, ?, ?)";
/* Named locks are the whole server's, so the database's name is a part of it. */
static const char SQL_LOCK[] = "SELECT GET_LOCK(CONCAT('otari_schema_', MD5(DATABASE())), ?)";
static const char SQL_UNLOCK[] = "SELECT RELEASE_LOCK(CONCAT('otari_schema_', MD5(DATABASE())))";

struct migration {
	int64_t version; /* what the database has */
	const struct schema_step *steps;
	size_t count;
};

static enum err_code
read_version(struct db *db, void *arg, struct err *reterr)
{
	struct migration *m = arg;
	int64_t has_table = 0, version = 0;
	enum err_code rc = db_query_i64(db, db_pick(db, SQL_HAS_TABLE_SQLITE, SQL_HAS_TABLE_MYSQL),
	    DB_NO_ARGS, &has_table, reterr);
	if (rc == ERR_OK && has_table > 0)
		rc = db_query_i64(db, SQL_VERSION, DB_NO_ARGS, &version, reterr);
	if (rc == ERR_OK)
		m->version = version;
	return rc;
}

static enum err_code
apply_steps(struct db *db, struct migration *m, struct err *reterr)
{
	enum err_code rc = read_version(db, m, reterr); /* another one may have been faster */
	if (rc == ERR_OK && m->version == 0)
		rc = db_script(db, str_c(db_pick(db, SQL_TABLE_SQLITE, SQL_TABLE_MYSQL)), reterr);
	for (size_t i = 0; rc == ERR_OK && i < m->count; i++) {
		const struct schema_step *s = &m->steps[i];
		if (s->version <= m->version)
			continue;
		rc = db_script(db, str_n(s->sql, s->len), reterr);
		if (rc == ERR_OK)
			rc = db_exec(db, db_pick(db, SQL_RECORD_SQLITE, SQL_RECORD_MYSQL),
			    DB_ARGS(DB_I64(s->version), DB_TEXT(str_c(s->name)),
				DB_I64(clock_wall_s())),
			    reterr);
		if (rc != ERR_OK)
			err_prefix(reterr, "schema step %s: ", s->name);
		else
			m->version = s->version;
	}
	return rc;
}

/* SQLite: the write transaction is the lock. MySQL: DDL commits, so a named lock is held; clusters
 * that have none (Galera in strict mode) do without: the steps bear being run side by side. */
static enum err_code
migrate_unit(struct db *db, void *arg, struct err *reterr)
{
	if (db_kind(db) == DB_SQLITE)
		return apply_steps(db, arg, reterr);
	int64_t got = 0;
	enum err_code rc = db_query_i64(db, SQL_LOCK, DB_ARGS(DB_I64(LOCK_WAIT_S)), &got, reterr);
	if (rc == ERR_INTERNAL)
		return apply_steps(db, arg, reterr);
	if (rc != ERR_OK)
		return rc;
	if (got != 1)
		return err_set(reterr, ERR_BUSY,
		    "database: another process has been changing the schema for over %d s",
		    LOCK_WAIT_S);
	rc = apply_steps(db, arg, reterr);
	int64_t released; /* a lost connection has released it already */
	enum err_code unlock = db_query_i64(db, SQL_UNLOCK, DB_NO_ARGS, &released, NULL);
	return rc != ERR_OK || unlock == ERR_OK ? rc : unlock;
}

enum err_code
migrate_run(struct db *db, int64_t *ret_version, struct err *reterr)
{
	bool lite = db_kind(db) == DB_SQLITE;
	struct migration m = {
	    .steps = lite ? schema_sqlite : schema_mysql,
	    .count = lite ? schema_sqlite_count : schema_mysql_count,
	};
	int64_t newest = m.steps[m.count - 1].version;
	enum err_code rc = db_unit(db, DB_READ, read_version, &m, reterr);
	if (rc == ERR_OK && m.version < newest)
		rc = db_unit(db, DB_WRITE_REPEATABLE, migrate_unit, &m, reterr);
	if (rc != ERR_OK)
		return rc;
	if (m.version > newest)
		return err_set(reterr, ERR_UNSUPPORTED,
		    "database: its schema is version %lld, newer than this program's %lld",
		    (long long)m.version, (long long)newest);
	if (ret_version != NULL)
		*ret_version = m.version;
	return ERR_OK;
}
