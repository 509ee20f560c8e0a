#include "worker/serving.h"

#include <sys/queue.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include "base/fd.h"
#include "base/mem.h"
#include "worker/api/sandbox_serve.h"
#include "worker/env.h"

struct listener {
	TAILQ_ENTRY(listener) link;
	struct serving *serving;
	struct http_server *http;
	bool is_loopback;
};

struct serving {
	struct worker_env *env;
	struct http_server_config cfg;
	struct ssl_ctx_st *tls;
	TAILQ_HEAD(listeners, listener) listeners; /* the first is in use, unless it drains too */
	bool is_listening;
	void (*on_drained)(void *arg);
	void *arg;
};

static bool
is_loopback(int fd)
{
	struct sockaddr_storage a = {0};
	socklen_t n = sizeof(a);
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a;
	if (getsockname(fd, (struct sockaddr *)&a, &n) != 0)
		return false;
	if (a.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* A connection of an old listener may still bring a request. */
static void
judge(struct serving *s)
{
	bool all = true;
	const struct listener *l;
	TAILQ_FOREACH(l, &s->listeners, link)
		all = all && l->is_loopback;
	sandbox_serve_set_loopback(s->env->serve, all);
}

struct serving *
serving_new(struct worker_env *env, const struct http_server_config *cfg, struct ssl_ctx_st *tls)
{
	struct serving *s = MEM_NEW(struct serving);
	s->env = env;
	s->cfg = *cfg;
	s->cfg.body_min_bytes_per_s = SERVE_BODY_MIN_BYTES_S;
	s->cfg.max_per_client = cfg->max_connections / 2 + 1;
	s->tls = tls;
	TAILQ_INIT(&s->listeners);
	return s;
}

static void
forget(struct listener *l)
{
	TAILQ_REMOVE(&l->serving->listeners, l, link);
	http_server_free(&l->http);
	mem_free(l);
}

static void
tell_drained(struct serving *s)
{
	void (*cb)(void *arg) = s->on_drained;
	if (cb == NULL || !TAILQ_EMPTY(&s->listeners))
		return;
	s->on_drained = NULL;
	cb(s->arg);
}

static void
on_drained(void *arg)
{
	struct listener *l = arg;
	struct serving *s = l->serving;
	forget(l);
	judge(s);
	tell_drained(s);
}

static void
retire(struct serving *s)
{
	if (s->is_listening)
		http_server_drain(
		    TAILQ_FIRST(&s->listeners)->http, on_drained, TAILQ_FIRST(&s->listeners));
	s->is_listening = false;
}

static enum err_code
add(struct serving *s, int fd, struct err *reterr)
{
	struct listener *l = MEM_NEW(struct listener);
	l->serving = s;
	l->is_loopback = is_loopback(fd);
	enum err_code rc =
	    http_server_new(s->env->base, &s->cfg, sandbox_serve_ops(), s->env, &l->http, reterr);
	if (rc == ERR_OK)
		rc = http_server_listen(l->http, fd, s->tls, reterr);
	if (rc != ERR_OK) {
		http_server_free(&l->http);
		mem_free(l);
		fd_close(&fd);
		return rc;
	}
	retire(s);
	TAILQ_INSERT_HEAD(&s->listeners, l, link);
	s->is_listening = true;
	return ERR_OK;
}

enum err_code
serving_listen(struct serving *s, int fd, struct err *reterr)
{
	if (fd < 0) {
		if (s->is_listening)
			sandbox_serve_drain(s->env->serve);
		retire(s);
		return ERR_OK;
	}
	if (s->env->serve == NULL)
		s->env->serve = sandbox_serve_new(s->env);
	enum err_code rc = add(s, fd, reterr);
	if (rc != ERR_OK)
		return rc;
	judge(s);
	sandbox_serve_resume(s->env->serve);
	return ERR_OK;
}

void
serving_drain(struct serving *s, void (*cb)(void *arg), void *arg)
{
	s->on_drained = cb;
	s->arg = arg;
	if (s->env->serve != NULL)
		sandbox_serve_drain(s->env->serve);
	retire(s);
	tell_drained(s);
}

void
serving_free(struct serving **sp)
{
	struct serving *s = *sp;
	struct listener *l;
	if (s == NULL)
		return;
	*sp = NULL;
	while ((l = TAILQ_FIRST(&s->listeners)) != NULL)
		forget(l);
	sandbox_serve_free(&s->env->serve);
	mem_free(s);
}
