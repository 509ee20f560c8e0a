#include "tests/unit/session_rig.h"

#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

void
session_rig_init(struct session_rig *r)
{
	int pair[2];
	struct err e;
	struct code_config cfg = {.timeout_ms = 1000,
	    .queue_ms = 100,
	    .max_files = 2,
	    .max_bytes = 1000,
	    .output_bytes = 100};
	memset(r, 0, sizeof(*r));
	r->ctl = r->out = r->err = -1;
	CHECK(fd_socketpair_seqpacket(pair, true));
	r->base = event_base_new();
	r->spawner = pair[1];
	CHECK(code_backend_new_local(r->base, pair[0], &cfg, &r->backend, &e) == ERR_OK);
}

void
session_rig_drop(struct session_rig *r)
{
	fd_close(&r->ctl);
	fd_close(&r->out);
	fd_close(&r->err);
}

void
session_rig_done(struct session_rig *r)
{
	code_backend_free(&r->backend);
	event_base_free(r->base);
	fd_close(&r->spawner);
	session_rig_drop(r);
}

void
session_rig_turn(struct session_rig *r)
{
	for (int i = 0; i < 50; i++)
		(void)event_base_loop(r->base, EVLOOP_NONBLOCK);
}

int
session_rig_replace(struct session_rig *r)
{
	int pair[2], old = r->spawner;
	CHECK(fd_socketpair_seqpacket(pair, true));
	r->spawner = pair[1];
	code_backend_attach(r->backend, pair[0]);
	return old;
}

static bool
next_message(struct session_rig *r, union lease_msg *m)
{
	int fds[LEASE_FDS];
	size_t nfds;
	struct err e;
	return lease_recv(r->spawner, m, fds, &nfds, &e) == ERR_OK;
}

void
session_rig_answer(struct session_rig *r, enum lease_status status, const char *text)
{
	struct lease_answer a = {
	    .type = LEASE_MSG_ANSWER, .status = (uint32_t)status, .id = r->lease_id};
	struct err e;
	(void)str_copy(a.text, sizeof(a.text), str_c(text));
	CHECK(lease_send(r->spawner, &a, NULL, 0, &e) == ERR_OK);
}

void
session_rig_lend(struct session_rig *r)
{
	union lease_msg m;
	int ctl[2], out[2], err[2];
	struct err e;
	session_rig_turn(r);
	while (next_message(r, &m) && m.type != LEASE_MSG_LEASE)
		continue;
	CHECK(m.type == LEASE_MSG_LEASE);
	r->lease_id = m.request.id;
	CHECK(fd_socketpair_stream(ctl, false) && fd_pipe(out, false) && fd_pipe(err, false));
	struct lease_answer a = {.type = LEASE_MSG_ANSWER, .status = LEASE_OK, .id = r->lease_id};
	int fds[LEASE_FDS] = {ctl[0], out[0], err[0]};
	CHECK(lease_send(r->spawner, &a, fds, LEASE_FDS, &e) == ERR_OK);
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&fds[i]);
	r->ctl = ctl[1];
	r->out = out[1];
	r->err = err[1];
	session_rig_turn(r);
}

bool
session_rig_released(struct session_rig *r)
{
	union lease_msg m;
	while (next_message(r, &m))
		if (m.type == LEASE_MSG_RELEASE && m.release.id == r->lease_id)
			return true;
	return false;
}

void
session_rig_send(struct session_rig *r, uint8_t type, const void *payload, size_t n)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, type, (uint32_t)n);
	CHECK(write(r->ctl, head, sizeof(head)) == (ssize_t)sizeof(head));
	CHECK(n == 0 || write(r->ctl, payload, n) == (ssize_t)n);
}

void
session_rig_result(struct session_rig *r, uint32_t flags, int32_t code)
{
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_result f = {flags, code, 1};
	session_rig_send(r, FRAME_RESULT, p, frame_result_put(p, &f));
}

void
session_rig_file(struct session_rig *r, const char *path, const char *bytes)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_file f = {strlen(bytes), str_c(path)};
	struct frame_file_end end = {1};
	session_rig_send(r, FRAME_FILE, p, frame_file_put(p, &f));
	if (f.size > 0)
		session_rig_send(r, FRAME_FILE_DATA, bytes, f.size);
	session_rig_send(r, FRAME_FILE_END, p, frame_file_end_put(p, &end));
}

void
session_rig_end(struct session_rig *r, uint32_t sent, uint32_t omitted)
{
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_end f = {sent, omitted, 0};
	session_rig_send(r, FRAME_END, p, frame_end_put(p, &f));
}
