#include "master/signals.h"

#include <signal.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/log.h"
#include "master/logfile.h"
#include "master/master.h"
#include "master/reap.h"

static void
on_hup(struct master *m)
{
	if (m->phase < MASTER_START || master_is_stopping(m))
		return;
	publish_note(&m->publish, PUBLISH_DO_RELOAD | PUBLISH_DO_KEYS | PUBLISH_DO_POLICY);
}

static void
on_int(struct master *m)
{
	if (master_is_stopping(m))
		master_stop_now(m);
	else
		master_stop(m);
}

/* A terminal sends it at every resize. */
static void
on_winch(struct master *m)
{
	if (m->opt.foreground || m->phase != MASTER_RUN)
		return;
	log_notice("workers drain until the next reload");
	master_drain_workers(m);
}

static const struct {
	int number;
	const char *name;
	void (*fn)(struct master *m);
} table[] = {
    {SIGCHLD, NULL, reap_all},
    {SIGHUP, "HUP", on_hup},
    {SIGTERM, "TERM", master_stop},
    {SIGINT, "INT", on_int},
    {SIGQUIT, "QUIT", master_stop_now},
    {SIGUSR1, "USR1", logfile_reopen},
    {SIGWINCH, NULL, on_winch},
};
_Static_assert(ARRAY_LEN(table) <= MASTER_SIGNALS, "room for every signal");

static void
on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i].number != number)
			continue;
		if (table[i].name != NULL)
			log_notice("signal", LOG_C("name", table[i].name));
		table[i].fn(arg);
	}
}

void
signals_start(struct master *m)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGUSR2, &ignore, NULL);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		m->signals[i] = evsignal_new(m->base, table[i].number, on_signal, m);
		CHECK(m->signals[i] != NULL && event_add(m->signals[i], NULL) == 0);
	}
}

void
signals_stop(struct master *m)
{
	for (size_t i = 0; i < MASTER_SIGNALS; i++)
		if (m->signals[i] != NULL)
			event_free(m->signals[i]);
}
