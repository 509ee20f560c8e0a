/* publish.h - when to build, who waits for it, when a change is in force. Pure: no loop, no fds.
 *
 * Process: master.
 * Rule:    one build at a time. Who asks while a build runs waits for the next one, because that
 *          build may have read the database before the change; all who wait share it. A generation
 *          is in force when every target has acknowledged it. Targets that leave (dead, draining)
 *          are not waited for. A waiter gets exactly one answer.
 * Limits:  PUBLISH_WAITERS_MAX waiters, PUBLISH_TARGETS_MAX targets.
 */
#ifndef OTARI_MASTER_PUBLISH_H
#define OTARI_MASTER_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define PUBLISH_WAITERS_MAX  4096u
#define PUBLISH_TARGETS_MAX  (LIMIT_WORKERS * 2u)
#define PUBLISH_RETRY_MS     1000u /* doubling to PUBLISH_RETRY_MAX_MS while builds fail */
#define PUBLISH_RETRY_MAX_MS 30000u

/* What a build is to do. RELOAD: with the configuration file as it is now. */
enum { PUBLISH_DO_KEYS = 1, PUBLISH_DO_POLICY = 2, PUBLISH_DO_RELOAD = 4 };

struct publish_ops {
	/* Starts a build; publish_built follows, never inside this call. */
	void (*build)(void *arg, uint32_t what, uint64_t generation);
	/* error NULL: in force on every target. */
	void (*answer)(void *arg, uint64_t who, uint32_t id, const char *error);
};

struct publish_waiter {
	uint64_t who, generation; /* 0: waits for the next build */
	uint32_t id;
	int64_t deadline_ms;
};
struct publish_target {
	uint64_t who, acked;
};

struct publish {
	const struct publish_ops *ops;
	void *arg;
	uint32_t pending;          /* wanted from the next build */
	uint32_t building;         /* asked of the running one; 0: none runs */
	uint64_t last_generation;  /* given out */
	uint64_t built_generation; /* newest that was built and sent */
	uint32_t retry;            /* what failed builds still owe */
	uint32_t retry_ms;
	int64_t retry_at_ms;
	struct publish_waiter *waiters;
	struct publish_target *targets;
	size_t waiter_count, target_count;
};

void publish_init(struct publish *p, const struct publish_ops *ops, void *arg);
void publish_done(struct publish *p);
/* Starts a build now or after the running one. Nobody waits. */
void publish_note(struct publish *p, uint32_t what);
/* The same, and who waits; the answer comes at deadline_ms at the latest. */
void publish_ask(struct publish *p, uint64_t who, uint32_t id, uint32_t what, int64_t deadline_ms);
/* The running build ended. ok: what it made was sent to every target before this call. */
void publish_built(struct publish *p, bool ok, const char *error, int64_t now_ms);
/* who has been sent everything up to the newest generation and will acknowledge. */
void publish_join(struct publish *p, uint64_t who);
void publish_ack(struct publish *p, uint64_t who, uint64_t generation);
/* Not a target any more, but what it waits for itself is still answered. */
void publish_retire(struct publish *p, uint64_t who);
/* It is gone: no target, no waiter. */
void publish_leave(struct publish *p, uint64_t who);
/* Late waiters and builds to be tried again. */
void publish_tick(struct publish *p, int64_t now_ms);
/* Everything that is built is acknowledged by every target. */
bool publish_is_settled(const struct publish *p);

#endif
