/* probes - attempts to break out of, or to wear out, a sandbox session
 *
 *   probes INIT        runs them all on spawners of its own (INIT: the otari-init program)
 *   PROBES_MODE=a,b+c  in these modes only (tests/probes/modes.c; "best" is the usual one)
 *   PROBES_ROOTFS=DIR  in sessions of that root
 *   PROBES_RUN=FILE    runs that Python file in a session and shows what came of it
 *   PROBES=text        only the groups whose name holds the text (zygote python bash edit convert
 * mixed escape pair inside files abuse exhaust measure bounds life filler)
 *
 * Without user namespaces it says SKIPPED; OTARI_TEST_REQUIRE=sandbox makes that a failure.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/jail/jail.h"
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

/* In which modes a group runs. What has to do with no wall that a host may lack: once; what is only
 * figures: when it is named. */
enum breadth { ASKED, ONCE, PAIRS, BARE_TOO };

static const struct {
	const char *name;
	void (*run)(struct probe_host *h);
	enum breadth breadth;
} groups[] = {{"python", probes_python, PAIRS}, {"bash", probes_bash, PAIRS},
    {"edit", probes_edit, PAIRS}, {"convert", probes_convert, ONCE}, {"mixed", probes_mixed, ONCE},
    {"escape", probes_escape, BARE_TOO}, {"pair", probes_pair, BARE_TOO},
    {"inside", probes_inside, PAIRS}, {"files", probes_files, PAIRS},
    {"abuse", probes_abuse, PAIRS}, {"exhaust", probes_exhaust, PAIRS},
    {"measure", probes_measure, ASKED}};

static bool
is_in_mode(const struct probe_mode *m, enum breadth b)
{
	if ((m->without & JAIL_WITHOUT_SECCOMP) != 0)
		return b == BARE_TOO;
	return b >= PAIRS || (b == ONCE && strcmp(m->name, "best") == 0);
}

static bool
is_for(const char *name, enum breadth b)
{
	if (b == ASKED)
		return getenv("PROBES") != NULL && probe_wants(name);
	return probe_wants(name) && (is_in_mode(&probe_mode, b) || probe_is_thorough());
}

/* Whoever takes a row out of the matrix, or a group out of a row, is told. */
static void
pairs(void)
{
	struct probe_mode all[PROBE_MODES_MAX], rows[PROBE_MODES_MAX];
	size_t n = probe_matrix(all);
	for (int b = PAIRS; b <= BARE_TOO; b++) {
		char missing[64] = "";
		size_t count = 0;
		probe_name(b == PAIRS ? "every pair of what a host has or lacks is in the matrix"
				      : "with and without the filter, where the walls are tried");
		for (size_t i = 0; i < n; i++)
			if (is_in_mode(&all[i], (enum breadth)b))
				rows[count++] = all[i];
		EXPECT(probe_rows_cover(rows, count, b == BARE_TOO, missing, sizeof(missing)), "%s",
		    missing);
	}
	probe_end();
}

static void
took(const char *name, int64_t since_ms)
{
	probe_end();
	(void)printf("took      %s: %s %lld ms\n", probe_mode.name, name,
	    (long long)(clock_mono_ms() - since_ms));
}

/* A plain user's own cgroups. False: there are none here, and the mode is left out. */
static bool
has_delegated(const struct lease_selftest *r)
{
	const char *need = getenv("OTARI_TEST_REQUIRE");
	if (!probe_mode.is_delegated || r->layer[SB_MEMORY_CGROUP].state == SB_ACTIVE)
		return true;
	(void)printf("SKIPPED %s (%s)\n", probe_mode.name, r->layer[SB_MEMORY_CGROUP].text);
	probe_name("a plain user's daemon has the cgroups that this run requires");
	EXPECT(need == NULL || strstr(need, "cgroup") == NULL, "it has none");
	probe_end();
	return false;
}

static void
run_groups(const char *init, struct probe_host *h)
{
	int64_t began = clock_mono_ms();
	if (!probe_mode.is_cold)
		probes_zygote(h); /* first: the others are to run in its children */
	took("zygote", began);
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		if (!is_for(groups[i].name, groups[i].breadth))
			continue;
		began = clock_mono_ms();
		groups[i].run(h);
		took(groups[i].name, began);
	}
	probe_end();
	probe_stop(h);
	began = clock_mono_ms();
	if (is_for("bounds", PAIRS))
		probes_bounds(init);
	took("bounds", began);
	began = clock_mono_ms();
	if (is_for("life", PAIRS))
		probes_life(h, init);
	took("life", began);
	began = clock_mono_ms();
	if (is_for("zygote", ONCE))
		probes_followed(init);
	if (is_for("filler", ONCE))
		probes_filler(h, init);
	took("the rest", began);
}

/* All groups in one mode. False: nothing could be tried, and that is to be the exit status. */
static bool
run_mode(const char *init, int *ret_code)
{
	struct sandbox_settings s;
	struct probe_host h;
	probe_settings(&s);
	if (probe_mode.is_delegated && !probe_delegate())
		(void)printf("no cgroup for a plain user: %s\n", strerror(errno));
	if (!probe_start(&h, init, &s)) {
		*ret_code = 1;
		return false;
	}
	(void)printf("mode %s\n", probe_mode.name);
	print_layers(&h.report);
	if (h.report.refused != 0) {
		*ret_code = skip(h.report.text);
		probe_stop(&h);
		return false;
	}
	if (getenv("PROBES_RUN") != NULL) {
		if (!probe_mode.is_cold)
			(void)probe_wait_zygote(&h, 60000);
		*ret_code = run_file(&h, getenv("PROBES_RUN"));
		return false;
	}
	if (has_delegated(&h.report))
		run_groups(init, &h);
	else
		probe_stop(&h);
	if (probe_mode.is_delegated) {
		probe_name("a plain user's cgroups are empty in the end");
		EXPECT(probe_delegate_end(), "%s", strerror(errno));
		probe_end();
	}
	return true;
}

int
main(int argc, char **argv)
{
	uint64_t without = 0;
	if (argc == 3 && strcmp(argv[1], "spawner") == 0 && str_u64(str_c(argv[2]), &without))
		return spawner_main_without((unsigned)without, argc, argv);
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
	struct probe_mode modes[PROBE_MODES_MAX];
	size_t count = probe_modes(modes);
	int code = 0;
	pairs();
	for (size_t i = 0; i < count; i++) {
		probe_mode = modes[i];
		if (!run_mode(init, &code))
			return code;
	}
	(void)printf("%u passed, %u failed\n", probes_passed, probes_failed);
	return probes_failed == 0 && count > 0 ? 0 : 1;
}
