/* bounds.c - what a session may use up as a whole, where cgroups bound it, and what is left of them
 */
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup.h"
#include "tests/probes/probe.h"

#define MEMORY_NOTE "the memory limit of 256 MiB was reached]\n"

static struct probe_result r;

static void
settings(struct sandbox_settings *s)
{
	probe_settings(s);
	s->memory_bytes = 256u << 20;
	s->workspace_bytes = s->file_bytes = 512u << 20;
	s->pids = 32;
	s->max_sessions = 4;
}

/* --- from outside ------------------------------------------------------------------------------
 */
struct trees { /* of one spawner; others may run on this host */
	pid_t spawner;
	unsigned count;
	char path[3][CGROUP_PATH_MAX + CGROUP_NAME_MAX];
};

static bool
on_tree(void *arg, const char *path)
{
	struct trees *t = arg;
	char name[64];
	(void)snprintf(name, sizeof(name), "/otari.%d.", (int)t->spawner);
	if (strstr(path, name) == NULL)
		return true;
	if (t->count < ARRAY_LEN(t->path))
		(void)snprintf(t->path[t->count], sizeof(t->path[0]), "%s", path);
	t->count++;
	return true;
}

static struct trees
find_trees(pid_t spawner)
{
	struct trees t = {.spawner = spawner};
	struct cgroup_places p;
	probe_places(&p);
	(void)cgroup_each_tree(&p, on_tree, &t);
	return t;
}

/* A slot's file, of whichever version and tree. */
static bool
tree_says(const struct probe_host *h, const char *name, const char *want)
{
	struct trees t = find_trees(h->spawner);
	bool ok = false;
	for (unsigned i = 0; i < t.count && i < ARRAY_LEN(t.path); i++) {
		char path[sizeof(t.path[0]) + 64], *text = NULL;
		size_t len = 0;
		(void)snprintf(path, sizeof(path), "%s/%s", t.path[i], name);
		if (fd_read_file(path, 4096, &text, &len, NULL) == ERR_OK)
			ok |= str_eq(str_trim(str_n(text, len)), str_c(want));
		mem_free(text);
	}
	return ok;
}

/* The master's part. */
static bool
all_swept(pid_t spawner)
{
	struct cgroup_places p;
	probe_places(&p);
	bool ok = false;
	for (int64_t until = clock_mono_ms() + 5000; !ok && clock_mono_ms() < until;
	     (void)usleep(20000)) {
		(void)cgroup_sweep(&p);
		ok = find_trees(spawner).count == 0;
	}
	return ok;
}

/* --- from inside -------------------------------------------------------------------------------
 */
/* An interpreter may take its time. */
static struct code_session *
open_one(struct probe_host *h)
{
	struct code_session *s = NULL;
	for (int i = 0; i < 10 && s == NULL; i++)
		s = probe_open(h, NULL);
	EXPECT(s != NULL, "no session");
	return s;
}

static void
say(struct probe_host *h, struct code_session *s, const char *code, const char *out)
{
	probe_exec(h, s, code, 60000, &r);
	EXPECT(!r.failed && strcmp(r.out, out) == 0, "%s%s%s", r.why, r.out, r.err);
}

static void
limits(struct probe_host *h)
{
	probe_name("a session's cgroup has the limits that were asked for");
	EXPECT(tree_says(h, "slot0/memory.limit_in_bytes", "268435456") ||
		   tree_says(h, "slot0/memory.max", "268435456"),
	    "memory");
	if (h->report.layer[SB_PIDS_CGROUP].state == SB_ACTIVE)
		EXPECT(tree_says(h, "slot0/pids.max", "32"), "processes");
}

static void
hidden(struct probe_host *h)
{
	probe_name("nothing of the cgroups can be seen or reached inside");
	struct code_session *s = open_one(h);
	const char *look =
	    "import os\nprint([l for l in open('/proc/self/cgroup') if not "
	    "l.rstrip().endswith(':/')],\n"
	    "    os.path.exists('/sys'), 'cgroup' in open('/proc/self/mounts').read(),\n"
	    "    [f for f in os.listdir('/proc/self/fd') if 'cgroup' in "
	    "os.path.realpath('/proc/self/fd/' + f)])\n"
	    "try: os.open('/proc/1/fd/5', os.O_RDONLY)\nexcept OSError as e: print(e.errno)";
	if (s == NULL)
		return;
	say(h, s, look, "[] False False []\n1\n");
	probe_exec(h, s, "import os\nos._exit(1)", 5000, &r);
	say(h, s, look, "[] False False []\n1\n");
	code_session_close(&s);
}

static void
memory(struct probe_host *h)
{
	struct code_session *s = open_one(h), *other = open_one(h);
	pid_t spawner = probe_inner(h);
	if (s == NULL || other == NULL)
		return;
	say(h, other, "x = 42", "");
	probe_name("one process over the session's memory is ended, and the call says why");
	/* Its address space is bounded too; memory that it shares with itself is the way around. */
	probe_exec(h, s,
	    "import mmap, os, time\np = os.fork()\nb = mmap.mmap(-1, 150 << 20)\n"
	    "for k in range(0, len(b), 4096): b[k] = 1\nos.waitpid(p, 0) if p else time.sleep(100)",
	    60000, &r);
	EXPECT(strstr(r.err, MEMORY_NOTE) != NULL, "%d %s", r.return_code, r.err);
	say(h, s, "print(6 * 7)", "42\n");

	probe_name("what is written to files counts");
	probe_exec(h, s, "f = open('/tmp/big', 'wb')\nfor i in range(400): f.write(bytes(1 << 20))",
	    60000, &r);
	EXPECT(r.died && strstr(r.err, "[ended: " MEMORY_NOTE) != NULL, "%d %s%s", r.return_code,
	    r.out, r.err);
	probe_name("and a session that is full says so again");
	probe_exec(h, s, "print(1)", 60000, &r);
	EXPECT(r.failed || strcmp(r.out, "1\n") == 0 || strstr(r.err, MEMORY_NOTE) != NULL, "%s%s",
	    r.out, r.err);
	code_session_close(&s);

	probe_name("nobody else noticed");
	say(h, other, "print(x)", "42\n");
	EXPECT(probe_inner(h) == spawner, "the spawner is another");
	code_session_close(&other);

	probe_name("a place that was full is used again, empty");
	for (int i = 0; i < 12; i++) {
		s = open_one(h);
		if (s == NULL)
			break;
		say(h, s, "b = bytearray(60 << 20)\nprint(len(b) >> 20)", "60\n");
		EXPECT(strstr(r.err, "memory") == NULL, "%s", r.err);
		code_session_close(&s);
	}
}

static void
processes(struct probe_host *h)
{
	probe_name("forks end at the limit of processes");
	struct code_session *s = open_one(h);
	if (s == NULL)
		return;
	say(h, s,
	    "import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
	    "            time.sleep(100)\n        n += 1\nexcept OSError as e: print(n < 32, n > "
	    "20, "
	    "e.errno)",
	    "True True 11\n");
	say(h, s, "print(1)", "1\n");
	code_session_close(&s);
}

static void
processor_time(const char *init_path)
{
	struct probe_host h;
	struct sandbox_settings set;
	settings(&set);
	set.cpu_percent = 20;
	probe_name("all of a session's processes share its processor time");
	if (!EXPECT(probe_start(&h, init_path, &set), "no start"))
		return;
	struct code_session *s = open_one(&h);
	EXPECT(tree_says(&h, "slot0/cpu.cfs_quota_us", "20000") ||
		   tree_says(&h, "slot0/cpu.max", "20000 100000"),
	    "the limit");
	EXPECT(tree_says(&h, "cpu.shares", "102") || tree_says(&h, "cpu.weight", "10"),
	    "the sessions' weight beside the daemon");
	if (s != NULL) {
		probe_exec(&h, s,
		    "import os, time, resource\nend = time.monotonic() + 2\n"
		    "for i in range(4):\n    if os.fork() == 0:\n"
		    "        while time.monotonic() < end: pass\n        os._exit(0)\n"
		    "for i in range(4): os.wait()\n"
		    "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
		    "print(round(u.ru_utime + u.ru_stime, 2))",
		    60000, &r);
		double used = strtod(r.out, NULL);
		(void)printf(
		    "measured  4 busy processes, 20 %% of a processor: %.2f s in 2 s\n", used);
		EXPECT(used > 0 && used < 1, "%s%s", r.out, r.err);
	}
	code_session_close(&s);
	probe_stop(&h);
}

static void
refused(const char *init_path)
{
	struct probe_host h;
	struct sandbox_settings set;
	struct err e = {0};
	probe_name("where cgroups are required and not to be had, every lease is refused by name");
	settings(&set);
	set.no_cgroup = set.require_cgroup = 1;
	if (!EXPECT(probe_start(&h, init_path, &set), "no start"))
		return;
	struct code_session *none = probe_open(&h, &e);
	EXPECT(none == NULL && e.code == ERR_UNSUPPORTED, "%d", (int)e.code);
	EXPECT(strstr(e.msg, "layer=memory_cgroup") != NULL, "%s", e.msg);
	probe_stop(&h);
}

/* --- ends --------------------------------------------------------------------------------------
 */
static void
killed(const char *init_path, const struct sandbox_settings *set)
{
	struct probe_host h;
	int ready[2];
	pid_t spawner = 0;
	probe_name("kill -9 of the spawner leaves no cgroup once the master has swept");
	if (EXPECT(probe_start(&h, init_path, set), "no start")) {
		struct code_session *s = probe_open(&h, NULL);
		(void)kill(h.spawner, SIGKILL);
		code_session_close(&s);
		spawner = h.spawner;
		probe_stop(&h);
		EXPECT(all_swept(spawner), "left behind");
	}
	probe_name("kill -9 of the master leaves none after the next start");
	if (!fd_pipe(ready, false))
		return;
	pid_t pid = fork();
	if (pid == 0) {
		if (probe_start(&h, init_path, set) && probe_open(&h, NULL) != NULL)
			(void)!write(ready[1], &h.spawner, sizeof(h.spawner));
		for (;;)
			pause();
	}
	fd_close(&ready[1]);
	EXPECT(read(ready[0], &spawner, sizeof(spawner)) == sizeof(spawner), "not started");
	fd_close(&ready[0]);
	EXPECT(find_trees(spawner).count > 0, "none was made");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	if (EXPECT(probe_start(&h, init_path, set), "no start")) {
		EXPECT(all_swept(spawner), "left behind");
		probe_stop(&h);
	}
}

void
probes_bounds(const char *init_path)
{
	struct probe_host h;
	struct sandbox_settings set;
	settings(&set);
	refused(init_path);
	if (!probe_start(&h, init_path, &set))
		return;
	if (h.report.layer[SB_MEMORY_CGROUP].state != SB_ACTIVE) {
		const char *need = getenv("OTARI_TEST_REQUIRE");
		(void)printf("SKIPPED cgroups (%s)\n", h.report.layer[SB_MEMORY_CGROUP].text);
		probe_name("cgroups are there, as this run requires");
		EXPECT(need == NULL || strstr(need, "cgroup") == NULL, "they are not");
		probe_stop(&h);
		return;
	}
	limits(&h);
	hidden(&h);
	memory(&h);
	processes(&h);
	bool has_cpu = h.report.layer[SB_CPU_CGROUP].state == SB_ACTIVE;
	probe_name("an end in order leaves no cgroup once the master has swept");
	pid_t spawner = h.spawner;
	probe_stop(&h);
	EXPECT(all_swept(spawner), "left behind");
	if (has_cpu)
		processor_time(init_path);
	killed(init_path, &set);
}
