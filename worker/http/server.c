#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/http/conn.h"

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_MS  200
#define WARN_EVERY_MS    10000

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	(void)fd;
	(void)what;
	if (s->reserve_fd < 0)
		s->reserve_fd = fd_open("/dev/null", O_RDONLY, 0);
	for (size_t i = 0; i < s->listener_count; i++)
		(void)event_add(s->listeners[i]->ev, NULL);
}

static void
on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	(void)fd;
	(void)what;
	void (*cb)(void *) = s->on_drained;
	s->on_drained = NULL;
	if (cb != NULL)
		cb(s->drained_arg);
}

enum err_code
http_server_new(struct event_base *base, const struct http_server_config *cfg,
    const struct http_server_ops *ops, void *arg, struct http_server **ret, struct err *reterr)
{
	struct http_server *s = MEM_NEW(struct http_server);
	s->base = base;
	s->cfg = *cfg;
	s->ops = *ops;
	s->arg = arg;
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->idle);
	s->reserve_fd = fd_open("/dev/null", O_RDONLY, 0);
	s->resume = evtimer_new(base, on_resume, s);
	s->drained = event_new(base, -1, 0, on_drained, s);
	if (s->resume == NULL || s->drained == NULL) {
		http_server_free(&s);
		return err_set(reterr, ERR_INTERNAL, "http server: no events");
	}
	*ret = s;
	return ERR_OK;
}

/* Out of descriptors: the waiting client is told so by a closed connection, which the reserve
 * descriptor pays for, and everything pauses; a level-triggered listener would spin. */
static void
pause_accepting(struct http_server *s, int listen_fd)
{
	fd_close(&s->reserve_fd);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	fd_close(&fd);
	s->reserve_fd = fd_open("/dev/null", O_RDONLY, 0);
	for (size_t i = 0; i < s->listener_count; i++)
		(void)event_del(s->listeners[i]->ev);
	const struct timeval pause = {0, ACCEPT_PAUSE_MS * 1000};
	(void)evtimer_add(s->resume, &pause);
	int64_t now = clock_mono_ms();
	if (s->warned_ms != 0 && now - s->warned_ms < WARN_EVERY_MS)
		return;
	s->warned_ms = now;
	log_warn("out of descriptors: not accepting connections for a moment",
	    LOG_INT("connections", s->conn_count));
}

/* Accepts up to max connections; false when the queue is empty. */
static bool
accept_some(struct http_listener *l, unsigned max)
{
	for (unsigned i = 0; i < max; i++) {
		struct sockaddr_storage addr = {0};
		socklen_t len = sizeof(addr);
		int fd =
		    accept4(l->fd, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			http_conn_accepted(l, fd, &addr);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			pause_accepting(l->server, l->fd);
			return false;
		} else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
			return false; /* empty, or nothing that a retry now would mend */
		}
		/* else that client left while it waited: the next one */
	}
	return true;
}

static void
on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)accept_some(arg, ACCEPTS_PER_TURN);
}

enum err_code
http_server_listen(struct http_server *s, int fd, struct ssl_ctx_st *tls, struct err *reterr)
{
	if (s->listener_count == ARRAY_LEN(s->listeners))
		return err_set(reterr, ERR_LIMIT, "more than %u listeners", LIMIT_LISTENERS);
	struct http_listener *l = MEM_NEW(struct http_listener);
	l->server = s;
	l->fd = fd;
	l->tls = tls;
	l->ev = event_new(s->base, fd, EV_READ | EV_PERSIST, on_acceptable, l);
	if (l->ev == NULL || event_add(l->ev, NULL) != 0) {
		if (l->ev != NULL)
			event_free(l->ev);
		mem_free(l);
		return err_set(reterr, ERR_INTERNAL, "http server: no event for a listener");
	}
	/* Accepted sockets inherit it; without it answers wait for the peer's delayed ACK. Not
	 * possible on a Unix socket, and not needed there. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	s->listeners[s->listener_count++] = l;
	return ERR_OK;
}

static void
close_listeners(struct http_server *s)
{
	for (size_t i = 0; i < s->listener_count; i++) {
		event_free(s->listeners[i]->ev);
		fd_close(&s->listeners[i]->fd);
		mem_free(s->listeners[i]);
	}
	s->listener_count = 0;
}

static void
check_drained(struct http_server *s)
{
	if (s->is_draining && s->conn_count == 0 && s->on_drained != NULL)
		event_active(s->drained, EV_TIMEOUT, 0);
}

void
http_server_drain(struct http_server *s, void (*cb)(void *), void *arg)
{
	if (s->is_draining)
		return;
	for (size_t i = 0; i < s->listener_count; i++)
		while (accept_some(s->listeners[i], ACCEPTS_PER_TURN))
			continue;
	s->is_draining = true;
	s->on_drained = cb;
	s->drained_arg = arg;
	(void)event_del(s->resume);
	close_listeners(s);
	struct http_conn *next;
	for (struct http_conn *c = TAILQ_FIRST(&s->conns); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		http_conn_drain(c);
	}
	check_drained(s);
}

void
http_server_forget(struct http_server *s, struct http_conn *c)
{
	TAILQ_REMOVE(&s->conns, c, link);
	s->conn_count--;
	check_drained(s);
}

uint32_t
http_server_connections(const struct http_server *s)
{
	return s->conn_count;
}

void
http_server_free(struct http_server **sp)
{
	struct http_server *s = *sp;
	if (s == NULL)
		return;
	*sp = NULL;
	s->on_drained = NULL;
	close_listeners(s);
	struct http_conn *c;
	while ((c = TAILQ_FIRST(&s->conns)) != NULL) {
		CHECK(!c->in_pump);
		http_conn_free(c);
	}
	if (s->resume != NULL)
		event_free(s->resume);
	if (s->drained != NULL)
		event_free(s->drained);
	fd_close(&s->reserve_fd);
	mem_free(s);
}

/* RFC 9110 §5.6.7; made anew once a second. */
const char *
http_server_date(struct http_server *s)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t now = clock_wall_s();
	if (now == s->date_s)
		return s->date;
	struct tm tm;
	time_t t = (time_t)now;
	if (gmtime_r(&t, &tm) == NULL)
		return s->date;
	s->date_s = now;
	(void)snprintf(s->date, sizeof(s->date), "%.3s, %02d %.3s %d %02d:%02d:%02d GMT",
	    days + (size_t)tm.tm_wday * 3, tm.tm_mday, months + (size_t)tm.tm_mon * 3,
	    tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
	return s->date;
}
