#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "conf/load.h"

bool
expect_node(
    struct loader *ld, const struct conf_node *n, enum conf_node_type type, const char *what)
{
	if (n->type == type)
		return true;
	conf_error(ld->r, n->line, "%s: must be %s, not %s", what,
	    type == NODE_LIST  ? "a list"
	    : type == NODE_MAP ? "a map"
			       : "a single value",
	    conf_node_kind(n));
	return false;
}

static bool
read_price(struct str text, double *ret)
{
	char copy[64], *end;
	if (!str_copy(copy, sizeof(copy), str_trim(text)) || copy[0] == '\0')
		return false;
	double v = strtod(copy, &end);
	if (*end != '\0' || !isfinite(v) || v < 0 || v > 1e9)
		return false;
	*ret = v;
	return true;
}

static bool
set_member(struct loader *ld, const struct member *m, const char *what, struct str text,
    uint32_t line, void *dst)
{
	uint64_t number;
	bool flag;
	switch (m->type) {
	case MT_STR:
		*(struct str *)dst =
		    str_trim(text).len > 0 ? arena_str(ld->a, str_trim(text)) : STR_NULL;
		return true;
	case MT_BOOL:
	case MT_TRI:
	case MT_AUTO:
		if (m->type == MT_AUTO && str_eq_nocase(str_trim(text), STR("auto"))) {
			*(int *)dst = -1;
			return true;
		}
		if (!value_bool(text, &flag)) {
			conf_error(ld->r, line, "%s: must be %strue or false, not '%.*s'", what,
			    m->type == MT_AUTO ? "auto, " : "", STR_FMT(conf_shown(text)));
			return false;
		}
		if (m->type == MT_BOOL)
			*(bool *)dst = flag;
		else
			*(int *)dst = flag;
		return true;
	case MT_U32:
		if (!value_uint(text, false, &number) || number < m->min || number > m->max) {
			conf_error(ld->r, line,
			    "%s: must be a whole number from %u to %u, not '%.*s'", what, m->min,
			    m->max, STR_FMT(conf_shown(text)));
			return false;
		}
		*(uint32_t *)dst = (uint32_t)number;
		return true;
	case MT_PRICE:
		if (read_price(text, dst))
			return true;
		conf_error(ld->r, line, "%s: must be an amount, 0 or more, not '%.*s'", what,
		    STR_FMT(conf_shown(text)));
		return false;
	case MT_LIST:
	case MT_PAIRS:
	case MT_NODE:
		break;
	}
	UNREACHABLE("no text");
}

static bool
load_member(struct loader *ld, const struct conf_node *n, const struct member *m, const char *what,
    void *base)
{
	void *dst = (char *)base + m->off;
	struct str text;
	if (m->type == MT_NODE) {
		*(const struct conf_node **)dst = n;
		return true;
	}
	if (n->type == NODE_NULL)
		return true;
	if (m->type == MT_LIST)
		return value_list(ld, n, what, dst);
	if (m->type == MT_PAIRS)
		return value_pairs(ld, n, what, dst);
	return value_text(ld, n, what, &text) && set_member(ld, m, what, text, n->line, dst);
}

static void
unknown_member(struct loader *ld, const struct conf_node *n, const char *what,
    const struct member *members, size_t count)
{
	const char *names[32] = {NULL};
	for (size_t i = 0; i < count && i + 1 < ARRAY_LEN(names); i++)
		names[i] = members[i].name;
	const char *near = conf_nearest(n->key, names);
	conf_error(ld->r, n->key_line, "%s: unknown key '%.*s'%s%s%s", what,
	    STR_FMT(conf_shown(n->key)), near != NULL ? "; did you mean '" : "",
	    near != NULL ? near : "", near != NULL ? "'?" : "");
}

bool
load_members(struct loader *ld, const struct conf_node *map, const char *what,
    const struct member *members, size_t count, void *base)
{
	bool ok = true;
	if (map->type == NODE_NULL)
		return true;
	if (!expect_node(ld, map, NODE_MAP, what))
		return false;
	CONF_EACH(child, map)
	{
		const struct member *m = NULL;
		for (size_t i = 0; i < count && m == NULL; i++)
			if (str_eq(child->key, str_c(members[i].name)))
				m = &members[i];
		if (m == NULL) {
			unknown_member(ld, child, what, members, count);
			ok = false;
			continue;
		}
		char path[256];
		(void)snprintf(path, sizeof(path), "%s.%s", what, m->name);
		ok = load_member(ld, child, m, path, base) && ok;
	}
	return ok;
}
