/* edit.c - one call of the text editor: view, create, str_replace
 *
 * Everything else is stopped or dead. No link is followed, and only plain files are read or
 * written: a link, a pipe or a device is refused. A file is replaced whole by one that was written
 * beside it, so that a full disk leaves the old one. Limits: FILE_MAX a file, FRAME_EDIT_MAX an
 * answer, LISTED_MAX names.
 */
#include "sandbox/edit/edit.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

#define FILE_MAX  FRAME_SOURCE_MAX
#define TEMPORARY ".otari-edit~"

static char before[FILE_MAX], after[FILE_MAX], answer[FRAME_EDIT_MAX];
static size_t answer_len;

static enum frame_edit_error
error_of(int sys_errno)
{
	switch (sys_errno) {
	case ENOENT:
	case ENOTDIR:
		return FRAME_EDIT_NOT_FOUND;
	case ELOOP: /* a link */
	case EISDIR:
		return FRAME_EDIT_INVALID;
	case EFBIG:
		return FRAME_EDIT_TOO_LARGE;
	default:
		return FRAME_EDIT_FAILED;
	}
}

/* Opens without waiting for whoever is at the other end of a pipe. */
static int
open_any(struct str path, struct stat *st)
{
	char name[256];
	if (path.len == 0) {
		int work = open(INIT_WORK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return work >= 0 && fstat(work, st) == 0 ? work : -1;
	}
	int dir = open_parent(path, false, name);
	if (dir < 0)
		return -1;
	int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	int e = errno;
	close(dir);
	errno = e;
	if (fd >= 0 && fstat(fd, st) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The whole of an open plain file into `before`; closes it. */
static enum frame_edit_error
read_text(int fd, const struct stat *st, struct str *ret)
{
	size_t len = 0;
	ssize_t n = 1;
	if (S_ISREG(st->st_mode) && st->st_size <= (off_t)FILE_MAX)
		while (len < FILE_MAX && n > 0) {
			n = read(fd, before + len, FILE_MAX - len);
			len += n > 0 ? (size_t)n : 0;
		}
	close(fd);
	if (!S_ISREG(st->st_mode))
		return FRAME_EDIT_INVALID;
	if (st->st_size > (off_t)FILE_MAX)
		return FRAME_EDIT_TOO_LARGE;
	if (n < 0)
		return FRAME_EDIT_FAILED;
	*ret = str_n(before, len);
	return edit_is_text(*ret) ? FRAME_EDIT_OK : FRAME_EDIT_NOT_TEXT;
}

static bool
write_all(int fd, struct str s)
{
	while (s.len > 0) {
		ssize_t n = write(fd, s.ptr, s.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		s = str_n(s.ptr + n, s.len - (size_t)n);
	}
	return true;
}

static enum frame_edit_error
write_file(int dir, const char *name, mode_t mode, struct str text)
{
	(void)unlinkat(dir, TEMPORARY, 0);
	int fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_of(errno);
	bool ok = write_all(fd, text) && fchmod(fd, mode) == 0;
	int e = errno;
	close(fd);
	if (ok && renameat(dir, TEMPORARY, dir, name) == 0)
		return FRAME_EDIT_OK;
	if (ok)
		e = errno;
	(void)unlinkat(dir, TEMPORARY, 0);
	return error_of(e);
}

static enum frame_edit_error
view(struct str path, const struct frame_edit *e, struct frame_edited *ret)
{
	struct stat st;
	struct str text;
	struct edit_view v;
	int fd = open_any(path, &st);
	if (fd < 0)
		return error_of(errno);
	if (S_ISDIR(st.st_mode)) {
		ret->flags |= FRAME_EDITED_DIRECTORY;
		answer_len = edit_list(fd, path, answer, sizeof(answer), &ret->line_count);
		ret->first_line = 1;
		ret->total_lines = ret->line_count;
		return FRAME_EDIT_OK;
	}
	enum frame_edit_error error = read_text(fd, &st, &text);
	if (error != FRAME_EDIT_OK)
		return error;
	if (!edit_view_lines(text, e->first_line, e->last_line, &v))
		return FRAME_EDIT_INVALID;
	if (v.text.len > sizeof(answer))
		return FRAME_EDIT_TOO_LARGE;
	memcpy(answer, v.text.ptr, v.text.len);
	answer_len = v.text.len;
	ret->first_line = v.first_line;
	ret->line_count = v.line_count;
	ret->total_lines = v.total_lines;
	return FRAME_EDIT_OK;
}

static enum frame_edit_error
create(struct str path, const struct frame_edit *e, struct frame_edited *ret)
{
	char name[256];
	struct stat st;
	if (path.len == 0)
		return FRAME_EDIT_INVALID;
	if (!edit_is_text(e->text))
		return FRAME_EDIT_NOT_TEXT;
	int dir = open_parent(path, true, name);
	if (dir < 0)
		return errno == ENOTDIR ? FRAME_EDIT_INVALID : error_of(errno);
	bool is_there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	enum frame_edit_error error = FRAME_EDIT_INVALID;
	if (!is_there || S_ISREG(st.st_mode))
		error = write_file(dir, name, is_there ? st.st_mode & 0777 : 0644, e->text);
	close(dir);
	if (error == FRAME_EDIT_OK && is_there)
		ret->flags |= FRAME_EDITED_UPDATE;
	return error;
}

static enum frame_edit_error
str_replace(struct str path, const struct frame_edit *e, struct frame_edited *ret)
{
	char name[256];
	struct stat st;
	struct str text;
	struct edit_hunk h;
	size_t len = 0;
	int fd = open_any(path, &st);
	if (fd < 0)
		return error_of(errno);
	enum frame_edit_error error = read_text(fd, &st, &text);
	if (error != FRAME_EDIT_OK)
		return error;
	if (!edit_is_text(e->text))
		return FRAME_EDIT_NOT_TEXT;
	error = edit_replace(text, e->old, e->text, after, sizeof(after), &len);
	if (error != FRAME_EDIT_OK)
		return error;
	if (!edit_diff(text, str_n(after, len), answer, sizeof(answer), &answer_len, &h))
		return FRAME_EDIT_TOO_LARGE;
	int dir = open_parent(path, false, name);
	if (dir < 0)
		return error_of(errno);
	error = write_file(dir, name, st.st_mode & 0777, str_n(after, len));
	close(dir);
	ret->old_start = h.old_start;
	ret->old_lines = h.old_lines;
	ret->new_start = h.new_start;
	ret->new_lines = h.new_lines;
	return error;
}

int
edit_run(struct str source)
{
	static char clean[FRAME_PATH_MAX];
	struct frame_edit e;
	struct frame_edited done = {0};
	struct str path;
	if (!frame_edit_get(source, &e))
		init_leave(70);
	answer_len = 0;
	if (!edit_path(e.path, clean, &path))
		done.error = FRAME_EDIT_INVALID;
	else if (e.command == FRAME_EDIT_VIEW)
		done.error = view(path, &e, &done);
	else if (e.command == FRAME_EDIT_CREATE)
		done.error = create(path, &e, &done);
	else
		done.error = str_replace(path, &e, &done);
	if (done.error != FRAME_EDIT_OK)
		done = (struct frame_edited){.error = done.error};
	else
		for (size_t at = 0; at < answer_len; at += FRAME_MAX)
			ctl_send(FRAME_EDIT_TEXT, answer + at,
			    answer_len - at < FRAME_MAX ? answer_len - at : FRAME_MAX);
	uint8_t p[FRAME_FIXED_MAX];
	ctl_send(FRAME_EDITED, p, frame_edited_put(p, &done));
	return done.error != FRAME_EDIT_OK;
}
