/* route.h - which handler answers a path and a method. Pure.
 *
 * Public routes are reached below /v1 and below /api/v1 alike (an Anthropic SDK adds /v1 to its
 * base, an OpenAI SDK does not). Segments are compared as sent; {id} is percent-decoded.
 */
#ifndef OTARI_WORKER_API_ROUTE_H
#define OTARI_WORKER_API_ROUTE_H

#include "base/arena.h"
#include "worker/request.h"

enum route_access {
	ACCESS_OPEN,   /* no credential is looked at */
	ACCESS_CALLER, /* any valid key, or the master key */
	ACCESS_MASTER, /* the master key only */
};

enum route_flags {
	ROUTE_FILES = 1,    /* 404 when file uploads are switched off; before authentication */
	ROUTE_MESSAGES = 2, /* errors in the Messages envelope whatever the headers say */
	ROUTE_OPENAI = 4,   /* errors in OpenAI's envelope whatever the headers say */
};

struct route {
	enum http_method method; /* HTTP_GET serves HEAD as well */
	const char *path;        /* "/files/{id}/content"; a trailing {id*} takes the rest */
	enum route_access access;
	unsigned flags;
	void (*handle)(struct request *req);
	const char *endpoint; /* for logs and usage rows */
};

enum route_found { ROUTE_OK, ROUTE_UNKNOWN, ROUTE_WRONG_METHOD };

/* routes ends with a NULL path. prefixes: strings that may stand in front, ends with NULL.
 * *ret_id: the decoded {id} in arena a, or STR_NULL. *ret_allow (for ROUTE_WRONG_METHOD): value of
 * the Allow header, in the arena. */
enum route_found route_find(const struct route *routes, const char *const *prefixes,
    enum http_method method, struct str path, struct arena *a, const struct route **ret,
    struct str *ret_id, struct str *ret_allow);
/* Whose errors a caller of this path reads when no route says so. */
enum wire route_wire(struct str path, bool has_anthropic_version);

extern const struct route route_public[], route_root[], route_admin[];
extern const char *const route_public_prefixes[], *const route_root_prefixes[],
						      *const route_admin_prefixes[];

#endif
