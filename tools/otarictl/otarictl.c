/* otarictl.c - asks a running otari over its control socket
 *
 * otarictl [-c FILE] [-s SOCKET] [--json] status | generation | sandbox check | reload | drain
 *
 * Process: its own, short-lived. Exit status: 0 done, 1 refused or failed (sandbox check: also when
 * no code can run), 2 wrong usage.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "ipc/control_client.h"

#define CONF_DEFAULT     "/etc/otari/otari.conf"
#define ANSWER_MAX_BYTES (256u * 1024u)
#define ARENA_BYTES      (16u * 1024u * 1024u)
/* A reload waits for its build and for the workers. */
#define WAIT_MS 70000

static int
usage(FILE *out)
{
	(void)fprintf(out,
	    "usage: otarictl [-c FILE] [-s SOCKET] [--json] COMMAND\n"
	    "  -c FILE    otari's configuration (default " CONF_DEFAULT
	    "), for its control_socket\n"
	    "  -s SOCKET  the control socket itself\n"
	    "  --json     the answer as it came\n"
	    "commands:\n"
	    "  status         what runs\n"
	    "  generation     number of the state in force\n"
	    "  sandbox check  walls of the code sandbox, and how to get those that are missing\n"
	    "  reload         read the configuration again; waits until it is in force\n"
	    "  drain          finish running requests and stop\n");
	return out == stdout ? 0 : 2;
}

/* --- finding the socket ---------------------------------------------------------------------- */

static bool
socket_of_conf(const char *path, char *dst, size_t size)
{
	struct err e;
	if (conf_find_control(path, environ, dst, size, &e) == ERR_OK)
		return true;
	(void)fprintf(stderr, "otarictl: %s (use -s SOCKET)\n", e.msg);
	return false;
}

/* Returns the answer's bytes, or -1 after saying why. */
static ssize_t
ask(const char *path, const char *command, char *dst, size_t size)
{
	struct err e = {0};
	size_t len;
	if (control_ask(path, command, WAIT_MS, dst, size, &len, NULL, &e) == ERR_OK)
		return (ssize_t)len;
	bool absent = e.sys_errno == ECONNREFUSED || e.sys_errno == ENOENT;
	(void)fprintf(stderr, "otarictl: %s%s\n", e.msg, absent ? " (is otari running?)" : "");
	return -1;
}

/* --- showing --------------------------------------------------------------------------------- */

static struct str
text_of(struct arena *a, struct jval object, const char *key)
{
	struct str s = jv_str(a, jv_get(object, key));
	return s.ptr != NULL ? s : STR("");
}

static long long
number_of(struct jval object, const char *key)
{
	return (long long)jv_i64_or(jv_get(object, key), 0);
}

static void
show_children(struct arena *a, struct jval root)
{
	struct jiter it = {0};
	(void)printf("\n%-10s %8s %-9s %8s %6s %6s %6s %9s\n", "PROCESS", "PID", "STATE", "AGE",
	    "STARTS", "POLICY", "CONNS", "REQUESTS");
	while (jv_next(jv_get(root, "children"), &it)) {
		struct jval c = it.value;
		char name[40];
		struct str role = text_of(a, c, "role"), state = text_of(a, c, "state");
		bool is_worker = jv_present(jv_get(c, "connections"));
		if (number_of(c, "number") > 0)
			(void)snprintf(
			    name, sizeof(name), "%.*s %lld", STR_FMT(role), number_of(c, "number"));
		else
			(void)snprintf(name, sizeof(name), "%.*s", STR_FMT(role));
		(void)printf("%-10s %8lld %-9.*s %7llds %6lld", name, number_of(c, "pid"),
		    STR_FMT(state), number_of(c, "age_s"), number_of(c, "starts"));
		if (is_worker)
			(void)printf(" %6lld %6lld %9lld", number_of(c, "policy_generation"),
			    number_of(c, "connections"), number_of(c, "requests"));
		(void)printf("\n");
	}
}

static void
show_status(struct arena *a, struct jval root)
{
	struct str host = text_of(a, root, "host"), phase = text_of(a, root, "phase");
	struct str version = text_of(a, root, "version"), conf = text_of(a, root, "conf");
	struct str sandbox = text_of(a, jv_get(root, "sandbox"), "state");
	struct str error = text_of(a, root, "last_reload_error");
	(void)printf("otari %.*s, %.*s (pid %lld)\n", STR_FMT(version), STR_FMT(phase),
	    number_of(root, "pid"));
	(void)printf("listening   %.*s port %lld", STR_FMT(host), number_of(root, "port"));
	if (jv_present(jv_get(root, "admin_port")))
		(void)printf(", admin port %lld", number_of(root, "admin_port"));
	(void)printf("\nconfig      %.*s\n", STR_FMT(conf));
	(void)printf("generation  %lld%s\n", number_of(root, "generation"),
	    jv_bool(jv_get(root, "is_settled"), false) ? ", in force everywhere" : ", on its way");
	(void)printf("sandbox     %.*s\n", STR_FMT(sandbox));
	if (error.len > 0)
		(void)printf("last reload failed: %.*s\n", STR_FMT(error));
	show_children(a, root);
}

static void
show_sandbox_state(struct arena *a, struct jval s)
{
	struct jval z = jv_get(s, "zygote"), p = jv_get(s, "pool");
	struct str kernel = text_of(a, s, "kernel"), state = text_of(a, z, "state");
	struct str why = text_of(a, z, "text");
	if (kernel.len > 0)
		(void)printf("  %-25s %.*s\n", "kernel", STR_FMT(kernel));
	if (!jv_present(z))
		return;
	(void)printf("  %-25s %-9.*s %.*s%s%lld interpreters, %lld failures\n", "zygote",
	    STR_FMT(state), STR_FMT(why), why.len > 0 ? "; " : "", number_of(z, "interpreters"),
	    number_of(z, "failures"));
	(void)printf("  %-25s %lld ready, %lld leased, %lld starting, of %lld; %lld waiting\n",
	    "sessions", number_of(p, "ready"), number_of(p, "leased"), number_of(p, "starting"),
	    number_of(p, "max"), number_of(p, "waiting"));
	(void)printf("  %-25s %lld, %.1f ms each; %lld failed\n", "made since start",
	    number_of(p, "made"), (double)number_of(p, "made_mean_us") / 1e3,
	    number_of(p, "failed"));
}

/* 1 when no code can run. */
static int
sandbox_status(struct arena *a, struct jval root)
{
	struct jval s = jv_get(root, "sandbox");
	bool is_remote = str_eq(text_of(a, s, "state"), STR("remote"));
	bool is_ready = str_eq(text_of(a, s, "state"), STR("ready"));
	return is_ready || (is_remote && jv_bool(jv_get(s, "runs_code"), false)) ? 0 : 1;
}

static int
show_sandbox(struct arena *a, struct jval root)
{
	struct jval s = jv_get(root, "sandbox");
	struct jiter it = {0};
	struct str state = text_of(a, s, "state"), why = text_of(a, s, "text");
	struct str url = text_of(a, s, "url");
	if (url.len > 0) {
		bool ok = jv_bool(jv_get(s, "runs_code"), false);
		(void)printf("sandbox: remote, %.*s\n%s: %.*s\n", STR_FMT(url),
		    ok ? "tried by a worker" : "not usable", STR_FMT(why));
		return ok ? 0 : 1;
	}
	(void)printf("sandbox: %.*s\n", STR_FMT(state));
	if (why.len > 0)
		(void)printf("%.*s\n", STR_FMT(why));
	show_sandbox_state(a, s);
	while (jv_next(jv_get(s, "layers"), &it)) {
		struct str name = text_of(a, it.value, "name");
		struct str now = text_of(a, it.value, "state");
		struct str text = text_of(a, it.value, "text");
		struct str hint = text_of(a, it.value, "hint");
		(void)printf("  %-25.*s %-9.*s %.*s\n", STR_FMT(name), STR_FMT(now), STR_FMT(text));
		if (hint.len > 0 && !str_eq(hint, text))
			(void)printf("  %-25s           to get it: %.*s\n", "", STR_FMT(hint));
	}
	return sandbox_status(a, root);
}

static int
show(const char *command, struct str answer, bool as_json)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct jval root;
	struct err e;
	int status = 0;
	if (jdoc_parse(a, answer, &root, &e) != ERR_OK) {
		(void)fprintf(stderr, "otarictl: the answer is no JSON: %s\n", e.msg);
		arena_free(&a);
		return 1;
	}
	bool ok = jv_bool(jv_get(root, "ok"), false);
	bool is_check = str_eq(str_c(command), STR("sandbox check"));
	if (as_json) {
		(void)printf("%.*s\n", STR_FMT(answer));
		status = !ok || (is_check && sandbox_status(a, root) != 0);
	} else if (!ok) {
		struct str error = text_of(a, root, "error");
		(void)fprintf(stderr, "otarictl: %.*s\n", STR_FMT(error));
		status = 1;
	} else if (str_eq(str_c(command), STR("status"))) {
		show_status(a, root);
	} else if (is_check) {
		status = show_sandbox(a, root);
	} else if (str_eq(str_c(command), STR("drain"))) {
		(void)printf("draining\n");
	} else {
		(void)printf("%lld\n", number_of(root, "generation"));
	}
	arena_free(&a);
	return status;
}

/* --- options --------------------------------------------------------------------------------- */

static bool
join_command(int argc, char **argv, char *dst, size_t size)
{
	static const char *const commands[] = {
	    "status", "generation", "sandbox check", "reload", "drain"};
	size_t n = 0;
	dst[0] = '\0';
	for (int i = 0; i < argc; i++) {
		int k = snprintf(dst + n, size - n, "%s%s", i > 0 ? " " : "", argv[i]);
		if (k < 0 || (size_t)k >= size - n)
			return false;
		n += (size_t)k;
	}
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(str_c(dst), str_c(commands[i])))
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
	    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *conf = CONF_DEFAULT;
	char path[PATH_MAX] = "", command[64];
	bool as_json = false;
	for (int c; (c = getopt_long(argc, argv, "c:s:h", longs, NULL)) != -1;) {
		switch (c) {
		case 'c':
			conf = optarg;
			break;
		case 's':
			if (!str_copy(path, sizeof(path), str_c(optarg)))
				return usage(stderr);
			break;
		case 'j':
			as_json = true;
			break;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (!join_command(argc - optind, argv + optind, command, sizeof(command)))
		return usage(stderr);
	if (path[0] == '\0' && !socket_of_conf(conf, path, sizeof(path)))
		return 1;
	char *answer = mem_alloc(ANSWER_MAX_BYTES);
	ssize_t n = ask(path, command, answer, ANSWER_MAX_BYTES);
	int status = n > 0 ? show(command, str_n(answer, (size_t)n), as_json) : 1;
	mem_free(answer);
	return status;
}
