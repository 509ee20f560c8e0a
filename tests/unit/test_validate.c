/* Rules for single values that otari.conf and the API share. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "conf/validate.h"

TestSuite(validate, .timeout = 10);

Test(validate, executor)
{
	static const struct {
		const char *text;
		int value; /* -1: no value */
	} rows[] = {
	    {"auto", EXECUTOR_AUTO},
	    {"otari", EXECUTOR_OTARI},
	    {"provider", EXECUTOR_PROVIDER},
	    {" Otari\t", EXECUTOR_OTARI},
	    {"PROVIDER", EXECUTOR_PROVIDER},
	    {"", -1},
	    {" ", -1},
	    {"none", -1},
	    {"otari,auto", -1},
	    {"ot ari", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum snap_executor e = EXECUTOR_UNSET;
		cr_assert_eq(validate_executor(str_c(rows[i].text), &e), rows[i].value >= 0, "'%s'",
		    rows[i].text);
		cr_assert(rows[i].value < 0 || (int)e == rows[i].value, "'%s'", rows[i].text);
	}
	cr_assert_str_eq(executor_name(EXECUTOR_OTARI), "otari");
	cr_assert_null(executor_name(EXECUTOR_UNSET));
}

Test(validate, hint_counts_characters_and_blanks_are_none)
{
	struct buf b = BUF_INIT(65536);
	struct str out = STR("x");
	for (unsigned i = 0; i < POLICY_HINT_CHARS; i++)
		buf_add(&b, STR("\xC3\xA9"));
	cr_assert_eq(validate_hint(buf_str(&b), &out, NULL), ERR_OK);
	cr_assert_eq(out.len, 2 * POLICY_HINT_CHARS);
	buf_addc(&b, 'x');
	cr_assert_eq(validate_hint(buf_str(&b), &out, NULL), ERR_INPUT);
	cr_assert_eq(validate_hint(STR("\xFF"), &out, NULL), ERR_INPUT);
	cr_assert_eq(validate_hint(STR(" \n"), &out, NULL), ERR_OK);
	cr_assert_null(out.ptr);
	buf_done(&b);
}

Test(validate, tools)
{
	uint32_t bit;
	cr_assert_eq(validate_tool(STR("code_execution"), &bit, NULL), ERR_OK);
	cr_assert_eq(bit, POLICY_TOOL_PYTHON);
	cr_assert_eq(validate_tool(STR("text_editor_code_execution"), &bit, NULL), ERR_OK);
	cr_assert_eq(bit, POLICY_TOOL_EDITOR);
	cr_assert_eq(validate_tool(STR("Code_execution"), &bit, NULL), ERR_INPUT);
	cr_assert_str_eq(tool_name(POLICY_TOOL_BASH), "bash_code_execution");
	cr_assert_null(tool_name(3));
}

Test(validate, names_and_selectors)
{
	static const struct {
		struct str text;
		bool provider, selector, name;
	} rows[] = {
	    {STR_INIT("openai"), true, false, true},
	    {STR_INIT("my-1_x.y"), true, false, true},
	    {STR_INIT("a:b"), false, true, true},
	    {STR_INIT("a:b:c/d"), false, true, true},
	    {STR_INIT(":b"), false, false, true},
	    {STR_INIT("a:"), false, false, true},
	    {STR_INIT(""), false, false, false},
	    {STR_INIT(" a"), false, false, false},
	    {STR_INIT("a\nb"), false, false, false},
	    {STR_INIT("a\0b"), false, false, false},
	    {STR_INIT("a:b\x7f"), false, false, false},
	    {STR_INIT("\xff:b"), false, false, false},
	    {STR_INIT("\xC3\xA9"), false, false, true},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str p, m;
		cr_assert_eq(validate_provider_name(rows[i].text, NULL) == ERR_OK, rows[i].provider,
		    "provider, row %zu", i);
		cr_assert_eq(validate_selector(rows[i].text, &p, &m, NULL) == ERR_OK,
		    rows[i].selector, "selector, row %zu", i);
		cr_assert_eq(validate_name(rows[i].text, 16, NULL) == ERR_OK, rows[i].name,
		    "name, row %zu", i);
	}
	struct str p, m;
	cr_assert_eq(validate_selector(STR("a:b:c"), &p, &m, NULL), ERR_OK);
	cr_assert(str_eq(p, STR("a")) && str_eq(m, STR("b:c")));
	cr_assert_eq(validate_name(STR("0123456789abcdefg"), 16, NULL), ERR_INPUT);
}

Test(validate, urls)
{
	static const struct {
		const char *text, *out; /* NULL: refused */
	} rows[] = {
	    {"http://h", "http://h"},
	    {"https://h:1/v1/", "https://h:1/v1"},
	    {"https://h//", "https://h"},
	    {"HTTPS://h/", "HTTPS://h"},
	    {"http://[::1]:8/x", "http://[::1]:8/x"},
	    {"ftp://h", NULL},
	    {"h", NULL},
	    {"http://", NULL},
	    {"http:///x", NULL},
	    {"http://:80", NULL},
	    {"http://u:p@h/", NULL},
	    {"http://h/?q", NULL},
	    {"http://h/#f", NULL},
	    {"http://h/a b", NULL},
	    {"http://h/\xC3\xA9", NULL},
	    {"http://h/\"", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str out = STR_NULL;
		bool ok = validate_http_url(str_c(rows[i].text), &out, NULL) == ERR_OK;
		cr_assert_eq(ok, rows[i].out != NULL, "%s", rows[i].text);
		cr_assert(
		    !ok || str_eq(out, str_c(rows[i].out)), "%s: %.*s", rows[i].text, STR_FMT(out));
	}
}

Test(validate, listen_addresses)
{
	static const struct {
		const char *text, *host; /* NULL: refused */
		unsigned port;
	} rows[] = {
	    {"127.0.0.1:80", "127.0.0.1", 80},
	    {"localhost:0", "127.0.0.1", 0},
	    {"[::1]:65535", "::1", 65535},
	    {"::1:80", NULL, 0},
	    {"127.0.0.1", NULL, 0},
	    {"127.0.0.1:", NULL, 0},
	    {"127.0.0.1:65536", NULL, 0},
	    {"127.0.0.1:-1", NULL, 0},
	    {"example.com:80", NULL, 0},
	    {":80", NULL, 0},
	    {"[]:80", NULL, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char host[VALIDATE_HOST_SIZE];
		uint16_t port;
		bool ok = validate_host_port(str_c(rows[i].text), host, &port, NULL) == ERR_OK;
		cr_assert_eq(ok, rows[i].host != NULL, "%s", rows[i].text);
		if (ok)
			cr_assert(strcmp(host, rows[i].host) == 0 && port == rows[i].port, "%s",
			    rows[i].text);
	}
}

Test(validate, headers)
{
	static const struct {
		struct str name, value;
		bool ok;
	} rows[] = {
	    {STR_INIT("x-team"), STR_INIT("a b"), true},
	    {STR_INIT("Authorization"), STR_INIT("Bearer x"), true},
	    {STR_INIT("x"), STR_INIT(""), true},
	    {STR_INIT(""), STR_INIT("a"), false},
	    {STR_INIT("x y"), STR_INIT("a"), false},
	    {STR_INIT("x:"), STR_INIT("a"), false},
	    {STR_INIT("x\0y"), STR_INIT("a"), false},
	    {STR_INIT("x"), STR_INIT("a\r\nb: c"), false},
	    {STR_INIT("x"), STR_INIT("a\0b"), false},
	    {STR_INIT("x"), STR_INIT(" a"), false},
	    {STR_INIT("Content-Length"), STR_INIT("5"), false},
	    {STR_INIT("host"), STR_INIT("h"), false},
	    {STR_INIT("TRANSFER-ENCODING"), STR_INIT("chunked"), false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(validate_header(rows[i].name, rows[i].value, NULL) == ERR_OK,
		    rows[i].ok, "row %zu", i);
}

Test(validate, times)
{
	static const struct {
		const char *text;
		int64_t at; /* -1: refused */
	} rows[] = {
	    {"1970-01-02", 86400},
	    {"2026-11-30T10:00:00Z", 1796032800},
	    {"2026-11-30t10:00z", 1796032800},
	    {"2026-11-30 10:00:00.123", 1796032800},
	    {"2026-11-30T12:00:00+02:00", 1796032800},
	    {"2026-11-30T05:30:00-0430", 1796032800},
	    {"2026-02-31", -1},
	    {"2026-13-01", -1},
	    {"2026-11-30T25:00:00Z", -1},
	    {"2026-11-30T10:00:00X", -1},
	    {"2026-11-30T10", -1},
	    {"30.11.2026", -1},
	    {"", -1},
	    {"1796032800", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t at = -1;
		bool ok = validate_time(str_c(rows[i].text), &at, NULL) == ERR_OK;
		cr_assert_eq(ok, rows[i].at >= 0, "%s", rows[i].text);
		cr_assert_eq(at, rows[i].at, "%s: %lld", rows[i].text, (long long)at);
	}
}

Test(validate, ids)
{
	cr_assert(validate_uuid(STR("00000000-0000-4000-8000-00000000000a")));
	cr_assert_not(validate_uuid(STR("00000000-0000-4000-8000-00000000000A")));
	cr_assert_not(validate_uuid(STR("00000000000040008000000000000000a---")));
	cr_assert_not(validate_uuid(STR("00000000-0000-4000-8000-00000000000")));
	cr_assert_not(validate_sha256_hex(STR("abc")));
	cr_assert(validate_sha256_hex(
	    STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")));
	cr_assert_eq(validate_range(5, 1, 5, NULL), ERR_OK);
	cr_assert_eq(validate_range(6, 1, 5, NULL), ERR_INPUT);
}
