#include "worker/api/auth.h"

#include "base/clock.h"
#include "base/digest.h"
#include "storage/sql/store_workspace.h"
#include "worker/api/credential.h"
#include "worker/env.h"

const char *
auth_text(enum auth_verdict v)
{
	switch (v) {
	case AUTH_OK:
		break;
	case AUTH_MISSING:
		return "Missing API key: send it as 'Authorization: Bearer', 'x-api-key' or "
		       "'Otari-Key'";
	case AUTH_BAD_FORMAT:
		return "Invalid Authorization header: expected 'Bearer' and a key";
	case AUTH_UNKNOWN:
		return "Invalid API key";
	case AUTH_INACTIVE:
		return "This API key is not active";
	case AUTH_EXPIRED:
		return "This API key has expired";
	case AUTH_BLOCKED:
		return "The user of this API key is blocked";
	}
	return "";
}

static bool
is_master(const struct worker_env *env, const unsigned char hash[SHA256_BYTES])
{
	const struct snap_settings *s = &snapshot_policy(env->policy)->settings;
	struct str want = snapshot_str(env->policy, s->master_key_sha256);
	return want.len == SHA256_BYTES && bytes_equal_ct(want, str_n(hash, SHA256_BYTES));
}

static void
fill_master(struct caller *c)
{
	*c = (struct caller){.is_known = true, .is_master = true, .any_model = true};
	c->workspace_id = STR(STORE_WORKSPACE_DEFAULT);
}

static void
fill_caller(struct request *req, const struct snapshot *in, const struct snap_key *key)
{
	struct arena *a = req->arena;
	const struct snap_settings *s = &snapshot_policy(req->env->policy)->settings;
	struct caller c = {.is_known = true};
	c.key_id = arena_str(a, snapshot_str(in, key->id));
	c.user_id = arena_str(a, snapshot_str(in, key->user_id));
	c.workspace_id = arena_str(a, snapshot_str(in, key->workspace_id));
	c.reject_user_mismatch = key->reject_user_mismatch < 0 ? s->reject_user_mismatch != 0
							       : key->reject_user_mismatch != 0;
	c.any_model = key->allowed_models.off == 0;
	if (key->allowed_models.count > 0) {
		uint32_t n = key->allowed_models.count;
		c.allowed_models = ARENA_NEW_ARRAY(a, struct str, n);
		for (uint32_t i = 0; c.allowed_models != NULL && i < n; i++) {
			const struct snap_model *m =
			    SNAP_AT(in, key->allowed_models, struct snap_model, i);
			c.allowed_models[i] = arena_str(a, snapshot_str(in, m->id));
			c.allowed_model_count++;
		}
	}
	req->caller = c;
}

static enum auth_verdict
check(struct request *req, struct str credential)
{
	unsigned char hash[SHA256_BYTES];
	sha256_of(credential, hash);
	if (is_master(req->env, hash)) {
		fill_master(&req->caller);
		return AUTH_OK;
	}
	struct snapshot *in = NULL;
	const struct snap_key *key = worker_key(req->env, hash, &in);
	if (key == NULL)
		return AUTH_UNKNOWN;
	if (!key->is_active)
		return AUTH_INACTIVE;
	if (key->expires_s != 0 && key->expires_s <= clock_wall_s())
		return AUTH_EXPIRED;
	if (key->user_blocked)
		return AUTH_BLOCKED;
	fill_caller(req, in, key);
	return AUTH_OK;
}

enum auth_verdict
auth_request(struct request *req)
{
	enum auth_verdict first = AUTH_MISSING;
	struct str credential;
	bool bad_format;
	for (size_t pos = 0; credential_next(http_head(req->x), &pos, &credential, &bad_format);) {
		enum auth_verdict v = bad_format ? AUTH_BAD_FORMAT : check(req, credential);
		if (v == AUTH_OK)
			return AUTH_OK;
		if (first == AUTH_MISSING)
			first = v;
	}
	return first;
}
