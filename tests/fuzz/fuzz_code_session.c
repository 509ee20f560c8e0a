/* fuzz_code_session - a worker's session whose other end says whatever the input says
 *
 * The first byte chooses what is asked of the session and when it is closed.
 */
#include <sys/socket.h>

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "tests/unit/session_rig.c" /* NOLINT(bugprone-suspicious-include) */
#include "tests/unit/session_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct code_session *s;
	unsigned begins, ends, dones, left; /* callbacks until it is closed */
};

static void
at(struct seen *v)
{
	if (v->left > 0 && --v->left == 0)
		code_session_close(&v->s);
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
	(void)e;
	at(arg);
}

static bool
on_begin(void *arg, struct str path, uint64_t size)
{
	struct seen *v = arg;
	CHECK(frame_path_ok(path) && size <= 1000);
	v->begins++;
	at(v);
	return true;
}

static void
on_data(void *arg, struct str bytes)
{
	(void)bytes;
	at(arg);
}

static void
on_end(void *arg, bool whole)
{
	struct seen *v = arg;
	(void)whole;
	v->ends++;
	at(v);
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct seen *v = arg;
	CHECK(v->begins == v->ends && c->out.len <= 100);
	v->dones++;
	at(v);
}

static void
on_list(const struct err *e, const struct code_listed *files, size_t n, bool is_all, void *arg)
{
	struct seen *v = arg;
	(void)e, (void)is_all;
	for (size_t i = 0; i < n; i++)
		CHECK(frame_path_ok(files[i].path));
	v->dones++;
	at(v);
}

static void
on_get(void *arg, uint64_t size)
{
	(void)size;
	at(arg);
}

static void
on_got(void *arg, const struct err *e)
{
	(void)e;
	((struct seen *)arg)->dones++;
	at(arg);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct code_get_ops get = {on_get, on_data, on_got};
	static const struct code_run_ops ops = {on_begin, on_data, on_end, on_done};
	struct session_rig r;
	struct seen v = {0};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (size < 1 || size > 60000)
		return 0;
	session_rig_init(&r);
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &v);
	session_rig_lend(&r);
	CHECK(v.s != NULL);
	v.left = data[0] & 7;
	if ((data[0] & 8) != 0)
		code_session_put(v.s, STR("n"), 3, fd_memfd("n"), on_put, &v);
	const struct code_edit edit = {.command = CODE_EDIT_VIEW, .path = STR("x")};
	if ((data[0] & 16) != 0)
		code_session_edit(v.s, &edit, 0, &ops, &v);
	else if ((data[0] & 16) != 0)
		code_session_list(v.s, on_list, &v);
	else if ((data[0] & 32) != 0)
		code_session_get(v.s, STR("f"), &get, &v);
	else
		code_session_exec(v.s, CODE_PYTHON, STR("x"), 0, &ops, &v);
	session_rig_turn(&r);
	(void)!send(r.ctl, data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	session_rig_turn(&r);
	session_rig_drop(&r);
	session_rig_turn(&r);
	CHECK(v.s == NULL || v.dones == 1);
	code_session_close(&v.s);
	session_rig_done(&r);
	return 0;
}
