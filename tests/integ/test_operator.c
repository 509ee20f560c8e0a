/* What an operator sees of the sandbox. */
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/admin.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"

TestSuite(operator_view, .timeout = 180);

#define RUN(code)                                                                                  \
	"{\"model\":\"fake:tool\",\"max_tokens\":100,\"tools\":[{\"type\":"                        \
	"\"code_execution_20250825\",\"name\":\"code_execution\"}],\"messages\":[{"                \
	"\"role\":\"user\",\"content\":\"run: " code "\"}]}"

static void
run(struct server *s, const char *body)
{
	struct reply r;
	server_ask(s, "POST", "/v1/messages", str_c(body), NULL, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
}

static bool
reaches(struct server *s, const char *name, double least)
{
	for (int i = 0; i < 1000; i++) {
		if (server_metric(s, name) >= least)
			return true;
		pause_short();
	}
	return false;
}

Test(operator_view, a_sandbox_tells_its_walls_its_sessions_and_how_runs_ended)
{
	struct server *s = start_with_sandbox();
	char out[32768];

	run(s, RUN("print(6 * 7)"));
	run(s, RUN("import os; os._exit(3)"));
	run(s,
	    RUN("import os\\nfor i in range(4):\\n    if os.fork() == 0: b = bytearray(400 << 20); "
		"b[::4096] = b'x' * len(b[::4096]); os.wait()\\nos.wait()"));
	cr_expect_eq(
	    server_metric(s, "otari_sandbox_layer{layer=\"seccomp\",state=\"active\"}"), 1);
	cr_expect_eq(
	    server_metric(s, "otari_sandbox_layer{layer=\"seccomp\",state=\"missing\"}"), 0);
	cr_expect_eq(server_metric(s, "otari_sandbox_kills_total{reason=\"died\"}"), 1);
	cr_expect_eq(server_metric(s, "otari_sandbox_kills_total{reason=\"memory\"}"), 1);
	cr_expect_eq(server_metric(s, "otari_sandbox_kills_total{reason=\"timeout\"}"), 0);
	cr_expect_gt(server_metric(s, "otari_sandbox_lease_wait_microseconds_total"), 0);
	cr_expect(reaches(s, "otari_sandbox_session_seconds_count", 2), "sessions made");
	cr_expect(reaches(s, "otari_sandbox_pool_ready", 1), "a pool");
	cr_expect_gt(server_metric(s, "otari_sandbox_pool_max"), 1);
	cr_expect(reaches(s, "otari_sandbox_zygote{state=\"ready\"}", 1), "a zygote");

	cr_assert_eq(program_otarictl(s, "sandbox check", out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	const json_t *box = json_object_get(root, "sandbox");
	cr_expect_str_eq(at(box, "zygote.state"), "ready");
	cr_expect_gt(at_int(box, "pool.max"), 1);
	cr_expect_gt(at_int(box, "pool.made"), 1);
	cr_expect_gt(strlen(at(box, "kernel")), 2);
	json_decref(root);

	const char *const argv[] = {"otarictl", "-c", s->conf_path, "sandbox", "check", NULL};
	cr_expect_eq(program_run("otarictl", argv, out, sizeof(out)), 0);
	static const char *const rows[] = {"sandbox: ready\n", "\n  kernel  ", "\n  zygote  ",
	    "\n  sessions  ", "\n  seccomp                   active"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect(strstr(out, rows[i]) != NULL, "%s: %s", rows[i], out);
	server_stop(&s);
}

Test(operator_view, a_refused_sandbox_is_an_error_to_scripts_and_to_monitoring)
{
	struct server *s = server_start(
	    &(struct server_opts){.sandbox = "local:", .conf = "sandbox_python: /usr/bin/none\n"});
	char out[32768];
	struct reply r;

	server_expect(s, "sandbox refused");
	cr_expect(
	    reaches(s, "otari_sandbox_layer{layer=\"interpreter\",state=\"missing\"}", 1), "layer");
	cr_expect_eq(server_metric(s, "otari_sandbox_pool_ready"), 0);
	cr_expect_eq(program_otarictl(s, "sandbox check", out, sizeof(out)), 1, "%s", out);
	cr_expect(strstr(out, "\"state\":\"refused\"") != NULL, "%s", out);
	server_ask(s, "GET", "/health", STR_NULL, &(struct ask_opts){.key = ""}, &r);
	cr_expect(strstr(r.body.ptr, "\"degraded\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}
