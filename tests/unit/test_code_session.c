#include <sys/socket.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "tests/unit/session_rig.h"

static void
no_sigpipe(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

TestSuite(code_session, .timeout = 20, .init = no_sigpipe);

enum where { NOWHERE, AT_OPEN, AT_BEGIN, AT_DATA, AT_FILE_END, AT_DONE, AT_PUT };

struct seen {
	struct code_session *s;
	enum where close_at, pause_at;
	unsigned opens, begins, ends, whole, dones, puts;
	size_t bytes;
	struct err open_err, put_err, failed;
	bool timed_out, died;
	int32_t code;
	char out[200], err[400];
	uint64_t out_total;
	size_t notes;
	char omitted[64];
	uint32_t omitted_total;
};

static void
at(struct seen *v, enum where w)
{
	if (v->pause_at == w && v->s != NULL)
		code_session_pause(v->s);
	if (v->close_at == w)
		code_session_close(&v->s);
}

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct seen *v = arg;
	v->opens++;
	v->s = s;
	if (e != NULL)
		v->open_err = *e;
	at(v, AT_OPEN);
}

static void
on_put(const struct err *e, void *arg)
{
	struct seen *v = arg;
	v->puts++;
	if (e != NULL)
		v->put_err = *e;
	at(v, AT_PUT);
}

static bool
on_begin(void *arg, struct str path, uint64_t size)
{
	struct seen *v = arg;
	(void)size;
	v->begins++;
	at(v, AT_BEGIN);
	return !str_eq(path, STR("skip"));
}

static void
on_data(void *arg, struct str bytes)
{
	struct seen *v = arg;
	v->bytes += bytes.len;
	at(v, AT_DATA);
}

static void
on_end(void *arg, bool whole)
{
	struct seen *v = arg;
	v->ends++;
	v->whole += whole;
	at(v, AT_FILE_END);
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct seen *v = arg;
	v->dones++;
	if (c->failed != NULL)
		v->failed = *c->failed;
	v->timed_out = c->timed_out;
	v->died = c->died;
	v->code = c->return_code;
	(void)snprintf(v->out, sizeof(v->out), "%.*s", STR_FMT(c->out));
	(void)snprintf(v->err, sizeof(v->err), "%.*s", STR_FMT(c->err));
	v->out_total = c->out_total;
	v->notes = c->err_note_bytes;
	v->omitted_total = c->omitted_total;
	for (size_t i = 0; i < c->omitted_count; i++)
		(void)snprintf(v->omitted + strlen(v->omitted),
		    sizeof(v->omitted) - strlen(v->omitted), "%.*s,", STR_FMT(c->omitted[i].path));
	at(v, AT_DONE);
}

static const struct code_run_ops ops = {on_begin, on_data, on_end, on_done};

/* A session with an exec that waits for its answer. */
static void
start(struct session_rig *r, struct seen *v)
{
	session_rig_init(r);
	(void)code_session_open(r->backend, STR("w"), 0, on_open, v);
	cr_assert_eq(v->opens, 0u, "never inside the call");
	session_rig_lend(r);
	cr_assert_eq(v->opens, 1u);
	if (v->s == NULL)
		return;
	code_session_exec(v->s, CODE_PYTHON, STR("x"), 0, &ops, v);
	session_rig_turn(r);
}

static void
stop(struct session_rig *r, struct seen *v)
{
	code_session_close(&v->s);
	session_rig_done(r);
}

Test(code_session, a_call_gives_output_files_and_result)
{
	struct session_rig r;
	struct seen v = {0};
	start(&r, &v);
	cr_assert_eq(write(r.out, "hello", 5), 5);
	cr_assert_eq(write(r.err, "no newline", 10), 10);
	session_rig_result(&r, FRAME_RESULT_TIMED_OUT, 124);
	session_rig_file(&r, "a", "abc");
	session_rig_file(&r, "skip", "defg");
	uint8_t p[64];
	struct frame_omitted o = {5, FRAME_OMIT_COUNT, STR("z")};
	session_rig_send(&r, FRAME_OMITTED, p, frame_omitted_put(p, &o));
	session_rig_end(&r, 2, 9);
	session_rig_turn(&r);
	cr_assert_eq(v.dones, 1u);
	cr_assert_eq(v.failed.code, ERR_OK, "%s", v.failed.msg);
	cr_assert(v.timed_out && !v.died && v.code == 124);
	cr_assert_str_eq(v.out, "hello");
	cr_assert_str_eq(v.err, "no newline\n[the time limit of 1 s was exceeded]\n");
	cr_assert_str_eq(v.err + strlen(v.err) - v.notes, "[the time limit of 1 s was exceeded]\n");
	cr_assert(v.begins == 2 && v.ends == 1 && v.whole == 1 && v.bytes == 3);
	cr_assert_str_eq(v.omitted, "z,");
	cr_assert_eq(v.omitted_total, 9u);
	code_session_close(&v.s);
	cr_assert(session_rig_released(&r));
	stop(&r, &v);
}

Test(code_session, output_is_cut_at_its_limit_and_counted)
{
	struct session_rig r;
	struct seen v = {0};
	char big[5000];
	memset(big, 'b', sizeof(big));
	start(&r, &v);
	cr_assert_eq(write(r.out, big, sizeof(big)), (ssize_t)sizeof(big));
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	cr_assert(v.dones == 1 && strlen(v.out) == 100 && v.out_total == 5000);
	stop(&r, &v);
}

/* K11: read 64 KiB at a time, decoded by nobody here */
Test(code_session, a_character_across_two_reads_is_whole)
{
	struct session_rig r;
	struct seen v = {0};
	start(&r, &v);
	cr_assert_eq(write(r.out, "caf\xc3", 4), 4);
	session_rig_turn(&r);
	cr_assert_eq(write(r.out, "\xa9 \xff", 3), 3);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	cr_assert_eq(v.dones, 1u);
	cr_assert_str_eq(v.out, "caf\xc3\xa9 \xff");
	stop(&r, &v);
}

Test(code_session, a_session_that_breaks_its_protocol_is_dropped)
{
	for (int row = 0; row < 15; row++) {
		struct session_rig r;
		struct seen v = {0};
		uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
		start(&r, &v);
		struct frame_file f = {4, STR("f")};
		if (row >= 4)
			session_rig_result(&r, 0, 0);
		switch (row) {
		case 0: /* garbage */
			cr_assert_eq(write(r.ctl, "GET / HTTP/1.1\r\n\r\n", 18), 18);
			break;
		case 1: /* a file before the result */
			session_rig_file(&r, "a", "x");
			break;
		case 2: /* the end before the result */
			session_rig_end(&r, 0, 0);
			break;
		case 3: /* an answer to a put that is not */
			session_rig_send(&r, FRAME_PUT_DONE, "\0\0\0\0", 4);
			break;
		case 4: /* a second result */
			session_rig_result(&r, 0, 0);
			break;
		case 5: /* over the count */
			session_rig_file(&r, "a", "x");
			session_rig_file(&r, "b", "x");
			session_rig_file(&r, "c", "x");
			break;
		case 6: /* over the bytes */
			f.size = 1001;
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			break;
		case 7: /* more than announced */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_DATA, "12345", 5);
			break;
		case 8: /* a path that climbs */
			session_rig_file(&r, "../a", "x");
			break;
		case 9: /* a worker's frame */
			session_rig_send(&r, FRAME_RUN, p, 24);
			break;
		case 10: /* an end that lies */
			session_rig_end(&r, 1, 0);
			break;
		case 11: /* gone in the middle of a file */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_DATA, "12", 2);
			session_rig_drop(&r);
			break;
		case 12: /* gone */
			session_rig_drop(&r);
			break;
		case 13: /* data that is none, which could go on for ever */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_DATA, NULL, 0);
			break;
		default: /* a short payload */
			session_rig_send(&r, FRAME_FILE, p, 7);
			break;
		}
		session_rig_turn(&r);
		cr_assert_eq(v.dones, 1u, "row %d", row);
		cr_assert_neq(v.failed.code, ERR_OK, "row %d", row);
		cr_assert(code_session_is_broken(v.s), "row %d", row);
		cr_assert_eq(v.begins, v.ends, "row %d: a file was left open", row);
		cr_assert(session_rig_released(&r), "row %d", row);
		/* and what is asked of it from now on fails too, on a later turn */
		code_session_exec(v.s, CODE_PYTHON, STR("y"), 0, &ops, &v);
		code_session_put(v.s, STR("n"), 0, fd_memfd("n"), on_put, &v);
		cr_assert_eq(v.dones, 1u);
		session_rig_turn(&r);
		cr_assert(v.dones == 2 && v.puts == 1 && v.put_err.code != ERR_OK, "row %d", row);
		stop(&r, &v);
	}
}

Test(code_session, it_may_be_closed_in_every_callback)
{
	for (enum where w = AT_OPEN; w <= AT_PUT; w++) {
		struct session_rig r;
		struct seen v = {.close_at = w};
		start(&r, &v);
		if (v.s != NULL && w == AT_PUT) {
			session_rig_result(&r, 0, 0);
			session_rig_end(&r, 0, 0);
			session_rig_turn(&r);
			code_session_put(v.s, STR("n"), 0, fd_memfd("n"), on_put, &v);
			session_rig_turn(&r);
			session_rig_send(&r, FRAME_PUT_DONE, "\0\0\0\0", 4);
		} else if (v.s != NULL) {
			code_session_exec(v.s, CODE_PYTHON, STR("queued"), 0, &ops, &v);
			session_rig_result(&r, 0, 0);
			session_rig_file(&r, "a", "abc");
			session_rig_file(&r, "b", "def");
			session_rig_end(&r, 2, 0);
		}
		session_rig_turn(&r);
		cr_assert_null(v.s, "%d", (int)w);
		cr_assert_eq(v.dones, w >= AT_DONE ? 1u : 0u, "%d", (int)w);
		cr_assert(v.begins <= (w == AT_DONE ? 2u : 1u), "%d", (int)w);
		cr_assert(session_rig_released(&r), "%d", (int)w);
		stop(&r, &v);
	}
}

Test(code_session, a_pause_holds_back_the_files)
{
	struct session_rig r;
	struct seen v = {.pause_at = AT_BEGIN};
	start(&r, &v);
	session_rig_result(&r, 0, 0);
	session_rig_file(&r, "a", "abc");
	session_rig_file(&r, "b", "def");
	session_rig_end(&r, 2, 0);
	session_rig_turn(&r);
	cr_assert(v.begins == 1 && v.bytes == 0 && v.dones == 0);
	v.pause_at = AT_DATA;
	code_session_resume(v.s);
	cr_assert_eq(v.bytes, 0u, "never inside the call");
	session_rig_turn(&r);
	cr_assert(v.bytes == 3 && v.ends == 0);
	v.pause_at = NOWHERE;
	code_session_resume(v.s);
	session_rig_turn(&r);
	cr_assert(v.ends == 2 && v.dones == 1 && v.failed.code == ERR_OK);
	stop(&r, &v);
}

static unsigned rooms;
static void
on_room(void *arg)
{
	(void)arg;
	rooms++;
}

Test(code_session, pushed_bytes_wait_for_room)
{
	struct session_rig r;
	struct seen v = {0};
	static char chunk[65536];
	start(&r, &v);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	size_t sent = 0, size = 2u << 20;
	code_session_put_begin(v.s, STR("p"), size, on_room, on_put, &v);
	while (sent < size && code_session_put_data(v.s, str_n(chunk, sizeof(chunk))))
		sent += sizeof(chunk);
	sent += sizeof(chunk);
	cr_assert_lt(sent, 1u << 20, "somewhere it says stop");
	size_t got = 0;
	char in[65536];
	for (int i = 0; i < 1000 && got < size; i++) {
		session_rig_turn(&r);
		ssize_t n = recv(r.ctl, in, sizeof(in), MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
		while (sent < size && rooms > 0) {
			rooms = code_session_put_data(v.s, str_n(chunk, sizeof(chunk))) ? 1 : 0;
			sent += sizeof(chunk);
		}
	}
	cr_assert_geq(got, size);
	code_session_put_end(v.s);
	session_rig_turn(&r);
	session_rig_send(&r, FRAME_PUT_DONE, "\x1c\0\0\0", 4);
	session_rig_turn(&r);
	cr_assert(v.puts == 1 && v.put_err.code == ERR_TOOLARGE, "%s", v.put_err.msg);
	stop(&r, &v);
}

struct drain {
	int fd;
	_Atomic size_t bytes;
};

static void *
drain(void *arg)
{
	struct drain *d = arg;
	static char in[1 << 20];
	for (ssize_t n; (n = recv(d->fd, in, sizeof(in), 0)) > 0;)
		d->bytes += (size_t)n;
	return NULL;
}

/* However fast it is taken: others have their turn of the loop in between. */
Test(code_session, a_large_file_leaves_the_loop_to_others)
{
	struct session_rig r;
	struct seen v = {0};
	const size_t size = 64u << 20;
	pthread_t thread;
	int fd = fd_memfd("large");
	cr_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	start(&r, &v);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	struct drain d = {.fd = r.ctl};
	cr_assert_eq(pthread_create(&thread, NULL, drain, &d), 0);
	code_session_put(v.s, STR("large"), size, fd, on_put, &v);
	size_t most = 0;
	while (d.bytes < size) {
		size_t before = d.bytes;
		(void)event_base_loop(r.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		size_t now = d.bytes;
		most = now - before > most ? now - before : most;
	}
	cr_expect_leq(most, 4u << 20, "%zu bytes in one turn", most);
	(void)shutdown(r.ctl, SHUT_RDWR);
	(void)pthread_join(thread, NULL);
	stop(&r, &v);
}

Test(code_session, opens_fail_by_name_and_can_be_taken_back)
{
	struct session_rig r;
	struct seen v = {0};
	struct str why;
	session_rig_init(&r);
	cr_assert(code_backend_ready(r.backend, &why), "starting");
	struct code_open *o = code_session_open(r.backend, STR("w"), 0, on_open, &v);
	code_open_cancel(&o);
	session_rig_turn(&r);
	r.lease_id = 1;
	cr_assert(session_rig_released(&r) && v.opens == 0);
	session_rig_answer(&r, LEASE_BUSY, "late"); /* for the one that was taken back */
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &v);
	r.lease_id = 2;
	session_rig_answer(&r, LEASE_BUSY, "full");
	session_rig_turn(&r);
	cr_assert(v.opens == 1 && v.open_err.code == ERR_BUSY);
	struct lease_state st = {
	    .type = LEASE_MSG_STATE, .refused = 1, .text = "layer=seccomp errno=EINVAL"};
	struct err e;
	cr_assert_eq(lease_send(r.spawner, &st, NULL, 0, &e), ERR_OK);
	session_rig_turn(&r);
	cr_assert(!code_backend_ready(r.backend, &why));
	cr_assert(str_eq(why, STR("layer=seccomp errno=EINVAL")));
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &v);
	cr_assert_eq(v.opens, 1u);
	session_rig_turn(&r);
	cr_assert(v.opens == 2 && v.open_err.code == ERR_UNSUPPORTED);
	fd_close(&r.spawner);
	session_rig_turn(&r);
	cr_assert(!code_backend_ready(r.backend, &why), "gone");
	stop(&r, &v);
}

Test(code_session, what_cannot_run_is_refused_and_the_session_stays)
{
	struct session_rig r;
	struct seen v = {0};
	static char big[FRAME_SOURCE_MAX + 1];
	start(&r, &v);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	code_session_exec(v.s, CODE_PYTHON, str_n(big, sizeof(big)), 0, &ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 2 && v.failed.code == ERR_TOOLARGE);
	code_session_exec(v.s, CODE_EDITOR, STR("ls"), 0, &ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 3 && v.failed.code == ERR_UNSUPPORTED);
	code_session_convert(v.s, CODE_EXTRACT_PDF, STR("../x.pdf"), 0, &ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 4 && v.failed.code == ERR_INPUT);
	code_session_put(v.s, STR("../x"), 0, fd_memfd("n"), on_put, &v);
	session_rig_turn(&r);
	cr_assert(v.puts == 1 && v.put_err.code == ERR_INPUT);
	cr_assert(!code_session_is_broken(v.s));
	stop(&r, &v);
}

Test(code_session, a_document_has_its_extractor)
{
	enum code_extractor e = CODE_EXTRACT_HTML;
	cr_assert(code_extractor_of(STR("Application/PDF; x=y"), &e) && e == CODE_EXTRACT_PDF);
	cr_assert(code_extractor_of(
	    STR("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"), &e));
	cr_assert_eq(e, CODE_EXTRACT_XLSX);
	cr_assert(!code_extractor_of(STR("image/png"), &e) && !code_extractor_of(STR(""), &e));
}
