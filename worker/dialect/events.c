#include "worker/dialect/events.h"

#include "base/limits.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/usage.h"

#define SCRATCH_KEEP_BYTES 65536u
#define USAGE_RAW_BYTES    65536u

static void
free_own(void *arg)
{
	struct events *e = arg;
	arena_free(&e->scratch);
	buf_done(&e->usage_raw);
}

void
events_init(struct events *e, struct arena *a, enum wire wire, turn_on_event *fn, void *arg)
{
	e->arena = a;
	e->wire = wire;
	e->on_event = fn;
	e->arg = arg;
	e->usage = TOKEN_USAGE_NONE;
	buf_init(&e->usage_raw, USAGE_RAW_BYTES);
	e->scratch = arena_new(LIMIT_ARENA_REQUEST_BYTES);
	arena_defer(a, free_own, e);
}

enum err_code
events_parse(struct events *e, struct str text, struct jval *ret, struct err *reterr)
{
	if (arena_used(e->scratch) > SCRATCH_KEEP_BYTES)
		arena_reset(e->scratch);
	enum err_code code = jdoc_parse(e->scratch, text, ret, reterr);
	if (code == ERR_INPUT) /* the provider's fault, not the client's */
		code = ERR_PROTO;
	if (code != ERR_OK && reterr != NULL)
		reterr->code = code;
	return code;
}

/* A raw span may end up in a line of an event stream, so it must be one line. Line ends between the
 * tokens of JSON are white space; inside strings there are none. */
static struct str
one_line(struct events *e, struct str raw)
{
	if (str_chr(raw, '\n') == SIZE_MAX && str_chr(raw, '\r') == SIZE_MAX)
		return raw;
	char *dst = arena_alloc(e->scratch, raw.len);
	size_t n = 0;
	if (dst == NULL)
		return STR("null");
	for (size_t i = 0; i < raw.len; i++)
		if (raw.ptr[i] != '\n' && raw.ptr[i] != '\r')
			dst[n++] = raw.ptr[i];
	return str_n(dst, n);
}

static void
emit(struct events *e, const struct turn_event *given)
{
	struct turn_event ev = *given;
	ev.raw = one_line(e, ev.raw);
	ev.usage.raw = one_line(e, ev.usage.raw);
	if (!e->over && !e->on_event(e->arg, &ev))
		e->over = true;
}

static void
start(struct events *e)
{
	if (e->started)
		return;
	e->started = true;
	emit(e, &(struct turn_event){.type = TURN_START,
		    .id = e->id,
		    .name = e->model,
		    .raw_wire = e->wire,
		    .usage = e->usage});
}

void
events_block_start(struct events *e, const struct turn_event *block)
{
	struct turn_event ev = *block;
	start(e);
	events_block_stop(e);
	ev.type = TURN_BLOCK_START;
	ev.raw_wire = e->wire;
	e->open = true;
	e->kind = ev.kind;
	e->choice = ev.choice;
	emit(e, &ev);
}

void
events_delta(struct events *e, enum delta_field field, struct str text, struct str raw)
{
	emit(e, &(struct turn_event){.type = TURN_BLOCK_DELTA,
		    .kind = e->kind,
		    .choice = e->choice,
		    .field = field,
		    .text = text,
		    .raw = raw,
		    .raw_wire = e->wire});
}

void
events_annotation(struct events *e, struct str raw)
{
	if (raw.len == 0)
		return;
	emit(e, &(struct turn_event){.type = TURN_ANNOTATION,
		    .kind = e->kind,
		    .choice = e->choice,
		    .raw = raw,
		    .raw_wire = e->wire});
}

void
events_block_stop(struct events *e)
{
	if (!e->open)
		return;
	e->open = false;
	emit(e, &(struct turn_event){.type = TURN_BLOCK_STOP,
		    .kind = e->kind,
		    .choice = e->choice,
		    .raw_wire = e->wire});
}

void
events_finish(struct events *e, const struct turn_event *finish)
{
	struct turn_event ev = *finish;
	start(e);
	events_block_stop(e);
	ev.type = TURN_FINISH;
	ev.raw_wire = e->wire;
	emit(e, &ev);
}

/* Some servers report with every chunk: the span is kept in one place. */
void
events_count(struct events *e, struct token_usage later)
{
	buf_clear(&e->usage_raw);
	buf_add(&e->usage_raw, later.raw);
	later.raw = e->usage_raw.overflowed ? STR_NULL : buf_str(&e->usage_raw);
	usage_update(&e->usage, &later);
}

void
events_usage(struct events *e)
{
	start(e);
	e->finished = true;
	emit(e, &(struct turn_event){.type = TURN_USAGE, .usage = e->usage, .raw_wire = e->wire});
}

void
events_end(struct events *e)
{
	emit(e, &(struct turn_event){.type = TURN_END, .raw_wire = e->wire});
	e->over = true;
}

void
events_ping(struct events *e)
{
	emit(e, &(struct turn_event){.type = TURN_PING, .raw_wire = e->wire});
}

void
events_error(struct events *e, int status, struct str type, struct str message)
{
	events_block_stop(e);
	if (status == 0)
		status = error_status_of(type);
	if (status < 400 || status > 599)
		status = 502;
	emit(e, &(struct turn_event){.type = TURN_ERROR,
		    .status = status,
		    .error_type = type,
		    .error_message = message.len > 0 ? message : STR("the provider failed"),
		    .raw_wire = e->wire});
	e->over = true;
}

static void
report(struct events *e, struct jval error, struct jval outer)
{
	struct arena *a = e->scratch;
	struct str type = jv_str(a, jv_get(error, "type"));
	struct str message = jv_str(a, jv_get(error, "message"));
	int64_t status = jv_i64_or(jv_get(error, "code"), 0);
	if (jv_is(error, JT_STRING))
		message = jv_str(a, error);
	if (message.len == 0) /* whatever it is, the client may read it */
		message = jv_raw(jv_is(error, JT_ABSENT) ? outer : error);
	if (status < 400 || status > 599)
		status = jv_i64_or(jv_get(outer, "status"), 0);
	if (error_status_of(type) != 0)
		status = 0;
	events_error(e, status >= 400 && status <= 599 ? (int)status : 0, type, message);
}

bool
events_error_object(struct events *e, struct jval v)
{
	if (jv_is(v, JT_ARRAY))
		v = jv_at(v, 0);
	struct jval error = jv_get(v, "error");
	if (jv_present(error) && !jv_is(error, JT_FALSE)) {
		report(e, error, v);
		return true;
	}
	bool bare = jv_str_is(jv_get(v, "object"), "error") && jv_present(jv_get(v, "message"));
	bool detail = jv_present(jv_get(v, "detail")) && !jv_present(jv_get(v, "choices"));
	if (bare)
		report(e, v, v);
	else if (detail)
		report(e, JV_ABSENT, jv_get(v, "detail"));
	return bare || detail;
}
