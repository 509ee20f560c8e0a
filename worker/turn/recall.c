#include "worker/turn/recall.h"

#include "base/id.h"
#include "base/json_write.h"
#include "base/map.h"

#define TEXT_MAX_BYTES (2u * STORE_RESPONSE_MAX_BYTES)

struct history { /* a kept response */
	struct jval input, output;
	struct map *items; /* id → struct jval in the arena; NULL: nobody asked yet */
	bool is_same_provider;
};

struct builder {
	struct arena *arena;
	const struct recall_wants *wants;
	struct history previous, *holders;
	size_t holder_count;
	const size_t *holder_of;
	bool keep;
	struct buf sent;  /* items for the model's provider, with commas between */
	struct buf kept;  /* items as they are kept */
	struct map *seen; /* ids of the history; value: anything */
	struct str *item_ids;
	size_t item_count, item_room;
};

/* --- what a request names ------------------------------------------------------------------------
 */

/* {"type":"item_reference","id":…}, and the short form that says only the id. */
static bool
is_reference(struct jval item)
{
	struct jval type = jv_get(item, "type");
	if (!jv_is(jv_get(item, "id"), JT_STRING))
		return false;
	if (jv_present(type))
		return jv_str_is(type, "item_reference");
	return jv_count(item) == (jv_is(type, JT_NULL) ? 2u : 1u);
}

static size_t
reference_index(const struct recall_wants *w, struct str id)
{
	for (size_t i = 0; i < w->reference_count; i++)
		if (str_eq(w->references[i], id))
			return i;
	return SIZE_MAX;
}

static enum err_code
add_reference(
    struct arena *a, struct recall_wants *w, struct map *seen, struct str id, struct err *reterr)
{
	if (map_get(seen, id) != NULL)
		return ERR_OK;
	map_put(seen, id, w);
	if (w->references == NULL)
		w->references = ARENA_NEW_ARRAY(a, struct str, RECALL_REFERENCES_MAX);
	if (w->references == NULL)
		return err_set(reterr, ERR_TOOLARGE, "the request is too large");
	if (w->reference_count == RECALL_REFERENCES_MAX)
		return err_set(reterr, ERR_INPUT, "input: at most %u item references are served",
		    RECALL_REFERENCES_MAX);
	w->references[w->reference_count++] = arena_str(a, id);
	return ERR_OK;
}

static enum err_code
read_references(struct arena *a, struct jval input, struct recall_wants *w, struct map *seen,
    struct err *reterr)
{
	struct jiter it = {0};
	enum err_code rc = ERR_OK;
	while (rc == ERR_OK && jv_is(input, JT_ARRAY) && jv_next(input, &it))
		if (is_reference(it.value))
			rc = add_reference(a, w, seen, jv_str(a, jv_get(it.value, "id")), reterr);
	return rc;
}

enum err_code
recall_read(struct arena *a, struct jval root, struct recall_wants *ret, struct err *reterr)
{
	struct recall_wants w = {STR_NULL, NULL, 0};
	struct jval previous = jv_get(root, "previous_response_id");
	if (jv_present(previous) && !jv_is(previous, JT_STRING))
		return err_set(reterr, ERR_INPUT, "previous_response_id: must be a string");
	if (jv_present(jv_get(root, "conversation")))
		return err_set(reterr, ERR_INPUT,
		    "conversation: conversations are not kept here; use previous_response_id");
	if (jv_is(previous, JT_STRING))
		w.previous_id = arena_str(a, jv_str(a, previous));
	struct map *seen = map_new();
	enum err_code rc = read_references(a, jv_get(root, "input"), &w, seen, reterr);
	map_free(&seen);
	if (rc == ERR_OK)
		*ret = w;
	return rc;
}

/* --- items ---------------------------------------------------------------------------------------
 */
static void
add_item(struct buf *b, struct str item)
{
	if (b->len > 0)
		buf_addc(b, ',');
	buf_add(b, item);
}

/* The members of an item, but for one or two; the caller wrote something before it. */
static void
add_members(struct buf *b, struct jval item, const char *without, const char *without2, bool comma)
{
	struct jiter it = {0};
	while (jv_next(item, &it)) {
		if (jv_str_is(it.key, without) || jv_str_is(it.key, without2))
			continue;
		if (comma)
			buf_addc(b, ',');
		comma = true;
		buf_add(b, jv_raw(it.key));
		buf_addc(b, ':');
		buf_add(b, jv_raw(it.value));
	}
}

static bool
is_message(struct jval item)
{
	struct jval type = jv_get(item, "type");
	return jv_str_is(type, "message") ||
	       (!jv_present(type) && jv_present(jv_get(item, "role")));
}

/* Kinds that stand without their id; of the others (a provider's own calls) it is a part. */
static bool
is_free_of_id(struct jval item)
{
	static const char *const types[] = {
	    "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (jv_str_is(jv_get(item, "type"), types[i]))
			return true;
	return is_message(item);
}

static void
send_item(struct builder *b, struct jval item)
{
	if (!is_free_of_id(item) || !jv_present(jv_get(item, "id"))) {
		add_item(&b->sent, jv_raw(item));
		return;
	}
	add_item(&b->sent, STR("{"));
	add_members(&b->sent, item, "id", "", false);
	buf_addc(&b->sent, '}');
}

static void
recall_item(struct builder *b, struct jval item, const struct history *from)
{
	if (!from->is_same_provider && jv_str_is(jv_get(item, "type"), "reasoning"))
		return;
	send_item(b, item);
	if (b->keep)
		add_item(&b->kept, jv_raw(item));
}

static void
recall_items(struct builder *b, struct jval items, const struct history *from)
{
	struct jiter it = {0};
	while (jv_is(items, JT_ARRAY) && jv_next(items, &it)) {
		struct str id = jv_str(b->arena, jv_get(it.value, "id"));
		if (id.len > 0)
			map_put(b->seen, id, b);
		recall_item(b, it.value, from);
	}
}

/* --- what the request brings ---------------------------------------------------------------------
 */
static struct str
mint_id(struct arena *a, struct jval item)
{
	static const struct {
		const char *type, *prefix;
	} kinds[] = {
	    {"function_call", "fc_otari_"},
	    {"function_call_output", "fco_otari_"},
	    {"custom_tool_call", "ctc_otari_"},
	    {"custom_tool_call_output", "ctco_otari_"},
	    {"reasoning", "rs_otari_"},
	};
	const char *prefix = is_message(item) ? "msg_otari_" : "item_otari_";
	char id[ID_SIZE];
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (jv_str_is(jv_get(item, "type"), kinds[i].type))
			prefix = kinds[i].prefix;
	id_make(prefix, id);
	return arena_str(a, str_c(id));
}

/* Kept messages have typed parts, whatever the client wrote. */
static void
keep_message(struct builder *b, struct str id, struct jval item)
{
	struct jval content = jv_get(item, "content");
	bool is_text = jv_is(content, JT_STRING);
	struct jw w;
	add_item(&b->kept, STR("{\"id\":"));
	jw_init(&w, &b->kept);
	jw_str(&w, id);
	if (!jv_present(jv_get(item, "type")))
		buf_add(&b->kept, STR(",\"type\":\"message\""));
	add_members(&b->kept, item, "id", is_text ? "content" : "", true);
	if (is_text) {
		bool is_output = jv_str_is(jv_get(item, "role"), "assistant");
		buf_add(&b->kept, is_output
				      ? STR(",\"content\":[{\"type\":\"output_text\","
					    "\"annotations\":[],\"text\":")
				      : STR(",\"content\":[{\"type\":\"input_text\",\"text\":"));
		buf_add(&b->kept, jv_raw(content));
		buf_add(&b->kept, STR("}]"));
	}
	buf_addc(&b->kept, '}');
}

static void
note_id(struct builder *b, struct str id)
{
	if (id.len > 0 && b->item_count < b->item_room)
		b->item_ids[b->item_count++] = arena_str(b->arena, id);
}

static void
keep_new(struct builder *b, struct jval item)
{
	struct str id = jv_str(b->arena, jv_get(item, "id"));
	bool has_id = id.len > 0;
	if (!jv_is(item, JT_OBJECT)) {
		add_item(&b->kept, jv_raw(item));
		return;
	}
	if (!has_id)
		id = mint_id(b->arena, item);
	note_id(b, id);
	if (is_message(item)) {
		keep_message(b, id, item);
	} else if (has_id) {
		add_item(&b->kept, jv_raw(item));
	} else {
		struct jw w;
		add_item(&b->kept, STR("{\"id\":"));
		jw_init(&w, &b->kept);
		jw_str(&w, id);
		add_members(&b->kept, item, "id", "", true);
		buf_addc(&b->kept, '}');
	}
}

/* What came out of a response comes before what went into it. */
static void
index_items(struct builder *b, struct history *h)
{
	const struct jval lists[] = {h->output, h->input};
	h->items = map_new();
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct jiter it = {0};
		while (jv_is(lists[i], JT_ARRAY) && jv_next(lists[i], &it)) {
			struct str id = jv_str(b->arena, jv_get(it.value, "id"));
			struct jval *item = NULL;
			if (id.ptr != NULL && map_get(h->items, id) == NULL)
				item = ARENA_NEW(b->arena, struct jval);
			if (item == NULL)
				continue;
			*item = it.value;
			map_put(h->items, id, item);
		}
	}
}

static struct jval
find_item(struct builder *b, struct history *h, struct str id)
{
	if (h->items == NULL)
		index_items(b, h);
	const struct jval *item = map_get(h->items, id);
	return item != NULL ? *item : JV_ABSENT;
}

static enum err_code
check_new(struct builder *b, struct str id, struct err *reterr)
{
	if (id.len == 0)
		return ERR_OK;
	if (map_get(b->seen, id) != NULL)
		return err_set(reterr, ERR_INPUT,
		    "Duplicate item found with id %.*s. Remove duplicate items from your input "
		    "and try again.",
		    STR_FMT(str_sub(id, 0, 128)));
	map_put(b->seen, id, b);
	return ERR_OK;
}

static enum err_code
add_new(struct builder *b, struct jval item, struct err *reterr)
{
	struct str id = jv_str(b->arena, jv_get(item, "id"));
	enum err_code rc = recall_is_empty(b->wants) ? ERR_OK : check_new(b, id, reterr);
	if (rc != ERR_OK)
		return rc;
	if (!is_reference(item)) {
		add_item(&b->sent, jv_raw(item));
		if (b->keep)
			keep_new(b, item);
		return ERR_OK;
	}
	size_t i = reference_index(b->wants, id);
	struct history *h = i != SIZE_MAX ? &b->holders[b->holder_of[i]] : NULL;
	struct jval named = h != NULL ? find_item(b, h, id) : JV_ABSENT;
	if (!jv_present(named))
		return err_set(reterr, ERR_NOTFOUND, "Item with id '%.*s' not found.",
		    STR_FMT(str_sub(id, 0, 128)));
	recall_item(b, named, h);
	note_id(b, id);
	return ERR_OK;
}

/* A text alone is a message of the user. */
static enum err_code
add_text(struct builder *b, struct jval text, struct err *reterr)
{
	struct buf json = BUF_INIT(jv_raw(text).len + 64);
	struct jval item;
	buf_add(&json, STR("{\"role\":\"user\",\"content\":"));
	buf_add(&json, jv_raw(text));
	buf_addc(&json, '}');
	enum err_code rc = jdoc_parse(b->arena, arena_str(b->arena, buf_str(&json)), &item, reterr);
	buf_done(&json);
	return rc == ERR_OK ? add_new(b, item, reterr) : rc;
}

static enum err_code
add_input(struct builder *b, struct jval input, struct err *reterr)
{
	struct jiter it = {0};
	enum err_code rc = ERR_OK;
	if (jv_present(input) && !jv_is(input, JT_STRING) && !jv_is(input, JT_ARRAY))
		return err_set(reterr, ERR_INPUT, "input: must be a string or an array of items");
	b->item_room = jv_is(input, JT_ARRAY) ? jv_count(input) : 1;
	if (b->item_room > STORE_RESPONSE_ITEMS_MAX)
		b->item_room = STORE_RESPONSE_ITEMS_MAX;
	b->item_ids = ARENA_NEW_ARRAY(b->arena, struct str, b->item_room);
	if (b->item_ids == NULL && b->item_room > 0)
		return err_set(reterr, ERR_TOOLARGE, "the request is too large");
	if (jv_is(input, JT_STRING))
		return add_text(b, input, reterr);
	while (rc == ERR_OK && jv_is(input, JT_ARRAY) && jv_next(input, &it))
		rc = add_new(b, it.value, reterr);
	return rc;
}

/* --- all of it -----------------------------------------------------------------------------------
 */
static enum err_code
open_history(struct arena *a, const struct store_response *r, struct str provider,
    struct history *ret, struct err *reterr)
{
	struct jval response;
	enum err_code rc = jdoc_parse(a, r->input_json, &ret->input, reterr);
	if (rc == ERR_OK)
		rc = jdoc_parse(a, r->response_json, &response, reterr);
	if (rc == ERR_INPUT)
		rc = err_set(reterr, ERR_INTERNAL, "a kept response cannot be read");
	if (rc != ERR_OK)
		return rc;
	ret->output = jv_get(response, "output");
	ret->is_same_provider = str_eq(r->provider, provider);
	return ERR_OK;
}

static enum err_code
open_all(
    struct builder *b, const struct recall_found *found, struct str provider, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	size_t n = 0;
	if (found->previous != NULL)
		rc = open_history(b->arena, found->previous, provider, &b->previous, reterr);
	for (size_t i = 0; i < b->wants->reference_count; i++)
		if (found->holder_of[i] >= n)
			n = found->holder_of[i] + 1;
	b->holder_of = found->holder_of;
	b->holders = ARENA_NEW_ARRAY(b->arena, struct history, n + 1);
	if (b->holders == NULL)
		return err_set(reterr, ERR_TOOLARGE, "the request is too large");
	b->holder_count = n;
	for (size_t i = 0; rc == ERR_OK && i < n; i++)
		rc = open_history(b->arena, &found->holders[i], provider, &b->holders[i], reterr);
	return rc;
}

/* The client's body with all of the input in it. */
static struct str
write_body(struct builder *b, struct jval root)
{
	struct buf body = BUF_INIT(TEXT_MAX_BYTES + jv_raw(root).len);
	buf_add(&body, STR("{\"input\":["));
	buf_add(&body, buf_str(&b->sent));
	buf_addc(&body, ']');
	add_members(&body, root, "input", "previous_response_id", true);
	buf_addc(&body, '}');
	struct str s = arena_str(b->arena, buf_str(&body));
	buf_done(&body);
	return s;
}

static struct str
write_kept(struct builder *b)
{
	struct buf array = BUF_INIT(b->kept.len + 2);
	buf_addc(&array, '[');
	buf_add(&array, buf_str(&b->kept));
	buf_addc(&array, ']');
	struct str s = arena_str(b->arena, buf_str(&array));
	buf_done(&array);
	return s;
}

enum err_code
recall_build(struct arena *a, struct jval root, const struct recall_wants *wants,
    const struct recall_found *found, struct str provider, bool keep, struct recalled *ret,
    struct err *reterr)
{
	struct builder b = {.arena = a, .wants = wants, .keep = keep, .seen = map_new()};
	bool expand = !recall_is_empty(wants);
	buf_init(&b.sent, TEXT_MAX_BYTES);
	buf_init(&b.kept, TEXT_MAX_BYTES);
	enum err_code rc = open_all(&b, found, provider, reterr);
	if (rc == ERR_OK) {
		recall_items(&b, b.previous.input, &b.previous);
		recall_items(&b, b.previous.output, &b.previous);
		rc = add_input(&b, jv_get(root, "input"), reterr);
	}
	if (rc == ERR_OK) {
		struct recalled r = {
		    .body = expand ? write_body(&b, root) : STR_NULL,
		    .input = keep ? write_kept(&b) : STR_NULL,
		    .item_ids = b.item_ids,
		    .item_count = b.item_count,
		};
		if (arena_overflowed(a) || b.sent.overflowed || b.kept.overflowed)
			rc = err_set(reterr, ERR_TOOLARGE,
			    "the request with all that came before is too large");
		else
			*ret = r;
	}
	buf_done(&b.sent);
	buf_done(&b.kept);
	map_free(&b.seen);
	for (size_t i = 0; i < b.holder_count; i++)
		map_free(&b.holders[i].items);
	return rc;
}
