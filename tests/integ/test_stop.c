/* A child dies while requests run and a reload is under way, and the daemon is told to stop at that
 * moment: it must end by itself, whoever it was and whenever. OTARI_TEST_ROUNDS=50 looks for the
 * rare moment, OTARI_TEST_SEED=… finds it again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"

TestSuite(stop, .timeout = 600);

#define CLIENTS 6
#define CODE                                                                                       \
	"{\"model\":\"fake:tool\",\"max_tokens\":500,\"stream\":true,\"messages\":[{\"role\":"     \
	"\"user\",\"content\":\"run: import time\\ntime.sleep(0.2)\"}],\"tools\":[{\"type\":"      \
	"\"code_execution_20250825\",\"name\":\"code_execution\"}]}"
#define SLOW                                                                                       \
	"{\"model\":\"fake:slow-20\",\"max_tokens\":50,\"stream\":true,\"messages\":[{\"role\":"   \
	"\"user\",\"content\":\"hello\"}]}"

static uint32_t
draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static void
pause_us(uint32_t us)
{
	struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
	(void)nanosleep(&t, NULL);
}

/* From nothing to a few milliseconds to the length of a build. */
static uint32_t
moment_us(uint32_t *seed)
{
	static const uint32_t most[] = {1, 3000, 30000, 150000};
	return draw(seed, most[draw(seed, ARRAY_LEN(most))]);
}

static void
kill_one(struct server *s, const char *victim, uint32_t *seed)
{
	pid_t pids[16];
	size_t n = server_pids(s, victim, pids, ARRAY_LEN(pids));
	if (n > 0)
		(void)kill(pids[draw(seed, (uint32_t)n)], SIGKILL);
}

/* What the end of a process makes the others say. */
static void
expect_deaths(struct server *s)
{
	static const char *const texts[] = {"child ended", "code session", "sandbox", "spawner",
	    "died", "killed", "the filler failed", "the zygote failed", "failed", "not usable",
	    "reach the master"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		server_expect(s, texts[i]);
}

static void
stop_once(const char *victim, uint32_t seed)
{
	int fds[CLIENTS];
	struct server *s = start_sandboxed(&(struct server_opts){.workers = 2});
	expect_deaths(s);
	fprintf(stderr, "stop: %s, OTARI_TEST_SEED=%u\n", victim, seed);
	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = stream_open(s, i % 2 == 0 ? "/v1/messages" : "/v1/chat/completions",
		    i % 2 == 0 ? CODE : SLOW);
	pause_us(moment_us(&seed));
	bool leaves_early = draw(&seed, 2) == 0;
	if (draw(&seed, 4) > 0)
		(void)kill(s->pid, SIGHUP);
	pause_us(moment_us(&seed));
	for (size_t i = 0; leaves_early && i < CLIENTS; i++)
		(void)close(fds[i]);
	kill_one(s, victim, &seed);
	pause_us(moment_us(&seed));
	int64_t from = clock_mono_ms();
	(void)kill(s->pid, SIGTERM);
	for (size_t i = 0; !leaves_early && i < CLIENTS; i++)
		(void)close(fds[i]);
	server_stop(&s);
	fprintf(stderr, "stop: %s, %lld ms\n", victim, (long long)(clock_mono_ms() - from));
}

static void
stop_after(const char *victim)
{
	const char *text = getenv("OTARI_TEST_ROUNDS"), *seed = getenv("OTARI_TEST_SEED");
	unsigned long rounds = text != NULL ? strtoul(text, NULL, 10) : 1;
	for (unsigned long i = 0; i < rounds; i++)
		stop_once(victim,
		    seed != NULL ? (uint32_t)strtoul(seed, NULL, 10) : (uint32_t)clock_wall_ms());
}

Test(stop, ends_after_a_worker_died)
{
	stop_after("otari: worker");
}

Test(stop, ends_after_the_sweeper_died)
{
	stop_after("otari: sweeper");
}

Test(stop, ends_after_a_builder_died)
{
	stop_after("otari: builder");
}

Test(stop, ends_after_the_spawner_died)
{
	stop_after("otari: spawner");
}

Test(stop, ends_after_the_filler_died)
{
	stop_after("otari: filler");
}

Test(stop, ends_after_an_interpreter_died)
{
	stop_after("open(4)");
}
