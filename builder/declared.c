#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "builder/build.h"
#include "ipc/snapshot_build.h"

/* The settings that the API has a name for. */
static const char *const SETTINGS[] = {"code_execution_executor", "sandbox_purpose_hint",
    "sandbox_session_image", "sandbox_url", "tools_header"};

struct declared {
	struct build *b;
	struct snap_build *s;
	struct snap_declared *all;
	uint32_t count, cap;
};

static void
add(struct declared *d, const char *kind, struct str name, struct str where)
{
	CHECK(d->count < d->cap);
	d->all[d->count++] = (struct snap_declared){
	    .what = snap_build_str(d->s, arena_printf(d->b->arena, "%s/%.*s", kind, STR_FMT(name))),
	    .where = snap_build_str(d->s, where),
	};
}

static struct str
line(const struct declared *d, uint32_t number)
{
	return arena_printf(d->b->arena, "%s:%u", d->b->report.file, number);
}

static struct str
variable(const struct declared *d, const char *key)
{
	char name[64];
	size_t n = strlen(key);
	CHECK(n < sizeof(name));
	for (size_t i = 0; i <= n; i++)
		name[i] = key[i] >= 'a' && key[i] <= 'z' ? (char)(key[i] - 'a' + 'A') : key[i];
	return arena_printf(d->b->arena, "the environment variable OTARI_%s", name);
}

static void
add_settings(struct declared *d)
{
	for (size_t i = 0; i < ARRAY_LEN(SETTINGS); i++) {
		const struct conf_origin *o = conf_origin_of(d->b->conf, SETTINGS[i]);
		if (o->from != FROM_DEFAULT)
			add(d, "setting", str_c(SETTINGS[i]),
			    o->from == FROM_FILE ? line(d, o->line) : variable(d, SETTINGS[i]));
	}
}

struct snap_table
declared_of(struct build *b, struct snap_build *s)
{
	const struct conf *c = b->conf;
	struct declared d = {.b = b, .s = s};
	d.cap = (uint32_t)ARRAY_LEN(SETTINGS) + 2 * c->workspace_count + c->key_count;
	d.all = MEM_NEW_ARRAY(struct snap_declared, d.cap);
	add_settings(&d);
	for (uint32_t i = 0; i < c->workspace_count; i++) {
		const struct conf_workspace *w = &c->workspaces[i];
		add(&d, "workspace", w->id, line(&d, w->line));
		if (w->has_policy)
			add(&d, "policy", w->id, line(&d, w->line));
	}
	for (uint32_t i = 0; i < c->key_count; i++)
		add(&d, "key", c->keys[i].id, line(&d, c->keys[i].line));
	struct snap_table t = SNAP_TABLE(s, d.all, d.count);
	mem_free(d.all);
	return t;
}
