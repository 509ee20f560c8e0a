#include "conf/load.h"

#include <string.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conf/env.h"

typedef void section_loader(struct loader *ld, const struct conf_node *n);

/* In the order in which they are loaded: later ones look at earlier ones. */
static const struct {
	const char *name;
	section_loader *load;
} SECTIONS[] = {
    {"providers", load_providers},
    {"aliases", load_aliases},
    {"routing", load_routing},
    {"workspaces", load_workspaces},
    {"users", load_users},
    {"keys", load_keys},
    {"pricing", load_pricing},
    {"budgets", load_budgets},
};

static void
load_defaults(struct loader *ld)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	for (size_t i = 0; i < n; i++)
		if (keys[i].dflt != NULL)
			value_from_text(ld, &keys[i], str_c(keys[i].dflt), 0, keys[i].name);
	CHECK(ld->r->error_count == 0);
}

/* --- the file -------------------------------------------------------------------------------- */

static void
unknown_key(struct loader *ld, const struct conf_node *n)
{
	const char *near = conf_key_nearest(n->key);
	conf_error(ld->r, n->key_line, "unknown key '%.*s'%s%s%s", STR_FMT(conf_shown(n->key)),
	    near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
	    near != NULL ? "'?" : "");
}

static void
load_keys_of_table(struct loader *ld, const struct conf_node *root)
{
	CONF_EACH(n, root)
	{
		const struct conf_key *k = conf_key_find(n->key);
		if (k == NULL) {
			unknown_key(ld, n);
			continue;
		}
		if (k->type == KT_SECTION)
			ld->c->origins[conf_key_place(k)] =
			    (struct conf_origin){FROM_FILE, n->key_line, conf_node_digest(n)};
		else
			value_from_node(ld, k, n);
	}
}

static void
load_sections(struct loader *ld, const struct conf_node *root)
{
	for (size_t i = 0; i < ARRAY_LEN(SECTIONS); i++) {
		const struct conf_node *n = conf_node_get(root, SECTIONS[i].name);
		if (n != NULL)
			SECTIONS[i].load(ld, n);
	}
}

/* The text to read: the file's, or what the environment has in its place. */
static struct str
choose_text(struct loader *ld)
{
	struct str yaml = env_get(ld->src->environ, STR("OTARI_CONFIG_YAML"));
	struct str b64 = env_get(ld->src->environ, STR("OTARI_CONFIG_B64"));
	if (yaml.len > 0)
		return yaml;
	if (b64.len == 0)
		return ld->src->text;
	struct buf out = BUF_INIT(LIMIT_CONF_BYTES);
	struct str text = STR("");
	if (base64_decode(str_trim(b64), &out) && !out.overflowed)
		text = arena_str(ld->a, buf_str(&out));
	else
		conf_error(ld->r, REPORT_ENVIRON, "OTARI_CONFIG_B64: not base64, or too large");
	mem_wipe(out.ptr, out.len);
	buf_done(&out);
	return text;
}

static const struct conf_node *
load_file(struct loader *ld)
{
	static const struct conf_node empty = {.type = NODE_MAP};
	struct conf_node *root;
	struct err e;
	uint32_t line;
	struct str text = choose_text(ld);
	if (ld->r->error_count > 0)
		return &empty;
	if (conf_yaml_parse(ld->a, text, &root, &line, &e) != ERR_OK) {
		conf_error(ld->r, line, "%s", e.msg);
		return NULL;
	}
	if (root->type != NODE_MAP) {
		conf_error(ld->r, root->line, "must hold `key: value` lines, not %s",
		    conf_node_kind(root));
		return NULL;
	}
	load_keys_of_table(ld, root);
	return root;
}

/* --- OTARI_* --------------------------------------------------------------------------------- */

static bool
is_other_variable(struct str name)
{
	return str_starts(name, STR("OTARI_TEST_")) || str_eq(name, STR("OTARI_RECORDED")) ||
	       str_starts(name, STR("OTARI_ROLE_")) || str_eq(name, STR("OTARI_CONFIG_YAML")) ||
	       str_eq(name, STR("OTARI_CONFIG_B64"));
}

static void
load_variable(struct loader *ld, struct str name, struct str value)
{
	char lower[64];
	struct str tail = str_from(name, 6);
	const struct conf_key *k = NULL;
	if (tail.len < sizeof(lower)) {
		for (size_t i = 0; i < tail.len; i++)
			lower[i] = (char)(tail.ptr[i] >= 'A' && tail.ptr[i] <= 'Z'
					      ? tail.ptr[i] + ('a' - 'A')
					      : tail.ptr[i]);
		k = conf_key_find(str_n(lower, tail.len));
	}
	if (k == NULL) {
		const char *near =
		    tail.len < sizeof(lower) ? conf_key_nearest(str_n(lower, tail.len)) : NULL;
		conf_warning(ld->r, REPORT_ENVIRON, "%.*s is no known setting%s%s%s",
		    STR_FMT(conf_shown(name)), near != NULL ? "; did you mean that of '" : "",
		    near != NULL ? near : "", near != NULL ? "'?" : "");
		return;
	}
	/* A blank variable is how shells and unit files say "not set". */
	if (str_trim(value).len == 0 &&
	    (k->type == KT_BOOL || k->type == KT_UINT || k->type == KT_AUTO || k->type == KT_ENUM))
		return;
	const char *what = arena_cstr(ld->a, name);
	value_from_text(ld, k, value, REPORT_ENVIRON, what);
}

static void
load_environ(struct loader *ld)
{
	struct str rest = ld->src->environ, name, value;
	while (env_next(&rest, &name, &value))
		if (str_starts(name, STR("OTARI_")) && !is_other_variable(name))
			load_variable(ld, name, value);
}

/* --- the whole ------------------------------------------------------------------------------- */

enum err_code
conf_load(const struct conf_source *src, struct conf_report *report, struct conf **ret,
    struct err *reterr)
{
	struct arena *a = arena_new(CONF_ARENA_BYTES);
	struct conf *c = ARENA_NEW(a, struct conf);
	CHECK(c != NULL);
	c->arena = a;
	struct loader ld = {a, c, report, src};
	load_defaults(&ld);
	const struct conf_node *root = load_file(&ld);
	if (root != NULL) {
		load_environ(&ld);
		load_sections(&ld, root);
		load_environ_providers(&ld);
		resolve_paths(&ld);
		check_conf(&ld);
	}
	if (arena_overflowed(a))
		conf_error(report, 0, "too large");
	if (report->error_count > 0) {
		if (reterr != NULL)
			*reterr = report->first;
		conf_free(&c);
		return ERR_INPUT;
	}
	*ret = c;
	return ERR_OK;
}

void
conf_free(struct conf **cp)
{
	struct conf *c = *cp;
	*cp = NULL;
	if (c == NULL)
		return;
	struct arena *a = c->arena;
	arena_free(&a);
}

const struct conf_origin *
conf_origin_of(const struct conf *c, const char *key)
{
	const struct conf_key *k = conf_key_find(str_c(key));
	CHECK(k != NULL);
	return &c->origins[conf_key_place(k)];
}
