#include "worker/parts.h"

#include <sys/queue.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/http_client.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/secrets.h"
#include "storage/blob/blob.h"
#include "storage/spool.h"
#include "storage/sql/db.h"
#include "worker/api/api.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/http/http.h"
#include "worker/jobs.h"
#include "worker/publish.h"
#include "worker/serving.h"
#include "worker/tls.h"
#include "worker/turn/settle.h"

#define SQL_QUEUE_MAX    1024u
#define IO_QUEUE_MAX     1024u
#define SPOOL_TICK_MS    250
#define GAUGES_MS        1000
#define DRAIN_POLL_MS    20
#define BODY_MIN_BYTES_S 256u
#define CODE_TIMEOUT_MS  30000u

struct retired {
	TAILQ_ENTRY(retired) link;
	struct code_backend *code;
};
TAILQ_HEAD(code_backends, retired);

struct parts {
	struct worker_env *env;
	char *database_url; /* read by pool threads */
	size_t database_url_len;
	struct ssl_ctx_st *tls;
	char *code_url, *code_token, *code_ca; /* that env->code was made of */
	struct code_backends retired;          /* that sessions still run in */
	struct event *spool_tick, *gauges, *drain_poll;
	struct serving *serving;
	unsigned servers_open; /* not drained yet */
	void (*on_drained)(void *arg);
	void *arg;
};

static const struct snap_settings *
settings(const struct worker_env *env)
{
	return &snapshot_policy(env->policy)->settings;
}

/* --- SQL threads ----------------------------------------------------------------------------- */

/* Lazily: a database that is away shows at the first statement, as it does later on. */
static void *
open_database(void *arg)
{
	struct parts *p = arg;
	struct db *db = NULL;
	struct err e;
	struct str url = str_n(p->database_url, p->database_url_len);
	if (db_open(url, DB_OPEN_LAZY, &db, &e) == ERR_OK)
		return db;
	log_error("the database cannot be used", LOG_ERR(&e));
	_exit(1);
}

static void
close_database(void *context)
{
	struct db *db = context;
	db_close(&db);
}

static enum err_code
open_jobs(struct parts *p, struct err *reterr)
{
	struct worker_env *env = p->env;
	const struct snap_settings *s = settings(env);
	struct str url = secrets_get(env->secrets, STR("database_url"));
	if (url.ptr == NULL)
		return err_set(reterr, ERR_PROTO, "no database_url among the secrets");
	p->database_url = mem_strndup(url.ptr, url.len);
	p->database_url_len = url.len;
	const struct jobs_config sql = {
	    .name = "sql",
	    .threads = s->sql_threads > 0 ? s->sql_threads : 1,
	    .queue_max = SQL_QUEUE_MAX,
	    .thread_open = open_database,
	    .thread_close = close_database,
	    .arg = p,
	};
	const struct jobs_config io = {
	    .name = "io",
	    .threads = s->io_threads > 0 ? s->io_threads : 1,
	    .queue_max = IO_QUEUE_MAX,
	};
	enum err_code rc = jobs_new(env->base, &sql, &env->sql, reterr);
	if (rc == ERR_OK)
		rc = jobs_new(env->base, &io, &env->io, reterr);
	return rc;
}

/* --- storage --------------------------------------------------------------------------------- */

static enum err_code
open_storage(struct parts *p, struct err *reterr)
{
	struct worker_env *env = p->env;
	const struct snap_settings *s = settings(env);
	char dir[SPOOL_DIR_SIZE], name[16], blobs[PATH_MAX];
	enum err_code rc = spool_dir(snapshot_str(env->policy, s->state_dir), dir, reterr);
	(void)snprintf(name, sizeof(name), "%u", env->number);
	if (rc == ERR_OK)
		rc = spool_open(dir, name, &env->spool, reterr);
	if (rc == ERR_OK)
		rc = settlement_new(env->base, env->spool, env->slot, &env->settlement, reterr);
	if (rc != ERR_OK || s->files_enabled == 0)
		return rc;
	struct str files = snapshot_str(env->policy, s->files_local_dir);
	if (!str_eq(snapshot_str(env->policy, s->files_backend), STR("local")))
		return err_set(reterr, ERR_UNSUPPORTED, "files_backend: only local is built");
	if (!str_copy(blobs, sizeof(blobs), files))
		return err_set(reterr, ERR_INPUT, "files_local_dir: too long");
	return blob_open_local(blobs, &env->blobs, reterr);
}

/* --- code sessions --------------------------------------------------------------------------- */

static struct code_config
code_config(const struct worker_env *env)
{
	const struct snap_settings *s = settings(env);
	return (struct code_config){
	    .timeout_ms = CODE_TIMEOUT_MS,
	    .queue_ms = s->sandbox_queue_ms,
	    .max_files = s->files_enabled != 0 ? s->files_output_max_files : 0,
	    .max_bytes = s->files_output_max_bytes,
	    .output_bytes = s->sandbox_output_bytes,
	};
}

static bool
wants_sandbox(const struct worker_env *env)
{
	return snapshot_str(env->policy, settings(env)->sandbox_url).len > 0;
}

/* false: on another host. */
static bool
wants_local(const struct worker_env *env)
{
	return str_starts(snapshot_str(env->policy, settings(env)->sandbox_url), STR("local:"));
}

static void
forget_text(char **text)
{
	if (*text != NULL)
		mem_wipe(*text, str_c(*text).len);
	mem_free(*text);
	*text = NULL;
}

static char *
kept_text(struct str s)
{
	return mem_strndup(s.ptr != NULL ? s.ptr : "", s.len);
}

/* Takes *spawner_fd where it is of use. */
static enum err_code
open_code(struct parts *p, int *spawner_fd, struct err *reterr)
{
	struct worker_env *env = p->env;
	struct code_config cfg = code_config(env);
	const struct code_remote r = {
	    .url = snapshot_str(env->policy, settings(env)->sandbox_url),
	    .token = secrets_get(env->secrets, STR("sandbox_token")),
	    .ca_file = snapshot_str(env->policy, settings(env)->sandbox_ca_file),
	};
	if (r.url.len == 0)
		return ERR_OK;
	p->code_url = kept_text(r.url);
	p->code_token = kept_text(r.token);
	p->code_ca = kept_text(r.ca_file);
	if (!wants_local(env)) {
		env->code = code_backend_new_remote(env->base, env->client, &r, &cfg);
		return ERR_OK;
	}
	int fd = *spawner_fd;
	*spawner_fd = -1;
	return code_backend_new_local(env->base, fd, &cfg, &env->code, reterr);
}

/* What env->code was made of is what is wanted now; not asked when none is wanted. */
static bool
code_is_current(const struct parts *p)
{
	const struct worker_env *env = p->env;
	struct str url = snapshot_str(env->policy, settings(env)->sandbox_url);
	struct str token = secrets_get(env->secrets, STR("sandbox_token"));
	struct str ca = snapshot_str(env->policy, settings(env)->sandbox_ca_file);
	return str_eq(url, str_c(p->code_url)) &&
	       (wants_local(env) ||
		   (str_eq(token, str_c(p->code_token)) && str_eq(ca, str_c(p->code_ca))));
}

/* Its sessions run on; it is freed when the last one is closed. */
static void
retire_code(struct parts *p)
{
	struct retired *r = MEM_NEW(struct retired);
	r->code = p->env->code;
	p->env->code = NULL;
	code_backend_attach(r->code, -1);
	TAILQ_INSERT_TAIL(&p->retired, r, link);
	forget_text(&p->code_url);
	forget_text(&p->code_token);
	forget_text(&p->code_ca);
}

static void
free_retired(struct parts *p, bool all)
{
	struct retired *r, *next;
	for (r = TAILQ_FIRST(&p->retired); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!all && !code_backend_is_idle(r->code))
			continue;
		TAILQ_REMOVE(&p->retired, r, link);
		code_backend_free(&r->code);
		mem_free(r);
	}
}

static bool
code_is_idle(struct parts *p)
{
	free_retired(p, false);
	return TAILQ_EMPTY(&p->retired) &&
	       (p->env->code == NULL || code_backend_is_idle(p->env->code));
}

/* --- HTTP ------------------------------------------------------------------------------------ */

static struct http_server_config
http_config(const struct worker_env *env)
{
	const struct snap_settings *s = settings(env);
	return (struct http_server_config){
	    .head_timeout_ms = s->http_head_timeout_ms,
	    .idle_timeout_ms = s->http_idle_timeout_ms,
	    .body_min_bytes_per_s = BODY_MIN_BYTES_S,
	    .write_stall_ms = s->http_write_stall_ms,
	    .max_connections = s->max_connections,
	};
}

static enum err_code
open_http(struct parts *p, struct err *reterr)
{
	struct worker_env *env = p->env;
	const struct http_server_config cfg = http_config(env);
	enum err_code rc =
	    http_server_new(env->base, &cfg, api_public_ops(), env, &env->public_http, reterr);
	if (rc == ERR_OK)
		rc = http_server_new(
		    env->base, &cfg, api_admin_ops(), env, &env->admin_http, reterr);
	if (rc == ERR_OK)
		rc = tls_load(env->secrets, &p->tls, reterr);
	return rc;
}

enum err_code
parts_listen(struct parts *p, int fd, bool is_admin, struct err *reterr)
{
	struct http_server *s = is_admin ? p->env->admin_http : p->env->public_http;
	return http_server_listen(s, fd, is_admin ? NULL : p->tls, reterr);
}

enum err_code
parts_serve_sandbox(struct parts *p, int fd, struct err *reterr)
{
	const struct http_server_config cfg = http_config(p->env);
	if (p->serving == NULL)
		p->serving = serving_new(p->env, &cfg, p->tls);
	return serving_listen(p->serving, fd, reterr);
}

/* --- timers ---------------------------------------------------------------------------------- */

static void
on_spool_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct parts *p = arg;
	spool_tick(p->env->spool);
}

static void
on_gauges(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct parts *p = arg;
	const struct worker_env *env = p->env;
	free_retired(p, false);
	board_gauge(env->slot, BG_CONNECTIONS, http_server_connections(env->public_http));
	board_gauge(env->slot, BG_JOBS_QUEUED, jobs_queued(env->sql) + jobs_queued(env->io));
	board_gauge(env->slot, BG_SNAPSHOTS_ALIVE, snapshot_alive());
	if (env->code != NULL)
		board_gauge(env->slot, BG_SESSIONS_LEASED, code_backend_open_count(env->code));
}

static void on_drain_poll(evutil_socket_t fd, short what, void *arg);

static enum err_code
start_timer(struct parts *p, event_callback_fn fn, long ms, struct event **ret, struct err *reterr)
{
	struct timeval every = {ms / 1000, ms % 1000 * 1000};
	*ret = event_new(p->env->base, -1, EV_PERSIST, fn, p);
	if (*ret == NULL || event_add(*ret, &every) != 0)
		return err_set(reterr, ERR_INTERNAL, "timer");
	return ERR_OK;
}

/* --- life ------------------------------------------------------------------------------------ */

enum err_code
parts_open(struct worker_env *env, int *spawner_fd, struct parts **ret, struct err *reterr)
{
	struct parts *p = MEM_NEW(struct parts);
	TAILQ_INIT(&p->retired);
	p->env = env;
	enum err_code rc = http_client_new(env->base, &env->client, reterr);
	if (rc == ERR_OK)
		rc = open_code(p, spawner_fd, reterr);
	if (rc == ERR_OK)
		rc = open_jobs(p, reterr);
	if (rc == ERR_OK)
		rc = open_storage(p, reterr);
	if (rc == ERR_OK) {
		env->publish = publish_new(env);
		rc = open_http(p, reterr);
	}
	if (rc == ERR_OK)
		rc = start_timer(p, on_spool_tick, SPOOL_TICK_MS, &p->spool_tick, reterr);
	if (rc == ERR_OK)
		rc = start_timer(p, on_gauges, GAUGES_MS, &p->gauges, reterr);
	if (rc != ERR_OK)
		parts_close(&p);
	else
		*ret = p;
	return rc;
}

void
parts_reconfigure(struct parts *p, int *spawner_fd)
{
	struct worker_env *env = p->env;
	struct code_config cfg = code_config(env);
	struct err e;
	if (env->code != NULL && wants_sandbox(env) && !code_is_current(p))
		retire_code(p);
	if (env->code != NULL)
		code_backend_set_config(env->code, &cfg);
	else if (open_code(p, spawner_fd, &e) != ERR_OK)
		log_error("code execution is not available", LOG_ERR(&e));
}

/* The last connection is gone, but what its request left to do may still run. */
static void
on_drain_poll(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct parts *p = arg;
	const struct worker_env *env = p->env;
	if (p->servers_open > 0 || env->slot->gauges[BG_REQUESTS_ACTIVE] > 0 ||
	    jobs_queued(env->sql) + jobs_queued(env->io) > 0 || !code_is_idle(p))
		return;
	(void)event_del(p->drain_poll);
	p->on_drained(p->arg);
}

static void
on_server_drained(void *arg)
{
	struct parts *p = arg;
	p->servers_open--;
}

void
parts_drain(struct parts *p, void (*on_drained)(void *arg), void *arg)
{
	struct err e;
	p->on_drained = on_drained;
	p->arg = arg;
	p->servers_open = 2;
	http_server_drain(p->env->public_http, on_server_drained, p);
	http_server_drain(p->env->admin_http, on_server_drained, p);
	if (p->serving != NULL) {
		p->servers_open++;
		serving_drain(p->serving, on_server_drained, p);
	}
	if (start_timer(p, on_drain_poll, DRAIN_POLL_MS, &p->drain_poll, &e) != ERR_OK)
		on_drained(arg);
}

static void
free_event(struct event **e)
{
	if (*e != NULL)
		event_free(*e);
	*e = NULL;
}

void
parts_close(struct parts **pp)
{
	struct parts *p = *pp;
	struct worker_env *env = p->env;
	*pp = NULL;
	free_event(&p->drain_poll);
	free_event(&p->gauges);
	free_event(&p->spool_tick);
	/* Exchanges first: closing them gives up calls, sessions and jobs of their requests. */
	http_server_free(&env->public_http);
	http_server_free(&env->admin_http);
	serving_free(&p->serving);
	publish_free(&env->publish);
	jobs_free(&env->sql);
	jobs_free(&env->io);
	code_backend_free(&env->code);
	free_retired(p, true);
	forget_text(&p->code_url);
	forget_text(&p->code_token);
	forget_text(&p->code_ca);
	http_client_free(&env->client);
	if (env->settlement != NULL)
		settlement_free(&env->settlement);
	if (env->spool != NULL)
		spool_close(&env->spool);
	if (env->blobs != NULL)
		blob_close(&env->blobs);
	tls_free(&p->tls);
	if (p->database_url != NULL)
		mem_wipe(p->database_url, p->database_url_len);
	mem_free(p->database_url);
	mem_free(p);
}
