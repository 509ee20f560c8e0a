#include "worker/upstream/beta.h"

#include "base/buf.h"
#include "base/limits.h"

static bool
is_kept(struct str name, bool without_code)
{
	return name.len > 0 && !(without_code && str_starts_nocase(name, STR("code-execution-")));
}

static void
add_names(struct buf *b, struct str value, bool without_code)
{
	while (value.len > 0) {
		size_t comma = str_chr(value, ',');
		struct str name = str_trim(str_sub(value, 0, comma));
		value = comma == SIZE_MAX ? STR("") : str_from(value, comma + 1);
		if (!is_kept(name, without_code))
			continue;
		if (b->len > 0)
			buf_add(b, STR(", "));
		buf_add(b, name);
	}
}

struct str
beta_header(
    struct arena *a, const struct http_head *head, struct str provider_type, bool without_code)
{
	struct buf b = BUF_INIT(2u * LIMIT_HTTP_HEAD_BYTES);
	if (!str_eq_nocase(provider_type, STR("anthropic")))
		return STR_NULL;
	for (size_t i = 0; i < head->header_count; i++)
		if (str_eq_nocase(head->headers[i].name, STR("anthropic-beta")))
			add_names(&b, head->headers[i].value, without_code);
	struct str s = b.len > 0 ? arena_str(a, buf_str(&b)) : STR_NULL;
	buf_done(&b);
	return s;
}
