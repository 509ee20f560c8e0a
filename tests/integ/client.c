/* client.c - the harness's HTTP client */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <curl/curl.h>

#include "tests/integ/harness.h"

#define BODY_MAX (256u * 1024u * 1024u)

struct call {
	struct reply *reply;
	size_t stop_after;
};

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct call *c = arg;

	buf_addn(&c->reply->body, p, size * n);
	c->reply->chunks++;
	if (c->stop_after > 0 && c->reply->body.len >= c->stop_after)
		return 0;
	return size * n;
}

static size_t
on_head(char *p, size_t size, size_t n, void *arg)
{
	struct call *c = arg;

	buf_addn(&c->reply->head, p, size * n);
	return size * n;
}

static void
run(CURL *e, const char *method, const char *url, struct curl_slist *headers, size_t stop_after,
    struct reply *ret)
{
	struct call c = {ret, stop_after};

	memset(ret, 0, sizeof(*ret));
	buf_init(&ret->body, BODY_MAX);
	buf_init(&ret->head, 1u << 20);
	buf_add(&ret->body, STR(""));
	curl_easy_setopt(e, CURLOPT_URL, url);
	curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
	if (strcmp(method, "HEAD") == 0)
		curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, 60000L);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, &c);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, &c);
	ret->curl_code = (int)curl_easy_perform(e);
	curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_cleanup(e);
	curl_slist_free_all(headers);
	if (ret->body.ptr == NULL)
		buf_addn(&ret->body, "", 0);
}

static struct curl_slist *
make_headers(const struct server *s, const struct ask_opts *o, bool typed)
{
	struct curl_slist *list = NULL;
	const char *key = o != NULL && o->key != NULL ? o->key : s->key;
	char line[512];

	if (*key != '\0') {
		(void)snprintf(line, sizeof(line), "Authorization: Bearer %s", key);
		list = curl_slist_append(list, line);
	}
	if (typed) {
		(void)snprintf(line, sizeof(line), "Content-Type: %s",
		    o != NULL && o->type != NULL ? o->type : "application/json");
		list = curl_slist_append(list, line);
	}
	for (size_t i = 0; o != NULL && o->headers != NULL && o->headers[i] != NULL; i++)
		list = curl_slist_append(list, o->headers[i]);
	return list;
}

static int
port_of(const struct server *s, const struct ask_opts *o)
{
	if (o != NULL && o->admin)
		return s->admin_port;
	return o != NULL && o->serve ? s->serve_port : s->port;
}

void
server_ask(struct server *s, const char *method, const char *path, struct str body,
    const struct ask_opts *o, struct reply *ret)
{
	CURL *e = curl_easy_init();
	char url[2048];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port_of(s, o), path);
	if (body.ptr != NULL) {
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, body.ptr);
	}
	run(e, method, url, make_headers(s, o, body.ptr != NULL), o != NULL ? o->stop_after : 0,
	    ret);
}

void
fake_ask(struct server *s, const char *method, const char *path, struct str body, struct reply *ret)
{
	CURL *e = curl_easy_init();
	char url[2048];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", s->fake_port, path);
	if (body.ptr != NULL) {
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, body.ptr);
	}
	run(e, method, url, NULL, 0, ret);
}

void
server_upload(struct server *s, const char *path, const char *filename, const char *mime,
    struct str bytes, const char *purpose, const struct ask_opts *o, struct reply *ret)
{
	CURL *e = curl_easy_init();
	curl_mime *form = curl_mime_init(e);
	curl_mimepart *part;
	char url[2048];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port_of(s, o), path);
	if (purpose != NULL) {
		part = curl_mime_addpart(form);
		curl_mime_name(part, "purpose");
		curl_mime_data(part, purpose, CURL_ZERO_TERMINATED);
	}
	part = curl_mime_addpart(form);
	curl_mime_name(part, "file");
	curl_mime_filename(part, filename);
	if (mime != NULL)
		curl_mime_type(part, mime);
	curl_mime_data(part, bytes.ptr, bytes.len);
	curl_easy_setopt(e, CURLOPT_MIMEPOST, form);
	run(e, "POST", url, make_headers(s, o, false), 0, ret);
	curl_mime_free(form);
}

void
reply_done(struct reply *r)
{
	buf_done(&r->body);
	buf_done(&r->head);
}

json_t *
reply_json(const struct reply *r)
{
	json_t *root = json_loadb(r->body.len > 0 ? r->body.ptr : "", r->body.len, 0, NULL);

	cr_assert(root != NULL, "no JSON, status %ld (curl %d): %.*s", r->status, r->curl_code,
	    STR_FMT(str_sub(buf_str(&r->body), 0, 2000)));
	return root;
}

struct str
reply_header(const struct reply *r, const char *name)
{
	struct str rest = buf_str(&r->head), line;

	while (str_split(&rest, '\n', &line)) {
		size_t colon = str_chr(line, ':');

		if (colon != SIZE_MAX && str_eq_nocase(str_sub(line, 0, colon), str_c(name)))
			return str_trim(str_from(line, colon + 1));
	}
	return STR_NULL;
}

const json_t *
at_json(const json_t *root, const char *path)
{
	struct str rest = str_c(path), name;

	while (root != NULL && str_split(&rest, '.', &name)) {
		char key[128];
		uint64_t i;

		cr_assert(str_copy(key, sizeof(key), name));
		root = json_is_array(root) && str_u64(name, &i) ? json_array_get(root, i)
								: json_object_get(root, key);
	}
	return root;
}

const char *
at(const json_t *root, const char *path)
{
	const char *s = json_string_value(at_json(root, path));

	return s != NULL ? s : "";
}

json_int_t
at_int(const json_t *root, const char *path)
{
	const json_t *v = at_json(root, path);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}
