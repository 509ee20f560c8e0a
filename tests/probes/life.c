/* life.c - who ends with whom, capacity, and how long things take */
#include <sys/socket.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static bool
gone_within(const char *marker, int ms)
{
	for (int64_t end = clock_mono_ms() + ms; clock_mono_ms() < end; (void)usleep(10000))
		if (probe_count("cmdline", marker) == 0)
			return true;
	return false;
}

static bool done_may_come;

static void
on_never(void *arg, const struct code_result *c)
{
	(void)arg, (void)c;
	EXPECT(done_may_come, "done of a closed session");
}

/* Starts `sleep MARKER` in a session and leaves it running. */
static struct code_session *
start_marked(struct probe_host *h, const char *marker)
{
	static const struct code_run_ops ops = {NULL, NULL, NULL, on_never};
	char code[128];
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return NULL;
	(void)snprintf(
	    code, sizeof(code), "import subprocess\nsubprocess.run(['sleep', '%s'])", marker);
	code_session_exec(s, CODE_PYTHON, str_c(code), 60000, &ops, NULL);
	for (int i = 0; i < 100 && probe_count("cmdline", marker) == 0; i++)
		probe_turn(h, 30);
	EXPECT(probe_count("cmdline", marker) > 0, "it did not start");
	return s;
}

static void
closing(struct probe_host *h)
{
	probe_name("closing a session ends what runs in it");
	struct code_session *s = start_marked(h, "4711.1");
	code_session_close(&s);
	EXPECT(gone_within("4711.1", 2000), "still there");

	probe_name("a worker that dies takes its sessions along");
	s = start_marked(h, "4711.2");
	(void)shutdown(h->worker, SHUT_RDWR);
	EXPECT(gone_within("4711.2", 2000), "still there");
	done_may_come = true;
	code_session_close(&s);
}

static void
on_open_count(struct code_session *s, const struct err *e, void *arg)
{
	struct code_session **p = arg;
	(void)e;
	*p = s;
}

struct busy {
	enum err_code code;
	bool is_done;
};

static void
on_open_busy(struct code_session *s, const struct err *e, void *arg)
{
	struct busy *b = arg;
	b->is_done = true;
	b->code = e != NULL ? e->code : ERR_OK;
	code_session_close(&s);
}

static void
capacity(struct probe_host *h)
{
	probe_name("at capacity an open waits, then is refused; a free one serves it");
	struct code_session *held[4] = {NULL};
	struct busy b = {0}, c = {0};
	for (size_t i = 0; i < 4; i++) {
		(void)code_session_open(h->backend, STR("w"), 5000, on_open_count, &held[i]);
		while (held[i] == NULL)
			(void)event_base_loop(h->base, EVLOOP_ONCE);
	}
	int64_t start = clock_mono_ms();
	(void)code_session_open(h->backend, STR("w"), 300, on_open_busy, &b);
	while (!b.is_done)
		(void)event_base_loop(h->base, EVLOOP_ONCE);
	int64_t took = clock_mono_ms() - start;
	EXPECT(b.code == ERR_BUSY && took >= 290 && took < 2500, "%d %lld", (int)b.code,
	    (long long)took);
	(void)code_session_open(h->backend, STR("w"), 5000, on_open_busy, &c);
	struct code_open *o = code_session_open(h->backend, STR("w"), 5000, on_open_busy, &b);
	probe_turn(h, 50);
	EXPECT(!c.is_done, "%d", (int)c.code);
	code_open_cancel(&o);
	code_session_close(&held[0]);
	while (!c.is_done)
		(void)event_base_loop(h->base, EVLOOP_ONCE);
	EXPECT(c.code == ERR_OK, "%d", (int)c.code);
	for (size_t i = 1; i < 4; i++)
		code_session_close(&held[i]);
}

struct waiter {
	struct code_session *s;
	unsigned *served;
	unsigned turn; /* 1: the first one served */
};

static void
on_open_turn(struct code_session *s, const struct err *e, void *arg)
{
	struct waiter *w = arg;
	EXPECT(s != NULL, "%s", e != NULL ? e->msg : "");
	w->s = s;
	w->turn = ++*w->served;
}

static void
turns(struct probe_host *h)
{
	enum { FLOOD = 12, ALL = 4 + FLOOD + 2 };
	static struct waiter all[ALL];
	unsigned served = 0;
	probe_name("a flood from one workspace does not hold up another");
	memset(all, 0, sizeof(all));
	for (size_t i = 0; i < ALL; i++) {
		struct str workspace = i < 4 + FLOOD ? STR("flood") : STR("other");
		all[i].served = &served;
		(void)code_session_open(h->backend, workspace, 60000, on_open_turn, &all[i]);
		while (i < 4 && served <= i)
			(void)event_base_loop(h->base, EVLOOP_ONCE);
	}
	for (unsigned closed = 0; closed < ALL; closed++) {
		for (size_t i = 0; i < ALL; i++)
			if (all[i].turn == closed + 1)
				code_session_close(&all[i].s);
		while (served < ALL && served <= closed + 4)
			(void)event_base_loop(h->base, EVLOOP_ONCE);
	}
	EXPECT(all[ALL - 2].turn <= 4 + 2, "it came as %u.", all[ALL - 2].turn);
	EXPECT(all[ALL - 1].turn <= 4 + 4, "it came as %u.", all[ALL - 1].turn);
}

struct storm {
	struct code_session *s;
	unsigned *done;
};

static bool
skip_file(void *arg, struct str path, uint64_t size)
{
	(void)arg, (void)path, (void)size;
	return false;
}

static void
on_storm_done(void *arg, const struct code_result *c)
{
	struct storm *st = arg;
	if (c->failed == NULL && str_eq(c->out, STR("4950\n")))
		(*st->done)++;
	code_session_close(&st->s);
}

static void
on_storm_open(struct code_session *s, const struct err *e, void *arg)
{
	static const struct code_run_ops ops = {skip_file, NULL, NULL, on_storm_done};
	struct storm *st = arg;
	EXPECT(s != NULL, "%s", e != NULL ? e->msg : "");
	st->s = s;
	if (s != NULL)
		code_session_exec(s, CODE_PYTHON,
		    STR("open('f', 'w').write('x')\n" /* K12: threads */
			"from concurrent.futures import ThreadPoolExecutor as T\n"
			"try: import pandas\nexcept ImportError: pass\n"
			"with T(8) as p: n = sum(p.map(int, range(100)))\nn"),
		    20000, &ops, st);
}

static void
storm(struct probe_host *h)
{
	enum { COUNT = 60 };
	static struct storm all[COUNT];
	unsigned done = 0;
	probe_name("sixty sessions through four places, and nothing is left of them" /* J7 */);
	probe_turn(h, 500);
	int before = probe_fds(probe_inner(h));
	for (size_t i = 0; i < COUNT; i++) {
		all[i].done = &done;
		(void)code_session_open(h->backend, STR("w"), 60000, on_storm_open, &all[i]);
	}
	for (int i = 0; i < 600 && code_backend_open_count(h->backend) + (done < COUNT) > 0; i++)
		probe_turn(h, 50);
	EXPECT(done == COUNT, "%u", done);
	probe_turn(h, 1000);
	EXPECT(probe_fds(probe_inner(h)) == before, "%d descriptors, %d before",
	    probe_fds(probe_inner(h)), before);
}

static void
killed_spawner(const char *init_path, const struct sandbox_settings *set)
{
	struct probe_host h;
	probe_name("kill -9 of the spawner leaves no process");
	if (!EXPECT(probe_start(&h, init_path, set), "no start"))
		return;
	struct code_session *s = start_marked(&h, "4711.3");
	(void)kill(h.spawner, SIGKILL);
	EXPECT(gone_within("4711.3", 2000), "still there");
	probe_exec(&h, s, "1", 1000, &r);
	EXPECT(r.failed, "a dead session answered");
	struct str why;
	EXPECT(!code_backend_ready(h.backend, &why) && why.len > 0, "ready without a spawner");
	code_session_close(&s);
	probe_stop(&h);
}

static void
killed_master(const char *init_path, const struct sandbox_settings *set)
{
	probe_name("kill -9 of the master leaves no process");
	int ready[2];
	if (!fd_pipe(ready, false))
		return;
	pid_t pid = fork();
	if (pid == 0) {
		struct probe_host h;
		if (probe_start(&h, init_path, set) && start_marked(&h, "4711.4") != NULL)
			(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	char c;
	fd_close(&ready[1]);
	EXPECT(read(ready[0], &c, 1) == 1, "not started");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	EXPECT(gone_within("4711.4", 2000), "still there");
	fd_close(&ready[0]);
}

static void
refusals(const char *init_path, const struct sandbox_settings *set)
{
	struct probe_host h;
	struct sandbox_settings s = *set;
	(void)str_copy(s.python, sizeof(s.python), STR("/usr/bin/no-such-python"));
	probe_name("without an interpreter every lease is refused by name" /* K17 */);
	if (EXPECT(probe_start(&h, init_path, &s), "no start")) {
		struct err e = {0};
		struct code_session *none = probe_open(&h, &e);
		struct str why;
		EXPECT(none == NULL && e.code == ERR_UNSUPPORTED, "%d", (int)e.code);
		EXPECT(strstr(e.msg, "layer=interpreter errno=ENOENT") != NULL, "%s", e.msg);
		EXPECT(!code_backend_ready(h.backend, &why), "ready");
		probe_stop(&h);
	}
}

void
probes_life(struct probe_host *h, const char *init_path)
{
	struct sandbox_settings set;
	int before = fd_count_open();
	probe_settings(&set);
	set.max_sessions = 4;
	if (!probe_start(h, init_path, &set))
		return;
	capacity(h);
	turns(h);
	storm(h);
	closing(h);
	probe_stop(h);
	killed_spawner(init_path, &set);
	killed_master(init_path, &set);
	refusals(init_path, &set);
	probe_name("no descriptor is left behind");
	EXPECT(fd_count_open() == before, "%d, %d before", fd_count_open(), before);
}

/* --- figures
 * --------------------------------------------------------------------------------------- */
static int
cmp_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void
print_times(const char *what, int64_t *us, size_t n)
{
	qsort(us, n, sizeof(us[0]), cmp_i64);
	(void)printf("measured  %-34s p50 %6.2f ms  p90 %6.2f  p99 %6.2f  max %6.2f  n=%zu\n", what,
	    (double)us[n / 2] / 1e3, (double)us[n * 9 / 10] / 1e3, (double)us[n * 99 / 100] / 1e3,
	    (double)us[n - 1] / 1e3, n);
}

/* One after the other, each used once, with nothing between them: the pool never rests. */
static void
measure_rate(struct probe_host *h)
{
	enum { COUNT = 100 };
	int64_t open[COUNT], start = clock_mono_us();
	for (size_t i = 0; i < COUNT; i++) {
		int64_t t0 = clock_mono_us();
		struct code_session *s = probe_open(h, NULL);
		open[i] = clock_mono_us() - t0;
		probe_exec(h, s, "print(1)", 0, &r);
		code_session_close(&s);
	}
	double seconds = (double)(clock_mono_us() - start) / 1e6;
	print_times("session open, while the pool refills", open, COUNT);
	(void)printf("measured  sessions one after another         %.1f a second  n=%d\n",
	    COUNT / seconds, COUNT);
}

/* Beside each other, so that the host is as busy for all. */
static void
measure_kinds(struct probe_host *h)
{
	enum { CALLS = 100 };
	const struct code_edit view = {.command = CODE_EDIT_VIEW, .path = STR("a.txt")};
	const struct code_edit swap = {.command = CODE_EDIT_STR_REPLACE,
	    .path = STR("a.txt"),
	    .old = STR("line 7\n"),
	    .text = STR("line 7\n")};
	static const char *const names[] = {
	    "print(1)", "bash: echo hi", "bash: ls | wc -l", "edit: view", "edit: str_replace"};
	int64_t took[5][CALLS];
	struct code_session *s = probe_open(h, NULL);
	probe_exec(
	    h, s, "open('a.txt', 'w').writelines('line %d\\n' % i for i in range(100))", 0, &r);
	for (size_t i = 0; i < CALLS; i++) {
		int64_t t[6] = {clock_mono_us()};
		probe_exec(h, s, "print(1)", 0, &r);
		t[1] = clock_mono_us();
		probe_run(h, s, CODE_BASH, STR("echo hi"), 0, &r);
		t[2] = clock_mono_us();
		probe_run(h, s, CODE_BASH, STR("ls | wc -l"), 0, &r);
		t[3] = clock_mono_us();
		probe_edit(h, s, &view, &r);
		t[4] = clock_mono_us();
		probe_edit(h, s, &swap, &r);
		t[5] = clock_mono_us();
		for (size_t k = 0; k < 5; k++)
			took[k][i] = t[k + 1] - t[k];
	}
	EXPECT(r.has_edit && r.edit.error == CODE_EDIT_OK, "%d", (int)r.edit.error);
	code_session_close(&s);
	for (size_t k = 0; k < 5; k++)
		print_times(names[k], took[k], CALLS);
}

void
probes_measure(struct probe_host *h)
{
	enum { OPENS = 30, CALLS = 300 };
	int64_t pool[OPENS], cold[OPENS], first[OPENS], call[CALLS];
	size_t colds = 0;
	for (size_t i = 0; i < OPENS; i++) {
		probe_turn(h, 200); /* the pool fills */
		int64_t t0 = clock_mono_us();
		struct code_session *s = probe_open(h, NULL);
		int64_t t1 = clock_mono_us();
		probe_exec(h, s, "print(1)", 0, &r);
		pool[i] = t1 - t0;
		first[i] = clock_mono_us() - t1;
		code_session_close(&s);
	}
	struct code_session *held[8] = {NULL};
	while (colds < OPENS) {
		/* Two are warm; what comes after them is made now. */
		for (size_t k = 0; k < 6; k++) {
			int64_t t0 = clock_mono_us();
			held[k] = probe_open(h, NULL);
			if (k >= 3 && colds < OPENS)
				cold[colds++] = clock_mono_us() - t0;
		}
		for (size_t k = 0; k < 6; k++)
			code_session_close(&held[k]);
		probe_turn(h, 100);
	}
	struct code_session *s = probe_open(h, NULL);
	for (size_t i = 0; i < CALLS; i++) {
		int64_t t0 = clock_mono_us();
		probe_exec(h, s, "print(1)", 0, &r);
		call[i] = clock_mono_us() - t0;
	}
	code_session_close(&s);
	int64_t chart[3];
	size_t charts = 0;
	for (; charts < 3; charts++) {
		s = probe_open(h, NULL);
		probe_exec(h, s,
		    "import pandas as pd, matplotlib.pyplot as plt\n"
		    "pd.DataFrame({'a': [1, 2, 3]}).plot()\nplt.savefig('a.png')",
		    60000, &r);
		chart[charts] = (int64_t)r.exec_ms * 1000;
		bool is_drawn = r.file_count == 1;
		code_session_close(&s);
		if (!is_drawn)
			break;
	}
	if (charts == 3)
		print_times("first call with pandas and a chart", chart, 3);
	print_times("session open, pool filled", pool, OPENS);
	print_times("session open, made for the request", cold, OPENS);
	print_times("print(1), first call", first, OPENS);
	print_times("print(1), later calls", call, CALLS);
	measure_kinds(h);
	measure_rate(h);
}
