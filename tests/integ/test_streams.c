/* What many streams at once may cost, and what a killed worker may lose. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/streams.h"

TestSuite(streams, .timeout = 240);

#define BODY(model)                                                                                \
	"{\"model\":\"" model "\",\"max_tokens\":100,\"stream\":true,"                             \
	"\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],"                                \
	"\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}]}"

Test(streams, a_thousand_that_declare_the_tool_and_never_call_it_lease_nothing)
{
	enum { N = 1000 };
	static int fds[N];
	raise_fd_limit();
	struct server *s = start_with_sandbox();
	long before = server_rss_kib(s, "worker");
	for (int i = 0; i < N; i++)
		fds[i] = stream_open(s, "/v1/messages", BODY("fake:stall"));
	for (int i = 0; i < N; i++)
		cr_assert(stream_wait(fds[i], "content_block_delta"), "stream %d has no text", i);
	long after = server_rss_kib(s, "worker");
	fprintf(stderr, "%d open streams: workers' memory %ld -> %ld KiB, %.1f KiB a stream\n", N,
	    before, after, (double)(after - before) / N);
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0);
	cr_expect_eq(server_metric(s, "otari_sandbox_sessions_leased"), 0);
	for (int i = 0; i < N; i++)
		(void)close(fds[i]);
	server_stop(&s);
}

Test(streams, old_snapshots_go_while_streams_stay_open)
{
	enum { N = 50, RELOADS = 100 };
	int fds[N];
	struct server *s = server_start(NULL);
	long log_at = server_log_end(s);
	for (int i = 0; i < N; i++)
		fds[i] = stream_open(s, "/v1/messages", BODY("fake:stall"));
	for (int i = 0; i < N; i++)
		cr_assert(stream_wait(fds[i], "content_block_delta"));
	for (int i = 0; i < RELOADS; i++) {
		(void)kill(s->pid, SIGHUP);
		cr_assert(server_wait_log(s, "reload built", &log_at), "reload %d", i);
	}
	/* two workers, two segments each; three generations of each are the limit */
	double alive = -1;
	for (int i = 0; i < 300; i++) {
		alive = server_metric(s, "otari_snapshots_alive");
		if (alive <= 12)
			break;
		pause_short();
	}
	cr_expect(alive > 0 && alive <= 12, "%g snapshots are mapped", alive);
	for (int i = 0; i < N; i++)
		(void)close(fds[i]);
	server_stop(&s);
}

Test(streams, a_killed_worker_loses_no_usage_of_what_it_answered)
{
	struct server *s = server_start(&(struct server_opts){.workers = 2});
	pid_t pids[8];
	int answered = 0;
	server_expect(s, "worker");
	server_expect(s, "died");
	server_expect(s, "killed");
	for (int i = 0; i < 60; i++) {
		struct reply r;
		server_ask(s, "POST", "/v1/chat/completions",
		    STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":"
			"\"hi\"}"
			"]}"),
		    NULL, &r);
		answered += r.status == 200;
		reply_done(&r);
		if (i == 30) {
			size_t n = server_pids(s, "worker", pids, 8);
			cr_assert(n >= 1);
			(void)kill(pids[0], SIGKILL);
		}
	}
	cr_assert(answered >= 50, "%d were answered", answered);
	cr_expect(
	    server_wait_sql(s, "SELECT count(*) FROM usage_logs WHERE status_code = 200", answered),
	    "%d answers, %lld rows", answered,
	    (long long)server_sql(s, "SELECT count(*) FROM usage_logs WHERE status_code = 200"));
	server_stop(&s);
}

Test(streams, a_client_that_does_not_read_does_not_grow_the_worker)
{
	struct server *s = server_start(&(struct server_opts){.workers = 1});
	int fd = stream_open(s, "/v1/chat/completions",
	    "{\"model\":\"fake:endless\",\"stream\":true,\"messages\":[{\"role\":\"user\","
	    "\"content\":\"x\"}]}");
	cr_assert(stream_wait(fd, "data:"));
	for (int i = 0; i < 100; i++)
		pause_short();
	long early = server_rss_kib(s, "worker");
	for (int i = 0; i < 300; i++)
		pause_short();
	long late = server_rss_kib(s, "worker");
	fprintf(stderr, "stalled reader: worker %ld -> %ld KiB\n", early, late);
	cr_expect(late - early < 4096, "grew by %ld KiB", late - early);
	(void)close(fd);
	server_stop(&s);
}
