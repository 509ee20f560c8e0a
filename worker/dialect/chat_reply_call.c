/* Tool calls of a Chat answer, in pieces or whole, also in the old form of functions. */
#include "worker/dialect/arguments.h"
#include "worker/dialect/chat_reply.h"

static bool
is_custom_tool(const struct chat_reply *c, struct str name)
{
	const struct tool *t = c->base.opt.request != NULL ? c->base.opt.request->tools : NULL;
	for (; t != NULL; t = t->next)
		if (t->raw_wire == WIRE_CHAT && str_eq(t->type, STR("custom")) &&
		    str_eq(t->name, name))
			return true;
	return false;
}

/* The old form holds one call; an accumulator would join the arguments of two. */
static bool
is_surplus(const struct chat_reply *c, const struct chat_answer *ch)
{
	return c->legacy && ch->calls > 0;
}

/* The call's own members, in a delta or in the whole answer. */
static void
write_call(struct chat_reply *c, struct jw *w, struct str arguments)
{
	if (c->legacy) {
		jw_kstr(w, "name", c->block_name);
		jw_kstr(w, "arguments", arguments);
		return;
	}
	jw_kstr(w, "id", c->call_id);
	jw_kcstr(w, "type", c->custom ? "custom" : "function");
	jw_key(w, c->custom ? "custom" : "function");
	jw_object(w);
	jw_kstr(w, "name", c->block_name);
	jw_kstr(w, c->custom ? "input" : "arguments", arguments);
	jw_end_object(w);
	if (c->extra_raw.len > 0)
		jw_kraw(w, "extra_content", c->extra_raw);
}

static void
stream_call_head(struct chat_reply *c, struct chat_answer *ch, struct str arguments)
{
	struct jw w = chat_open_delta(c, ch);
	if (c->legacy) {
		jw_key(&w, "function_call");
		jw_object(&w);
	} else {
		jw_key(&w, "tool_calls");
		jw_array(&w);
		jw_object(&w);
		jw_ki64(&w, "index", ch->calls);
	}
	write_call(c, &w, arguments);
	jw_end_object(&w);
	if (!c->legacy)
		jw_end_array(&w);
	chat_close_delta(c, &w, NULL);
}

static void
stream_arguments(struct chat_reply *c, struct chat_answer *ch, struct str piece)
{
	struct jw w = chat_open_delta(c, ch);
	if (c->legacy) {
		jw_key(&w, "function_call");
		jw_object(&w);
		jw_kstr(&w, "arguments", piece);
		jw_end_object(&w);
	} else {
		jw_key(&w, "tool_calls");
		jw_array(&w);
		jw_object(&w);
		jw_ki64(&w, "index", ch->calls);
		jw_key(&w, "function");
		jw_object(&w);
		jw_kstr(&w, "arguments", piece);
		jw_end_object(&w);
		jw_end_object(&w);
		jw_end_array(&w);
	}
	chat_close_delta(c, &w, NULL);
}

/* Nothing of the call is repeated: some accumulators would join the repeated texts. */
static void
stream_extra(struct chat_reply *c, struct chat_answer *ch)
{
	struct jw w = chat_open_delta(c, ch);
	jw_key(&w, "tool_calls");
	jw_array(&w);
	jw_object(&w);
	jw_ki64(&w, "index", ch->calls);
	jw_kraw(&w, "extra_content", c->extra_raw);
	jw_end_object(&w);
	jw_end_array(&w);
	chat_close_delta(c, &w, NULL);
}

void
chat_call_delta(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev)
{
	if (ev->field == DELTA_RAW && ev->raw_wire == WIRE_CHAT) {
		c->extra_raw = arena_str(c->base.arena, ev->raw);
		if (c->base.opt.stream && !c->custom && !c->legacy)
			stream_extra(c, ch);
		return;
	}
	if (ev->field != DELTA_TEXT || is_surplus(c, ch))
		return;
	if (!c->base.opt.stream || c->custom || !c->args_begun) {
		bool first = c->arguments->len == 0;
		buf_add(c->arguments, first ? arguments_begin(ev->text) : ev->text);
		struct str so_far = buf_str(c->arguments);
		if (!c->base.opt.stream || c->custom || so_far.len == 0 ||
		    (so_far.ptr[0] == 'n' && so_far.len <= 4))
			return; /* blank and null are settled at the end */
		c->args_begun = true;
		stream_arguments(c, ch, so_far);
		return;
	}
	stream_arguments(c, ch, ev->text);
}

/* The one argument that stands for a custom tool's free text. */
static struct str
custom_input(struct chat_reply *c)
{
	struct jval v;
	struct str all = buf_str(c->arguments);
	if (jdoc_parse(c->base.arena, all, &v, NULL) != ERR_OK ||
	    !jv_is(jv_get(v, "input"), JT_STRING))
		return all;
	return jv_str(c->base.arena, jv_get(v, "input"));
}

void
chat_call_stop(struct chat_reply *c, struct chat_answer *ch)
{
	struct str arguments = c->custom ? custom_input(c) : arguments_text(buf_str(c->arguments));
	if (is_surplus(c, ch))
		return;
	if (c->base.opt.stream) {
		if (c->custom)
			stream_call_head(c, ch, arguments);
		else if (!c->args_begun)
			stream_arguments(c, ch, arguments);
	} else {
		struct jw w;
		if (ch->tool_calls->len > 0)
			buf_addc(ch->tool_calls, ',');
		jw_init(&w, ch->tool_calls);
		jw_object(&w);
		write_call(c, &w, arguments);
		jw_end_object(&w);
	}
	ch->calls++;
}

void
chat_call_start(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev)
{
	c->call_id = arena_str(c->base.arena, ev->id);
	c->extra_raw = STR_NULL;
	c->args_begun = false;
	c->custom = is_custom_tool(c, ev->name);
	buf_clear(c->arguments);
	if (c->base.opt.stream && !c->custom && !is_surplus(c, ch))
		stream_call_head(c, ch, STR(""));
}
