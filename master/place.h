/* place.h - where and as whom we run: the user of the children, directories, the pid file
 *
 * Process: master, at start; may be root.
 */
#ifndef OTARI_MASTER_PLACE_H
#define OTARI_MASTER_PLACE_H

#include "base/err.h"

struct master;

/* As root: looks the user up; ERR_NOTFOUND names the command that makes it. */
MUST_CHECK enum err_code place_find_user(struct master *m, struct err *reterr);
/* The state directory (0700; one that is made now is the user's) and those of the pid file, log
 * file and control socket. */
MUST_CHECK enum err_code place_make_dirs(struct master *m, struct err *reterr);
/* ERR_BUSY: another master holds it. */
MUST_CHECK enum err_code place_write_pid_file(struct master *m, struct err *reterr);
void place_remove_pid_file(struct master *m);
/* The program otari-init beside ours, or in ../libexec/otari; -1: not there. */
int place_open_init(void);

#endif
