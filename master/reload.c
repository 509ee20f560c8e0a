#include "master/reload.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/master_key.h"
#include "ipc/board.h"
#include "ipc/chan.h"
#include "master/dispatch.h"
#include "master/master.h"
#include "master/notify.h"
#include "master/snapshots.h"
#include "master/spawn.h"

/* A database that does not answer holds a build up; the first one may have to migrate. */
#define BUILD_MS       30000
#define BUILD_FIRST_MS 120000
#define ARENA_BYTES    (1024u * 1024u)

struct reload {
	struct master *m;
	bool is_running;
	uint32_t what;
	uint64_t generation;
	struct child *builder; /* NULL: its answer has come */
	int wait_status;       /* of builder, once it is GONE */
	int conf_fd;           /* copy of the text that this build reads */
	int64_t started_ms;
	struct event *failed; /* a start that went wrong, told from the loop */
	struct err error;
	uint64_t seen_policy, seen_keys; /* counters that came while a build ran */
};

static void fail(struct reload *r, const char *text, int exit_code);

static void
on_failed(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct reload *r = arg;
	fail(r, r->error.msg, 1);
}

struct reload *
reload_new(struct master *m)
{
	struct reload *r = MEM_NEW(struct reload);
	r->m = m;
	r->conf_fd = -1;
	r->failed = evtimer_new(m->base, on_failed, r);
	CHECK(r->failed != NULL);
	return r;
}

void
reload_free(struct reload **rp)
{
	if (*rp == NULL)
		return;
	event_free((*rp)->failed);
	fd_close(&(*rp)->conf_fd);
	mem_free(*rp);
	*rp = NULL;
}

bool
reload_is_running(const struct master *m)
{
	return m->reload->is_running;
}

/* The text is copied, so that an edit takes effect at a reload and at no other build. */
static enum err_code
copy_conf(const char *path, int *ret_fd, struct err *reterr)
{
	char *text;
	size_t len;
	enum err_code rc = fd_read_file(path, LIMIT_CONF_BYTES, &text, &len, reterr);
	if (rc != ERR_OK)
		return rc;
	int fd = fd_memfd("otari.conf");
	if (fd < 0)
		rc = err_set(reterr, ERR_IO, "memfd of the configuration");
	if (rc == ERR_OK)
		rc = fd_write_all(fd, str_n(text, len), reterr);
	if (rc == ERR_OK && !fd_seal(fd))
		rc = err_set(reterr, ERR_IO, "seal the configuration");
	mem_wipe(text, len);
	mem_free(text);
	if (rc == ERR_OK)
		*ret_fd = fd;
	else
		fd_close(&fd);
	return rc;
}

static void
ask_builder(struct reload *r)
{
	struct master *m = r->m;
	struct build_request q = {
	    .what = BUILD_CONF,
	    .generation = r->generation,
	    .conf_path = str_c(m->opt.conf_path),
	    .cwd = str_c(m->cwd),
	    .as_root = m->is_root,
	    .first = m->phase == MASTER_BUILD,
	    .reload = m->phase == MASTER_BUILD || (r->what & PUBLISH_DO_RELOAD) != 0,
	};
	if ((r->what & (PUBLISH_DO_POLICY | PUBLISH_DO_RELOAD)) != 0)
		q.what |= BUILD_POLICY;
	if ((r->what & (PUBLISH_DO_KEYS | PUBLISH_DO_RELOAD)) != 0)
		q.what |= BUILD_KEYS;
	if (m->storage_identity[0] != '\0')
		q.identity = str_c(m->storage_identity);
	snapshots_describe(m, &q);
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	build_request_encode(&q, &b);
	chan_send(r->builder->chan, MSG_BUILD, 0, buf_str(&b), NULL, 0);
	buf_done(&b);
}

static enum err_code
start(struct reload *r, struct err *reterr)
{
	struct master *m = r->m;
	enum err_code rc = ERR_OK;
	fd_close(&r->conf_fd);
	if (m->conf_fd < 0 || (r->what & PUBLISH_DO_RELOAD) != 0)
		rc = copy_conf(m->opt.conf_path, &r->conf_fd, reterr);
	else if ((r->conf_fd = fd_dup(m->conf_fd)) < 0)
		rc = err_set(reterr, ERR_IO, "configuration");
	if (rc != ERR_OK)
		return rc;
	/* Copies share their position; each builder reads from the start. */
	(void)lseek(r->conf_fd, 0, SEEK_SET);
	(void)lseek(m->environ_fd, 0, SEEK_SET);
	struct spawn_fd fds[] = {{r->conf_fd, FD_CONF}, {m->environ_fd, FD_ENVIRON}};
	int ctl;
	struct child *c;
	rc = spawn_role(m, ROLE_BUILDER, 0, fds, ARRAY_LEN(fds), &c, &ctl, reterr);
	if (rc != ERR_OK)
		return rc;
	c->deadline_ms = clock_mono_ms() + (m->phase < MASTER_START ? BUILD_FIRST_MS : BUILD_MS);
	rc = dispatch_attach(c, ctl, reterr);
	if (rc != ERR_OK) {
		child_kill(c, NULL);
		return rc;
	}
	r->builder = c;
	ask_builder(r);
	return ERR_OK;
}

void
reload_start(struct master *m, uint32_t what, uint64_t generation)
{
	struct reload *r = m->reload;
	CHECK(!r->is_running);
	r->is_running = true;
	r->what = what;
	r->generation = generation;
	r->started_ms = clock_mono_ms();
	if (start(r, &r->error) == ERR_OK)
		return;
	struct timeval now = {0, 0};
	(void)event_add(r->failed, &now);
}

/* The build is over, for good or ill. */
static void
finish(struct reload *r, bool ok, const char *error)
{
	struct master *m = r->m;
	if ((r->what & PUBLISH_DO_RELOAD) != 0) {
		(void)snprintf(
		    m->last_error, sizeof(m->last_error), "%s", ok || error == NULL ? "" : error);
		m->last_reload_s = clock_wall_s();
		if (m->phase == MASTER_RUN)
			notify_manager("READY=1");
	}
	r->is_running = false;
	publish_built(&m->publish, ok, error, clock_mono_ms());
	uint32_t missing = snapshots_missing(m, r->seen_policy, r->seen_keys);
	r->seen_policy = r->seen_keys = 0;
	if (missing != 0 && !master_is_stopping(m))
		publish_note(&m->publish, missing);
	master_step(m);
}

static void
log_lines(enum log_level level, const char *msg, struct str text)
{
	struct str line;
	while (str_split(&text, '\n', &line))
		if (line.len > 0)
			log_write(
			    level, msg, (const struct log_field[]){LOG_STR("error", line)}, 1);
}

static void
fail(struct reload *r, const char *text, int exit_code)
{
	struct master *m = r->m;
	bool is_reload = (r->what & PUBLISH_DO_RELOAD) != 0;
	fd_close(&r->conf_fd);
	if (m->phase == MASTER_END) {
		r->is_running = false;
		return;
	}
	if (m->phase < MASTER_START) {
		r->is_running = false;
		master_fail(m, exit_code, text);
		return;
	}
	/* Whoever stops us may have stopped the builder too; workers that drain still wait for it.
	 */
	if (!master_is_stopping(m))
		log_lines(LOG_ERROR,
		    is_reload ? "reload failed, the old configuration stays in force"
			      : "build failed, the old state stays in force",
		    str_c(text));
	finish(r, false, text);
}

static enum err_code
send_file(struct child *c, uint32_t id, int fd, int sys_errno)
{
	struct buf b = BUF_INIT(64);
	struct build_file_answer a = {fd >= 0 ? 0u : (uint32_t)sys_errno};
	build_file_answer_encode(&a, &b);
	chan_send(c->chan, MSG_FILE, id, buf_str(&b), &fd, fd >= 0 ? 1 : 0);
	buf_done(&b);
	return ERR_OK;
}

/* Opened with the master's rights: the files belong to root as a rule. Never blocks on a FIFO. */
static int
open_wanted(const char *path, int *ret_errno)
{
	struct stat st;
	int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	*ret_errno = errno;
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		*ret_errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		fd_close(&fd);
	}
	return fd;
}

enum err_code
reload_on_file_wanted(struct child *c, struct msg *msg, struct err *reterr)
{
	struct build_file f;
	struct arena *a = arena_new(ARENA_BYTES);
	enum err_code rc = build_file_decode(a, msg->payload, &f, reterr);
	if (rc == ERR_OK) {
		const char *path = arena_cstr(a, f.path);
		int fd = -1, sys_errno = 0;
		bool created = false;
		struct err e = {0};
		if (f.kind == BUILD_FILE_READ)
			fd = open_wanted(path, &sys_errno);
		else if (master_key_open(path, &fd, &created, &e) != ERR_OK) {
			log_error("master key file", LOG_ERR(&e));
			fd = -1;
			sys_errno = e.sys_errno != 0 ? e.sys_errno : EINVAL;
		}
		if (created)
			log_notice("a master key was made", LOG_C("path", path));
		rc = send_file(c, msg->id, fd, sys_errno);
		fd_close(&fd);
	}
	arena_free(&a);
	return rc;
}

static void
built_ok(struct reload *r, struct build_result *res, struct arena **a, struct msg *msg)
{
	struct master *m = r->m;
	struct err e = {0};
	if (r->what == 0) {
		r->is_running = false;
		int fd = r->conf_fd;
		r->conf_fd = -1;
		master_conf_known(m, res, a, fd);
		return;
	}
	if (res->generation != r->generation)
		(void)err_set(&e, ERR_PROTO, "the builder answered another question");
	else
		(void)(snapshots_install(m, res, msg, &e) == ERR_OK);
	if (e.code != ERR_OK) {
		fail(r, e.msg, 1);
		return;
	}
	board_database_seen(m->board, (uint64_t)clock_mono_ms());
	if (m->storage_identity[0] == '\0')
		(void)str_copy(m->storage_identity, sizeof(m->storage_identity), res->identity);
	bool is_reload = (r->what & PUBLISH_DO_RELOAD) != 0;
	log_write(is_reload ? LOG_NOTICE : LOG_INFO, is_reload ? "reload built" : "change built",
	    (const struct log_field[]){LOG_INT("generation", r->generation),
		LOG_INT("keys", res->keys_count), LOG_INT("is_delta", res->keys_is_delta),
		LOG_INT("ms", clock_mono_ms() - r->started_ms)},
	    4);
	int fd = r->conf_fd;
	r->conf_fd = -1;
	if (is_reload)
		master_conf_known(m, res, a, fd);
	else
		fd_close(&fd);
	finish(r, true, NULL);
}

enum err_code
reload_on_built(struct child *c, struct msg *msg, struct err *reterr)
{
	struct reload *r = c->m->reload;
	if (r->builder != c)
		return err_set(reterr, ERR_PROTO, "a second answer");
	struct build_result res;
	struct arena *a = arena_new(ARENA_BYTES);
	enum err_code rc = build_result_decode(a, msg->payload, &res, reterr);
	if (rc == ERR_OK) {
		r->builder = NULL;
		c->deadline_ms = clock_mono_ms() + CHILD_GRACE_MS;
		if (r->what == 0 || (r->what & PUBLISH_DO_RELOAD) != 0)
			log_lines(LOG_WARN, "configuration", res.warnings);
		if (res.ok)
			built_ok(r, &res, &a, msg);
		else
			fail(r, arena_cstr(a, res.failure), res.bad_conf ? 2 : 1);
	}
	arena_free(&a);
	return rc;
}

/* It will say nothing more: an answer that has not come yet never will. */
static void
builder_lost(struct reload *r, struct child *c)
{
	char text[96];
	int st = r->wait_status;
	if (WIFSIGNALED(st))
		(void)snprintf(
		    text, sizeof(text), "the builder was killed by signal %d", WTERMSIG(st));
	else
		(void)snprintf(
		    text, sizeof(text), "the builder ended with code %d", WEXITSTATUS(st));
	r->builder = NULL;
	child_forget(&c);
	fail(r, text, 1);
}

void
reload_on_closed(struct child *c)
{
	struct reload *r = c->m->reload;
	struct master *m = c->m;
	if (c->state != CHILD_GONE) {
		child_channel_closed(c);
	} else if (r->builder == c) {
		builder_lost(r, c);
	} else { /* its answer was read after it was reaped */
		child_forget(&c);
		master_step(m);
	}
}

bool
reload_on_ended(struct child *c, int wait_status)
{
	struct reload *r = c->m->reload;
	if (r->builder != c)
		return false;
	bool is_heard = c->state != CHILD_KILLED;
	r->wait_status = wait_status;
	child_set_state(c, CHILD_GONE, 0);
	if (is_heard && c->chan != NULL)
		return true; /* its answer may still be unread */
	builder_lost(r, c);
	return true;
}

void
reload_on_counters(struct master *m, uint64_t db_policy, uint64_t db_keys)
{
	struct reload *r = m->reload;
	if (r->is_running) {
		r->seen_policy = db_policy;
		r->seen_keys = db_keys;
		return;
	}
	uint32_t missing = snapshots_missing(m, db_policy, db_keys);
	if (missing != 0 && !master_is_stopping(m))
		publish_note(&m->publish, missing);
}
