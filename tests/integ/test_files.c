/* The file routes of the real daemon: paging, downloads, whose they are. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"

TestSuite(files, .timeout = 180);

#define VERSION "anthropic-version: 2023-06-01"

static const char *const anthropic_headers[] = {VERSION, NULL};
static const struct ask_opts anthropic = {.headers = anthropic_headers};

struct file_id {
	char text[64];
};

static struct file_id
upload(struct server *s, const char *name, const char *mime, struct str bytes)
{
	struct file_id id;
	struct reply r;
	server_upload(s, "/v1/files", name, mime, bytes, NULL, NULL, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(id.text, sizeof(id.text), str_c(at(root, "id"))));
	cr_assert(strncmp(id.text, "file-", 5) == 0 && strlen(id.text) == 37, "%s", id.text);
	json_decref(root);
	reply_done(&r);
	return id;
}

static json_t *
get_json(struct server *s, const char *path, const struct ask_opts *o, long status)
{
	struct reply r;
	server_ask(s, "GET", path, STR_NULL, o, &r);
	cr_assert_eq(r.status, status, "%s: %ld %s", path, r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

static void
expect_status(struct server *s, const char *path, const struct ask_opts *o, long status)
{
	json_decref(get_json(s, path, o, status));
}

/* --- paging ------------------------------------------------------------------------------ */

/* Follows `next` ("after", "after_id" or "page") to the end and compares the ids. */
static void
expect_walk(struct server *s, const char *query, const char *next, const struct ask_opts *o,
    const struct file_id *want, size_t n)
{
	char path[512];
	size_t seen = 0;
	(void)snprintf(path, sizeof(path), "/v1/files?%s", query);
	for (int pages = 0; path[0] != '\0'; pages++) {
		cr_assert(pages < 20, "%s: it never ends", query);
		json_t *root = get_json(s, path, o, 200), *item;
		size_t i;
		json_array_foreach(json_object_get(root, "data"), i, item) {
			cr_assert(seen < n, "%s: too many", query);
			cr_assert_str_eq(
			    at(item, "id"), want[seen].text, "%s: item %zu", query, seen);
			seen++;
		}
		bool by_page = strcmp(next, "page") == 0;
		const char *cursor = at(root, by_page ? "next_page" : "last_id");
		bool more = json_is_true(json_object_get(root, "has_more"));
		if (by_page)
			cr_assert(more == (cursor[0] != '\0'));
		path[0] = '\0';
		if (more)
			(void)snprintf(
			    path, sizeof(path), "/v1/files?%s&%s=%s", query, next, cursor);
		json_decref(root);
	}
	cr_assert_eq(seen, n, "%s: %zu of %zu", query, seen, n);
}

Test(files, every_generation_of_paging_reaches_every_file)
{
	struct server *s = server_start(NULL);
	struct file_id newest_first[5], oldest_first[5];
	char path[512];
	struct reply r;
	for (size_t i = 0; i < 5; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "f%zu.txt", i);
		oldest_first[i] = upload(s, name, "text/plain", STR("x"));
		pause_short(); /* the order within a millisecond is that of the ids */
		newest_first[4 - i] = oldest_first[i];
	}
	expect_walk(s, "limit=2", "after", NULL, newest_first, 5);
	expect_walk(s, "limit=2&order=asc", "after", NULL, oldest_first, 5);
	expect_walk(s, "limit=2", "after_id", &anthropic, newest_first, 5);
	expect_walk(s, "limit=2", "page", &anthropic, newest_first, 5);
	expect_walk(s, "limit=5", "page", &anthropic, newest_first, 5);
	expect_walk(s, "purpose=user_data&limit=4", "after", NULL, newest_first, 5);
	expect_walk(s, "purpose=other", "after", NULL, NULL, 0);
	(void)snprintf(path, sizeof(path), "ids[]=%s&ids[]=nothing&ids[]=%s", oldest_first[1].text,
	    newest_first[0].text);
	struct file_id two[] = {newest_first[0], oldest_first[1]};
	expect_walk(s, path, "page", &anthropic, two, 2);

	(void)snprintf(path, sizeof(path), "/v1/files?limit=2&before_id=%s", newest_first[3].text);
	json_t *root = get_json(s, path, &anthropic, 200);
	cr_expect_str_eq(at(root, "first_id"), newest_first[1].text);
	cr_expect_str_eq(at(root, "last_id"), newest_first[2].text);
	cr_expect(json_is_true(json_object_get(root, "has_more")));
	json_decref(root);

	/* a cursor that was deleted meanwhile still marks its place */
	(void)snprintf(path, sizeof(path), "/v1/files/%s", newest_first[1].text);
	server_ask(s, "DELETE", path, STR_NULL, &anthropic, &r);
	cr_expect_eq(r.status, 200);
	reply_done(&r);
	(void)snprintf(path, sizeof(path), "/v1/files?after=%s", newest_first[1].text);
	root = get_json(s, path, NULL, 200);
	cr_expect_str_eq(at(root, "first_id"), newest_first[2].text);
	json_decref(root);

	expect_status(s, "/v1/files?after=file-nobodys", NULL, 404);
	expect_status(s, "/v1/files?page=page_nonsense", &anthropic, 400);
	expect_status(s, "/v1/files?page=nonsense", &anthropic, 400);
	expect_status(s, "/v1/files?ids[]=a&limit=2", &anthropic, 400);
	expect_status(s, "/v1/files?limit=0", NULL, 422);
	expect_status(s, "/v1/files?order=up", NULL, 422);
	server_stop(&s);
}

/* --- downloads --------------------------------------------------------------------------- */

static void
fill(char *p, size_t n)
{
	uint32_t x = 12345;
	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (char)(x >> 24);
	}
}

static char bytes_1m[1000003];

static void
expect_range(struct server *s, const char *path, const char *header, long status, size_t first,
    size_t length)
{
	const char *const headers[] = {header, NULL};
	const struct ask_opts o = {.headers = headers};
	struct reply r;
	server_ask(s, "GET", path, STR_NULL, &o, &r);
	cr_expect_eq(r.status, status, "%s: %ld", header, r.status);
	if (status < 300)
		cr_expect(str_eq(buf_str(&r.body), str_n(bytes_1m + first, length)),
		    "%s: %zu bytes", header, r.body.len);
	reply_done(&r);
}

Test(files, downloads_are_exact_and_can_be_resumed)
{
	struct server *s = server_start(NULL);
	char path[128], line[160];
	struct reply r;
	fill(bytes_1m, sizeof(bytes_1m));
	struct file_id id = upload(
	    s, "caf\xC3\xA9 \"1\".bin", "application/x-thing", str_n(bytes_1m, sizeof(bytes_1m)));
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", id.text);

	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(str_eq(buf_str(&r.body), str_n(bytes_1m, sizeof(bytes_1m))));
	cr_expect(str_eq(reply_header(&r, "content-length"), STR("1000003")));
	cr_expect(str_eq(reply_header(&r, "content-type"), STR("application/x-thing")));
	struct str name = reply_header(&r, "content-disposition");
	cr_expect(str_starts(name, STR("attachment; filename=\"")) &&
		      str_find(name, STR("filename*=UTF-8''caf%C3%A9%20%221%22.bin")) != SIZE_MAX,
	    "%.*s", STR_FMT(name));
	struct str etag = reply_header(&r, "etag");
	cr_expect(etag.len > 2 && etag.ptr[0] == '"');
	(void)snprintf(line, sizeof(line), "If-None-Match: %.*s", STR_FMT(etag));
	reply_done(&r);
	expect_range(s, path, line, 304, 0, 0);

	static const char *const ranged[] = {"Range: bytes=0-1", NULL};
	server_ask(s, "HEAD", path, STR_NULL, &(struct ask_opts){.headers = ranged}, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(str_eq(reply_header(&r, "content-length"), STR("1000003")));
	cr_expect_eq(r.body.len, 0);
	reply_done(&r);

	expect_range(s, path, "Range: bytes=0-0", 206, 0, 1);
	expect_range(s, path, "Range: bytes=999990-", 206, 999990, 13);
	expect_range(s, path, "Range: bytes=-3", 206, 1000000, 3);
	expect_range(s, path, "Range: bytes=131071-393216", 206, 131071, 262146);
	expect_range(s, path, "Range: bytes=1000003-", 416, 0, 0);
	expect_range(s, path, "Range: bytes=0-1,3-4", 200, 0, sizeof(bytes_1m));
	expect_range(s, path, "Range: lines=0-1", 200, 0, sizeof(bytes_1m));
	server_stop(&s);
}

#define PART(head, body) "--x\r\nContent-Disposition: form-data; " head "\r\n\r\n" body "\r\n"
#define FILE_PART(body)  PART("name=\"file\"; filename=\"a.csv\"", body)
#define FORM_END         "--x--\r\n"

/* --- whose ------------------------------------------------------------------------------- */

Test(files, the_master_key_says_whose_files_it_means)
{
	struct server *s = server_start(NULL);
	const struct ask_opts master = {.key = s->master_key};
	struct ask_opts typed = {.key = s->master_key, .type = "multipart/form-data; boundary=x"};
	char path[160];
	struct reply r;
	expect_status(s, "/v1/files", &master, 400);
	expect_status(s, "/v1/files?user=default&workspace_id=nonsense", &master, 422);
	struct file_id id = upload(s, "a.txt", "text/plain", STR("mine"));
	(void)snprintf(path, sizeof(path), "/v1/files/%s", id.text);
	expect_status(s, path, &master, 400);
	(void)snprintf(path, sizeof(path), "/v1/files/%s?user=default", id.text);
	expect_status(s, path, &master, 200);
	(void)snprintf(path, sizeof(path), "/v1/files/%s?user=other", id.text);
	expect_status(s, path, &master, 404);
	json_t *root =
	    get_json(s, "/v1/files?user=default&workspace_id=00000000-0000-4000-8000-0000000000ff",
		&master, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 0);
	json_decref(root);

	server_ask(s, "POST", "/v1/files", STR(FILE_PART("x") FORM_END), &typed, &r);
	cr_expect_eq(r.status, 400, "%ld", r.status);
	reply_done(&r);
	server_ask(s, "POST", "/v1/files",
	    STR(FILE_PART("x") PART("name=\"user\"", "bob") FORM_END), &typed, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	root = get_json(s, "/v1/files?user=bob", &master, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 1);
	json_decref(root);
	/* For an ordinary key the name of another user changes nothing. */
	root = get_json(s, "/v1/files?user=bob", NULL, 200);
	cr_expect_str_eq(at(root, "first_id"), id.text);
	json_decref(root);
	server_stop(&s);
}

/* --- damage ------------------------------------------------------------------------------ */

Test(files, a_blob_that_is_gone_is_an_error_and_not_an_empty_file)
{
	struct server *s = server_start(NULL);
	char path[128], sql[160];
	struct reply r;
	server_expect(s, "the blob of a live file is missing");
	struct file_id id = upload(s, "a.txt", "text/plain", STR("mine"));
	(void)snprintf(sql, sizeof(sql),
	    "UPDATE files SET storage_ref = 'zz/nothing' WHERE id = '%s'", id.text);
	(void)server_sql(s, sql);
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", id.text);
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect_eq(r.status, 500, "%ld", r.status);
	cr_expect(strstr(r.body.ptr, "blob") == NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}
