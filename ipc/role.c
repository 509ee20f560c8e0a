#include "ipc/role.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <grp.h>
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
#include "base/version.h"
#include "ipc/board.h"
#include "ipc/payload.h"

/* Nobody of the same user may look into a role. The leak check of a test build traces its own
 * process, which needs the opposite. */
#ifdef __SANITIZE_ADDRESS__
#define ROLE_DUMPABLE 1
#else
#define ROLE_DUMPABLE 0
#endif

#define HEARTBEAT_S       1
#define FD_COUNT_EVERY    5 /* heartbeats */
#define NO_ID             ((uint32_t)-1)
#define SIGNALS_IGNORED_N (sizeof(signals_ignored) / sizeof(signals_ignored[0]))

/* The terminal's and the operator's signals are the master's business. */
static const int signals_ignored[] = {
    SIGPIPE, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

struct role_args {
	const char *name;
	uint32_t number, slot, uid, gid;
	bool log_json;
	enum log_level log_level;
};

struct role_private {
	struct event *heartbeat, *on_term;
	uint32_t beats;
};

static const char *const role_names[] = {
    [ROLE_MASTER] = "master",
    [ROLE_SPAWNER] = "spawner",
    [ROLE_BUILDER] = "builder",
    [ROLE_WORKER] = "worker",
    [ROLE_SWEEPER] = "sweeper",
};

/* What each role must find open besides 0, 1, 2, FD_CTL, FD_BOARD and FD_LOG; what it may find. */
static const struct {
	int must[2];
	int may[3];
} role_fds[] = {
    [ROLE_MASTER] = {{-1, -1}, {-1, -1, -1}},
    [ROLE_SPAWNER] = {{FD_INIT_EXE, -1}, {-1, -1, -1}},
    [ROLE_BUILDER] = {{FD_CONF, FD_ENVIRON}, {-1, -1, -1}},
    [ROLE_WORKER] = {{FD_LISTEN, -1}, {FD_SPAWNER, FD_ADMIN, FD_SERVE}},
    [ROLE_SWEEPER] = {{-1, -1}, {-1, -1, -1}},
};

const char *
role_name(enum role r)
{
	CHECK((size_t)r < ARRAY_LEN(role_names));
	return role_names[r];
}

static bool
number(const char *text, uint32_t *ret)
{
	uint64_t v;
	if (text == NULL || !str_u64(str_c(text), &v) || v >= NO_ID)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static enum err_code
parse_args(int argc, char **argv, struct role_args *ret, struct err *reterr)
{
	struct role_args a = {.uid = NO_ID, .gid = NO_ID, .slot = NO_ID, .log_level = LOG_INFO};
	for (int i = 1; i + 1 < argc; i += 2) {
		struct str key = str_c(argv[i]);
		const char *value = argv[i + 1];
		bool ok = true;
		if (str_eq(key, STR("--role")))
			a.name = value;
		else if (str_eq(key, STR("--number")))
			ok = number(value, &a.number);
		else if (str_eq(key, STR("--slot")))
			ok = number(value, &a.slot);
		else if (str_eq(key, STR("--uid")))
			ok = number(value, &a.uid);
		else if (str_eq(key, STR("--gid")))
			ok = number(value, &a.gid);
		else if (str_eq(key, STR("--log")))
			a.log_json = str_eq(str_c(value), STR("json"));
		else if (str_eq(key, STR("--log-level")))
			ok = log_level_parse(str_c(value), &a.log_level);
		else
			ok = false;
		if (!ok)
			return err_set(reterr, ERR_INPUT, "bad argument %s", argv[i]);
	}
	if (a.name == NULL || a.slot >= BOARD_SLOTS || (a.uid == NO_ID) != (a.gid == NO_ID))
		return err_set(reterr, ERR_INPUT, "roles are started by the master");
	*ret = a;
	return ERR_OK;
}

static bool
is_open(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0;
}

/* Checks the fixed descriptors and closes all others. */
static enum err_code
take_fds(enum role role, struct err *reterr)
{
	for (int fd = 0; fd < FD_FIRST_FREE; fd++) {
		bool must =
		    fd <= FD_LOG || fd == role_fds[role].must[0] || fd == role_fds[role].must[1];
		bool may = fd == role_fds[role].may[0] || fd == role_fds[role].may[1] ||
			   fd == role_fds[role].may[2];
		if (must && !is_open(fd))
			return err_set(reterr, ERR_PROTO, "descriptor %d is missing", fd);
		int unwanted = fd;
		if (!must && !may)
			fd_close(&unwanted);
		else if (fd > 2)
			(void)fd_set_cloexec(fd, true);
	}
	if (!fd_close_from(FD_FIRST_FREE))
		return err_set(reterr, ERR_IO, "close descriptors");
	return ERR_OK;
}

static enum err_code
drop_privileges(uint32_t uid, uint32_t gid, struct err *reterr)
{
	if (uid == NO_ID)
		return ERR_OK;
	gid_t g = gid;
	if (setgroups(1, &g) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return err_set(reterr, ERR_IO, "become uid %u gid %u", uid, gid);
	if (uid != 0 && (setuid(0) == 0 || geteuid() != uid || getegid() != gid))
		return err_set(reterr, ERR_INTERNAL, "privileges could be taken back");
	return ERR_OK;
}

/* The master's pid as the kernel recorded it when it made the channel: getppid() alone cannot tell
 * whether the parent died before PDEATHSIG was set. */
static enum err_code
watch_master(struct err *reterr)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(FD_CTL, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return err_set(reterr, ERR_IO, "channel to the master");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return err_set(reterr, ERR_IO, "PR_SET_PDEATHSIG");
	if (getppid() != peer.pid)
		return err_set(reterr, ERR_PROTO, "the master is gone");
	return ERR_OK;
}

static void
set_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (size_t i = 0; i < SIGNALS_IGNORED_N; i++)
		(void)sigaction(signals_ignored[i], &ignore, NULL);
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void
role_set_title(int argc, char **argv, size_t spare, const char *title)
{
	if (argc <= 0)
		return;
	/* The kernel shows the bytes from the first argument to the end of the last; a title that
	 * overwrites the last one's NUL is shown to its own NUL. */
	char *start = argv[0], *end = argv[0];
	for (int i = 0; i < argc && argv[i] == end; i++)
		end = argv[i] + strlen(argv[i]) + 1;
	size_t room = (size_t)(end - start), need = strlen(title) + 1;
	memset(start, 0, room);
	if (need > room)
		room = need - room <= spare ? need : room + spare;
	(void)snprintf(start, room, "%s", title);
	(void)prctl(PR_SET_NAME, "otari");
}

static void
on_heartbeat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct role_env *env = arg;
	env->slot->heartbeat_ms = (uint64_t)clock_mono_ms();
	if (env->priv->beats++ % FD_COUNT_EVERY == 0)
		board_gauge(env->slot, BG_OPEN_FDS, (uint64_t)fd_count_open());
}

/* Somebody told this process alone to end: it drains, and the master starts another. */
static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct role_env *env = arg;
	struct msg m = {.type = MSG_DRAIN};
	env->on_msg(env->ctl, &m, env->arg);
}

static void
on_ctl(struct chan *c, struct msg *m, void *arg)
{
	struct role_env *env = arg;
	if (m == NULL || m->type != MSG_REOPEN) {
		env->on_msg(c, m, env->arg);
		return;
	}
	/* The new file takes the place of the old descriptor, so nobody has to be told. */
	if (m->nfds == 1 && fd_dup_to(m->fds[0], FD_LOG, true)) {
		(void)fd_dup_to(FD_LOG, STDOUT_FILENO, false);
		(void)fd_dup_to(FD_LOG, STDERR_FILENO, false);
	}
}

static enum err_code
start_loop(struct role_env *env, struct err *reterr)
{
	env->base = event_base_new();
	if (env->base == NULL)
		return err_set(reterr, ERR_INTERNAL, "event loop");
	enum err_code rc = chan_new(env->base, FD_CTL, on_ctl, env, &env->ctl, reterr);
	if (rc != ERR_OK)
		return rc;
	chan_set_peer(env->ctl, 1u << ROLE_MASTER);
	env->priv = MEM_NEW(struct role_private);
	env->priv->heartbeat = event_new(env->base, -1, EV_PERSIST, on_heartbeat, env);
	env->priv->on_term = evsignal_new(env->base, SIGTERM, on_term, env);
	struct timeval every = {HEARTBEAT_S, 0};
	if (env->priv->heartbeat == NULL || env->priv->on_term == NULL ||
	    event_add(env->priv->heartbeat, &every) != 0 ||
	    event_add(env->priv->on_term, NULL) != 0)
		return err_set(reterr, ERR_INTERNAL, "events");
	on_heartbeat(-1, 0, env);
	return ERR_OK;
}

static void
say_hello(struct role_env *env)
{
	struct buf b = BUF_INIT(256);
	struct hello h = {(uint32_t)env->role, env->number, (uint32_t)getpid(), STR(OTARI_VERSION)};
	hello_encode(&b, &h);
	chan_send(env->ctl, MSG_HELLO, 0, buf_str(&b), NULL, 0);
	buf_done(&b);
}

static bool
find_role(const char *name, enum role *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(role_names); i++)
		if (str_eq(str_c(name), str_c(role_names[i]))) {
			*ret = (enum role)i;
			return true;
		}
	return false;
}

/* The soft limit is made for programs that use select(); a worker holds two sockets a stream. */
static void
raise_fd_limit(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

enum err_code
role_start(
    int argc, char **argv, chan_on_msg *on_msg, void *arg, struct role_env *ret, struct err *reterr)
{
	struct role_args a = {0};
	enum err_code rc = parse_args(argc, argv, &a, reterr);
	if (rc != ERR_OK)
		return rc;
	struct role_env *env = ret;
	*env = (struct role_env){.number = a.number, .on_msg = on_msg, .arg = arg};
	if (!find_role(a.name, &env->role))
		return err_set(reterr, ERR_INPUT, "no role %s", a.name);
	char proc[32], title[48];
	if (env->number > 0)
		(void)snprintf(proc, sizeof(proc), "%s %u", role_name(env->role), env->number);
	else
		(void)snprintf(proc, sizeof(proc), "%s", role_name(env->role));
	(void)snprintf(title, sizeof(title), "otari: %s", proc);
	log_setup(FD_LOG, a.log_json, a.log_level, proc);
	rc = take_fds(env->role, reterr);
	role_set_title(argc, argv, 0, title);
	set_signals();
	raise_fd_limit();
	if (rc == ERR_OK)
		rc = drop_privileges(a.uid, a.gid, reterr);
	if (rc == ERR_OK && prctl(PR_SET_DUMPABLE, ROLE_DUMPABLE) != 0)
		rc = err_set(reterr, ERR_IO, "PR_SET_DUMPABLE");
	if (rc == ERR_OK)
		rc = watch_master(reterr);
	if (rc == ERR_OK)
		rc = board_map(FD_BOARD, &env->board, reterr);
	if (rc == ERR_OK) {
		env->slot = &env->board->slot[a.slot];
		env->slot->pid = (uint32_t)getpid();
		rc = start_loop(env, reterr);
	}
	if (rc != ERR_OK) {
		role_done(env);
		return rc;
	}
	say_hello(env);
	return ERR_OK;
}

void
role_ready(struct role_env *env)
{
	env->slot->state = BOARD_READY;
	env->slot->heartbeat_ms = (uint64_t)clock_mono_ms();
	chan_send(env->ctl, MSG_READY, 0, STR_NULL, NULL, 0);
}

void
role_draining(struct role_env *env)
{
	env->slot->state = BOARD_DRAINING;
}

void
role_done(struct role_env *env)
{
	if (env->priv != NULL) {
		if (env->priv->heartbeat != NULL)
			event_free(env->priv->heartbeat);
		if (env->priv->on_term != NULL)
			event_free(env->priv->on_term);
		mem_free(env->priv);
		env->priv = NULL;
	}
	chan_free(&env->ctl);
	if (env->base != NULL)
		event_base_free(env->base);
	env->base = NULL;
	board_unmap(&env->board);
	env->slot = NULL;
}
