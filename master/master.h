/* master.h - the state of the master, shared by the files of this folder alone
 *
 * Process: master: owns the listening sockets, starts and watches the others, publishes snapshots,
 * answers the control socket. Parses no configuration, speaks no HTTP and no SQL, maps no snapshot.
 * Files:   main.c (options) → master.c (start, phases) → spawn.c, child.c, seat.c, reap.c
 * (children) → reload.c, publish.c, snapshots.c (what is in force) → listen.c, link.c (spawner),
 *          control.c, signals.c, logfile.c, cgroups.c, files.c.
 */
#ifndef OTARI_MASTER_MASTER_H
#define OTARI_MASTER_MASTER_H

#include <sys/types.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc/build.h"
#include "ipc/master_conf.h"
#include "master/child.h"
#include "master/publish.h"
#include "master/seat.h"

struct arena;
struct board;
struct board_slot;
struct control;
struct event;
struct event_base;

enum master_phase {
	MASTER_READ_CONF, /* a builder reads the configuration, nothing else is known */
	MASTER_BUILD,     /* a builder makes the first snapshots */
	MASTER_START,     /* children are started; not all are READY */
	MASTER_RUN,
	MASTER_DRAIN, /* workers finish */
	MASTER_END,   /* the rest goes */
};

struct master_options {
	const char *conf_path; /* absolute */
	bool foreground;
	int argc; /* where the title goes */
	char **argv;
};

#define MASTER_SIGNALS 8

struct master {
	struct master_options opt;
	char cwd[PATH_MAX];
	enum master_phase phase;
	int exit_code;
	bool is_root, has_stopped_hard, has_stepped_aside;
	int ready_fd; /* pipe to the process that waits for a detached start; -1: none */

	struct event_base *base;
	struct event *signals[MASTER_SIGNALS], *tick;
	int64_t last_tick_ms;

	int exe_fd, environ_fd, null_fd, init_exe_fd, log_fd, board_fd;
	struct board *board;
	struct board_slot *slot; /* our own */

	/* In force; NULL arena: nothing yet. */
	struct arena *conf_arena;
	struct master_conf conf;
	int conf_fd; /* copy of the text that is in force */
	uint32_t uid, gid;
	bool has_user;
	int pid_file_fd;
	uint16_t port, admin_port, serve_port;
	int admin_fd, serve_fd; /* -1: none */
	char *serve_address; /* where the sandbox is lent, as the configuration said it; or NULL */

	struct child_list children;
	uint64_t last_key;
	struct seat spawner, sweeper, *workers; /* LIMIT_WORKERS */
	uint32_t worker_seats;                  /* that have a socket */
	int64_t drain_deadline_ms;

	struct publish publish;
	struct reload *reload;
	struct snapshots *snapshots;
	struct link *link;      /* to the spawner that workers use; NULL: none runs */
	struct link *next_link; /* to one with newer settings, until its self-test is over */
	uint32_t link_range;    /* of user ids, that the last spawner got */
	bool is_link_due;       /* newer settings wait for a range */
	char *cgroup_own;       /* that we stepped out of; NULL: none */
	unsigned cgroup_sweeps; /* ticks that may still find something to remove */
	struct control *control;
	int64_t last_reload_s;
	char last_error[512];                       /* of the last reload; "" when it went well */
	char storage_identity[BUILD_IDENTITY_SIZE]; /* of the first build; "" before it */
};

/* Runs until the end; returns the exit status. */
int master_run(const struct master_options *opt);
/* The start failed, or cannot go on: text is logged (and shown by a detached start). */
void master_fail(struct master *m, int exit_code, const char *text);
void master_stop(struct master *m);          /* drain */
void master_stop_now(struct master *m);      /* everything is killed */
void master_drain_workers(struct master *m); /* they finish; none is started until a reload */
/* Something changed that a phase may wait for. */
void master_step(struct master *m);
/* reload.c calls these. */
void master_conf_known(struct master *m, struct build_result *r, struct arena **a, int conf_fd);
bool master_is_stopping(const struct master *m);

#endif
