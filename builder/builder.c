#include "builder/builder.h"

#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "builder/build.h"
#include "ipc/role.h"

#define ENVIRON_BYTES_MAX (4u * 1024u * 1024u)
#define FLUSH_MS          5000

enum { EXIT_BUILT = 0, EXIT_FAILED = 1, EXIT_BAD_CONF = 2 };

struct builder {
	struct role_env env;
	struct build build;
	char *conf_text, *environ;
	size_t conf_len, environ_len;
	uint32_t files_missing;
	bool is_asked;
	int status;
};

static void
stop(struct builder *bu, int status)
{
	bu->status = status;
	(void)event_base_loopbreak(bu->env.base);
}

/* The answer, then the end. */
static void
answer(struct builder *bu)
{
	const struct build_result *r = &bu->build.result;
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	struct err e = {0};
	build_result_encode(r, &b);
	CHECK(!b.overflowed);
	chan_send(bu->env.ctl, MSG_BUILT, 0, buf_str(&b), bu->build.fds, r->nfds);
	buf_done(&b);
	if (chan_flush(bu->env.ctl, FLUSH_MS, &e) != ERR_OK) {
		log_error("the answer did not reach the master", LOG_ERR(&e));
		stop(bu, EXIT_FAILED);
		return;
	}
	stop(bu, r->ok ? EXIT_BUILT : r->bad_conf ? EXIT_BAD_CONF : EXIT_FAILED);
}

static void
finish(struct builder *bu)
{
	/* Its text goes to the master, which logs it. */
	(void)build_run(&bu->build);
	answer(bu);
}

static void
ask_for_files(struct builder *bu)
{
	struct build *b = &bu->build;
	bu->files_missing = b->wanted_count;
	if (b->wanted_count == 0) {
		finish(bu);
		return;
	}
	for (uint32_t i = 0; i < b->wanted_count; i++) {
		struct buf out = BUF_INIT(LIMIT_MSG_BYTES);
		build_file_encode(&b->wanted[i].file, &out);
		chan_send(bu->env.ctl, MSG_FILE_WANTED, i + 1, buf_str(&out), NULL, 0);
		buf_done(&out);
	}
}

static void
on_build(struct builder *bu, struct msg *m)
{
	struct build_request req;
	struct err e = {0};
	struct arena *a = arena_new(65536);
	enum err_code rc = build_request_decode(a, m->payload, &req, &e);
	if (rc == ERR_OK && bu->is_asked)
		rc = err_set(&e, ERR_PROTO, "a second question");
	if (rc != ERR_OK) {
		log_error("the master's question is not usable", LOG_ERR(&e));
		arena_free(&a);
		stop(bu, EXIT_FAILED);
		return;
	}
	bu->is_asked = true;
	build_init(&bu->build, &req);
	arena_free(&a);
	if (build_parse(&bu->build, str_n(bu->conf_text, bu->conf_len),
		str_n(bu->environ, bu->environ_len)))
		ask_for_files(bu);
	else
		answer(bu);
}

static void
on_file(struct builder *bu, struct msg *m)
{
	struct build *b = &bu->build;
	struct build_file_answer f;
	struct err e = {0};
	enum err_code rc = build_file_answer_decode(m->payload, &f, &e);
	uint32_t i = m->id - 1;
	if (rc == ERR_OK && (!bu->is_asked || i >= b->wanted_count || b->wanted[i].is_given ||
				(f.sys_errno == 0) != (m->nfds == 1)))
		rc = err_set(&e, ERR_PROTO, "a file that was not asked for");
	if (rc != ERR_OK) {
		log_error("the master's file is not usable", LOG_ERR(&e));
		stop(bu, EXIT_FAILED);
		return;
	}
	build_give_file(b, i, f.sys_errno == 0 ? msg_take_fd(m, 0) : -1, (int)f.sys_errno);
	if (--bu->files_missing == 0)
		finish(bu);
}

static void
on_msg(struct chan *c, struct msg *m, void *arg)
{
	struct builder *bu = arg;
	(void)c;
	if (m == NULL || m->type == MSG_DRAIN)
		stop(bu, EXIT_FAILED);
	else if (m->type == MSG_BUILD)
		on_build(bu, m);
	else if (m->type == MSG_FILE)
		on_file(bu, m);
}

static enum err_code
read_inputs(struct builder *bu, struct err *reterr)
{
	int conf = FD_CONF, environment = FD_ENVIRON;
	enum err_code rc =
	    fd_read_all(conf, LIMIT_CONF_BYTES + 1, &bu->conf_text, &bu->conf_len, reterr);
	if (rc == ERR_OK)
		rc = fd_read_all(
		    environment, ENVIRON_BYTES_MAX, &bu->environ, &bu->environ_len, reterr);
	fd_close(&conf);
	fd_close(&environment);
	return rc;
}

static void
forget(char **text, size_t len)
{
	mem_wipe(*text, *text != NULL ? len : 0);
	mem_free(*text);
	*text = NULL;
}

int
builder_main(int argc, char **argv)
{
	struct builder bu = {.status = EXIT_FAILED};
	struct err e = {0};
	enum err_code rc = role_start(argc, argv, on_msg, &bu, &bu.env, &e);
	if (rc != ERR_OK) {
		log_error("start failed", LOG_ERR(&e));
		return EXIT_FAILED;
	}
	rc = read_inputs(&bu, &e);
	if (rc == ERR_OK) {
		role_ready(&bu.env);
		(void)event_base_dispatch(bu.env.base);
	} else {
		log_error("the configuration cannot be read", LOG_ERR(&e));
	}
	if (bu.is_asked)
		build_done(&bu.build);
	forget(&bu.conf_text, bu.conf_len);
	forget(&bu.environ, bu.environ_len);
	role_done(&bu.env);
	return bu.status;
}
