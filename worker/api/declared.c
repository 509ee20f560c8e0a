#include "worker/api/declared.h"

#include "ipc/snapshot.h"
#include "worker/env.h"

struct str
declared_where(struct request *req, const char *kind, struct str id)
{
	struct str what = arena_printf(req->arena, "%s/%.*s", kind, STR_FMT(id));
	return snapshot_declared(req->env->policy, what);
}

bool
declared_refuse(struct request *req, const char *kind, struct str id, const char *subject)
{
	struct str where = declared_where(req, kind, id);
	if (where.ptr == NULL)
		return false;
	request_errorf(req, 409, "%s is declared in %.*s and can only be changed there", subject,
	    STR_FMT(where));
	return true;
}
