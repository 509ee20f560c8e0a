#include "ipc/chan.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#define CHAN_MAGIC     0x4348414eu
#define READS_PER_WAKE 32 /* then the loop serves others */

/* On the wire: this head, then the payload, in one datagram. Both ends are the same binary. */
struct head {
	uint32_t type, id;
};

struct queued {
	struct queued *next;
	size_t len, nfds;
	int fds[FD_PASS_MAX];
	char bytes[]; /* head and payload */
};

struct chan {
	uint32_t magic;
	int fd;
	struct event *ev_read, *ev_write;
	chan_on_msg *cb;
	void *arg;
	uint32_t peers; /* 0: any role */
	struct queued *first, **last;
	size_t queued;
	char *in; /* head and largest payload */
	bool is_dead, is_in_callback, is_freed;
};

static void
drop_queue(struct chan *c)
{
	for (struct queued *q; (q = c->first) != NULL;) {
		c->first = q->next;
		for (size_t i = 0; i < q->nfds; i++)
			fd_close(&q->fds[i]);
		mem_free(q);
	}
	c->last = &c->first;
	c->queued = 0;
}

static void
destroy(struct chan *c)
{
	drop_queue(c);
	if (c->ev_read != NULL)
		event_free(c->ev_read);
	if (c->ev_write != NULL)
		event_free(c->ev_write);
	fd_close(&c->fd);
	mem_free(c->in);
	c->magic = 0;
	mem_free(c);
}

/* Sending is over, but what the peer sent before may still be read; then comes its EOF. */
static void
stop_sending(struct chan *c)
{
	drop_queue(c);
	(void)event_del(c->ev_write);
	(void)shutdown(c->fd, SHUT_RDWR);
}

static void
call(struct chan *c, struct msg *m)
{
	c->is_in_callback = true;
	c->cb(c, m, c->arg);
	c->is_in_callback = false;
}

static void
die(struct chan *c)
{
	c->is_dead = true;
	drop_queue(c);
	(void)event_del(c->ev_read);
	(void)event_del(c->ev_write);
	call(c, NULL);
}

/* Does the table allow it? Nothing else is ever passed on. */
static bool
is_allowed(const struct chan *c, const struct msg *m)
{
	const struct msg_info *info = msg_info((uint32_t)m->type);
	return info != NULL && (c->peers == 0 || (info->senders & c->peers) != 0) &&
	       m->payload.len <= info->max_bytes && m->nfds <= info->max_fds;
}

/* False when nothing more is to be read now. */
static bool
read_one(struct chan *c)
{
	struct msg m = {.nfds = ARRAY_LEN(m.fds)};
	struct head h;
	ssize_t n = fd_recv_msg(c->fd, c->in, sizeof(h) + LIMIT_MSG_BYTES, m.fds, &m.nfds);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		die(c);
		return false;
	}
	bool ok = (size_t)n >= sizeof(h);
	if (ok) {
		memcpy(&h, c->in, sizeof(h));
		m.type = (enum msg_type)h.type;
		m.id = h.id;
		m.payload = str_n(c->in + sizeof(h), (size_t)n - sizeof(h));
		ok = is_allowed(c, &m);
	}
	if (ok)
		call(c, &m);
	for (size_t i = 0; i < m.nfds; i++)
		fd_close(&m.fds[i]);
	if (!ok)
		die(c);
	return ok && !c->is_freed && !c->is_dead;
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct chan *c = arg;
	for (int i = 0; i < READS_PER_WAKE && read_one(c); i++)
		continue;
	if (c->is_freed)
		destroy(c);
}

enum sent { SENT, SENT_LATER, SENT_NEVER };

static enum sent
send_now(struct chan *c, const void *bytes, size_t n, const int *fds, size_t nfds)
{
	if (fd_send_msg(c->fd, bytes, n, fds, nfds) >= 0)
		return SENT;
	return errno == EAGAIN ? SENT_LATER : SENT_NEVER;
}

/* True when the queue is empty or the channel broke. */
static bool
send_queue(struct chan *c)
{
	while (c->first != NULL) {
		struct queued *q = c->first;
		switch (send_now(c, q->bytes, q->len, q->fds, q->nfds)) {
		case SENT:
			break;
		case SENT_LATER:
			return false;
		case SENT_NEVER:
			stop_sending(c);
			return true;
		}
		c->first = q->next;
		if (c->first == NULL)
			c->last = &c->first;
		c->queued--;
		for (size_t i = 0; i < q->nfds; i++)
			fd_close(&q->fds[i]);
		mem_free(q);
	}
	return true;
}

static void
on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct chan *c = arg;
	if (send_queue(c))
		(void)event_del(c->ev_write);
}

enum err_code
chan_new(struct event_base *base, int fd, chan_on_msg *cb, void *arg, struct chan **ret,
    struct err *reterr)
{
	struct chan *c = MEM_NEW(struct chan);
	c->magic = CHAN_MAGIC;
	c->fd = fd;
	c->cb = cb;
	c->arg = arg;
	c->last = &c->first;
	c->in = mem_alloc(sizeof(struct head) + LIMIT_MSG_BYTES);
	if (!fd_set_nonblock(fd, true) || !fd_set_cloexec(fd, true)) {
		enum err_code rc = err_set(reterr, ERR_IO, "channel descriptor");
		destroy(c);
		return rc;
	}
	c->ev_read = event_new(base, fd, EV_READ | EV_PERSIST, on_read, c);
	c->ev_write = event_new(base, fd, EV_WRITE | EV_PERSIST, on_write, c);
	if (c->ev_read == NULL || c->ev_write == NULL || event_add(c->ev_read, NULL) != 0) {
		destroy(c);
		return err_set(reterr, ERR_INTERNAL, "channel events");
	}
	*ret = c;
	return ERR_OK;
}

void
chan_free(struct chan **cp)
{
	struct chan *c = *cp;
	if (c == NULL)
		return;
	CHECK_MAGIC(c, CHAN_MAGIC);
	*cp = NULL;
	if (!c->is_in_callback) {
		destroy(c);
		return;
	}
	c->is_freed = true; /* on_read destroys it when the callback is back */
	(void)event_del(c->ev_read);
	(void)event_del(c->ev_write);
}

void
chan_set_peer(struct chan *c, uint32_t roles)
{
	CHECK_MAGIC(c, CHAN_MAGIC);
	c->peers = roles;
}

static void
enqueue(struct chan *c, const struct head *h, struct str payload, const int *fds, size_t nfds)
{
	struct queued *q = mem_alloc(sizeof(*q) + sizeof(*h) + payload.len);
	q->len = sizeof(*h) + payload.len;
	memcpy(q->bytes, h, sizeof(*h));
	if (payload.len > 0)
		memcpy(q->bytes + sizeof(*h), payload.ptr, payload.len);
	for (; q->nfds < nfds; q->nfds++) {
		q->fds[q->nfds] = fd_dup(fds[q->nfds]);
		if (q->fds[q->nfds] < 0)
			break;
	}
	*c->last = q;
	c->last = &q->next;
	if (++c->queued > CHAN_QUEUE_MAX || q->nfds < nfds) {
		stop_sending(c);
		return;
	}
	(void)event_add(c->ev_write, NULL);
}

void
chan_send(struct chan *c, enum msg_type type, uint32_t id, struct str payload, const int *fds,
    size_t nfds)
{
	CHECK_MAGIC(c, CHAN_MAGIC);
	const struct msg_info *info = msg_info((uint32_t)type);
	CHECK(info != NULL && payload.len <= info->max_bytes && nfds <= info->max_fds);
	if (c->is_dead || c->is_freed)
		return;
	struct head h = {(uint32_t)type, id};
	if (c->first != NULL) {
		enqueue(c, &h, payload, fds, nfds);
		return;
	}
	/* The datagram must be whole: one buffer on the stack for the usual, small ones. */
	char small[1024];
	size_t n = sizeof(h) + payload.len;
	char *p = n <= sizeof(small) ? small : mem_alloc(n);
	memcpy(p, &h, sizeof(h));
	if (payload.len > 0)
		memcpy(p + sizeof(h), payload.ptr, payload.len);
	enum sent s = send_now(c, p, n, fds, nfds);
	if (p != small)
		mem_free(p);
	if (s == SENT_LATER)
		enqueue(c, &h, payload, fds, nfds);
	else if (s == SENT_NEVER)
		stop_sending(c);
}

enum err_code
chan_flush(struct chan *c, int timeout_ms, struct err *reterr)
{
	CHECK_MAGIC(c, CHAN_MAGIC);
	int64_t end = clock_mono_ms() + timeout_ms;
	while (!send_queue(c)) {
		int64_t left = end - clock_mono_ms();
		struct pollfd p = {.fd = c->fd, .events = POLLOUT};
		if (left <= 0)
			return err_set(reterr, ERR_TIMEOUT, "the peer does not read");
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return err_set(reterr, ERR_IO, "poll");
	}
	return ERR_OK;
}

int
msg_take_fd(struct msg *m, size_t i)
{
	if (i >= m->nfds)
		return -1;
	int fd = m->fds[i];
	m->fds[i] = -1;
	return fd;
}
