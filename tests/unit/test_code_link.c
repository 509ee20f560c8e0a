/* A worker between two spawners: the old one drains, the new one lends. */
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "tests/unit/session_rig.h"

TestSuite(code_link, .timeout = 20);

struct opened {
	struct code_session *s;
	struct err e;
	unsigned calls;
};

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct opened *o = arg;
	o->s = s;
	o->calls++;
	if (e != NULL)
		o->e = *e;
}

static bool
is_closed(int spawner)
{
	char c;
	return read(spawner, &c, sizeof(c)) == 0;
}

static void
drain(int spawner)
{
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds;
	struct err e;
	while (lease_recv(spawner, &m, fds, &nfds, &e) == ERR_OK)
		;
}

Test(code_link, a_session_of_a_replaced_spawner_goes_on_and_is_given_back_to_it)
{
	struct session_rig r;
	struct opened one = {0}, two = {0};
	session_rig_init(&r);
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &one);
	session_rig_lend(&r);
	cr_assert_not_null(one.s);
	uint64_t first = r.lease_id;
	int ctl = r.ctl, old = session_rig_replace(&r);
	session_rig_turn(&r);
	drain(old);
	cr_expect_not(is_closed(old), "its session still runs");
	fd_close(&r.out);
	fd_close(&r.err);

	(void)code_session_open(r.backend, STR("w"), 0, on_open, &two);
	session_rig_lend(&r);
	cr_assert_not_null(two.s);
	cr_expect_neq(r.lease_id, first);
	code_session_close(&two.s);
	cr_expect(session_rig_released(&r));

	int current = r.spawner;
	r.spawner = old;
	r.lease_id = first;
	code_session_close(&one.s);
	session_rig_turn(&r);
	cr_expect(session_rig_released(&r), "the old one is told");
	cr_expect(is_closed(old), "and left when nothing of it is used");
	r.spawner = current;
	fd_close(&old);
	fd_close(&ctl);
	session_rig_done(&r);
}

Test(code_link, who_waits_asks_the_new_spawner_and_takes_the_first_answer)
{
	struct session_rig r;
	struct opened held = {0}, o = {0};
	session_rig_init(&r);
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &held);
	session_rig_lend(&r); /* keeps the old one in use */
	int ctl = r.ctl;
	fd_close(&r.out);
	fd_close(&r.err);

	(void)code_session_open(r.backend, STR("w"), 5000, on_open, &o);
	int old = session_rig_replace(&r), current = r.spawner;
	r.spawner = old;
	r.lease_id++;
	session_rig_answer(&r, LEASE_BUSY, "draining"); /* no answer any more */
	session_rig_turn(&r);
	cr_expect_eq(o.calls, 0);
	r.spawner = current;
	session_rig_lend(&r);
	cr_expect_eq(o.calls, 1);
	cr_assert_not_null(o.s);
	code_session_close(&o.s);
	code_session_close(&held.s);
	session_rig_turn(&r);
	fd_close(&old);
	fd_close(&ctl);
	session_rig_done(&r);
}

Test(code_link, a_session_ends_with_the_replaced_spawner_that_lent_it)
{
	struct session_rig r;
	struct opened held = {0};
	struct str why;
	session_rig_init(&r);
	(void)code_session_open(r.backend, STR("w"), 0, on_open, &held);
	session_rig_lend(&r);
	int old = session_rig_replace(&r);
	fd_close(&old);
	session_rig_drop(&r);
	session_rig_turn(&r);
	cr_expect(code_backend_ready(r.backend, &why), "the new one is there");
	code_session_close(&held.s);
	session_rig_done(&r);
}

Test(code_link, who_waits_is_told_at_once_that_no_spawner_will_follow)
{
	struct session_rig r;
	struct opened o = {0};
	session_rig_init(&r);
	(void)code_session_open(r.backend, STR("w"), 60000, on_open, &o);
	session_rig_turn(&r);
	cr_expect_eq(o.calls, 0);
	code_backend_attach(r.backend, -1);
	cr_expect_eq(o.calls, 0, "inside the call");
	session_rig_turn(&r);
	cr_expect_eq(o.calls, 1);
	cr_expect_null(o.s);
	cr_expect_eq(o.e.code, ERR_UNSUPPORTED, "%s", o.e.msg);
	cr_expect(code_backend_is_idle(r.backend));
	session_rig_done(&r);
}
