#include "master/logfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "ipc/chan.h"
#include "master/link.h"
#include "master/master.h"

static bool
log_path(const struct master *m, char *dst, size_t size)
{
	if (m->conf.log_file.ptr != NULL)
		return str_copy(dst, size, m->conf.log_file);
	if (m->opt.foreground)
		return false;
	int n = snprintf(dst, size, "%.*s/otari.log", STR_FMT(m->conf.state_dir));
	return n > 0 && (size_t)n < size;
}

enum err_code
logfile_open(struct master *m, struct err *reterr)
{
	char path[PATH_MAX];
	log_setup(m->log_fd, m->conf.log_json, (enum log_level)m->conf.log_level, "master");
	if (!log_path(m, path, sizeof(path)))
		return ERR_OK;
	/* The user of the children may write in state_dir: no link of its making is followed. */
	int follow = str_starts(str_c(path), m->conf.state_dir) ? O_NOFOLLOW : 0;
	int fd = fd_open(path, O_WRONLY | O_APPEND | O_CREAT | follow, 0640);
	if (fd < 0)
		return err_set(reterr, ERR_IO, "log file %s", path);
	/* In place of the old one: every user of the number goes on without being told. */
	bool ok = m->log_fd > STDERR_FILENO ? fd_dup_to(fd, m->log_fd, true) : true;
	if (m->log_fd <= STDERR_FILENO) {
		m->log_fd = fd;
		log_set_fd(fd);
	} else {
		fd_close(&fd);
	}
	return ok ? ERR_OK : err_set(reterr, ERR_IO, "log file %s", path);
}

void
logfile_reopen(struct master *m)
{
	struct err e;
	struct child *c;
	char path[PATH_MAX];
	if (m->phase < MASTER_START || !log_path(m, path, sizeof(path)))
		return;
	if (logfile_open(m, &e) != ERR_OK) {
		log_error("the old log file stays in use", LOG_ERR(&e));
		return;
	}
	TAILQ_FOREACH(c, &m->children, link)
		if (c->chan != NULL && c->role != ROLE_BUILDER)
			chan_send(c->chan, MSG_REOPEN, 0, STR_NULL, &m->log_fd, 1);
	link_reopen_log(m);
	log_notice("log reopened");
}
