/* sandbox.c - figures of the sandbox by itself: leases of the real spawner, calls, sessions a
 * second, memory, and bubblewrap in the same run
 *
 *   bench-sandbox           with a zygote of the standard library
 *   bench-sandbox data      with what sandbox_preload loads by default, where it is installed
 *
 * Process: plays master and worker, as the probes do. Prints a Markdown table.
 */
#include <sys/utsname.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/spawner/spawner.h"
#include "tests/probes/probe.h"

#define POOL    16
#define N_MAX   300
#define N_BWRAP 30

static struct probe_result result;
static int worker = -1; /* a channel of our own, without a loop between */
static uint64_t last_id;

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
	(void)printf("| %s | %.3f | %.3f | %.3f | %.3f | %zu |\n", what, (double)us[n / 2] / 1e3,
	    (double)us[n * 9 / 10] / 1e3, (double)us[n * 99 / 100] / 1e3, (double)us[n - 1] / 1e3,
	    n);
	(void)fflush(stdout);
}

static void
die(const char *why)
{
	(void)fprintf(stderr, "bench-sandbox: %s\n", why);
	exit(1);
}

/* --- leases over a channel of our own ----------------------------------------------------------
 */
static void
ask(void)
{
	struct err e;
	struct lease_request r = {.type = LEASE_MSG_LEASE, .queue_ms = 30000, .id = ++last_id};
	if (lease_send(worker, &r, NULL, 0, &e) != ERR_OK)
		die(e.msg);
}

/* The id of the lease that was given; its descriptors in fds. */
static uint64_t
answer(int fds[LEASE_FDS])
{
	union lease_msg m;
	size_t nfds;
	struct err e;
	do
		if (lease_recv(worker, &m, fds, &nfds, &e) != ERR_OK)
			die(e.msg);
	while (m.type == LEASE_MSG_STATE);
	if (m.type != LEASE_MSG_ANSWER || m.answer.status != LEASE_OK || nfds != LEASE_FDS)
		die(m.type == LEASE_MSG_ANSWER ? m.answer.text : "nonsense");
	return m.answer.id;
}

static void
give_back(uint64_t id, int fds[LEASE_FDS])
{
	struct err e;
	struct lease_release r = {.type = LEASE_MSG_RELEASE, .id = id};
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&fds[i]);
	if (lease_send(worker, &r, NULL, 0, &e) != ERR_OK)
		die(e.msg);
}

static void
start(struct probe_host *h, const char *init, const struct sandbox_settings *s)
{
	int pair[2];
	struct err e;
	struct lease_worker w = {LEASE_MSG_ADD_WORKER, 2};
	if (!probe_start(h, init, s) || h->report.refused != 0)
		die(h->report.refused != 0 ? h->report.text : "no spawner");
	if (!fd_socketpair_seqpacket(pair, false) ||
	    lease_send(h->ctl, &w, &pair[1], 1, &e) != ERR_OK)
		die("no channel");
	fd_close(&pair[1]);
	worker = pair[0];
	(void)fd_set_nonblock(h->ctl, true);
	if (!probe_wait_zygote(h, 120000))
		die("no zygote");
}

static void
stop(struct probe_host *h)
{
	struct err e;
	struct lease_worker m = {LEASE_MSG_STOP, 0};
	(void)!lease_send(h->ctl, &m, NULL, 0, &e);
	(void)waitid(P_PID, (id_t)h->spawner, &(siginfo_t){0}, WEXITED | WNOWAIT);
	fd_close(&worker);
	probe_stop(h);
}

/* Until the pool is full and its sessions have come to rest. */
static void
wait_full(struct probe_host *h)
{
	static struct lease_stats last;
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds;
	struct err e;
	/* It tells a second after a change how things stand. */
	(void)usleep(1100000);
	for (;;) {
		while (lease_recv(h->ctl, &m, fds, &nfds, &e) == ERR_OK)
			if (m.type == LEASE_MSG_STATS)
				last = m.stats;
		if (last.ready >= POOL && last.starting == 0)
			return;
		(void)usleep(20000);
	}
}

/* A process that says back what it hears: the floor, at the load of the moment. */
static int
start_echo(void)
{
	int pair[2];
	char c;
	if (!fd_socketpair_seqpacket(pair, false))
		die("no echo");
	if (fork() == 0) {
		fd_close(&pair[0]);
		while (read(pair[1], &c, 1) == 1 && write(pair[1], &c, 1) == 1)
			;
		_exit(0);
	}
	fd_close(&pair[1]);
	return pair[0];
}

static int64_t
ask_echo(int fd)
{
	char c = 'e';
	int64_t t0 = clock_mono_us();
	if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
		die("no echo");
	return clock_mono_us() - t0;
}

static void
leases_idle(struct probe_host *h)
{
	int64_t us[N_MAX], floor_us[N_MAX];
	int echo = start_echo();
	for (size_t i = 0; i < N_MAX; i++) {
		int fds[LEASE_FDS];
		if (i % 20 == 0)
			wait_full(h);
		(void)usleep(75000);
		floor_us[i] = ask_echo(echo);
		(void)usleep(75000); /* time for one to end and one to be made */
		int64_t t0 = clock_mono_us();
		ask();
		uint64_t id = answer(fds);
		us[i] = clock_mono_us() - t0;
		give_back(id, fds);
	}
	fd_close(&echo);
	print_times("an echo between two idle processes, ms", floor_us, N_MAX);
	print_times("lease, pool full, ms", us, N_MAX);
}

static void
leases_refilling(struct probe_host *h)
{
	enum { ROUND = 12 };
	static int64_t us[N_MAX];
	for (size_t i = 0; i < N_MAX; i += ROUND) {
		int fds[ROUND][LEASE_FDS];
		uint64_t id[ROUND];
		wait_full(h);
		for (size_t k = 0; k < ROUND; k++) {
			int64_t t0 = clock_mono_us();
			ask();
			id[k] = answer(fds[k]);
			us[i + k] = clock_mono_us() - t0;
			(void)usleep((useconds_t)(random() % 4000));
		}
		for (size_t k = 0; k < ROUND; k++)
			give_back(id[k], fds[k]);
	}
	print_times("lease, while the pool refills, ms", us, N_MAX);
}

static void
calls(struct probe_host *h)
{
	enum { SESSIONS = 100 };
	int64_t first[SESSIONS], later[N_MAX];
	struct code_session *s = NULL;
	for (size_t i = 0; i < SESSIONS; i++) {
		code_session_close(&s);
		if (i % 8 == 0)
			wait_full(h);
		s = probe_open(h, NULL);
		int64_t t0 = clock_mono_us();
		probe_exec(h, s, "print(1)", 0, &result);
		first[i] = clock_mono_us() - t0;
	}
	for (size_t i = 0; i < N_MAX; i++) {
		int64_t t0 = clock_mono_us();
		probe_exec(h, s, "print(1)", 0, &result);
		later[i] = clock_mono_us() - t0;
		if (strcmp(result.out, "1\n") != 0)
			die(result.why);
	}
	code_session_close(&s);
	print_times("`print(1)`, first call of a session, ms", first, SESSIONS);
	print_times("`print(1)`, later calls, ms", later, N_MAX);
}

static void
creation(void)
{
	enum { COUNT = 100 };
	int64_t us[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		int fds[LEASE_FDS];
		int64_t t0 = clock_mono_us();
		ask();
		uint64_t id = answer(fds);
		us[i] = clock_mono_us() - t0;
		give_back(id, fds);
		(void)usleep(20000);
	}
	print_times("a session made for the request, ms", us, COUNT);
}

/* Four on their way at any time, each given back as soon as it is there. */
static double
rate(void)
{
	int64_t t0 = clock_mono_us();
	for (size_t i = 0; i < 4; i++)
		ask();
	for (size_t i = 0; i < N_MAX; i++) {
		int fds[LEASE_FDS];
		uint64_t id = answer(fds);
		ask();
		give_back(id, fds);
	}
	int64_t t1 = clock_mono_us();
	for (size_t i = 0; i < 4; i++) {
		int fds[LEASE_FDS];
		uint64_t id = answer(fds);
		give_back(id, fds);
	}
	return N_MAX * 1e6 / (double)(t1 - t0);
}

/* --- memory ------------------------------------------------------------------------------------
 */
struct memory {
	unsigned long own, share; /* KiB: private, and with a part of what is shared */
};

static void
add_memory(pid_t pid, struct memory *m)
{
	char path[64], line[256];
	unsigned long kib;
	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	FILE *f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "Private_Dirty: %lu", &kib) == 1 ||
		    sscanf(line, "Private_Clean: %lu", &kib) == 1)
			m->own += kib;
		else if (sscanf(line, "Pss: %lu", &kib) == 1)
			m->share += kib;
	}
	if (f != NULL)
		(void)fclose(f);
}

static void
memory(struct probe_host *h)
{
	pid_t pids[256], below[8], filler = probe_find(h, "otari: filler");
	pid_t zygote = probe_find(h, "open(4)");
	wait_full(h);
	struct memory all = {0}, z = {0}, f = {0};
	size_t n = probe_children(probe_inner(h), pids, ARRAY_LEN(pids)), sessions = 0;
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == filler || pids[i] == zygote)
			continue;
		sessions++;
		add_memory(pids[i], &all);
		size_t k = probe_children(pids[i], below, ARRAY_LEN(below));
		while (k > 0)
			add_memory(below[--k], &all);
	}
	add_memory(zygote, &z);
	add_memory(filler, &f);
	if (sessions == 0)
		return;
	(void)printf(
	    "\nAn idle session (%zu of them): %.2f MiB private, %.2f with its part of what is "
	    "shared. Zygote %.1f MiB, filler %.1f, with their parts.\n",
	    sessions, (double)all.own / 1024 / (double)sessions,
	    (double)all.share / 1024 / (double)sessions, (double)z.share / 1024,
	    (double)f.share / 1024);
}

/* --- the same by other means -------------------------------------------------------------------
 */
static bool
run_once(const char *const *argv)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)dup2(null, 1);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
bubblewrap(void)
{
	static const char *const argv[] = {"bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr",
	    "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink",
	    "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "python3",
	    "-c", "print(1)", NULL};
	int64_t us[N_BWRAP];
	if (!run_once(argv)) {
		(void)printf("| bubblewrap: not here, or not allowed | | | | | |\n");
		return;
	}
	for (size_t i = 0; i < N_BWRAP; i++) {
		int64_t t0 = clock_mono_us();
		(void)run_once(argv);
		us[i] = clock_mono_us() - t0;
	}
	print_times("`bwrap --unshare-all … python3 -c 'print(1)'`, ms", us, N_BWRAP);
}

static void
print_head(const char *profile)
{
	struct utsname u;
	double load[3] = {0};
	(void)uname(&u);
	(void)getloadavg(load, 3);
	(void)printf("Zygote: %s. %ld cores, %s %s %s, load average %.1f %.1f at the start.\n\n",
	    profile, sysconf(_SC_NPROCESSORS_ONLN), u.sysname, u.release, u.machine, load[0],
	    load[1]);
	(void)printf(
	    "| what | p50 | p90 | p99 | max | n |\n| --- | --- | --- | --- | --- | --- |\n");
}

static void
measure(const char *init, bool is_data)
{
	struct sandbox_settings s;
	struct probe_host h;
	probe_settings(&s);
	if (!is_data)
		s.preload[0] = '\0';
	s.max_sessions = 64;
	s.pool_size = POOL;
	print_head(is_data ? s.preload : "the standard library");
	start(&h, init, &s);
	leases_idle(&h);
	leases_refilling(&h);
	calls(&h);
	memory(&h);
	stop(&h);
	s.pool_size = 0;
	(void)printf(
	    "\n| what | p50 | p90 | p99 | max | n |\n| --- | --- | --- | --- | --- | --- |\n");
	start(&h, init, &s);
	creation();
	bubblewrap();
	double load[3] = {0};
	(void)printf(
	    "\nSessions a second, four on their way at a time: %.1f (n=%d).\n", rate(), N_MAX);
	(void)getloadavg(load, 3);
	(void)printf("Load average at the end: %.1f.\n", load[0]);
	stop(&h);
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "spawner") == 0)
		return spawner_main(argc, argv);
	char init[512];
	ssize_t n = readlink("/proc/self/exe", init, sizeof(init) - 16);
	if (n <= 0)
		return 1;
	init[n] = '\0';
	(void)snprintf(strrchr(init, '/'), 16, "/otari-init");
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	log_setup(2, false, LOG_WARN, "bench");
	measure(init, argc > 1 && strcmp(argv[1], "data") == 0);
	return 0;
}
