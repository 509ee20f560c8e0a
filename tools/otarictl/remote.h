/* remote.h - is the sandbox on another host there?
 *
 * Process: otarictl. Asks GET /health, without a token: otarictl knows no secret.
 */
#ifndef OTARI_TOOLS_OTARICTL_REMOTE_H
#define OTARI_TOOLS_OTARICTL_REMOTE_H

#include "base/str.h"

/* Prints what it found. 0: it answers, whatever it says. 1: it cannot be reached. */
int remote_show(struct str url);

#endif
