#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/http_client_impl.h"
#include "base/mem.h"
#include "base/version.h"

static bool
is_clean(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '\r' || s.ptr[i] == '\n' || s.ptr[i] == '\0')
			return false;
	return true;
}

static bool
add_field(struct http_call *c, const char *line)
{
	struct curl_slist *l = curl_slist_append(c->fields, line);
	if (l != NULL)
		c->fields = l;
	return l != NULL;
}

static enum err_code
set_fields(struct http_call *c, const struct http_call_spec *spec, struct err *reterr)
{
	bool has_type = false;
	struct buf line = BUF_INIT(CALL_HEAD_MAX_BYTES);
	enum err_code rc = ERR_OK;
	for (size_t i = 0; i < spec->header_count && rc == ERR_OK; i++) {
		struct str name = spec->headers[i].name, value = str_trim(spec->headers[i].value);
		if (name.len == 0 || !is_clean(name) || !is_clean(value) ||
		    str_chr(name, ':') != SIZE_MAX || str_chr(name, ';') != SIZE_MAX) {
			rc = err_set(reterr, ERR_INPUT, "%s: malformed header", c->label);
			break;
		}
		has_type = has_type || str_eq_nocase(name, STR("content-type"));
		buf_clear(&line);
		buf_add(&line, name);
		/* libcurl's own notation: "Name;" is an empty header, "Name:" removes one. */
		buf_add(&line, value.len > 0 ? STR(": ") : STR(";"));
		buf_add(&line, value);
		if (line.overflowed || !add_field(c, line.ptr))
			rc = err_set(reterr, ERR_TOOLARGE, "%s: header too large", c->label);
	}
	buf_done(&line);
	if (rc == ERR_OK &&
	    (!add_field(c, "Expect:") || (!has_type && !add_field(c, "Content-Type:"))))
		rc = err_set(reterr, ERR_NOMEM, "%s: no memory", c->label);
	return rc;
}

/* Checks the URL and makes the label. */
static enum err_code
read_url(struct http_call *c, const char *url, struct err *reterr)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	enum err_code rc = ERR_OK;
	if (u == NULL || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		rc = err_set(reterr, ERR_INPUT, "malformed URL");
	else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		rc = err_set(reterr, ERR_INPUT, "URL is neither http nor https");
	else
		(void)snprintf(c->label, sizeof(c->label), "%.100s:%s", host, port);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(u);
	return rc;
}

static void
set_body(struct http_call *c, const struct http_call_spec *spec)
{
	bool is_post = strcmp(spec->method, "POST") == 0;
	if (spec->read_body != NULL) {
		(void)curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(
		    c->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)spec->body_bytes);
	} else if (is_post || spec->body.len > 0 || strcmp(spec->method, "PUT") == 0 ||
		   strcmp(spec->method, "PATCH") == 0) {
		(void)curl_easy_setopt(c->easy, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(
		    c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body.len);
		(void)curl_easy_setopt(
		    c->easy, CURLOPT_POSTFIELDS, spec->body.len > 0 ? spec->body.ptr : "");
	} else if (strcmp(spec->method, "HEAD") == 0) {
		(void)curl_easy_setopt(c->easy, CURLOPT_NOBODY, 1L);
		return;
	}
	(void)curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, spec->method);
}

static bool
set_options(struct http_call *c, const struct http_call_spec *spec, const char *url)
{
	CURL *e = c->easy;
	long connect_ms = spec->connect_timeout_ms != 0 ? (long)spec->connect_timeout_ms : 10000L;
	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	(void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	(void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->fields);
	(void)curl_easy_setopt(e, CURLOPT_USERAGENT, "otari/" OTARI_VERSION);
	http_call_set_callbacks(c);
	if (spec->ca_file != NULL)
		(void)curl_easy_setopt(e, CURLOPT_CAINFO, spec->ca_file);
	set_body(c, spec);
	/* Those that must not fail in silence: without the first the loop blocks while a name
	 * server is silent, without the second other protocols are open to a forged URL, without
	 * the third the environment chooses a proxy. */
	return curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_PROXY, spec->proxy != NULL ? spec->proxy : "") ==
		   CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_NOPROXY, "") == CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "identity") == CURLE_OK &&
	       curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK;
}

static enum err_code
prepare(struct http_call *c, const struct http_call_spec *spec, struct err *reterr)
{
	if (!is_clean(spec->url))
		return err_set(reterr, ERR_INPUT, "malformed URL");
	char *url = mem_strndup(spec->url.ptr, spec->url.len);
	enum err_code rc = read_url(c, url, reterr);
	if (rc == ERR_OK)
		rc = set_fields(c, spec, reterr);
	if (rc == ERR_OK && ((c->easy = curl_easy_init()) == NULL || !set_options(c, spec, url)))
		rc = err_set(reterr, ERR_INTERNAL, "%s: libcurl refuses the request", c->label);
	mem_free(url);
	return rc;
}

enum err_code
http_call_start(struct http_client *client, const struct http_call_spec *spec,
    const struct http_call_ops *ops, void *arg, struct http_call **ret, struct err *reterr)
{
	struct http_call *c = MEM_NEW(struct http_call);
	c->magic = HTTP_CALL_MAGIC;
	c->client = client;
	c->ops = ops;
	c->arg = arg;
	c->read_body = spec->read_body;
	c->first_byte_timeout_ms = spec->first_byte_timeout_ms;
	c->idle_timeout_ms = spec->idle_timeout_ms;
	buf_init(&c->head, CALL_HEAD_MAX_BYTES);
	http_call_init_events(c);
	enum err_code rc = prepare(c, spec, reterr);
	if (rc == ERR_OK) {
		http_client_enter(client);
		CURLMcode mc = curl_multi_add_handle(client->multi, c->easy);
		client->depth--;
		if (mc != CURLM_OK)
			rc = err_set(
			    reterr, ERR_INTERNAL, "%s: %s", c->label, curl_multi_strerror(mc));
	}
	if (rc != ERR_OK) {
		http_call_destroy(c);
		return rc;
	}
	c->is_added = true;
	TAILQ_INSERT_TAIL(&client->calls, c, link);
	http_call_clock_start(c);
	*ret = c;
	return ERR_OK;
}
