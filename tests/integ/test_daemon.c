/* The daemon as such: start, stop, health, reload, respawn. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"

#define HELLO STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}")

TestSuite(daemon, .timeout = 120);

Test(daemon, starts_answers_and_stops_without_a_trace)
{
	struct server *s = server_start(NULL);
	struct reply r;
	json_t *root;
	pid_t pids[16];

	server_ask(s, "GET", "/health", STR_NULL, &(struct ask_opts){.key = ""}, &r);
	cr_assert_eq(r.status, 200);
	root = reply_json(&r);
	cr_expect_str_eq(at(root, "status"), "ok");
	cr_expect_str_eq(at(root, "sandbox"), "off");
	json_decref(root);
	reply_done(&r);

	cr_expect_eq(server_pids(s, "otari: master", pids, 16), 1);
	cr_expect_eq(server_pids(s, "otari: worker", pids, 16), 2);
	cr_expect_eq(server_pids(s, "otari: sweeper", pids, 16), 1);
	server_stop(&s);
}

Test(daemon, health_details_and_metrics_are_on_the_admin_listener_alone)
{
	struct server *s = server_start(NULL);
	const struct ask_opts admin = {.key = "", .admin = true};
	struct reply r;
	json_t *root;

	server_ask(s, "GET", "/metrics", STR_NULL, NULL, &r);
	cr_expect_eq(r.status, 404, "public /metrics: %ld", r.status);
	reply_done(&r);
	server_ask(s, "GET", "/metrics", STR_NULL, &admin, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(strstr(r.body.ptr, "otari_requests_total") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_ask(s, "GET", "/health", STR_NULL, &admin, &r);
	cr_expect_eq(r.status, 200);
	root = reply_json(&r);
	cr_expect(json_array_size(json_object_get(root, "processes")) >= 4);
	json_decref(root);
	reply_done(&r);
	server_stop(&s);
}

Test(daemon, a_killed_worker_comes_back_and_the_others_go_on)
{
	struct server *s = server_start(NULL);
	long log_at = server_log_end(s);
	pid_t before[8], after[8];
	struct reply r;
	size_t n;

	server_expect(s, "worker");
	n = server_pids(s, "otari: worker", before, 8);
	cr_assert_eq(n, 2);
	kill(before[0], SIGKILL);
	for (int i = 0; i < 8; i++) {
		server_ask(s, "POST", "/v1/chat/completions", HELLO, NULL, &r);
		cr_expect_eq(r.status, 200, "request %d: %ld (curl %d)", i, r.status, r.curl_code);
		reply_done(&r);
	}
	cr_assert(server_wait_log(s, "ready", &log_at));
	cr_expect_eq(server_pids(s, "otari: worker", after, 8), 2);
	cr_expect(server_wait_sql(s, "SELECT count(*) FROM usage_logs", 8));
	server_stop(&s);
}

Test(daemon, a_bad_config_keeps_the_old_one)
{
	struct server *s = server_start(NULL);
	long log_at = server_log_end(s);
	struct reply r;

	server_expect(s, "reload");
	server_expect(s, "no_such_key");
	server_write_conf(s, "no_such_key: 1\n");
	kill(s->pid, SIGHUP);
	cr_assert(server_wait_log(s, "no_such_key", &log_at));
	server_ask(s, "POST", "/v1/chat/completions", HELLO, NULL, &r);
	cr_expect_eq(r.status, 200);
	reply_done(&r);

	/* And the next good one is taken. */
	server_write_conf(s, "aliases:\n  friend: fake:text\n");
	kill(s->pid, SIGHUP);
	for (int i = 0; i < 200; i++) {
		server_ask(s, "POST", "/v1/chat/completions",
		    STR("{\"model\":\"friend\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}"
			"]}"),
		    NULL, &r);
		if (r.status == 200)
			break;
		reply_done(&r);
		pause_short();
	}
	cr_assert_eq(r.status, 200, "the alias is not in force: %ld", r.status);
	cr_expect(strstr(r.body.ptr, "\"model\":\"friend\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(daemon, a_killed_master_leaves_no_process)
{
	struct server *s = server_start(NULL);
	pid_t pids[32];
	size_t n = 1;

	kill(s->pid, SIGKILL);
	for (int i = 0; i < 500 && n > 0; i++) {
		pause_short();
		n = server_pids(s, "otari", pids, 32);
	}
	cr_expect_eq(n, 0, "%zu processes are left", n);
	kill(s->fake_pid, SIGTERM);
}

Test(daemon, many_reloads_leave_descriptors_as_they_were)
{
	struct server *s = server_start(NULL);
	const struct ask_opts admin = {.key = "", .admin = true};
	long log_at = server_log_end(s);
	struct reply r;
	pid_t pids[32];
	size_t n = server_pids(s, "otari", pids, 32);
	int before[32], after;

	for (size_t i = 0; i < n; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pids[i]);
		before[i] = count_entries(path);
	}
	for (int i = 0; i < 20; i++) {
		kill(s->pid, SIGHUP);
		cr_assert(server_wait_log(s, "reload built", &log_at), "reload %d", i);
	}
	for (size_t i = 0; i < n; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pids[i]);
		after = count_entries(path);
		cr_expect(after <= before[i] + 2, "pid %d: %d fds, were %d", (int)pids[i], after,
		    before[i]);
	}
	server_ask(s, "GET", "/health", STR_NULL, &admin, &r);
	cr_expect_eq(r.status, 200);
	reply_done(&r);
	server_stop(&s);
}
