#include "worker/dialect/drop.h"

#include <stdio.h>

#include "worker/dialect/mapping.h"

#define WORD_MAX 64u

static bool
is_word(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-'))
			return false;
	}
	return s.len <= WORD_MAX;
}

void
drop_named(struct conversation *c, const char *a, struct str b)
{
	if (!is_word(b))
		b = STR("other");
	const char *dot = *a != '\0' && b.len > 0 ? "." : "";
	char name[2 * WORD_MAX + 32];
	(void)snprintf(name, sizeof(name), "%s.%s%s%.*s", wire_name(c->wire), a, dot, STR_FMT(b));
	conversation_drop(c, str_c(name));
}

void
drop_unmapped_members(struct conversation *c)
{
	for (const struct field *f = c->extra; f != NULL; f = f->next)
		if (member_use(c->wire, f->key) == MEMBER_UNKNOWN && !str_eq(f->raw, STR("null")))
			drop_named(c, "", f->key);
}
