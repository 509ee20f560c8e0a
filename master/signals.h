/* signals.h - the master's signals, all handled from its loop. Process: master.
 *
 * HUP reload · TERM, INT drain and stop (a second INT: at once) · QUIT stop at once · USR1 reopen
 * the log · WINCH drain workers (detached only) · CHLD reap. PIPE is ignored.
 */
#ifndef OTARI_MASTER_SIGNALS_H
#define OTARI_MASTER_SIGNALS_H

struct master;

void signals_start(struct master *m);
void signals_stop(struct master *m);

#endif
