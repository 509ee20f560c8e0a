#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static struct {
	bool is_open;
	int fd; /* -1: failed, the rest is drained */
	uint64_t left;
	int sys_errno;
} put = {.fd = -1};

/* An existing last component is replaced, not written through. */
static int
create(struct str path)
{
	char name[256];
	int dir = open_parent(path, true, name);
	if (dir < 0)
		return -1;
	int fd = -1;
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int e = errno;
	close(dir);
	errno = e;
	return fd;
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

bool
put_is_open(void)
{
	return put.is_open;
}
