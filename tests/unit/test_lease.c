#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "ipc/lease.h"

TestSuite(lease, .timeout = 10);

Test(lease, every_message_comes_back_with_its_descriptors)
{
	int pair[2], fds[LEASE_FDS], pipes[2];
	struct err e;
	size_t nfds = 0;
	union lease_msg m;
	cr_assert(fd_socketpair_seqpacket(pair, true) && fd_pipe(pipes, false));
	struct lease_settings s = {.type = LEASE_MSG_SETTINGS};
	sandbox_settings_default(&s.settings);
	cr_assert_eq(lease_send(pair[0], &s, NULL, 0, &e), ERR_OK);
	cr_assert_eq(lease_recv(pair[1], &m, fds, &nfds, &e), ERR_OK, "%s", e.msg);
	cr_assert(m.type == LEASE_MSG_SETTINGS && nfds == 0 && m.settings.settings.pids == 64);
	struct lease_answer a = {.type = LEASE_MSG_ANSWER, .status = LEASE_OK, .id = 9};
	int send[LEASE_FDS] = {pipes[0], pipes[1], pipes[1]};
	cr_assert_eq(lease_send(pair[0], &a, send, LEASE_FDS, &e), ERR_OK);
	cr_assert_eq(lease_recv(pair[1], &m, fds, &nfds, &e), ERR_OK);
	cr_assert(m.answer.id == 9 && nfds == LEASE_FDS);
	cr_assert_eq(write(fds[LEASE_FD_OUT], "x", 1), 1);
	cr_assert_eq(lease_recv(pair[1], &m, fds, &nfds, &e), ERR_BUSY);
	int before = fd_count_open();
	cr_assert_eq(fd_send_msg(pair[0], "garbage", 7, send, 2), 7);
	cr_assert_eq(lease_recv(pair[1], &m, fds, &nfds, &e), ERR_PROTO);
	cr_assert_eq(fd_count_open(), before, "descriptors of garbage are closed");
	fd_close(&pair[0]);
	cr_assert_eq(lease_recv(pair[1], &m, fds, &nfds, &e), ERR_NOTFOUND);
}

Test(lease, wrong_sizes_and_fields_are_refused)
{
	union lease_msg in, out;
	struct err e;
	for (uint32_t type = LEASE_MSG_SETTINGS - 1; type <= LEASE_MSG_END_; type++) {
		size_t n = lease_size(type);
		bool known = type >= LEASE_MSG_SETTINGS && type < LEASE_MSG_END_;
		cr_assert_eq(n != 0, known, "%u", type);
		memset(&in, 0, sizeof(in));
		if (type == LEASE_MSG_SETTINGS)
			sandbox_settings_default(&in.settings.settings);
		in.type = type;
		if (known)
			cr_assert_eq(lease_decode(str_n(&in, n), &out, &e), ERR_OK, "%u", type);
		cr_assert_neq(lease_decode(str_n(&in, n + 1), &out, &e), ERR_OK, "%u", type);
		cr_assert_neq(lease_decode(str_n(&in, n - (n > 0)), &out, &e), ERR_OK, "%u", type);
		/* no text may run off its field */
		memset((char *)&in + 4, 0xff, sizeof(in) - 4);
		if (known && type < LEASE_MSG_SELFTEST && type != LEASE_MSG_SETTINGS)
			continue; /* no text in it */
		cr_assert_neq(lease_decode(str_n(&in, n), &out, &e), ERR_OK, "%u", type);
	}
}

Test(lease, settings_that_make_no_sandbox_are_refused)
{
	union lease_msg out;
	struct err e;
	struct lease_settings s = {.type = LEASE_MSG_SETTINGS}, t;
	sandbox_settings_default(&s.settings);
	t = s;
	t.settings.python[0] = 'p';
	cr_assert_eq(lease_decode(str_n(&t, sizeof(t)), &out, &e), ERR_PROTO, "relative python");
	t = s;
	t.settings.pids = 0;
	cr_assert_eq(lease_decode(str_n(&t, sizeof(t)), &out, &e), ERR_PROTO, "no process");
	t = s;
	t.settings.workspace_bytes = 0;
	cr_assert_eq(lease_decode(str_n(&t, sizeof(t)), &out, &e), ERR_PROTO, "no bound");
	t = s;
	t.settings.rootfs[0] = 'r';
	cr_assert_eq(lease_decode(str_n(&t, sizeof(t)), &out, &e), ERR_PROTO, "relative rootfs");
}

Test(lease, every_layer_has_a_name_and_a_hint_that_fits)
{
	for (int i = 0; i < SB_LAYERS_; i++) {
		cr_assert_neq(
		    strcmp(lease_layer_name((enum sandbox_layer)i), "unknown"), 0, "%d", i);
		cr_assert_lt(strlen(lease_layer_hint((enum sandbox_layer)i, 1)), 140u, "%d", i);
	}
}
