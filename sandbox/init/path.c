#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* The code may have planted links anywhere in the workspace: one component at a time, none
 * followed. */
int
open_parent(struct str path, bool make, char name[256])
{
	int dir = open(INIT_WORK, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0) {
		size_t n = 0;
		while (n < path.len && path.ptr[n] != '/')
			n++;
		memcpy(name, path.ptr, n); /* frame_path_ok: 1..255 */
		name[n] = '\0';
		if (n == path.len)
			return dir;
		int next = -1;
		if (!make || mkdirat(dir, name, 0755) == 0 || errno == EEXIST)
			next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int e = errno;
		close(dir);
		errno = e;
		dir = next;
		path = str_n(path.ptr + n + 1, path.len - n - 1);
	}
	return -1;
}
