#include "worker/api/admin_body.h"

#include <stdlib.h>

#include "worker/api/query.h"
#include "worker/api/timestamp.h"

#define TEXTS_MAX 1000u

static void
release(void *json)
{
	json_decref(json);
}

bool
admin_path_uuid(struct request *req, const char *missing, struct str *ret)
{
	if (query_uuid(req->arena, req->path_id, ret))
		return true;
	request_error(req, 404, NULL, str_c(missing));
	return false;
}

json_t *
admin_body_parse(struct request *req, struct str body)
{
	json_error_t e;
	json_t *root = str_trim(body).len == 0
			   ? json_object()
			   : json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, &e);
	if (root == NULL) {
		request_errorf(req, 400, "The body is not valid JSON: %s", e.text);
		return NULL;
	}
	arena_defer(req->arena, release, root);
	if (!json_is_object(root)) {
		request_errorf(req, 422, "The body must be a JSON object");
		return NULL;
	}
	return root;
}

static struct str
text_of(const json_t *v)
{
	return str_n(json_string_value(v), json_string_length(v));
}

static bool
text_ok(struct str s)
{
	if (s.len == 0 || s.len > ADMIN_TEXT_MAX_BYTES)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < 0x20 || c == 0x7f)
			return false;
	}
	return true;
}

static bool
is_absent(const json_t *v)
{
	return v == NULL || json_is_null(v);
}

bool
admin_body_text(struct request *req, json_t *o, const char *key, struct str *ret)
{
	json_t *v = json_object_get(o, key);
	*ret = STR_NULL;
	if (is_absent(v))
		return true;
	if (!json_is_string(v) || !text_ok(text_of(v))) {
		request_errorf(req, 422,
		    "%s: must be a text of 1 to %u bytes without control characters", key,
		    ADMIN_TEXT_MAX_BYTES);
		return false;
	}
	*ret = arena_str(req->arena, text_of(v));
	return true;
}

bool
admin_body_bool(struct request *req, json_t *o, const char *key, bool *ret)
{
	json_t *v = json_object_get(o, key);
	*ret = false;
	if (is_absent(v))
		return true;
	if (!json_is_boolean(v)) {
		request_errorf(req, 422, "%s: must be true or false", key);
		return false;
	}
	*ret = json_is_true(v);
	return true;
}

bool
admin_body_time(struct request *req, json_t *o, const char *key, int64_t *ret_s)
{
	json_t *v = json_object_get(o, key);
	*ret_s = 0;
	if (is_absent(v))
		return true;
	if (json_is_integer(v) && json_integer_value(v) > 0) {
		*ret_s = json_integer_value(v);
		return true;
	}
	if (!json_is_string(v) || !timestamp_parse(text_of(v), ret_s) || *ret_s == 0) {
		request_errorf(req, 422, "%s: must be a time such as 2027-01-31T00:00:00Z", key);
		return false;
	}
	return true;
}

/* Compact text of v in the arena; false: answered. */
static bool
dump(struct request *req, const char *key, const json_t *v, struct str *ret)
{
	char *text = json_dumps(v, JSON_COMPACT);
	if (text == NULL) {
		request_errorf(req, 422, "%s: cannot be kept", key);
		return false;
	}
	*ret = arena_str(req->arena, str_c(text));
	free(text);
	if (ret->len > ADMIN_METADATA_MAX_BYTES) {
		request_errorf(
		    req, 422, "%s: is longer than %u bytes", key, ADMIN_METADATA_MAX_BYTES);
		return false;
	}
	return true;
}

bool
admin_body_text_array(struct request *req, json_t *o, const char *key, struct str *ret_json)
{
	json_t *v = json_object_get(o, key), *item;
	size_t i;
	*ret_json = STR_NULL;
	if (is_absent(v))
		return true;
	bool ok = json_is_array(v) && json_array_size(v) <= TEXTS_MAX;
	json_array_foreach(v, i, item)
		ok = ok && json_is_string(item) && text_ok(text_of(item));
	if (!ok) {
		request_errorf(req, 422, "%s: must be an array of texts", key);
		return false;
	}
	return dump(req, key, v, ret_json);
}

bool
admin_body_object(struct request *req, json_t *o, const char *key, struct str *ret_json)
{
	json_t *v = json_object_get(o, key);
	*ret_json = STR_NULL;
	if (is_absent(v))
		return true;
	if (!json_is_object(v)) {
		request_errorf(req, 422, "%s: must be an object", key);
		return false;
	}
	return dump(req, key, v, ret_json);
}

bool
admin_body_unbuilt(struct request *req, json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);
	if (is_absent(v) || json_is_false(v))
		return true;
	request_errorf(req, 400, "%s: this gateway does not support it yet", key);
	return false;
}
