#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "conf/env.h"
#include "conf/load.h"
#include "conf/validate.h"

bool
value_bool(struct str text, bool *ret)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};
	text = str_trim(text);
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		bool is_yes = str_eq_nocase(text, str_c(yes[i]));
		if (!is_yes && !str_eq_nocase(text, str_c(no[i])))
			continue;
		*ret = is_yes;
		return true;
	}
	return false;
}

bool
value_uint(struct str text, bool is_bytes, uint64_t *ret)
{
	static const struct {
		struct str suffix;
		unsigned shift;
	} sizes[] = {{STR_INIT("KiB"), 10}, {STR_INIT("MiB"), 20}, {STR_INIT("GiB"), 30}};
	unsigned shift = 0;
	text = str_trim(text);
	for (size_t i = 0; is_bytes && i < ARRAY_LEN(sizes); i++) {
		if (!str_ends(text, sizes[i].suffix))
			continue;
		shift = sizes[i].shift;
		text = str_trim(str_sub(text, 0, text.len - sizes[i].suffix.len));
	}
	uint64_t v;
	if (!str_u64(text, &v) || v > UINT64_MAX >> shift)
		return false;
	*ret = v << shift;
	return true;
}

/* --- scalars of the key table ---------------------------------------------------------------- */

static void
set_number(struct loader *ld, const struct conf_key *k, struct str text, uint32_t line,
    const char *what, uint64_t *dst)
{
	uint64_t v;
	bool is_bytes = k->unit != NULL && strcmp(k->unit, "bytes") == 0;
	if (k->type == KT_AUTO &&
	    (str_eq_nocase(text, STR("auto")) || str_eq_nocase(text, STR("none")))) {
		*dst = 0;
		return;
	}
	if (value_uint(text, is_bytes, &v) && v >= k->min && v <= k->max) {
		*dst = v;
		return;
	}
	conf_error(ld->r, line, "%s: must be %sa whole number%s%s from %llu to %llu, not '%.*s'",
	    what, k->type == KT_AUTO ? "auto or " : "", k->unit != NULL ? " of " : "",
	    k->unit != NULL ? k->unit : "", (unsigned long long)k->min, (unsigned long long)k->max,
	    STR_FMT(conf_shown(text)));
}

static void
set_choice(struct loader *ld, const struct conf_key *k, struct str text, uint32_t line,
    const char *what, uint64_t *dst)
{
	struct str rest = str_c(k->choices), one;
	for (uint64_t place = k->min; str_split(&rest, '|', &one); place++) {
		if (!str_eq_nocase(one, text))
			continue;
		*dst = place;
		return;
	}
	conf_error(ld->r, line, "%s: must be one of %s, not '%.*s'", what, k->choices,
	    STR_FMT(conf_shown(text)));
}

static void
set_flag(struct loader *ld, struct str text, uint32_t line, const char *what, bool *dst)
{
	if (!value_bool(text, dst))
		conf_error(ld->r, line, "%s: must be true or false, not '%.*s'", what,
		    STR_FMT(conf_shown(text)));
}

static void
set_url(struct loader *ld, struct str text, uint32_t line, const char *what, struct str *dst)
{
	struct err e;
	if (validate_http_url(text, &text, &e) == ERR_OK)
		*dst = arena_str(ld->a, text);
	else
		conf_error(ld->r, line, "%s: %s", what, e.msg);
}

static void
set_listen(struct loader *ld, struct str text, uint32_t line, const char *what, struct str *dst)
{
	struct err e;
	char host[VALIDATE_HOST_SIZE];
	uint16_t port;
	if (str_eq_nocase(text, STR("none")) || str_eq_nocase(text, STR("off")))
		*dst = STR_NULL;
	else if (validate_host_port(text, host, &port, &e) == ERR_OK)
		*dst = arena_printf(
		    ld->a, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
	else
		conf_error(ld->r, line, "%s: %s", what, e.msg);
}

/* From the environment or a default: items between commas. */
static void
set_list(struct loader *ld, struct str text, struct conf_list *dst)
{
	uint32_t n = 0;
	struct str rest = text, one;
	while (str_split(&rest, ',', &one))
		n++;
	struct conf_list list = {ARENA_NEW_ARRAY(ld->a, struct str, n), 0};
	rest = text;
	while (list.items != NULL && str_split(&rest, ',', &one))
		if (str_trim(one).len > 0)
			list.items[list.count++] = arena_str(ld->a, str_trim(one));
	*dst = list;
}

static void
set_origin(struct loader *ld, const struct conf_key *k, uint32_t line)
{
	struct conf_origin *o = &ld->c->origins[conf_key_place(k)];
	o->from = line == REPORT_ENVIRON ? FROM_ENVIRON : line > 0 ? FROM_FILE : FROM_DEFAULT;
	o->line = o->from == FROM_FILE ? line : 0;
}

void
value_from_text(
    struct loader *ld, const struct conf_key *k, struct str text, uint32_t line, const char *what)
{
	void *dst = (char *)ld->c + k->off;
	struct str trimmed = str_trim(text);
	set_origin(ld, k, line);
	switch (k->type) {
	case KT_STR:
	case KT_SECRET:
	case KT_DB_URL:
	case KT_WRITTEN:
	case KT_READ:
		*(struct str *)dst = trimmed.len > 0 ? arena_str(ld->a, trimmed) : STR_NULL;
		return;
	case KT_URL:
	case KT_LISTEN:
		if (trimmed.len == 0)
			*(struct str *)dst = STR_NULL;
		else if (k->type == KT_URL)
			set_url(ld, trimmed, line, what, dst);
		else
			set_listen(ld, trimmed, line, what, dst);
		return;
	case KT_BOOL:
		set_flag(ld, trimmed, line, what, dst);
		return;
	case KT_UINT:
	case KT_AUTO:
		set_number(ld, k, trimmed, line, what, dst);
		return;
	case KT_ENUM:
		set_choice(ld, k, trimmed, line, what, dst);
		return;
	case KT_LIST:
		set_list(ld, text, dst);
		return;
	case KT_PAIRS:
	case KT_SECTION:
		conf_error(ld->r, line, "%s: can only be set in the file", what);
		return;
	}
}

/* Written as nothing (`key:`): not set, also where the default is something. */
static void
unset(struct loader *ld, const struct conf_key *k, uint32_t line)
{
	void *dst = (char *)ld->c + k->off;
	switch (k->type) {
	case KT_STR:
	case KT_SECRET:
	case KT_DB_URL:
	case KT_URL:
	case KT_WRITTEN:
	case KT_READ:
	case KT_LISTEN:
		*(struct str *)dst = STR_NULL;
		set_origin(ld, k, line);
		return;
	case KT_AUTO:
		*(uint64_t *)dst = 0;
		set_origin(ld, k, line);
		return;
	case KT_BOOL:
	case KT_UINT:
	case KT_ENUM:
	case KT_LIST:
	case KT_PAIRS:
	case KT_SECTION:
		return; /* the default */
	}
}

void
value_from_node(struct loader *ld, const struct conf_key *k, const struct conf_node *n)
{
	void *dst = (char *)ld->c + k->off;
	struct str text;
	if (n->type == NODE_NULL) {
		unset(ld, k, n->key_line);
	} else if (k->type == KT_LIST && n->type == NODE_LIST) {
		set_origin(ld, k, n->key_line);
		(void)value_list(ld, n, k->name, dst);
	} else if (k->type == KT_PAIRS && n->type == NODE_MAP) {
		set_origin(ld, k, n->key_line);
		(void)value_pairs(ld, n, k->name, dst);
	} else if (k->type == KT_LIST || k->type == KT_PAIRS) {
		conf_error(ld->r, n->line, "%s: must be %s, not %s", k->name,
		    k->type == KT_LIST ? "a list" : "a map", conf_node_kind(n));
	} else if (value_text(ld, n, k->name, &text)) {
		value_from_text(ld, k, text, n->line, k->name);
	}
}

/* --- nodes ----------------------------------------------------------------------------------- */

bool
value_text(struct loader *ld, const struct conf_node *n, const char *what, struct str *ret)
{
	struct err e;
	if (n->type == NODE_NULL) {
		*ret = STR("");
		return true;
	}
	if (n->type != NODE_SCALAR) {
		conf_error(
		    ld->r, n->line, "%s: must be a single value, not %s", what, conf_node_kind(n));
		return false;
	}
	if (env_expand(ld->a, ld->src->environ, n->text, ret, &e) == ERR_OK)
		return true;
	conf_error(ld->r, n->line, "%s: %s", what, e.msg);
	return false;
}

bool
value_list(struct loader *ld, const struct conf_node *n, const char *what, struct conf_list *ret)
{
	struct conf_list list = {ARENA_NEW_ARRAY(ld->a, struct str, n->count), 0};
	if (!expect_node(ld, n, NODE_LIST, what) || list.items == NULL)
		return false;
	CONF_EACH(item, n)
	{
		struct str text;
		if (!value_text(ld, item, what, &text))
			return false;
		if (str_trim(text).len == 0) {
			conf_error(ld->r, item->line, "%s: an empty item", what);
			return false;
		}
		list.items[list.count++] = str_trim(text);
	}
	*ret = list;
	return true;
}

bool
value_pairs(struct loader *ld, const struct conf_node *n, const char *what, struct conf_pairs *ret)
{
	struct conf_pairs pairs = {ARENA_NEW_ARRAY(ld->a, struct conf_pair, n->count), 0};
	if (!expect_node(ld, n, NODE_MAP, what) || pairs.items == NULL)
		return false;
	CONF_EACH(item, n)
	{
		struct conf_pair *p = &pairs.items[pairs.count];
		p->name = item->key;
		if (!value_text(ld, item, what, &p->value))
			return false;
		pairs.count++;
	}
	*ret = pairs;
	return true;
}
