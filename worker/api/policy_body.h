/* policy_body.h - a workspace's code-execution policy as the API reads and writes it
 *
 * Process: worker. Pure. The rules of the values are conf/validate.h's, as for otari.conf.
 */
#ifndef OTARI_WORKER_API_POLICY_BODY_H
#define OTARI_WORKER_API_POLICY_BODY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "ipc/snapshot.h"
#include "storage/sql/store_policy.h"

struct policy_images { /* session images that a workspace may choose */
	struct str *items;
	uint32_t count;
};

struct policy_view { /* what GET, PUT and DELETE answer with */
	struct str workspace_id;
	bool is_configured, has_sandbox;
	struct store_policy policy; /* only when configured */
	struct str declared_in;     /* STR_NULL: it is the API's */
	struct policy_images images;
};

/* A whole policy: what the object leaves out is cleared. The members of the answer that are no
 * settings are allowed and not read, so that an answer can be sent back. *ret: everything but the
 * workspace and the times; in arena a. ERR_INPUT: "member: rule", a 422. */
MUST_CHECK enum err_code policy_body_read(struct arena *a, const json_t *o,
    const struct policy_images *images, struct store_policy *ret, struct err *reterr);
void policy_body_write(struct jw *w, const struct policy_view *v);
/* The same form of a policy that otari.conf declares; it has no times. */
void policy_body_declared(const struct snapshot *s, const struct snap_workspace *w, struct arena *a,
    struct store_policy *ret);

#endif
