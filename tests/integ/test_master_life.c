/* The master: start and stop, signals, log files, the control socket. */
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/integ/program.h"

TestSuite(master_life, .timeout = 120);

Test(master_life, a_second_interrupt_stops_at_once)
{
	struct server *s = server_start(NULL);
	long log_at = server_log_end(s);
	int fd = server_hold_request(s);

	kill(s->pid, SIGINT);
	cr_assert(server_wait_log(s, "\"to\":\"draining\"", &log_at));
	pause_short();
	cr_expect_eq(waitpid(s->pid, NULL, WNOHANG), 0, "the first one drains");
	kill(s->pid, SIGINT);
	cr_expect_eq(wait_daemon_end(s, 3000), 0);
	close(fd);
	forget_server(s);
}

Test(master_life, a_drain_has_a_deadline)
{
	struct server_opts o = {.conf = "drain_timeout_ms: 1000\n"};
	struct server *s = server_start(&o);
	int fd = server_hold_request(s);
	int64_t start = clock_mono_ms();

	kill(s->pid, SIGTERM);
	cr_expect_eq(wait_daemon_end(s, 8000), 0);
	cr_expect_geq(clock_mono_ms() - start, 900);
	close(fd);
	forget_server(s);
}

Test(master_life, usr1_goes_on_in_a_new_log_file)
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

Test(master_life, answers_on_the_control_socket)
{
	struct server *s = server_start(NULL);
	char out[32768];
	bool settled;

	cr_assert_eq(program_otarictl(s, "status", out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	cr_expect_str_eq(at(root, "phase"), "running");
	cr_expect_eq(at_int(root, "port"), s->port);
	cr_expect_eq(at_int(root, "pid"), s->pid);
	cr_expect_eq(json_array_size(at_json(root, "children")), 3);
	json_decref(root);

	int64_t g = server_generation(s, &settled);
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_expect_eq(server_generation(s, &settled), g + 1);
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
	cr_expect_eq(program_run("otarictl", argv, out, sizeof(out)), 1);
	cr_expect(strstr(out, "no_such_key") != NULL, "%s", out);
	argv[4] = "no such command";
	cr_expect_eq(program_run("otarictl", argv, out, sizeof(out)), 2);

	/* The group may look; it changes nothing. */
	struct stat st;
	cr_assert_eq(stat(socket_path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0660);
	server_write_conf(s, NULL);
	cr_expect_eq(program_otarictl(s, "drain", out, sizeof(out)), 0, "%s", out);
	cr_expect_eq(wait_daemon_end(s, 10000), 0);
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

Test(master_life, a_second_one_in_the_same_place_is_refused)
{
	struct server *s = server_start(NULL);
	char out[8192], conf[400], text[2048];
	const char *argv[] = {"otari", "-f", "-c", s->conf_path, NULL};

	cr_expect_eq(program_run("otari", argv, out, sizeof(out)), 1);
	cr_expect(strstr(out, "another otari") != NULL, "%s", out);
	/* Another place, the same port: SO_REUSEPORT alone would share it. */
	(void)snprintf(text, sizeof(text),
	    "host: 127.0.0.1\nport: %d\nstate_dir: %s/second\nmaster_key: "
	    "master-key-of-a-test-2\n%s%s\n",
	    s->port, s->dir, geteuid() == 0 ? "user: " : "",
	    geteuid() == 0 ? (getpwnam("otari") != NULL ? "otari" : "nobody") : "");
	second_conf(s, text, conf);
	argv[3] = conf;
	cr_expect_neq(program_run("otari", argv, out, sizeof(out)), 0);
	cr_expect(strstr(out, "listen on 127.0.0.1") != NULL, "%s", out);
	must_answer(s, "the first one");
	server_stop(&s);
}

Test(master_life, says_what_keeps_it_from_starting)
{
	struct server *s = server_start(NULL);
	char out[8192], conf[400], text[1024];
	const char *const argv[] = {"otari", "-f", "-c", conf, NULL};
	const char *const detached[] = {"otari", "-c", conf, NULL};
	const char *const missing[] = {"otari", "-f", "-c", "/does/not/exist", NULL};

	(void)snprintf(text, sizeof(text), "state_dir: %s/second\nport: 0\nwrokers: 2\n", s->dir);
	second_conf(s, text, conf);
	cr_expect_eq(program_run("otari", argv, out, sizeof(out)), 2);
	cr_expect(
	    strstr(out, "second.conf:3") != NULL && strstr(out, "workers") != NULL, "%s", out);
	cr_expect_eq(program_run("otari", detached, out, sizeof(out)), 2);
	cr_expect(strstr(out, "second.conf:3") != NULL, "detached: %s", out);
	cr_expect_eq(program_run("otari", missing, out, sizeof(out)), 1);
	cr_expect(strstr(out, "/does/not/exist") != NULL, "%s", out);
	if (geteuid() == 0) {
		(void)snprintf(text, sizeof(text),
		    "state_dir: %s/second\nport: 0\nuser: no-such-user\nmaster_key: "
		    "master-key-of-a-test-2\n",
		    s->dir);
		second_conf(s, text, conf);
		cr_expect_eq(program_run("otari", argv, out, sizeof(out)), 1);
		cr_expect(strstr(out, "useradd") != NULL, "%s", out);
	}
	server_stop(&s);
}

Test(master_life, detaches_when_it_serves_and_ends_on_term)
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
	cr_assert_eq(program_run("otari", argv, out, sizeof(out)), 0, "%s", out);
	const char *const ctl[] = {"otarictl", "-c", conf, "--json", "status", NULL};
	cr_assert_eq(program_run("otarictl", ctl, out, sizeof(out)), 0, "%s", out);
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
