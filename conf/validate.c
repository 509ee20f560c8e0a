#include "conf/validate.h"

#include <sys/socket.h>

#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/digest.h"
#include "base/utf8.h"

static const struct {
	const char *name;
	enum snap_executor value;
} EXECUTORS[] = {
    {"auto", EXECUTOR_AUTO}, {"otari", EXECUTOR_OTARI}, {"provider", EXECUTOR_PROVIDER}};

bool
validate_executor(struct str s, enum snap_executor *ret)
{
	s = str_trim(s);
	for (size_t i = 0; i < ARRAY_LEN(EXECUTORS); i++) {
		if (!str_eq_nocase(s, str_c(EXECUTORS[i].name)))
			continue;
		*ret = EXECUTORS[i].value;
		return true;
	}
	return false;
}

const char *
executor_name(enum snap_executor e)
{
	for (size_t i = 0; i < ARRAY_LEN(EXECUTORS); i++)
		if (EXECUTORS[i].value == e)
			return EXECUTORS[i].name;
	return NULL;
}

enum err_code
validate_hint(struct str s, struct str *ret, struct err *reterr)
{
	size_t chars = 0;
	if (!utf8_valid(s))
		return err_set(reterr, ERR_INPUT, "must be UTF-8");
	for (size_t i = 0; i < s.len; i++)
		chars += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
	if (chars > POLICY_HINT_CHARS)
		return err_set(
		    reterr, ERR_INPUT, "must be at most %u characters", POLICY_HINT_CHARS);
	*ret = str_trim(s).len > 0 ? s : STR_NULL;
	return ERR_OK;
}

enum err_code
validate_range(int64_t v, int64_t min, int64_t max, struct err *reterr)
{
	if (v < min || v > max)
		return err_set(
		    reterr, ERR_INPUT, "must be from %lld to %lld", (long long)min, (long long)max);
	return ERR_OK;
}

static const struct {
	const char *name;
	uint32_t bit;
} TOOLS[] = {{"code_execution", POLICY_TOOL_PYTHON}, {"bash_code_execution", POLICY_TOOL_BASH},
    {"text_editor_code_execution", POLICY_TOOL_EDITOR}};

enum err_code
validate_tool(struct str name, uint32_t *ret_bit, struct err *reterr)
{
	for (size_t i = 0; i < ARRAY_LEN(TOOLS); i++) {
		if (!str_eq(name, str_c(TOOLS[i].name)))
			continue;
		*ret_bit = TOOLS[i].bit;
		return ERR_OK;
	}
	return err_set(reterr, ERR_INPUT,
	    "must be code_execution, bash_code_execution or text_editor_code_execution");
}

const char *
tool_name(uint32_t bit)
{
	for (size_t i = 0; i < ARRAY_LEN(TOOLS); i++)
		if (TOOLS[i].bit == bit)
			return TOOLS[i].name;
	return NULL;
}

static bool
is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* strchr would take a NUL for a member of every set. */
static bool
is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* No C0 or DEL; bytes over 127 are judged by utf8_valid. */
static bool
has_control(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F)
			return true;
	return false;
}

enum err_code
validate_provider_name(struct str s, struct err *reterr)
{
	if (s.len == 0 || s.len > 64)
		return err_set(reterr, ERR_INPUT, "must have 1 to 64 characters");
	for (size_t i = 0; i < s.len; i++)
		if (!is_alnum(s.ptr[i]) && !is_one_of(s.ptr[i], "-_."))
			return err_set(
			    reterr, ERR_INPUT, "must be made of letters, digits, '-', '_' and '.'");
	return ERR_OK;
}

enum err_code
validate_selector(struct str s, struct str *ret_provider, struct str *ret_model, struct err *reterr)
{
	size_t colon = str_chr(s, ':');
	if (s.len > 512 || has_control(s) || !utf8_valid(s))
		return err_set(reterr, ERR_INPUT, "must be at most 512 bytes of printable text");
	if (colon == SIZE_MAX || colon == 0 || colon + 1 == s.len)
		return err_set(reterr, ERR_INPUT, "must be provider:model");
	*ret_provider = str_sub(s, 0, colon);
	*ret_model = str_from(s, colon + 1);
	return ERR_OK;
}

enum err_code
validate_name(struct str s, size_t max, struct err *reterr)
{
	if (s.len == 0 || s.len > max || has_control(s) || !utf8_valid(s) ||
	    str_trim(s).len != s.len)
		return err_set(reterr, ERR_INPUT,
		    "must be 1 to %zu bytes of printable text without space around it", max);
	return ERR_OK;
}

static bool
is_lower_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool
validate_uuid(struct str s)
{
	if (s.len != 36)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? s.ptr[i] != '-' : !is_lower_hex(s.ptr[i]))
			return false;
	}
	return true;
}

bool
validate_sha256_hex(struct str s)
{
	if (s.len != SHA256_HEX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!is_lower_hex(s.ptr[i]))
			return false;
	return true;
}

enum err_code
validate_http_url(struct str s, struct str *ret, struct err *reterr)
{
	size_t scheme = str_starts_nocase(s, STR("https://"))  ? 8
			: str_starts_nocase(s, STR("http://")) ? 7
							       : 0;
	if (scheme == 0)
		return err_set(reterr, ERR_INPUT, "must start with http:// or https://");
	if (s.len > 2048)
		return err_set(reterr, ERR_INPUT, "must be at most 2048 bytes");
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || is_one_of(s.ptr[i], "\"<>\\^`{|}"))
			return err_set(reterr, ERR_INPUT, "holds a character that no URL may hold");
	struct str host = str_from(s, scheme);
	host = str_sub(host, 0, str_chr(host, '/'));
	if (host.len == 0 || host.ptr[0] == ':')
		return err_set(reterr, ERR_INPUT, "names no host");
	if (str_chr(host, '@') != SIZE_MAX)
		return err_set(reterr, ERR_INPUT, "must not hold a user name or password");
	if (str_chr(s, '?') != SIZE_MAX || str_chr(s, '#') != SIZE_MAX)
		return err_set(reterr, ERR_INPUT, "must not hold a query or fragment");
	while (s.len > scheme + host.len && s.ptr[s.len - 1] == '/')
		s.len--;
	*ret = s;
	return ERR_OK;
}

enum err_code
validate_host(struct str s, char *ret_host, struct err *reterr)
{
	unsigned char address[sizeof(struct in6_addr)];
	char text[VALIDATE_HOST_SIZE] = "";
	if (str_eq_nocase(s, STR("localhost")))
		s = STR("127.0.0.1");
	if (s.len > 2 && s.ptr[0] == '[' && s.ptr[s.len - 1] == ']')
		s = str_sub(s, 1, s.len - 2);
	if (!str_copy(text, sizeof(text), s) ||
	    (inet_pton(AF_INET, text, address) != 1 && inet_pton(AF_INET6, text, address) != 1))
		return err_set(reterr, ERR_INPUT, "must be a numeric address, such as 127.0.0.1");
	memcpy(ret_host, text, sizeof(text));
	return ERR_OK;
}

enum err_code
validate_host_port(struct str s, char *ret_host, uint16_t *ret_port, struct err *reterr)
{
	size_t colon = str_rchr(s, ':');
	uint64_t port;
	if (colon == SIZE_MAX || !str_u64(str_from(s, colon + 1), &port) || port > 65535)
		return err_set(reterr, ERR_INPUT, "must be address:port, such as 127.0.0.1:8001");
	struct str host = str_sub(s, 0, colon);
	if (str_chr(host, ':') != SIZE_MAX && host.ptr[0] != '[')
		return err_set(reterr, ERR_INPUT, "an IPv6 address needs brackets: [::1]:8001");
	enum err_code rc = validate_host(host, ret_host, reterr);
	if (rc == ERR_OK)
		*ret_port = (uint16_t)port;
	return rc;
}

/* Ours to set: what frames the message, the connection, or names another host. */
static const char *const OWN_HEADERS[] = {"host", "content-length", "transfer-encoding",
    "connection", "content-type", "keep-alive", "te", "trailer", "upgrade", "expect",
    "accept-encoding", NULL};

enum err_code
validate_header(struct str name, struct str value, struct err *reterr)
{
	if (name.len == 0 || name.len > 128)
		return err_set(reterr, ERR_INPUT, "a header's name has 1 to 128 characters");
	for (size_t i = 0; i < name.len; i++)
		if (!is_alnum(name.ptr[i]) && !is_one_of(name.ptr[i], "!#$%&'*+-.^_`|~"))
			return err_set(
			    reterr, ERR_INPUT, "holds a character that no header name may hold");
	for (size_t i = 0; OWN_HEADERS[i] != NULL; i++)
		if (str_eq_nocase(name, str_c(OWN_HEADERS[i])))
			return err_set(reterr, ERR_INPUT, "is set by Otari itself");
	if (value.len > 8192 || has_control(value) || str_trim(value).len != value.len)
		return err_set(reterr, ERR_INPUT,
		    "a header's value is at most 8192 bytes without control characters or space "
		    "around it");
	return ERR_OK;
}

/* --- times ----------------------------------------------------------------------------------- */

static bool
digits(struct str *s, size_t n, int *ret)
{
	int v = 0;
	if (s->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s->ptr[i] < '0' || s->ptr[i] > '9')
			return false;
		v = v * 10 + (s->ptr[i] - '0');
	}
	*s = str_from(*s, n);
	*ret = v;
	return true;
}

static bool
eat(struct str *s, const char *any)
{
	if (s->len == 0 || !is_one_of(s->ptr[0], any))
		return false;
	*s = str_from(*s, 1);
	return true;
}

/* "", "Z" or +hh:mm → seconds east of UTC. */
static bool
zone(struct str s, int *ret_s)
{
	int hours, minutes;
	*ret_s = 0;
	if (s.len == 0 || str_eq_nocase(s, STR("z")))
		return true;
	int sign = s.ptr[0] == '-' ? -1 : 1;
	if (!eat(&s, "+-") || !digits(&s, 2, &hours))
		return false;
	(void)eat(&s, ":");
	if (!digits(&s, 2, &minutes) || s.len > 0 || hours > 23 || minutes > 59)
		return false;
	*ret_s = sign * (hours * 3600 + minutes * 60);
	return true;
}

static bool
clock_part(struct str *s, struct tm *t)
{
	if (!digits(s, 2, &t->tm_hour) || !eat(s, ":") || !digits(s, 2, &t->tm_min))
		return false;
	if (eat(s, ":") && !digits(s, 2, &t->tm_sec))
		return false;
	if (eat(s, ".")) {
		int digit;
		while (digits(s, 1, &digit))
			;
	}
	return t->tm_hour <= 23 && t->tm_min <= 59 && t->tm_sec <= 60;
}

enum err_code
validate_time(struct str s, int64_t *ret_s, struct err *reterr)
{
	struct tm t = {0};
	int year, month, day, east = 0;
	bool ok = digits(&s, 4, &year) && eat(&s, "-") && digits(&s, 2, &month) && eat(&s, "-") &&
		  digits(&s, 2, &day) && month >= 1 && month <= 12 && day >= 1 && day <= 31;
	if (ok && s.len > 0)
		ok = eat(&s, "Tt ") && clock_part(&s, &t) && zone(s, &east);
	if (!ok)
		return err_set(reterr, ERR_INPUT, "must be a time such as 2026-11-30T10:00:00Z");
	t.tm_year = year - 1900;
	t.tm_mon = month - 1;
	t.tm_mday = day;
	int64_t at = (int64_t)timegm(&t) - east;
	/* timegm turns 31 February into March. */
	if (t.tm_mday != day)
		return err_set(reterr, ERR_INPUT, "there is no such day");
	*ret_s = at;
	return ERR_OK;
}
