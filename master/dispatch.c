#include "master/dispatch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "ipc/chan.h"
#include "ipc/payload.h"
#include "master/control.h"
#include "master/master.h"
#include "master/reload.h"
#include "master/snapshots.h"

static enum err_code
on_hello(struct child *c, struct msg *m, struct err *reterr)
{
	struct hello h;
	enum err_code rc = hello_decode(m->payload, &h, reterr);
	if (rc != ERR_OK)
		return rc;
	if (h.role != (uint32_t)c->role || h.number != c->number || h.pid != (uint32_t)c->pid ||
	    !str_eq(h.build_id, STR(OTARI_VERSION)))
		return err_set(reterr, ERR_PROTO, "it says that it is somebody else");
	c->has_said_hello = true;
	return ERR_OK;
}

static void
on_ready(struct child *c)
{
	if (c->state != CHILD_STARTING)
		return;
	child_set_state(c, CHILD_READY, 0);
	if (c->seat != NULL)
		seat_child_ready(c->seat, c);
	master_step(c->m);
}

/* It drains without being told, by a signal of its own. Its successor serves the same socket at
 * once. */
static void
on_leaving(struct child *c)
{
	struct master *m = c->m;
	struct seat *s = c->seat;
	if (!child_state_is_wanted(c->state) || s == NULL || s->child != c)
		return;
	child_drain(c, clock_mono_ms() + m->conf.drain_timeout_ms + CHILD_GRACE_MS);
	s->child = s->next; /* one that is on its way already */
	s->next = NULL;
	seat_fill(s);
}

static enum err_code
on_ack(struct child *c, struct msg *m, struct err *reterr)
{
	struct ack a;
	enum err_code rc = ack_decode(m->payload, &a, reterr);
	if (rc == ERR_OK)
		publish_ack(&c->m->publish, c->key, a.generation);
	return rc;
}

static enum err_code
on_publish(struct child *c, struct msg *m, struct err *reterr)
{
	struct publish_ask a;
	enum err_code rc = publish_ask_decode(m->payload, &a, reterr);
	if (rc != ERR_OK)
		return rc;
	uint32_t what = ((a.what & SEG_KEYS) != 0 ? PUBLISH_DO_KEYS : 0u) |
			((a.what & SEG_POLICY) != 0 ? PUBLISH_DO_POLICY : 0u);
	if (c->role == ROLE_WORKER)
		publish_ask(&c->m->publish, c->key, m->id, what,
		    clock_mono_ms() + c->m->conf.publish_timeout_ms);
	else
		reload_on_counters(c->m, a.db_policy, a.db_keys);
	return ERR_OK;
}

static enum err_code
on_tried(struct child *c, struct msg *m, struct err *reterr)
{
	struct tried t;
	enum err_code rc = tried_decode(m->payload, &t, reterr);
	if (rc == ERR_OK)
		control_tried(c->m, t.ok, t.text);
	return rc;
}

static enum err_code
handle(struct child *c, struct msg *m, struct err *reterr)
{
	if (!c->has_said_hello && m->type != MSG_HELLO)
		return err_set(reterr, ERR_PROTO, "%s before hello", msg_name(m->type));
	switch (m->type) {
	case MSG_HELLO:
		return on_hello(c, m, reterr);
	case MSG_READY:
		on_ready(c);
		return ERR_OK;
	case MSG_ACK:
		return on_ack(c, m, reterr);
	case MSG_PUBLISH:
		return on_publish(c, m, reterr);
	case MSG_FILE_WANTED:
		return reload_on_file_wanted(c, m, reterr);
	case MSG_BUILT:
		return reload_on_built(c, m, reterr);
	case MSG_TRIED:
		return on_tried(c, m, reterr);
	case MSG_RECYCLE:
		c->wants_successor = true;
		seat_recycle(c);
		return ERR_OK;
	case MSG_LEAVING:
		on_leaving(c);
		return ERR_OK;
	case MSG_POLICY:
	case MSG_KEYS:
	case MSG_SECRETS:
	case MSG_PUBLISHED:
	case MSG_LISTEN:
	case MSG_SPAWNER:
	case MSG_DRAIN:
	case MSG_REOPEN:
	case MSG_BUILD:
	case MSG_FILE:
	case MSG_TRY:
	case MSG_TYPE_MAX:
		break;
	}
	return err_set(reterr, ERR_PROTO, "unexpected message %s", msg_name(m->type));
}

/* The channel closes a moment before the process is reaped; one that stays must be stopped. */
static void
on_closed(struct child *c)
{
	chan_free(&c->chan);
	if (c->role == ROLE_BUILDER) {
		reload_on_closed(c);
		return;
	}
	publish_leave(&c->m->publish, c->key);
	child_channel_closed(c);
}

static void
on_msg(struct chan *chan, struct msg *m, void *arg)
{
	struct child *c = arg;
	struct err e = {0};
	(void)chan;
	if (m == NULL) {
		on_closed(c);
		return;
	}
	if (c->state == CHILD_KILLED)
		return;
	if (handle(c, m, &e) != ERR_OK)
		child_kill(c, e.msg);
}

enum err_code
dispatch_attach(struct child *c, int ctl, struct err *reterr)
{
	enum err_code rc = chan_new(c->m->base, ctl, on_msg, c, &c->chan, reterr);
	if (rc == ERR_OK)
		chan_set_peer(c->chan, 1u << c->role);
	return rc;
}

static void
send_listener(struct child *c, int fd, bool is_serve)
{
	struct buf b = BUF_INIT(64);
	struct listen_note n = {.is_tls = c->m->conf.tls_cert.ptr != NULL, .is_serve = is_serve};
	listen_note_encode(&b, &n);
	if (c->chan != NULL)
		chan_send(c->chan, MSG_LISTEN, 0, buf_str(&b), &fd, fd >= 0 ? 1 : 0);
	buf_done(&b);
}

void
dispatch_send_listener(struct child *c, int fd)
{
	send_listener(c, fd, false);
}

void
dispatch_send_serve(struct child *c, int fd)
{
	send_listener(c, fd, true);
}

bool
dispatch_send_try(struct master *m)
{
	for (uint32_t i = 0; i < m->worker_seats; i++) {
		struct child *c = m->workers[i].child;
		if (c == NULL || c->chan == NULL || c->state != CHILD_READY)
			continue;
		chan_send(c->chan, MSG_TRY, 0, STR_NULL, NULL, 0);
		return true;
	}
	return false;
}

void
dispatch_published(struct child *c, unsigned id, const char *error)
{
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	struct published p = {.in_force = error == NULL, .error = str_c(error)};
	published_encode(&b, &p);
	if (c->chan != NULL)
		chan_send(c->chan, MSG_PUBLISHED, id, buf_str(&b), NULL, 0);
	buf_done(&b);
}
