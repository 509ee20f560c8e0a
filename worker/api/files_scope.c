#include "worker/api/files.h"
#include "worker/api/query.h"
#include "worker/http/uri.h"

bool
files_scope(
    struct request *req, struct str user, struct str workspace, struct store_file_scope *ret)
{
	const struct caller *c = &req->caller;
	if (!c->is_master) {
		if (user.len > 0 && !str_eq(user, c->user_id) && c->reject_user_mismatch) {
			request_errorf(req, 403, "'user' does not match the user of this API key");
			return false;
		}
		*ret = (struct store_file_scope){c->user_id, c->workspace_id};
		return true;
	}
	if (user.len == 0) {
		request_errorf(
		    req, 400, "With the master key, 'user' must name whose files are meant");
		return false;
	}
	*ret = (struct store_file_scope){user, workspace};
	return true;
}

bool
files_scope_of_query(struct request *req, struct store_file_scope *ret)
{
	struct str query = http_head(req->x)->query;
	return files_scope(req, query_get(req->arena, query, "user"), STR_NULL, ret);
}

static void
not_found(struct request *req, struct str id)
{
	if (files_id_ok(id))
		request_errorf(req, 404, "File not found: %.*s", STR_FMT(id));
	else
		request_errorf(req, 404, "File not found");
}

bool
files_id_of_path(struct request *req, struct str *ret)
{
	if (!files_id_ok(req->path_id)) {
		not_found(req, req->path_id);
		return false;
	}
	*ret = req->path_id;
	return true;
}

void
files_refuse(struct request *req, struct str id, const struct err *err)
{
	if (err->code == ERR_NOTFOUND)
		not_found(req, id);
	else
		request_fail(req, err);
}
