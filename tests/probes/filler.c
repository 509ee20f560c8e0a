/* filler.c - the process that makes sessions, and what is left when any process is killed at any
 * moment */
#include <sys/socket.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/probes/probe.h"

#define BURST 6

static struct probe_result r;

static unsigned
some_ms(unsigned max)
{
	return (unsigned)random() % max;
}

struct opening {
	struct code_session *s;
	struct code_open *o;
	bool is_done;
	char why[256];
};

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct opening *o = arg;
	o->s = s;
	o->o = NULL;
	o->is_done = true;
	(void)snprintf(o->why, sizeof(o->why), "%s", e != NULL ? e->msg : "");
}

static void
start_burst(struct probe_host *h, struct opening *all)
{
	memset(all, 0, sizeof(*all) * BURST);
	for (size_t i = 0; i < BURST; i++)
		all[i].o = code_session_open(h->backend, STR("probe"), 20000, on_open, &all[i]);
}

static void
end_burst(struct probe_host *h, struct opening *all)
{
	for (size_t i = 0; i < BURST; i++) {
		while (!all[i].is_done)
			(void)event_base_loop(h->base, EVLOOP_ONCE);
		if (!EXPECT(all[i].s != NULL, "%s", all[i].why))
			continue;
		probe_exec(h, all[i].s, "print(6 * 7)", 0, &r);
		EXPECT(strcmp(r.out, "42\n") == 0, "%s%s", r.out, r.why);
	}
	for (size_t i = 0; i < BURST; i++)
		code_session_close(&all[i].s);
}

/* The pool is full again and what was closed is gone. */
static size_t
settled_children(struct probe_host *h)
{
	pid_t pids[256];
	size_t want = 2 + 2, n = 0; /* filler, zygote, a pool of two */
	for (int i = 0; i < 200; i++) {
		n = probe_children(probe_inner(h), pids, ARRAY_LEN(pids));
		if (n == want)
			break;
		probe_turn(h, 50);
	}
	return n;
}

static void
killed_while_leasing(struct probe_host *h, const char *title, const char *name)
{
	struct opening all[BURST];
	probe_name(name);
	for (int i = 0; i < 12; i++) {
		start_burst(h, all);
		probe_turn(h, (int)some_ms(30));
		pid_t pid = probe_find(h, title);
		if (pid > 0)
			EXPECT(kill(pid, SIGKILL) == 0 || errno == ESRCH, "%d", errno);
		end_burst(h, all);
	}
	EXPECT(probe_wait_zygote(h, 60000), "no zygote comes");
	size_t n = settled_children(h);
	EXPECT(n == 4, "%zu children of the spawner", n);
}

static void
stopped(struct probe_host *h)
{
	probe_name("a filler that does not answer is replaced");
	struct opening all[BURST];
	pid_t before = probe_find(h, "otari: filler");
	EXPECT(before > 0 && kill(before, SIGSTOP) == 0, "%d", errno);
	start_burst(h, all);
	end_burst(h, all);
	EXPECT(probe_find(h, "otari: filler") != before, "it is still there");
}

/* Processes of the spawner's network namespace: all that it ever started shares it. */
static unsigned
count_in(const char *net)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300], link[64];
		(void)snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		ssize_t len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		n += strcmp(link, net) == 0;
	}
	if (d != NULL)
		closedir(d);
	return n;
}

static void
read_net(struct probe_host *h, char *net, size_t room)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)probe_inner(h));
	ssize_t len = readlink(path, net, room - 1);
	net[len > 0 ? len : 0] = '\0';
}

/* Lines of a file of /proc: the mounts of this process. */
static unsigned
count_mounts(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	for (int c; f != NULL && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f != NULL)
		(void)fclose(f);
	return n;
}

static void
all_end(const char *net)
{
	unsigned n = 1;
	if (net[0] == '\0') /* only root may look */
		return;
	for (int i = 0; i < 300 && (n = count_in(net)) > 0; i++)
		(void)usleep(10000);
	EXPECT(n == 0, "%u processes are left", n);
}

static void
killed_spawners(const char *init_path, const struct sandbox_settings *set)
{
	probe_name("a spawner killed while it makes sessions leaves no process");
	for (int i = 0; i < 6; i++) {
		struct probe_host h;
		struct opening all[BURST];
		char net[64];
		if (!EXPECT(probe_start(&h, init_path, set), "no start"))
			return;
		read_net(&h, net, sizeof(net));
		start_burst(&h, all);
		probe_turn(&h, (int)some_ms(60));
		/* The one that the master knows, or the one that is pid 1 inside. */
		pid_t pid = i % 2 == 0 ? h.spawner : probe_inner(&h);
		if (EXPECT(pid > 1, "no spawner"))
			(void)kill(pid, SIGKILL);
		all_end(net);
		for (size_t k = 0; k < BURST; k++) {
			code_open_cancel(&all[k].o);
			code_session_close(&all[k].s);
		}
		probe_stop(&h);
	}
}

/* A process that plays master and worker. */
static _Noreturn void
lead(const char *init_path, const struct sandbox_settings *set, int say)
{
	struct probe_host h;
	struct opening all[BURST];
	char net[64] = "";
	if (probe_start(&h, init_path, set)) {
		start_burst(&h, all);
		read_net(&h, net, sizeof(net));
		(void)!write(say, net, sizeof(net));
		for (;;)
			probe_turn(&h, 1000);
	}
	_exit(1);
}

static void
killed_masters(const char *init_path, const struct sandbox_settings *set)
{
	probe_name("a master killed while sessions are made leaves no process");
	for (int i = 0; i < 6; i++) {
		int say[2];
		char net[64] = "";
		if (!fd_pipe(say, false))
			return;
		pid_t pid = fork();
		if (pid == 0)
			lead(init_path, set, say[1]);
		fd_close(&say[1]);
		EXPECT(read(say[0], net, sizeof(net)) == sizeof(net), "no start");
		(void)usleep(some_ms(60) * 1000);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		all_end(net);
		fd_close(&say[0]);
	}
}

/* Open descriptors, when nothing is on its way any more. */
static int
resting_fds(struct probe_host *h, pid_t pid)
{
	int n = 0, last = -1;
	for (unsigned same = 0, i = 0; same < 10 && i < 200; i++) {
		n = probe_fds(pid);
		same = n == last ? same + 1 : 0;
		last = n;
		probe_turn(h, 50);
	}
	return n;
}

/* It leaves while it waits for some and has others. */
static void
killed_worker(const char *init_path, const struct sandbox_settings *set)
{
	struct probe_host h;
	probe_name("a worker that ends while it leases leaves no session and no request");
	if (!EXPECT(probe_start(&h, init_path, set) && probe_wait_zygote(&h, 60000), "no start"))
		return;
	for (int i = 0; i < 6; i++) {
		struct opening all[BURST];
		int pair[2];
		struct err e;
		struct lease_worker add = {LEASE_MSG_ADD_WORKER, 10 + (uint32_t)i};
		start_burst(&h, all);
		probe_turn(&h, (int)some_ms(30));
		(void)shutdown(h.worker, SHUT_RDWR);
		for (size_t k = 0; k < BURST; k++) {
			code_open_cancel(&all[k].o);
			code_session_close(&all[k].s);
		}
		fd_close(&h.worker);
		if (!EXPECT(fd_socketpair_seqpacket(pair, true), "%d", errno))
			return;
		EXPECT(lease_send(h.ctl, &add, &pair[1], 1, &e) == ERR_OK, "%s", e.msg);
		fd_close(&pair[1]);
		h.worker = fd_dup(pair[0]);
		code_backend_attach(h.backend, pair[0]); /* its successor */
	}
	/* What was made for a request that went is kept for the next ones. */
	struct opening last[BURST];
	start_burst(&h, last);
	end_burst(&h, last);
	size_t n = settled_children(&h);
	EXPECT(n == 4, "%zu children of the spawner", n);
	probe_stop(&h);
}

/* Sessions that were to be born of it are given up before anybody made them. */
static void
killed_both(const char *init_path, const struct sandbox_settings *set)
{
	struct probe_host h;
	struct opening all[BURST];
	struct sandbox_settings few = *set;
	few.max_sessions = BURST;
	probe_name("a zygote killed while there is no filler costs no place");
	if (!EXPECT(probe_start(&h, init_path, &few) && probe_wait_zygote(&h, 60000), "no start"))
		return;
	(void)settled_children(&h);
	for (int i = 0; i < 4; i++) { /* the next one comes later each time */
		pid_t pid = 0;
		for (int k = 0; k < 400 && (pid = probe_find(&h, "otari: filler")) == 0; k++)
			probe_turn(&h, 10);
		EXPECT(pid > 0 && kill(pid, SIGKILL) == 0, "no filler");
		while (probe_find(&h, "otari: filler") == pid)
			probe_turn(&h, 5);
	}
	start_burst(&h, all);
	probe_turn(&h, 50);
	pid_t zygote = probe_find(&h, "open(4)");
	EXPECT(zygote > 0 && kill(zygote, SIGKILL) == 0, "no zygote");
	end_burst(&h, all);
	probe_stop(&h);
}

static void
many(struct probe_host *h)
{
	enum { ROUNDS = 1000 / BURST + 1 };
	probe_name("a thousand sessions leave no descriptor and no process");
	(void)settled_children(h);
	int inner = resting_fds(h, probe_inner(h));
	int filler = resting_fds(h, probe_find(h, "otari: filler"));
	for (int i = 0; i < ROUNDS; i++) {
		struct opening all[BURST];
		start_burst(h, all);
		for (size_t k = 0; k < BURST; k++) {
			while (!all[k].is_done)
				(void)event_base_loop(h->base, EVLOOP_ONCE);
			EXPECT(all[k].s != NULL, "%s", all[k].why);
			code_session_close(&all[k].s);
		}
	}
	EXPECT(settled_children(h) == 4, "%zu children", settled_children(h));
	int now = resting_fds(h, probe_inner(h));
	EXPECT(now == inner, "%d, %d before", now, inner);
	now = resting_fds(h, probe_find(h, "otari: filler"));
	EXPECT(now == filler, "%d, %d before", now, filler);
}

void
probes_filler(struct probe_host *h, const char *init_path)
{
	struct sandbox_settings set;
	probe_settings(&set);
	srandom((unsigned)clock_mono_us());
	if (!probe_start(h, init_path, &set) || !probe_wait_zygote(h, 60000))
		return;
	many(h);
	killed_while_leasing(h, "otari: filler", "a filler killed while sessions are leased");
	killed_while_leasing(h, "open(4)", "a zygote killed while sessions are leased");
	stopped(h);
	probe_stop(h);
	unsigned mounts = count_mounts();
	killed_spawners(init_path, &set);
	killed_masters(init_path, &set);
	EXPECT(count_mounts() == mounts, "%u mounts, %u before", count_mounts(), mounts);
	killed_worker(init_path, &set);
	killed_both(init_path, &set);
	probe_end();
}
