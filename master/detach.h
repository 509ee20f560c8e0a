/* detach.h - becoming a daemon whose starter waits until it serves. Process: master. */
#ifndef OTARI_MASTER_DETACH_H
#define OTARI_MASTER_DETACH_H

/* Goes on in a new session, without terminal. The process that was started waits for detach_report
 * and exits with what it says. Returns the pipe to it (close-on-exec), or -1 when nobody waits. */
int detach_start(void);
/* Tells the waiting process; closes the pipe and lets go of the terminal. fd -1: nothing. */
void detach_report(int fd, int exit_code, const char *text);

#endif
