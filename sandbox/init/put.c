#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static struct {
	bool is_open;
	int fd; /* -1: failed, the rest is drained */
	uint64_t left;
	int sys_errno;
} put = {.fd = -1};

/* The code may have planted links anywhere in the workspace: one component at a time, none
 * followed, and an existing last component is replaced, not written through. */
static int
create(struct str path)
{
	int dir = open(INIT_WORK, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0) {
		char name[256];
		size_t n = 0;
		while (n < path.len && path.ptr[n] != '/')
			n++;
		memcpy(name, path.ptr, n); /* frame_path_ok: 1..255 */
		name[n] = '\0';
		int next;
		if (n == path.len) {
			if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
				next = -1;
			else
				next = openat(dir, name,
				    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
			int e = errno;
			close(dir);
			errno = e;
			return next;
		}
		if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST) {
			next = -1;
		} else {
			next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		int e = errno;
		close(dir);
		errno = e;
		dir = next;
		path = (struct str){path.ptr + n + 1, path.len - n - 1};
	}
	return -1;
}

void
put_begin(const struct frame_file *f)
{
	if (put.is_open || !run_is_idle())
		init_leave(70);
	put.is_open = true;
	put.left = f->size;
	put.sys_errno = 0;
	put.fd = create(f->path);
	if (put.fd < 0)
		put.sys_errno = errno;
}

void
put_data(struct str bytes)
{
	if (!put.is_open || bytes.len > put.left)
		init_leave(70);
	put.left -= bytes.len;
	while (put.fd >= 0 && bytes.len > 0) {
		ssize_t n = write(put.fd, bytes.ptr, bytes.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			put.sys_errno = errno;
			close(put.fd);
			put.fd = -1;
			return;
		}
		bytes = (struct str){bytes.ptr + n, bytes.len - (size_t)n};
	}
}

void
put_end(void)
{
	if (!put.is_open)
		init_leave(70);
	if (put.fd >= 0)
		close(put.fd);
	if (put.left != 0 && put.sys_errno == 0)
		put.sys_errno = EPROTO;
	put.fd = -1;
	put.is_open = false;
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_put_done d = {put.sys_errno};
	ctl_send(FRAME_PUT_DONE, p, frame_put_done_put(p, &d));
}
