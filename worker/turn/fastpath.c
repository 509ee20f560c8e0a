#include "worker/turn/fastpath.h"

#include "base/json_write.h"
#include "worker/turn/executor.h"

/* Members that only the gateway understands, or that it must answer itself. */
static const char *const gateway_members[] = {
    "max_tool_iterations", "tools_header", "guardrails", "mcp_server_ids", "session_label"};

/* A JSON escape of a plain ASCII letter, digit or sign could hide any of the words below. */
static bool
hides_ascii(struct str body)
{
	for (struct str rest = body;;) {
		size_t at = str_find(rest, STR("\\u00"));
		if (at == SIZE_MAX)
			return false;
		rest = str_from(rest, at + 4);
		if (rest.len > 0 && rest.ptr[0] >= '2' && rest.ptr[0] <= '7')
			return true;
	}
}

static bool
mentions_ours(struct str body)
{
	static const struct str words[] = {
	    STR_INIT("otari_"), STR_INIT("container_upload"), STR_INIT("item_reference")};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_find(body, words[i]) != SIZE_MAX)
			return true;
	return false;
}

enum { FILE_BY_ID = 1, FILE_INLINE = 2 };

/* The keys that files come by, in one search. */
static unsigned
file_keys(struct str body)
{
	static const struct str head = STR_INIT("\"file_");
	unsigned found = 0;
	for (size_t at; (at = str_find(body, head)) != SIZE_MAX;) {
		body = str_from(body, at + head.len);
		if (str_starts(body, STR("id\"")) || str_starts(body, STR("ids\"")))
			found |= FILE_BY_ID;
		else if (str_starts(body, STR("data\"")))
			found |= FILE_INLINE;
	}
	return found;
}

static bool
mentions_block(struct str body)
{
	return str_find(body, STR("\"document\"")) != SIZE_MAX &&
	       str_find(body, STR("\"base64\"")) != SIZE_MAX;
}

static bool
tools_fit(struct jval tools)
{
	struct jiter it = {0};
	if (!jv_present(tools))
		return true;
	if (!jv_is(tools, JT_ARRAY))
		return false;
	while (jv_next(tools, &it)) {
		struct jval type = jv_get(it.value, "type");
		struct str raw = jv_raw(type);
		if (jv_is(jv_get(it.value, "purpose_hint"), JT_STRING))
			return false;
		if (jv_is(type, JT_STRING) &&
		    executor_family(str_sub(raw, 1, raw.len - 2)) != CODE_FAMILY_NONE)
			return false;
	}
	return true;
}

/* Responses: an answer that is to be kept, or that goes on from a kept one, is ours to serve. */
static bool
members_fit(struct jval root, enum wire wire)
{
	for (size_t i = 0; i < ARRAY_LEN(gateway_members); i++)
		if (jv_type(jv_get(root, gateway_members[i])) != JT_ABSENT)
			return false;
	switch (wire) {
	case WIRE_CHAT:
		return jv_is(jv_get(root, "messages"), JT_ARRAY);
	case WIRE_MESSAGES:
		return jv_is(jv_get(root, "messages"), JT_ARRAY) &&
		       !jv_present(jv_get(root, "thread"));
	case WIRE_RESPONSES:
		return jv_is(jv_get(root, "store"), JT_FALSE) &&
		       !jv_present(jv_get(root, "previous_response_id")) &&
		       !jv_present(jv_get(root, "conversation")) &&
		       !jv_present(jv_get(root, "background")) &&
		       (jv_is(jv_get(root, "input"), JT_ARRAY) ||
			   jv_is(jv_get(root, "input"), JT_STRING));
	}
	return false;
}

bool
fastpath_fits(struct jval root, struct str body, enum wire wire, struct fastpath *ret)
{
	static const char *const deciding[] = {"model", "stream", "stream_options", "tools",
	    "messages", "input", "store", "thread", NULL};
	if (!jv_is(root, JT_OBJECT) || !jv_is(jv_get(root, "model"), JT_STRING) ||
	    !members_fit(root, wire) || jv_unique(root, deciding, NULL) != ERR_OK)
		return false;
	struct jval stream = jv_get(root, "stream");
	struct jval options = jv_get(root, "stream_options");
	if ((jv_present(stream) && !jv_is(stream, JT_TRUE) && !jv_is(stream, JT_FALSE)) ||
	    (jv_present(options) && !jv_is(options, JT_OBJECT)))
		return false;
	unsigned files = file_keys(body);
	if (!tools_fit(jv_get(root, "tools")) || (files & FILE_BY_ID) != 0 || mentions_ours(body) ||
	    hides_ascii(body))
		return false;
	*ret = (struct fastpath){
	    .root = root,
	    .body = body,
	    .wire = wire,
	    .stream = jv_is(stream, JT_TRUE),
	    .wants_usage = jv_bool(jv_get(options, "include_usage"), false),
	    .may_hold_document =
		wire == WIRE_MESSAGES ? mentions_block(body) : (files & FILE_INLINE) != 0,
	};
	return true;
}

static void
write_options(struct jval options, struct buf *out)
{
	struct jw w;
	struct jiter it = {0};
	jw_init(&w, out);
	jw_object(&w);
	while (jv_is(options, JT_OBJECT) && jv_next(options, &it)) {
		struct str key = jv_raw(it.key);
		if (str_eq(key, STR("\"include_usage\"")))
			continue;
		jw_key_str(&w, str_sub(key, 1, key.len - 2));
		jw_raw(&w, jv_raw(it.value));
	}
	jw_kbool(&w, "include_usage", true);
	jw_end_object(&w);
}

void
fastpath_write(const struct fastpath *f, struct str model, struct buf *out)
{
	struct jval old_model = jv_get(f->root, "model");
	struct jval old_options = jv_get(f->root, "stream_options");
	bool add_usage = f->wire == WIRE_CHAT && f->stream && !f->wants_usage;
	bool has_options = jv_type(old_options) != JT_ABSENT;
	struct jval cuts[2] = {old_model, JV_ABSENT};
	size_t n = 1;
	if (add_usage && has_options) { /* in document order */
		bool before = jv_offset(old_options) < jv_offset(old_model);
		cuts[before ? 0 : 1] = old_options;
		cuts[before ? 1 : 0] = old_model;
		n = 2;
	}
	size_t at = 0;
	if (add_usage && !has_options) {
		at = jv_offset(f->root) + 1;
		buf_add(out, str_sub(f->body, 0, at));
		buf_add(out, STR("\"stream_options\":{\"include_usage\":true},"));
	}
	for (size_t i = 0; i < n; i++) {
		buf_add(out, str_sub(f->body, at, jv_offset(cuts[i]) - at));
		if (cuts[i].tok == old_model.tok) {
			struct jw w;
			jw_init(&w, out);
			jw_str(&w, model);
		} else {
			write_options(old_options, out);
		}
		at = jv_offset(cuts[i]) + jv_raw(cuts[i]).len;
	}
	buf_add(out, str_from(f->body, at));
}
