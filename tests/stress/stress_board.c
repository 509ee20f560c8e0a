/* stress_board.c - the board under TSan: one writer a slot, many readers, sums that never fall */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/check.h"
#include "ipc/board.h"

#define WRITERS 3u
#define READERS 2u
#define ROUNDS  200000u

static struct board *board;
static _Atomic unsigned writing = WRITERS;

static void *
write_slot(void *arg)
{
	struct board_slot *s = arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		board_count(s, BC_REQUESTS, 1);
		board_gauge(s, BG_CONNECTIONS, i);
		s->heartbeat_ms = i;
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

static void *
read_all(void *arg)
{
	uint64_t last = 0;
	(void)arg;
	while (writing > 0) {
		uint64_t now = board_sum(board, BC_REQUESTS);
		CHECK(now >= last && board_sum_gauge(board, BG_CONNECTIONS) <= WRITERS * ROUNDS);
		last = now;
	}
	return NULL;
}

int
main(void)
{
	pthread_t t[WRITERS + READERS];
	int fd;
	CHECK(board_create(&fd, &board, NULL) == ERR_OK);
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&t[i], NULL, write_slot, board_take(board, 3, i, 0)) == 0);
	for (unsigned i = WRITERS; i < WRITERS + READERS; i++)
		CHECK(pthread_create(&t[i], NULL, read_all, NULL) == 0);
	for (unsigned i = 0; i < WRITERS + READERS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(board_sum(board, BC_REQUESTS) == (uint64_t)WRITERS * ROUNDS);
	(void)printf("board: %u writers, %u readers, %llu counted\n", WRITERS, READERS,
	    (unsigned long long)board_sum(board, BC_REQUESTS));
	return 0;
}
