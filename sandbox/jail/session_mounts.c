#include <sys/mount.h>
#include <sys/stat.h>

#include <stdio.h>
#include <unistd.h>

#include "sandbox/jail/jail.h"

/* One sized tmpfs carries /work, /tmp and /dev/shm: it is mounted on /dev/shm, its three folders
 * are bound to their places, and the last bind covers it. */
bool
jail_session_mounts(const struct jail *j, uid_t owner, struct jail_fail *f)
{
	static const struct {
		const char *src, *dst;
		mode_t mode;
	} parts[] = {{"/dev/shm/w", "/work", 0755}, {"/dev/shm/t", "/tmp", 01777},
	    {"/dev/shm/s", "/dev/shm", 01777}};
	char options[128];
	(void)snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu,mode=0711",
	    (unsigned long long)j->settings->workspace_bytes,
	    (unsigned long long)j->settings->workspace_inodes);
	if (mount("work", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
		return jail_failed(f, SB_WORKSPACE, "mount tmpfs");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (mkdir(parts[i].src, 0700) != 0 || chown(parts[i].src, owner, owner) != 0 ||
		    chmod(parts[i].src, parts[i].mode) != 0)
			return jail_failed(f, SB_WORKSPACE, parts[i].dst);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (mount(parts[i].src, parts[i].dst, NULL, MS_BIND, NULL) != 0)
			return jail_failed(f, SB_WORKSPACE, parts[i].dst);
	/* hidepid=1 keeps foreign /proc/PID unreadable but lists them all: init must see every
	 * process to end it, also one that made itself unreadable. */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"subset=pid,hidepid=1") != 0)
		return jail_failed(f, SB_PROC, "mount proc of the session");
	if (sethostname("sandbox", 7) != 0)
		return jail_failed(f, SB_IPC_UTS_NS, "sethostname");
	return true;
}
