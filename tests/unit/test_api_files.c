/* Objects of both Files APIs, and what an upload says about itself. */
#include <criterion/criterion.h>

#include "base/arena.h"
#include "worker/api/files.h"
#include "worker/api/upload_form.h"

TestSuite(api_files, .timeout = 10);

static const struct store_file sample = {
    .id = STR_INIT("file-1"),
    .filename = STR_INIT("a \"b\"\n\xC3\xA9.csv"),
    .mime_type = STR_INIT("text/csv"),
    .purpose = STR_INIT("user_data"),
    .bytes = 84213,
    .created_at_ms = 1796032800123,
};

static void
assert_json(struct buf *b, const char *want)
{
	cr_assert_str_eq(b->ptr, want);
	buf_clear(b);
}

Test(api_files, objects_have_the_shape_of_their_vendor)
{
	struct buf b = BUF_INIT(65536);
	struct jw w;
	struct store_file f = sample;
	jw_init(&w, &b);
	files_write(&w, WIRE_CHAT, &f);
	assert_json(&b, "{\"id\":\"file-1\",\"object\":\"file\",\"bytes\":84213,"
			"\"created_at\":1796032800,\"expires_at\":null,"
			"\"filename\":\"a \\\"b\\\"\\n\xC3\xA9.csv\",\"purpose\":\"user_data\","
			"\"status\":\"processed\"}");
	f.expires_at_ms = 1796036400999;
	jw_init(&w, &b);
	files_write(&w, WIRE_MESSAGES, &f);
	assert_json(&b, "{\"id\":\"file-1\",\"type\":\"file\","
			"\"filename\":\"a \\\"b\\\"\\n\xC3\xA9.csv\",\"mime_type\":\"text/csv\","
			"\"size_bytes\":84213,\"created_at\":\"2026-11-30T10:00:00Z\","
			"\"downloadable\":true,\"expires_at\":\"2026-11-30T11:00:00Z\"}");
	jw_init(&w, &b);
	files_write_deleted(&w, WIRE_CHAT, STR("file-1"));
	assert_json(&b, "{\"id\":\"file-1\",\"object\":\"file\",\"deleted\":true}");
	jw_init(&w, &b);
	files_write_deleted(&w, WIRE_MESSAGES, STR("file-1"));
	assert_json(&b, "{\"id\":\"file-1\",\"type\":\"file_deleted\"}");
	buf_done(&b);
}

Test(api_files, pages_have_the_shape_of_their_vendor)
{
	struct buf b = BUF_INIT(65536);
	struct jw w;
	struct files_page p = {NULL, 0, false, STR_NULL};
	jw_init(&w, &b);
	files_write_page(&w, WIRE_CHAT, &p);
	assert_json(&b, "{\"object\":\"list\",\"data\":[],\"has_more\":false,\"first_id\":null,"
			"\"last_id\":null}");
	jw_init(&w, &b);
	files_write_page(&w, WIRE_MESSAGES, &p);
	assert_json(&b, "{\"data\":[],\"has_more\":false,\"first_id\":null,\"last_id\":null,"
			"\"next_page\":null}");
	p = (struct files_page){&sample, 1, true, STR("page_x")};
	jw_init(&w, &b);
	files_write_page(&w, WIRE_MESSAGES, &p);
	cr_assert(str_ends(buf_str(&b), STR("\"has_more\":true,\"first_id\":\"file-1\","
					    "\"last_id\":\"file-1\",\"next_page\":\"page_x\"}")));
	buf_done(&b);
}

Test(api_files, names_are_reduced_to_their_last_part)
{
	static const struct {
		struct str in;
		const char *out; /* NULL: refused */
	} rows[] = {
	    {STR_INIT("report.csv"), "report.csv"},
	    {STR_INIT("Simple \xE2\x80\x93 G\xC3\xA9n\xC3\xA9rer.js"),
		"Simple \xE2\x80\x93 G\xC3\xA9n\xC3\xA9rer.js"},
	    {STR_INIT("../../etc/passwd"), "passwd"},
	    {STR_INIT("/etc/x"), "x"},
	    {STR_INIT("C:\\dir\\x.txt"), "x.txt"},
	    {STR_INIT("\\\\host\\share\\y"), "y"},
	    {STR_INIT("report\\"), "report\\"},
	    {STR_INIT("a\"b"), "a\"b"},
	    {STR_INIT(".."), ""},
	    {STR_INIT("."), ""},
	    {STR_INIT("x/.."), ""},
	    {STR_INIT("dir/"), ""},
	    {STR_INIT(""), ""},
	    {STR_INIT("bad\xFFname"), "bad\xEF\xBF\xBDname"},
	    {STR_INIT("a\r\nX-Evil: 1.txt"), NULL},
	    {STR_INIT("a\0b"), NULL},
	    {STR_INIT("a\x7f"), NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct str got;
		bool ok = files_name_clean(a, rows[i].in, &got);
		cr_assert(ok == (rows[i].out != NULL), "row %zu", i);
		cr_assert(!ok || str_eq(got, str_c(rows[i].out)), "row %zu: %.*s", i, STR_FMT(got));
		arena_free(&a);
	}
	struct arena *a = arena_new(1 << 16);
	char name[600];
	struct str got;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = 'x';
	cr_assert(files_name_clean(a, str_n(name, 512), &got) && got.len == 512);
	cr_assert(!files_name_clean(a, str_n(name, 513), &got));
	arena_free(&a);
}

Test(api_files, types_that_say_nothing_are_guessed_from_the_name)
{
	static const struct {
		const char *declared, *name, *out;
	} rows[] = {
	    {"text/csv", "a.bin", "text/csv"},
	    {"text/plain; charset=utf-8", "a", "text/plain; charset=utf-8"},
	    {"application/octet-stream", "a.csv", "text/csv"},
	    {"APPLICATION/Octet-Stream; x=y", "a.csv", "text/csv"},
	    {"", "a.csv", "text/csv"},
	    {NULL, "a.csv", "text/csv"},
	    {NULL, "a", "application/octet-stream"},
	    {"no-slash", "a.csv", "text/csv"},
	    {"text/x\r\nSet-Cookie: a", "a.csv", "text/csv"},
	    {"/x", "a.csv", "text/csv"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct str got = files_mime(a, str_c(rows[i].declared), str_c(rows[i].name));
		cr_assert(str_eq(got, str_c(rows[i].out)), "row %zu: %.*s", i, STR_FMT(got));
		arena_free(&a);
	}
}

Test(api_files, form_fields_are_checked)
{
	static const struct {
		struct str name, value;
		bool ok;
	} rows[] = {
	    {STR_INIT("purpose"), STR_INIT("vision"), true},
	    {STR_INIT("purpose"), STR_INIT(""), true},
	    {STR_INIT("purpose"), STR_INIT("a\nb"), false},
	    {STR_INIT("purpose"), STR_INIT("\xFF"), false},
	    {STR_INIT("user"), STR_INIT("alice"), true},
	    {STR_INIT("unknown"), STR_INIT("\xFF"), true},
	    {STR_INIT("expires_in_seconds"), STR_INIT("3600"), true},
	    {STR_INIT("expires_in_seconds"), STR_INIT("3599"), false},
	    {STR_INIT("expires_in_seconds"), STR_INIT("7776001"), false},
	    {STR_INIT("expires_in_seconds"), STR_INIT("1h"), false},
	    {STR_INIT("expires_after[seconds]"), STR_INIT("2592001"), false},
	    {STR_INIT("expires_after[anchor]"), STR_INIT("created_at"), true},
	    {STR_INIT("expires_after[anchor]"), STR_INIT("last_used"), false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct upload_form f = {.expires_in_s = 0};
		bool ok = upload_form_field(&f, a, rows[i].name, rows[i].value, NULL) == ERR_OK;
		cr_assert(ok == rows[i].ok, "row %zu", i);
		arena_free(&a);
	}
}

Test(api_files, the_earlier_expiry_wins)
{
	struct upload_form f = {.expires_in_s = 0};
	cr_assert(upload_form_expiry(&f, 1000, 0) == 0);
	cr_assert(upload_form_expiry(&f, 1000, 2) == 1000 + 7200 * 1000);
	f.expires_in_s = 3600;
	cr_assert(upload_form_expiry(&f, 1000, 0) == 1000 + 3600 * 1000);
	cr_assert(upload_form_expiry(&f, 1000, 2) == 1000 + 3600 * 1000);
	f.expires_in_s = 9000;
	cr_assert(upload_form_expiry(&f, 1000, 2) == 1000 + 7200 * 1000);
}

Test(api_files, ids_hold_no_byte_that_could_mean_something_else)
{
	static const struct {
		struct str id;
		bool ok;
	} rows[] = {
	    {STR_INIT("file-0123456789abcdef0123456789abcdef"), true},
	    {STR_INIT("file_011CNha8iCJcU1wXNR6q4V8w"), true},
	    {STR_INIT(""), false},
	    {STR_INIT("a/b"), false},
	    {STR_INIT("a b"), false},
	    {STR_INIT("a\n"), false},
	    {STR_INIT("a\0b"), false},
	    {STR_INIT("\xC3\xA9"), false},
	    {STR_INIT("a'b"), false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert(files_id_ok(rows[i].id) == rows[i].ok, "row %zu", i);
}
