#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "conf/load.h"
#include "conf/validate.h"

#define UNIX_PATH_MAX_BYTES 107u
#define DEFAULT_STATE_ROOT  "/var/lib/otari"
#define DEFAULT_STATE_USER  "run"
#define DEFAULT_CONTROL     "control.sock"

enum { BACKEND_LOCAL, BACKEND_S3, BACKEND_URL, BACKEND_FSSPEC };
enum { REQUIRE_PRICING_FALSE, REQUIRE_PRICING_TRUE, REQUIRE_PRICING_AUTO };

uint32_t
line_of(struct loader *ld, const char *key)
{
	const struct conf_origin *o = conf_origin_of(ld->c, key);
	return o->from == FROM_ENVIRON ? REPORT_ENVIRON : o->line;
}

/* --- paths ----------------------------------------------------------------------------------- */

static struct str
join(struct arena *a, struct str dir, struct str path)
{
	while (str_starts(path, STR("./")))
		path = str_from(path, 2);
	if (path.len > 0 && path.ptr[0] == '/')
		return path;
	bool slash = dir.len > 0 && dir.ptr[dir.len - 1] == '/';
	return arena_printf(a, "%.*s%s%.*s", STR_FMT(dir), slash ? "" : "/", STR_FMT(path));
}

static struct str
file_folder(struct loader *ld)
{
	struct str file = str_c(ld->src->file);
	size_t slash = str_rchr(file, '/');
	if (slash == SIZE_MAX)
		return ld->src->cwd;
	return join(ld->a, ld->src->cwd, slash > 0 ? str_sub(file, 0, slash) : STR("/"));
}

static bool
split_scheme(struct str url, struct str *ret_scheme, struct str *ret_rest)
{
	size_t at = str_find(url, STR("://"));
	if (at == SIZE_MAX)
		return false;
	*ret_scheme = str_sub(url, 0, at);
	*ret_rest = str_from(url, at + 3);
	/* SQLAlchemy's "dialect+driver": the driver is ours to choose. */
	*ret_scheme = str_sub(*ret_scheme, 0, str_chr(*ret_scheme, '+'));
	return true;
}

static void
resolve_database(struct loader *ld)
{
	struct conf *c = ld->c;
	struct str scheme, rest;
	uint32_t line = line_of(ld, "database_url");
	if (c->database_url.ptr == NULL || !split_scheme(c->database_url, &scheme, &rest)) {
		conf_error(ld->r, line,
		    "database_url: must be sqlite:///PATH or mysql://user:password@host/database");
	} else if (str_starts_nocase(scheme, STR("postgres"))) {
		conf_error(ld->r, line,
		    "database_url: PostgreSQL is not supported; use sqlite:///PATH or "
		    "mysql://user:password@host/database");
	} else if (str_eq_nocase(scheme, STR("sqlite"))) {
		if (rest.len < 2 || rest.ptr[0] != '/' || str_eq(rest, STR("/:memory:")))
			conf_error(
			    ld->r, line, "database_url: sqlite needs a file: sqlite:///PATH");
		else
			c->database_url = arena_printf(ld->a, "sqlite:///%.*s",
			    STR_FMT(join(ld->a, c->state_dir, str_from(rest, 1))));
	} else if (str_eq_nocase(scheme, STR("mysql")) || str_eq_nocase(scheme, STR("mariadb"))) {
		size_t slash = str_chr(rest, '/');
		if (slash == SIZE_MAX || slash == 0 || slash + 1 == rest.len)
			conf_error(ld->r, line,
			    "database_url: must be mysql://user:password@host:3306/database");
		else
			c->database_url = arena_printf(ld->a, "mysql://%.*s", STR_FMT(rest));
	} else {
		conf_error(ld->r, line, "database_url: '%.*s' is no database that Otari knows",
		    STR_FMT(conf_shown(scheme)));
	}
}

static void
resolve_state_dir(struct loader *ld)
{
	struct conf *c = ld->c;
	if (c->state_dir.ptr == NULL)
		c->state_dir = ld->src->as_root ? STR(DEFAULT_STATE_ROOT) : STR(DEFAULT_STATE_USER);
	c->state_dir = join(ld->a, ld->src->cwd, c->state_dir);
}

struct str
conf_control_path(struct loader *ld)
{
	struct str socket = ld->c->control_socket;
	resolve_state_dir(ld);
	return join(ld->a, ld->c->state_dir, socket.ptr != NULL ? socket : STR(DEFAULT_CONTROL));
}

void
resolve_paths(struct loader *ld)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	struct conf *c = ld->c;
	struct str folder = file_folder(ld);
	resolve_state_dir(ld);
	for (size_t i = 0; i < n; i++) {
		struct str *path = (void *)((char *)c + keys[i].off);
		if (keys[i].type == KT_WRITTEN && path->ptr != NULL)
			*path = join(ld->a, c->state_dir, *path);
		if (keys[i].type == KT_READ && path->ptr != NULL)
			*path = join(ld->a, folder, *path);
	}
	for (uint32_t i = 0; i < c->provider_count; i++)
		if (c->providers[i].api_key_file.ptr != NULL)
			c->providers[i].api_key_file =
			    join(ld->a, folder, c->providers[i].api_key_file);
	resolve_database(ld);
}

/* --- service --------------------------------------------------------------------------------- */

static bool
is_wildcard(struct str host)
{
	return str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("::"));
}

static void
check_listeners(struct loader *ld)
{
	struct conf *c = ld->c;
	struct err e;
	char host[VALIDATE_HOST_SIZE], admin[VALIDATE_HOST_SIZE];
	uint16_t port;
	if (c->host.ptr == NULL)
		c->host = STR("0.0.0.0");
	if (validate_host(c->host, host, &e) != ERR_OK) {
		conf_error(ld->r, line_of(ld, "host"), "host: %s", e.msg);
		return;
	}
	c->host = arena_str(ld->a, str_c(host));
	if (c->admin_listen.ptr == NULL)
		return;
	if (validate_host_port(c->admin_listen, admin, &port, &e) != ERR_OK)
		return; /* already reported */
	if (port != 0 && port == c->port &&
	    (strcmp(host, admin) == 0 || is_wildcard(c->host) || is_wildcard(str_c(admin))))
		conf_error(ld->r, line_of(ld, "admin_listen"),
		    "admin_listen: the public listener has port %u already", (unsigned)port);
	if (!str_starts(str_c(admin), STR("127.")) && strcmp(admin, "::1") != 0)
		conf_warning(ld->r, line_of(ld, "admin_listen"),
		    "admin_listen: %s is not loopback; whoever reaches it reads the metrics",
		    admin);
}

void
check_secret_key(
    struct loader *ld, const char *name, struct str key, const char *file_name, struct str file)
{
	struct err e;
	if (key.ptr != NULL && file.ptr != NULL)
		conf_error(
		    ld->r, line_of(ld, file_name), "%s and %s exclude each other", name, file_name);
	if (key.ptr == NULL)
		return;
	if (str_chr(key, ' ') != SIZE_MAX || validate_header(STR("otari-key"), key, &e) != ERR_OK)
		conf_error(ld->r, line_of(ld, name),
		    "%s: holds a character that cannot be sent in a header", name);
	else if (key.len < 16)
		conf_warning(ld->r, line_of(ld, name),
		    "%s: shorter than 16 characters, easy to guess", name);
}

static void
check_service(struct loader *ld)
{
	struct conf *c = ld->c;
	if ((c->tls_cert.ptr == NULL) != (c->tls_key.ptr == NULL))
		conf_error(ld->r, line_of(ld, c->tls_cert.ptr != NULL ? "tls_cert" : "tls_key"),
		    "tls_cert and tls_key are needed together");
	if (c->user.ptr == NULL || str_eq(c->user, STR("root")) || str_eq(c->user, STR("0")))
		conf_error(ld->r, line_of(ld, "user"), "user: must be a user other than root");
	if (c->pid_file.ptr == NULL)
		c->pid_file = join(ld->a, c->state_dir, STR("otari.pid"));
	if (c->control_socket.ptr == NULL)
		c->control_socket = join(ld->a, c->state_dir, STR(DEFAULT_CONTROL));
	if (c->control_socket.len > UNIX_PATH_MAX_BYTES)
		conf_error(ld->r, line_of(ld, "control_socket"),
		    "control_socket: '…%.*s' is longer than the %u bytes of a socket's path",
		    STR_FMT(str_from(c->control_socket, c->control_socket.len - 40)),
		    UNIX_PATH_MAX_BYTES);
	check_secret_key(ld, "master_key", c->master_key, "master_key_file", c->master_key_file);
	if (c->rate_limit_rpm != 0)
		conf_warning(ld->r, line_of(ld, "rate_limit_rpm"),
		    "rate_limit_rpm: not built yet, no limit is kept");
	if (c->require_pricing == REQUIRE_PRICING_TRUE)
		conf_warning(ld->r, line_of(ld, "require_pricing"),
		    "require_pricing: not built yet, models without a price are answered");
}

/* --- files ----------------------------------------------------------------------------------- */

static void
check_files(struct loader *ld)
{
	struct conf *c = ld->c;
	uint32_t line = line_of(ld, "files_backend");
	if (c->files_local_dir.ptr == NULL)
		c->files_local_dir = join(ld->a, c->state_dir, STR("otari-files"));
	if (c->files_backend == BACKEND_FSSPEC)
		c->files_backend = BACKEND_URL;
	if (c->files_backend == BACKEND_S3 && c->files_s3_bucket.ptr == NULL)
		conf_error(ld->r, line, "files_backend: s3 needs files_s3_bucket");
	else if (c->files_backend == BACKEND_URL && c->files_url.ptr == NULL)
		conf_error(ld->r, line, "files_backend: url needs files_url");
	else if (c->files_backend != BACKEND_LOCAL)
		conf_error(ld->r, line, "files_backend: %s is not built yet; use local",
		    conf_files_backend(c));
	if (c->files_provider_copy)
		conf_warning(ld->r, line_of(ld, "files_provider_copy"),
		    "files_provider_copy: not built yet, the provider keeps its files");
	if (c->files_output_max_bytes > c->files_max_bytes)
		c->files_output_max_bytes = c->files_max_bytes;
}

/* --- models ---------------------------------------------------------------------------------- */

static void
check_selector(struct loader *ld, struct str text, uint32_t line, const char *what)
{
	struct err e;
	struct str provider, model;
	if (validate_selector(text, &provider, &model, &e) != ERR_OK)
		conf_error(ld->r, line, "%s: '%.*s' %s", what, STR_FMT(conf_shown(text)), e.msg);
	else if (conf_provider(ld->c, provider) == NULL)
		conf_error(ld->r, line, "%s: there is no provider '%.*s'", what,
		    STR_FMT(conf_shown(provider)));
}

static void
check_models(struct loader *ld)
{
	struct conf *c = ld->c;
	for (uint32_t i = 0; i < c->alias_count; i++) {
		char what[128];
		(void)snprintf(
		    what, sizeof(what), "aliases.%.*s", STR_FMT(conf_shown(c->aliases[i].name)));
		check_selector(ld, c->aliases[i].target, c->aliases[i].line, what);
	}
	for (uint32_t i = 0; i < c->models.count; i++)
		check_selector(ld, c->models.items[i], line_of(ld, "models"), "models");
	if (c->default_provider.ptr != NULL && conf_provider(c, c->default_provider) == NULL)
		conf_error(ld->r, c->routing_line,
		    "routing.default_provider: there is no provider '%.*s'",
		    STR_FMT(conf_shown(c->default_provider)));
	if (c->provider_count == 0)
		conf_warning(ld->r, 0,
		    "no provider is declared and no provider's key is in the "
		    "environment: no model can be reached");
}

static void
check_key_workspaces(struct loader *ld)
{
	for (uint32_t i = 0; i < ld->c->key_count; i++) {
		struct str w = ld->c->keys[i].workspace;
		if (w.ptr != NULL && conf_workspace(ld->c, w) == NULL && !validate_uuid(w) &&
		    !str_eq(w, STR("default")))
			conf_error(ld->r, ld->c->keys[i].line,
			    "keys[%u].workspace: there is no workspace '%.*s'", i,
			    STR_FMT(conf_shown(w)));
	}
}

void
check_conf(struct loader *ld)
{
	check_listeners(ld);
	check_service(ld);
	check_files(ld);
	check_sandbox(ld);
	check_models(ld);
	check_key_workspaces(ld);
}

const char *
conf_files_backend(const struct conf *c)
{
	return c->files_backend == BACKEND_LOCAL ? "local"
	       : c->files_backend == BACKEND_S3  ? "s3"
						 : "url";
}

/* --- for the master -------------------------------------------------------------------------- */

static uint32_t
processors(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	if (n < 1)
		return 1;
	return n < (int)LIMIT_WORKERS ? (uint32_t)n : LIMIT_WORKERS;
}

static struct str
joined_list(struct arena *a, struct conf_list list)
{
	struct str all = STR_NULL;
	for (uint32_t i = 0; i < list.count; i++)
		all = arena_printf(
		    a, "%.*s%s%.*s", STR_FMT(all), i > 0 ? "," : "", STR_FMT(list.items[i]));
	return all;
}

static void
fill_sandbox(const struct conf *c, struct sandbox_conf *s)
{
	*s = (struct sandbox_conf){
	    .url = c->sandbox_url,
	    .python = c->sandbox_python,
	    .rootfs = c->sandbox_rootfs,
	    .preload = joined_list(c->arena, c->sandbox_preload),
	    .serve = c->sandbox_serve,
	    .pool_size = (uint32_t)c->sandbox_pool_size,
	    .pids = (uint32_t)c->sandbox_pids,
	    .cpu_percent = (uint32_t)c->sandbox_cpu,
	    .memory_bytes = c->sandbox_memory_bytes,
	    .workspace_bytes = c->sandbox_workspace_bytes,
	    .file_bytes = c->sandbox_file_bytes,
	    .output_bytes = c->sandbox_output_bytes,
	    .workspace_inodes = (uint32_t)c->sandbox_workspace_inodes,
	    .open_files = (uint32_t)c->sandbox_open_files,
	    .max_sessions = (uint32_t)c->sandbox_max_sessions,
	    .max_sessions_per_workspace = (uint32_t)c->sandbox_max_sessions_per_workspace,
	    .queue_ms = (uint32_t)c->sandbox_queue_ms,
	    .uid_base = (uint32_t)c->sandbox_uid_base,
	    .require_cgroup = c->sandbox_require_cgroup,
	};
}

void
conf_master(const struct conf *c, struct master_conf *ret)
{
	*ret = (struct master_conf){
	    .host = c->host,
	    .admin_listen = c->admin_listen,
	    .user = c->user,
	    .state_dir = c->state_dir,
	    .pid_file = c->pid_file,
	    .control_socket = c->control_socket,
	    .log_file = c->log_file,
	    .tls_cert = c->tls_cert,
	    .port = (uint32_t)c->port,
	    .workers = c->workers != 0 ? (uint32_t)c->workers : processors(),
	    .log_level = (uint32_t)c->log_level,
	    .log_json = c->log_format == 1,
	    .drain_timeout_ms = (uint32_t)c->drain_timeout_ms,
	    .publish_timeout_ms = (uint32_t)c->publish_timeout_ms,
	    .heartbeat_timeout_ms = (uint32_t)c->heartbeat_timeout_ms,
	};
	fill_sandbox(c, &ret->sandbox);
}
