#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "ipc/board.h"

Test(board, is_seen_by_all_who_map_it)
{
	int fd;
	struct board *a, *b;
	cr_assert_eq(board_create(&fd, &a, NULL), ERR_OK);
	cr_assert_eq(board_map(fd, &b, NULL), ERR_OK);
	struct board_slot *s = board_take(a, 3, 1, 1000), *t = board_take(a, 3, 2, 1000);
	cr_assert(s != NULL && t != NULL && s != t);
	board_count(s, BC_REQUESTS, 2);
	board_count(t, BC_REQUESTS, 3);
	board_gauge(s, BG_CONNECTIONS, 7);
	cr_assert_eq(board_sum(b, BC_REQUESTS), 5);
	cr_assert_eq(board_sum_gauge(b, BG_CONNECTIONS), 7);
	board_release(s);
	cr_assert_eq(board_sum(b, BC_REQUESTS), 5, "a dead process's counts stay");
	cr_assert_eq(board_sum_gauge(b, BG_CONNECTIONS), 0, "its gauges go");
	cr_assert_eq(board_take(a, 4, 0, 1000), s, "slots are used again");
	board_unmap(&b);
	board_unmap(&a);
	close(fd);
}

Test(board, has_room_for_every_process_and_then_says_no)
{
	int fd;
	struct board *b;
	cr_assert_eq(board_create(&fd, &b, NULL), ERR_OK);
	for (unsigned i = 0; i < BOARD_SLOTS; i++)
		cr_assert_not_null(board_take(b, 3, i, 0));
	cr_assert_null(board_take(b, 3, 1, 0));
	board_unmap(&b);
	close(fd);
}

Test(board, of_another_shape_is_refused)
{
	struct board *b;
	int fd = fd_memfd("x");
	cr_assert_eq(board_map(fd, &b, NULL), ERR_PROTO, "too small");
	cr_assert_eq(ftruncate(fd, sizeof(struct board)), 0);
	cr_assert_eq(board_map(fd, &b, NULL), ERR_PROTO, "no magic");
	close(fd);
}

Test(board, grows_stale_when_the_database_is_not_seen)
{
	int fd;
	struct board *b;
	cr_assert_eq(board_create(&fd, &b, NULL), ERR_OK);
	board_database_seen(b, 5000);
	cr_expect_not(board_is_stale(b, 5000, 1));
	cr_expect_not(board_is_stale(b, 6000, 1));
	cr_expect(board_is_stale(b, 6001, 1));
	cr_expect_not(board_is_stale(b, 4000, 1), "another process's clock is a little ahead");
	cr_expect_not(board_is_stale(b, 1u << 31, 0), "0: no limit");
	board_unmap(&b);
	close(fd);
}

Test(board, every_number_has_a_name)
{
	for (int i = 0; i < BC_COUNTER_MAX; i++)
		cr_expect_not_null(board_counter_name((enum board_counter)i), "%d", i);
	for (int i = 0; i < BG_GAUGE_MAX; i++)
		cr_expect_not_null(board_gauge_name((enum board_gauge)i), "%d", i);
}
