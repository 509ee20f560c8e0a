/* The master: watchdog, reloads, workers and spawners that are replaced. */
#include <sys/socket.h>
#include <sys/time.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "sandbox/cgroup/cgroup.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"

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

static bool
sandbox_is(struct server *s, const char *state)
{
	char out[32768], text[64];
	(void)snprintf(text, sizeof(text), "\"sandbox\":{\"state\":\"%s\"", state);
	(void)program_otarictl(s, "sandbox check", out, sizeof(out));
	return strstr(out, text) != NULL;
}

static bool
wait_sandbox(struct server *s, const char *state)
{
	for (int i = 0; i < 500; i++) {
		if (sandbox_is(s, state))
			return true;
		pause_short();
	}
	return false;
}

#define CODE_BODY(code)                                                                            \
	"{\"model\":\"fake:tool\",\"max_tokens\":100,\"tools\":[{\"type\":"                        \
	"\"code_execution_20250825\",\"name\":\"code_execution\"}],\"messages\":[{"                \
	"\"role\":\"user\",\"content\":\"run: " code "\"}]}"

static void
must_print(struct server *s, const char *when, const char *body, const char *text)
{
	struct reply r;
	server_ask(s, "POST", "/v1/messages", str_c(body), NULL, &r);
	cr_expect_eq(r.status, 200, "%s: %ld %s", when, r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, text) != NULL, "%s: %s", when, r.body.ptr);
	reply_done(&r);
}

static void
must_run_code(struct server *s, const char *when)
{
	must_print(s, when, CODE_BODY("print(6 * 7)"), "42\\n");
}

static bool
is_not_of(void *arg, const char *path)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "/otari.%d.", (int)*(const pid_t *)arg);
	return strstr(path, name) == NULL;
}

/* The cgroups of a spawner that has ended are removed, at once or when all in them is dead. */
static bool
cgroups_go(pid_t spawner)
{
	struct cgroup_places p;
	cgroup_read_places(&p);
	for (int i = 0; i < 500; i++) {
		if (cgroup_each_tree(&p, is_not_of, &spawner))
			return true;
		pause_short();
	}
	return false;
}

Test(master, a_killed_filler_or_spawner_comes_back_and_changed_settings_start_a_new_one)
{
	struct server *s = start_with_sandbox();
	pid_t pids[16];
	char out[4096];
	long log_at;

	must_run_code(s, "at first");
	server_expect(s, "the filler failed");
	log_at = server_log_end(s);
	/* What it makes has its title too, until that execs. */
	while (server_pids(s, "otari: filler", pids, 16) != 1)
		pause_short();
	kill(pids[0], SIGKILL);
	cr_assert(server_wait_log(s, "the filler failed", &log_at));
	for (int i = 0; i < 4; i++)
		must_run_code(s, "after the filler was killed");
	server_expect(s, "child ended");
	server_expect(s, "the sandbox spawner is gone");
	log_at = server_log_end(s);
	cr_assert_geq(server_pids(s, "otari: spawner", pids, 16), 1);
	kill(pids[0], SIGKILL);
	cr_assert(server_wait_log(s, "child ended", &log_at));
	cr_assert(wait_sandbox(s, "ready"), "it does not come back");
	cr_expect(cgroups_go(pids[0]), "of the one that was killed");
	cr_assert_geq(server_pids(s, "otari: spawner", pids, 16), 1);
	for (int i = 0; i < 4; i++)
		must_run_code(s, "after the spawner was killed");

	log_at = server_log_end(s);
	server_write_conf(s, "sandbox_pids: 40\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	/* Without a gap: the old one lends until the new one has passed its self-test, and what
	 * runs in it at that moment goes on. */
	for (int i = 0; i < 8; i++)
		must_run_code(s, "while the spawner is replaced");
	cr_assert(server_wait_log(s, "\"from\":\"ready\",\"to\":\"draining\"", &log_at));
	cr_assert(server_wait_log(s, "\"child ended\"", &log_at));
	cr_expect(sandbox_is(s, "ready"));
	for (int i = 0; i < 4; i++)
		must_run_code(s, "after the settings changed");
	cr_expect(cgroups_go(pids[0]), "of the one that was replaced");
	cr_assert_geq(server_pids(s, "otari: spawner", pids, 16), 1);
	server_stop(&s);
	cr_expect(cgroups_go(pids[0]), "of the last one");
}

static bool
remove_tree(void *arg, const char *path)
{
	if (!is_not_of(arg, path))
		(void)cgroup_remove(path);
	return true;
}

Test(master, sandboxes_whose_cgroups_somebody_removed_get_others)
{
	struct server *s = start_with_sandbox();
	struct cgroup_places p;
	pid_t pids[16];

	cgroup_read_places(&p);
	cr_assert_geq(server_pids(s, "otari: spawner", pids, 16), 1);
	if (cgroup_each_tree(&p, is_not_of, &pids[0])) {
		printf("SKIPPED cgroups (none can be made here)\n");
		server_stop(&s);
		return;
	}
	long log_at = server_log_end(s);
	server_expect(s, "somebody removed the cgroups");
	server_expect(s, "the zygote failed");
	server_expect(s, "child ended");
	server_expect(s, "the sandbox spawner is gone");
	(void)cgroup_each_tree(&p, remove_tree, &pids[0]);
	/* Those that are ready are still in theirs. */
	for (int i = 0; i < 12; i++)
		must_run_code(s, "while another spawner takes over");
	cr_expect(server_wait_log(s, "child ended", &log_at));
	cr_assert(wait_sandbox(s, "ready"), "it does not come back");
	must_run_code(s, "in cgroups of another spawner");
	server_stop(&s);
}

/* The one process of that title; the code waits in it. */
static pid_t
wait_process(struct server *s, const char *title)
{
	pid_t pids[16];
	for (int i = 0; i < 500; i++) {
		if (server_pids(s, title, pids, 16) == 1)
			return pids[0];
		pause_short();
	}
	cr_assert(false, "no %s", title);
	return 0;
}

Test(master, a_running_call_survives_changed_sandbox_settings)
{
	struct server *s = start_with_sandbox();
	pid_t pids[16];
	char out[4096];

	int fd = stream_open(s, "/v1/messages",
	    CODE_BODY("import subprocess; subprocess.run(['sleep', '4711.7']); print(6 * 7)"));
	pid_t held = wait_process(s, "4711.7");
	long log_at = server_log_end(s);
	server_write_conf(s, "sandbox_memory_bytes: 700MiB\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert(server_wait_log(s, "\"from\":\"ready\",\"to\":\"draining\"", &log_at));

	must_print(s, "in the new spawner",
	    CODE_BODY("import resource; print(resource.getrlimit(resource.RLIMIT_AS)[1])"),
	    "734003200\\n");
	cr_expect_eq(server_pids(s, "4711.7", pids, 16), 1, "the call that runs was ended");
	kill(held, SIGTERM);
	cr_expect(stream_wait(fd, "42\\n"), "it did not go on");
	close(fd);
	cr_expect(server_wait_log(s, "this spawner has drained", &log_at));
	cr_expect(server_wait_log(s, "\"child ended\"", &log_at));
	for (int i = 0; i < 500 && server_pids(s, "otari: spawner", pids, 16) > 2; i++)
		pause_short();
	cr_expect_eq(server_pids(s, "otari: spawner", pids, 16), 2, "the old one is still there");
	must_run_code(s, "at last");
	server_stop(&s);
}

Test(master, a_replaced_spawner_does_not_wait_for_ever)
{
	struct server *s = start_with_sandbox();
	char out[4096];

	server_write_conf(s, "drain_timeout_ms: 200\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	int fd = stream_open(s, "/v1/messages",
	    CODE_BODY("import subprocess; subprocess.run(['sleep', '4711.8']); print(6 * 7)"));
	(void)wait_process(s, "4711.8");
	long log_at = server_log_end(s);
	server_expect(s, "child ended");
	server_expect(s, "killing a child");
	server_expect(s, "code execution failed");
	server_expect(s, "a replaced sandbox spawner is gone");
	server_write_conf(s, "drain_timeout_ms: 200\nsandbox_pids: 40\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_expect(server_wait_log(s, "a replaced sandbox spawner is gone", &log_at));
	close(fd);
	must_run_code(s, "in the new spawner");
	server_write_conf(s, "sandbox_pids: 40\n"); /* the service is to stop in peace */
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	server_stop(&s);
}

/* A worker that drains still has requests, and they may want a sandbox later on. */
Test(master, a_draining_worker_knows_the_new_spawner)
{
	struct server *s = start_with_sandbox();
	static const char body[] = CODE_BODY("print(6 * 7)");
	char out[4096];
	long log_at = server_log_end(s), child_at = log_at;

	int fd = server_connect(s);
	cr_assert_gt(dprintf(fd,
			 "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\n"
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.9s",
			 s->key, sizeof(body) - 1, body),
	    0);
	server_write_conf(s, "sql_threads: 3\nsandbox_pids: 40\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert(server_wait_log(s, "this spawner has drained", &log_at));
	for (int i = 0; i < 2; i++) /* the old spawner, and the worker without a request */
		cr_assert(server_wait_log(s, "\"child ended\"", &child_at));
	cr_assert_gt(dprintf(fd, "%s", body + 9), 0);
	cr_expect(stream_wait(fd, "42\\n"), "no sandbox for it");
	close(fd);
	server_stop(&s);
}
