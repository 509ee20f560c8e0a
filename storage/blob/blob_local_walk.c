/* The directory backend's walks: every blob, and what broken puts left behind. */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "storage/blob/blob_local.h"

/* Takes fd. */
static DIR *
open_dir(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (d == NULL)
		fd_close(&fd);
	return d;
}

/* One directory's files; false: fn asked to stop. */
static bool
list_dir(int at, const char *shard, blob_list_fn *fn, void *arg)
{
	DIR *d = open_dir(fd_openat(at, shard, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
	if (d == NULL)
		return true; /* emptied meanwhile */
	bool go_on = true;
	const struct dirent *e;
	while (go_on && (e = readdir(d)) != NULL) {
		struct stat st;
		char key[BLOB_KEY_SIZE];
		int n = shard[0] == '.' ? snprintf(key, sizeof(key), "%s", e->d_name)
					: snprintf(key, sizeof(key), "%s/%s", shard, e->d_name);
		if (n < 0 || (size_t)n >= sizeof(key) || !blob_key_valid(str_c(key)) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		struct blob_info info = {(uint64_t)st.st_size, st.st_mtime};
		go_on = fn(str_c(key), &info, arg);
	}
	(void)closedir(d);
	return go_on;
}

enum err_code
blob_local_list(struct blob_store *s, blob_list_fn *fn, void *arg, struct err *reterr)
{
	const struct blob_local *l = (const struct blob_local *)s;
	DIR *d = open_dir(fd_openat(l->root, ".", O_RDONLY | O_DIRECTORY, 0));
	if (d == NULL)
		return err_set(reterr, ERR_IO, "blob: cannot read the directory");
	bool go_on = list_dir(l->root, ".", fn, arg);
	const struct dirent *e;
	while (go_on && (e = readdir(d)) != NULL) {
		struct stat st;
		if (e->d_name[0] != '.' &&
		    fstatat(l->root, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode))
			go_on = list_dir(l->root, e->d_name, fn, arg);
	}
	(void)closedir(d);
	return ERR_OK;
}

enum err_code
blob_local_clean(struct blob_store *s, int64_t older_than_s, uint64_t *ret_n, struct err *reterr)
{
	const struct blob_local *l = (const struct blob_local *)s;
	DIR *d = open_dir(fd_openat(l->temps, ".", O_RDONLY | O_DIRECTORY, 0));
	if (d == NULL)
		return err_set(reterr, ERR_IO, "blob: cannot read the temporary directory");
	int64_t now_s = clock_wall_s();
	uint64_t n = 0;
	const struct dirent *e;
	while ((e = readdir(d)) != NULL) {
		struct stat st;
		/* A put in progress touches its file with every write. */
		if (fstatat(l->temps, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && now_s - st.st_mtime >= older_than_s &&
		    unlinkat(l->temps, e->d_name, 0) == 0)
			n++;
	}
	(void)closedir(d);
	*ret_n = n;
	return ERR_OK;
}
