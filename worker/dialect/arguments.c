#include "worker/dialect/arguments.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/json_write.h"

bool
arguments_blank(struct str text)
{
	struct str s = str_trim(text);
	return s.len == 0 || str_eq(s, STR("null"));
}

struct str
arguments_begin(struct str text)
{
	while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\n' || text.ptr[0] == '\r' ||
				   text.ptr[0] == '\t'))
		text = str_from(text, 1);
	return text;
}

struct str
arguments_text(struct str text)
{
	return arguments_blank(text) ? STR("{}") : text;
}

/* {key: text} */
static struct str
wrap(struct arena *a, const char *key, struct str text)
{
	struct buf b = BUF_INIT(6 * text.len + 64);
	struct jw w;
	jw_init(&w, &b);
	jw_object(&w);
	jw_kstr(&w, key, text);
	jw_end_object(&w);
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}

struct str
arguments_of_text(struct arena *a, struct str input)
{
	return wrap(a, "input", input);
}

struct str
arguments_input(struct arena *a, struct str arguments)
{
	struct jval v;
	if (jdoc_parse(a, arguments, &v, NULL) != ERR_OK || !jv_is(jv_get(v, "input"), JT_STRING))
		return arguments;
	return jv_str(a, jv_get(v, "input"));
}

struct str
arguments_object(struct arena *a, struct str text)
{
	struct jval v;
	if (arguments_blank(text))
		return STR("{}");
	if (jdoc_parse(a, text, &v, NULL) == ERR_OK && jv_is(v, JT_OBJECT))
		return jv_raw(v);
	return wrap(a, "_raw", text);
}

struct str
block_with_input(struct arena *a, struct str raw, struct str input)
{
	struct jval v;
	if (arguments_blank(input) || jdoc_parse(a, raw, &v, NULL) != ERR_OK)
		return raw;
	struct str object = arguments_object(a, input);
	struct buf b = BUF_INIT(raw.len + object.len + 64);
	struct jw w;
	struct jiter it = {0};
	jw_init(&w, &b);
	jw_object(&w);
	while (jv_next(v, &it)) {
		if (jv_str_is(it.key, "input"))
			continue;
		jw_key_str(&w, jv_str(a, it.key));
		jw_raw(&w, jv_raw(it.value));
	}
	jw_kraw(&w, "input", object);
	jw_end_object(&w);
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}
