/* The master and its spawners: killed, replaced, and what runs in them meanwhile. */
#include <sys/stat.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "ipc/lease.h"
#include "sandbox/cgroup/cgroup.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"

TestSuite(spawners, .timeout = 120);

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

Test(spawners, a_killed_filler_or_spawner_comes_back_and_changed_settings_start_a_new_one)
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

Test(spawners, sandboxes_whose_cgroups_somebody_removed_get_others)
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

#define UID_BASE 1900000000u /* sandbox_uid_base of itself */

/* Which spawner's range the user is of, that it runs under. */
static unsigned
range_of(pid_t pid)
{
	char path[64];
	struct stat st;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	cr_assert_eq(stat(path, &st), 0, "%s", path);
	cr_assert(st.st_uid >= UID_BASE && st.st_uid < UID_BASE + LEASE_UIDS * LEASE_UID_RANGES,
	    "%u", (unsigned)st.st_uid);
	return (st.st_uid - UID_BASE) / LEASE_UIDS;
}

/* A call that waits in a process of that name; what is made in a spawner's first moments may take
 * longer than its queue. */
static int
hold(struct server *s, const char *name, pid_t *ret_pid)
{
	char body[512];
	pid_t pids[16];
	(void)snprintf(body, sizeof(body),
	    CODE_BODY("import subprocess; subprocess.run(['sleep', '%s']); print(6 * 7)"), name);
	for (int i = 0; i < 20; i++) {
		int fd = stream_open(s, "/v1/messages", body);
		for (int k = 0; k < 100; k++) {
			if (server_pids(s, name, pids, 16) == 1) {
				*ret_pid = pids[0];
				return fd;
			}
			pause_short();
		}
		close(fd);
	}
	cr_assert(false, "no %s", name);
	return -1;
}

Test(spawners, sessions_of_two_spawners_have_other_users_and_are_counted_together)
{
	struct server *s = start_sandboxed(&(struct server_opts){
	    .workers = 1, .conf = "sandbox_max_sessions: 2\nsandbox_queue_ms: 300\n"});
	char out[4096];
	struct reply r;

	server_expect(s, "no code session");
	pid_t first = 0, second = 0;
	int fd = hold(s, "4712.1", &first);
	long log_at = server_log_end(s);
	server_write_conf(s, "sandbox_pids: 40\n");
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert(server_wait_log(s, "\"from\":\"ready\",\"to\":\"draining\"", &log_at));

	int more = hold(s, "4712.2", &second);
	if (geteuid() == 0)
		cr_expect_neq(range_of(first), range_of(second), "both are of %u", range_of(first));
	server_ask(s, "POST", "/v1/messages", str_c(CODE_BODY("print(6 * 7)")), NULL, &r);
	cr_expect_eq(r.status, 503, "a third one: %ld %s", r.status, r.body.ptr);
	reply_done(&r);

	kill(first, SIGTERM);
	cr_expect(stream_wait(fd, "42\\n"), "it did not go on");
	close(fd);
	cr_expect(server_wait_log(s, "this spawner has drained", &log_at));
	for (int i = 0; i < 50; i++) { /* its place is the new one's now */
		server_ask(s, "POST", "/v1/messages", str_c(CODE_BODY("print(6 * 7)")), NULL, &r);
		bool is_done = r.status == 200;
		reply_done(&r);
		if (is_done)
			break;
		cr_expect_lt(i, 49, "it lends no second one");
	}
	kill(second, SIGTERM);
	cr_expect(stream_wait(more, "42\\n"), "it did not go on");
	close(more);
	server_stop(&s);
}

/* A range of users is given again when all of the spawner that had it is gone. */
Test(spawners, many_changes_while_calls_run_wait_for_the_first_to_end)
{
	struct server *s = start_with_sandbox();
	pid_t held[4], pids[16];
	int fds[4];
	char out[4096], conf[64];
	long log_at = server_log_end(s);

	for (unsigned i = 0; i < 4; i++) {
		(void)snprintf(conf, sizeof(conf), "4713.%u", i);
		fds[i] = hold(s, conf, &held[i]);
		for (unsigned k = 0; k < i && geteuid() == 0; k++)
			cr_expect_neq(range_of(held[k]), range_of(held[i]), "%u and %u", k, i);
		(void)snprintf(conf, sizeof(conf), "sandbox_pids: %u\n", 40 + i);
		server_write_conf(s, conf);
		cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
		cr_assert(server_wait_log(s,
		    i < 3 ? "\"from\":\"ready\",\"to\":\"draining\""
			  : "waits until one that drains",
		    &log_at));
	}
	must_run_code(s, "in the one before the last change");
	cr_expect_eq(server_pids(s, "otari: spawner", pids, 16), 8, "a fifth one");
	kill(held[1], SIGTERM);
	cr_expect(stream_wait(fds[1], "42\\n"), "it did not go on");
	cr_expect(server_wait_log(s, "\"from\":\"ready\",\"to\":\"draining\"", &log_at),
	    "the last change is forgotten");
	must_print(s, "with the last change",
	    CODE_BODY("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[1])"),
	    "43\\n");
	for (unsigned i = 0; i < 4; i++) {
		kill(held[i], SIGTERM);
		cr_expect(i == 1 || stream_wait(fds[i], "42\\n"), "%u did not go on", i);
		close(fds[i]);
	}
	server_stop(&s);
}

Test(spawners, a_running_call_survives_changed_sandbox_settings)
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

Test(spawners, a_replaced_spawner_does_not_wait_for_ever)
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
Test(spawners, a_draining_worker_knows_the_new_spawner)
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

static bool
is_in(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Killed before its self-test is over, or right behind it: both are seen here. */
Test(spawners, a_running_call_survives_a_new_spawner_that_dies_at_once)
{
	struct server *s = start_with_sandbox();
	pid_t old[16], pids[16], new = 0;

	int fd = stream_open(s, "/v1/messages",
	    CODE_BODY("import subprocess; subprocess.run(['sleep', '4711.9']); print(6 * 7)"));
	pid_t held = wait_process(s, "4711.9");
	long log_at = server_log_end(s);
	size_t n = server_pids(s, "otari: spawner", old, 16);
	server_expect(s, "child ended");
	server_expect(s, "no spawner runs with the new settings");
	server_expect(s, "the sandbox spawner is gone");
	server_write_conf(s, "sandbox_pids: 40\n");
	kill(s->pid, SIGHUP);
	while (new == 0) {
		size_t k = server_pids(s, "otari: spawner", pids, 16);
		for (size_t i = 0; i < k && new == 0; i++)
			new = is_in(old, n, pids[i]) ? 0 : pids[i];
	}
	kill(new, SIGKILL);
	cr_assert(server_wait_log(s, "\"child ended\"", &log_at));
	cr_assert(wait_sandbox(s, "ready"), "it does not come back");
	must_run_code(s, "in the one after it");
	cr_expect_eq(server_pids(s, "4711.9", pids, 16), 1, "the call that runs was ended");
	kill(held, SIGTERM);
	cr_expect(stream_wait(fd, "42\\n"), "it did not go on");
	close(fd);
	server_stop(&s);
}

Test(spawners, a_running_call_survives_the_end_of_the_sandbox)
{
	struct server *s = start_with_sandbox();
	char out[4096];

	int fd = stream_open(s, "/v1/messages",
	    CODE_BODY("import subprocess; subprocess.run(['sleep', '4711.6']); print(6 * 7)"));
	pid_t held = wait_process(s, "4711.6");
	server_expect(s, "the sandbox spawner is gone");
	s->opts.sandbox = NULL;
	server_write_conf(s, NULL);
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_expect(wait_sandbox(s, "off"));
	kill(held, SIGTERM);
	cr_expect(stream_wait(fd, "42\\n"), "it did not go on");
	close(fd);
	server_stop(&s);
}

/* One that refuses everything has neither filler nor zygote. */
Test(spawners, one_that_refuses_drains_like_any_other)
{
	struct server *s = start_with_sandbox();
	char out[4096], conf[400];

	server_expect(s, "sandbox refused");
	(void)snprintf(conf, sizeof(conf), "sandbox_rootfs: %s\n", s->conf_path);
	server_write_conf(s, conf);
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert(wait_sandbox(s, "refused"));
	long log_at = server_log_end(s);
	server_write_conf(s, NULL);
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert(wait_sandbox(s, "ready"));
	must_run_code(s, "again");
	cr_expect(server_wait_log(s, "this spawner has drained", &log_at));
	cr_expect(server_wait_log(s, "\"child ended\"", &log_at));
	server_stop(&s);
}
