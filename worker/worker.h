/* worker.h - the role that serves clients: an event loop, a few threads for SQL and disk */
#ifndef OTARI_WORKER_WORKER_H
#define OTARI_WORKER_WORKER_H

/* Role entry after exec; returns the exit status: 0 drained, 1 failed. */
int worker_main(int argc, char **argv);

#endif
