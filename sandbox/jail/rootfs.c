/* rootfs.c - the root of every session: /usr of the host (or of sandbox_rootfs) read-only, a
 * synthetic /etc, five device nodes. Nothing of /run, /var, /sys, /home, /root, /tmp is in it, and
 * no socket. */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"
#include "sandbox/zygote/zygote.h"

/* The new root is assembled here, inside our own mount namespace. */
#define STAGE "/tmp"

static bool
bind(const char *src, const char *dst, uint64_t attr)
{
	struct mount_attr a = {.attr_set = attr};
	return mount(src, dst, NULL, MS_BIND | MS_REC, NULL) == 0 &&
	       syscall(SYS_mount_setattr, AT_FDCWD, dst, AT_RECURSIVE, &a, sizeof(a)) == 0;
}

static bool
make_file(const char *path, const char *text)
{
	int fd = fd_open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0)
		return false;
	size_t n = strlen(text); /* of ours */
	bool ok = write(fd, text, n) == (ssize_t)n;
	fd_close(&fd);
	return ok;
}

/* src may be absent: then it is absent inside too. */
static bool
bind_if_there(const char *src, const char *dst)
{
	struct stat st;
	if (stat(src, &st) != 0)
		return true;
	bool made = S_ISDIR(st.st_mode) ? mkdir(dst, 0755) == 0 : make_file(dst, "");
	return made &&
	       bind(src, dst,
		   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static bool
make_system(const char *rootfs, struct jail_fail *f)
{
	static const char *const dirs[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "opt"};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		char src[LEASE_PATH_MAX + 16], target[64];
		struct stat st;
		(void)snprintf(src, sizeof(src), "%s/%s", rootfs, dirs[i]);
		if (strcmp(dirs[i], "opt") == 0 && rootfs[0] == '\0')
			continue; /* may hold anything on a host; an image knows what it has */
		if (lstat(src, &st) != 0)
			continue;
		if (S_ISLNK(st.st_mode)) {
			ssize_t n = readlink(src, target, sizeof(target) - 1);
			if (n < 0)
				return jail_failed(f, SB_MOUNT_NS, "readlink");
			target[n] = '\0';
			if (symlink(target, dirs[i]) != 0)
				return jail_failed(f, SB_MOUNT_NS, "symlink");
			continue;
		}
		if (mkdir(dirs[i], 0755) != 0 ||
		    !bind(src, dirs[i], MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV))
			return jail_failed(f, SB_MOUNT_NS, dirs[i]);
	}
	return true;
}

static bool
make_etc(const char *rootfs, struct jail_fail *f)
{
	static const char *const from_host[] = {"ld.so.cache", "alternatives", "fonts",
	    "matplotlibrc", "mime.types", "localtime", "python3", "python3.11"};
	static const struct {
		const char *path, *text;
	} made[] = {{"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
				   "sandbox:x:1000:1000:sandbox:/work:/bin/bash\n"},
	    {"etc/group", "root:x:0:\nsandbox:x:1000:\n"},
	    {"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"}, {"etc/hostname", "sandbox\n"},
	    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	    {"etc/resolv.conf", ""}};
	if (mkdir("etc", 0755) != 0)
		return jail_failed(f, SB_MOUNT_NS, "etc");
	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		if (!make_file(made[i].path, made[i].text))
			return jail_failed(f, SB_MOUNT_NS, made[i].path);
	for (size_t i = 0; i < ARRAY_LEN(from_host); i++) {
		char src[LEASE_PATH_MAX + 32], dst[64];
		(void)snprintf(src, sizeof(src), "%s/etc/%s", rootfs, from_host[i]);
		(void)snprintf(dst, sizeof(dst), "etc/%s", from_host[i]);
		if (!bind_if_there(src, dst))
			return jail_failed(f, SB_MOUNT_NS, dst);
	}
	return true;
}

static bool
make_dev(struct jail_fail *f)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom"};
	static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
	    {"/proc/self/fd/0", "dev/stdin"}, {"/proc/self/fd/1", "dev/stdout"},
	    {"/proc/self/fd/2", "dev/stderr"}};
	if (mkdir("dev", 0755) != 0 || mkdir("dev/shm", 0755) != 0)
		return jail_failed(f, SB_MOUNT_NS, "dev");
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		char src[32], dst[32];
		(void)snprintf(src, sizeof(src), "/dev/%s", nodes[i]);
		(void)snprintf(dst, sizeof(dst), "dev/%s", nodes[i]);
		/* Read-only is the node, not the device. */
		if (!make_file(dst, "") ||
		    !bind(src, dst, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC))
			return jail_failed(f, SB_MOUNT_NS, dst);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) != 0)
			return jail_failed(f, SB_MOUNT_NS, links[i][1]);
	return true;
}

/* The path that it was opened by cannot be named in here, and may be mounted noexec. */
static bool
copy_init(int init_fd, struct jail_fail *f)
{
	char chunk[16384];
	off_t at = 0;
	ssize_t n;
	int fd = fd_open("init", O_CREAT | O_EXCL | O_WRONLY, 0555);
	if (fd < 0)
		return jail_failed(f, SB_MOUNT_NS, "init");
	while ((n = pread(init_fd, chunk, sizeof(chunk), at)) > 0) {
		if (fd_write_all(fd, str_n(chunk, (size_t)n), NULL) != ERR_OK) {
			n = -1;
			break;
		}
		at += n;
	}
	int e = errno;
	fd_close(&fd);
	errno = e;
	return n == 0 || jail_failed(f, SB_MOUNT_NS, "copy of otari-init");
}

/* In a folder that the tmpfs of every session covers. */
static bool
make_library(struct str bytes, struct jail_fail *f)
{
	int fd = fd_open(ZYGOTE_LIBRARY, O_CREAT | O_EXCL | O_WRONLY, 0444);
	bool ok = fd >= 0 && fd_write_all(fd, bytes, NULL) == ERR_OK;
	int e = errno;
	fd_close(&fd);
	errno = e;
	return ok || jail_failed(f, SB_MOUNT_NS, "copy of the zygote's library");
}

bool
jail_enter_rootfs(
    const struct sandbox_settings *s, int init_fd, struct str zygote_library, struct jail_fail *f)
{
	char rootfs[LEASE_PATH_MAX];
	memcpy(rootfs, s->rootfs, sizeof(rootfs));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return jail_failed(f, SB_MOUNT_NS, "mount private");
	/* A rootfs below STAGE would be hidden: take hold of it first. */
	if (rootfs[0] != '\0') {
		int fd = fd_open(rootfs, O_PATH | O_DIRECTORY, 0);
		if (fd < 0)
			return jail_failed(f, SB_MOUNT_NS, "sandbox_rootfs");
		(void)snprintf(rootfs, sizeof(rootfs), "/proc/self/fd/%d", fd);
	}
	umask(022);
	if (mount("otari", STAGE, "tmpfs", MS_NOSUID | MS_NODEV,
		"size=16m,nr_inodes=512,mode=0755") != 0 ||
	    chdir(STAGE) != 0)
		return jail_failed(f, SB_MOUNT_NS, "mount tmpfs");
	if (!make_system(rootfs, f) || !make_etc(rootfs, f) || !make_dev(f) ||
	    !copy_init(init_fd, f) || !make_library(zygote_library, f))
		return false;
	static const char *const dirs[] = {"proc", "tmp", "work", "mnt"};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdir(dirs[i], 0755) != 0)
			return jail_failed(f, SB_MOUNT_NS, dirs[i]);
	if (symlink("/work", "mnt/data") != 0)
		return jail_failed(f, SB_MOUNT_NS, "mnt/data");
	/* Only while the host's whole /proc is visible does the kernel allow this. */
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		return jail_failed(f, SB_PROC, "mount proc");
	if (syscall(SYS_pivot_root, ".", ".") != 0)
		return jail_failed(f, SB_MOUNT_NS, "pivot_root");
	if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		return jail_failed(f, SB_MOUNT_NS, "umount the host");
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &ro, sizeof(ro)) != 0)
		return jail_failed(f, SB_MOUNT_NS, "root read-only");
	return true;
}
