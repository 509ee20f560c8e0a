/* Paths and methods to routes, and whose errors a path speaks. */
#include <criterion/criterion.h>

#include "base/arena.h"
#include "worker/api/route.h"

TestSuite(api_route, .timeout = 10);

static const struct route table[] = {
    {HTTP_GET, "/models", ACCESS_CALLER, 0, NULL, "models"},
    {HTTP_GET, "/models/{id*}", ACCESS_CALLER, 0, NULL, "model"},
    {HTTP_POST, "/files", ACCESS_CALLER, 0, NULL, "upload"},
    {HTTP_GET, "/files", ACCESS_CALLER, 0, NULL, "list"},
    {HTTP_GET, "/files/{id}", ACCESS_CALLER, 0, NULL, "show"},
    {HTTP_DELETE, "/files/{id}", ACCESS_CALLER, 0, NULL, "delete"},
    {HTTP_GET, "/files/{id}/content", ACCESS_CALLER, 0, NULL, "content"},
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};

Test(api_route, paths_and_methods_find_their_routes)
{
	static const struct {
		enum http_method method;
		const char *path, *endpoint, *id;
	} rows[] = {
	    {HTTP_GET, "/v1/models", "models", NULL},
	    {HTTP_GET, "/api/v1/models", "models", NULL},
	    {HTTP_HEAD, "/v1/models", "models", NULL},
	    {HTTP_GET, "/v1/models/a:b", "model", "a:b"},
	    {HTTP_GET, "/v1/models/a%2Fb", "model", "a/b"},
	    {HTTP_GET, "/v1/models/org/name", "model", "org/name"},
	    {HTTP_POST, "/v1/files", "upload", NULL},
	    {HTTP_GET, "/api/v1/files", "list", NULL},
	    {HTTP_GET, "/v1/files/file-1", "show", "file-1"},
	    {HTTP_DELETE, "/v1/files/file-1", "delete", "file-1"},
	    {HTTP_HEAD, "/v1/files/file-1/content", "content", "file-1"},
	    {HTTP_GET, "/v1/files/content", "show", "content"},
	    {HTTP_GET, "/v1/files/..", "show", ".."},
	    {HTTP_GET, "/v1/files/a%2Fcontent", "show", "a/content"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		const struct route *r = NULL;
		struct str id = STR_NULL, allow = STR_NULL;
		enum route_found f = route_find(table, route_public_prefixes, rows[i].method,
		    str_c(rows[i].path), a, &r, &id, &allow);
		cr_assert(f == ROUTE_OK, "%s", rows[i].path);
		cr_assert_str_eq(r->endpoint, rows[i].endpoint, "%s", rows[i].path);
		cr_assert(str_eq(id, str_c(rows[i].id)) && !id.ptr == !rows[i].id, "%s: %.*s",
		    rows[i].path, STR_FMT(id));
		arena_free(&a);
	}
}

Test(api_route, what_is_no_route_is_told_apart)
{
	static const struct {
		enum http_method method;
		const char *path, *allow; /* NULL: unknown */
	} rows[] = {
	    {HTTP_PUT, "/v1/files", "POST, GET, HEAD"},
	    {HTTP_POST, "/v1/files/file-1", "GET, HEAD, DELETE"},
	    {HTTP_DELETE, "/api/v1/models", "GET, HEAD"},
	    {HTTP_GET, "/", NULL},
	    {HTTP_GET, "", NULL},
	    {HTTP_GET, "/v1", NULL},
	    {HTTP_GET, "/v1/", NULL},
	    {HTTP_GET, "/models", NULL},
	    {HTTP_GET, "/v1//models", NULL},
	    {HTTP_GET, "/v1models", NULL},
	    {HTTP_GET, "/v1/models/", NULL},
	    {HTTP_GET, "/v1/files/", NULL},
	    {HTTP_GET, "/v1/files/a/b", NULL},
	    {HTTP_GET, "/v1/files/a/content/", NULL},
	    {HTTP_GET, "/v1/files//content", NULL},
	    {HTTP_GET, "/v1/files/a%00b", NULL},
	    {HTTP_GET, "/v1/files/a%zz", NULL},
	    {HTTP_GET, "/v1/%66iles", NULL},
	    {HTTP_GET, "/v1/FILES", NULL},
	    {HTTP_GET, "/api/v1/v1/files", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		const struct route *r = NULL;
		struct str id = STR_NULL, allow = STR_NULL;
		enum route_found f = route_find(table, route_public_prefixes, rows[i].method,
		    str_c(rows[i].path), a, &r, &id, &allow);
		enum route_found want = rows[i].allow ? ROUTE_WRONG_METHOD : ROUTE_UNKNOWN;
		cr_assert(f == want, "%s", rows[i].path);
		cr_assert(
		    str_eq(allow, str_c(rows[i].allow)), "%s: %.*s", rows[i].path, STR_FMT(allow));
		arena_free(&a);
	}
}

Test(api_route, errors_speak_the_dialect_of_the_path)
{
	static const struct {
		const char *path;
		bool version;
		enum wire wire;
	} rows[] = {
	    {"/v1/messages", false, WIRE_MESSAGES},
	    {"/api/v1/messages/count_tokens", false, WIRE_MESSAGES},
	    {"/v1/messagesx", false, WIRE_CHAT},
	    {"/v1/chat/completions", true, WIRE_CHAT},
	    {"/v1/responses", true, WIRE_RESPONSES},
	    {"/v1/files/a", true, WIRE_MESSAGES},
	    {"/v1/files/a", false, WIRE_CHAT},
	    {"/v1/skills", true, WIRE_MESSAGES},
	    {"/nothing", false, WIRE_CHAT},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert(route_wire(str_c(rows[i].path), rows[i].version) == rows[i].wire, "%s",
		    rows[i].path);
}
