/* list.c - which files there are, and one of them, for a worker that lends the session on
 *
 * Between two calls everything else is stopped or dead, so nothing changes under it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static struct frame_end listed;

static void
on_file(struct str path, const struct stat *st)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	if (listed.sent == FRAME_ENTRIES_MAX || !frame_path_ok(path)) {
		listed.omitted++;
		return;
	}
	struct frame_entry e = {(uint64_t)st->st_size,
	    (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec, path};
	ctl_send(FRAME_ENTRY, p, frame_entry_put(p, &e));
	listed.sent++;
}

void
list_send(void)
{
	uint8_t p[FRAME_FIXED_MAX];
	if (!run_is_idle() || put_is_open())
		init_leave(70);
	listed = (struct frame_end){0};
	walk_work(on_file);
	ctl_send(FRAME_END, p, frame_end_put(p, &listed));
}

static void
refuse(int sys_errno)
{
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_put_done d = {sys_errno};
	ctl_send(FRAME_GET_FAILED, p, frame_put_done_put(p, &d));
}

void
get_send(struct str path)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct stat st;
	if (!run_is_idle() || put_is_open() || !frame_path_ok(path))
		init_leave(70);
	int fd = open_made(path);
	if (fd < 0) {
		refuse(errno);
		return;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		refuse(EISDIR);
	} else {
		struct frame_file f = {(uint64_t)st.st_size, path};
		ctl_send(FRAME_FILE, p, frame_file_put(p, &f));
		send_bytes(fd, f.size);
	}
	close(fd);
}
