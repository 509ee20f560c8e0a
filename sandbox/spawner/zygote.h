/* zygote.h - the spawner's side of a zygote: starts it, tests it, asks it for interpreters
 *
 * Process: spawner, on the broker's loop. A zygote only saves time: while there is none, or it
 *          failed, sessions start an interpreter of their own.
 * Rule:    no session is born from a zygote before a process that it forked has told that every
 * wall holds; where one does not, no zygote runs again under this spawner.
 */
#ifndef OTARI_SANDBOX_SPAWNER_ZYGOTE_H
#define OTARI_SANDBOX_SPAWNER_ZYGOTE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct broker;
struct event;
struct session;

enum zygote_state {
	ZYGOTE_NONE,
	ZYGOTE_OFF,     /* failed its test: never again */
	ZYGOTE_RESTING, /* failed: until the timer */
	ZYGOTE_LOADING,
	ZYGOTE_PLACING, /* the session for the test is being made */
	ZYGOTE_TESTING,
	ZYGOTE_READY,
};

struct zygote {
	enum zygote_state state;
	pid_t pid; /* 0: none, or reaped */
	int fd;
	struct event *ev, *ev_timer;
	uint64_t seq; /* of the last request */
	unsigned in_flight, failures, forks;
	char why[96]; /* the last one failed */
	int64_t started_ms;
	struct session *place; /* that the test runs in */
	int test_fd;
	struct event *ev_test;
	char in[1024];
	size_t in_len;
};

/* One that has forked often enough serves until another one is ready. */
struct zygote_old {
	pid_t pid; /* 0: reaped */
	int fd;
	struct event *ev; /* NULL: there is none */
	unsigned in_flight;
	bool is_leaving; /* with its last answer */
};

void zygote_start(struct broker *b);
bool zygote_is_ready(const struct broker *b);
void zygote_give(struct broker *b, struct session *s); /* the session's walls stand */
void zygote_placed(struct broker *b);                  /* its place is ready */
void zygote_stop(struct broker *b);                    /* for good */
void zygote_failed(struct broker *b, const char *why, int sys_errno);
/* A session that was born did not come to life: the one that serves failed. */
void zygote_child_failed(struct broker *b, const char *why, int sys_errno);
void zygote_reaped(struct broker *b, pid_t pid);

/* zygote_old.c */
bool zygote_old_keep(struct broker *b, pid_t pid, int fd); /* takes them over */
void zygote_old_give(struct broker *b, struct session *s);
void zygote_old_leave(struct broker *b); /* another one is ready */
void zygote_old_end(struct broker *b);   /* at once; who waits for it is started anew */

/* zygote.c, for zygote_old.c */
bool zygote_ask(struct broker *b, int zygote_fd, struct session *s); /* a fork; false with errno */
void zygote_forget_starting(struct broker *b); /* sessions that wait for one */

/* zygote_start.c: the program, exec'd. -1 with errno. */
pid_t zygote_spawn(const struct broker *b, int *ret_fd);

/* zygote_image.c: what is carried in this program */
struct str zygote_library(void);
struct str zygote_program(void);
struct str zygote_driver(void);

#endif
