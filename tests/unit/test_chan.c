#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "ipc/chan.h"
#include "ipc/fds.h"

struct seen {
	struct event_base *base;
	struct chan *chan;
	unsigned messages, ends, with_fd;
	size_t bytes;
	uint32_t last_id;
	unsigned stop_after;
	bool free_inside, keep_fd;
	int kept;
};

static void
on_msg(struct chan *c, struct msg *m, void *arg)
{
	struct seen *s = arg;
	(void)c;
	if (m == NULL) {
		s->ends++;
		event_base_loopbreak(s->base);
	} else {
		cr_assert_eq(m->id, s->last_id + 1, "order");
		s->last_id = m->id;
		s->messages++;
		s->bytes += m->payload.len;
		if (m->nfds > 0) {
			s->with_fd++;
			if (s->keep_fd)
				s->kept = msg_take_fd(m, 0);
		}
	}
	if (s->free_inside)
		chan_free(&s->chan);
	if (s->stop_after != 0 && s->messages >= s->stop_after)
		event_base_loopbreak(s->base);
}

static void
make(struct seen *s, int fds[2])
{
	cr_assert(fd_socketpair_seqpacket(fds, true));
	s->base = event_base_new();
	s->kept = -1;
	cr_assert_eq(chan_new(s->base, fds[0], on_msg, s, &s->chan, NULL), ERR_OK);
}

static void
done(struct seen *s)
{
	chan_free(&s->chan);
	event_base_free(s->base);
}

static void
run(struct seen *s)
{
	struct timeval limit = {2, 0};
	event_base_loopexit(s->base, &limit);
	event_base_dispatch(s->base);
}

Test(chan, keeps_order_when_the_socket_is_full, .timeout = 10)
{
	struct seen s = {0}, t = {0};
	int fds[2];
	make(&s, fds);
	t.base = s.base;
	t.stop_after = 2000;
	cr_assert_eq(chan_new(s.base, fds[1], on_msg, &t, &t.chan, NULL), ERR_OK);
	char bulk[3000];
	memset(bulk, 'x', sizeof(bulk));
	for (uint32_t i = 1; i <= 2000; i++)
		chan_send(s.chan, MSG_PUBLISHED, i, str_n(bulk, sizeof(bulk)), NULL, 0);
	run(&s);
	cr_assert_eq(t.messages, 2000);
	cr_assert_eq(t.bytes, 2000 * sizeof(bulk));
	cr_assert_eq(s.ends + t.ends, 0);
	chan_free(&t.chan);
	done(&s);
}

Test(chan, passes_descriptors_and_closes_those_not_taken, .timeout = 10)
{
	struct seen s = {.keep_fd = true, .stop_after = 1}, t = {0};
	int fds[2], before = fd_count_open();
	make(&s, fds);
	cr_assert_eq(chan_new(s.base, fds[1], on_msg, &t, &t.chan, NULL), ERR_OK);
	int mem = fd_memfd("x");
	cr_assert_eq(write(mem, "hello", 5), 5);
	chan_send(t.chan, MSG_POLICY, 1, STR("n"), &mem, 1);
	run(&s);
	char got[8] = "";
	cr_assert_eq(pread(s.kept, got, sizeof(got), 0), 5);
	cr_assert_str_eq(got, "hello");
	close(s.kept);
	s.keep_fd = false;
	s.stop_after = 3;
	chan_send(t.chan, MSG_POLICY, 2, STR_NULL, &mem, 1);
	chan_send(t.chan, MSG_READY, 3, STR_NULL, NULL, 0);
	run(&s);
	cr_assert_eq(s.with_fd, 2);
	close(mem);
	chan_free(&t.chan);
	done(&s);
	cr_assert_eq(fd_count_open(), before, "descriptors leaked");
}

Test(chan, queued_descriptors_survive_the_senders_close, .timeout = 10)
{
	struct seen s = {0}, t = {.stop_after = 900};
	int fds[2], before = fd_count_open();
	make(&s, fds);
	t.base = s.base;
	cr_assert_eq(chan_new(s.base, fds[1], on_msg, &t, &t.chan, NULL), ERR_OK);
	for (uint32_t i = 1; i <= 900; i++) {
		int mem = fd_memfd("x");
		chan_send(s.chan, MSG_POLICY, i, STR_NULL, &mem, 1);
		close(mem);
	}
	run(&s);
	cr_assert_eq(t.with_fd, 900, "%u", t.with_fd);
	chan_free(&t.chan);
	done(&s);
	cr_assert_eq(fd_count_open(), before, "descriptors leaked");
}

Test(chan, what_the_table_does_not_allow_ends_the_channel, .timeout = 20)
{
	static char huge[LIMIT_MSG_BYTES + 64];
	static const struct {
		const char *name;
		uint32_t type;
		size_t payload;
		size_t nfds;
		bool allowed;
	} rows[] = {
	    {"right message", MSG_ACK, 8, 0, true},
	    {"unknown type", MSG_TYPE_MAX, 0, 0, false},
	    {"type zero", 0, 0, 0, false},
	    {"huge type", 0xffffffff, 0, 0, false},
	    {"wrong sender", MSG_POLICY, 8, 0, false},
	    {"payload too long for its type", MSG_ACK, 65, 0, false},
	    {"unexpected descriptor", MSG_ACK, 8, 1, false},
	    {"cut by the largest message", MSG_ACK, LIMIT_MSG_BYTES + 1, 0, false},
	    {"no whole head", MSG_ACK, SIZE_MAX, 0, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = {.stop_after = 1};
		int fds[2], before = fd_count_open();
		make(&s, fds);
		chan_set_peer(s.chan, 1u << ROLE_WORKER);
		uint32_t id = 1;
		memcpy(huge, &rows[i].type, 4);
		memcpy(huge + 4, &id, 4);
		size_t n = rows[i].payload == SIZE_MAX ? 5 : 8 + rows[i].payload;
		int fd = STDERR_FILENO;
		cr_assert_eq(fd_send_msg(fds[1], huge, n, &fd, rows[i].nfds), (ssize_t)n);
		run(&s);
		cr_expect_eq(s.messages, rows[i].allowed ? 1 : 0, "%s", rows[i].name);
		cr_expect_eq(s.ends, rows[i].allowed ? 0 : 1, "%s", rows[i].name);
		done(&s);
		close(fds[1]);
		cr_expect_eq(fd_count_open(), before, "%s leaks", rows[i].name);
	}
}

Test(chan, may_be_freed_inside_its_callback, .timeout = 10)
{
	for (int end = 0; end < 2; end++) {
		struct seen s = {.free_inside = true, .stop_after = 1};
		int fds[2];
		make(&s, fds);
		uint32_t head[2] = {MSG_READY, 1};
		if (end == 0) {
			cr_assert_eq(fd_send_msg(fds[1], head, 8, NULL, 0), 8);
			cr_assert_eq(fd_send_msg(fds[1], head, 8, NULL, 0), 8);
		}
		close(fds[1]);
		run(&s);
		cr_assert_eq(s.messages + s.ends, 1);
		cr_assert_null(s.chan);
		done(&s);
	}
}

Test(chan, a_peer_that_is_gone_is_told_once, .timeout = 10)
{
	struct seen s = {0};
	int fds[2];
	make(&s, fds);
	uint32_t head[2] = {MSG_READY, 1};
	cr_assert_eq(fd_send_msg(fds[1], head, 8, NULL, 0), 8);
	close(fds[1]);
	chan_send(s.chan, MSG_READY, 1, STR_NULL, NULL, 0);
	chan_send(s.chan, MSG_READY, 2, STR_NULL, NULL, 0);
	run(&s);
	cr_assert_eq(s.ends, 1);
	cr_assert_eq(s.messages, 1, "what was sent before the end is still read");
	chan_send(s.chan, MSG_READY, 3, STR_NULL, NULL, 0);
	done(&s);
}

Test(chan, a_peer_that_never_reads_is_taken_for_dead, .timeout = 20)
{
	struct seen s = {0};
	int fds[2];
	make(&s, fds);
	for (uint32_t i = 0; i < 3 * CHAN_QUEUE_MAX; i++)
		chan_send(s.chan, MSG_READY, i, STR_NULL, NULL, 0);
	run(&s);
	cr_assert_eq(s.ends, 1);
	done(&s);
	close(fds[1]);
}
