/* fuzz_code_session - a worker's session, step by step: what is asked of it, what its other end
 * says, pauses, ends and closes in any order
 *
 * The input is a script: one byte says what happens next, the bytes behind it with what. Whatever
 * the script: every call that was made is answered exactly once, or the session was closed before;
 * nothing is heard of a closed one; files begin and end in pairs and keep to their limits.
 */
#include <sys/socket.h>

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "tests/unit/session_rig.c" /* NOLINT(bugprone-suspicious-include) */
#include "tests/unit/session_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLS_MAX 32u

struct seen {
	struct session_rig rig;
	struct code_session *s;
	struct str script;
	unsigned asked, answered;
	/* Callbacks until one of them does it; 0: none. */
	unsigned until_close, until_ask, until_pause;
	bool in_file, in_get, is_pushing;
	uint64_t get_left;
	unsigned files;
	uint64_t file_bytes;
};

static uint8_t
byte(struct seen *v)
{
	if (v->script.len == 0)
		return 0;
	uint8_t b = (uint8_t)v->script.ptr[0];
	v->script = str_from(v->script, 1);
	return b;
}

static struct str
bytes(struct seen *v, size_t n)
{
	struct str s = str_sub(v->script, 0, n);
	v->script = str_from(v->script, s.len);
	return s;
}

static void
close_now(struct seen *v)
{
	code_session_close(&v->s);
	v->in_file = v->in_get = v->is_pushing = false;
}

static void ask(struct seen *v, uint8_t what);

static bool
is_now(unsigned *until)
{
	return *until > 0 && --*until == 0;
}

/* In every callback. */
static void
at(struct seen *v)
{
	CHECK(v->s != NULL);
	if (is_now(&v->until_ask))
		ask(v, byte(v) % 7);
	if (is_now(&v->until_pause))
		code_session_pause(v->s);
	if (is_now(&v->until_close))
		close_now(v);
}

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	(void)e;
	((struct seen *)arg)->s = s;
}

static void
on_put(const struct err *e, void *arg)
{
	struct seen *v = arg;
	if (e != NULL)
		v->is_pushing = false; /* what is pushed from here on is dropped */
	v->answered++;
	at(v);
}

static void
on_room(void *arg)
{
	at(arg);
}

static bool
on_begin(void *arg, struct str path, uint64_t size)
{
	struct seen *v = arg;
	CHECK(!v->in_file && frame_path_ok(path) && ++v->files <= 2);
	v->file_bytes += size;
	CHECK(v->file_bytes <= 1000);
	v->in_file = (size & 1) == 0;
	bool wants = v->in_file;
	at(v);
	return wants;
}

static void
on_data(void *arg, struct str s)
{
	struct seen *v = arg;
	CHECK(v->in_file && s.len <= 1000);
	at(v);
}

static void
on_end(void *arg, bool whole)
{
	struct seen *v = arg;
	(void)whole;
	CHECK(v->in_file);
	v->in_file = false;
	at(v);
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct seen *v = arg;
	CHECK(!v->in_file && c->out.len <= 100 + 256 && c->err.len <= 100 + 256);
	CHECK(c->err_note_bytes <= c->err.len);
	for (size_t i = 0; i < c->omitted_count; i++)
		CHECK(frame_path_ok(c->omitted[i].path));
	v->answered++;
	v->files = 0;
	v->file_bytes = 0;
	at(v);
}

static void
on_list(const struct err *e, const struct code_listed *files, size_t n, bool is_all, void *arg)
{
	struct seen *v = arg;
	(void)e, (void)is_all;
	v->answered++;
	at(v);
	for (size_t i = 0; i < n; i++) /* still ours after a close */
		CHECK(frame_path_ok(files[i].path));
}

static void
on_get(void *arg, uint64_t size)
{
	struct seen *v = arg;
	CHECK(!v->in_get);
	v->in_get = true;
	v->get_left = size;
	at(v);
}

static void
on_got_data(void *arg, struct str s)
{
	struct seen *v = arg;
	CHECK(v->in_get && s.len <= v->get_left);
	v->get_left -= s.len;
	at(v);
}

static void
on_got(void *arg, const struct err *e)
{
	struct seen *v = arg;
	CHECK(e != NULL || (v->in_get && v->get_left == 0));
	v->in_get = false;
	v->answered++;
	at(v);
}

static const struct code_get_ops get_ops = {on_get, on_got_data, on_got};
static const struct code_run_ops run_ops = {on_begin, on_data, on_end, on_done};

/* --- what is asked ------------------------------------------------------------------------------
 */
static void
ask(struct seen *v, uint8_t what)
{
	static const struct code_edit edit = {.command = CODE_EDIT_VIEW, .path = STR_INIT("x")};
	static const char *const names[] = {"n", "f", "../x", "a/b"};
	struct str name = str_c(names[byte(v) & 3]);
	if (v->s == NULL || v->is_pushing || v->asked == CALLS_MAX)
		return;
	v->asked++;
	switch (what) {
	case 0:
		code_session_exec(v->s, CODE_PYTHON, STR("x"), 0, &run_ops, v);
		break;
	case 1:
		code_session_edit(v->s, &edit, 0, &run_ops, v);
		break;
	case 2:
		code_session_list(v->s, on_list, v);
		break;
	case 3:
		code_session_get(v->s, name, &get_ops, v);
		break;
	case 4:
		code_session_put(v->s, name, byte(v), fd_memfd("n"), on_put, v);
		break;
	case 5:
		v->is_pushing = true;
		code_session_put_begin(v->s, name, byte(v), on_room, on_put, v);
		break;
	default:
		code_session_convert(v->s, CODE_EXTRACT_PDF, name, 0, &run_ops, v);
		break;
	}
}

static void
push(struct seen *v, bool is_end)
{
	struct str s = bytes(v, byte(v));
	if (v->s == NULL || !v->is_pushing)
		return;
	if (!is_end) {
		(void)code_session_put_data(v->s, s);
		return;
	}
	v->is_pushing = false;
	code_session_put_end(v->s);
}

/* --- what the other end says --------------------------------------------------------------------
 */
static void
say(struct seen *v, const void *p, size_t n)
{
	if (v->rig.ctl >= 0)
		(void)!send(v->rig.ctl, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
say_frame(struct seen *v, uint8_t type, const void *p, size_t n)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, type, (uint32_t)n);
	say(v, head, sizeof(head));
	say(v, p, n);
}

/* Well formed; whether it fits is another matter. */
static void
say_something(struct seen *v)
{
	uint8_t p[FRAME_FIXED_MAX + 256], what = byte(v), a = byte(v), b = byte(v);
	struct str path = bytes(v, 1 + (a & 3));
	struct frame_file file = {b, path};
	struct frame_omitted omitted = {b, a % FRAME_OMIT_END_, path};
	struct frame_entry entry = {b, a, path};
	switch (what % 9) {
	case 0:
		say_frame(v, FRAME_RESULT, p,
		    frame_result_put(p, &(struct frame_result){a & FRAME_RESULT_FLAGS, b, 1}));
		break;
	case 1:
		say_frame(v, FRAME_FILE, p, frame_file_put(p, &file));
		break;
	case 2:
		memset(p, 'd', b);
		say_frame(v, FRAME_FILE_DATA, p, b);
		break;
	case 3:
		say_frame(
		    v, FRAME_FILE_END, p, frame_file_end_put(p, &(struct frame_file_end){a & 1}));
		break;
	case 4:
		say_frame(v, FRAME_OMITTED, p, frame_omitted_put(p, &omitted));
		break;
	case 5:
		say_frame(v, FRAME_END, p, frame_end_put(p, &(struct frame_end){a & 3, b, 0}));
		break;
	case 6:
		say_frame(v, FRAME_ENTRY, p, frame_entry_put(p, &entry));
		break;
	case 7:
		say_frame(v, (a & 1) != 0 ? FRAME_PUT_DONE : FRAME_GET_FAILED, p,
		    frame_put_done_put(p, &(struct frame_put_done){b}));
		break;
	default:
		say_frame(v, FRAME_EDITED, p,
		    frame_edited_put(p,
			&(struct frame_edited){
			    .error = a % FRAME_EDIT_ERROR_END_, .flags = b & 3, .line_count = 1}));
		break;
	}
}

/* --- steps --------------------------------------------------------------------------------------
 */
static void
print(struct seen *v)
{
	uint8_t how = byte(v);
	struct str s = bytes(v, how & 63);
	int fd = (how & 64) != 0 ? v->rig.err : v->rig.out;
	if (fd >= 0)
		(void)!write(fd, s.ptr, s.len);
}

static void
turn(struct seen *v)
{
	char in[65536];
	session_rig_turn(&v->rig);
	while (v->rig.ctl >= 0 && recv(v->rig.ctl, in, sizeof(in), MSG_DONTWAIT) > 0)
		session_rig_turn(&v->rig);
}

static void
step(struct seen *v)
{
	uint8_t what = byte(v) & 31;
	if (what < 7) {
		ask(v, what);
	} else if (what == 7 || what == 8) {
		push(v, what == 8);
	} else if (what == 9) {
		uint8_t type = byte(v);
		struct str s = bytes(v, byte(v));
		say_frame(v, type, s.ptr, s.len);
	} else if (what == 10) {
		struct str s = bytes(v, byte(v));
		say(v, s.ptr, s.len);
	} else if (what == 11) {
		print(v);
	} else if (what == 12 && v->s != NULL) {
		code_session_pause(v->s);
	} else if (what == 13 && v->s != NULL) {
		code_session_resume(v->s);
	} else if (what == 14) {
		uint8_t b = byte(v);
		unsigned *until[] = {
		    &v->until_close, &v->until_ask, &v->until_pause, &v->until_ask};
		*until[b >> 6] = b & 15;
	} else if (what == 15) {
		session_rig_drop(&v->rig);
	} else if (what == 16 && v->rig.spawner >= 0) {
		int old = session_rig_replace(&v->rig);
		fd_close(&old);
	} else if (what == 17 && v->s != NULL) {
		close_now(v);
	} else if (what < 24) {
		turn(v);
	} else {
		say_something(v);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen v = {.script = str_n(data, size)};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (size > 4096)
		return 0;
	session_rig_init(&v.rig);
	(void)code_session_open(v.rig.backend, STR("w"), 0, on_open, &v);
	session_rig_lend(&v.rig);
	CHECK(v.s != NULL);
	(void)fd_set_nonblock(v.rig.out, true);
	(void)fd_set_nonblock(v.rig.err, true);
	while (v.script.len > 0)
		step(&v);
	session_rig_drop(&v.rig);
	v.until_pause = 0;
	if (v.s != NULL)
		code_session_resume(v.s);
	turn(&v);
	CHECK(v.s == NULL || v.asked == v.answered);
	CHECK(v.answered <= v.asked);
	code_session_close(&v.s);
	session_rig_done(&v.rig);
	return 0;
}
