/* landlock.c - a second wall over paths, should one of the mounts ever not be what we think
 *
 * Optional: where the kernel has none (or only the first version, which forbids every rename
 * between folders) the session goes without, and the report says so.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include <linux/landlock.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define READ                                                                                       \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE                                                                                      \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                         \
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                           \
	    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
#define NEVER (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

/* As the kernel has it from version 6 on; all sessions are in one network namespace, so that
 * without the filter they could meet at a name without a file. (Signals are left alone: otari-init
 * must reach an interpreter that came from the zygote.) */
#define SCOPE_ABSTRACT_UNIX_SOCKET 1u
struct ruleset {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

/* 0: none. */
static int
version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return v > 0 ? (int)v : 0;
}

bool
jail_has_landlock(void)
{
	return version() >= 2;
}

bool
jail_landlock_scopes(void)
{
	return version() >= 6;
}

static bool
allow(int ruleset, const char *path, uint64_t access)
{
	int fd = fd_open(path, O_PATH, 0);
	if (fd < 0)
		return errno == ENOENT; /* lib32, opt: what is not there needs no rule */
	struct landlock_path_beneath_attr a = {.allowed_access = access, .parent_fd = fd};
	long rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
	fd_close(&fd);
	return rc == 0;
}

bool
jail_session_landlock(struct jail_fail *f)
{
	static const char *const readable[] = {
	    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/mnt"};
	static const char *const writable[] = {"/work", "/tmp", "/dev/shm"};
	int v = version();
	if (v < 2)
		return true;
	uint64_t truncate = v >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
	struct ruleset attr = {.handled_access_fs = READ | WRITE | NEVER | truncate};
	/* Later members are not known to every kernel. */
	size_t size = v >= 6 ? sizeof(attr) : sizeof(attr.handled_access_fs);
	if (v >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET;
	int set = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (set < 0)
		return jail_failed(f, SB_LANDLOCK, "ruleset");
	bool ok = true;
	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		ok = ok && allow(set, readable[i], READ);
	for (size_t i = 0; i < ARRAY_LEN(writable); i++)
		ok = ok && allow(set, writable[i], READ | WRITE | truncate);
	uint64_t devices = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
			   LANDLOCK_ACCESS_FS_WRITE_FILE | truncate;
	ok = ok && allow(set, "/dev", devices) && allow(set, "/proc", devices);
	ok = ok && allow(set, "/init", LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE);
	ok = ok && allow(set, "/", LANDLOCK_ACCESS_FS_READ_DIR);
	ok = ok && syscall(SYS_landlock_restrict_self, set, 0) == 0;
	int e = errno;
	fd_close(&set);
	errno = e;
	return ok || jail_failed(f, SB_LANDLOCK, "rules");
}
