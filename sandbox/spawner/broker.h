/* broker.h - lends sessions: the loop of the spawner
 *
 * Process: spawner. Files: broker.c (loop, master, workers), lend.c (pool, hand-over), queue.c
 * (whose turn), selftest.c (report), session.c (one sandbox), slots.c (their numbers), filler*.c
 * (makes them), watch.c (memory), zygote*.c (ready-made interpreters). Rule:    leases are answered
 * first; a session is made off the loop. Where a wall is missing every lease is answered REFUSED
 * with its name.
 */
#ifndef OTARI_SANDBOX_SPAWNER_BROKER_H
#define OTARI_SANDBOX_SPAWNER_BROKER_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "ipc/lease.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/jail/jail.h"
#include "sandbox/spawner/filler.h"
#include "sandbox/spawner/queue.h"
#include "sandbox/spawner/session.h"
#include "sandbox/spawner/slots.h"
#include "sandbox/spawner/zygote.h"

struct event;
struct event_base;

struct broker_worker {
	TAILQ_ENTRY(broker_worker) link;
	struct broker *broker;
	uint32_t number;
	int fd;
	struct event *ev;
	struct session_list leases; /* by their lend link */
};
TAILQ_HEAD(broker_workers, broker_worker);

#define BROKER_WAITING_MAX      1024u
#define BROKER_WAITING_EACH_MAX 256u /* of one workspace */
#define BROKER_STARTING_MAX     4u
/* Beside max_sessions: the self-test's, the zygote's test's, and those that are not clean yet. */
#define BROKER_SPARE_SLOTS 4u
/* What conf/keys.c lets an operator ask for at most. */
#define BROKER_SESSIONS_MAX 15000u
_Static_assert(JAIL_SLOT_UID + BROKER_SESSIONS_MAX + BROKER_SPARE_SLOTS <= JAIL_RANGE,
    "every slot has a user id");

struct broker {
	struct event_base *base;
	struct sandbox_settings settings;
	struct jail jail;
	struct cgroup cgroup;
	struct lease_selftest report;
	bool is_tested; /* report is final */
	struct event *ev_master, *ev_parent, *ev_child, *ev_deadline, *ev_refill, *ev_watch;
	struct broker_workers workers;
	struct session_list sessions;
	struct slots slots;
	struct session_list idle_born, idle_cold; /* by their lend link; what died is still there */
	struct queue queue;
	size_t total;
	uint32_t elsewhere;   /* of max_sessions, lent by spawners that drain */
	bool is_draining;     /* ends with its last lease */
	bool is_holding_back; /* after a failed start, until ev_refill */
	struct session *test;
	struct lease_stats stats;
	struct event *ev_stats;
	struct filler filler;
	struct zygote zygote;
	struct zygote_old old_zygote;
	int exit_code;
	int argc; /* of the program, for titles */
	char **argv;
};

/* selftest.c */
void report_set(struct broker *b, enum sandbox_layer l, enum sandbox_layer_state state,
    int sys_errno, const char *text);
void report_refuse(struct broker *b, const struct jail_fail *f);
void selftest_start(struct broker *b);
void selftest_ready(struct broker *b, int sys_errno_of_interpreter);
void selftest_frame(struct broker *b, uint8_t type, struct str payload);
bool selftest_is_left_out(const struct broker *b, uint32_t layer); /* by a test */
void selftest_failed(struct broker *b, const struct jail_fail *f);

/* lend.c */
void lend_request(struct broker *b, struct broker_worker *w, const struct lease_request *r);
void lend_release(struct broker *b, struct broker_worker *w, uint64_t id);
void lend_drain(struct broker *b);
void lend_worker_gone(struct broker *b, struct broker_worker *w);
void lend_step(struct broker *b); /* after anything changed */
void lend_session_failed(struct broker *b, const struct jail_fail *f);
void lend_session_gone(struct broker *b, struct session *s);
void lend_session_unmade(struct broker *b, struct session *s, int sys_errno); /* no process */
/* Ordered from the filler. is_born: its interpreter comes from the zygote. NULL: no slot is free.
 */
struct session *lend_new_session(struct broker *b, bool is_born);

/* stats.c */
void stats_changed(struct broker *b); /* the master is told soon */
void stats_tell(struct broker *b);    /* at once */
void stats_made(struct broker *b, const struct session *s);

/* bounds.c */
uint32_t bounds_slots(const struct broker *b);
/* Before the right to make cgroups is given up. False: they are required and not to be had. */
bool bounds_make(struct broker *b, struct jail_fail *f);
void bounds_report(struct broker *b);
/* Somebody removed them: no session can be made any more; another spawner can. */
void bounds_lost(struct broker *b);
bool bounds_take_slot(struct broker *b, uint32_t *ret);      /* one that is clean; false: none is */
bool bounds_hold(struct broker *b, const struct session *s); /* it is in its cgroup */
void bounds_session_gone(struct broker *b, const struct session *s);

/* watch.c: goes on by itself while anything is leased */
void watch_start(struct broker *b);
/* Children of this process, as the kernel lists them; dead ones too. */
size_t watch_children(pid_t **ret_pids);
void watch_children_free(pid_t **pids);

/* broker.c */
void broker_stop(struct broker *b, int code);
void broker_tested(struct broker *b); /* tells the master and the workers, opens the pool */
/* Runs until the master says stop or is gone. parent_fd: its end ends the broker (-1: none). With
 * b->is_tested set (refused before a session could be tried) it only refuses. */
int broker_run(struct broker *b, int parent_fd);

#endif
