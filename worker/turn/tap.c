#include "worker/turn/tap.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "worker/dialect/usage.h"

#define SCRATCH_BYTES (64u * 1024u * 1024u)

void
tap_init(struct tap *t, enum wire wire, struct str show_model, bool drop_usage_chunk)
{
	*t = (struct tap){
	    .wire = wire,
	    .show_model = show_model,
	    .drop_usage_chunk = drop_usage_chunk,
	    .usage = TOKEN_USAGE_NONE,
	    .pending = BUF_INIT(LIMIT_SSE_EVENT_BYTES),
	    .scratch = arena_new(SCRATCH_BYTES),
	};
}

void
tap_done(struct tap *t)
{
	buf_done(&t->pending);
	arena_free(&t->scratch);
}

static void
note_usage(struct tap *t, struct jval object)
{
	struct token_usage u;
	usage_read(t->wire, object, &u);
	usage_update(&t->usage, &u);
	t->usage.raw = STR_NULL; /* points into bytes that pass */
}

/* Writes json with the model's span replaced. */
static void
show_alias(struct tap *t, struct str json, struct jval model, struct buf *out)
{
	struct jw w;
	size_t at = jv_offset(model);
	buf_add(out, str_sub(json, 0, at));
	jw_init(&w, out);
	jw_str(&w, t->show_model);
	buf_add(out, str_from(json, at + jv_raw(model).len));
}

/* Where a wire keeps model and usage of an answer: in the event itself or in the object that it
 * carries. */
static struct jval
holder_of(const struct tap *t, struct jval root)
{
	static const char *const carried[] = {
	    [WIRE_CHAT] = "", [WIRE_MESSAGES] = "message", [WIRE_RESPONSES] = "response"};
	struct jval inner = jv_get(root, carried[t->wire]);
	return jv_is(inner, JT_OBJECT) ? inner : root;
}

static void
note_end(struct tap *t, struct jval root)
{
	static const char *const ends[] = {
	    "message_stop", "response.completed", "response.incomplete", "response.failed"};
	struct jval type = jv_get(root, "type");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		t->has_end |= jv_str_is(type, ends[i]);
	if (jv_present(jv_get(root, "error")) || jv_str_is(type, "error") ||
	    jv_str_is(type, "response.failed"))
		t->has_error = true;
}

/* False: drop the event. When *ret_model is present the alias goes in its place. */
static bool
inspect(struct tap *t, struct jval root, struct jval *ret_model)
{
	*ret_model = JV_ABSENT;
	struct jval holder = holder_of(t, root);
	if (jv_is(jv_get(holder, "model"), JT_STRING))
		*ret_model = jv_get(holder, "model");
	struct jval usage = jv_get(holder, "usage");
	if (jv_is(usage, JT_OBJECT))
		note_usage(t, usage);
	note_end(t, root);
	bool is_usage_chunk = t->wire == WIRE_CHAT && jv_is(usage, JT_OBJECT) &&
			      jv_is(jv_get(root, "choices"), JT_ARRAY) &&
			      jv_count(jv_get(root, "choices")) == 0;
	return !(is_usage_chunk && t->drop_usage_chunk);
}

static bool
look(struct tap *t, struct str json, struct jval *ret_model)
{
	struct jval root;
	*ret_model = JV_ABSENT;
	return jdoc_parse(t->scratch, json, &root, NULL) != ERR_OK || inspect(t, root, ret_model);
}

/* The payload of an event with exactly one data line, else STR_NULL (then it is passed on unread).
 */
static struct str
single_data(struct str event)
{
	struct str found = STR_NULL, line;
	for (struct str rest = event; str_split(&rest, '\n', &line);) {
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (!str_starts(line, STR("data:")))
			continue;
		if (found.ptr != NULL)
			return STR_NULL;
		found = str_from(line, 5);
		if (found.len > 0 && found.ptr[0] == ' ')
			found = str_from(found, 1);
	}
	return found;
}

/* Does a member of this name (with its quotes) hold something other than null? */
static bool
says(struct str data, struct str name)
{
	for (;;) {
		size_t at = str_find(data, name);
		if (at == SIZE_MAX)
			return false;
		data = str_from(data, at + name.len);
		size_t i = 0;
		while (i < data.len && (data.ptr[i] == ' ' || data.ptr[i] == ':'))
			i++;
		if (i > 0 && i < data.len && data.ptr[i] != 'n')
			return true;
	}
}

static bool
tells_the_end(struct str data)
{
	return str_find(data, STR("response.completed")) != SIZE_MAX ||
	       str_find(data, STR("response.incomplete")) != SIZE_MAX ||
	       str_find(data, STR("response.failed")) != SIZE_MAX;
}

static bool
is_worth_reading(const struct tap *t, struct str data)
{
	return (t->show_model.len > 0 && str_find(data, STR("\"model\"")) != SIZE_MAX) ||
	       says(data, STR("\"usage\"")) || says(data, STR("\"error\"")) ||
	       str_find(data, STR("message_stop")) != SIZE_MAX ||
	       (t->wire == WIRE_RESPONSES && tells_the_end(data));
}

static void
pass_event(struct tap *t, struct str event, struct buf *out)
{
	struct str data = single_data(event);
	struct jval model = JV_ABSENT;
	if (t->has_end) /* nothing may follow the answer's last event */
		return;
	t->events += data.ptr != NULL;
	if (str_eq(data, STR("[DONE]")))
		t->has_end = true;
	if (t->wire == WIRE_CHAT && !t->has_finish)
		t->has_finish = says(data, STR("\"finish_reason\""));
	if (data.ptr == NULL || !is_worth_reading(t, data)) {
		buf_add(out, event);
		return;
	}
	if (look(t, data, &model)) {
		if (t->show_model.len > 0 && jv_is(model, JT_STRING)) {
			buf_add(out, str_sub(event, 0, (size_t)(data.ptr - event.ptr)));
			show_alias(t, data, model, out);
			buf_add(out, str_from(event, (size_t)(data.ptr - event.ptr) + data.len));
		} else {
			buf_add(out, event);
		}
	}
	arena_reset(t->scratch);
}

/* Length of the first event in s with its blank line, or 0. *ret_safe: no event can end before it.
 */
static size_t
event_length(struct str s, size_t from, size_t *ret_safe)
{
	for (size_t i = from; i < s.len; i++) {
		if (s.ptr[i] != '\n')
			continue;
		size_t next = i + 1;
		if (next < s.len && s.ptr[next] == '\r')
			next++;
		if (next < s.len && s.ptr[next] == '\n')
			return next + 1;
		if (next >= s.len) {
			*ret_safe = i;
			return 0;
		}
	}
	*ret_safe = s.len;
	return 0;
}

enum err_code
tap_stream(struct tap *t, struct str bytes, struct buf *out, struct err *reterr)
{
	buf_add(&t->pending, bytes);
	if (t->pending.overflowed)
		return err_set(
		    reterr, ERR_TOOLARGE, "an event of the provider's stream is too large");
	struct str rest = buf_str(&t->pending);
	size_t n;
	while ((n = event_length(rest, t->scanned, &t->scanned)) > 0) {
		pass_event(t, str_sub(rest, 0, n), out);
		rest = str_from(rest, n);
		t->scanned = 0;
	}
	buf_consume(&t->pending, t->pending.len - rest.len);
	return ERR_OK;
}

static bool
is_json(struct tap *t, struct str text)
{
	struct jval root;
	bool ok = jdoc_parse(t->scratch, text, &root, NULL) == ERR_OK;
	arena_reset(t->scratch);
	return ok;
}

void
tap_stream_end(struct tap *t, struct buf *out)
{
	struct str data = single_data(buf_str(&t->pending));
	if (str_eq(data, STR("[DONE]")) || (data.len > 0 && is_json(t, data))) {
		bool was_ended = t->has_end;
		pass_event(t, buf_str(&t->pending), out);
		if (!was_ended)
			buf_add(out, STR("\n\n"));
	}
	buf_clear(&t->pending);
	t->scanned = 0;
	if (t->has_finish && !t->has_end && !t->has_error) {
		t->has_end = true;
		buf_add(out, STR("data: [DONE]\n\n"));
	}
}

bool
tap_whole(struct tap *t, struct str body, struct buf *out)
{
	struct jval root, model = JV_ABSENT;
	enum err_code rc = jdoc_parse(t->scratch, body, &root, NULL);
	bool is_object = rc == ERR_OK && jv_is(root, JT_OBJECT);
	if (is_object)
		(void)inspect(t, root, &model);
	t->has_end = true;
	if (t->show_model.len > 0 && jv_is(model, JT_STRING))
		show_alias(t, body, model, out);
	else if (is_object || rc == ERR_NOMEM) /* too large to be looked at: unread */
		buf_add(out, body);
	arena_reset(t->scratch);
	return is_object || rc == ERR_NOMEM;
}
