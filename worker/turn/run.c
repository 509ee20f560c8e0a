/* Our tool calls of one round, one at a time, in the order the model wrote them. */
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "ipc/board.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/http/http.h"
#include "worker/request.h"
#include "worker/turn/gateway_tool.h"
#include "worker/turn/result_text.h"
#include "worker/turn/turn.h"

static void run_next(struct turn *t);
static void execute(struct turn *t);

/* --- a finished call -----------------------------------------------------------------------------
 */
static struct code_record
record_of(struct turn *t, const struct result_text *r, struct str error_code)
{
	struct arena *a = t->req->arena;
	struct code_record rec = t->running->shown;
	rec.ran = error_code.len == 0;
	rec.error_code = error_code;
	rec.error_message = r->failure;
	rec.out = r->out;
	rec.err = r->err;
	rec.return_code = r->return_code;
	rec.edit = t->run_edit;
	rec.file_ids = ARENA_NEW_ARRAY(a, struct str, r->file_count);
	rec.file_names = ARENA_NEW_ARRAY(a, struct str, r->file_count);
	for (size_t i = 0; i < r->file_count && rec.file_names != NULL; i++) {
		if (r->files[i].file_id.len == 0)
			continue;
		rec.file_ids[rec.file_count] = r->files[i].file_id;
		rec.file_names[rec.file_count++] = r->files[i].name;
	}
	return rec;
}

/* The model's side: one more result in the message that answers this round. Returns its text. */
static struct str
add_result(struct turn *t, const struct result_text *r)
{
	struct buf text = BUF_INIT(RESULT_TEXT_MAX_BYTES);
	result_text_write(r, &text);
	struct str said = arena_str(t->req->arena, buf_str(&text));
	buf_done(&text);
	struct part *p = message_add(t->plan.conv, t->results, PART_RESULT);
	struct part *body = ARENA_NEW(t->req->arena, struct part);
	if (p != NULL && body != NULL) {
		body->kind = PART_TEXT;
		body->text = said;
		p->id = t->running->id;
		p->name = t->plan.tools.names[t->running->tool];
		p->content = body;
		t->plan.conv->added_bytes += said.len;
	}
	return said;
}

static void
call_is_done(struct turn *t, const struct result_text *r, struct str error_code)
{
	bool is_error = result_is_error(r);
	t->billed += is_error ? 0 : 1;
	t->errors += is_error ? 1 : 0;
	t->req->code_runs++;
	board_count(t->req->env->slot, BC_CODE_RUNS, 1);
	if (is_error)
		board_count(t->req->env->slot, BC_CODE_ERRORS, 1);
	struct code_record rec = record_of(t, r, error_code);
	turn_live_result(t, &rec);
	carry_add_run(&t->carry, t->req->arena, &rec, add_result(t, r));
	t->running = t->running->next;
}

static void
call_failed(struct turn *t, struct str why, struct str error_code)
{
	struct result_text r = {.failure = why};
	call_is_done(t, &r, error_code);
}

static void
on_stored(void *arg, struct output_file *files)
{
	struct turn *t = arg;
	t->outputs = NULL;
	size_t n = 0, i = 0;
	for (const struct output_file *f = files; f != NULL; f = f->next)
		n++;
	struct result_file *list = ARENA_NEW_ARRAY(t->req->arena, struct result_file, n);
	for (const struct output_file *f = files; f != NULL && list != NULL; f = f->next)
		list[i++] = (struct result_file){f->name, f->file_id};
	struct result_text r = {
	    .out = t->run_out,
	    .err = t->run_err,
	    .return_code = t->run_code,
	    .files = list,
	    .file_count = i,
	    .edit = t->input.tool == CODE_TOOL_EDITOR ? &t->run_edit : NULL,
	    .path = t->input.edit.path,
	};
	call_is_done(t, &r, STR(""));
	run_next(t);
}

/* --- execution -----------------------------------------------------------------------------------
 */
static bool
on_file_begin(void *arg, struct str path, uint64_t size)
{
	struct turn *t = arg;
	return outputs_file_begin(t->outputs, path, size);
}

static void
on_file_data(void *arg, struct str bytes)
{
	struct turn *t = arg;
	outputs_file_data(t->outputs, bytes);
}

static void
on_file_end(void *arg, bool whole)
{
	struct turn *t = arg;
	outputs_file_end(t->outputs, whole);
}

static struct str
clean(struct turn *t, struct str bytes, uint64_t total, struct str note, bool *ret_is_cut)
{
	struct buf b = BUF_INIT(RESULT_CLEAN_MAX_BYTES);
	*ret_is_cut = result_clean(bytes, total, note, &b);
	struct str s = arena_str(t->req->arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
session_failed(struct turn *t, const struct err *err)
{
	bool is_broken = code_session_is_broken(t->session);
	outputs_cancel(&t->outputs);
	if (!is_broken && err->code == ERR_TOOLARGE) {
		call_failed(
		    t, STR("the input is too large; nothing was run"), STR("invalid_tool_input"));
		run_next(t);
		return;
	}
	/* Given up over there while the model thought: nothing has run in it that could be lost. */
	if (is_broken && err->code == ERR_NOTFOUND && !t->session_is_used && !t->has_reopened) {
		code_session_close(&t->session);
		t->has_reopened = true;
		turn_with_session(t, execute);
		return;
	}
	log_warn("code execution failed", LOG_C("request_id", t->req->id), LOG_ERR(err));
	struct str why = STR("the code sandbox failed");
	if (err->code == ERR_UNSUPPORTED)
		why = (t->plan.decision.kinds & TOOL_MASK_PYTHON) != 0
			  ? STR("the code sandbox does not run this kind of tool; write Python for "
				"code_execution instead")
			  : STR("the code sandbox does not run this kind of tool");
	else if (!is_broken && err->code == ERR_INPUT)
		why = STR("the code sandbox refuses this input; nothing was run");
	if (is_broken) {
		code_session_close(&t->session);
		why = STR("the code sandbox failed; variables and files of earlier calls are lost");
	}
	call_failed(t, why, STR("unavailable"));
	run_next(t);
}

/* True: it was refused, did not come to an end, or shows more than a model is told. */
static bool
edit_failed(struct turn *t, const struct code_result *result)
{
	struct buf why = BUF_INIT(4096);
	struct str code;
	bool is_view = t->input.edit.command == CODE_EDIT_VIEW;
	bool is_long = is_view && result->out.len > RESULT_STREAM_MAX_BYTES;
	if (result->edit != NULL && result->edit->error == CODE_EDIT_OK && !is_long)
		return false;
	outputs_cancel(&t->outputs);
	if (result->edit == NULL) {
		code = result->timed_out ? STR("execution_time_exceeded") : STR("unavailable");
		buf_add(&why, result->timed_out ? STR("the editor took longer than it may")
						: STR("the editor did not answer"));
	} else {
		code = result_edit_refusal(
		    is_long ? CODE_EDIT_TOO_LARGE : result->edit->error, t->input.edit.path, &why);
	}
	call_failed(t, arena_str(t->req->arena, buf_str(&why)), code);
	buf_done(&why);
	run_next(t);
	return true;
}

static struct edit_record
edit_record_of(const struct code_edit *e, const struct code_edit_result *r, bool is_cut)
{
	static const enum edit_answer answers[] = {
	    [CODE_EDIT_VIEW] = EDIT_ANSWER_VIEW,
	    [CODE_EDIT_CREATE] = EDIT_ANSWER_CREATE,
	    [CODE_EDIT_STR_REPLACE] = EDIT_ANSWER_REPLACE,
	};
	return (struct edit_record){
	    .answer = answers[e->command],
	    .is_update = r->is_update,
	    .is_directory = r->is_directory,
	    .is_cut = is_cut,
	    .first_line = r->first_line,
	    .line_count = r->line_count,
	    .total_lines = r->total_lines,
	    .old_start = r->old_start,
	    .old_lines = r->old_lines,
	    .new_start = r->new_start,
	    .new_lines = r->new_lines,
	};
}

static void
count_ends(struct board_slot *slot, const struct code_result *r)
{
	if (r->timed_out)
		board_count(slot, BC_KILLS_TIMEOUT, 1);
	else if (r->flooded)
		board_count(slot, BC_KILLS_FLOOD, 1);
	else if (r->out_of_memory)
		board_count(slot, BC_KILLS_MEMORY, 1);
	else if (r->died)
		board_count(slot, BC_KILLS_DIED, 1);
}

static void
on_run_done(void *arg, const struct code_result *result)
{
	struct turn *t = arg;
	bool is_edit = t->input.tool == CODE_TOOL_EDITOR;
	if (result->failed != NULL) {
		session_failed(t, result->failed);
		return;
	}
	t->session_is_used = true;
	count_ends(t->req->env->slot, result);
	if (is_edit && edit_failed(t, result))
		return;
	bool is_cut, is_err_cut;
	size_t said = result->err.len - result->err_note_bytes;
	t->run_out = clean(t, result->out, result->out_total, STR(""), &is_cut);
	t->run_err = clean(t, str_sub(result->err, 0, said), result->err_total,
	    str_from(result->err, said), &is_err_cut);
	if (is_edit)
		t->run_edit = edit_record_of(&t->input.edit, result->edit, is_cut);
	t->run_code = is_edit ? 0 : result->return_code;
	for (size_t i = 0; i < result->omitted_count; i++)
		outputs_name_only(t->outputs, result->omitted[i].path);
	outputs_finish(t->outputs, on_stored, t);
}

static const struct code_run_ops run_ops = {on_file_begin, on_file_data, on_file_end, on_run_done};

static void
execute(struct turn *t)
{
	int64_t hours = t->plan.limits.retention_hours;
	struct outputs_owner owner = {
	    .user_id = t->plan.user_id,
	    .workspace_id = t->plan.workspace_id,
	    .expires_at_ms = hours > 0 ? clock_wall_ms() + hours * 3600 * 1000 : 0,
	};
	t->outputs = outputs_new(t->req, t->session, &owner);
	uint32_t timeout_ms = t->plan.limits.exec_timeout_ms;
	if (t->input.tool == CODE_TOOL_EDITOR) {
		code_session_edit(t->session, &t->input.edit, timeout_ms, &run_ops, t);
		return;
	}
	enum code_kind kind = t->input.tool == CODE_TOOL_BASH ? CODE_BASH : CODE_PYTHON;
	code_session_exec(t->session, kind, t->input.code, timeout_ms, &run_ops, t);
}

/* --- the calls of a round ------------------------------------------------------------------------
 */
static void
all_ran(struct turn *t)
{
	if (t->has_foreign_call) {
		turn_finish(t, FINISH_TOOL);
		return;
	}
	if (t->rounds < t->plan.limits.max_rounds) {
		gateway_tool_release_choice(t->plan.conv, &t->plan.tools, t->provider->wire);
		turn_round(t);
		return;
	}
	/* Whoever knows the provider's own tool knows how to go on: pause_turn, or incomplete. */
	if (t->plan.decision.native_blocks && t->client->wire != WIRE_CHAT)
		turn_finish(t, FINISH_PAUSE);
	else
		turn_failf(t, 422, "the model asked for more than %u rounds of tool calls",
		    t->plan.limits.max_rounds);
}

static void
on_writable(void *arg)
{
	run_next(arg);
}

/* What a call gave is in memory until the client has it: the next one waits for a slow client. */
static bool
waits_for_client(struct turn *t)
{
	if (!t->has_begun || http_can_write(t->req->x))
		return false;
	http_on_writable(t->req->x, on_writable, t);
	return true;
}

static void
run_next(struct turn *t)
{
	while (t->running != NULL) {
		if (waits_for_client(t))
			return;
		tool_input_read(t->req->arena, t->running->tool, t->running->arguments, &t->input);
		t->run_edit = (struct edit_record){0};
		if (t->billed + t->errors >= LIMIT_TOOL_RUNS) {
			/* an answer of thousands of calls would keep its sandbox for hours */
			call_failed(t, STR("too many calls in one request; nothing was run"),
			    STR("too_many_requests"));
			continue;
		}
		if (t->input.wrong.len == 0) {
			turn_with_session(t, execute);
			return;
		}
		call_failed(t,
		    arena_printf(t->req->arena, "%.*s; nothing was run", STR_FMT(t->input.wrong)),
		    STR("invalid_tool_input"));
	}
	all_ran(t);
}

void
turn_run_calls(struct turn *t)
{
	t->running = t->calls;
	t->results = conversation_add(t->plan.conv, MESSAGE_USER);
	if (t->results == NULL) {
		turn_fail(t, 413, NULL, STR("the conversation is too large"));
		return;
	}
	run_next(t);
}

void
turn_run_close(struct turn *t)
{
	outputs_cancel(&t->outputs);
	turn_session_close(t);
}
