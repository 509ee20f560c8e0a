/* probes - attempts to break out of, or to wear out, a sandbox session
 *
 *   probes INIT        runs them all on a spawner of its own (INIT: the otari-init program)
 *   PROBES_ROOTFS=DIR  in sessions of that root; PROBES_ONE_UID=1  as root, without a uid range
 *   PROBES_COLD=1      without a zygote
 *   PROBES_RUN=FILE    runs that Python file in a session and shows what came of it
 *   PROBES=text        only the groups whose name holds the text (python bash edit escape abuse
 * files life filler)
 *
 * Without user namespaces it says SKIPPED; OTARI_TEST_REQUIRE=sandbox makes that a failure.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/spawner/spawner.h"
#include "tests/probes/probe.h"

static void
print_layers(const struct lease_selftest *r)
{
	for (size_t i = 0; i < SB_LAYERS_; i++)
		(void)printf("layer %-26s %-9s %s\n", lease_layer_name((enum sandbox_layer)i),
		    lease_layer_state_name(r->layer[i].state), r->layer[i].text);
}

static int
skip(const char *why)
{
	const char *need = getenv("OTARI_TEST_REQUIRE");
	bool must = need != NULL && strstr(need, "sandbox") != NULL;
	(void)printf(
	    "%s sandbox (%s)\n0 passed, %d failed\n", must ? "FAILED" : "SKIPPED", why, must);
	return must ? 1 : 0;
}

/* One file of Python in a session, as a model's call would run. */
static int
run_file(struct probe_host *h, const char *path)
{
	static struct probe_result r;
	char *text = NULL;
	size_t len;
	struct err e;
	struct code_session *s = probe_open(h, &e);
	if (s == NULL || fd_read_file(path, CODE_SOURCE_MAX, &text, &len, &e) != ERR_OK) {
		(void)fprintf(stderr, "%s\n", e.msg);
	} else {
		probe_exec(h, s, text, 120000, &r);
		(void)printf("%s%s", r.out, r.err);
		for (size_t i = 0; i < r.file_count; i++)
			(void)printf(
			    "file %s %llu\n", r.files[i].path, (unsigned long long)r.files[i].size);
		(void)printf("return code %d, %u ms%s%s\n", r.return_code, r.exec_ms,
		    r.failed ? ", failed: " : "", r.why);
	}
	mem_free(text);
	code_session_close(&s);
	probe_stop(h);
	return r.return_code;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "spawner") == 0)
		return spawner_main(argc, argv);
	char default_init[512];
	ssize_t n = readlink("/proc/self/exe", default_init, sizeof(default_init) - 16);
	if (n <= 0)
		return 1;
	default_init[n] = '\0';
	char *slash = strrchr(default_init, '/');
	(void)snprintf(slash, 16, "/otari-init");
	const char *init = argc > 1 ? argv[1] : default_init;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	log_setup(2, false, LOG_NOTICE, "probes");
	struct sandbox_settings s;
	struct probe_host h;
	sandbox_settings_default(&s);
	s.log_json = 0;
	if (geteuid() == 0 && getenv("PROBES_ONE_UID") == NULL)
		s.uid_base = 0x20000000;
	if (getenv("PROBES_ROOTFS") != NULL)
		(void)snprintf(s.rootfs, sizeof(s.rootfs), "%s", getenv("PROBES_ROOTFS"));
	if (getenv("PROBES_COLD") != NULL)
		(void)snprintf(s.preload, sizeof(s.preload), LEASE_NO_ZYGOTE);
	if (!probe_start(&h, init, &s))
		return 1;
	print_layers(&h.report);
	if (h.report.refused != 0) {
		int rc = skip(h.report.text);
		probe_stop(&h);
		return rc;
	}
	bool is_one_file = getenv("PROBES_RUN") != NULL;
	if (getenv("PROBES_COLD") == NULL && is_one_file)
		(void)probe_wait_zygote(&h, 60000);
	else if (getenv("PROBES_COLD") == NULL)
		probes_zygote(&h); /* first: the others are to run in its children */
	if (is_one_file)
		return run_file(&h, getenv("PROBES_RUN"));
	if (probe_wants("python"))
		probes_python(&h);
	if (probe_wants("bash"))
		probes_bash(&h);
	if (probe_wants("edit"))
		probes_edit(&h);
	if (probe_wants("escape"))
		probes_escape(&h);
	if (probe_wants("files"))
		probes_files(&h);
	if (probe_wants("abuse"))
		probes_abuse(&h);
	if (probe_wants("measure"))
		probes_measure(&h);
	probe_end();
	probe_stop(&h);
	if (probe_wants("life"))
		probes_life(&h, init);
	if (probe_wants("filler"))
		probes_filler(&h, init);
	probe_end();
	(void)printf("%u passed, %u failed\n", probes_passed, probes_failed);
	return probes_failed == 0 ? 0 : 1;
}
