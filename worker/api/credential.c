#include "worker/api/credential.h"

/* In the order in which they are tried. */
static const struct source {
	const char *name;
	enum { BEARER_OPTIONAL, BEARER_REQUIRED, BEARER_NONE } bearer;
} sources[] = {
    {"Otari-Key", BEARER_OPTIONAL},
    {"Authorization", BEARER_REQUIRED},
    {"x-api-key", BEARER_NONE},
};

bool
credential_next(const struct http_head *head, size_t *pos, struct str *ret, bool *ret_bad_format)
{
	if (head->header_count == 0)
		return false;
	for (; *pos < ARRAY_LEN(sources) * head->header_count; (*pos)++) {
		const struct source *s = &sources[*pos / head->header_count];
		const struct http_header *h = &head->headers[*pos % head->header_count];
		if (!str_eq_nocase(h->name, str_c(s->name)))
			continue;
		struct str value = str_trim(h->value);
		if (value.len == 0)
			continue;
		bool has_bearer = str_starts_nocase(value, STR("Bearer "));
		if (has_bearer && s->bearer != BEARER_NONE)
			value = str_trim(str_from(value, 7));
		*ret_bad_format = value.len == 0 || (s->bearer == BEARER_REQUIRED && !has_bearer);
		*ret = *ret_bad_format ? STR("") : value;
		(*pos)++;
		return true;
	}
	return false;
}
