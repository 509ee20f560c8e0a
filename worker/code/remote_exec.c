/* One exec: what files there are, the run, what files there are now, then each file that is new.
 *
 * The answer itself may name files; whoever runs the sandbox may as well say nothing about files,
 * so both are looked at. */
#include "base/check.h"
#include "base/mem.h"
#include "sandbox/collect/select.h"
#include "worker/code/remote.h"

/* Beside the text of an answer: its tokens, the names, the candidates. */
#define ARENA_MAX (192u << 20)
/* PROTOCOL_LISTED_MAX paths of PROTOCOL_PATH_MAX bytes, and what belongs to them. */
#define BASELINE_MAX (16u << 20)
#define NOTE_MAX     256u

static void post(struct remote_session *s, struct code_op *op);

/* --- listings -------------------------------------------------------------------------------- */

static bool
lists_files(const struct remote_session *s, const struct code_op *op)
{
	return !s->has_no_listing && op->ops->file_begin != NULL &&
	       s->port.backend->cfg.max_files > 0;
}

static void
ask_listing(struct remote_session *s,
    void (*done)(void *arg, int status, struct str answer, const struct err *err))
{
	struct buf url = BUF_INIT(8192);
	buf_printf(&url, "%s/files/list", s->url);
	const struct remote_ask ask = {.method = "GET",
	    .url = buf_str(&url),
	    .max_answer = PROTOCOL_LISTING_MAX_BYTES,
	    .timeout_ms = REMOTE_ANSWER_MS};
	buf_clear(&s->call.request);
	remote_call_start(&s->call, remote_backend_of(s), &ask, done);
	buf_done(&url);
}

/* Copies what is compared: what else the answer was made of may be a hundred times as much, and
 * this is kept as long as the session. */
static void
set_baseline(struct remote_session *s, const struct protocol_file *files, size_t n)
{
	map_free(&s->baseline);
	arena_free(&s->baseline_arena);
	s->baseline = map_new();
	struct arena *a = s->baseline_arena = arena_new(BASELINE_MAX);
	struct protocol_file *copy = ARENA_NEW_ARRAY(a, struct protocol_file, n);
	for (size_t i = 0; copy != NULL && i < n; i++) {
		copy[i] = (struct protocol_file){.path = arena_str(a, files[i].path),
		    .size = files[i].size,
		    .modified = arena_str(a, files[i].modified)};
		map_put(s->baseline, copy[i].path, &copy[i]);
	}
	s->has_baseline = !arena_overflowed(a);
}

/* False: no listing is to be had. *ret_arena is owned by the caller, else. */
static bool
read_listing(struct remote_session *s, int status, struct str answer, const struct err *err,
    struct arena **ret_arena, struct protocol_file **ret, size_t *ret_count)
{
	struct err e;
	if (err == NULL && (status == 404 || status == 405 || status == 501))
		s->has_no_listing = true; /* an older sandbox */
	if (err != NULL || status < 200 || status > 299)
		return false;
	struct arena *a = arena_new(ARENA_MAX);
	if (protocol_read_listing(a, arena_str(a, answer), ret, ret_count, &e) == ERR_OK) {
		*ret_arena = a;
		return true;
	}
	arena_free(&a);
	return false;
}

static void
on_listed_before(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_session *s = arg;
	struct arena *a;
	struct protocol_file *files;
	size_t n;
	if (read_listing(s, status, answer, err, &a, &files, &n)) {
		set_baseline(s, files, n);
		arena_free(&a);
	}
	post(s, code_session_op(&s->port));
}

/* --- what is to be fetched ------------------------------------------------------------------- */

static bool
is_unchanged(const struct remote_session *s, const struct protocol_file *f)
{
	const struct protocol_file *old = map_get(s->baseline, f->path);
	return old != NULL && old->size == f->size && str_eq(old->modified, f->modified);
}

static void
add_candidate(struct remote_session *s, struct map *seen, struct str path, uint64_t size)
{
	struct remote_candidate *c = &s->candidates[s->candidate_count];
	if (!protocol_name(path, &c->name) || map_get(seen, c->name) != NULL)
		return;
	c->path = path;
	c->size = size;
	map_put(seen, c->name, c);
	s->candidate_count++;
}

/* Names of the answer, in its order, then what is new or changed, in the order of the listing. */
static void
choose(struct remote_session *s, struct protocol_file *files, size_t n, bool has_listing)
{
	struct map *seen = map_new(), *listed = map_new();
	for (size_t i = 0; i < n; i++)
		map_put(listed, files[i].name, &files[i]);
	s->candidates =
	    ARENA_NEW_ARRAY(s->arena, struct remote_candidate, s->result.file_count + n);
	s->omitted = ARENA_NEW_ARRAY(s->arena, struct code_omitted, COLLECT_LISTED_MAX);
	s->candidate_count = s->omitted_count = s->omitted_total = s->next = 0;
	bool has_room = s->candidates != NULL && s->omitted != NULL;
	for (size_t i = 0; has_room && i < s->result.file_count; i++) {
		struct str name = STR("");
		(void)protocol_name(s->result.files[i], &name);
		const struct protocol_file *f = map_get(listed, name);
		add_candidate(s, seen, f != NULL ? f->path : s->result.files[i],
		    f != NULL ? f->size : UINT64_MAX);
	}
	for (size_t i = 0; has_room && has_listing && s->has_baseline && i < n; i++)
		if (!is_unchanged(s, &files[i]))
			add_candidate(s, seen, files[i].path, files[i].size);
	map_free(&seen);
	map_free(&listed);
}

static void
copy_paths(struct remote_session *s)
{
	for (size_t i = 0; i < s->candidate_count; i++) {
		struct remote_candidate *c = &s->candidates[i];
		c->path = arena_str(s->arena, c->path);
		if (!protocol_name(c->path, &c->name)) { /* no memory left for it */
			s->candidate_count = i;
			return;
		}
	}
}

static void
collect(struct remote_session *s, struct arena *listing, struct protocol_file *files, size_t n)
{
	choose(s, files, n, listing != NULL);
	if (listing != NULL) {
		copy_paths(s);
		if (n > 0 || !s->has_baseline)
			set_baseline(s, files, n);
		arena_free(&listing);
	}
	s->bytes_left = s->port.backend->cfg.max_bytes;
	remote_fetch_first(s);
}

static void
on_listed_after(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_session *s = arg;
	struct arena *a = NULL;
	struct protocol_file *files = NULL;
	size_t n = 0;
	code_session_hold(&s->port);
	(void)read_listing(s, status, answer, err, &a, &files, &n);
	collect(s, a, files, n);
	code_session_let_go(&s->port);
}

/* --- the run --------------------------------------------------------------------------------- */

static void
write_request(struct remote_session *s, enum code_kind kind, struct str input, uint32_t timeout_ms)
{
	buf_clear(&s->call.request);
	protocol_write_exec(kind, input, timeout_ms, &s->call.request);
}

static void
ask_exec(struct remote_session *s, uint32_t timeout_ms,
    void (*done)(void *arg, int status, struct str answer, const struct err *err))
{
	const struct code_config *cfg = &s->port.backend->cfg;
	struct buf url = BUF_INIT(8192);
	buf_printf(&url, "%s/exec", s->url);
	const struct remote_ask ask = {.method = "POST",
	    .url = buf_str(&url),
	    .content_type = STR("application/json"),
	    /* Both outputs, each byte escaped. */
	    .max_answer = (size_t)12 * cfg->output_bytes + (1u << 20),
	    .timeout_ms = timeout_ms + REMOTE_ANSWER_MS};
	remote_call_start(&s->call, remote_backend_of(s), &ask, done);
	buf_done(&url);
}

static void
on_plain_ran(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_session *s = arg;
	struct err refusal = s->refusal;
	bool is_refused = err == NULL && (status == 400 || status == 422);
	bool runs = err == NULL && status >= 200 && status <= 299;
	(void)answer;
	code_session_hold(&s->port);
	if (is_refused || runs)
		remote_kinds_learn(
		    remote_backend_of(s), code_session_op(&s->port)->code_kind, runs);
	if (runs)
		(void)err_set(&refusal, ERR_INPUT, "the sandbox refuses the input of a tool");
	remote_session_op_failed(s, &refusal);
	code_session_let_go(&s->port);
}

/* What no sandbox that has the tool would refuse. */
static void
ask_plain(struct remote_session *s, enum code_kind kind)
{
	write_request(s, kind,
	    kind == CODE_BASH ? STR("{\"command\":\"true\"}")
			      : STR("{\"command\":\"view\",\"path\":\".\"}"),
	    1000);
	ask_exec(s, 1000, on_plain_ran);
}

static struct str
kept(const struct remote_session *s, struct str text)
{
	return arena_str(s->arena, str_sub(text, 0, s->port.backend->cfg.output_bytes));
}

/* Copies what is used: what else an answer is made of may be a hundred times as much, and this is
 * kept until the files are here. */
static bool
read_result(struct remote_session *s, enum code_kind kind, struct str answer, struct err *reterr)
{
	struct protocol_result *r = &s->result;
	struct arena *a = arena_new(ARENA_MAX);
	enum err_code rc = protocol_read_result(a, kind, answer, r, reterr);
	if (rc == ERR_OK) {
		struct str *files = ARENA_NEW_ARRAY(s->arena, struct str, r->file_count);
		for (size_t i = 0; files != NULL && i < r->file_count; i++)
			files[i] = arena_str(s->arena, r->files[i]);
		r->files = files;
		r->out = kept(s, r->out);
		r->err = kept(s, r->err);
		if (arena_overflowed(s->arena))
			rc = err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	}
	arena_free(&a);
	return rc == ERR_OK;
}

static void
on_ran(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_session *s = arg;
	struct code_op *op = code_session_op(&s->port);
	struct err e;
	code_session_hold(&s->port);
	if (err == NULL && (status < 200 || status > 299)) {
		(void)remote_status_error(status, &e);
		err = &e;
	}
	if (err == NULL && !read_result(s, op->code_kind, answer, &e)) {
		err_prefix(&e, "the sandbox broke the protocol: ");
		err = &e;
	}
	s->has_result = err == NULL;
	if (err == NULL)
		remote_kinds_learn(remote_backend_of(s), op->code_kind, true);
	if (err != NULL && err->code == ERR_UNSUPPORTED &&
	    remote_kinds_is_open(remote_backend_of(s), op->code_kind)) {
		s->refusal = *err;
		ask_plain(s, op->code_kind);
	} else if (err != NULL) {
		remote_session_op_failed(s, err);
	} else if (lists_files(s, op)) {
		ask_listing(s, on_listed_after);
	} else {
		collect(s, NULL, NULL, 0);
	}
	code_session_let_go(&s->port);
}

static void
post(struct remote_session *s, struct code_op *op)
{
	struct buf input = BUF_INIT(8u * CODE_SOURCE_MAX);
	if (op->edit != NULL)
		protocol_write_edit(op->edit, &input);
	else
		protocol_write_program(op->code_kind, str_n(op->source, op->source_len), &input);
	write_request(s, op->code_kind, buf_str(&input), op->timeout_ms);
	ask_exec(s, op->timeout_ms, on_ran);
	buf_done(&input);
}

void
remote_exec_start(struct remote_session *s, struct code_op *op)
{
	arena_free(&s->arena);
	s->arena = arena_new(ARENA_MAX);
	s->result = (struct protocol_result){0};
	s->has_result = false;
	s->candidate_count = s->omitted_count = s->omitted_total = s->next = 0;
	if (lists_files(s, op) && !s->has_baseline)
		ask_listing(s, on_listed_before);
	else
		post(s, op);
}

/* --- end ------------------------------------------------------------------------------------- */

/* Of a call that was ended the sandbox says so in its last line, which is to be read also where
 * what stands before it is cut. */
static size_t
note_bytes(const struct protocol_result *p)
{
	size_t end = p->err.len;
	if (!p->timed_out || end == 0)
		return 0;
	size_t line = str_rchr(str_sub(p->err, 0, end - 1), '\n');
	size_t bytes = line == SIZE_MAX ? end : end - line - 1;
	return bytes <= NOTE_MAX ? bytes : 0;
}

void
remote_exec_end(struct remote_session *s, struct code_op *op, const struct err *failed)
{
	const struct code_run_ops *ops = op->ops;
	void *arg = op->arg;
	bool has_run = s->port.is_running && s->has_result;
	struct code_result r = {.failed = failed, .return_code = -1};
	remote_fetch_stop(s);
	if (s->port.is_closed)
		return;
	if (has_run) {
		const struct protocol_result *p = &s->result;
		r.timed_out = p->timed_out;
		r.return_code = p->return_code;
		r.out = p->out;
		r.err = p->err;
		r.err_note_bytes = note_bytes(p);
		r.out_total = p->out_total;
		r.err_total = p->err_total;
		r.omitted = s->omitted;
		r.omitted_count = s->omitted_count;
		r.omitted_total = (uint32_t)s->omitted_total;
		r.exec_ms = p->exec_ms;
		r.edit = p->has_edit ? &p->edit : NULL;
	}
	s->has_result = false;
	code_session_hold(&s->port);
	code_op_done(&s->port);
	ops->done(arg, &r);
	if (!s->port.is_closed)
		arena_free(&s->arena);
	code_session_let_go(&s->port);
}
