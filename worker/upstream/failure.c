#include "worker/upstream/failure.h"

#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "worker/upstream/target.h"

#define MESSAGE_MAX_BYTES 2000u
#define WORD_MAX_BYTES    128u
#define SECRET_MIN_BYTES  6u /* shorter ones would blank out words */

static const struct {
	int from, to; /* upstream status */
	int status;
	bool show_message;
	const char *text; /* when the provider's is not shown or empty */
} table[] = {
    {400, 400, 400, true, "the provider refused the request"},
    {401, 401, 502, false, "the provider did not accept the gateway's credential"},
    {402, 402, 502, false, "the provider has a billing problem with the gateway's account"},
    {403, 403, 502, false, "the provider did not accept the gateway's credential"},
    {404, 404, 404, true, "the provider does not know this model"},
    {408, 408, 504, false, "the provider timed out"},
    {413, 413, 413, true, "the request is too large for the provider"},
    {422, 422, 400, true, "the provider refused the request"},
    {429, 429, 429, true, "the provider's rate limit was reached"},
    {503, 503, 503, false, "the provider is not available at the moment"},
    {504, 504, 504, false, "the provider timed out"},
    {529, 529, 529, false, "the provider is overloaded"},
    {0, 999, 502, false, "the provider failed to answer"},
};

/* error.message, error as a string, or message: the forms that providers use. */
static struct str
find_message(struct arena *a, struct str body)
{
	struct jval root;
	if (jdoc_parse(a, body, &root, NULL) != ERR_OK)
		return STR_NULL;
	if (jv_is(root, JT_ARRAY))
		root = jv_at(root, 0);
	struct jval error = jv_get(root, "error");
	struct str s = jv_str(a, jv_get(error, "message"));
	if (s.ptr == NULL)
		s = jv_str(a, error);
	if (s.ptr == NULL)
		s = jv_str(a, jv_get(root, "message"));
	if (s.ptr == NULL)
		s = jv_str(a, jv_get(root, "detail"));
	return s;
}

/* What a program acts on ("context_length_exceeded", "messages[2].content"); anything else is "".
 */
static struct str
find_word(struct arena *a, struct str body, const char *key)
{
	struct jval root;
	if (jdoc_parse(a, body, &root, NULL) != ERR_OK)
		return STR("");
	struct str s = jv_str(a, jv_get(jv_get(root, "error"), key));
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		bool is_alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
		if (!is_alnum && c != '_' && c != '.' && c != '[' && c != ']')
			return STR("");
	}
	return s.len <= WORD_MAX_BYTES ? s : STR("");
}

static void
mask(struct str secret, char *text, size_t len)
{
	if (secret.len < SECRET_MIN_BYTES)
		return;
	for (size_t at = 0, next; (next = str_find(str_n(text + at, len - at), secret)) != SIZE_MAX;
	     at += next + secret.len)
		memset(text + at + next, '*', secret.len);
}

static bool
is_credential(struct str header)
{
	static const struct str words[] = {STR_INIT("key"), STR_INIT("auth"), STR_INIT("token"),
	    STR_INIT("secret"), STR_INIT("cookie"), STR_INIT("password")};
	for (size_t at = 0; at < header.len; at++)
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (str_starts_nocase(str_from(header, at), words[i]))
				return true;
	return false;
}

void
failure_mask(const struct target *t, char *text, size_t len)
{
	mask(t->key, text, len);
	for (size_t i = 0; i < t->header_count; i++) {
		if (!is_credential(t->headers[i].name))
			continue;
		struct str value = str_trim(t->headers[i].value);
		size_t space = str_chr(value, ' '); /* "Bearer …": the scheme is no secret */
		mask(space != SIZE_MAX ? str_trim(str_from(value, space)) : value, text, len);
	}
}

struct str
failure_masked(struct arena *a, const struct target *t, struct str text)
{
	char *copy = arena_alloc(a, text.len + 1);
	if (copy == NULL)
		return STR("");
	if (text.len > 0)
		memcpy(copy, text.ptr, text.len);
	failure_mask(t, copy, text.len);
	return str_n(copy, text.len);
}

/* 1 to 6 digits of seconds; nothing else is passed on. */
static struct str
check_retry_after(struct arena *a, struct str s)
{
	uint64_t v;
	s = str_trim(s);
	return s.len >= 1 && s.len <= 6 && str_u64(s, &v) ? arena_str(a, s) : STR("");
}

static size_t
row_of(int status)
{
	size_t i = 0;
	while (status < table[i].from || status > table[i].to)
		i++;
	return i;
}

void
failure_from_event(
    struct arena *a, int status, struct str said, const struct target *target, struct failure *ret)
{
	size_t i = row_of(status);
	bool is_ours = status >= 401 && status <= 403;
	*ret = (struct failure){
	    .status = is_ours ? table[i].status : status,
	    .upstream_status = status,
	    .message = is_ours ? str_c(table[i].text) : failure_masked(a, target, said),
	};
}

void
failure_from_status(struct arena *a, int status, struct str body, struct str retry_after,
    const struct target *target, struct failure *ret)
{
	size_t i = row_of(status);
	*ret = (struct failure){
	    .status = table[i].status,
	    .upstream_status = status,
	    .message = str_c(table[i].text),
	    .cause = arena_printf(a, "the provider answered %d", status),
	    .retry_after = check_retry_after(a, retry_after),
	};
	if (!table[i].show_message)
		return;
	ret->code = failure_masked(a, target, find_word(a, body, "code"));
	ret->param = failure_masked(a, target, find_word(a, body, "param"));
	struct str said = find_message(a, body);
	if (said.len > 0 && utf8_valid(said))
		ret->message = utf8_cut(failure_masked(a, target, said), MESSAGE_MAX_BYTES);
}

void
failure_from_err(struct arena *a, const struct err *err, struct failure *ret)
{
	bool timeout = err->code == ERR_TIMEOUT;
	*ret = (struct failure){
	    .status = timeout ? 504 : 502,
	    .message = timeout ? STR("the provider timed out")
			       : STR("the provider could not be reached or broke off"),
	    .cause = arena_str(a, str_c(err->msg)),
	};
}
