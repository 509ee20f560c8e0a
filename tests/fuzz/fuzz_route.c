/* Paths, query strings and credential headers of strangers.
 * Input: a byte for the method, then lines: path, query, header value, upload name, time. */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "worker/api/credential.h"
#include "worker/api/files.h"
#include "worker/api/query.h"
#include "worker/api/route.h"
#include "worker/api/timestamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct route table[] = {
    {HTTP_GET, "/models/{id*}", ACCESS_CALLER, 0, NULL, "model"},
    {HTTP_POST, "/files", ACCESS_CALLER, 0, NULL, "upload"},
    {HTTP_GET, "/files/{id}", ACCESS_CALLER, 0, NULL, "show"},
    {HTTP_GET, "/files/{id}/content", ACCESS_CALLER, 0, NULL, "content"},
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};

static void
try_route(struct arena *a, enum http_method method, struct str path)
{
	const struct route *r = NULL;
	struct str id = STR_NULL, allow = STR_NULL;
	switch (route_find(table, route_public_prefixes, method, path, a, &r, &id, &allow)) {
	case ROUTE_OK:
		CHECK(r != NULL && str_chr(id, '\0') == SIZE_MAX);
		break;
	case ROUTE_WRONG_METHOD:
		CHECK(allow.len > 0);
		break;
	case ROUTE_UNKNOWN:
		break;
	}
	(void)route_wire(path, method == HTTP_GET);
	if (files_id_ok(id))
		CHECK(str_chr(id, '/') == SIZE_MAX);
}

static void
try_query(struct arena *a, struct str query)
{
	struct file_query fq;
	struct model_query mq;
	struct admin_query aq;
	if (query_read_files(a, query, WIRE_CHAT, &fq, NULL) == 0)
		CHECK(fq.limit >= 1 && fq.limit <= QUERY_LIMIT_MAX &&
		      fq.id_count <= QUERY_FILE_IDS_MAX);
	(void)query_read_files(a, query, WIRE_MESSAGES, &fq, NULL);
	if (query_read_models(a, query, &mq, NULL) == 0)
		CHECK(mq.limit >= 1 && mq.limit <= QUERY_LIMIT_MAX);
	(void)query_read_admin(a, query, &aq, NULL);
}

static void
try_header(struct str value)
{
	struct http_header headers[] = {
	    {STR("authorization"), value}, {STR("X-Api-Key"), value}, {STR("otari-key"), value}};
	const struct http_head head = {.headers = headers, .header_count = ARRAY_LEN(headers)};
	struct str credential;
	bool bad_format;
	size_t pos = 0, n = 0;
	while (credential_next(&head, &pos, &credential, &bad_format)) {
		CHECK(bad_format == (credential.len == 0));
		n++;
	}
	CHECK(n <= ARRAY_LEN(headers));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 16384)
		return 0;
	struct arena *a = arena_new(4u << 20);
	struct str rest = str_n(data + 1, size - 1), path, query, value, name, when, clean;
	int64_t t;
	if (str_split(&rest, '\n', &path))
		try_route(a, (enum http_method)(data[0] % 7), path);
	if (str_split(&rest, '\n', &query))
		try_query(a, query);
	if (str_split(&rest, '\n', &value))
		try_header(value);
	if (str_split(&rest, '\n', &name) && files_name_clean(a, name, &clean))
		CHECK(clean.len <= 512 && str_chr(clean, '\n') == SIZE_MAX);
	if (str_split(&rest, '\n', &when) && timestamp_parse(when, &t))
		CHECK(t >= 0);
	arena_free(&a);
	return 0;
}
