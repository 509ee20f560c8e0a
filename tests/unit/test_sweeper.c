/* The sweeper's role from the master's side of its channel. */
#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/board.h"
#include "ipc/chan.h"
#include "ipc/fds.h"
#include "ipc/payload.h"
#include "ipc/secrets.h"
#include "ipc/snapshot_build.h"
#include "storage/spool.h"
#include "storage/sql/store_usage.h"
#include "sweeper/sweeper.h"
#include "tests/unit/dbfix.h"

struct master {
	struct event_base *base;
	struct chan *ctl;
	struct board *board;
	struct event *tick;
	pid_t child;
	unsigned heard[MSG_TYPE_MAX];
	uint64_t acked, policy_counter;
	bool is_gone;
};

static void
on_msg(struct chan *c, struct msg *m, void *arg)
{
	struct master *master = arg;
	struct ack ack;
	struct publish_ask ask;
	(void)c;
	if (m == NULL) {
		master->is_gone = true;
		return;
	}
	master->heard[m->type]++;
	if (m->type == MSG_ACK && ack_decode(m->payload, &ack, NULL) == ERR_OK)
		master->acked = ack.generation;
	if (m->type == MSG_PUBLISH && publish_ask_decode(m->payload, &ask, NULL) == ERR_OK)
		master->policy_counter = ask.db_policy;
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

/* Turns the loop until *what is at least n. */
static void
wait_for(struct master *m, const unsigned *what, unsigned n, const char *name)
{
	int64_t deadline_ms = clock_mono_ms() + 10000;
	while (*what < n && !m->is_gone && clock_mono_ms() < deadline_ms)
		(void)event_base_loop(m->base, EVLOOP_ONCE);
	cr_assert_geq(*what, n, "%s", name);
}

static void
start(struct master *m)
{
	static char args[] = "otari\0--role\0sweeper\0--number\0000\0--slot\0002\0--log\0text";
	int sv[2], board_fd, log_fd = fd_open("/dev/null", 1, 0);
	*m = (struct master){.child = -1};
	cr_assert(fd_socketpair_seqpacket(sv, false));
	cr_assert_eq(board_create(&board_fd, &m->board, NULL), ERR_OK);
	m->child = fork();
	if (m->child == 0) {
		/* First out of the way of the fixed numbers. */
		int from[3] = {sv[1], board_fd, log_fd}, to[3] = {FD_CTL, FD_BOARD, FD_LOG};
		for (int i = 0; i < 3; i++)
			(void)fd_dup_to(from[i], 40 + i, true);
		for (int i = 0; i < 3; i++)
			(void)fd_dup_to(40 + i, to[i], true);
		char *argv[10], *p = args;
		int argc = 0;
		for (; p < args + sizeof(args); p += strlen(p) + 1)
			argv[argc++] = p;
		argv[argc] = NULL;
		_exit(sweeper_main(argc, argv));
	}
	fd_close(&sv[1]);
	fd_close(&board_fd);
	fd_close(&log_fd);
	m->base = event_base_new();
	(void)fd_set_nonblock(sv[0], true);
	cr_assert_eq(chan_new(m->base, sv[0], on_msg, m, &m->ctl, NULL), ERR_OK);
	chan_set_peer(m->ctl, 1u << ROLE_SWEEPER);
	m->tick = event_new(m->base, -1, EV_PERSIST, on_tick, NULL);
	(void)event_add(m->tick, &(struct timeval){0, 50000});
	wait_for(m, &m->heard[MSG_HELLO], 1, "hello");
	wait_for(m, &m->heard[MSG_READY], 1, "ready");
}

static void
send_settings(struct master *m, const struct dbfix *f, uint64_t generation)
{
	struct snap_build *b = snap_build_new(SNAP_POLICY, generation);
	struct snap_policy root = {0};
	root.settings.state_dir = snap_build_str(b, str_c(f->dir));
	root.settings.files_backend = snap_build_str(b, STR("local"));
	root.settings.files_local_dir = snap_build_str(b, str_c(f->dir));
	root.settings.files_enabled = 1;
	root.settings.files_sweep_interval_s = 3600;
	int policy = -1, secrets = -1;
	struct err err = {0};
	cr_assert_eq(snap_build_end_policy(&b, &root, &policy, &err), ERR_OK, "%s", err.msg);
	struct secrets_builder *sb = secrets_builder_new();
	secrets_builder_add(sb, STR("database_url"), str_c(f->url));
	cr_assert_eq(secrets_builder_end(&sb, &secrets, &err), ERR_OK, "%s", err.msg);
	struct buf note = BUF_INIT(64);
	snapshot_note_encode(&note, &(struct snapshot_note){generation, false, true});
	chan_send(m->ctl, MSG_SECRETS, 0, STR_NULL, &secrets, 1);
	chan_send(m->ctl, MSG_POLICY, 0, buf_str(&note), &policy, 1);
	buf_done(&note);
	fd_close(&policy);
	fd_close(&secrets);
}

static void
forget(struct master *m)
{
	chan_free(&m->ctl);
	event_free(m->tick);
	event_base_free(m->base);
	board_unmap(&m->board);
}

static int
end_of(struct master *m)
{
	int status = -1;
	int64_t deadline_ms = clock_mono_ms() + 10000;
	while (!m->is_gone && clock_mono_ms() < deadline_ms)
		(void)event_base_loop(m->base, EVLOOP_ONCE);
	cr_assert(m->is_gone);
	cr_assert_eq(waitpid(m->child, &status, 0), m->child);
	return status;
}

Test(sweeper, serves_its_master_until_it_is_drained, .timeout = 60)
{
	struct dbfix f;
	struct master m;
	dbfix_open(&f, DB_SQLITE);
	start(&m);
	cr_assert_eq(m.board->slot[2].state, BOARD_READY);
	/* Not a snapshot at all: it stays with what it has. */
	int junk = fd_memfd("junk");
	struct buf note = BUF_INIT(64);
	snapshot_note_encode(&note, &(struct snapshot_note){1, false, true});
	chan_send(m.ctl, MSG_POLICY, 0, buf_str(&note), &junk, 1);
	chan_send(m.ctl, MSG_SECRETS, 0, STR_NULL, &junk, 1);
	send_settings(&m, &f, 7);
	wait_for(&m, &m.heard[MSG_ACK], 1, "ack");
	cr_assert_eq(m.acked, 7);
	wait_for(&m, &m.heard[MSG_PUBLISH], 1, "the database's counters");
	cr_assert_eq(m.policy_counter, 1);
	send_settings(&m, &f, 8);
	wait_for(&m, &m.heard[MSG_ACK], 2, "ack of the reload");
	cr_assert_eq(m.acked, 8);

	char dir[SPOOL_DIR_SIZE];
	struct spool *spool = NULL;
	struct usage u = {.request_id = STR("r1"), .user_id = STR("u")};
	cr_assert_eq(spool_dir(str_c(f.dir), dir, NULL), ERR_OK);
	cr_assert_eq(spool_open(dir, "1", &spool, NULL), ERR_OK);
	cr_assert_eq(spool_append(spool, &u, NULL), ERR_OK);
	spool_close(&spool);
	chan_send(m.ctl, MSG_DRAIN, 0, STR_NULL, NULL, 0);
	cr_assert_eq(end_of(&m), 0);
	struct store_usage_total t = {0};
	cr_assert_eq(store_usage_total(f.db, STR("u"), 0, 1, &t, NULL), ERR_OK);
	cr_assert_eq(t.requests, 1, "drained before the end");
	cr_assert_eq(m.heard[MSG_PUBLISH], 1, "the same database, nothing new");
	fd_close(&junk);
	buf_done(&note);
	forget(&m);
	dbfix_close(&f);
}

Test(sweeper, ends_with_its_master, .timeout = 60)
{
	struct master m;
	start(&m);
	int status = 0;
	chan_free(&m.ctl);
	cr_assert_eq(waitpid(m.child, &status, 0), m.child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	forget(&m);
	start(&m);
	cr_assert_eq(kill(m.child, SIGTERM), 0, "an operator's kill drains it");
	cr_assert_eq(end_of(&m), 0);
	forget(&m);
}
