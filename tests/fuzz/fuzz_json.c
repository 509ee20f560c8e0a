/* The span reader against Jansson. What we accept it accepts, but for the known differences:
 * numbers that do not fit, lone surrogates, NUL escapes in keys. What it accepts we accept, but for
 * depth and for a NUL byte behind the value, which it takes for the end of the text. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every value and checks that spans nest and decoded text agrees with jv_str_is. */
static void
walk(struct arena *a, struct jval v, unsigned depth)
{
	struct str raw = jv_raw(v);
	CHECK(raw.len > 0 && depth <= LIMIT_JSON_DEPTH);
	struct str s = jv_str(a, v);
	if (s.ptr != NULL && memchr(s.ptr, 0, s.len) == NULL)
		CHECK(jv_str_is(v, arena_cstr(a, s)));
	int64_t i;
	double d;
	(void)jv_i64(v, &i);
	(void)jv_double(v, &d);
	uint32_t n = 0;
	struct jiter it = {0};
	while (jv_next(v, &it)) {
		struct str inner = jv_raw(it.value);
		CHECK(inner.ptr > raw.ptr && inner.ptr + inner.len < raw.ptr + raw.len);
		walk(a, it.value, depth + 1);
		n++;
	}
	CHECK(n == jv_count(v));
}

static bool
known_difference(const char *text)
{
	return strstr(text, "real number overflow") != NULL || strstr(text, "too big") != NULL ||
	       strstr(text, "invalid Unicode") != NULL || strstr(text, "NUL byte") != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(64u << 20);
	struct jval v = JV_ABSENT;
	struct err ours = {0};
	json_error_t theirs;
	bool accepted = jdoc_parse(a, str_n(data, size), &v, &ours) == ERR_OK;
	json_t *j = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &theirs);
	if (accepted) {
		walk(a, v, 0);
		CHECK(j != NULL || known_difference(theirs.text));
	} else {
		CHECK(j == NULL || strstr(ours.msg, "too deep") != NULL ||
		      memchr(data, 0, size) != NULL);
	}
	json_decref(j);
	arena_free(&a);
	return 0;
}
