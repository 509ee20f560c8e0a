/* The master: watchdog, reloads, workers that are replaced. */
#include <sys/socket.h>
#include <sys/time.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/program.h"

TestSuite(master, .timeout = 120);

Test(master, kills_a_worker_whose_loop_hangs_and_starts_another)
{
	struct server_opts o = {.conf = "heartbeat_timeout_ms: 2000\n"};
	struct server *s = server_start(&o);
	long log_at = server_log_end(s);
	pid_t pids[8];

	server_expect(s, "no heartbeat");
	server_expect(s, "child ended");
	cr_assert_eq(server_pids(s, "otari: worker", pids, 8), 2);
	kill(pids[0], SIGSTOP);
	cr_assert(server_wait_log(s, "no heartbeat", &log_at));
	cr_assert(server_wait_log(s, "\"to\":\"ready\"", &log_at));
	cr_expect_eq(server_pids(s, "otari: worker", pids, 8), 2);
	for (int i = 0; i < 8; i++)
		must_answer(s, "after the watchdog");
	server_stop(&s);
}

static void
count_fds(const pid_t *pids, size_t n, int *ret)
{
	for (size_t i = 0; i < n; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pids[i]);
		ret[i] = count_entries(path);
	}
}

Test(master, two_hundred_hangups_lose_no_request_and_no_descriptor)
{
	struct server *s = server_start(NULL);
	pid_t pids[32], later[32];
	int before[32], after[32];
	bool settled = false;

	must_answer(s, "before");
	/* A builder lives for a moment after its answer. */
	while (server_pids(s, "otari: builder", pids, 32) > 0)
		pause_short();
	size_t n = server_pids(s, "otari:", pids, 32);
	count_fds(pids, n, before);
	for (int i = 0; i < 200; i++) {
		kill(s->pid, SIGHUP);
		if (i % 10 == 0)
			must_answer(s, "between hang-ups");
	}
	for (int i = 0; i < 500 && !settled; i++) {
		(void)server_generation(s, &settled);
		pause_short();
	}
	cr_expect(settled);
	must_answer(s, "after");
	for (int i = 0; i < 200 && server_pids(s, "otari:", later, 32) != n; i++)
		pause_short();
	cr_expect_eq(server_pids(s, "otari:", later, 32), n, "children were left behind");
	count_fds(pids, n, after);
	for (size_t i = 0; i < n; i++)
		cr_expect(after[i] <= before[i] + 2, "pid %d: %d descriptors, were %d",
		    (int)pids[i], after[i], before[i]);
	server_stop(&s);
}

Test(master, workers_come_and_go_at_a_reload)
{
	struct server_opts o = {.workers = 3};
	struct server *s = server_start(&o);
	static const int wanted[] = {1, 4, 2};
	pid_t pids[16];
	char out[4096];

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		s->opts.workers = wanted[i];
		server_write_conf(s, NULL);
		cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
		for (int k = 0;
		     k < 200 && server_pids(s, "otari: worker", pids, 16) != (size_t)wanted[i]; k++)
			pause_short();
		cr_expect_eq(server_pids(s, "otari: worker", pids, 16), (size_t)wanted[i]);
		for (int k = 0; k < 12; k++)
			must_answer(s, "with another number of workers");
	}
	server_stop(&s);
}

static bool
is_among(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* All workers are others than before, and as many. */
static void
wait_replaced(struct server *s, const pid_t *before, size_t replaced, size_t n)
{
	pid_t now[16];
	size_t fresh = 0, count = 0;
	for (int k = 0; k < 300; k++) {
		fresh = 0;
		count = server_pids(s, "otari: worker", now, 16);
		for (size_t i = 0; i < count; i++)
			fresh += !is_among(now[i], before, n);
		if (fresh == replaced && count == n)
			return;
		must_answer(s, "while workers are replaced");
	}
	cr_assert_fail("%zu workers, %zu of them new", count, fresh);
}

Test(master, a_worker_told_to_end_is_followed_before_it_is_gone)
{
	struct server *s = server_start(NULL);
	pid_t before[16];

	cr_assert_eq(server_pids(s, "otari: worker", before, 16), 2);
	/* Held requests keep the old ones alive; the new ones serve beside them. */
	int held[8];
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		held[i] = server_hold_request(s);
	kill(before[0], SIGTERM);
	kill(before[1], SIGTERM);
	for (int i = 0; i < 20; i++)
		must_answer(s, "beside draining workers");
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		close(held[i]);
	wait_replaced(s, before, 2, 2);
	server_stop(&s);
}

Test(master, a_setting_of_processes_recycles_the_workers)
{
	struct server *s = server_start(NULL);
	pid_t before[16];
	char out[4096];

	cr_assert_eq(server_pids(s, "otari: worker", before, 16), 2);
	server_write_conf(s, "sql_threads: 3\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	wait_replaced(s, before, 2, 2);
	cr_assert_eq(server_pids(s, "otari: worker", before, 16), 2);
	server_write_conf(s, "sql_threads: 3\nstrict_translation: true\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	for (int i = 0; i < 10; i++)
		must_answer(s, "after a reload in place");
	wait_replaced(s, before, 0, 2);
	server_stop(&s);
}

Test(master, a_successor_that_cannot_start_costs_nothing)
{
	struct server *s = server_start(NULL);
	char pem[400], more[900], out[8192];
	long log_at = server_log_end(s);
	pid_t before[16];

	server_expect(s, "tls_cert");
	server_expect(s, "a worker cannot start");
	server_expect(s, "child ended");
	server_expect(s, "successor");
	server_expect(s, "reload");
	cr_assert_eq(server_pids(s, "otari: worker", before, 16), 2);
	(void)snprintf(pem, sizeof(pem), "%s/no.pem", s->dir);
	FILE *f = fopen(pem, "we");
	cr_assert(f != NULL && fputs("this is no certificate\n", f) >= 0 && fclose(f) == 0);
	(void)snprintf(more, sizeof(more), "tls_cert: %s\ntls_key: %s\n", pem, pem);
	server_write_conf(s, more);
	/* Either the reload is refused, or the successors are. */
	if (program_otarictl(s, "reload", out, sizeof(out)) == 0)
		cr_assert(server_wait_log(s, "the old one goes on", &log_at));
	for (int i = 0; i < 10; i++)
		must_answer(s, "with the old certificate");
	wait_replaced(s, before, 0, 2);
	server_stop(&s);
}

/* The status of a change, asked until it meets the worker that runs: the others are stopped. */
static int
change_status(struct server *s)
{
	for (int i = 0; i < 40; i++) {
		char text[700], answer[64] = "";
		struct timeval patience = {4, 0};
		int fd = server_connect(s);
		int n = snprintf(text, sizeof(text),
		    "POST /api/v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
		    "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
		    "{\"key_name\":\"x\"}",
		    s->master_key);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		cr_assert_eq(write(fd, text, (size_t)n), n);
		ssize_t got = read(fd, answer, sizeof(answer) - 1);
		close(fd);
		if (got > 12)
			return (int)strtol(answer + 9, NULL, 10);
	}
	return 0;
}

Test(master, a_change_that_a_hung_worker_has_not_taken_is_saved_not_in_force)
{
	struct server_opts o = {.conf = "heartbeat_timeout_ms: 120000\n"};
	struct server *s = server_start(&o);
	pid_t pids[16];
	bool settled = true;

	server_expect(s, "in force");
	server_expect(s, "publi");
	cr_assert_eq(server_pids(s, "otari: worker", pids, 16), 2);
	kill(pids[0], SIGSTOP);
	cr_expect_eq(change_status(s), 503);
	(void)server_generation(s, &settled);
	cr_expect_not(settled);
	kill(pids[0], SIGCONT);
	for (int i = 0; i < 200 && !settled; i++) {
		(void)server_generation(s, &settled);
		pause_short();
	}
	cr_expect(settled, "it is in force once the worker goes on");
	cr_expect_eq(change_status(s), 200);
	server_stop(&s);
}
