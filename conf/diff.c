#include "base/check.h"
#include "conf/dump.h"

static bool
same_text(struct str a, struct str b)
{
	return (a.ptr == NULL) == (b.ptr == NULL) && str_eq(a, b);
}

static bool
same_pairs(const struct conf_pairs *a, const struct conf_pairs *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i].name, b->items[i].name) ||
		    !same_text(a->items[i].value, b->items[i].value))
			return false;
	return true;
}

static bool
same_list(const struct conf_list *a, const struct conf_list *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!str_eq(a->items[i], b->items[i]))
			return false;
	return true;
}

static bool
same_value(const struct conf_key *k, const struct conf *a, const struct conf *b)
{
	const void *va = (const char *)a + k->off, *vb = (const char *)b + k->off;
	switch (k->type) {
	case KT_STR:
	case KT_SECRET:
	case KT_DB_URL:
	case KT_URL:
	case KT_WRITTEN:
	case KT_READ:
	case KT_LISTEN:
		return same_text(*(const struct str *)va, *(const struct str *)vb);
	case KT_BOOL:
		return *(const bool *)va == *(const bool *)vb;
	case KT_UINT:
	case KT_AUTO:
	case KT_ENUM:
		return *(const uint64_t *)va == *(const uint64_t *)vb;
	case KT_LIST:
		return same_list(va, vb);
	case KT_PAIRS:
		return same_pairs(va, vb);
	case KT_SECTION:
		return a->origins[conf_key_place(k)].digest == b->origins[conf_key_place(k)].digest;
	}
	UNREACHABLE("type");
}

static void
put_shown(struct buf *dst, const struct conf *c, const struct conf_key *k)
{
	size_t before = dst->len;
	conf_put_value(dst, c, k, (const char *)c + k->off);
	/* Long texts say nothing in a line. */
	if (dst->len > before + 60 && !dst->overflowed) {
		dst->len = before + 57;
		buf_add(dst, STR("…\""));
	}
}

unsigned
conf_diff(const struct conf *old, const struct conf *now, struct buf *dst)
{
	size_t n;
	unsigned changes = 0;
	const struct conf_key *keys = conf_keys(&n);
	for (size_t i = 0; i < n; i++) {
		if (same_value(&keys[i], old, now))
			continue;
		changes++;
		buf_add(dst, str_c(keys[i].name));
		if (keys[i].type != KT_SECTION && keys[i].type != KT_SECRET) {
			buf_add(dst, STR(": "));
			put_shown(dst, old, &keys[i]);
			buf_add(dst, STR(" -> "));
			put_shown(dst, now, &keys[i]);
		}
		buf_printf(dst, "  (%s)\n", conf_effect_name(keys[i].effect));
	}
	return changes;
}
