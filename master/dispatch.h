/* dispatch.h - messages of the children, each to the file that answers it. Process: master. */
#ifndef OTARI_MASTER_DISPATCH_H
#define OTARI_MASTER_DISPATCH_H

#include <stdbool.h>

#include "base/err.h"

struct child;
struct master;

/* Takes ctl, our end of the child's channel. */
MUST_CHECK enum err_code dispatch_attach(struct child *c, int ctl, struct err *reterr);
/* One more public socket to serve. fd is borrowed. */
void dispatch_send_listener(struct child *c, int fd);
/* Where the sandbox is lent from now on; -1: nowhere. fd is borrowed. */
void dispatch_send_serve(struct child *c, int fd);
/* Has a worker try the sandbox: control_tried follows. False: none is ready. */
bool dispatch_send_try(struct master *m);
/* Answers to publish_ask. */
void dispatch_published(struct child *c, unsigned id, const char *error);

#endif
