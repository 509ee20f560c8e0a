/* Answers of a Responses server → turn events (openai-wire §3.4, §4 and the deviations of §8).
 *
 * Blocks of this wire carry what a writer of the same wire puts back: BLOCK_START's id is the id of
 * the message or reasoning item (of a call it is the call id), its raw the item's other members. A
 * DELTA_TEXT of a reasoning block that has a raw is the border where a part begins; raw is the
 * part's type, text what parts are set apart with where there are none.
 */
#include "worker/dialect/responses_events.h"

#include "base/limits.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/responses.h"
#include "worker/dialect/usage.h"

static struct responses_events *
self(struct events *e)
{
	return (struct responses_events *)e; /* base is its first member */
}

struct events *
responses_events_new(struct arena *a, turn_on_event *on_event, void *arg)
{
	struct responses_events *r = ARENA_NEW(a, struct responses_events);
	if (r == NULL)
		return NULL;
	events_init(&r->base, a, WIRE_RESPONSES, on_event, arg);
	r->queue.events = &r->base;
	return &r->base;
}

/* --- the response object --- */

static void
read_head(struct responses_events *r, struct jval response)
{
	struct events *e = &r->base;
	struct str id = jv_str(e->scratch, jv_get(response, "id"));
	struct str model = jv_str(e->scratch, jv_get(response, "model"));
	if (e->id.len == 0 && id.len > 0)
		e->id = arena_str(e->arena, id);
	if (e->model.len == 0 && model.len > 0)
		e->model = arena_str(e->arena, model);
}

static void
read_usage(struct responses_events *r, struct jval response)
{
	struct jval usage = jv_get(response, "usage");
	struct token_usage later;
	if (!jv_is(usage, JT_OBJECT))
		return;
	usage_read(WIRE_RESPONSES, usage, &later);
	events_count(&r->base, later);
}

/* Members of the answer that no event stands for: service_tier, temperature, … */
static void
keep_extra(struct responses_events *r, struct jval response)
{
	static const char *const known[] = {"id", "object", "created_at", "completed_at", "status",
	    "error", "incomplete_details", "model", "output", "output_text", "usage", "tools",
	    "instructions"};
	struct buf b = BUF_INIT(65536);
	struct jiter it = {0};
	while (jv_next(response, &it)) {
		bool skip = jv_is(it.value, JT_NULL);
		for (size_t i = 0; i < ARRAY_LEN(known) && !skip; i++)
			skip = jv_str_is(it.key, known[i]);
		if (skip)
			continue;
		buf_addc(&b, b.len > 0 ? ',' : '{');
		buf_add(&b, jv_raw(it.key));
		buf_addc(&b, ':');
		buf_add(&b, jv_raw(it.value));
	}
	if (b.len > 0 && !b.overflowed) {
		buf_addc(&b, '}');
		r->finish.raw = arena_str(r->base.arena, buf_str(&b));
	}
	buf_done(&b);
}

/* --- failure --- */

/* {"code","message"}, flat in an error event, in `error` of a response that failed. Tokens that
 * were used are reported when the answer had begun. */
static void
fail(struct responses_events *r, struct jval error, const char *otherwise)
{
	struct events *e = &r->base;
	struct str code = jv_str(e->scratch, jv_get(error, "code"));
	struct str message = jv_str(e->scratch, jv_get(error, "message"));
	if (code.len == 0)
		code = jv_str(e->scratch, jv_get(error, "type"));
	if (message.len == 0 && jv_is(error, JT_STRING))
		message = jv_str(e->scratch, error);
	if (message.len == 0)
		message = code.len > 0 ? code : str_c(otherwise);
	responses_pump(&r->queue, true);
	events_block_stop(e);
	if (e->started && (e->usage.input >= 0 || e->usage.output >= 0))
		events_usage(e);
	events_error(e, responses_error_status(code), code, message);
}

/* --- the end --- */

static enum finish_reason
reason_of(const struct responses_events *r)
{
	if (r->queue.has_call)
		return FINISH_TOOL;
	return r->queue.has_refusal ? FINISH_REFUSAL : FINISH_STOP;
}

/* What the answer ended for, from its status. A cut or a filter stays what it is, for then a call
 * may be half. False: it failed, and was reported. */
static bool
read_status(struct responses_events *r, struct jval response, struct str status)
{
	struct events *e = &r->base;
	if (str_eq(status, STR("failed")) || str_eq(status, STR("cancelled")) ||
	    str_eq(status, STR("canceled"))) {
		fail(r, jv_get(response, "error"),
		    status.ptr[0] == 'f' ? "the provider failed" : "the answer was cancelled");
		return false;
	}
	if (!str_eq(status, STR("incomplete")))
		return true;
	struct str why =
	    jv_str(e->scratch, jv_get(jv_get(response, "incomplete_details"), "reason"));
	r->finish.reason_raw = arena_str(e->arena, why.len > 0 ? why : status);
	r->finish.reason = finish_of_responses(why);
	r->is_incomplete = true;
	return true;
}

static enum err_code
terminal(struct responses_events *r, struct jval response, struct str status, struct err *reterr)
{
	struct events *e = &r->base;
	read_head(r, response);
	read_usage(r, response);
	responses_output(r, jv_get(response, "output"));
	keep_extra(r, response);
	if (!read_status(r, response, status))
		return ERR_OK;
	r->ended = true;
	return responses_events_end(e, reterr);
}

enum err_code
responses_events_end(struct events *e, struct err *reterr)
{
	struct responses_events *r = self(e);
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "out of memory");
	if (e->over)
		return ERR_OK;
	responses_pump(&r->queue, true);
	if (r->queue.overflowed)
		return err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	if (!r->ended) {
		events_error(e, 502, STR("api_error"), STR("the provider's answer was cut off"));
		return ERR_OK;
	}
	if (!r->is_incomplete)
		r->finish.reason = reason_of(r);
	events_finish(e, &r->finish);
	events_usage(e);
	events_end(e);
	return ERR_OK;
}

/* --- events --- */

/* Status of a terminal event by its name, where the response does not say it. */
static struct str
status_of(struct responses_events *r, struct str type, struct jval response)
{
	struct str status = jv_str(r->base.scratch, jv_get(response, "status"));
	struct str word = str_from(type, sizeof("response.") - 1);
	if (!str_eq(word, STR("completed")) && !str_eq(word, STR("done")))
		return word;
	return status;
}

static bool
is_terminal(struct str type)
{
	static const char *const types[] = {"response.completed", "response.incomplete",
	    "response.failed", "response.cancelled", "response.done"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, str_c(types[i])))
			return true;
	return false;
}

static enum err_code
dispatch(struct responses_events *r, struct jval v, struct err *reterr)
{
	struct events *e = &r->base;
	struct str type = jv_str(e->scratch, jv_get(v, "type"));
	struct jval response = jv_get(v, "response");
	int64_t index = jv_i64_or(jv_get(v, "output_index"), -1);
	if (type.len == 0 || jv_present(jv_get(v, "error"))) {
		if (events_error_object(e, v))
			return ERR_OK;
		return type.len == 0 ? err_set(reterr, ERR_PROTO, "an event without a type")
				     : ERR_OK;
	}
	if (str_eq(type, STR("error"))) {
		fail(r, v, "the provider failed");
		return ERR_OK;
	}
	if (is_terminal(type))
		return terminal(r, response, status_of(r, type, response), reterr);
	if (str_eq(type, STR("response.output_item.added")))
		responses_item_added(r, index, jv_get(v, "item"));
	else if (str_eq(type, STR("response.output_item.done")))
		responses_item_done(r, index, jv_get(v, "item"));
	else if (jv_is(response, JT_OBJECT))
		read_head(r, response); /* created, queued, in_progress */
	enum err_code code = responses_item_event(r, type, v, reterr);
	if (code != ERR_OK)
		return code;
	responses_pump(&r->queue, false);
	if (r->queue.overflowed)
		return err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	return ERR_OK;
}

enum err_code
responses_events_sse(struct events *e, struct str name, struct str data, struct err *reterr)
{
	struct responses_events *r = self(e);
	struct jval v;
	(void)name; /* equals data.type */
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "out of memory");
	if (e->over || data.len == 0)
		return ERR_OK;
	if (str_starts(data, STR("[DONE]"))) { /* of some servers, and not always behind an end */
		r->ended = r->has_items;
		return responses_events_end(e, reterr);
	}
	enum err_code code = events_parse(e, data, &v, reterr);
	return code == ERR_OK ? dispatch(r, v, reterr) : code;
}

enum err_code
responses_events_whole(struct events *e, struct str body, struct err *reterr)
{
	struct responses_events *r = self(e);
	struct jval v;
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "out of memory");
	enum err_code code = events_parse(e, body, &v, reterr);
	if (code != ERR_OK)
		return code;
	struct str status = jv_str(e->scratch, jv_get(v, "status"));
	bool is_response = jv_is(jv_get(v, "output"), JT_ARRAY) || str_eq(status, STR("failed"));
	if (!is_response && events_error_object(e, v))
		return ERR_OK;
	if (!is_response)
		return err_set(reterr, ERR_PROTO, "the answer is no response");
	return terminal(r, v, status, reterr);
}
