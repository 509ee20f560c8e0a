#include "builder/build.h"

#include <string.h>

#include "base/check.h"
#include "base/fd.h"
#include "storage/sql/migrate.h"

#define FAILURE_MAX 16384u

void
build_init(struct build *b, const struct build_request *req)
{
	*b = (struct build){.req = *req, .arena = arena_new(BUILD_ARENA_BYTES)};
	b->req.conf_path = arena_str(b->arena, req->conf_path);
	b->req.cwd = arena_str(b->arena, req->cwd);
	if (req->identity.ptr != NULL)
		b->req.identity = arena_str(b->arena, req->identity);
	b->result.generation = req->generation;
	for (size_t i = 0; i < BUILD_FDS_MAX; i++)
		b->fds[i] = -1;
	conf_report_init(&b->report, arena_cstr(b->arena, b->req.conf_path));
}

void
build_done(struct build *b)
{
	for (size_t i = 0; i < BUILD_FDS_MAX; i++)
		fd_close(&b->fds[i]);
	db_close(&b->db);
	conf_free(&b->conf);
	conf_report_done(&b->report);
	arena_free(&b->arena);
}

static bool
fail(struct build *b, const char *text, bool bad_conf)
{
	b->result.ok = false;
	b->result.bad_conf = bad_conf;
	b->result.failure = arena_str(b->arena, str_sub(str_c(text), 0, FAILURE_MAX));
	for (size_t i = 0; i < BUILD_FDS_MAX; i++)
		fd_close(&b->fds[i]);
	b->result.nfds = 0;
	return false;
}

/* Said when the operator asks; the builds that every change through the API makes are silent. */
static void
keep_warnings(struct build *b)
{
	if (!b->req.reload)
		return;
	b->result.warnings = arena_str(b->arena, buf_str(&b->report.warnings));
}

static void
half_identity(struct str text, char dst[SHA256_HEX / 2 + 1])
{
	unsigned char digest[SHA256_BYTES];
	sha256_of(text, digest);
	hex_encode(digest, SHA256_BYTES / 2, dst);
}

/* Where the state is, and whether it is where the running service has it. */
static void
check_identity(struct build *b)
{
	static const char *const keys[2] = {"state_dir", "database_url"};
	char halves[2][SHA256_HEX / 2 + 1];
	half_identity(b->conf->state_dir, halves[0]);
	half_identity(conf_database_place(b->conf, b->arena), halves[1]);
	b->result.identity = arena_printf(b->arena, "%s%s", halves[0], halves[1]);
	if (b->req.identity.len != BUILD_IDENTITY_SIZE - 1)
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (str_eq(str_sub(b->req.identity, i * (SHA256_HEX / 2), SHA256_HEX / 2),
			str_c(halves[i])))
			continue;
		const struct conf_origin *o = conf_origin_of(b->conf, keys[i]);
		conf_error(&b->report, o->from == FROM_ENVIRON ? REPORT_ENVIRON : o->line,
		    "%s: a change needs a restart", keys[i]);
	}
}

bool
build_parse(struct build *b, struct str conf_text, struct str environ)
{
	struct conf_source src = {.file = b->report.file,
	    .text = conf_text,
	    .environ = environ,
	    .cwd = b->req.cwd,
	    .as_root = b->req.as_root};
	enum err_code rc = conf_load(&src, &b->report, &b->conf, NULL);
	keep_warnings(b);
	if (rc != ERR_OK) {
		CHECK(b->report.errors.ptr != NULL);
		return fail(b, b->report.errors.ptr, true);
	}
	check_identity(b);
	if (b->report.error_count > 0)
		return fail(b, b->report.errors.ptr, true);
	conf_master(b->conf, &b->result.conf);
	b->result.has_conf = true;
	if ((b->req.what & BUILD_POLICY) != 0)
		wanted_list(b);
	return true;
}

static void
add_fd(struct build *b, enum build_fd kind, int fd)
{
	CHECK(b->result.nfds < BUILD_FDS_MAX);
	b->result.fds[b->result.nfds] = kind;
	b->fds[b->result.nfds++] = fd;
}

/* --- database -------------------------------------------------------------------------------- */

static enum err_code
open_database(struct build *b, struct err *reterr)
{
	enum err_code rc = db_open(b->conf->database_url, DB_OPEN_NOW, &b->db, reterr);
	if (rc == ERR_OK)
		rc = migrate_run(b->db, NULL, reterr);
	if (rc != ERR_OK)
		err_prefix(
		    reterr, b->req.first ? "the first start needs the database: " : "database: ");
	return rc;
}

struct read_state {
	struct build *b;
	struct arena *rows_arena;
	struct policy_rows *policy;
	struct keys_image *keys;
	struct store_generation gen;
};

/* All that the snapshots show, in one consistent view. May run several times. */
static enum err_code
read_unit(struct db *db, void *arg, struct err *reterr)
{
	struct read_state *s = arg;
	enum err_code rc;
	keys_image_free(&s->keys);
	arena_free(&s->rows_arena);
	s->rows_arena = arena_new(BUILD_ARENA_BYTES);
	s->policy = NULL;
	rc = store_generation_read(db, &s->gen, reterr);
	if (rc == ERR_OK && (s->b->req.what & BUILD_POLICY) != 0)
		rc = policy_read(s->b, s->rows_arena, &s->policy, reterr);
	if (rc == ERR_OK && (s->b->req.what & BUILD_KEYS) != 0)
		rc = keys_read(s->b, &s->keys, reterr);
	return rc;
}

static enum err_code
make_segments(struct build *b, struct read_state *s, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	int fd = -1;
	b->result.db_policy = (uint64_t)s->gen.policy;
	b->result.db_keys = (uint64_t)s->gen.keys;
	if (s->keys != NULL) {
		rc = keys_make(b, &s->keys, &fd, reterr);
		if (rc == ERR_OK)
			add_fd(b, BUILD_FD_KEYS, fd);
	}
	if (rc != ERR_OK || s->policy == NULL)
		return rc;
	rc = policy_make(b, s->policy, &fd, reterr);
	if (rc != ERR_OK)
		return rc;
	add_fd(b, BUILD_FD_POLICY, fd);
	rc = audience_workers(b, &fd, reterr);
	if (rc != ERR_OK)
		return rc;
	add_fd(b, BUILD_FD_WORKER_SECRETS, fd);
	rc = audience_sweeper(b, &fd, reterr);
	if (rc == ERR_OK)
		add_fd(b, BUILD_FD_SWEEPER_SECRETS, fd);
	return rc;
}

static enum err_code
run(struct build *b, struct err *reterr)
{
	enum err_code rc = wanted_use_all(b, reterr);
	if (rc != ERR_OK || (b->req.what & (BUILD_POLICY | BUILD_KEYS)) == 0)
		return rc;
	rc = open_database(b, reterr);
	if (rc == ERR_OK && b->req.reload)
		rc = reconcile_declared(b, reterr);
	if (rc != ERR_OK)
		return rc;
	struct read_state s = {.b = b};
	rc = db_unit(b->db, DB_READ, read_unit, &s, reterr);
	if (rc == ERR_OK)
		rc = make_segments(b, &s, reterr);
	keys_image_free(&s.keys);
	arena_free(&s.rows_arena);
	return rc;
}

bool
build_run(struct build *b)
{
	struct err e = {0};
	CHECK(b->conf != NULL);
	enum err_code rc = run(b, &e);
	keep_warnings(b);
	/* What is wrong with the configuration was found with the files or the database at hand. */
	if (b->report.error_count > 0)
		return fail(b, b->report.errors.ptr, true);
	if (rc != ERR_OK)
		return fail(b, e.msg, false);
	b->result.ok = true;
	return true;
}
