/* The master: watchdog, reload storms, signals, log files, the control socket, a detached start. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/integ/harness.h"

#define HELLO STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}")

TestSuite(master, .timeout = 120);

static void
program_path(const char *name, char dst[1200])
{
	ssize_t n = readlink("/proc/self/exe", dst, 1000);
	cr_assert(n > 0);
	dst[n] = '\0';
	(void)snprintf(strrchr(dst, '/') + 1, 150, "%s", name);
}

/* Runs a program to its end; its output (both streams) in *out, NUL-terminated. uid 0: as we are.
 */
static int
run(const char *name, const char *const *argv, uid_t uid, char *out, size_t size)
{
	char path[1200];
	int p[2], status = -1;
	size_t n = 0;
	program_path(name, path);
	cr_assert(fd_pipe(p, false));
	pid_t pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		(void)dup2(p[1], 1);
		(void)dup2(p[1], 2);
		if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0))
			_exit(126);
		execv(path, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(p[1]);
	for (ssize_t k; n + 1 < size && (k = read(p[0], out + n, size - 1 - n)) > 0;)
		n += (size_t)k;
	out[n] = '\0';
	close(p[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
otarictl(struct server *s, const char *command, char *out, size_t size)
{
	const char *const argv[] = {"otarictl", "-c", s->conf_path, "--json", command, NULL};
	return run("otarictl", argv, 0, out, size);
}

static void
must_answer(struct server *s, const char *when)
{
	struct reply r;
	server_ask(s, "POST", "/v1/chat/completions", HELLO, NULL, &r);
	cr_expect_eq(r.status, 200, "%s: %ld (curl %d)", when, r.status, r.curl_code);
	reply_done(&r);
}

/* The daemon must end by itself; its exit status. */
static int
wait_end(struct server *s, int64_t limit_ms)
{
	int status = 0;
	int64_t end = clock_mono_ms() + limit_ms;
	while (waitpid(s->pid, &status, WNOHANG) != s->pid) {
		cr_assert(clock_mono_ms() < end, "the daemon does not end");
		pause_short();
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In place of server_stop, for a daemon that has ended already. */
static void
forget_server(struct server *s)
{
	pid_t pids[8];
	char command[400];
	cr_expect_eq(server_pids(s, "otari:", pids, 8), 0, "processes are left");
	kill(s->fake_pid, SIGTERM);
	waitpid(s->fake_pid, NULL, 0);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	cr_expect_eq(system(command), 0);
	mem_free(s);
}

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

static int64_t
generation(struct server *s, bool *ret_settled)
{
	char out[32768];
	cr_assert_eq(otarictl(s, "status", out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	int64_t g = at_int(root, "generation");
	*ret_settled = json_is_true(at_json(root, "is_settled"));
	json_decref(root);
	return g;
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
		(void)generation(s, &settled);
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
		cr_assert_eq(otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
		for (int k = 0;
		     k < 200 && server_pids(s, "otari: worker", pids, 16) != (size_t)wanted[i]; k++)
			pause_short();
		cr_expect_eq(server_pids(s, "otari: worker", pids, 16), (size_t)wanted[i]);
		for (int k = 0; k < 12; k++)
			must_answer(s, "with another number of workers");
	}
	server_stop(&s);
}

/* A request whose body never comes: it keeps its worker from being drained. */
static int
hold_request(struct server *s)
{
	char text[512];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	int n = snprintf(text, sizeof(text),
	    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	    s->key);
	cr_assert_eq(write(fd, text, (size_t)n), n);
	pause_short();
	return fd;
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
		held[i] = hold_request(s);
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
	cr_assert_eq(otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	wait_replaced(s, before, 2, 2);
	cr_assert_eq(server_pids(s, "otari: worker", before, 16), 2);
	server_write_conf(s, "sql_threads: 3\nstrict_translation: true\n");
	cr_assert_eq(otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	for (int i = 0; i < 10; i++)
		must_answer(s, "after a reload in place");
	wait_replaced(s, before, 0, 2);
	server_stop(&s);
}

Test(master, a_second_interrupt_stops_at_once)
{
	struct server *s = server_start(NULL);
	long log_at = server_log_end(s);
	int fd = hold_request(s);

	kill(s->pid, SIGINT);
	cr_assert(server_wait_log(s, "\"to\":\"draining\"", &log_at));
	pause_short();
	cr_expect_eq(waitpid(s->pid, NULL, WNOHANG), 0, "the first one drains");
	kill(s->pid, SIGINT);
	cr_expect_eq(wait_end(s, 3000), 0);
	close(fd);
	forget_server(s);
}

Test(master, a_drain_has_a_deadline)
{
	struct server_opts o = {.conf = "drain_timeout_ms: 1000\n"};
	struct server *s = server_start(&o);
	int fd = hold_request(s);
	int64_t start = clock_mono_ms();

	kill(s->pid, SIGTERM);
	cr_expect_eq(wait_end(s, 8000), 0);
	cr_expect_geq(clock_mono_ms() - start, 900);
	close(fd);
	forget_server(s);
}

Test(master, usr1_goes_on_in_a_new_log_file)
{
	struct server *s = server_start(NULL);
	char more[400], moved[340];
	long log_at;
	struct stat st;

	(void)snprintf(more, sizeof(more), "log_file: %s\n", s->log_path);
	(void)snprintf(moved, sizeof(moved), "%s.1", s->log_path);
	server_write_conf(s, more);
	log_at = server_log_end(s);
	kill(s->pid, SIGHUP);
	cr_assert(server_wait_log(s, "reload built", &log_at));
	cr_assert_eq(rename(s->log_path, moved), 0);
	kill(s->pid, SIGUSR1);
	for (int i = 0; i < 500 && stat(s->log_path, &st) != 0; i++)
		pause_short();
	cr_assert(server_wait_log(s, "log reopened", NULL));
	for (int i = 0; i < 8; i++)
		must_answer(s, "after the rotation");
	cr_expect(server_wait_log(s, "\"proc\":\"worker", NULL), "workers write elsewhere");
	server_stop(&s);
}

Test(master, answers_on_the_control_socket)
{
	struct server *s = server_start(NULL);
	char out[32768];
	bool settled;

	cr_assert_eq(otarictl(s, "status", out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	cr_expect_str_eq(at(root, "phase"), "running");
	cr_expect_eq(at_int(root, "port"), s->port);
	cr_expect_eq(at_int(root, "pid"), s->pid);
	cr_expect_eq(json_array_size(at_json(root, "children")), 3);
	json_decref(root);

	int64_t g = generation(s, &settled);
	cr_assert_eq(otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_expect_eq(generation(s, &settled), g + 1);
	cr_expect(settled, "reload answers when it is in force");

	server_expect(s, "reload");
	server_expect(s, "no_such_key");
	server_write_conf(s, "no_such_key: 1\n");
	const char *const bad[] = {"otarictl", "-s", NULL, "--json", "reload", NULL};
	char socket_path[400];
	(void)snprintf(socket_path, sizeof(socket_path), "%s/control.sock", s->dir);
	const char *argv[ARRAY_LEN(bad)];
	memcpy(argv, bad, sizeof(bad));
	argv[2] = socket_path;
	cr_expect_eq(run("otarictl", argv, 0, out, sizeof(out)), 1);
	cr_expect(strstr(out, "no_such_key") != NULL, "%s", out);
	argv[4] = "no such command";
	cr_expect_eq(run("otarictl", argv, 0, out, sizeof(out)), 2);

	/* The group may look; it changes nothing. */
	struct stat st;
	cr_assert_eq(stat(socket_path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0660);
	server_write_conf(s, NULL);
	cr_expect_eq(otarictl(s, "drain", out, sizeof(out)), 0, "%s", out);
	cr_expect_eq(wait_end(s, 10000), 0);
	cr_expect_neq(stat(socket_path, &st), 0, "the socket is left");
	forget_server(s);
}

static void
second_conf(struct server *s, const char *text, char path[400])
{
	(void)snprintf(path, 400, "%s/second.conf", s->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert(fd >= 0);
	cr_assert_eq(fd_write_all(fd, str_c(text), NULL), ERR_OK);
	close(fd);
}

Test(master, a_second_one_in_the_same_place_is_refused)
{
	struct server *s = server_start(NULL);
	char out[8192], conf[400], text[2048];
	const char *argv[] = {"otari", "-f", "-c", s->conf_path, NULL};

	cr_expect_eq(run("otari", argv, 0, out, sizeof(out)), 1);
	cr_expect(strstr(out, "another otari") != NULL, "%s", out);
	/* Another place, the same port: SO_REUSEPORT alone would share it. */
	(void)snprintf(text, sizeof(text),
	    "host: 127.0.0.1\nport: %d\nstate_dir: %s/second\nmaster_key: "
	    "master-key-of-a-test-2\n%s%s\n",
	    s->port, s->dir, geteuid() == 0 ? "user: " : "",
	    geteuid() == 0 ? (getpwnam("otari") != NULL ? "otari" : "nobody") : "");
	second_conf(s, text, conf);
	argv[3] = conf;
	cr_expect_neq(run("otari", argv, 0, out, sizeof(out)), 0);
	cr_expect(strstr(out, "listen on 127.0.0.1") != NULL, "%s", out);
	must_answer(s, "the first one");
	server_stop(&s);
}

Test(master, says_what_keeps_it_from_starting)
{
	struct server *s = server_start(NULL);
	char out[8192], conf[400], text[1024];
	const char *const argv[] = {"otari", "-f", "-c", conf, NULL};
	const char *const detached[] = {"otari", "-c", conf, NULL};
	const char *const missing[] = {"otari", "-f", "-c", "/does/not/exist", NULL};

	(void)snprintf(text, sizeof(text), "state_dir: %s/second\nport: 0\nwrokers: 2\n", s->dir);
	second_conf(s, text, conf);
	cr_expect_eq(run("otari", argv, 0, out, sizeof(out)), 2);
	cr_expect(
	    strstr(out, "second.conf:3") != NULL && strstr(out, "workers") != NULL, "%s", out);
	cr_expect_eq(run("otari", detached, 0, out, sizeof(out)), 2);
	cr_expect(strstr(out, "second.conf:3") != NULL, "detached: %s", out);
	cr_expect_eq(run("otari", missing, 0, out, sizeof(out)), 1);
	cr_expect(strstr(out, "/does/not/exist") != NULL, "%s", out);
	if (geteuid() == 0) {
		(void)snprintf(text, sizeof(text),
		    "state_dir: %s/second\nport: 0\nuser: no-such-user\nmaster_key: "
		    "master-key-of-a-test-2\n",
		    s->dir);
		second_conf(s, text, conf);
		cr_expect_eq(run("otari", argv, 0, out, sizeof(out)), 1);
		cr_expect(strstr(out, "useradd") != NULL, "%s", out);
	}
	server_stop(&s);
}

Test(master, detaches_when_it_serves_and_ends_on_term)
{
	struct server *s = server_start(NULL);
	char out[8192], conf[400], text[1024], path[400], *pid_text;
	const char *const argv[] = {"otari", "-c", conf, NULL};
	size_t len;

	(void)snprintf(text, sizeof(text),
	    "host: 127.0.0.1\nport: 0\nadmin_listen: \"127.0.0.1:0\"\nstate_dir: %s/second\n"
	    "workers: 1\nmaster_key: master-key-of-a-test-2\n%s%s\n",
	    s->dir, geteuid() == 0 ? "user: " : "",
	    geteuid() == 0 ? (getpwnam("otari") != NULL ? "otari" : "nobody") : "");
	second_conf(s, text, conf);
	cr_assert_eq(run("otari", argv, 0, out, sizeof(out)), 0, "%s", out);
	const char *const ctl[] = {"otarictl", "-c", conf, "--json", "status", NULL};
	cr_assert_eq(run("otarictl", ctl, 0, out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	pid_t pid = (pid_t)at_int(root, "pid");
	cr_expect_str_eq(at(root, "phase"), "running");
	json_decref(root);
	(void)snprintf(path, sizeof(path), "%s/second/otari.pid", s->dir);
	cr_assert_eq(fd_read_file(path, 64, &pid_text, &len, NULL), ERR_OK);
	cr_expect_eq(strtol(pid_text, NULL, 10), pid);
	mem_free(pid_text);
	cr_expect_neq(getsid(pid), getsid(0), "it has left our session");
	kill(pid, SIGTERM);
	for (int i = 0; i < 500 && kill(pid, 0) == 0; i++) {
		(void)waitpid(pid, NULL, WNOHANG); /* ours, as the nearest subreaper */
		pause_short();
	}
	cr_expect_neq(kill(pid, 0), 0);
	cr_expect_neq(access(path, F_OK), 0, "the pid file is left");
	server_stop(&s);
}

static bool
sandbox_is(struct server *s, const char *state)
{
	char out[32768], text[64];
	(void)snprintf(text, sizeof(text), "\"sandbox\":{\"state\":\"%s\"", state);
	(void)otarictl(s, "sandbox check", out, sizeof(out));
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

static void
must_run_code(struct server *s, const char *when, bool is_whole)
{
	struct reply r;
	server_ask(s, "POST", "/v1/messages",
	    STR("{\"model\":\"fake:tool\",\"max_tokens\":100,\"tools\":[{\"type\":"
		"\"code_execution_20250825\",\"name\":\"code_execution\"}],\"messages\":[{"
		"\"role\":\"user\",\"content\":\"run: print(6 * 7)\"}]}"),
	    NULL, &r);
	cr_expect_eq(r.status, 200, "%s: %ld %s", when, r.status, r.body.ptr);
	if (is_whole)
		cr_expect(strstr(r.body.ptr, "42\\n") != NULL, "%s: %s", when, r.body.ptr);
	reply_done(&r);
}

Test(master, a_killed_spawner_comes_back_and_changed_settings_start_a_new_one)
{
	struct server *s = server_start(&(struct server_opts){.sandbox = "local:"});
	const char *must = getenv("OTARI_TEST_REQUIRE");
	pid_t pids[16];
	char out[4096];
	long log_at;

	if (!wait_sandbox(s, "ready")) {
		cr_assert(must == NULL || strstr(must, "sandbox") == NULL, "no sandbox here");
		server_expect(s, "sandbox");
		server_stop(&s);
		cr_skip_test("SKIPPED sandbox");
	}
	must_run_code(s, "at first", true);
	server_expect(s, "child ended");
	server_expect(s, "the sandbox spawner is gone");
	log_at = server_log_end(s);
	cr_assert_geq(server_pids(s, "otari: spawner", pids, 16), 1);
	kill(pids[0], SIGKILL);
	cr_assert(server_wait_log(s, "child ended", &log_at));
	cr_assert(wait_sandbox(s, "ready"), "it does not come back");
	for (int i = 0; i < 4; i++)
		must_run_code(s, "after the spawner was killed", true);

	log_at = server_log_end(s);
	server_write_conf(s, "sandbox_pids: 40\n");
	cr_assert_eq(otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	/* Without a gap: the old one lends until the new one has passed its self-test. (What runs
	 * in the old one at that moment ends with it.) */
	for (int i = 0; i < 8; i++)
		must_run_code(s, "while the spawner is replaced", false);
	cr_assert(server_wait_log(s, "\"from\":\"ready\",\"to\":\"draining\"", &log_at));
	cr_assert(server_wait_log(s, "\"child ended\"", &log_at));
	cr_expect(sandbox_is(s, "ready"));
	for (int i = 0; i < 4; i++)
		must_run_code(s, "after the settings changed", true);
	server_stop(&s);
}
