/* zygote.c - sessions that are born from a zygote, and what becomes of it */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/probes/probe.h"

/* One of its own has no such library loaded. */
#define IS_BORN      "'fractions' in __import__('sys').modules"
#define SEED_OF_BORN "print(hash('otari') & 0xffffff if " IS_BORN " else '-')"

static struct probe_result r;

/* What a fresh session says to the code. */
static bool
say(struct probe_host *h, const char *code)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return false;
	probe_exec(h, s, code, 0, &r);
	code_session_close(&s);
	return !r.failed && r.return_code == 0;
}

static bool
is_born(struct probe_host *h)
{
	return say(h, "print(" IS_BORN ")") && strcmp(r.out, "True\n") == 0;
}

bool
probe_wait_zygote(struct probe_host *h, int ms)
{
	for (int64_t until = clock_mono_ms() + ms; clock_mono_ms() < until;) {
		if (is_born(h))
			return true;
		probe_turn(h, 100);
	}
	return false;
}

/* All sessions of one zygote have its hash seed; those that are kept ready outlive it. */
static bool
wait_for_another(struct probe_host *h, const char *seed_before)
{
	for (int64_t until = clock_mono_ms() + 60000; clock_mono_ms() < until;) {
		if (say(h, SEED_OF_BORN) && r.out[0] != '-' && strcmp(r.out, seed_before) != 0)
			return true;
		probe_turn(h, 100);
	}
	return false;
}

static void
lose(struct probe_host *h, int sig, const char *name)
{
	static char seed[sizeof(r.out)];
	probe_name(name);
	pid_t before = probe_find(h, "open(4)");
	if (!EXPECT(before > 0 && wait_for_another(h, ""), "no zygote is found"))
		return;
	memcpy(seed, r.out, sizeof(seed));
	EXPECT(kill(before, sig) == 0, "%d", errno);
	int64_t slowest = 0;
	for (int i = 0; i < 8; i++) {
		int64_t start = clock_mono_ms();
		EXPECT(say(h, "print(6 * 7)") && strcmp(r.out, "42\n") == 0, "%s%s", r.out, r.why);
		int64_t took = clock_mono_ms() - start;
		slowest = took > slowest ? took : slowest;
	}
	EXPECT(slowest < 9000, "%lld ms", (long long)slowest);
	EXPECT(wait_for_another(h, seed), "no other zygote came");
	EXPECT(probe_find(h, "open(4)") != before, "it is still there");
}

static void
chance(struct probe_host *h)
{
	static const char code[] =
	    "import random, sys, uuid\nprint(random.random(), uuid.uuid4(), "
	    "sys.modules['numpy'].random.rand() if 'numpy' in sys.modules else '')";
	static char first[sizeof(r.out)];
	probe_name("sessions of one zygote draw other random numbers");
	EXPECT(say(h, code), "%s", r.err);
	memcpy(first, r.out, sizeof(first));
	EXPECT(say(h, code), "%s", r.err);
	char *a = NULL, *b = NULL;
	for (int i = 0; i < 3; i++) {
		const char *x = strtok_r(i == 0 ? first : NULL, " \n", &a);
		const char *y = strtok_r(i == 0 ? r.out : NULL, " \n", &b);
		if (x != NULL && y != NULL)
			EXPECT(strcmp(x, y) != 0, "%s", x);
	}
}

/* Sessions are born all the time, of one zygote and then of the next. */
static void
followed(const char *init_path, bool by_age)
{
	struct probe_host h;
	struct sandbox_settings s;
	pid_t last = 0;
	unsigned changes = 0;
	probe_name(by_age ? "a zygote that is old is followed by another"
			  : "a zygote that has forked often is followed by another");
	probe_settings(&s);
	s.preload[0] = '\0';
	s.pool_size = 1;
	s.zygote_age_s = by_age ? 1 : s.zygote_age_s;
	s.zygote_forks = by_age ? s.zygote_forks : 5;
	if (!EXPECT(probe_start(&h, init_path, &s), "no start"))
		return;
	EXPECT(probe_wait_zygote(&h, 60000), "none in a minute");
	for (int i = 0; i < 400 && changes < 3; i++) {
		EXPECT(is_born(&h), "%s%s", r.out, r.why);
		pid_t now = probe_find(&h, "open(4)");
		changes += now > 0 && last > 0 && now != last;
		last = now > 0 ? now : last;
		probe_turn(&h, 20);
	}
	EXPECT(changes == 3, "%u others", changes);
	probe_stop(&h);
}

/* The next one is kept loading meanwhile: only the old one's own time can end the wait. */
static void
hangs_when_old(const char *init_path)
{
	struct probe_host h;
	struct sandbox_settings s;
	pid_t old = 0, next = 0;
	probe_name("an old zygote that does not answer is given up");
	probe_settings(&s);
	s.preload[0] = '\0';
	s.pool_size = 1;
	s.zygote_forks = 5;
	if (!EXPECT(probe_start(&h, init_path, &s), "no start"))
		return;
	EXPECT(probe_wait_zygote(&h, 60000), "none in a minute");
	for (int i = 0; i < 2000 && next == 0; i++) {
		if (i % 50 == 0)
			EXPECT(is_born(&h), "%s%s", r.out, r.why);
		old = probe_find(&h, "open(4)");
		next = probe_find_other(&h, "open(4)", old);
		probe_turn(&h, 2);
	}
	if (EXPECT(next > 0, "none followed")) {
		EXPECT(kill(old, SIGSTOP) == 0 && kill(next, SIGSTOP) == 0, "%d", errno);
		int64_t start = clock_mono_ms();
		for (int i = 0; i < 4; i++)
			EXPECT(say(&h, "print(6 * 7)") && strcmp(r.out, "42\n") == 0, "%s%s", r.out,
			    r.why);
		int64_t took = clock_mono_ms() - start;
		EXPECT(took < 30000, "%lld ms", (long long)took);
	}
	probe_stop(&h);
}

void
probes_zygote(struct probe_host *h)
{
	probe_name("sessions are born from a zygote");
	EXPECT(probe_wait_zygote(h, 60000), "none in a minute");
	chance(h);
	if (probe_wants("zygote") && strcmp(probe_mode.name, "best") == 0) {
		lose(h, SIGKILL, "a killed zygote is replaced, sessions go on meanwhile");
		lose(h, SIGSTOP, "a zygote that does not answer is replaced");
	}
	probe_end();
}

void
probes_followed(const char *init_path)
{
	followed(init_path, false);
	followed(init_path, true);
	hangs_when_old(init_path);
	probe_end();
}
