#include "worker/dialect/reply.h"

#include "base/limits.h"
#include "worker/dialect/code_list.h"

static void
free_buf(void *arg)
{
	buf_done(arg);
}

struct buf *
reply_buf(struct arena *a)
{
	struct buf *b = ARENA_NEW(a, struct buf);
	if (b == NULL)
		return NULL;
	buf_init(b, LIMIT_UPSTREAM_WHOLE_BYTES);
	arena_defer(a, free_buf, b);
	return b;
}

/* Foreign prefixes would tell a client that another wire answered. */
static bool
is_usable(struct str id, const char *prefix)
{
	static const char *const foreign[] = {"msg_", "resp_", "chatcmpl-"};
	if (id.len == 0 || id.len > 128)
		return false;
	if (str_starts(id, str_c(prefix)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		if (str_starts(id, str_c(foreign[i])))
			return false;
	return !str_eq(str_c(prefix), STR("msg_"));
}

void
reply_head(struct reply *r, const struct turn_event *start, const char *id_prefix)
{
	struct str fallback = str_c(r->opt.fallback_id);
	r->started = true;
	if (is_usable(start->id, id_prefix))
		r->id = arena_str(r->arena, start->id);
	else if (str_starts(fallback, str_c(id_prefix)))
		r->id = arena_str(r->arena, fallback);
	else
		r->id = arena_printf(r->arena, "%s%.*s", id_prefix, STR_FMT(fallback));
	r->model = arena_str(r->arena, r->opt.model.len > 0 ? r->opt.model : start->name);
}

const char *
reply_error_type(struct reply *r, const struct turn_event *ev, enum wire w)
{
	bool is_ours = ev->raw_wire == w && ev->error_type.len > 0;
	return is_ours ? arena_cstr(r->arena, ev->error_type) : NULL;
}

void
sse_begin(struct buf *out, const char *name)
{
	if (name != NULL)
		buf_printf(out, "event: %s\n", name);
	buf_add(out, STR("data: "));
}

void
sse_end(struct buf *out)
{
	buf_add(out, STR("\n\n"));
}

void
reply_list_code(struct reply *r, const struct code_record *rec)
{
	if (r == NULL || r->opt.native_code || r->over)
		return;
	if (r->code_list == NULL)
		r->code_list = reply_buf(r->arena);
	if (r->code_list != NULL)
		code_list_add(r->code_list, rec);
}

bool
reply_can_show_code(const struct reply *r)
{
	return r != NULL && r->opt.native_code && !r->over && !r->open;
}

bool
reply_can_begin_code(const struct reply *r)
{
	return reply_can_show_code(r) && r->opt.stream && r->code == REPLY_CODE_NONE;
}
