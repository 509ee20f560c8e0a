/* mixed.c - calls of every kind in any order, cut off at any moment: the session goes on
 *
 * The order comes from a seed, PROBES_SEED, which is printed when something fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static uint32_t
next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static const struct {
	enum code_kind kind;
	const char *code;
} calls[] = {
    {CODE_PYTHON, "x = globals().get('x', 0) + 1"},
    {CODE_PYTHON, "import time; time.sleep(60)"},
    {CODE_PYTHON, "while True: pass"},
    {CODE_PYTHON, "import os; os._exit(3)"},
    {CODE_PYTHON, "import os, signal\nif os.fork() == 0:\n    while True:\n        "
		  "os.kill(os.getppid(), signal.SIGSTOP); os.kill(os.getppid(), signal.SIGCONT)"},
    {CODE_PYTHON, "import subprocess; p = subprocess.Popen(['sleep', '60'])"},
    {CODE_PYTHON, "import os\nwhile True: os.write(1, b'x' * 65536)"},
    {CODE_BASH, "echo hi"},
    {CODE_BASH, "sleep 60"},
    {CODE_BASH, "trap '' INT TERM; while :; do :; done"},
    {CODE_BASH, "for p in /proc/[0-9]*; do kill -CONT ${p#/proc/}; done 2>/dev/null"},
    {CODE_BASH, "kill -9 -1; sleep 60"},
    {CODE_BASH, "kill -9 $$"},
    {CODE_BASH, "setsid sleep 60 & disown; exec 1>&- 2>&-"},
    {CODE_BASH, "yes | head -c 5000000; yes >&2 & sleep 60"},
    {CODE_BASH, "echo text > b; mkfifo -m 0 f$RANDOM; ln -sf / l"},
};

/* A command that takes longer to arrive than it may run. */
static void
long_command(struct probe_host *h, struct code_session *s, uint32_t timeout_ms)
{
	static char *text;
	if (text == NULL) {
		text = mem_alloc(CODE_SOURCE_MAX);
		memset(text, '#', CODE_SOURCE_MAX);
	}
	probe_run(h, s, CODE_BASH, str_n(text, CODE_SOURCE_MAX), timeout_ms, &r);
}

static void
one_call(struct probe_host *h, struct code_session *s, uint64_t *state)
{
	static const struct code_edit edits[] = {{.command = CODE_EDIT_VIEW, .path = STR_INIT(".")},
	    {.command = CODE_EDIT_CREATE, .path = STR_INIT("b"), .text = STR_INIT("text\n")},
	    {.command = CODE_EDIT_STR_REPLACE,
		.path = STR_INIT("b"),
		.old = STR_INIT("text"),
		.text = STR_INIT("new text")},
	    {.command = CODE_EDIT_CREATE, .path = STR_INIT("l/b"), .text = STR_INIT("out")}};
	const size_t count = sizeof(calls) / sizeof(calls[0]);
	uint32_t timeout_ms = 1 + next(state) % (next(state) % 4 == 0 ? 400 : 30);
	size_t what = next(state) % (count + 4);
	if (what < count)
		probe_run(h, s, calls[what].kind, str_c(calls[what].code), timeout_ms, &r);
	else if (what == count)
		long_command(h, s, timeout_ms);
	else if (what == count + 1)
		probe_convert(h, s, CODE_EXTRACT_HTML, "b", timeout_ms, &r);
	else
		probe_edit(h, s, &edits[next(state) % 4], &r);
}

void
probes_mixed(struct probe_host *h)
{
	enum { SESSIONS = 4, CALLS = 40 };
	const char *given = getenv("PROBES_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)clock_mono_us();
	uint64_t state = seed;
	probe_name("calls of every kind, cut off at any moment, leave a session that works");
	for (int k = 0; k < SESSIONS; k++) {
		struct code_session *s = probe_open(h, NULL);
		if (!EXPECT(s != NULL, "none"))
			return;
		bool ok = true;
		for (int i = 0; i < CALLS && ok; i++) {
			one_call(h, s, &state);
			ok = EXPECT(!r.failed, "seed %llu, session %d, call %d: %s",
			    (unsigned long long)seed, k, i, r.why);
		}
		probe_exec(h, s,
		    "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]))", 0,
		    &r);
		EXPECT(!r.failed && strcmp(r.out, "2\n") == 0, "seed %llu, session %d: %s%s%s",
		    (unsigned long long)seed, k, r.out, r.err, r.why);
		probe_run(h, s, CODE_BASH, STR("echo $((6 * 7))"), 0, &r);
		EXPECT(!r.failed && strcmp(r.out, "42\n") == 0, "seed %llu, session %d: %s%s",
		    (unsigned long long)seed, k, r.out, r.err);
		code_session_close(&s);
	}
}
