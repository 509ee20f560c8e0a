#include <stdio.h>
#include <string.h>

#include "conf/env.h"
#include "conf/load.h"
#include "conf/presets.h"
#include "conf/validate.h"

#define PROVIDERS_MAX      256u
#define MAX_TOKENS_DEFAULT 4096u
#define MS_MAX             86400000u

struct raw {
	struct conf_provider p;
	struct str wire;
	const struct conf_node *timeouts, *options;
};

#define OFF(m)  offsetof(struct raw, m)
#define POFF(m) offsetof(struct raw, p.m)
static const struct member MEMBERS[] = {
    {"provider_type", MT_STR, POFF(type), 0, 0},
    {"api_base", MT_STR, POFF(api_base), 0, 0},
    {"api_key", MT_STR, POFF(api_key), 0, 0},
    {"api_key_file", MT_STR, POFF(api_key_file), 0, 0},
    {"wire", MT_STR, OFF(wire), 0, 0},
    {"native_code_execution", MT_AUTO, POFF(native_code_execution), 0, 0},
    {"native_documents", MT_AUTO, POFF(native_documents), 0, 0},
    {"headers", MT_PAIRS, POFF(headers), 0, 0},
    {"timeouts", MT_NODE, OFF(timeouts), 0, 0},
    {"proxy", MT_STR, POFF(proxy), 0, 0},
    {"models", MT_LIST, POFF(models), 0, 0},
    {"max_tokens_default", MT_U32, POFF(max_tokens_default), 1, 10000000},
};
static const struct member TIMEOUTS[] = {
    {"connect_ms", MT_U32, POFF(connect_ms), 100, MS_MAX},
    {"first_byte_ms", MT_U32, POFF(first_byte_ms), 100, MS_MAX},
    {"idle_ms", MT_U32, POFF(idle_ms), 100, MS_MAX},
};

static const char *const WIRES[] = {"chat", "messages", "responses"};

static void
check_address(struct loader *ld, struct raw *raw, const struct conf_preset *preset,
    const struct conf_node *n, const char *what)
{
	struct err e;
	struct conf_provider *p = &raw->p;
	if (p->api_base.ptr == NULL && preset == NULL) {
		conf_error(ld->r, n->key_line,
		    "%s: api_base is missing ('%.*s' is no known service)", what,
		    STR_FMT(conf_shown(p->type)));
		return;
	}
	if (p->api_base.ptr == NULL) {
		p->api_base = str_c(preset->api_base);
		return;
	}
	if (validate_http_url(p->api_base, &p->api_base, &e) != ERR_OK) {
		conf_error(ld->r, n->key_line, "%s.api_base: %s", what, e.msg);
		return;
	}
	/* Anthropic's own variable names the host alone; its SDK appends the version. */
	size_t host = str_find(p->api_base, STR("://")) + 3;
	bool has_path = str_chr(str_from(p->api_base, host), '/') != SIZE_MAX;
	if (p->wire == SNAP_WIRE_MESSAGES && !has_path)
		p->api_base = arena_printf(ld->a, "%.*s/v1", STR_FMT(p->api_base));
	else
		p->api_base = arena_str(ld->a, p->api_base);
}

static void
check_wire(struct loader *ld, struct raw *raw, const struct conf_preset *preset,
    const struct conf_node *n, const char *what)
{
	raw->p.wire = preset != NULL ? preset->wire : SNAP_WIRE_CHAT;
	if (raw->wire.ptr == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(WIRES); i++) {
		if (!str_eq_nocase(raw->wire, str_c(WIRES[i])))
			continue;
		raw->p.wire = (enum snap_wire)i;
		return;
	}
	conf_error(ld->r, n->key_line, "%s.wire: must be chat, messages or responses, not '%.*s'",
	    what, STR_FMT(conf_shown(raw->wire)));
}

static struct str
key_of_environ(struct loader *ld, const struct conf_preset *preset)
{
	struct str key = STR_NULL;
	if (preset->key_variable != NULL)
		key = str_trim(env_get(ld->src->environ, str_c(preset->key_variable)));
	if (key.len == 0 && preset->other_variable != NULL)
		key = str_trim(env_get(ld->src->environ, str_c(preset->other_variable)));
	return key.len > 0 ? key : STR_NULL;
}

static void
check_credential(struct loader *ld, struct conf_provider *p, const struct conf_preset *preset,
    const struct conf_node *n, const char *what)
{
	if (p->api_key.ptr != NULL && p->api_key_file.ptr != NULL) {
		conf_error(
		    ld->r, n->key_line, "%s: api_key and api_key_file exclude each other", what);
		return;
	}
	struct str found = STR_NULL;
	if (p->api_key.ptr == NULL && p->api_key_file.ptr == NULL && preset != NULL &&
	    str_eq(p->api_base, str_c(preset->api_base)))
		found = key_of_environ(ld, preset);
	if (found.ptr != NULL) {
		p->api_key = arena_str(ld->a, found);
		p->key_from_environ = true;
	}
	struct err e;
	if (p->api_key.ptr != NULL &&
	    validate_header(STR("authorization"), p->api_key, &e) != ERR_OK) {
		conf_error(ld->r, n->key_line,
		    "%s.api_key: holds a character that cannot be sent in a header", what);
		return;
	}
	if (p->api_key.ptr == NULL && p->api_key_file.ptr == NULL && preset != NULL &&
	    preset->key_variable != NULL && p->headers.count == 0 &&
	    str_eq(p->api_base, str_c(preset->api_base)))
		conf_error(ld->r, n->key_line,
		    "%s: needs api_key or api_key_file (or the variable %s)", what,
		    preset->key_variable);
}

static void
check_rest(struct loader *ld, struct conf_provider *p, const struct conf_node *n, const char *what)
{
	struct err e;
	for (uint32_t i = 0; i < p->headers.count; i++)
		if (validate_header(p->headers.items[i].name, p->headers.items[i].value, &e) !=
		    ERR_OK)
			conf_error(ld->r, n->key_line, "%s.headers.%.*s: %s", what,
			    STR_FMT(conf_shown(p->headers.items[i].name)), e.msg);
	for (uint32_t i = 0; i < p->models.count; i++)
		if (validate_name(p->models.items[i], 400, &e) != ERR_OK)
			conf_error(ld->r, n->key_line, "%s.models: %s", what, e.msg);
	if (p->proxy.ptr == NULL)
		return;
	if (validate_http_url(p->proxy, &p->proxy, &e) != ERR_OK)
		conf_error(ld->r, n->key_line, "%s.proxy: %s", what, e.msg);
	else
		p->proxy = arena_str(ld->a, p->proxy);
}

static void
load_provider(struct loader *ld, const struct conf_node *n, struct conf_provider *dst)
{
	struct raw raw = {.p = {.native_code_execution = -1,
			      .native_documents = -1,
			      .max_tokens_default = MAX_TOKENS_DEFAULT,
			      .name = n->key,
			      .line = n->key_line}};
	struct err e;
	char what[128];
	(void)snprintf(what, sizeof(what), "providers.%.*s", STR_FMT(conf_shown(n->key)));
	if (validate_provider_name(n->key, &e) != ERR_OK)
		conf_error(ld->r, n->key_line, "%s: %s", what, e.msg);
	if (!load_members(ld, n, what, MEMBERS, ARRAY_LEN(MEMBERS), &raw))
		return;
	if (raw.timeouts != NULL) {
		char path[160];
		(void)snprintf(path, sizeof(path), "%s.timeouts", what);
		(void)load_members(ld, raw.timeouts, path, TIMEOUTS, ARRAY_LEN(TIMEOUTS), &raw);
	}
	if (raw.p.type.ptr == NULL)
		raw.p.type = n->key;
	if (validate_provider_name(raw.p.type, &e) != ERR_OK)
		conf_error(ld->r, n->key_line, "%s.provider_type: %s", what, e.msg);
	const struct conf_preset *preset = conf_preset_find(raw.p.type);
	if (preset != NULL)
		raw.p.type = str_c(preset->type);
	check_wire(ld, &raw, preset, n, what);
	check_address(ld, &raw, preset, n, what);
	check_credential(ld, &raw.p, preset, n, what);
	check_rest(ld, &raw.p, n, what);
	*dst = raw.p;
}

void
load_providers(struct loader *ld, const struct conf_node *n)
{
	if (n->type == NODE_NULL || !expect_node(ld, n, NODE_MAP, "providers"))
		return;
	if (n->count > PROVIDERS_MAX) {
		conf_error(ld->r, n->key_line, "providers: more than %u", PROVIDERS_MAX);
		return;
	}
	struct conf *c = ld->c;
	c->providers = ARENA_NEW_ARRAY(ld->a, struct conf_provider, n->count);
	if (c->providers == NULL)
		return;
	CONF_EACH(child, n)
	{
		struct conf_provider p = {0};
		load_provider(ld, child, &p);
		if (p.name.ptr != NULL)
			c->providers[c->provider_count++] = p;
	}
}

static bool
type_declared(const struct conf *c, const char *type)
{
	for (uint32_t i = 0; i < c->provider_count; i++)
		if (str_eq(c->providers[i].type, str_c(type)) ||
		    str_eq(c->providers[i].name, str_c(type)))
			return true;
	return false;
}

void
load_environ_providers(struct loader *ld)
{
	size_t n;
	struct err e;
	const struct conf_preset *presets = conf_presets(&n);
	struct conf *c = ld->c;
	struct conf_provider *all =
	    ARENA_NEW_ARRAY(ld->a, struct conf_provider, c->provider_count + n);
	if (all == NULL)
		return;
	if (c->provider_count > 0)
		memcpy(all, c->providers, c->provider_count * sizeof(*all));
	uint32_t count = c->provider_count;
	for (size_t i = 0; i < n; i++) {
		struct str key = key_of_environ(ld, &presets[i]);
		if (key.ptr == NULL || type_declared(c, presets[i].type))
			continue;
		if (validate_header(STR("authorization"), key, &e) != ERR_OK) {
			conf_error(ld->r, REPORT_ENVIRON,
			    "%s: holds a character that cannot be sent in a header",
			    presets[i].key_variable);
			continue;
		}
		all[count++] = (struct conf_provider){.name = str_c(presets[i].type),
		    .type = str_c(presets[i].type),
		    .api_base = str_c(presets[i].api_base),
		    .api_key = arena_str(ld->a, key),
		    .wire = presets[i].wire,
		    .native_code_execution = -1,
		    .native_documents = -1,
		    .max_tokens_default = MAX_TOKENS_DEFAULT,
		    .key_from_environ = true};
	}
	c->providers = all;
	c->provider_count = count;
}

const struct conf_provider *
conf_provider(const struct conf *c, struct str name)
{
	for (uint32_t i = 0; i < c->provider_count; i++)
		if (str_eq(c->providers[i].name, name))
			return &c->providers[i];
	return NULL;
}
