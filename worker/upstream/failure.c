#include "worker/upstream/failure.h"

#include "base/json.h"
#include "base/utf8.h"

#define MESSAGE_MAX_BYTES 2000u

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

static struct str
blank_out(struct arena *a, struct str s, struct str secret)
{
	if (secret.len < 6)
		return s;
	for (;;) {
		size_t at = str_find(s, secret);
		if (at == SIZE_MAX)
			return s;
		s = arena_printf(
		    a, "%.*s[redacted]%.*s", (int)at, s.ptr, STR_FMT(str_from(s, at + secret.len)));
	}
}

/* 1 to 6 digits of seconds; nothing else is passed on. */
static struct str
check_retry_after(struct arena *a, struct str s)
{
	uint64_t v;
	s = str_trim(s);
	return s.len >= 1 && s.len <= 6 && str_u64(s, &v) ? arena_str(a, s) : STR("");
}

void
failure_from_status(struct arena *a, int status, struct str body, struct str retry_after,
    struct str secret, struct failure *ret)
{
	size_t i = 0;
	while (status < table[i].from || status > table[i].to)
		i++;
	*ret = (struct failure){
	    .status = table[i].status,
	    .upstream_status = status,
	    .message = str_c(table[i].text),
	    .retry_after = check_retry_after(a, retry_after),
	};
	if (!table[i].show_message)
		return;
	struct str said = find_message(a, body);
	if (said.len > 0 && utf8_valid(said))
		ret->message =
		    arena_str(a, utf8_cut(blank_out(a, said, secret), MESSAGE_MAX_BYTES));
}

void
failure_from_err(struct arena *a, const struct err *err, struct failure *ret)
{
	(void)a;
	bool timeout = err->code == ERR_TIMEOUT;
	*ret = (struct failure){
	    .status = timeout ? 504 : 502,
	    .message = timeout ? STR("the provider timed out")
			       : STR("the provider could not be reached or broke off"),
	};
}
