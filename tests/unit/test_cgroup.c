#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup.h"

TestSuite(cgroup, .timeout = 20);

/* --- where we are ------------------------------------------------------------------------------
 */
#define V2(root, options) "30 23 0:26 " root " /sys/fs/cgroup " options " - cgroup2 cgroup2 rw\n"
#define V1(n, root, options, controllers)                                                          \
	"3" n " 23 0:3" n " " root " /sys/fs/cgroup/" controllers " " options                      \
	" shared:9 - cgroup cgroup rw," controllers "\n"
#define OTHER "22 1 254:1 / / rw,relatime - ext4 /dev/root rw\n"

struct seen {
	const char *what, *mounts, *self;
	const char *v2, *memory, *pids, *cpu; /* own; "ro:…" read-only; NULL: none */
};

static const struct seen seen[] = {
    {"systemd, v2", OTHER V2("/", "rw,nosuid"), "0::/system.slice/otari.service\n",
	"/sys/fs/cgroup/system.slice/otari.service", NULL, NULL, NULL},
    {"v1",
	V1("1", "/", "rw", "memory") V1("2", "/", "rw", "pids") V1("3", "/", "rw", "cpu,cpuacct"),
	"4:memory:/a/b\n3:pids:/\n2:cpu,cpuacct:/c\n", NULL, "/sys/fs/cgroup/memory/a/b",
	"/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu,cpuacct/c"},
    {"hybrid",
	V1("1", "/", "rw", "memory") "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 x rw\n",
	"5:memory:/x\n1:name=systemd:/x\n0::/y\n", "/sys/fs/cgroup/unified/y",
	"/sys/fs/cgroup/memory/x", NULL, NULL},
    {"a container with a cgroup namespace of its own", V2("/", "ro,nosuid"), "0::/\n",
	"ro:/sys/fs/cgroup", NULL, NULL, NULL},
    {"one that may write", V2("/", "rw"), "0::/main\n", "/sys/fs/cgroup/main", NULL, NULL, NULL},
    {"a container on v1 sees its part", V1("1", "/docker/f00", "ro", "memory"),
	"4:memory:/docker/f00/sub\n", NULL, "ro:/sys/fs/cgroup/memory/sub", NULL, NULL},
    {"a part that is not ours", V1("1", "/docker/f00", "rw", "memory"), "4:memory:/docker/f00d\n",
	NULL, NULL, NULL, NULL},
    {"outside of our namespace", V2("/../..", "rw"), "0::/\n", NULL, NULL, NULL, NULL},
    {"and so are we", V2("/", "rw"), "0::/../x\n", NULL, NULL, NULL, NULL},
    {"the mount that may be written to is taken",
	V2("/", "ro") "33 23 0:26 / /mnt/cgroup rw - cgroup2 cgroup2 rw\n", "0::/x\n",
	"/mnt/cgroup/x", NULL, NULL, NULL},
    {"escaped names", "30 23 0:26 / /my\\040cgroup rw - cgroup2 cgroup2 rw\n", "0::/a:b\n",
	"/my cgroup/a:b", NULL, NULL, NULL},
    {"a bad escape", "30 23 0:26 / /my\\09 rw - cgroup2 cgroup2 rw\n", "0::/\n", NULL, NULL, NULL,
	NULL},
    {"no cgroup file system", OTHER, "0::/\n", NULL, NULL, NULL, NULL},
    {"a controller that no process is in", V1("1", "/", "rw", "memory"), "0::/\n", NULL, NULL, NULL,
	NULL},
    {"lines that are cut", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n30 23\n\n-\n", "0::\n0\n",
	NULL, NULL, NULL, NULL},
    {"nothing", "", "", NULL, NULL, NULL, NULL},
};

static void
check_place(const char *what, const struct cgroup_place *p, const char *want)
{
	char got[CGROUP_PATH_MAX + 4];
	(void)snprintf(got, sizeof(got), "%s%s", p->is_read_only ? "ro:" : "", p->own);
	cr_expect_str_eq(got, want != NULL ? want : "", "%s", what);
	cr_expect_leq(p->mount_len, strlen(p->own), "%s", what);
}

Test(cgroup, finds_our_own_in_every_layout)
{
	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		struct cgroup_places p;
		const struct seen *s = &seen[i];
		cgroup_find_places(str_c(s->mounts), str_c(s->self), &p);
		check_place(s->what, &p.v2, s->v2);
		check_place(s->what, &p.v1[CGROUP_MEMORY], s->memory);
		check_place(s->what, &p.v1[CGROUP_PIDS], s->pids);
		check_place(s->what, &p.v1[CGROUP_CPU], s->cpu);
	}
}

Test(cgroup, a_path_that_is_too_long_is_no_place)
{
	char self[CGROUP_PATH_MAX + 64];
	struct cgroup_places p;
	int n = snprintf(self, sizeof(self), "0::/%0*d\n", CGROUP_PATH_MAX, 7);
	cgroup_find_places(STR(V2("/", "rw")), str_n(self, (size_t)n), &p);
	cr_assert_str_eq(p.v2.own, "");
}

Test(cgroup, reads_what_the_kernel_writes)
{
	uint64_t v = 0;
	unsigned all = CGROUP_BIT(CGROUP_MEMORY) | CGROUP_BIT(CGROUP_PIDS) | CGROUP_BIT(CGROUP_CPU);
	cr_expect_eq(cgroup_controllers(STR("cpuset cpu io memory hugetlb pids rdma misc\n")), all);
	cr_expect_eq(cgroup_controllers(STR("hugetlb\n")), 0u);
	cr_expect_eq(cgroup_controllers(STR("")), 0u);
	cr_expect(cgroup_value(STR("oom 7\noom_kill 3\noom_group_kill 0\n"), STR("oom_kill"), &v));
	cr_expect_eq(v, 3u);
	cr_expect(
	    cgroup_value(STR("oom_kill_disable 0\nunder_oom 0\noom_kill 5"), STR("oom_kill"), &v));
	cr_expect_eq(v, 5u);
	cr_expect_not(cgroup_value(STR("oom_kill_disable 0\n"), STR("oom_kill"), &v));
	cr_expect_not(cgroup_value(STR("oom_kill\n"), STR("oom_kill"), &v));
	cr_expect_eq(cgroup_private_bytes(STR("anon 10\nfile 500\nkernel 9\nshmem 7\n")), 17u);
	cr_expect_eq(cgroup_private_bytes(STR("cache 900\nrss 20\nrss_huge 0\nshmem 1\n")), 21u);
	cr_expect_eq(cgroup_private_bytes(STR("")), UINT64_MAX, "unknown is not clean");
	cr_expect(cgroup_is_our_name(STR("otari.12.0")));
	cr_expect_not(cgroup_is_our_name(STR("otari.service")));
	cr_expect_not(cgroup_is_our_name(STR("otari.1.2.3")));
	cr_expect_not(cgroup_is_our_name(STR("otari.1.")));
}

/* --- what is made, over plain directories ------------------------------------------------------
 */
static char top[64];

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

static void
make_top(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/otari-cgroup-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
}

static void
remove_top(void)
{
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(cgroup_tree, .timeout = 20, .init = make_top, .fini = remove_top);

static const char *
at(const char *path)
{
	static char text[4][CGROUP_PATH_MAX];
	static unsigned n;
	char *t = text[n++ % 4];
	(void)snprintf(t, CGROUP_PATH_MAX, "%s/%s", top, path);
	return t;
}

static void
put(const char *path, const char *text)
{
	int fd = fd_open(at(path), O_CREAT | O_WRONLY | O_TRUNC, 0644);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fd_close(&fd);
}

/* What a file of the first tree below dir holds; dir "" the top itself. */
static bool
holds(const char *dir, const char *file, const char *want)
{
	char path[CGROUP_PATH_MAX], *text = NULL;
	size_t len = 0;
	(void)snprintf(path, sizeof(path), "%s/otari.%d.0/%s", at(dir), (int)getpid(), file);
	bool ok = fd_read_file(path, 4096, &text, &len, NULL) == ERR_OK && strcmp(text, want) == 0;
	if (!ok)
		(void)printf("%s: '%s'\n", path, text != NULL ? text : "absent");
	mem_free(text);
	return ok;
}

static bool
join(const struct cgroup *c, uint32_t slot)
{
	int fds[CGROUP_TREES];
	size_t n = cgroup_join_fds(c, slot, fds);
	for (size_t i = 0; i < n; i++)
		if (write(fds[i], "0", 1) != 1)
			return false;
	return n == c->trees;
}

static struct cgroup_places
v2_place(const char *own)
{
	struct cgroup_places p = {.v2.mount_len = strlen(top)};
	(void)snprintf(p.v2.own, sizeof(p.v2.own), "%s%s", top, own);
	return p;
}

static const struct cgroup_wish wish = {
    .memory_bytes = 1 << 28, .pids = 64, .cpu_percent = 50, .slots = 2, .create = O_CREAT};

Test(cgroup_tree, v2_gives_each_slot_its_limits)
{
	struct cgroup c;
	struct cgroup_places p = v2_place("/unit");
	cr_assert_eq(mkdir(at("unit"), 0755), 0);
	put("unit/cgroup.controllers", "cpu memory pids\n");
	put("unit/cgroup.type", "domain\n");
	put("unit/cgroup.procs", "");
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	cr_expect_eq(c.version, 2u);
	cr_expect(cgroup_bounds(&c, CGROUP_MEMORY) && cgroup_bounds(&c, CGROUP_PIDS) &&
		  cgroup_bounds(&c, CGROUP_CPU));
	cr_expect(holds("unit", "cgroup.subtree_control", "+memory+pids+cpu"));
	cr_expect(holds("unit", "slot1/memory.max", "268435456"));
	cr_expect(holds("unit", "slot1/memory.swap.max", "0"));
	cr_expect(holds("unit", "slot0/pids.max", "64"));
	cr_expect(holds("unit", "slot0/cpu.max", "50000 100000"));
	cr_expect(holds("unit", "cpu.weight", "10"), "all sessions together, beside the daemon");
	cr_expect(join(&c, 1));
	cr_expect(holds("unit", "slot1/cgroup.procs", "0"));
	cr_expect(holds("unit", "slot0/cgroup.procs", ""));
	cgroup_free(&c);
}

Test(cgroup_tree, v2_goes_up_where_processes_are_in_the_way)
{
	struct cgroup c;
	struct cgroup_places p = v2_place("/unit/main");
	(void)mkdir(at("unit"), 0755);
	cr_assert_eq(mkdir(at("unit/main"), 0755), 0);
	put("unit/main/cgroup.controllers", "memory\n");
	put("unit/main/cgroup.type", "domain\n");
	put("unit/main/cgroup.procs", "1\n");
	put("unit/cgroup.controllers", "memory\n");
	put("unit/cgroup.type", "domain\n");
	put("unit/cgroup.procs", "");
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	cr_expect_not(cgroup_bounds(&c, CGROUP_CPU), "not given to us");
	cr_expect(holds("unit", "slot0/memory.max", "268435456"));
	cgroup_free(&c);
}

Test(cgroup_tree, v2_stops_at_the_mount)
{
	struct cgroup c;
	struct cgroup_places p = v2_place("/unit");
	cr_assert_eq(mkdir(at("unit"), 0755), 0);
	put("unit/cgroup.controllers", "memory\n");
	put("unit/cgroup.type", "domain\n");
	put("unit/cgroup.procs", "1\n");
	put("cgroup.controllers", "hugetlb\n");
	cr_assert_not(cgroup_make(&c, &p, &wish));
	cr_expect_eq(c.version, 0u);
	cr_expect_neq(strlen(c.why), 0u);
	cr_expect_not(cgroup_bounds(&c, CGROUP_MEMORY));
	cr_expect(cgroup_slot_is_clean(&c, 0) && join(&c, 0), "without cgroups all goes on");
}

static struct cgroup_places
v1_places(bool is_cpu_with_memory)
{
	static const char *const names[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu"};
	struct cgroup_places p = {0};
	for (size_t k = 0; k < CGROUP_CONTROLLERS; k++) {
		const char *name = is_cpu_with_memory && k == CGROUP_CPU ? "memory" : names[k];
		(void)mkdir(at(name), 0755);
		(void)snprintf(p.v1[k].own, sizeof(p.v1[k].own), "%s", at(name));
		p.v1[k].mount_len = strlen(p.v1[k].own);
	}
	return p;
}

Test(cgroup_tree, v1_has_a_tree_for_each_controller)
{
	struct cgroup c;
	struct cgroup_places p = v1_places(false);
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	cr_expect_eq(c.trees, 3u);
	cr_expect(holds("memory", "slot0/memory.limit_in_bytes", "268435456"));
	cr_expect(holds("memory", "slot0/memory.memsw.limit_in_bytes", "268435456"));
	cr_expect(holds("pids", "slot1/pids.max", "64"));
	cr_expect(holds("cpu", "slot1/cpu.cfs_quota_us", "50000"));
	cr_expect(holds("cpu", "slot1/cpu.cfs_period_us", "100000"));
	cr_expect(holds("cpu", "cpu.shares", "102"));
	cr_expect(join(&c, 0));
	cr_expect(holds("pids", "slot0/cgroup.procs", "0") &&
		  holds("cpu", "slot0/cgroup.procs", "0") &&
		  holds("memory", "slot0/cgroup.procs", "0"));
	cgroup_free(&c);
}

Test(cgroup_tree, v1_controllers_that_are_mounted_together_share_one)
{
	struct cgroup c;
	struct cgroup_places p = v1_places(true);
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	cr_expect_eq(c.trees, 2u, "whoever joins another tree of a hierarchy leaves the first");
	cr_expect(holds("memory", "slot0/memory.limit_in_bytes", "268435456"));
	cr_expect(holds("memory", "slot0/cpu.cfs_quota_us", "50000"));
	cgroup_free(&c);
}

Test(cgroup_tree, what_may_not_be_written_is_told)
{
	struct cgroup c;
	struct cgroup_places p = v1_places(false);
	p.v1[CGROUP_MEMORY].is_read_only = true;
	cr_assert_not(cgroup_make(&c, &p, &wish));
	cr_expect_not_null(strstr(c.why, "read-only"), "%s", c.why);
	cr_expect_neq(c.sys_errno, 0);
	struct cgroup_wish real = wish; /* the files of a cgroup are there or not */
	real.create = 0;
	p.v1[CGROUP_MEMORY].is_read_only = false;
	cr_assert_not(cgroup_make(&c, &p, &real));
	cr_expect_not_null(strstr(c.why, "limits"), "%s", c.why);
	cr_expect_neq(access(at("memory"), F_OK), -1);
	char tree[CGROUP_PATH_MAX];
	(void)snprintf(tree, sizeof(tree), "%s/otari.%d.0", at("memory"), (int)getpid());
	cr_expect_eq(access(tree, F_OK), -1, "left behind");
}

Test(cgroup_tree, a_slot_is_clean_when_only_page_cache_is_left)
{
	struct cgroup c;
	char path[200];
	struct cgroup_places p = v1_places(false);
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	(void)snprintf(
	    path, sizeof(path), "memory/otari.%d.0/slot0/memory.usage_in_bytes", (int)getpid());
	put(path, "4096\n");
	cr_expect(cgroup_slot_is_clean(&c, 0));
	put(path, "99000000\n");
	cr_expect_not(cgroup_slot_is_clean(&c, 0), "of unknown kind");
	(void)snprintf(path, sizeof(path), "memory/otari.%d.0/slot0/memory.stat", (int)getpid());
	put(path, "cache 98000000\nrss 0\nshmem 2000000\n");
	cr_expect_not(cgroup_slot_is_clean(&c, 0));
	put(path, "cache 98000000\nrss 0\nshmem 0\n");
	cr_expect(cgroup_slot_is_clean(&c, 0));
	(void)snprintf(
	    path, sizeof(path), "memory/otari.%d.0/slot0/memory.oom_control", (int)getpid());
	put(path, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	cr_expect_eq(cgroup_slot_kills(&c, 0), 2u);
	cr_expect_eq(cgroup_slot_kills(&c, 0), 0u, "told once");
	cgroup_free(&c);
}

/* --- and removed -------------------------------------------------------------------------------
 */
Test(cgroup_tree, only_what_nobody_lives_in_is_swept)
{
	struct cgroup c;
	struct cgroup_places p = v1_places(false);
	(void)mkdir(at("memory/otari.77.0"), 0755);
	(void)mkdir(at("memory/otari.77.0/slot0"), 0755);
	(void)mkdir(at("memory/otari.service"), 0755);
	cr_assert(cgroup_make(&c, &p, &wish), "%s", c.why);
	cr_expect(cgroup_sweep(&p), "one that lives is no work left");
	cr_expect_eq(access(at("memory/otari.77.0"), F_OK), -1);
	cr_expect_eq(access(at("memory/otari.service"), F_OK), 0);
	cr_expect(holds("memory", "slot0/cgroup.procs", ""), "a living one was taken apart");
	cgroup_free(&c);
	/* Files are in the way of a plain directory's end, as processes are of a cgroup's. */
	cr_expect_not(cgroup_sweep(&p));
}

Test(cgroup_tree, sweeps_up_to_the_mount)
{
	struct cgroup_places p = v2_place("/a/b");
	(void)mkdir(at("a"), 0755);
	(void)mkdir(at("a/b"), 0755);
	(void)mkdir(at("a/otari.5.1"), 0755);
	(void)mkdir(at("otari.6.1"), 0755);
	cr_expect(cgroup_sweep(&p));
	cr_expect_eq(access(at("a/otari.5.1"), F_OK), -1);
	cr_expect_eq(access(at("otari.6.1"), F_OK), -1);
}

Test(cgroup_tree, steps_aside_only_where_all_is_ours)
{
	struct cgroup_places p = v2_place("/unit");
	const pid_t ours[] = {4711, 4712};
	char *text = NULL;
	size_t len = 0;
	(void)mkdir(at("unit"), 0755);
	put("unit/cgroup.controllers", "memory\n");
	put("unit/cgroup.procs", "4711\n4712\n");
	cr_expect_not(cgroup_step_aside(&p, ours, 2), "in the root of all it may stay");
	put("unit/cgroup.type", "domain\n");
	cr_expect_not(cgroup_step_aside(&p, ours, 1), "another's process was moved");
	cr_expect_eq(access(at("unit/main"), F_OK), -1);
	put("unit/cgroup.controllers", "hugetlb\n");
	cr_expect_not(cgroup_step_aside(&p, ours, 2), "for nothing");
	put("unit/cgroup.controllers", "memory\n");
	(void)mkdir(at("unit/main"), 0755);
	put("unit/main/cgroup.procs", "");
	cr_expect(cgroup_step_aside(&p, ours, 2));
	cr_assert_eq(fd_read_file(at("unit/main/cgroup.procs"), 100, &text, &len, NULL), ERR_OK);
	cr_expect_str_eq(text, "47114712");
	mem_free(text);
	put("unit/cgroup.procs", "");
	put("unit/cgroup.subtree_control", "");
	cr_expect_eq(unlink(at("unit/main/cgroup.procs")), 0);
	cgroup_step_back(at("unit"));
	cr_expect_eq(access(at("unit/main"), F_OK), -1, "left behind");
	cr_assert_eq(fd_read_file(at("unit/cgroup.procs"), 100, &text, &len, NULL), ERR_OK);
	cr_expect_str_eq(text, "0");
	mem_free(text);
}
