#include "sandbox/spawner/zygote.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "ipc/frames.h"
#include "sandbox/spawner/broker.h"
#include "sandbox/zygote/zygote.h"

/* Slow imports on a busy host; then one fork. */
#define LOAD_S     60
#define ANSWER_S   3
#define TEST_S     30
#define REST_MAX_S 64

static void
arm(struct zygote *z, int seconds)
{
	struct timeval t = {seconds, 0};
	(void)event_add(z->ev_timer, &t);
}

static void
free_event(struct event **ev)
{
	if (*ev != NULL)
		event_free(*ev);
	*ev = NULL;
}

/* Nothing of it is left but the sessions that it gave. */
static void
end(struct broker *b)
{
	struct zygote *z = &b->zygote;
	struct session *place = z->place;
	free_event(&z->ev);
	free_event(&z->ev_test);
	fd_close(&z->fd);
	fd_close(&z->test_fd);
	if (z->pid > 0)
		(void)kill(z->pid, SIGKILL); /* reaped as any child; not before we know */
	z->pid = 0;
	z->in_flight = 0;
	z->in_len = 0;
	z->place = NULL;
	(void)event_del(z->ev_timer);
	if (place != NULL)
		session_kill(place);
}

/* They may wait for an interpreter for ever; nobody has them yet. */
void
zygote_forget_starting(struct broker *b)
{
	struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state <= SESSION_STARTING && s->is_born)
			session_kill(s);
}

void
zygote_child_failed(struct broker *b, const char *why, int sys_errno)
{
	const struct zygote_old *old = &b->old_zygote;
	/* Which of two it was is not known; the old one is the lesser loss. */
	if (old->ev != NULL && (b->zygote.state != ZYGOTE_READY || old->in_flight > 0))
		zygote_old_end(b);
	else
		zygote_failed(b, why, sys_errno);
}

void
zygote_failed(struct broker *b, const char *why, int sys_errno)
{
	struct zygote *z = &b->zygote;
	if (z->state < ZYGOTE_LOADING)
		return;
	if (z->state == ZYGOTE_READY || z->failures == 0)
		log_warn(
		    "the zygote failed, sessions start their own interpreter until another runs",
		    LOG_C("why", why), LOG_INT("errno", sys_errno));
	(void)snprintf(z->why, sizeof(z->why), "%.80s (errno %d)", why, sys_errno);
	b->stats.zygotes_failed++;
	end(b);
	zygote_forget_starting(b);
	z->state = ZYGOTE_RESTING;
	arm(z, z->failures < 6 ? 1 << z->failures : REST_MAX_S);
	z->failures++;
	lend_step(b);
}

void
zygote_stop(struct broker *b)
{
	zygote_old_end(b);
	if (b->zygote.state > ZYGOTE_RESTING)
		end(b);
	else if (b->zygote.ev_timer != NULL)
		(void)event_del(b->zygote.ev_timer);
	b->zygote.state = ZYGOTE_OFF;
}

/* --- its test
 * -------------------------------------------------------------------------------------
 */
static void
test_held(struct broker *b)
{
	struct zygote *z = &b->zygote;
	struct session *place = z->place;
	z->place = NULL;
	session_kill(place);
	free_event(&z->ev_test);
	fd_close(&z->test_fd);
	if (z->in_flight > 0) /* it has not said yet that it forked */
		arm(z, ANSWER_S);
	else
		(void)event_del(z->ev_timer);
	z->state = ZYGOTE_READY;
	zygote_old_leave(b);
	log_notice("the zygote is ready", LOG_INT("ms", clock_mono_ms() - z->started_ms));
	lend_step(b);
}

static void
test_broken(struct broker *b, const struct frame_check *c)
{
	char text[128];
	(void)snprintf(text, sizeof(text), "layer=%s errno=%d tested: %.*s",
	    lease_layer_name((enum sandbox_layer)c->layer), c->sys_errno,
	    (int)(c->text.len > 64 ? 64 : c->text.len), c->text.ptr);
	log_error(
	    "a wall does not hold in a zygote's child, no zygote is used", LOG_C("why", text));
	end(b);
	zygote_old_end(b); /* what opened the wall may be there for its children, too */
	b->zygote.state = ZYGOTE_OFF;
	(void)snprintf(b->zygote.why, sizeof(b->zygote.why), "%.95s", text);
	lend_step(b);
}

/* False: the test is over. */
static bool
take_row(struct broker *b, uint8_t type, struct str payload)
{
	struct frame_check c;
	if (type == FRAME_CHECK_END && payload.len == 0) {
		test_held(b);
		return false;
	}
	if (type != FRAME_CHECK || !frame_check_get(payload, &c) || c.layer >= SB_LAYERS_) {
		zygote_failed(b, "its test speaks nonsense", EPROTO);
		return false;
	}
	/* Without a range of ids the groups of the spawner's user stay (see selftest.c). */
	if (c.held == 1 || selftest_is_left_out(b, c.layer) ||
	    (c.layer == SB_UID_RANGE && !b->jail.has_range))
		return true;
	test_broken(b, &c);
	return false;
}

static void
on_test(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct broker *b = arg;
	struct zygote *z = &b->zygote;
	ssize_t n = recv(fd, z->in + z->in_len, sizeof(z->in) - z->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		zygote_failed(b, "its test ended early", n < 0 ? errno : EPIPE);
		return;
	}
	z->in_len += (size_t)n;
	size_t pos = 0;
	struct frame_head h;
	while (z->in_len - pos >= FRAME_HEAD) {
		uint8_t raw[FRAME_HEAD];
		memcpy(raw, z->in + pos, FRAME_HEAD);
		if (!frame_head_get(raw, &h) || FRAME_HEAD + h.len > sizeof(z->in)) {
			zygote_failed(b, "its test speaks nonsense", EPROTO);
			return;
		}
		if (z->in_len - pos < FRAME_HEAD + h.len)
			break;
		pos += FRAME_HEAD + h.len;
		if (!take_row(b, h.type, str_n(z->in + pos - h.len, h.len)))
			return;
	}
	memmove(z->in, z->in + pos, z->in_len - pos);
	z->in_len -= pos;
}

static bool
ask(struct broker *b, int zygote_fd, const struct session *s, enum zygote_op op,
    const int fds[ZYGOTE_FDS])
{
	struct zygote_request r = {.op = (uint32_t)op, .seq = ++b->zygote.seq};
	int all[ZYGOTE_FDS_MAX];
	_Static_assert(ZYGOTE_JOINS == CGROUP_TREES, "room for all");
	memcpy(all, fds, ZYGOTE_FDS * sizeof(int));
	size_t n = ZYGOTE_FDS + cgroup_join_fds(&b->cgroup, s->slot, all + ZYGOTE_FDS);
	return fd_send_msg(zygote_fd, &r, sizeof(r), all, n) == (ssize_t)sizeof(r);
}

void
zygote_placed(struct broker *b)
{
	struct zygote *z = &b->zygote;
	int pair[2], null = -1;
	if (z->state != ZYGOTE_PLACING)
		return;
	if (!fd_socketpair_stream(pair, false)) {
		zygote_failed(b, "no descriptors for its test", errno);
		return;
	}
	null = fd_open("/dev/null", O_RDWR, 0);
	const int fds[ZYGOTE_FDS] = {z->place->pidfd, null, null, pair[1]};
	bool ok = null >= 0 && ask(b, z->fd, z->place, ZYGOTE_TEST, fds);
	int e = errno;
	fd_close(&null);
	fd_close(&pair[1]);
	z->test_fd = pair[0];
	z->ev_test = event_new(b->base, z->test_fd, EV_READ | EV_PERSIST, on_test, b);
	if (!ok || z->ev_test == NULL || event_add(z->ev_test, NULL) != 0) {
		zygote_failed(b, "its test could not be asked for", e);
		return;
	}
	z->in_flight++;
	z->state = ZYGOTE_TESTING;
	arm(z, TEST_S);
}

/* --- its answers
 * ----------------------------------------------------------------------------------
 */
static void
on_loaded(struct broker *b, const struct zygote_answer *a)
{
	struct zygote *z = &b->zygote;
	if (a->sys_errno != 0) {
		zygote_failed(b, "its libraries started threads", a->sys_errno);
		return;
	}
	if (a->text[0] != '\0')
		log_warn("modules of sandbox_preload could not be loaded", LOG_C("why", a->text));
	z->state = ZYGOTE_PLACING;
	arm(z, TEST_S);
	z->place = lend_new_session(b, false);
	if (z->place == NULL)
		zygote_failed(b, "no session to test it in", errno);
}

/* Another one is loaded, while this one serves. */
static void
follow(struct broker *b)
{
	struct zygote *z = &b->zygote;
	log_notice("the zygote has served its time, another one follows",
	    LOG_INT("interpreters", z->forks));
	free_event(&z->ev);
	if (zygote_old_keep(b, z->pid, z->fd)) {
		z->pid = 0;
		z->fd = -1;
	}
	end(b);
	zygote_start(b);
}

static void
on_answered(struct broker *b, const struct zygote_answer *a)
{
	struct zygote *z = &b->zygote;
	struct session *s;
	z->in_flight--;
	if (z->in_flight > 0)
		arm(z, ANSWER_S);
	else if (z->state == ZYGOTE_READY)
		(void)event_del(z->ev_timer);
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->is_born && s->zygote_seq == a->seq && s->state == SESSION_STARTING)
			break;
	if (a->sys_errno != 0 && (s != NULL || z->state == ZYGOTE_TESTING)) {
		zygote_failed(b, a->text, a->sys_errno);
		return; /* with a session that ended meanwhile it is no wonder */
	}
	if (++z->forks == 1000)
		z->failures = 0; /* what ended those before is over */
	/* Its sessions share its memory layout and hash seed. */
	int64_t age_s = (clock_mono_ms() - z->started_ms) / 1000;
	if (z->state == ZYGOTE_READY && z->in_flight == 0 &&
	    (z->forks >= b->settings.zygote_forks || age_s >= b->settings.zygote_age_s))
		follow(b);
}

static void
on_answer(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct broker *b = arg;
	struct zygote *z = &b->zygote;
	struct zygote_answer a;
	ssize_t n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(a)) {
		zygote_failed(b, "it ended", n < 0 ? errno : EPIPE);
		return;
	}
	a.text[sizeof(a.text) - 1] = '\0';
	if (a.seq == 0 && z->state == ZYGOTE_LOADING)
		on_loaded(b, &a);
	else if (a.seq != 0 && z->in_flight > 0)
		on_answered(b, &a);
	else
		zygote_failed(b, "it speaks nonsense", EPROTO);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct broker *b = arg;
	if (b->zygote.state == ZYGOTE_RESTING)
		zygote_start(b);
	else
		zygote_failed(b, "it does not answer", ETIMEDOUT);
}

void
zygote_start(struct broker *b)
{
	struct zygote *z = &b->zygote;
	if (strcmp(b->settings.preload, LEASE_NO_ZYGOTE) == 0)
		return;
	if (z->ev_timer == NULL)
		z->ev_timer = evtimer_new(b->base, on_timer, b);
	if (z->ev_timer == NULL)
		return;
	z->state = ZYGOTE_LOADING;
	z->started_ms = clock_mono_ms();
	z->forks = 0;
	z->test_fd = -1;
	z->pid = zygote_spawn(b, &z->fd);
	if (z->pid > 0)
		z->ev = event_new(b->base, z->fd, EV_READ | EV_PERSIST, on_answer, b);
	if (z->ev == NULL || event_add(z->ev, NULL) != 0) {
		zygote_failed(b, "start", errno);
		return;
	}
	arm(z, LOAD_S);
}

bool
zygote_is_ready(const struct broker *b)
{
	return b->zygote.state == ZYGOTE_READY || b->old_zygote.ev != NULL;
}

bool
zygote_ask(struct broker *b, int zygote_fd, struct session *s)
{
	const int fds[ZYGOTE_FDS] = {s->pidfd, s->born_fds[LEASE_FD_OUT], s->born_fds[LEASE_FD_ERR],
	    s->born_fds[LEASE_FD_CTL]};
	if (!ask(b, zygote_fd, s, ZYGOTE_FORK, fds))
		return false;
	s->zygote_seq = b->zygote.seq;
	return true;
}

void
zygote_give(struct broker *b, struct session *s)
{
	struct zygote *z = &b->zygote;
	if (z->state != ZYGOTE_READY)
		zygote_old_give(b, s);
	else if (!zygote_ask(b, z->fd, s))
		zygote_failed(b, "it does not take requests", errno);
	else if (z->in_flight++ == 0)
		arm(z, ANSWER_S);
}

void
zygote_reaped(struct broker *b, pid_t pid)
{
	if (b->zygote.pid == pid)
		b->zygote.pid = 0; /* its socket tells the rest */
	if (b->old_zygote.pid == pid) {
		b->old_zygote.pid = 0;
		zygote_old_end(b);
	}
}
