#include "tests/probes/probe.h"

#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "ipc/fds.h"
#include "sandbox/cgroup/cgroup.h"

unsigned probes_passed, probes_failed;
static char current[128];
static bool current_failed, current_open;
static int64_t current_ms; /* its start */
static const char *filter;

static _Noreturn void
exec_spawner(int ctl, int init)
{
	/* As the master does: fixed numbers, nothing else, no environment. */
	int c = fcntl(ctl, F_DUPFD, 64), i = fcntl(init, F_DUPFD, 64), e = fcntl(2, F_DUPFD, 64);
	char without[16];
	(void)snprintf(without, sizeof(without), "%u", probe_mode.without);
	(void)setpgid(0, 0);
	if (!probe_delegate_join())
		_exit(124);
	if (probe_mode.is_plain && geteuid() == 0 &&
	    (setgroups(0, NULL) != 0 ||
		setresgid(PROBE_PLAIN_USER, PROBE_PLAIN_USER, PROBE_PLAIN_USER) != 0 ||
		setresuid(PROBE_PLAIN_USER, PROBE_PLAIN_USER, PROBE_PLAIN_USER) != 0))
		_exit(125);
	if (dup2(c, FD_CTL) < 0 || dup2(i, FD_INIT_EXE) < 0 || dup2(e, FD_LOG) < 0)
		_exit(126);
	const char *const argv[] = {"otari: spawner", "spawner", without, NULL};
	const char *const envp[] = {"PROBE_SECRET=hunter2", NULL};
	execve("/proc/self/exe", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
	_exit(127);
}

bool
probe_start(struct probe_host *h, const char *init_path, const struct sandbox_settings *s)
{
	int pair[2], worker[2], init = fd_open(init_path, O_RDONLY, 0);
	struct err e;
	memset(h, 0, sizeof(*h));
	if (init < 0 || !fd_socketpair_seqpacket(pair, false) ||
	    !fd_socketpair_seqpacket(worker, true)) {
		perror(init_path);
		return false;
	}
	h->spawner = fork();
	if (h->spawner == 0)
		exec_spawner(pair[1], init);
	fd_close(&pair[1]);
	fd_close(&init);
	h->ctl = pair[0];
	struct lease_settings m = {LEASE_MSG_SETTINGS, *s};
	struct lease_worker w = {LEASE_MSG_ADD_WORKER, 1};
	union lease_msg got;
	int fds[LEASE_FDS];
	size_t nfds;
	bool ok = lease_send(h->ctl, &m, NULL, 0, &e) == ERR_OK &&
		  lease_send(h->ctl, &w, &worker[1], 1, &e) == ERR_OK &&
		  lease_recv(h->ctl, &got, fds, &nfds, &e) == ERR_OK &&
		  got.type == LEASE_MSG_SELFTEST;
	fd_close(&worker[1]);
	if (!ok) {
		(void)fprintf(stderr, "spawner: %s\n", e.msg);
		fd_close(&worker[0]);
		return false;
	}
	h->report = got.selftest;
	h->base = event_base_new();
	h->worker = fd_dup(worker[0]);
	struct code_config cfg = {.timeout_ms = 10000,
	    .queue_ms = 5000,
	    .max_files = s->output_max_files,
	    .max_bytes = s->output_max_bytes,
	    .output_bytes = (uint32_t)s->output_bytes};
	return code_backend_new_local(h->base, worker[0], &cfg, &h->backend, &e) == ERR_OK;
}

void
probe_stop(struct probe_host *h)
{
	if (h->backend != NULL)
		code_backend_free(&h->backend);
	if (h->base != NULL)
		event_base_free(h->base);
	fd_close(&h->ctl);
	fd_close(&h->worker);
	(void)waitpid(h->spawner, NULL, 0);
	/* As the master does. */
	struct cgroup_places p;
	probe_places(&p);
	for (int i = 0; i < 100 && !cgroup_sweep(&p); i++)
		(void)usleep(20000);
}

/* --- waiting in line -----------------------------------------------------------------------------
 */
struct opened {
	struct code_session *s;
	struct err e;
	bool is_done;
};

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct opened *o = arg;
	o->s = s;
	if (e != NULL)
		o->e = *e;
	o->is_done = true;
}

struct code_session *
probe_open(struct probe_host *h, struct err *reterr)
{
	struct opened o = {0};
	(void)code_session_open(h->backend, STR("probe"), 0, on_open, &o);
	while (!o.is_done)
		(void)event_base_loop(h->base, EVLOOP_ONCE);
	if (o.s == NULL && reterr != NULL)
		*reterr = o.e;
	if (o.s == NULL)
		(void)fprintf(stderr, "open: %s\n", o.e.msg);
	return o.s;
}

static void
on_put(const struct err *e, void *arg)
{
	struct opened *o = arg;
	if (e != NULL)
		o->e = *e;
	o->is_done = true;
}

struct err
probe_put(
    struct probe_host *h, struct code_session *s, const char *name, const char *bytes, size_t n)
{
	struct opened o = {0};
	int fd = fd_memfd("seed");
	if (fd < 0 || fd_write_all(fd, str_n(bytes, n), NULL) != ERR_OK)
		abort();
	code_session_put(s, str_c(name), n, fd, on_put, &o);
	while (!o.is_done)
		(void)event_base_loop(h->base, EVLOOP_ONCE);
	return o.e;
}

static struct probe_file *
last_file(struct probe_result *r)
{
	return &r->files[r->file_count - 1];
}

static bool
on_file_begin(void *arg, struct str path, uint64_t size)
{
	struct probe_run *run = arg;
	struct probe_result *r = run->r;
	if (r->file_count == PROBE_FILES_MAX)
		return false;
	r->files[r->file_count++] = (struct probe_file){.size = size};
	(void)str_copy(last_file(r)->path, sizeof(last_file(r)->path), path);
	return true;
}

static void
on_file_data(void *arg, struct str bytes)
{
	struct probe_run *run = arg;
	last_file(run->r)->got += bytes.len;
	last_file(run->r)->crc ^= crc32_of(bytes);
}

static void
on_file_end(void *arg, bool is_whole)
{
	struct probe_run *run = arg;
	last_file(run->r)->is_whole = is_whole;
}

static void
keep(char *dst, size_t room, struct str s)
{
	size_t n = s.len < room - 1 ? s.len : room - 1;
	memcpy(dst, s.ptr, n);
	dst[n] = '\0';
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct probe_run *run = arg;
	struct probe_result *r = run->r;
	r->failed = c->failed != NULL;
	if (c->failed != NULL)
		keep(r->why, sizeof(r->why), str_c(c->failed->msg));
	r->timed_out = c->timed_out;
	r->died = c->died;
	r->return_code = c->return_code;
	keep(r->out, sizeof(r->out), c->out);
	keep(r->err, sizeof(r->err), c->err);
	r->out_len = c->out.len;
	r->out_total = c->out_total;
	r->err_total = c->err_total;
	r->omitted_count = c->omitted_count;
	r->omitted_total = c->omitted_total;
	r->omitted_reason = c->omitted_count > 0 ? (int)c->omitted[0].reason : -1;
	r->exec_ms = c->exec_ms;
	r->has_edit = c->edit != NULL;
	if (c->edit != NULL)
		r->edit = *c->edit;
	run->is_done = true;
}

static const struct code_run_ops ops = {on_file_begin, on_file_data, on_file_end, on_done};

void
probe_begin(struct code_session *s, enum code_kind kind, struct str code, uint32_t timeout_ms,
    struct probe_run *run, struct probe_result *ret)
{
	*run = (struct probe_run){ret, false};
	memset(ret, 0, sizeof(*ret));
	code_session_exec(s, kind, code, timeout_ms, &ops, run);
}

void
probe_wait(struct probe_host *h, struct probe_run *run)
{
	while (!run->is_done)
		(void)event_base_loop(h->base, EVLOOP_ONCE);
}

void
probe_edit(struct probe_host *h, struct code_session *s, const struct code_edit *e,
    struct probe_result *ret)
{
	struct probe_run run = {ret, false};
	memset(ret, 0, sizeof(*ret));
	code_session_edit(s, e, 0, &ops, &run);
	probe_wait(h, &run);
}

void
probe_begin_convert(struct code_session *s, enum code_extractor extractor, const char *name,
    uint32_t timeout_ms, struct probe_run *run, struct probe_result *ret)
{
	*run = (struct probe_run){ret, false};
	memset(ret, 0, sizeof(*ret));
	code_session_convert(s, extractor, str_c(name), timeout_ms, &ops, run);
}

void
probe_convert(struct probe_host *h, struct code_session *s, enum code_extractor extractor,
    const char *name, uint32_t timeout_ms, struct probe_result *ret)
{
	struct probe_run run;
	probe_begin_convert(s, extractor, name, timeout_ms, &run, ret);
	probe_wait(h, &run);
}

void
probe_run(struct probe_host *h, struct code_session *s, enum code_kind kind, struct str code,
    uint32_t timeout_ms, struct probe_result *ret)
{
	struct probe_run run;
	probe_begin(s, kind, code, timeout_ms, &run, ret);
	probe_wait(h, &run);
}

void
probe_exec(struct probe_host *h, struct code_session *s, const char *code, uint32_t timeout_ms,
    struct probe_result *ret)
{
	probe_run(h, s, CODE_PYTHON, str_c(code), timeout_ms, ret);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	(void)event_base_loopbreak(arg);
}

void
probe_turn(struct probe_host *h, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	(void)event_base_once(h->base, -1, EV_TIMEOUT, on_tick, h->base, &t);
	(void)event_base_dispatch(h->base);
}

unsigned
probe_count(const char *file, const char *text)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300], got[512];
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/%s", e->d_name, file);
		int fd = fd_open(path, O_RDONLY, 0);
		ssize_t len = fd < 0 ? 0 : read(fd, got, sizeof(got) - 1);
		fd_close(&fd);
		for (ssize_t i = 0; i < len; i++)
			if (got[i] == '\0')
				got[i] = ' ';
		got[len > 0 ? len : 0] = '\0';
		if (strstr(got, text) != NULL)
			n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

/* --- checks
 * ---------------------------------------------------------------------------------------- */
void
probe_name(const char *name)
{
	probe_end();
	(void)snprintf(current, sizeof(current), "%s", name);
	current_failed = false;
	current_open = true;
	current_ms = clock_mono_ms();
}

void
probe_end(void)
{
	if (!current_open)
		return;
	current_open = false;
	if (current_failed)
		probes_failed++;
	else
		probes_passed++;
	(void)printf("%s  %s: %s (%lld ms)\n", current_failed ? "FAIL" : "ok  ", probe_mode.name,
	    current, (long long)(clock_mono_ms() - current_ms));
	(void)fflush(stdout);
}

bool
probe_check(bool ok, const char *file, int line, const char *expr, const char *fmt, ...)
{
	if (ok)
		return true;
	current_failed = true;
	(void)printf("%s:%d: %s: %s: ", file, line, current, expr);
	va_list ap;
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)printf("\n");
	return false;
}

bool
probe_wants(const char *name)
{
	if (filter == NULL)
		filter = getenv("PROBES");
	return filter == NULL || strstr(name, filter) != NULL;
}
