#include "worker/api/route.h"

#include <string.h>

#include "worker/http/uri.h"

const char *const route_public_prefixes[] = {"/v1", "/api/v1", NULL};
const char *const route_root_prefixes[] = {"", NULL};
const char *const route_admin_prefixes[] = {"", "/v1", "/api/v1", NULL};

/* True when text fits the pattern; *ret_raw is then the part that {id} or {id*} stands for. */
static bool
pattern_matches(const char *pattern, struct str text, struct str *ret_raw)
{
	const char *p = pattern;
	size_t i = 0;
	*ret_raw = STR_NULL;
	while (*p != '\0') {
		if (*p != '{') {
			if (i == text.len || text.ptr[i] != *p)
				return false;
			i++, p++;
			continue;
		}
		const char *end = strchr(p, '}');
		bool takes_rest = end[-1] == '*';
		size_t start = i;
		while (i < text.len && (takes_rest || text.ptr[i] != '/'))
			i++;
		if (i == start)
			return false;
		*ret_raw = str_sub(text, start, i - start);
		p = end + 1;
	}
	return i == text.len;
}

static bool
strip_prefix(const char *const *prefixes, size_t *pos, struct str path, struct str *ret)
{
	while (prefixes[*pos] != NULL) {
		struct str prefix = str_c(prefixes[(*pos)++]);
		if (str_starts(path, prefix)) {
			*ret = str_from(path, prefix.len);
			return true;
		}
	}
	return false;
}

static bool
method_fits(enum http_method route, enum http_method asked)
{
	return route == asked || (route == HTTP_GET && asked == HTTP_HEAD);
}

static struct str
allow_add(struct arena *a, struct str allow, enum http_method m)
{
	const char *name = http_method_name(m);
	const char *head = m == HTTP_GET ? ", HEAD" : "";
	if (allow.len == 0)
		return arena_printf(a, "%s%s", name, head);
	return arena_printf(a, "%.*s, %s%s", STR_FMT(allow), name, head);
}

enum route_found
route_find(const struct route *routes, const char *const *prefixes, enum http_method method,
    struct str path, struct arena *a, const struct route **ret, struct str *ret_id,
    struct str *ret_allow)
{
	struct str allow = STR(""), rest, raw;
	for (size_t pos = 0; strip_prefix(prefixes, &pos, path, &rest);) {
		for (const struct route *r = routes; r->path != NULL; r++) {
			if (!pattern_matches(r->path, rest, &raw))
				continue;
			if (!method_fits(r->method, method)) {
				allow = allow_add(a, allow, r->method);
				continue;
			}
			struct str id = STR_NULL;
			if (raw.ptr != NULL &&
			    (!uri_decode(a, raw, &id) || str_chr(id, '\0') != SIZE_MAX))
				return ROUTE_UNKNOWN;
			*ret = r;
			*ret_id = id;
			return ROUTE_OK;
		}
		if (allow.len > 0)
			break;
	}
	if (allow.len == 0)
		return ROUTE_UNKNOWN;
	*ret_allow = allow;
	return ROUTE_WRONG_METHOD;
}

static bool
is_below(struct str path, struct str root)
{
	return str_starts(path, root) && (path.len == root.len || path.ptr[root.len] == '/');
}

enum wire
route_wire(struct str path, bool has_anthropic_version)
{
	struct str rest = path;
	size_t pos = 0;
	if (!strip_prefix(route_public_prefixes, &pos, path, &rest))
		rest = path;
	if (is_below(rest, STR("/messages")))
		return WIRE_MESSAGES;
	if (is_below(rest, STR("/chat")))
		return WIRE_CHAT;
	if (is_below(rest, STR("/responses")))
		return WIRE_RESPONSES;
	return has_anthropic_version ? WIRE_MESSAGES : WIRE_CHAT;
}
