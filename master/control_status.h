/* control_status.h - the JSON that the control socket answers. Process: master. */
#ifndef OTARI_MASTER_CONTROL_STATUS_H
#define OTARI_MASTER_CONTROL_STATUS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct master;

/* {"ok": …, "generation": …} or {"ok": false, "error": …}. */
void control_write_result(struct buf *out, const struct master *m, const char *error);
struct control_trial { /* of a sandbox elsewhere, by a worker */
	bool ok;
	struct str text;
};
/* sandbox check; trial may be NULL. */
void control_write_sandbox(
    struct buf *out, const struct master *m, const struct control_trial *trial);
bool control_is_remote(const struct master *m);
/* status, generation; false: no such report. */
bool control_write_report(struct buf *out, struct master *m, struct str command);

#endif
