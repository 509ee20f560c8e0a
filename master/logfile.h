/* logfile.h - the log of all processes: opened by the master, handed to the others. Process: master
 */
#ifndef OTARI_MASTER_LOGFILE_H
#define OTARI_MASTER_LOGFILE_H

#include "base/err.h"

struct master;

/* Opens what the configuration says and writes there from now on. Detached and without a log_file:
 * otari.log in the state directory. */
MUST_CHECK enum err_code logfile_open(struct master *m, struct err *reterr);
/* After a rotation: the master and every child go on in a new file. */
void logfile_reopen(struct master *m);

#endif
