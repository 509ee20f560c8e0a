#include "worker/upstream/headers.h"

#include "base/version.h"

void
upstream_header(struct upstream_headers *h, struct str name, struct str value)
{
	if (value.ptr == NULL)
		return;
	for (size_t i = 0; i < h->count; i++)
		if (str_eq_nocase(h->list[i].name, name)) {
			h->list[i].value = value;
			return;
		}
	if (h->count < UPSTREAM_HEADERS_MAX)
		h->list[h->count++] = (struct http_client_header){name, value};
}

void
upstream_headers_begin(struct upstream_headers *h, struct arena *a, const struct target *t,
    struct str content_type, struct str accept)
{
	upstream_header(h, STR("content-type"), content_type);
	upstream_header(h, STR("accept"), accept);
	upstream_header(h, STR("user-agent"), STR("otari/" OTARI_VERSION));
	if (t->wire == WIRE_MESSAGES) {
		upstream_header(h, STR("anthropic-version"), STR("2023-06-01"));
		if (t->key.len > 0)
			upstream_header(h, STR("x-api-key"), t->key);
	} else if (t->key.len > 0) {
		upstream_header(
		    h, STR("authorization"), arena_printf(a, "Bearer %.*s", STR_FMT(t->key)));
	}
}

void
upstream_headers_end(struct upstream_headers *h, const struct target *t)
{
	for (size_t i = 0; i < t->header_count; i++)
		if (!str_eq_nocase(t->headers[i].name, STR("content-type")))
			upstream_header(h, t->headers[i].name, t->headers[i].value);
}
