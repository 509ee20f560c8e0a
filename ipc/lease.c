#include "ipc/lease.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

void
sandbox_settings_default(struct sandbox_settings *s)
{
	memset(s, 0, sizeof(*s));
	memcpy(s->python, "/usr/bin/python3", sizeof("/usr/bin/python3"));
	memcpy(
	    s->preload, "numpy,pandas,matplotlib.pyplot", sizeof("numpy,pandas,matplotlib.pyplot"));
	s->memory_bytes = 1ull << 30;
	s->workspace_bytes = 128ull << 20;
	s->workspace_inodes = 4096;
	s->file_bytes = 128ull << 20;
	s->output_bytes = 1u << 20;
	s->output_max_bytes = 64ull << 20;
	s->output_max_files = 20;
	s->pids = 64;
	s->cpu_seconds = 600;
	s->open_files = 256;
	s->max_sessions = 32;
	s->pool_size = 2;
	s->zygote_forks = 10000;
	s->zygote_age_s = 3600;
	s->cpu_percent = 100;
	s->log_level = 2; /* notice */
	s->log_json = 1;
}

size_t
lease_size(uint32_t type)
{
	switch (type) {
	case LEASE_MSG_SETTINGS:
		return sizeof(struct lease_settings);
	case LEASE_MSG_ADD_WORKER:
	case LEASE_MSG_REMOVE_WORKER:
	case LEASE_MSG_STOP:
	case LEASE_MSG_DRAIN:
	case LEASE_MSG_LOG:
		return sizeof(struct lease_worker);
	case LEASE_MSG_ELSEWHERE:
		return sizeof(struct lease_elsewhere);
	case LEASE_MSG_SELFTEST:
		return sizeof(struct lease_selftest);
	case LEASE_MSG_STATE:
		return sizeof(struct lease_state);
	case LEASE_MSG_LEASE:
		return sizeof(struct lease_request);
	case LEASE_MSG_ANSWER:
		return sizeof(struct lease_answer);
	case LEASE_MSG_RELEASE:
		return sizeof(struct lease_release);
	case LEASE_MSG_STATS:
		return sizeof(struct lease_stats);
	default:
		return 0;
	}
}

static bool
text_ok(const char *s, size_t room)
{
	return memchr(s, '\0', room) != NULL;
}

static bool
settings_ok(const struct sandbox_settings *s)
{
	return text_ok(s->python, sizeof(s->python)) && s->python[0] == '/' &&
	       text_ok(s->rootfs, sizeof(s->rootfs)) &&
	       (s->rootfs[0] == '\0' || s->rootfs[0] == '/') &&
	       text_ok(s->preload, sizeof(s->preload)) && s->memory_bytes >= 16u << 20 &&
	       s->workspace_bytes >= 1u << 20 && s->workspace_inodes >= 64 &&
	       s->file_bytes >= 1u << 20 && s->pids >= 4 && s->cpu_seconds >= 1 &&
	       s->open_files >= 16 && s->max_sessions >= 1 && s->zygote_forks >= 1 &&
	       s->zygote_age_s >= 1 && s->log_json <= 1 && s->require_cgroup <= 1 &&
	       s->no_cgroup <= 1;
}

static bool
selftest_ok(const struct lease_selftest *t)
{
	for (size_t i = 0; i < SB_LAYERS_; i++)
		if (t->layer[i].state > SB_MISSING ||
		    !text_ok(t->layer[i].text, sizeof(t->layer[i].text)))
			return false;
	return t->refused <= 1 && text_ok(t->text, sizeof(t->text));
}

static bool
fields_ok(const union lease_msg *m)
{
	switch (m->type) {
	case LEASE_MSG_SETTINGS:
		return settings_ok(&m->settings.settings);
	case LEASE_MSG_SELFTEST:
		return selftest_ok(&m->selftest);
	case LEASE_MSG_STATE:
		return m->state.refused <= 1 && text_ok(m->state.text, sizeof(m->state.text));
	case LEASE_MSG_LEASE:
		return text_ok(m->request.workspace, sizeof(m->request.workspace));
	case LEASE_MSG_ANSWER:
		return m->answer.status < LEASE_STATUS_END_ &&
		       text_ok(m->answer.text, sizeof(m->answer.text));
	case LEASE_MSG_RELEASE:
		return m->release.reserved == 0;
	case LEASE_MSG_STATS:
		return m->stats.zygote < LEASE_ZYGOTE_STATES_ && m->stats.is_draining <= 1 &&
		       text_ok(m->stats.zygote_text, sizeof(m->stats.zygote_text));
	default:
		return true;
	}
}

enum err_code
lease_decode(struct str bytes, union lease_msg *ret, struct err *reterr)
{
	union lease_msg m;
	uint32_t type;
	if (bytes.len < sizeof(type))
		return err_set(reterr, ERR_PROTO, "sandbox message of %zu bytes", bytes.len);
	memcpy(&type, bytes.ptr, sizeof(type));
	if (lease_size(type) == 0 || lease_size(type) != bytes.len)
		return err_set(
		    reterr, ERR_PROTO, "sandbox message %#x of %zu bytes", type, bytes.len);
	memcpy(&m, bytes.ptr, bytes.len);
	if (!fields_ok(&m))
		return err_set(reterr, ERR_PROTO, "sandbox message %#x: bad field", type);
	memcpy(ret, &m, bytes.len);
	return ERR_OK;
}

enum err_code
lease_send(int sock, const void *msg, const int *fds, size_t nfds, struct err *reterr)
{
	uint32_t type;
	memcpy(&type, msg, sizeof(type));
	CHECK(lease_size(type) != 0);
	ssize_t n = fd_send_msg(sock, msg, lease_size(type), fds, nfds);
	if (n >= 0)
		return ERR_OK;
	if (errno == EAGAIN || errno == ENOBUFS)
		return err_set(reterr, ERR_BUSY, "sandbox channel is full");
	return err_set(reterr, ERR_IO, "sandbox channel");
}

enum err_code
lease_recv(int sock, union lease_msg *ret, int fds[LEASE_FDS], size_t *ret_nfds, struct err *reterr)
{
	/* One byte more than any message, so that a longer one is seen as such. */
	char bytes[sizeof(union lease_msg) + 1];
	size_t nfds = LEASE_FDS;
	ssize_t n = fd_recv_msg(sock, bytes, sizeof(bytes), fds, &nfds);
	if (n < 0 && errno == EAGAIN)
		return err_set(reterr, ERR_BUSY, "no message");
	if (n < 0)
		return err_set(reterr, ERR_IO, "sandbox channel");
	if (n == 0) {
		for (size_t i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		return err_set(reterr, ERR_NOTFOUND, "the peer is gone");
	}
	enum err_code rc = lease_decode(str_n(bytes, (size_t)n), ret, reterr);
	if (rc != ERR_OK) {
		for (size_t i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		return rc;
	}
	*ret_nfds = nfds;
	return ERR_OK;
}

const char *
lease_layer_name(enum sandbox_layer l)
{
	static const char *const names[SB_LAYERS_] = {
	    [SB_USER_NS] = "user_namespace",
	    [SB_UID_RANGE] = "uid_range",
	    [SB_MOUNT_NS] = "mount_namespace",
	    [SB_PID_NS] = "pid_namespace",
	    [SB_PROC] = "proc",
	    [SB_NET_NS] = "network_namespace",
	    [SB_IPC_UTS_NS] = "ipc_uts_cgroup_namespaces",
	    [SB_NO_NEW_PRIVS] = "no_new_privs",
	    [SB_CAPABILITIES] = "capabilities",
	    [SB_SECCOMP] = "seccomp",
	    [SB_DESCRIPTORS] = "descriptors",
	    [SB_LIMITS] = "limits",
	    [SB_WORKSPACE] = "workspace",
	    [SB_MEMORY_CGROUP] = "memory_cgroup",
	    [SB_PIDS_CGROUP] = "pids_cgroup",
	    [SB_CPU_CGROUP] = "cpu_cgroup",
	    [SB_LANDLOCK] = "landlock",
	    [SB_INTERPRETER] = "interpreter",
	};
	return (unsigned)l < SB_LAYERS_ ? names[l] : "unknown";
}

const char *
lease_layer_state_name(uint32_t state)
{
	static const char *const names[] = {"unknown", "active", "degraded", "missing"};
	return state <= SB_MISSING ? names[state] : "unknown";
}

const char *
lease_layer_hint(enum sandbox_layer l, int sys_errno)
{
	switch (l) {
	case SB_USER_NS:
		if (sys_errno == ENOSPC)
			return "raise sysctl user.max_user_namespaces";
		return "sysctl kernel.unprivileged_userns_clone=1 (Debian), "
		       "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), unit "
		       "RestrictNamespaces=no";
	case SB_UID_RANGE:
		return "start as root and set sandbox_uid_base to a range that this host may map";
	case SB_MOUNT_NS:
		return "mounts must be allowed in a user namespace: check AppArmor, and that the "
		       "kernel is 5.12 or newer";
	case SB_PROC:
		return "the host's /proc must not be masked: in a unit unset ProtectProc and "
		       "ProcSubset; in a container unmask /proc";
	case SB_SECCOMP:
		return "the kernel needs CONFIG_SECCOMP_FILTER";
	case SB_INTERPRETER:
		return "install python3, or set sandbox_python to a path below /usr (or the "
		       "rootfs)";
	case SB_WORKSPACE:
		return "tmpfs with size and nr_inodes must be mountable";
	case SB_LANDLOCK:
		return "a second wall over paths; the kernel needs CONFIG_SECURITY_LANDLOCK";
	case SB_MEMORY_CGROUP:
	case SB_PIDS_CGROUP:
	case SB_CPU_CGROUP:
		return "start as root, or with a delegated cgroup (systemd: Delegate=yes); in a "
		       "container mount /sys/fs/cgroup writable";
	case SB_PID_NS:
	case SB_NET_NS:
	case SB_IPC_UTS_NS:
	case SB_NO_NEW_PRIVS:
	case SB_CAPABILITIES:
	case SB_DESCRIPTORS:
	case SB_LIMITS:
	case SB_LAYERS_:
		break;
	}
	return "see docs/SECURITY.md";
}

const char *
lease_zygote_name(uint32_t state)
{
	static const char *const names[] = {"none", "off", "resting", "loading", "ready"};
	_Static_assert(ARRAY_LEN(names) == LEASE_ZYGOTE_STATES_, "a name each");
	return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

unsigned
lease_time_ms(size_t i)
{
	static const unsigned ms[] = {5, 25, 100, 500, 2500, 10000};
	_Static_assert(ARRAY_LEN(ms) == LEASE_TIMES - 1, "the last has no bound");
	return ms[i];
}
