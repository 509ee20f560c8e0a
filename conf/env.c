#include "conf/env.h"

#include "base/limits.h"
#include "base/mem.h"

void
conf_environ_block(struct buf *dst, char *const *environment)
{
	for (; environment != NULL && *environment != NULL; environment++) {
		buf_add(dst, str_c(*environment));
		buf_addc(dst, '\0');
	}
}

bool
env_next(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	while (rest->len > 0) {
		struct str one = *rest;
		size_t end = str_chr(*rest, '\0');
		if (end != SIZE_MAX) {
			one = str_sub(*rest, 0, end);
			*rest = str_from(*rest, end + 1);
		} else {
			*rest = str_from(*rest, rest->len);
		}
		size_t equals = str_chr(one, '=');
		if (equals == SIZE_MAX || equals == 0)
			continue;
		*ret_name = str_sub(one, 0, equals);
		*ret_value = str_from(one, equals + 1);
		return true;
	}
	return false;
}

struct str
env_get(struct str environ, struct str name)
{
	struct str n, v;
	while (env_next(&environ, &n, &v))
		if (str_eq(n, name))
			return v;
	return STR_NULL;
}

static bool
is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return s.len > 0;
}

/* text begins behind "${"; *ret_used: bytes up to and with the "}". */
static enum err_code
expand_one(
    struct str environ, struct str text, struct buf *dst, size_t *ret_used, struct err *reterr)
{
	size_t end = str_chr(text, '}');
	if (end == SIZE_MAX)
		return err_set(reterr, ERR_INPUT, "${ without }");
	struct str name = str_sub(text, 0, end), dflt = STR_NULL;
	size_t dash = str_find(name, STR(":-"));
	if (dash != SIZE_MAX) {
		dflt = str_from(name, dash + 2);
		name = str_sub(name, 0, dash);
	}
	if (!is_name(name))
		return err_set(
		    reterr, ERR_INPUT, "${%.*s} names no variable", STR_FMT(str_sub(name, 0, 60)));
	struct str value = env_get(environ, name);
	if (value.ptr == NULL || (value.len == 0 && dflt.ptr != NULL))
		value = dflt;
	if (value.ptr == NULL)
		return err_set(reterr, ERR_INPUT, "the variable %.*s is not set",
		    STR_FMT(str_sub(name, 0, 60)));
	buf_add(dst, value);
	*ret_used = end + 1;
	return ERR_OK;
}

enum err_code
env_expand(
    struct arena *a, struct str environ, struct str text, struct str *ret, struct err *reterr)
{
	if (str_chr(text, '$') == SIZE_MAX) {
		*ret = text;
		return ERR_OK;
	}
	enum err_code rc = ERR_OK;
	struct buf out = BUF_INIT(LIMIT_CONF_BYTES);
	for (size_t i = 0; rc == ERR_OK && i < text.len;) {
		size_t used = 1;
		if (str_starts(str_from(text, i), STR("$$")))
			i++;
		else if (str_starts(str_from(text, i), STR("${"))) {
			rc = expand_one(environ, str_from(text, i + 2), &out, &used, reterr);
			i += used + 2;
			continue;
		}
		buf_addc(&out, text.ptr[i]);
		i += used;
	}
	if (rc == ERR_OK && out.overflowed)
		rc = err_set(reterr, ERR_INPUT, "too long with its variables");
	if (rc == ERR_OK)
		*ret = arena_str(a, buf_str(&out));
	mem_wipe(out.ptr, out.len);
	buf_done(&out);
	return rc;
}
