/* trial.h - does the sandbox run code? A session is opened, prints something, and is closed again
 *
 * Process: worker, loop thread. What a request would do, with the same settings; every step has the
 *          deadline that it has there.
 */
#ifndef OTARI_WORKER_CODE_TRIAL_H
#define OTARI_WORKER_CODE_TRIAL_H

#include <stdbool.h>

#include "base/str.h"

struct code_backend;
struct code_trial;

/* Exactly once, from the loop, unless cancelled; the trial is gone then. text: how it went. */
typedef void code_on_trial(void *arg, bool ok, const char *text);
/* b: ready (code_backend_ready). Returns owned. */
struct code_trial *code_trial_start(
    struct code_backend *b, struct str workspace, code_on_trial *on_trial, void *arg);
void code_trial_cancel(struct code_trial **t); /* NULL allowed */

#endif
