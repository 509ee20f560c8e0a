/* builder_fixture.h - a build in a directory of its own, with an SQLite database */
#ifndef OTARI_TESTS_UNIT_BUILDER_FIXTURE_H
#define OTARI_TESTS_UNIT_BUILDER_FIXTURE_H

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "builder/build.h"
#include "ipc/secrets.h"
#include "storage/sql/migrate.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_policy.h"
#include "storage/sql/store_setting.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"

#define ENVIRON "OTARI_MASTER_KEY=mk-0123456789abcdef\0"
#define ALL     (BUILD_POLICY | BUILD_KEYS)

static char dir[64];

static inline void
enter_directory(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/otari-builder-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	char run[96];
	(void)snprintf(run, sizeof(run), "%s/run", dir);
	cr_assert_eq(mkdir(run, 0700), 0);
}

static inline void
leave_directory(void)
{
	static const char *const names[] = {"run/otari.db", "run/otari.db-wal", "run/otari.db-shm",
	    "run/master.key", "run", "key", NULL};
	for (size_t i = 0; names[i] != NULL; i++) {
		char path[128];
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	(void)rmdir(dir);
}

static inline struct build_request
request(uint32_t what, uint64_t generation)
{
	return (struct build_request){.what = what,
	    .generation = generation,
	    .conf_path = STR("otari.conf"),
	    .cwd = str_c(dir),
	    .reload = true};
}

/* Files come from the disk, as the master would open them. */
static inline bool
run_build(struct build *b, const struct build_request *req, const char *conf, struct str environ)
{
	build_init(b, req);
	if (!build_parse(b, str_c(conf), environ))
		return false;
	for (uint32_t i = 0; i < b->wanted_count; i++) {
		int fd = fd_open(b->wanted[i].file.path.ptr, O_RDONLY, 0);
		build_give_file(b, i, fd, errno);
	}
	return build_run(b);
}

static inline void
must_build(struct build *b, const struct build_request *req, const char *conf)
{
	bool ok = run_build(b, req, conf, STR(ENVIRON));
	cr_assert(ok, "%.*s", STR_FMT(b->result.failure));
	cr_assert(b->result.ok && b->result.has_conf);
}

static inline int
fd_of(const struct build *b, enum build_fd kind)
{
	for (uint32_t i = 0; i < b->result.nfds; i++)
		if (b->result.fds[i] == (uint32_t)kind)
			return fd_dup(b->fds[i]);
	return -1;
}

static inline struct snapshot *
snapshot_of(const struct build *b, enum snap_kind kind)
{
	struct snapshot *s = NULL;
	struct err e = {0};
	int fd = fd_of(b, kind == SNAP_POLICY ? BUILD_FD_POLICY : BUILD_FD_KEYS);
	cr_assert_geq(fd, 0, "no such segment");
	cr_assert_eq(snapshot_map(fd, kind, &s, &e), ERR_OK, "%s", e.msg);
	return s;
}

static inline struct db *
open_db(void)
{
	struct db *db;
	struct err e = {0};
	char url[128];
	(void)snprintf(url, sizeof(url), "sqlite:///%s/run/otari.db", dir);
	cr_assert_eq(db_open(str_c(url), DB_OPEN_NOW, &db, &e), ERR_OK, "%s", e.msg);
	cr_assert_eq(migrate_run(db, NULL, &e), ERR_OK, "%s", e.msg);
	return db;
}

static inline void
key_hash(const char *key, char hex[SHA256_HEX + 1], unsigned char raw[SHA256_BYTES])
{
	sha256_of(str_c(key), raw);
	hex_encode(raw, SHA256_BYTES, hex);
}

static inline void
create_key(struct db *db, const char *key, const char *user, const char *models)
{
	char hex[SHA256_HEX + 1];
	unsigned char raw[SHA256_BYTES];
	struct err e = {0};
	key_hash(key, hex, raw);
	struct store_key row = {.id = str_c(key),
	    .hash_hex = str_c(hex),
	    .prefix = STR("gw-"),
	    .user_id = str_c(user),
	    .workspace_id = STR(STORE_WORKSPACE_DEFAULT),
	    .allowed_models_json = str_c(models),
	    .is_active = true,
	    .created_at_s = 1};
	cr_assert_eq(store_key_create(db, &row, NULL, &e), ERR_OK, "%s", e.msg);
}

static inline const struct snap_key *
find(struct snapshot *s, const char *key)
{
	char hex[SHA256_HEX + 1];
	unsigned char raw[SHA256_BYTES];
	key_hash(key, hex, raw);
	return snapshot_key(s, raw);
}

#endif
