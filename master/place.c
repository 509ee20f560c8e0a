#include "master/place.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "master/master.h"

enum err_code
place_find_user(struct master *m, struct err *reterr)
{
	if (!m->is_root)
		return ERR_OK;
	char name[64], room[4096];
	struct passwd pw, *found = NULL;
	if (!str_copy(name, sizeof(name), m->conf.user) || name[0] == '\0')
		return err_set(reterr, ERR_INPUT, "user: not a user name");
	(void)getpwnam_r(name, &pw, room, sizeof(room), &found);
	if (found == NULL)
		return err_set(reterr, ERR_NOTFOUND,
		    "user %s does not exist; make it with: useradd --system --home-dir %.*s "
		    "--shell /usr/sbin/nologin %s",
		    name, STR_FMT(m->conf.state_dir), name);
	if (pw.pw_uid == 0)
		return err_set(reterr, ERR_INPUT,
		    "user %s is root; started as root, otari drops to an ordinary user", name);
	m->uid = pw.pw_uid;
	m->gid = pw.pw_gid;
	m->has_user = true;
	return ERR_OK;
}

/* Makes every missing directory of path (without its last component when is_file). *ret_made: the
 * last one was not there before. */
static bool
make_dirs(struct str path, bool is_file, mode_t mode, bool *ret_made)
{
	char text[PATH_MAX];
	*ret_made = false;
	if (path.ptr == NULL)
		return true;
	if (is_file)
		path = str_sub(path, 0, str_rchr(path, '/') == SIZE_MAX ? 0 : str_rchr(path, '/'));
	if (!str_copy(text, sizeof(text), path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	for (char *p = text; *p != '\0'; p++) {
		if (*p != '/' || p == text)
			continue;
		*p = '\0';
		if (mkdir(text, 0755) != 0 && errno != EEXIST)
			return false;
		*p = '/';
	}
	*ret_made = text[0] != '\0' && mkdir(text, mode) == 0;
	return text[0] == '\0' || *ret_made || errno == EEXIST;
}

enum err_code
place_make_dirs(struct master *m, struct err *reterr)
{
	const struct master_conf *c = &m->conf;
	char dir[PATH_MAX];
	bool made;
	if (!str_copy(dir, sizeof(dir), c->state_dir) ||
	    !make_dirs(c->state_dir, false, 0700, &made))
		return err_set(reterr, ERR_IO, "make directory %.*s", STR_FMT(c->state_dir));
	/* Only what we made is given away: state_dir may name any directory by mistake. */
	if (m->is_root && made) {
		int fd = fd_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		bool ok = fd >= 0 && fchown(fd, m->uid, m->gid) == 0;
		fd_close(&fd);
		if (!ok)
			return err_set(reterr, ERR_IO, "give %s to its user", dir);
	}
	if (!make_dirs(c->pid_file, true, 0755, &made) ||
	    !make_dirs(c->log_file, true, 0755, &made) ||
	    !make_dirs(c->control_socket, true, 0755, &made))
		return err_set(reterr, ERR_IO,
		    "make a directory for pid_file, log_file or "
		    "control_socket");
	return ERR_OK;
}

enum err_code
place_write_pid_file(struct master *m, struct err *reterr)
{
	char path[PATH_MAX], text[24];
	if (m->conf.pid_file.ptr == NULL)
		return ERR_OK;
	if (!str_copy(path, sizeof(path), m->conf.pid_file))
		return err_set(reterr, ERR_INPUT, "pid_file: too long");
	int fd = fd_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_set(reterr, ERR_IO, "pid file %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		fd_close(&fd);
		return err_set(reterr, ERR_BUSY, "another otari runs (pid file %s)", path);
	}
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) != 0 || fd_write_all(fd, str_n(text, (size_t)n), NULL) != ERR_OK) {
		fd_close(&fd);
		return err_set(reterr, ERR_IO, "pid file %s", path);
	}
	m->pid_file_fd = fd; /* holds the lock as long as we live */
	return ERR_OK;
}

void
place_remove_pid_file(struct master *m)
{
	char path[PATH_MAX];
	if (m->pid_file_fd >= 0 && str_copy(path, sizeof(path), m->conf.pid_file))
		(void)unlink(path);
	fd_close(&m->pid_file_fd);
}

int
place_open_init(void)
{
	static const char *const places[] = {"", "../libexec/otari/", "../lib/otari/"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return -1;
	size_t slash = str_rchr(str_n(self, (size_t)n), '/');
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(
		    path, sizeof(path), "%.*s/%sotari-init", (int)slash, self, places[i]);
		int fd = fd_open(path, O_RDONLY, 0);
		if (fd >= 0)
			return fd;
	}
	return -1;
}
