/* produce.c - finds what a call made and streams it out
 *
 * Everything else is stopped or dead while this runs (kill.c), so nothing changes under it; still,
 * no name is followed: directories are entered and files opened with O_NOFOLLOW only.
 * Changed = path, inode, size or ctime differs from the snapshot before the call (ctime cannot be
 * set by the code). Limits: FILES_MAX files, NAMES_MAX bytes of paths, FRAME_DEPTH_MAX deep.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/collect/select.h"
#include "sandbox/init/init.h"

#define FILES_MAX 65536u
#define NAMES_MAX (4u << 20)

struct mark { /* of one file before the call */
	uint64_t path_hash, inode, size;
	int64_t ctime_s, ctime_ns;
};

struct found {
	uint32_t path_at;
	uint16_t path_len;
	uint16_t omit; /* enum frame_omit; FRAME_OMIT_END_: send */
	uint64_t size;
};

static struct mark marks[FILES_MAX];
static size_t mark_count;
static struct found founds[FILES_MAX];
static size_t found_count;
static char names[NAMES_MAX];
static uint32_t names_len;
static uint32_t skipped; /* by the walk under way */

struct walk {
	void (*on_file)(struct str path, const struct stat *st);
	char path[FRAME_PATH_MAX + 1];
};

static uint64_t
hash(struct str s)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.ptr[i]) * 0x100000001b3u;
	return h;
}

static int
mark_cmp(const void *va, const void *vb)
{
	const struct mark *a = va, *b = vb;
	if (a->path_hash != b->path_hash)
		return a->path_hash < b->path_hash ? -1 : 1;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

static struct mark
mark_of(struct str path, const struct stat *st)
{
	return (struct mark){
	    hash(path), st->st_ino, (uint64_t)st->st_size, st->st_ctim.tv_sec, st->st_ctim.tv_nsec};
}

static void
walk_dir(struct walk *w, int dir_fd, size_t len, unsigned depth)
{
	DIR *d = fdopendir(dir_fd);
	if (d == NULL) {
		close(dir_fd);
		skipped++;
		return;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		size_t n = strnlen(e->d_name, sizeof(e->d_name));
		struct stat st;
		if (len + n > FRAME_PATH_MAX || depth > FRAME_DEPTH_MAX ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			skipped++;
			continue;
		}
		memcpy(w->path + len, e->d_name, n);
		if (S_ISREG(st.st_mode)) {
			w->on_file(str_n(w->path, len + n), &st);
		} else if (S_ISDIR(st.st_mode) && len + n < FRAME_PATH_MAX) {
			int sub = openat(
			    dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			w->path[len + n] = '/';
			if (sub >= 0)
				walk_dir(w, sub, len + n + 1, depth + 1);
			else
				skipped++;
		} else {
			skipped++;
		}
	}
	closedir(d);
}

void
walk_work(void (*on_file)(struct str path, const struct stat *st))
{
	static struct walk w;
	w.on_file = on_file;
	int fd = open(INIT_WORK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		walk_dir(&w, fd, 0, 1);
}

static void
on_before(struct str path, const struct stat *st)
{
	if (mark_count < FILES_MAX)
		marks[mark_count++] = mark_of(path, st);
}

void
produce_snapshot(void)
{
	mark_count = 0;
	walk_work(on_before);
	qsort(marks, mark_count, sizeof(marks[0]), mark_cmp);
}

static void
on_after(struct str path, const struct stat *st)
{
	struct mark now = mark_of(path, st);
	const struct mark *old = bsearch(&now, marks, mark_count, sizeof(marks[0]), mark_cmp);
	if (old != NULL && memcmp(old, &now, sizeof(now)) == 0)
		return;
	if (found_count == FILES_MAX || path.len > NAMES_MAX - names_len) {
		skipped++;
		return;
	}
	memcpy(names + names_len, path.ptr, path.len);
	founds[found_count++] =
	    (struct found){names_len, (uint16_t)path.len, FRAME_OMIT_END_, (uint64_t)st->st_size};
	names_len += (uint32_t)path.len;
}

static struct str
found_path(const struct found *f)
{
	return str_n(names + f->path_at, f->path_len);
}

static int
found_cmp(const void *a, const void *b)
{
	return collect_path_cmp(found_path(a), found_path(b));
}

int
open_made(struct str path)
{
	char name[256];
	int dir = open_parent(path, false, name);
	if (dir < 0)
		return -1;
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	close(dir);
	return fd;
}

void
send_bytes(int fd, uint64_t left)
{
	static char chunk[FRAME_MAX];
	while (left > 0) {
		size_t want = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
		ssize_t n = read(fd, chunk, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		ctl_send(FRAME_FILE_DATA, chunk, (size_t)n);
		left -= (uint64_t)n;
	}
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_file_end end = {left == 0};
	ctl_send(FRAME_FILE_END, p, frame_file_end_put(p, &end));
}

static bool
send_file(struct found *f)
{
	struct stat st;
	int fd = open_made(found_path(f));
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != f->size) {
		if (fd >= 0)
			close(fd);
		f->omit = FRAME_OMIT_UNREADABLE;
		return false;
	}
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_file head = {f->size, found_path(f)};
	ctl_send(FRAME_FILE, p, frame_file_put(p, &head));
	send_bytes(fd, f->size);
	close(fd);
	return true;
}

void
produce_send(uint32_t max_files, uint64_t max_bytes)
{
	found_count = names_len = skipped = 0;
	walk_work(on_after);
	qsort(founds, found_count, sizeof(founds[0]), found_cmp);
	struct collect_budget budget = {max_files, max_bytes};
	struct frame_end end = {0};
	for (size_t i = 0; i < found_count; i++) {
		struct found *f = &founds[i];
		struct collect_budget before = budget;
		f->omit = (uint16_t)collect_admit(&budget, f->size);
		if (f->omit == FRAME_OMIT_END_ && send_file(f))
			end.sent++;
		else
			end.omitted++;
		if (f->omit == FRAME_OMIT_UNREADABLE)
			budget = before;
	}
	uint32_t listed = 0;
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	for (size_t i = 0; i < found_count && listed < COLLECT_LISTED_MAX; i++) {
		if (founds[i].omit == FRAME_OMIT_END_)
			continue;
		struct frame_omitted o = {founds[i].size, founds[i].omit, found_path(&founds[i])};
		ctl_send(FRAME_OMITTED, p, frame_omitted_put(p, &o));
		listed++;
	}
	end.skipped = skipped;
	ctl_send(FRAME_END, p, frame_end_put(p, &end));
}
