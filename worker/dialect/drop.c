#include "worker/dialect/drop.h"

#include <stdio.h>

#include "worker/dialect/mapping.h"
#include "worker/dialect/read.h"

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
		if (member_use(c->wire, f->key) == MEMBER_UNKNOWN &&
		    !member_is_default(c->wire, f->key, f->raw))
			drop_named(c, "", f->key);
}

void
drop_verbosity(struct conversation *c)
{
	if (c->verbosity.len > 0)
		drop_named(c, c->wire == WIRE_RESPONSES ? "text" : "", STR("verbosity"));
}

enum err_code
refuse_kept_elsewhere(const struct conversation *c, struct err *reterr)
{
	static const char *const members[] = {"conversation", "prompt"};
	struct str id = c->previous_response_id;
	if (c->wire != WIRE_RESPONSES)
		return ERR_OK;
	if (id.len > 0)
		return err_set(reterr, ERR_INPUT, "Previous response with id '%.*s' not found.",
		    (int)(id.len < 80 ? id.len : 80), id.ptr);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct field *f = extra_find(c, members[i]);
		if (f != NULL && !str_eq(f->raw, STR("null")))
			return err_set(
			    reterr, ERR_INPUT, "%s: this model's provider keeps none", members[i]);
	}
	return ERR_OK;
}
