/* build.h - one build, without process or channel: texts, files and a database in, segments out
 *
 * Process: builder, and tests. Not thread-safe. Blocks in SQL.
 * Use:     build_init → build_parse → one build_give_file for each wanted file → build_run →
 * result and fds → build_done. A failure in any step is in result.failure; then nothing was made.
 */
#ifndef OTARI_BUILDER_BUILD_H
#define OTARI_BUILDER_BUILD_H

#include "base/arena.h"
#include "conf/conf.h"
#include "ipc/build.h"
#include "storage/sql/db.h"
#include "storage/sql/store_generation.h"

#define BUILD_ARENA_BYTES (256u * 1024u * 1024u)
#define BUILD_SECRET_MAX  65536u /* bytes of a key or certificate file */

enum wanted_use {
	WANT_PROVIDER_KEY,
	WANT_MASTER_KEY,
	WANT_TLS_CERT,
	WANT_TLS_KEY,
	WANT_SANDBOX_TOKEN,
	WANT_SERVE_TOKEN
};

struct build_wanted {
	enum wanted_use use;
	uint32_t provider; /* place in conf.providers */
	struct build_file file;
	struct str text; /* what it holds; STR_NULL: not given yet */
	bool is_given;
};

struct build {
	struct build_request req;
	struct arena *arena;
	struct conf *conf; /* NULL: bad */
	struct conf_report report;
	struct build_wanted *wanted;
	uint32_t wanted_count;
	struct str *provider_keys; /* by place in conf.providers; STR_NULL: none */
	struct str master_key, tls_cert, tls_key;
	struct str sandbox_token, sandbox_serve_token;
	struct db *db;
	struct build_result result;
	int fds[BUILD_FDS_MAX]; /* in the order of result.fds; owned */
};

/* Texts of req are copied. */
void build_init(struct build *b, const struct build_request *req);
void build_done(struct build *b); /* closes the fds that nobody took */
/* Fills result.conf and the wanted files (none for BUILD_CONF alone). false: result.failure. */
bool build_parse(struct build *b, struct str conf_text, struct str environ);
/* Takes fd; -1 with the errno that the master got. */
void build_give_file(struct build *b, uint32_t i, int fd, int sys_errno);
/* Everything after the files. false: result.failure. */
bool build_run(struct build *b);

/* --- the parts, for build.c and tests -------------------------------------------------------- */

/* wanted.c: which files are needed, what they give. */
void wanted_list(struct build *b);
MUST_CHECK enum err_code wanted_use_all(struct build *b, struct err *reterr);
/* reconcile.c: brings declared workspaces, users and keys into the database. */
MUST_CHECK enum err_code reconcile_declared(struct build *b, struct err *reterr);
/* policy.c, keys.c: inside one DB_READ unit of the caller; a unit may run again. */
struct policy_rows;
struct snap_build;
MUST_CHECK enum err_code policy_read(
    struct build *b, struct arena *a, struct policy_rows **ret, struct err *reterr);
MUST_CHECK enum err_code policy_make(
    struct build *b, const struct policy_rows *rows, int *ret_fd, struct err *reterr);
/* declared.c: what the API may not change, and where it is written. */
struct snap_table declared_of(struct build *b, struct snap_build *s);
struct keys_image;
MUST_CHECK enum err_code keys_read(struct build *b, struct keys_image **ret, struct err *reterr);
MUST_CHECK enum err_code keys_make(
    struct build *b, struct keys_image **image, int *ret_fd, struct err *reterr);
void keys_image_free(struct keys_image **image);
/* audience.c: sealed secrets of each audience. */
MUST_CHECK enum err_code audience_workers(struct build *b, int *ret_fd, struct err *reterr);
MUST_CHECK enum err_code audience_sweeper(struct build *b, int *ret_fd, struct err *reterr);

#endif
