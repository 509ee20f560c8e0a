#include "worker/upstream/target.h"

/* "provider:model", or a bare model with the default provider. */
static const struct snap_provider *
split_model(const struct snapshot *policy, struct str name, struct str *ret_model)
{
	size_t colon = str_chr(name, ':');
	if (colon != SIZE_MAX) {
		const struct snap_provider *p = snapshot_provider(policy, str_sub(name, 0, colon));
		if (p != NULL) {
			*ret_model = str_from(name, colon + 1);
			return p;
		}
	}
	struct str dflt = snapshot_str(policy, snapshot_policy(policy)->default_provider);
	*ret_model = name;
	return dflt.len > 0 ? snapshot_provider(policy, dflt) : NULL;
}

static uint32_t
pick(uint32_t own, uint32_t dflt)
{
	return own != 0 ? own : dflt;
}

static void
copy_headers(
    struct arena *a, const struct snapshot *policy, const struct snap_provider *p, struct target *t)
{
	t->headers = ARENA_NEW_ARRAY(a, struct target_header, p->headers.count);
	if (t->headers == NULL)
		return;
	t->header_count = p->headers.count;
	for (uint32_t i = 0; i < p->headers.count; i++) {
		const struct snap_header_pair *h =
		    SNAP_AT(policy, p->headers, struct snap_header_pair, i);
		t->headers[i].name = arena_str(a, snapshot_str(policy, h->name));
		t->headers[i].value = arena_str(a, snapshot_str(policy, h->value));
	}
}

bool
target_is_faithful(const struct target *t)
{
	static const struct str deviating[] = {STR_INIT("mistral")};
	for (size_t i = 0; i < ARRAY_LEN(deviating); i++)
		if (str_eq_nocase(t->provider_type, deviating[i]))
			return false;
	return true;
}

enum err_code
target_resolve(struct arena *a, struct snapshot *policy, const struct secrets *secrets,
    struct str model, struct target *ret, struct err *reterr)
{
	struct target t = {.asked = model};
	if (model.len == 0)
		return err_set(reterr, ERR_INPUT, "model: a model is required");
	const struct snap_alias *alias = snapshot_alias(policy, model);
	struct str name = alias != NULL ? snapshot_str(policy, alias->target) : model;
	t.is_alias = alias != NULL;
	const struct snap_provider *p = split_model(policy, name, &t.model);
	if (p == NULL || t.model.len == 0)
		return err_set(reterr, ERR_NOTFOUND, "model: no provider is configured for '%.*s'",
		    (int)(model.len < 128 ? model.len : 128), model.ptr);
	const struct snap_settings *s = &snapshot_policy(policy)->settings;
	t.model = arena_str(a, t.model);
	t.instance = arena_str(a, snapshot_str(policy, p->name));
	t.provider_type = arena_str(a, snapshot_str(policy, p->provider_type));
	t.api_base = arena_str(a, snapshot_str(policy, p->api_base));
	t.proxy = arena_str(a, snapshot_str(policy, p->proxy));
	struct str secret = snapshot_str(policy, p->secret);
	if (secret.len > 0)
		t.key = arena_str(a, secrets_get(secrets, secret));
	t.wire = p->wire == SNAP_WIRE_MESSAGES    ? WIRE_MESSAGES
		 : p->wire == SNAP_WIRE_RESPONSES ? WIRE_RESPONSES
						  : WIRE_CHAT;
	t.native_override = p->native_code_execution;
	t.native_documents = p->native_documents;
	t.connect_ms = pick(p->connect_ms, s->upstream_connect_ms);
	t.first_byte_ms = pick(p->first_byte_ms, s->upstream_first_byte_ms);
	t.idle_ms = pick(p->idle_ms, s->upstream_idle_ms);
	t.max_tokens_default = p->max_tokens_default != 0 ? p->max_tokens_default : 4096;
	copy_headers(a, policy, p, &t);
	if (arena_overflowed(a))
		return err_set(reterr, ERR_NOMEM, "request memory is used up");
	*ret = t;
	return ERR_OK;
}
