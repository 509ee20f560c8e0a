/* workspaces, users, keys */
#include <stdio.h>
#include <string.h>

#include "conf/load.h"
#include "conf/validate.h"

#define ENTRIES_MAX       10000u
#define DEFAULT_WORKSPACE "default"
/* As the database has it from its first migration on. */
#define DEFAULT_WORKSPACE_ID "00000000-0000-4000-8000-000000000001"

/* A stable id of a declared thing, the same on every host: a UUID (version 8) of its name. */
static struct str
derived_uuid(struct loader *ld, const char *kind, struct str name)
{
	unsigned char d[SHA256_BYTES];
	struct str text = arena_printf(ld->a, "otari:%s:%.*s", kind, STR_FMT(name));
	char hex[2 * 16 + 1];
	sha256_of(text, d);
	d[6] = (unsigned char)((d[6] & 0x0F) | 0x80);
	d[8] = (unsigned char)((d[8] & 0x3F) | 0x80);
	hex_encode(d, 16, hex);
	return arena_printf(
	    ld->a, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* --- workspaces ------------------------------------------------------------------------------ */

struct raw_policy {
	struct conf_policy p;
	struct str executor;
};
#define POL(m) offsetof(struct raw_policy, p.m)
static const struct member POLICY[] = {
    {"enabled", MT_BOOL, POL(enabled), 0, 0},
    {"executor", MT_STR, offsetof(struct raw_policy, executor), 0, 0},
    {"default_purpose_hint", MT_STR, POL(default_purpose_hint), 0, 0},
    {"max_iterations", MT_U32, POL(max_iterations), 1, POLICY_ITERATIONS_MAX},
    {"exec_timeout_s", MT_U32, POL(exec_timeout_s), 1, POLICY_EXEC_S_MAX},
    {"image", MT_STR, POL(image), 0, 0},
    {"tools", MT_LIST, POL(tools), 0, 0},
};

static bool
is_allowed_image(const struct conf *c, struct str image)
{
	for (uint32_t i = 0; i < c->sandbox_allowed_session_images.count; i++)
		if (str_eq(c->sandbox_allowed_session_images.items[i], image))
			return true;
	return false;
}

static bool
load_policy(struct loader *ld, const struct conf_node *n, const char *what, struct conf_policy *ret)
{
	struct raw_policy raw = {.p = {.enabled = true}};
	struct err e;
	raw.p.tools.count = UINT32_MAX; /* not written */
	if (!load_members(ld, n, what, POLICY, ARRAY_LEN(POLICY), &raw))
		return false;
	bool ok = true;
	if (raw.executor.ptr != NULL && !validate_executor(raw.executor, &raw.p.executor)) {
		conf_error(ld->r, n->key_line,
		    "%s.executor: must be auto, otari or provider, not '%.*s'", what,
		    STR_FMT(conf_shown(raw.executor)));
		ok = false;
	}
	if (raw.p.default_purpose_hint.ptr != NULL &&
	    validate_hint(raw.p.default_purpose_hint, &raw.p.default_purpose_hint, &e) != ERR_OK) {
		conf_error(ld->r, n->key_line, "%s.default_purpose_hint: %s", what, e.msg);
		ok = false;
	}
	if (raw.p.image.ptr != NULL && !is_allowed_image(ld->c, raw.p.image)) {
		conf_error(ld->r, n->key_line,
		    "%s.image: '%.*s' is not in sandbox_allowed_session_images", what,
		    STR_FMT(conf_shown(raw.p.image)));
		ok = false;
	}
	raw.p.tools_set = raw.p.tools.count != UINT32_MAX;
	if (!raw.p.tools_set)
		raw.p.tools = (struct conf_list){NULL, 0};
	else if (raw.p.tools.count == 0) {
		conf_error(ld->r, n->key_line,
		    "%s.tools: an empty list; enabled: false turns code execution off", what);
		ok = false;
	}
	for (uint32_t i = 0; i < raw.p.tools.count; i++) {
		uint32_t bit;
		if (validate_tool(raw.p.tools.items[i], &bit, &e) == ERR_OK)
			continue;
		conf_error(ld->r, n->key_line, "%s.tools: '%.*s' %s", what,
		    STR_FMT(conf_shown(raw.p.tools.items[i])), e.msg);
		ok = false;
	}
	*ret = raw.p;
	return ok;
}

struct raw_workspace {
	struct str id;
	const struct conf_node *code_execution;
};
static const struct member WORKSPACE[] = {
    {"id", MT_STR, offsetof(struct raw_workspace, id), 0, 0},
    {"code_execution", MT_NODE, offsetof(struct raw_workspace, code_execution), 0, 0},
};

static void
load_workspace(struct loader *ld, const struct conf_node *n)
{
	struct raw_workspace raw = {0};
	struct conf_workspace w = {.name = n->key, .line = n->key_line};
	struct err e;
	char what[128], path[160];
	(void)snprintf(what, sizeof(what), "workspaces.%.*s", STR_FMT(conf_shown(n->key)));
	if (validate_name(n->key, 128, &e) != ERR_OK) {
		conf_error(ld->r, n->key_line, "%s: %s", what, e.msg);
		return;
	}
	if (!load_members(ld, n, what, WORKSPACE, ARRAY_LEN(WORKSPACE), &raw))
		return;
	bool is_default = str_eq(n->key, STR(DEFAULT_WORKSPACE));
	if (raw.id.ptr != NULL && (!validate_uuid(raw.id) || is_default)) {
		conf_error(ld->r, n->key_line, "%s.id: %s", what,
		    is_default ? "the default workspace has its own"
			       : "must be a UUID in lower case");
		return;
	}
	w.id = raw.id.ptr != NULL ? raw.id
	       : is_default       ? STR(DEFAULT_WORKSPACE_ID)
				  : derived_uuid(ld, "workspace", n->key);
	const struct conf_workspace *same = conf_workspace(ld->c, w.id);
	if (same != NULL) {
		conf_error(ld->r, n->key_line, "%s.id: already used in line %u", what, same->line);
		return;
	}
	if (raw.code_execution != NULL && raw.code_execution->type != NODE_NULL) {
		(void)snprintf(path, sizeof(path), "%s.code_execution", what);
		w.has_policy = true;
		if (!load_policy(ld, raw.code_execution, path, &w.policy))
			return;
	}
	ld->c->workspaces[ld->c->workspace_count++] = w;
}

static bool
expect_map(struct loader *ld, const struct conf_node *n, const char *what)
{
	if (n->type == NODE_NULL || !expect_node(ld, n, NODE_MAP, what))
		return false;
	if (n->count <= ENTRIES_MAX)
		return true;
	conf_error(ld->r, n->key_line, "%s: more than %u", what, ENTRIES_MAX);
	return false;
}

void
load_workspaces(struct loader *ld, const struct conf_node *n)
{
	if (!expect_map(ld, n, "workspaces"))
		return;
	ld->c->workspaces = ARENA_NEW_ARRAY(ld->a, struct conf_workspace, n->count);
	if (ld->c->workspaces == NULL)
		return;
	CONF_EACH(child, n)
	{
		load_workspace(ld, child);
	}
}

const struct conf_workspace *
conf_workspace(const struct conf *c, struct str name_or_id)
{
	for (uint32_t i = 0; i < c->workspace_count; i++)
		if (str_eq(c->workspaces[i].name, name_or_id) ||
		    str_eq(c->workspaces[i].id, name_or_id))
			return &c->workspaces[i];
	return NULL;
}

/* --- users ----------------------------------------------------------------------------------- */

struct raw_user {
	struct str alias;
	int blocked;
};
static const struct member USER[] = {
    {"alias", MT_STR, offsetof(struct raw_user, alias), 0, 0},
    {"blocked", MT_TRI, offsetof(struct raw_user, blocked), 0, 0},
};

void
load_users(struct loader *ld, const struct conf_node *n)
{
	if (!expect_map(ld, n, "users"))
		return;
	ld->c->users = ARENA_NEW_ARRAY(ld->a, struct conf_user, n->count);
	if (ld->c->users == NULL)
		return;
	CONF_EACH(child, n)
	{
		struct raw_user raw = {.blocked = -1};
		struct err e;
		char what[128];
		(void)snprintf(what, sizeof(what), "users.%.*s", STR_FMT(conf_shown(child->key)));
		if (validate_name(child->key, 128, &e) != ERR_OK)
			conf_error(ld->r, child->key_line, "%s: %s", what, e.msg);
		else if (load_members(ld, child, what, USER, ARRAY_LEN(USER), &raw))
			ld->c->users[ld->c->user_count++] = (struct conf_user){child->key,
			    raw.alias, raw.blocked == 1, raw.blocked >= 0, child->key_line};
	}
}

/* --- keys ------------------------------------------------------------------------------------ */

struct raw_key {
	struct conf_key_entry k;
	struct str expires_at;
};
#define KEY(m) offsetof(struct raw_key, k.m)
static const struct member KEY_MEMBERS[] = {
    {"hash", MT_STR, KEY(hash_hex), 0, 0},
    {"name", MT_STR, KEY(name), 0, 0},
    {"user", MT_STR, KEY(user_id), 0, 0},
    {"workspace", MT_STR, KEY(workspace), 0, 0},
    {"allowed_models", MT_LIST, KEY(allowed_models), 0, 0},
    {"active", MT_BOOL, KEY(active), 0, 0},
    {"expires_at", MT_STR, offsetof(struct raw_key, expires_at), 0, 0},
};

static bool
check_key(struct loader *ld, struct raw_key *raw, const struct conf_node *n, const char *what)
{
	struct err e;
	unsigned before = ld->r->error_count;
	struct conf_key_entry *k = &raw->k;
	if (str_starts(k->hash_hex, STR("gw-")))
		conf_error(ld->r, n->line,
		    "%s.hash: this is a key; write its SHA-256 (printf %%s KEY | sha256sum)", what);
	else if (!validate_sha256_hex(k->hash_hex))
		conf_error(ld->r, n->line,
		    "%s.hash: must be the SHA-256 of the key, 64 lower-case hex digits", what);
	if (k->name.ptr != NULL && validate_name(k->name, 128, &e) != ERR_OK)
		conf_error(ld->r, n->line, "%s.name: %s", what, e.msg);
	if (k->user_id.ptr != NULL && validate_name(k->user_id, 128, &e) != ERR_OK)
		conf_error(ld->r, n->line, "%s.user: %s", what, e.msg);
	if (raw->expires_at.ptr != NULL &&
	    validate_time(raw->expires_at, &k->expires_at_s, &e) != ERR_OK)
		conf_error(ld->r, n->line, "%s.expires_at: %s", what, e.msg);
	for (uint32_t i = 0; i < k->allowed_models.count; i++)
		if (validate_name(k->allowed_models.items[i], 512, &e) != ERR_OK)
			conf_error(ld->r, n->line, "%s.allowed_models: %s", what, e.msg);
	for (uint32_t i = 0; i < ld->c->key_count; i++)
		if (str_eq(ld->c->keys[i].hash_hex, k->hash_hex))
			conf_error(ld->r, n->line, "%s.hash: already used in line %u", what,
			    ld->c->keys[i].line);
	return ld->r->error_count == before;
}

void
load_keys(struct loader *ld, const struct conf_node *n)
{
	if (n->type == NODE_NULL || !expect_node(ld, n, NODE_LIST, "keys"))
		return;
	if (n->count > ENTRIES_MAX) {
		conf_error(ld->r, n->key_line, "keys: more than %u", ENTRIES_MAX);
		return;
	}
	ld->c->keys = ARENA_NEW_ARRAY(ld->a, struct conf_key_entry, n->count);
	if (ld->c->keys == NULL)
		return;
	unsigned place = 0;
	CONF_EACH(child, n)
	{
		struct raw_key raw = {.k = {.active = true, .line = child->line}};
		char what[32];
		(void)snprintf(what, sizeof(what), "keys[%u]", place++);
		raw.k.allowed_models.count = UINT32_MAX; /* not written */
		if (!load_members(ld, child, what, KEY_MEMBERS, ARRAY_LEN(KEY_MEMBERS), &raw))
			continue;
		raw.k.allowed_set = raw.k.allowed_models.count != UINT32_MAX;
		if (!raw.k.allowed_set)
			raw.k.allowed_models = (struct conf_list){NULL, 0};
		if (!check_key(ld, &raw, child, what))
			continue;
		raw.k.id = derived_uuid(ld, "key", raw.k.hash_hex);
		ld->c->keys[ld->c->key_count++] = raw.k;
	}
}
