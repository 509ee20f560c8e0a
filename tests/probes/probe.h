/* probe.h - a spawner, the local backend and sessions for the probe programs, waited for in line
 *
 * Process: the probes program plays master and worker; it execs itself as the spawner.
 */
#ifndef OTARI_TESTS_PROBES_PROBE_H
#define OTARI_TESTS_PROBES_PROBE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "ipc/lease.h"
#include "worker/code/session.h"

struct probe_host {
	struct event_base *base;
	pid_t spawner;
	int ctl;
	struct lease_selftest report;
	struct code_backend *backend;
	int worker; /* a copy of the worker's end */
};

/* How the spawner runs. */
struct probe_mode {
	char name[64];
	bool is_plain;     /* as a user without rights: one id for all sessions */
	bool is_delegated; /* which has cgroups of its own */
	bool is_one_id;    /* as root, without a range of ids */
	bool is_cold;      /* no zygote */
	bool is_no_cgroup; /* none is tried */
	unsigned without;  /* JAIL_WITHOUT_* */
};
extern struct probe_mode probe_mode;
#define PROBE_MODES_MAX 8
/* Those of PROBES_MODE, else every pair of what a host may have and lack. 0: PROBES_MODE is wrong.
 */
size_t probe_modes(struct probe_mode ret[PROBE_MODES_MAX]);
size_t probe_matrix(
    struct probe_mode ret[PROBE_MODES_MAX]); /* those pairs, whatever is asked for */
/* False: two things that a host may have or lack and that no row has like that; which, as text. */
bool probe_rows_cover(
    const struct probe_mode *rows, size_t n, bool with_filter, char *ret_missing, size_t room);
void probe_settings(struct sandbox_settings *ret); /* for the mode in force */

/* delegate.c: cgroups for a spawner that is not root's. */
#define PROBE_PLAIN_USER 65533 /* of nobody else */
struct cgroup_places;
bool probe_delegate(void);                    /* false: this host has none to give */
bool probe_delegate_join(void);               /* in the process that becomes the spawner */
bool probe_delegate_end(void);                /* false: something is left in them */
void probe_places(struct cgroup_places *ret); /* where the spawner makes its cgroups */

#define PROBE_FILES_MAX 64

struct probe_file {
	char path[256];
	uint64_t size, got;
	uint32_t crc;
	bool is_whole;
};

struct probe_result {
	bool failed, timed_out, died;
	int32_t return_code;
	char out[4096], err[4096]; /* the first bytes, NUL-terminated */
	size_t out_len;
	uint64_t out_total, err_total;
	struct probe_file files[PROBE_FILES_MAX];
	size_t file_count;
	size_t omitted_count;
	uint32_t omitted_total;
	int omitted_reason; /* of the first */
	uint32_t exec_ms;
	char why[256]; /* failed */
	bool has_edit;
	struct code_edit_result edit;
};

/* False: no spawner; why in reason. The report says whether it refuses. */
bool probe_start(struct probe_host *h, const char *init_path, const struct sandbox_settings *s);
void probe_stop(struct probe_host *h);
struct code_session *probe_open(struct probe_host *h, struct err *reterr); /* NULL: e set */
struct err probe_put(
    struct probe_host *h, struct code_session *s, const char *name, const char *bytes, size_t n);
void probe_exec(struct probe_host *h, struct code_session *s, const char *code, uint32_t timeout_ms,
    struct probe_result *ret);
void probe_run(struct probe_host *h, struct code_session *s, enum code_kind kind, struct str code,
    uint32_t timeout_ms, struct probe_result *ret);
void probe_edit(struct probe_host *h, struct code_session *s, const struct code_edit *e,
    struct probe_result *ret);
void probe_convert(struct probe_host *h, struct code_session *s, enum code_extractor extractor,
    const char *name, uint32_t timeout_ms, struct probe_result *ret);
/* The same in two parts; ret stays the caller's until it is done or the session is closed. */
struct probe_run {
	struct probe_result *r;
	bool is_done;
};
void probe_begin(struct code_session *s, enum code_kind kind, struct str code, uint32_t timeout_ms,
    struct probe_run *run, struct probe_result *ret);
void probe_begin_convert(struct code_session *s, enum code_extractor extractor, const char *name,
    uint32_t timeout_ms, struct probe_run *run, struct probe_result *ret);
void probe_wait(struct probe_host *h, struct probe_run *run);
/* Processes of this host whose command line, or short name, has the text. */
unsigned probe_count(const char *file, const char *text);
void probe_turn(struct probe_host *h, int ms); /* runs the loop for so long */

/* Checks. */
void probe_name(const char *name);
bool probe_check(bool ok, const char *file, int line, const char *expr, const char *fmt, ...)
    PRINTF(5, 6);
#define EXPECT(e, ...) probe_check((e), __FILE__, __LINE__, #e, __VA_ARGS__)
extern unsigned probes_passed, probes_failed;
void probe_end(void);
bool probe_wants(const char *name); /* the filter of the command line */
/* In one row of the matrix, or where one alone was asked for: what takes long and meets no wall
 * that a host may lack. */
bool probe_is_thorough(void);

/* Waits until sessions are born from the zygote; false: they are not. */
bool probe_wait_zygote(struct probe_host *h, int ms);

/* tree.c: the processes of a spawner, as the host sees them; 0: none. */
pid_t probe_inner(const struct probe_host *h); /* pid 1 of the spawner's namespace */
size_t probe_children(pid_t pid, pid_t *pids, size_t max);
pid_t probe_find(const struct probe_host *h, const char *title); /* the inner's child */
pid_t probe_find_other(const struct probe_host *h, const char *title, pid_t but);
int probe_fds(pid_t pid);                                        /* open descriptors */
void probe_read_text(const char *path, char *text, size_t room); /* NULs become spaces */
pid_t probe_pid(const char *text); /* whose last argument is the text, of all there are */
pid_t probe_parent(pid_t pid);
bool probe_signal(const char *text); /* ends it; false: there is none */

/* The groups. */
void probes_zygote(struct probe_host *h);                        /* waits for one; its children */
void probes_python(struct probe_host *h);                        /* what a call is */
void probes_bash(struct probe_host *h);                          /* the same for the shell */
void probes_edit(struct probe_host *h);                          /* the text editor */
void probes_convert(struct probe_host *h);                       /* text of documents */
void probes_mixed(struct probe_host *h);                         /* every kind, in any order */
void probes_escape(struct probe_host *h);                        /* reaching out */
void probes_abuse(struct probe_host *h);                         /* using up */
void probes_files(struct probe_host *h);                         /* in and out */
void probes_bounds(const char *init_path);                       /* memory, processes, time */
void probes_life(struct probe_host *h, const char *init_path);   /* ends */
void probes_filler(struct probe_host *h, const char *init_path); /* kills at random moments */
void probes_pair(struct probe_host *h);                          /* one session to another */
void probes_inside(struct probe_host *h);    /* seen by the host, hidden from init */
void probes_exhaust(struct probe_host *h);   /* using up what has no limit of its own */
void probes_followed(const char *init_path); /* one zygote after another */
void probes_measure(struct probe_host *h);

#endif
