#include "master/master.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "ipc/role.h"
#include "master/cgroups.h"
#include "master/control.h"
#include "master/detach.h"
#include "master/dispatch.h"
#include "master/environment.h"
#include "master/link.h"
#include "master/listen.h"
#include "master/logfile.h"
#include "master/notify.h"
#include "master/place.h"
#include "master/reload.h"
#include "master/serve.h"
#include "master/signals.h"
#include "master/snapshots.h"

#define TICK_MS   500
#define NOBODY_ID 65534u /* reads the configuration before the user is known */

bool
master_is_stopping(const struct master *m)
{
	return m->phase >= MASTER_DRAIN;
}

void
master_fail(struct master *m, int exit_code, const char *text)
{
	log_error("cannot start", LOG_C("error", text));
	detach_report(m->ready_fd, exit_code, text);
	m->exit_code = exit_code;
	master_stop_now(m);
}

/* --- publications ---------------------------------------------------------------------------- */

static void
on_build(void *arg, uint32_t what, uint64_t generation)
{
	struct master *m = arg;
	char text[64];
	(void)snprintf(
	    text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_mono_us());
	if ((what & PUBLISH_DO_RELOAD) != 0 && m->phase == MASTER_RUN)
		notify_manager(text);
	reload_start(m, what, generation);
}

static void
on_answer(void *arg, uint64_t who, uint32_t id, const char *error)
{
	struct master *m = arg;
	struct child *c;
	if (control_published(m, who, error))
		return;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->key == who)
			dispatch_published(c, id, error);
}

static const struct publish_ops publish_ops = {.build = on_build, .answer = on_answer};

/* --- start ----------------------------------------------------------------------------------- */

static void
start_children(struct master *m)
{
	m->phase = MASTER_START;
	m->init_exe_fd = place_open_init();
	m->spawner.is_wanted = link_is_wanted(&m->conf);
	if (m->spawner.is_wanted && m->init_exe_fd < 0) {
		log_error("otari-init is not beside the program, the sandbox is refused");
		m->spawner.is_wanted = false;
	}
	seat_fill(&m->spawner);
	m->sweeper.is_wanted = true;
	seat_fill(&m->sweeper);
	seat_set_workers(m, m->conf.workers);
}

/* A listener that its workers share. address STR_NULL: none. */
static enum err_code
open_shared(
    const char *key, struct str address, uint16_t *ret_port, int *ret_fd, struct err *reterr)
{
	struct str host;
	if (address.ptr == NULL || address.len == 0)
		return ERR_OK;
	enum err_code rc = listen_split(address, &host, ret_port, reterr);
	if (rc == ERR_OK)
		rc = listen_open(host, ret_port, true, ret_fd, reterr);
	if (rc != ERR_OK)
		err_prefix(reterr, "%s: ", key);
	return rc;
}

/* The configuration is known for the first time: everything that needs root or a place. */
static enum err_code
take_place(struct master *m, struct err *reterr)
{
	enum err_code rc = place_find_user(m, reterr);
	if (rc == ERR_OK)
		rc = place_make_dirs(m, reterr);
	if (rc == ERR_OK)
		rc = place_write_pid_file(m, reterr);
	if (rc == ERR_OK)
		rc = logfile_open(m, reterr);
	if (rc == ERR_OK)
		rc = control_start(m, reterr);
	if (rc == ERR_OK)
		rc = open_shared(
		    "admin_listen", m->conf.admin_listen, &m->admin_port, &m->admin_fd, reterr);
	if (rc == ERR_OK)
		rc = serve_open(m, reterr);
	m->port = (uint16_t)m->conf.port;
	return rc;
}

/* What a reload cannot change while we run. */
static void
warn_restart(const struct master_conf *old, const struct master_conf *new)
{
	const struct {
		const char *key;
		bool changed;
	} keys[] = {
	    {"host", !str_eq(old->host, new->host)},
	    {"port", old->port != new->port},
	    {"admin_listen", !str_eq(old->admin_listen, new->admin_listen)},
	    {"user", !str_eq(old->user, new->user)},
	    {"state_dir", !str_eq(old->state_dir, new->state_dir)},
	    {"pid_file", !str_eq(old->pid_file, new->pid_file)},
	    {"control_socket", !str_eq(old->control_socket, new->control_socket)},
	};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].changed)
			log_warn("a changed key takes effect at the next start",
			    LOG_C("key", keys[i].key));
}

/* A reload was built and sent; now the master's own part of it. */
static void
apply_conf(struct master *m, const struct master_conf *old)
{
	struct err e;
	struct sandbox_settings before, after;
	warn_restart(old, &m->conf);
	serve_change(m);
	if (logfile_open(m, &e) != ERR_OK)
		log_error("the old log file stays in use", LOG_ERR(&e));
	seat_set_workers(m, m->conf.workers);
	if (old->log_level != m->conf.log_level || old->log_json != m->conf.log_json)
		seat_recycle_all(m);
	link_settings(old, &before);
	link_settings(&m->conf, &after);
	bool is_wanted = link_is_wanted(&m->conf) && m->init_exe_fd >= 0;
	if (is_wanted == m->spawner.is_wanted && memcmp(&before, &after, sizeof(after)) == 0)
		return;
	log_notice("sandbox settings changed");
	m->spawner.is_wanted = is_wanted;
	if (!is_wanted)
		link_retire(m);
	else if (m->link == NULL)
		seat_fill(&m->spawner);
	else
		link_replace_spawner(m);
}

void
master_conf_known(struct master *m, struct build_result *r, struct arena **a, int conf_fd)
{
	struct arena *old_arena = m->conf_arena;
	struct master_conf old = m->conf;
	m->conf = r->conf;
	m->conf_arena = *a;
	*a = NULL;
	fd_close(&m->conf_fd);
	m->conf_fd = conf_fd;
	if (m->phase == MASTER_READ_CONF) {
		struct err e = {0};
		if (take_place(m, &e) != ERR_OK) {
			master_fail(m, 1, e.msg);
		} else {
			m->phase = MASTER_BUILD;
			publish_note(&m->publish, PUBLISH_DO_KEYS | PUBLISH_DO_POLICY);
		}
	} else if (m->phase >= MASTER_START && !master_is_stopping(m)) {
		apply_conf(m, &old);
	}
	arena_free(&old_arena);
}

static void
running(struct master *m)
{
	m->phase = MASTER_RUN;
	serve_tell(m);
	log_notice("listening", LOG_STR("host", m->conf.host), LOG_INT("port", m->port),
	    LOG_INT("admin_port", m->admin_port), LOG_INT("workers", m->conf.workers));
	m->slot->state = BOARD_READY;
	detach_report(m->ready_fd, 0, "");
	m->ready_fd = -1;
	notify_manager("READY=1");
}

/* --- stop ------------------------------------------------------------------------------------ */

void
master_drain_workers(struct master *m)
{
	int64_t deadline = clock_mono_ms() + m->conf.drain_timeout_ms + CHILD_GRACE_MS;
	struct child *c;
	for (uint32_t i = 0; i < m->worker_seats; i++)
		m->workers[i].is_wanted = false;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->role == ROLE_WORKER)
			child_drain(c, deadline);
	for (uint32_t i = 0; i < m->worker_seats; i++)
		seat_leave(&m->workers[i]);
}

void
master_stop(struct master *m)
{
	if (master_is_stopping(m))
		return;
	if (m->phase < MASTER_START) {
		master_stop_now(m);
		return;
	}
	log_notice("stopping");
	notify_manager("STOPPING=1");
	m->phase = MASTER_DRAIN;
	/* Ours first: when the worker has accepted what waits and closes its own, the port is
	 * closed, and nobody is left waiting in a queue that no one serves. */
	for (uint32_t i = 0; i < m->worker_seats; i++)
		fd_close(&m->workers[i].listen_fd);
	fd_close(&m->admin_fd);
	serve_close(m);
	master_drain_workers(m);
	master_step(m);
}

void
master_stop_now(struct master *m)
{
	struct child *c;
	if (m->phase >= MASTER_START)
		log_notice("stopping at once");
	m->phase = MASTER_END;
	TAILQ_FOREACH(c, &m->children, link)
		child_kill(c, NULL);
	master_step(m);
}

static void
end_rest(struct master *m)
{
	struct child *c;
	m->phase = MASTER_END;
	link_stop(m);
	TAILQ_FOREACH(c, &m->children, link) {
		if (c->role == ROLE_SWEEPER)
			child_drain(c, clock_mono_ms() + m->conf.drain_timeout_ms);
		if (c->role == ROLE_BUILDER)
			child_kill(c, NULL);
	}
}

/* Nobody is waited for any more; who hangs in the kernel goes some day, as it is killed. */
static void
leave(struct master *m)
{
	const struct child *c;
	TAILQ_FOREACH(c, &m->children, link) {
		log_error("not even SIGKILL ends a child, it is left behind",
		    LOG_C("child", child_label(c)), LOG_INT("child_pid", c->pid));
		m->has_stopped_hard = true;
	}
	(void)event_base_loopbreak(m->base);
}

void
master_step(struct master *m)
{
	switch (m->phase) {
	case MASTER_READ_CONF:
		break;
	case MASTER_BUILD:
		if (snapshots_generation(m) > 0 && !reload_is_running(m))
			start_children(m);
		break;
	case MASTER_START:
		if (seat_all_ready(m))
			running(m);
		break;
	case MASTER_RUN:
		break;
	case MASTER_DRAIN:
		if (child_awaited(m, ROLE_WORKER) > 0)
			break;
		end_rest(m);
		/* fall through */
	case MASTER_END:
		if (child_awaited(m, ROLE_MASTER) == 0)
			leave(m);
		break;
	}
}

/* --- life ------------------------------------------------------------------------------------ */

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct master *m = arg;
	int64_t now = clock_mono_ms();
	child_watch(m, now);
	cgroups_tick(m);
	if (!master_is_stopping(m) && m->phase >= MASTER_START)
		publish_tick(&m->publish, now);
	m->last_tick_ms = now;
	m->slot->heartbeat_ms = (uint64_t)now;
	m->slot->state = master_is_stopping(m)    ? BOARD_DRAINING
			 : m->phase == MASTER_RUN ? BOARD_READY
						  : BOARD_STARTING;
	master_step(m);
}

static enum err_code
open_all(struct master *m, struct err *reterr)
{
	m->exe_fd = fd_open("/proc/self/exe", O_RDONLY, 0);
	m->null_fd = fd_open("/dev/null", O_RDWR, 0);
	if (m->exe_fd < 0 || m->null_fd < 0 || getcwd(m->cwd, sizeof(m->cwd)) == NULL)
		return err_set(reterr, ERR_IO, "own program, /dev/null or current directory");
	enum err_code rc = board_create(&m->board_fd, &m->board, reterr);
	if (rc == ERR_OK)
		rc = environment_take(&m->environ_fd, reterr);
	if (rc != ERR_OK)
		return rc;
	m->slot = board_take(m->board, ROLE_MASTER, 0, (uint64_t)clock_mono_ms());
	m->slot->pid = (uint32_t)getpid();
	role_set_title(m->opt.argc, m->opt.argv, environment_spare_bytes(), "otari: master");
	m->base = event_base_new();
	struct timeval every = {0, TICK_MS * 1000};
	if (m->base != NULL)
		m->tick = event_new(m->base, -1, EV_PERSIST, on_tick, m);
	if (m->tick == NULL || event_add(m->tick, &every) != 0)
		return err_set(reterr, ERR_INTERNAL, "event loop");
	return ERR_OK;
}

static void
init(struct master *m, const struct master_options *opt)
{
	*m = (struct master){.opt = *opt, .uid = NOBODY_ID, .gid = NOBODY_ID};
	m->is_root = geteuid() == 0;
	m->exe_fd = m->environ_fd = m->null_fd = m->init_exe_fd = m->board_fd = -1;
	m->conf_fd = m->pid_file_fd = m->admin_fd = m->serve_fd = m->ready_fd = -1;
	m->log_fd = STDERR_FILENO;
	TAILQ_INIT(&m->children);
	publish_init(&m->publish, &publish_ops, m);
	m->snapshots = snapshots_new();
	log_setup(m->log_fd, false, LOG_NOTICE, "master");
}

static void
done(struct master *m)
{
	cgroups_end(m);
	control_stop(m);
	place_remove_pid_file(m);
	reload_free(&m->reload);
	snapshots_free(&m->snapshots);
	publish_done(&m->publish);
	serve_close(m);
	seat_done(&m->spawner);
	seat_done(&m->sweeper);
	for (uint32_t i = 0; m->workers != NULL && i < LIMIT_WORKERS; i++)
		seat_done(&m->workers[i]);
	mem_free(m->workers);
	signals_stop(m);
	if (m->tick != NULL)
		event_free(m->tick);
	if (m->base != NULL)
		event_base_free(m->base);
	board_unmap(&m->board);
	arena_free(&m->conf_arena);
}

int
master_run(const struct master_options *opt)
{
	struct err e;
	struct master *m = MEM_NEW(struct master);
	init(m, opt);
	if (!opt->foreground)
		m->ready_fd = detach_start();
	if (open_all(m, &e) != ERR_OK) {
		log_error("cannot start", LOG_ERR(&e));
		detach_report(m->ready_fd, 1, e.msg);
		done(m);
		mem_free(m);
		return 1;
	}
	signals_start(m);
	m->reload = reload_new(m);
	m->workers = MEM_NEW_ARRAY(struct seat, LIMIT_WORKERS);
	seat_init(&m->spawner, m, ROLE_SPAWNER, 0);
	seat_init(&m->sweeper, m, ROLE_SWEEPER, 0);
	for (uint32_t i = 0; i < LIMIT_WORKERS; i++)
		seat_init(&m->workers[i], m, ROLE_WORKER, i + 1);
	reload_start(m, 0, 0);
	(void)event_base_dispatch(m->base);
	int code = m->exit_code != 0 ? m->exit_code : m->has_stopped_hard;
	if (code == 0)
		log_notice("stopped");
	done(m);
	mem_free(m);
	return code;
}
