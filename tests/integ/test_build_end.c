/* The end of a builder and its answer reach the master by two ways, a signal and a channel;
 * whichever is seen first, nothing of it stays in the table of children, or the master could never
 * end. Here the master's own functions run in the test, so that the test says which is first. */
#include <sys/wait.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "ipc/board.h"
#include "master/master.h"
#include "master/reap.h"
#include "master/reload.h"
#include "master/snapshots.h"
#include "tests/integ/program.h"

TestSuite(build_end, .timeout = 60);

struct rig {
	struct master m;
	char conf_path[64];
	unsigned builds, answers;
};

static void
on_build(void *arg, uint32_t what, uint64_t generation)
{
	struct rig *r = arg;
	r->builds++;
	reload_start(&r->m, what, generation);
}

static void
on_answer(void *arg, uint64_t who, uint32_t id, const char *error)
{
	struct rig *r = arg;
	(void)who, (void)id;
	cr_expect_not_null(error, "nothing was built");
	r->answers++;
}

static const struct publish_ops ops = {.build = on_build, .answer = on_answer};

static void
open_rig(struct rig *r, enum master_phase phase)
{
	char program[1200];
	struct master *m = &r->m;
	*r = (struct rig){.m = {.phase = phase, .ready_fd = -1, .conf_fd = -1}};
	(void)snprintf(r->conf_path, sizeof(r->conf_path), "/tmp/otari-build-end.XXXXXX");
	int fd = mkstemp(r->conf_path);
	/* Refused by the builder at once, without a file or a database. */
	cr_assert(fd >= 0 && fd_write_all(fd, STR("no_such_key: 1\n"), NULL) == ERR_OK);
	fd_close(&fd);
	program_path("otari", program);
	m->opt.conf_path = r->conf_path;
	m->exe_fd = fd_open(program, O_RDONLY, 0);
	m->null_fd = fd_open("/dev/null", O_RDWR, 0);
	m->log_fd = m->null_fd;
	m->environ_fd = fd_memfd("environment");
	m->base = event_base_new();
	cr_assert(m->exe_fd >= 0 && m->null_fd >= 0 && m->environ_fd >= 0 && m->base != NULL);
	cr_assert_eq(board_create(&m->board_fd, &m->board, NULL), ERR_OK);
	TAILQ_INIT(&m->children);
	publish_init(&m->publish, &ops, r);
	m->snapshots = snapshots_new();
	m->reload = reload_new(m);
	log_setup(m->null_fd, false, LOG_ERROR, "test");
}

static void
close_rig(struct rig *r)
{
	struct master *m = &r->m;
	reload_free(&m->reload);
	snapshots_free(&m->snapshots);
	publish_done(&m->publish);
	board_unmap(&m->board);
	event_base_free(m->base);
	(void)unlink(r->conf_path);
	int fds[] = {m->exe_fd, m->null_fd, m->environ_fd, m->board_fd};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(&fds[i]);
}

/* The process has ended; neither its answer nor its end was looked at. */
static void
wait_for_end(struct rig *r)
{
	const struct child *c = TAILQ_FIRST(&r->m.children);
	siginfo_t si;
	cr_assert_not_null(c);
	cr_assert_eq(waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOWAIT), 0);
}

static void
read_channel(struct rig *r)
{
	for (int i = 0; i < 20; i++)
		(void)event_base_loop(r->m.base, EVLOOP_NONBLOCK);
}

static size_t
taken_slots(const struct rig *r)
{
	size_t n = 0;
	for (size_t i = 0; i < BOARD_SLOTS; i++)
		n += r->m.board->slot[i].state != BOARD_FREE;
	return n;
}

static void
expect_nothing_left(const struct rig *r, const char *when)
{
	cr_expect(
	    TAILQ_EMPTY(&r->m.children), "%s: a builder that has ended is still listed", when);
	cr_expect_eq(taken_slots(r), 0, "%s: %zu slots of the board", when, taken_slots(r));
	cr_expect(!reload_is_running(&r->m), "%s: the build goes on", when);
}

Test(build_end, is_seen_before_or_after_its_answer)
{
	for (int end_first = 0; end_first < 2; end_first++) {
		struct rig r;
		open_rig(&r, MASTER_RUN);
		publish_note(&r.m.publish, PUBLISH_DO_RELOAD);
		wait_for_end(&r);
		if (end_first)
			reap_all(&r.m);
		read_channel(&r);
		if (!end_first)
			reap_all(&r.m);
		expect_nothing_left(&r, end_first ? "end first" : "answer first");
		cr_expect(strstr(r.m.last_error, "no_such_key") != NULL, "its answer: %s",
		    r.m.last_error);
		close_rig(&r);
	}
}

Test(build_end, is_heard_while_workers_drain)
{
	struct rig r;
	struct child worker = {.m = &r.m, .key = 7, .role = ROLE_WORKER, .state = CHILD_DRAINING};
	open_rig(&r, MASTER_DRAIN);
	publish_ask(&r.m.publish, worker.key, 1, PUBLISH_DO_RELOAD, INT64_MAX);
	wait_for_end(&r);
	TAILQ_INSERT_TAIL(&r.m.children, &worker, link);
	read_channel(&r);
	reap_all(&r.m);
	TAILQ_REMOVE(&r.m.children, &worker, link);
	expect_nothing_left(&r, "drain");
	cr_expect_eq(r.answers, 1, "who waits is told that the build failed");
	close_rig(&r);
}

Test(build_end, starts_no_other_build_at_the_very_end)
{
	struct rig r;
	open_rig(&r, MASTER_RUN);
	publish_note(&r.m.publish, PUBLISH_DO_RELOAD);
	publish_note(&r.m.publish, PUBLISH_DO_RELOAD); /* waits for the first */
	wait_for_end(&r);
	master_stop_now(&r.m);
	reap_all(&r.m);
	read_channel(&r);
	expect_nothing_left(&r, "stopped");
	cr_expect_eq(r.builds, 1, "its answer, unread until now, started another");
	close_rig(&r);
}

Test(build_end, one_that_nothing_ends_is_left_behind)
{
	struct rig r;
	open_rig(&r, MASTER_RUN);
	publish_note(&r.m.publish, PUBLISH_DO_RELOAD);
	struct child *c = TAILQ_FIRST(&r.m.children);
	cr_assert_not_null(c);
	master_stop_now(&r.m);
	cr_expect_eq(child_awaited(&r.m, ROLE_MASTER), 1);
	cr_expect_not(r.m.has_stopped_hard);
	c->deadline_ms = clock_mono_ms() - 1; /* as if it hung in the kernel for so long */
	cr_expect_eq(child_awaited(&r.m, ROLE_MASTER), 0);
	master_step(&r.m);
	cr_expect(r.m.has_stopped_hard, "the master waits for ever");
	wait_for_end(&r);
	reap_all(&r.m);
	expect_nothing_left(&r, "in the end");
	close_rig(&r);
}

Test(build_end, one_that_hangs_at_its_end_gets_no_more_time_by_a_drain)
{
	struct rig r;
	struct child c = {.m = &r.m, .key = 7, .role = ROLE_WORKER, .state = CHILD_READY};
	open_rig(&r, MASTER_RUN);
	int64_t now = clock_mono_ms();
	child_channel_closed(&c);
	child_drain(&c, now + 60000);
	cr_expect_leq(c.deadline_ms, now + CHILD_END_MS);
	c.deadline_ms = now + 60000;
	child_channel_closed(&c);
	cr_expect_leq(c.deadline_ms, clock_mono_ms() + CHILD_END_MS, "drained, and does not end");
	close_rig(&r);
}
