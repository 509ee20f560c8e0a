/* upload_form.h - the fields of an upload form beside the file. Pure.
 *
 * Process: worker. Values are copied into the given arena. Fields come in any order, before or
 * after the file; what nobody knows is left alone; of a repeated field the last one counts.
 */
#ifndef OTARI_WORKER_API_UPLOAD_FORM_H
#define OTARI_WORKER_API_UPLOAD_FORM_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define UPLOAD_PURPOSE_DEFAULT "user_data"
#define UPLOAD_TEXT_MAX_BYTES  255u

struct upload_form {
	struct str purpose; /* as sent, or STR_NULL */
	struct str user;
	int64_t expires_in_s; /* 0: not said */
};

/* ERR_INPUT names the field. */
MUST_CHECK enum err_code upload_form_field(
    struct upload_form *f, struct arena *a, struct str name, struct str value, struct err *reterr);
/* When such a file ends: the earlier of what the client asked for and the deployment's retention
 * (hours; 0: for ever). UTC epoch ms; 0: never. */
int64_t upload_form_expiry(const struct upload_form *f, int64_t now_ms, uint32_t retention_hours);

#endif
