/* Uploads to the real daemon: forms, names, limits, a large file, a client that goes away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <curl/curl.h>

#include "tests/integ/harness.h"

TestSuite(uploads, .timeout = 180);

#define TYPE "multipart/form-data; boundary=x"

static const char *const anthropic_headers[] = {"anthropic-version: 2023-06-01", NULL};
static const struct ask_opts anthropic = {.headers = anthropic_headers};
static char bytes_1m[1000003];

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

/* --- uploads ----------------------------------------------------------------------------- */

#define PART(head, body) "--x\r\nContent-Disposition: form-data; " head "\r\n\r\n" body "\r\n"
#define FILE_PART(body)  PART("name=\"file\"; filename=\"a.csv\"", body)
#define FORM_END         "--x--\r\n"

Test(uploads, forms_are_read_whatever_their_order_and_refused_with_a_reason)
{
	static const struct {
		const char *type, *form;
		long status;
		const char *purpose; /* for 200 */
	} rows[] = {
	    {NULL, PART("name=\"purpose\"", "vision") FILE_PART("a,b") FORM_END, 200, "vision"},
	    {NULL, FILE_PART("a,b") PART("name=\"purpose\"", "vision") FORM_END, 200, "vision"},
	    {NULL, FILE_PART("a,b") PART("name=\"purpose\"", "") FORM_END, 200, "user_data"},
	    {NULL, FILE_PART("a,b") FORM_END, 200, "user_data"},
	    {NULL, FILE_PART("a,b") PART("name=\"unknown\"", "zzz") FORM_END, 200, "user_data"},
	    {NULL, FILE_PART("a\r\n--y\r\n--") FORM_END, 200, "user_data"},
	    {NULL, FILE_PART("") FORM_END, 400, NULL},
	    {NULL, FILE_PART("a,b"), 400, NULL}, /* the last boundary is missing */
	    {NULL, FILE_PART("a") FILE_PART("b") FORM_END, 400, NULL},
	    {NULL, PART("name=\"purpose\"", "vision") FORM_END, 422, NULL},
	    {NULL, FORM_END, 422, NULL},
	    {NULL, FILE_PART("a") PART("name=\"expires_in_seconds\"", "1") FORM_END, 400, NULL},
	    {"application/json", "{}", 415, NULL},
	    {"multipart/form-data", FILE_PART("a") FORM_END, 415, NULL},
	};
	struct server *s = server_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ask_opts o = {
		    .type = rows[i].type ? rows[i].type : "multipart/form-data; boundary=x"};
		struct reply r;
		server_ask(s, "POST", "/v1/files", str_c(rows[i].form), &o, &r);
		cr_expect_eq(r.status, rows[i].status, "row %zu: %ld %s", i, r.status, r.body.ptr);
		json_t *root = reply_json(&r);
		if (r.status == 200)
			cr_expect_str_eq(at(root, "purpose"), rows[i].purpose, "row %zu", i);
		else
			cr_expect(at(root, "error.message")[0] != '\0', "row %zu", i);
		json_decref(root);
		reply_done(&r);
	}
	/* Refused uploads leave no row. */
	json_t *root = get_json(s, "/v1/files", NULL, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 6);
	json_decref(root);
	server_stop(&s);
}

Test(uploads, names_of_strangers_stay_names)
{
	static const struct {
		const char *name, *kept; /* NULL: refused */
	} rows[] = {
	    {"../../etc/passwd", "passwd"},
	    {"\xE8\xB2\xA9\xE5\xA3\xB2_\xE4\xBB\x8A\xE9\x80\xB1.csv",
		"\xE8\xB2\xA9\xE5\xA3\xB2_\xE4\xBB\x8A\xE9\x80\xB1.csv"},
	    {"a;b c'd.csv", "a;b c'd.csv"},
	};
	struct server *s = server_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reply r;
		char path[128];
		server_upload(s, "/v1/files", rows[i].name, NULL, STR("x"), NULL, &anthropic, &r);
		cr_expect_eq(r.status, 200, "row %zu: %ld %s", i, r.status, r.body.ptr);
		json_t *root = reply_json(&r);
		cr_expect_str_eq(at(root, "filename"), rows[i].kept, "row %zu", i);
		(void)snprintf(path, sizeof(path), "/v1/files/%s/content", at(root, "id"));
		json_decref(root);
		reply_done(&r);
		server_ask(s, "GET", path, STR_NULL, NULL, &r);
		cr_expect_eq(r.status, 200);
		cr_expect(reply_header(&r, "x-evil").ptr == NULL);
		reply_done(&r);
	}
	static const char evil[] =
	    "--x\r\nContent-Disposition: form-data; name=\"file\"; "
	    "filename*=UTF-8''a%22%0d%0aX-Evil%3A%201.txt\r\n\r\nx\r\n--x--\r\n";
	const struct ask_opts o = {.type = "multipart/form-data; boundary=x"};
	struct reply r;
	server_ask(s, "POST", "/v1/files", str_c(evil), &o, &r);
	cr_expect(r.status == 400 || r.status == 200, "%ld", r.status);
	if (r.status == 200) {
		json_t *root = reply_json(&r);
		cr_expect(strpbrk(at(root, "filename"), "\r\n") == NULL);
		json_decref(root);
	}
	reply_done(&r);
	server_stop(&s);
}

Test(uploads, the_size_limit_holds_while_the_bytes_flow)
{
	const struct server_opts opts = {.conf = "files_max_bytes: 1000000\n"};
	struct server *s = server_start(&opts);
	struct reply r;
	server_upload(
	    s, "/v1/files", "a.bin", NULL, str_n(bytes_1m, 1000001), NULL, &anthropic, &r);
	cr_expect_eq(r.status, 413, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_expect_str_eq(at(root, "error.type"), "request_too_large");
	json_decref(root);
	reply_done(&r);
	(void)upload(s, "b.bin", NULL, str_n(bytes_1m, 1000000));
	root = get_json(s, "/v1/files", NULL, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 1);
	json_decref(root);
	server_stop(&s);
}

Test(uploads, uploads_can_be_switched_off)
{
	const struct server_opts opts = {.conf = "files_enabled: false\n"};
	struct server *s = server_start(&opts);
	const struct ask_opts nobody = {.key = ""};
	expect_status(s, "/v1/files", NULL, 404);
	expect_status(s, "/v1/files/x/content", &nobody, 404);
	server_stop(&s);
}

/* --- large ------------------------------------------------------------------------------- */

static long
worker_rss_kib(struct server *s)
{
	pid_t pids[8];
	long most = 0;
	size_t n = server_pids(s, "otari: worker", pids, ARRAY_LEN(pids));
	for (size_t i = 0; i < n && i < ARRAY_LEN(pids); i++) {
		char path[64], line[256];
		long kib;
		(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pids[i]);
		FILE *f = fopen(path, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
			if (sscanf(line, "VmHWM: %ld", &kib) == 1 && kib > most)
				most = kib;
		}
		if (f != NULL)
			(void)fclose(f);
	}
	return most;
}

struct stream {
	uint64_t left, seen;
};

static size_t
send_zeros(char *dst, size_t size, size_t n, void *arg)
{
	struct stream *st = arg;
	size_t want = size * n < st->left ? size * n : (size_t)st->left;
	memset(dst, 'z', want);
	st->left -= want;
	return want;
}

static size_t
count_bytes(char *p, size_t size, size_t n, void *arg)
{
	struct stream *st = arg;
	for (size_t i = 0; i < size * n; i++) {
		if (p[i] != 'z')
			return 0;
	}
	st->seen += size * n;
	return size * n;
}

#define LARGE_BYTES (128ull << 20)

static void
transfer(
    struct server *s, const char *path, struct stream *up, struct stream *down, struct buf *body)
{
	CURL *e = curl_easy_init();
	curl_mime *form = NULL;
	char url[512], auth[256];
	long status = 0;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", s->port, path);
	(void)snprintf(auth, sizeof(auth), "Authorization: Bearer %s", s->key);
	struct curl_slist *headers = curl_slist_append(NULL, auth);
	curl_easy_setopt(e, CURLOPT_URL, url);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(e, CURLOPT_TIMEOUT, 120L);
	if (up != NULL) {
		form = curl_mime_init(e);
		curl_mimepart *part = curl_mime_addpart(form);
		curl_mime_name(part, "file");
		curl_mime_filename(part, "large.bin");
		curl_mime_data_cb(part, (curl_off_t)up->left, send_zeros, NULL, NULL, up);
		curl_easy_setopt(e, CURLOPT_MIMEPOST, form);
	}
	FILE *f = NULL;
	char *text = NULL;
	size_t text_len = 0;
	if (down != NULL) {
		curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, count_bytes);
		curl_easy_setopt(e, CURLOPT_WRITEDATA, down);
	} else {
		f = open_memstream(&text, &text_len);
		curl_easy_setopt(e, CURLOPT_WRITEDATA, f);
	}
	CURLcode rc = curl_easy_perform(e);
	curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
	if (f != NULL) {
		(void)fclose(f);
		buf_addn(body, text, text_len);
		free(text);
	}
	cr_assert(
	    rc == CURLE_OK && status == 200, "%s: curl %d, status %ld", path, (int)rc, status);
	curl_slist_free_all(headers);
	curl_mime_free(form);
	curl_easy_cleanup(e);
}

Test(uploads, a_large_file_goes_in_and_out_at_constant_memory)
{
	struct server *s = server_start(NULL);
	struct stream up = {LARGE_BYTES, 0}, down = {0, 0};
	struct buf body = BUF_INIT(65536);
	char path[128];
	(void)upload(s, "warm.bin", NULL, STR("x"));
	long before = worker_rss_kib(s);
	transfer(s, "/v1/files", &up, NULL, &body);
	long after = worker_rss_kib(s);
	json_t *root = json_loadb(body.ptr, body.len, 0, NULL);
	cr_assert(root != NULL && at_int(root, "bytes") == (json_int_t)LARGE_BYTES, "%s", body.ptr);
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", at(root, "id"));
	json_decref(root);
	transfer(s, path, NULL, &down, NULL);
	cr_assert_eq(down.seen, LARGE_BYTES);
	long end = worker_rss_kib(s);
	(void)fprintf(stderr, "largest worker: %ld KiB, after 128 MiB in %ld KiB, out %ld KiB\n",
	    before, after, end);
	if (getenv("ASAN_OPTIONS") == NULL)
		cr_expect(end - before < 16 * 1024, "grew from %ld to %ld KiB", before, end);
	buf_done(&body);
	server_stop(&s);
}

Test(uploads, an_upload_that_breaks_off_leaves_nothing)
{
	struct server *s = server_start(NULL);
	CURL *e = curl_easy_init();
	char url[128], head[512];
	size_t sent;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", s->port);
	curl_easy_setopt(e, CURLOPT_URL, url);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
	cr_assert(curl_easy_perform(e) == CURLE_OK);
	int n = snprintf(head, sizeof(head),
	    "POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 9000000\r\n\r\n"
	    "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n",
	    s->key);
	cr_assert(curl_easy_send(e, head, (size_t)n, &sent) == CURLE_OK && sent == (size_t)n);
	for (size_t done = 0; done < sizeof(bytes_1m);) {
		CURLcode rc = curl_easy_send(e, bytes_1m + done, sizeof(bytes_1m) - done, &sent);
		if (rc == CURLE_AGAIN)
			pause_short();
		else
			cr_assert(rc == CURLE_OK, "curl %d", (int)rc);
		done += rc == CURLE_OK ? sent : 0;
	}
	curl_easy_cleanup(e);
	/* The worker hears of it, then nothing of it is left, neither row nor bytes. */
	cr_assert(server_wait_log(s, "\"aborted\":1", NULL));
	json_t *root = get_json(s, "/v1/files", NULL, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 0);
	json_decref(root);
	server_stop(&s);
}
