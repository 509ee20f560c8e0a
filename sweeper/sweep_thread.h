/* sweep_thread.h - the sweeper's one working thread: it blocks, so that the loop answers the master
 *
 * Process: sweeper. All functions are called on the loop's thread. The thread owns the database
 * connection and the blob store.
 */
#ifndef OTARI_SWEEPER_SWEEP_THREAD_H
#define OTARI_SWEEPER_SWEEP_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "storage/sql/store_generation.h"

struct board;
struct board_slot;
struct sweep_thread;

struct sweep_settings { /* copied */
	struct str database_url, state_dir, files_backend, files_local_dir;
	uint32_t files_sweep_interval_s; /* 0: files are not swept */
};

/* Idle until the first settings. wake_fd (borrowed): a byte is written there when sweep_thread_take
 * has something new. Board (NULL in tests) and slot are borrowed. */
MUST_CHECK enum err_code sweep_thread_start(struct board *board, struct board_slot *slot,
    int wake_fd, struct sweep_thread **ret, struct err *reterr);
void sweep_thread_set(struct sweep_thread *w, const struct sweep_settings *s);
/* Drain what the spools hold, then end: sweep_thread_take says when. */
void sweep_thread_finish(struct sweep_thread *w);
/* The generation row if it changed since the last call; *ret_ended: the thread is through. */
bool sweep_thread_take(struct sweep_thread *w, struct store_generation *ret, bool *ret_ended);
/* Waits for the thread: at most for what it is doing at the moment. */
void sweep_thread_stop(struct sweep_thread **w);

#endif
