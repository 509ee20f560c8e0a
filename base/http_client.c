#include "base/http_client.h"

#include "base/check.h"
#include "base/http_client_impl.h"
#include "base/mem.h"

static void
action(struct http_client *c, curl_socket_t fd, int mask)
{
	int running;
	http_client_enter(c);
	(void)curl_multi_socket_action(c->multi, fd, mask, &running);
	http_client_leave(c);
}

void
http_client_leave(struct http_client *c)
{
	int left;
	CURLMsg *m;
	if (c->depth > 1) {
		c->depth--;
		return;
	}
	c->depth = 0;
	while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
		void *call = NULL;
		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
		http_call_finish(call, code);
	}
}

static void
on_socket(evutil_socket_t fd, short what, void *arg)
{
	int mask =
	    (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	action(arg, (curl_socket_t)fd, mask);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	action(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl says what to watch. The event is made anew on every change: the same number may be
 * another socket by now. */
static int
watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http_client *c = arg;
	struct event *ev = socket_arg;
	(void)easy;
	if (ev != NULL)
		event_free(ev);
	ev = NULL;
	if (what != CURL_POLL_REMOVE) {
		short mask = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
				     (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
		ev = event_new(c->base, fd, mask, on_socket, c);
		if (ev != NULL)
			(void)event_add(ev, NULL);
	}
	(void)curl_multi_assign(c->multi, fd, ev);
	return 0;
}

static int
set_timer(CURLM *multi, long ms, void *arg)
{
	struct http_client *c = arg;
	(void)multi;
	if (ms < 0) {
		(void)evtimer_del(&c->timer);
	} else {
		const struct timeval tv = {ms / 1000, ms % 1000 * 1000};
		(void)evtimer_add(&c->timer, &tv);
	}
	return 0;
}

enum err_code
http_client_new(struct event_base *base, struct http_client **ret, struct err *reterr)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(reterr, ERR_INTERNAL, "libcurl does not start");
	CURLM *multi = curl_multi_init();
	if (multi == NULL) {
		curl_global_cleanup();
		return err_set(reterr, ERR_INTERNAL, "libcurl does not start");
	}
	struct http_client *c = MEM_NEW(struct http_client);
	c->base = base;
	c->multi = multi;
	TAILQ_INIT(&c->calls);
	(void)evtimer_assign(&c->timer, base, on_timer, c);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, c);
	(void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, CLIENT_IDLE_CONNS_MAX);
	(void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	*ret = c;
	return ERR_OK;
}

void
http_client_free(struct http_client **cp)
{
	struct http_client *c = *cp;
	if (c == NULL)
		return;
	CHECK(c->depth == 0);
	*cp = NULL;
	struct http_call *call;
	while ((call = TAILQ_FIRST(&c->calls)) != NULL) {
		CHECK(!call->is_finishing); /* not from a callback */
		http_call_destroy(call);
	}
	(void)curl_multi_cleanup(c->multi);
	(void)evtimer_del(&c->timer);
	mem_free(c);
	curl_global_cleanup();
}
