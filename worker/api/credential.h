/* credential.h - the credentials that a request's headers hold. Pure.
 *
 * Process: worker. Values point into the head.
 */
#ifndef OTARI_WORKER_API_CREDENTIAL_H
#define OTARI_WORKER_API_CREDENTIAL_H

#include "worker/http/http.h"

/* The next one, in the order Otari-Key (a leading "Bearer " is allowed), Authorization (it must be
 * Bearer), x-api-key; repeated headers too, empty ones not. *pos starts at 0. False: no more. *ret
 * is empty exactly when *ret_bad_format. */
bool credential_next(
    const struct http_head *head, size_t *pos, struct str *ret, bool *ret_bad_format);

#endif
