/* bash.c - what a call of the shell is, and that nothing of it stays */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static const struct {
	const char *name, *command, *out, *err; /* err: a part of it; NULL: must be empty */
	int return_code;
	bool timed_out;
	uint32_t timeout_ms;
} calls[] = {
    {"a pipeline", "printf 'b\\na\\n' | sort | tr -d '\\n'", "ab", NULL, 0, false, 0},
    {"it is bash", "a=(x y z); echo ${a[-1]} ${#a[@]} $0", "z 3 bash\n", NULL, 0, false, 0},
    {"it starts in the working directory", "pwd; cd /tmp", "/work\n", NULL, 0, false, 0},
    {"each call has a shell of its own", "pwd; echo ${v-unset}; v=1", "/work\nunset\n", NULL, 0,
	false, 0},
    {"and the last one's variables are gone", "echo ${v-unset}", "unset\n", NULL, 0, false, 0},
    {"the exit status is kept", "echo e >&2; exit 7", "", "e\n", 7, false, 0},
    {"an unknown command is 127 with its line", "\n\nnosuchcommand", "", "bash: line 3: nosuch",
	127, false, 0},
    {"death by a signal is 128 and its number", "kill -9 $$", "", NULL, 137, false, 0},
    {"a broken pipe is quiet", "yes | head -n 1", "y\n", NULL, 0, false, 0},
    {"a syntax error is told", "if then", "", "syntax error", 2, false, 0},
    {"nothing", "", "", NULL, 0, false, 0},
    {"an output folder", "echo x > $OUTPUT_DIR/a.txt; ls $OUTPUT_DIR", "a.txt\n", NULL, 0, false,
	0},
    {"reading input does not wait" /* K8 */, "read x; echo \"$? [$x]\"; cat", "1 []\n", NULL, 0,
	false, 0},
    {"only its own descriptors", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", NULL, 0, false, 0},
    {"only the variables that everybody has" /* K14 */,
	"env | cut -d= -f1 | sort | tr '\\n' ' '; tr '\\0' x < /proc/1/environ | wc -c",
	"HOME LANG MPLBACKEND MPLCONFIGDIR OMP_NUM_THREADS OPENBLAS_NUM_THREADS OUTPUT_DIR PATH "
	"PWD "
	"PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 SHLVL TMPDIR TZ USER XDG_CACHE_HOME "
	"XDG_CONFIG_HOME _ 0\n",
	"not permitted", 0, false, 0},
    {"no signal is blocked or ignored",
	"grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t0\\n'; kill -l > /dev/null",
	"SigBlk:SigIgn:", NULL, 0, false, 0},
    {"the walls of any process",
	"grep -E '^(NoNewPrivs|Seccomp|CapBnd|Uid):' /proc/self/status | "
	"tr -s '\\t' ' ' | tr '\\n' ' '",
	"Uid: 1000 1000 1000 1000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 ", NULL, 0,
	false, 0},
    {"the limits of any process", "ulimit -u -n -c | tr -s ' ' | cut -d')' -f2 | tr '\\n' ' '",
	" 64  256  0 ", NULL, 0, false, 0},
    {"the host's memory killer takes it first", "cat /proc/self/oom_score_adj", "1000\n", NULL, 0,
	false, 0},
    {"python as a program", "python3 -c 'print(6 * 7)'", "42\n", NULL, 0, false, 0},
    {"one that runs on is interrupted", "echo go; while :; do :; done", "go\n", "time limit", 124,
	true, 500},
    {"so is what it waits for", "sleep 60; echo no", "", "time limit", 124, true, 500},
    {"python says where it was", "python3 -c 'while True: pass'", "", "KeyboardInterrupt", 124,
	true, 1500},
    {"one that ignores signals is killed" /* K9 */,
	"trap '' INT TERM HUP; setsid sleep 77 & while :; do sleep 1; done", "", "time limit", 124,
	true, 500},
    {"a stopped one too", "kill -STOP $$", "", "time limit", 124, true, 500},
    {"a server in the foreground ends at the limit" /* K8 */,
	"exec python3 -c 'import signal; signal.pause()'", "", "time limit", 124, true, 1500},
};

static void
bash(struct probe_host *h, struct code_session *s, const char *name, const char *command,
    uint32_t timeout_ms)
{
	probe_name(name);
	probe_run(h, s, CODE_BASH, str_c(command), timeout_ms, &r);
	EXPECT(!r.failed, "%s", r.why);
}

/* Nothing but the interpreter, its variable, and whoever asks. */
static void
state_kept(struct probe_host *h, struct code_session *s)
{
	static struct probe_result again;
	probe_exec(h, s,
	    "import os\nprint(keep, len([p for p in os.listdir('/proc') if p.isdigit()]))", 0,
	    &again);
	EXPECT(!again.failed && strcmp(again.out, "41 2\n") == 0, "%s%s%s", again.why, again.out,
	    again.err);
}

static void
kinds_of_call(struct probe_host *h, struct code_session *s)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		char name[128];
		(void)snprintf(name, sizeof(name), "bash: %s", calls[i].name);
		bash(h, s, name, calls[i].command, calls[i].timeout_ms);
		EXPECT(strcmp(r.out, calls[i].out) == 0, "stdout is \"%s\"", r.out);
		if (calls[i].err == NULL)
			EXPECT(r.err[0] == '\0', "stderr is \"%s\"", r.err);
		else
			EXPECT(strstr(r.err, calls[i].err) != NULL, "stderr is \"%s\"", r.err);
		EXPECT(r.return_code == calls[i].return_code, "%d", r.return_code);
		EXPECT(r.timed_out == calls[i].timed_out && !r.died, "%d %d", r.timed_out, r.died);
		if (r.failed)
			break;
	}
	state_kept(h, s);
}

static void
long_commands(struct probe_host *h, struct code_session *s)
{
	static const char tail[] = "\necho end; ls /proc/self/fd | tr '\\n' ' '; nosuchcommand";
	static const size_t sizes[] = {90000, 200000, CODE_SOURCE_MAX};
	char *text = mem_alloc(CODE_SOURCE_MAX);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t at = sizes[i] - sizeof(tail) + 1;
		probe_name("bash: a command of any length that is allowed");
		memset(text, 'x', at);
		memcpy(text, "w='", 3);
		memcpy(text + at - 13, "'; echo ${#w}", 13);
		memcpy(text + at, tail, sizeof(tail) - 1);
		text[at] = '\n';
		probe_run(h, s, CODE_BASH, str_n(text, sizes[i]), 20000, &r);
		char want[64];
		(void)snprintf(want, sizeof(want), "%zu\nend\n0 1 2 3 ", at - 16);
		EXPECT(strcmp(r.out, want) == 0, "%zu: %s %s", sizes[i], r.out, r.err);
		EXPECT(strstr(r.err, "line 2: nosuch") != NULL && r.return_code == 127, "%d %s",
		    r.return_code, r.err);
	}
	mem_free(text);
	probe_name("bash: a command with a NUL in it runs");
	probe_run(h, s, CODE_BASH, str_n("echo a\0b", 8), 0, &r);
	EXPECT(strcmp(r.out, "ab\n") == 0, "%s", r.out);
	state_kept(h, s);
}

static void
nothing_stays(struct probe_host *h, struct code_session *s)
{
	bash(h, s, "bash: background processes end with the call" /* K16 */,
	    "sleep 100 & nohup sleep 101 & setsid sleep 102 & (sleep 103 &) ; disown -a; echo done",
	    5000);
	EXPECT(strcmp(r.out, "done\n") == 0 && r.exec_ms < 4000, "%s %u", r.out, r.exec_ms);
	state_kept(h, s);
	bash(h, s, "bash: a daemon that ignores every signal and writes on" /* K9 */,
	    "setsid bash -c 'for i in $(seq 64); do trap \"\" $i; done 2>/dev/null; while :; do "
	    "echo x >> /tmp/beats; done' & while [ ! -s /tmp/beats ]; do sleep 0.01; done",
	    5000);
	EXPECT(r.return_code == 0, "%d %s", r.return_code, r.err);
	state_kept(h, s);
	bash(h, s, "bash: and really does nothing more",
	    "a=$(stat -c %s /tmp/beats); sleep 0.2; [ $a = $(stat -c %s /tmp/beats) ] && echo "
	    "quiet",
	    5000);
	EXPECT(strcmp(r.out, "quiet\n") == 0, "%s", r.out);
	bash(h, s, "bash: a fork bomb" /* K10 */, ":(){ :|:& };:; sleep 60", 1500);
	EXPECT(r.exec_ms < 8000, "%u", r.exec_ms);
	state_kept(h, s);
	bash(h, s, "bash: stopped children end too",
	    "for i in 1 2 3; do sleep 50 & kill -STOP $!; done", 5000);
	state_kept(h, s);
	probe_name("bash: many calls leave no dead process" /* K18, J7, J13 */);
	for (int i = 0; i < 5; i++)
		probe_run(h, s, CODE_BASH,
		    str_c("for i in $(seq 20); do (sh -c 'sleep 9 & true' &); done; for i in $(seq "
			  "30); do /bin/true; done"),
		    5000, &r);
	EXPECT(r.return_code == 0 && r.err[0] == '\0', "%d %s", r.return_code, r.err);
	probe_exec(
	    h, s, "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]))", 0, &r);
	EXPECT(strcmp(r.out, "2\n") == 0, "%s%s", r.out, r.err);
	state_kept(h, s);
	if (probe_is_thorough()) {
		bash(h, s, "bash: a flood ends" /* K4 */, "exec yes", 60000);
		EXPECT(strstr(r.err, "too much output") != NULL && !r.died && r.return_code == 137,
		    "%d %s", r.died, r.err);
	}
	state_kept(h, s);
	bash(h, s, "bash: more output than a pipe holds, on both" /* K7 */,
	    "head -c 3000000 /dev/zero | tr '\\0' o; head -c 2000000 /dev/zero | tr '\\0' e >&2",
	    20000);
	EXPECT(r.out_total == 3000000 && r.err_total == 2000000 && r.return_code == 0, "%llu %llu",
	    (unsigned long long)r.out_total, (unsigned long long)r.err_total);
	bash(h, s, "bash: links are no outputs" /* K1 */,
	    "ln -s /proc/self/environ out.txt; ln -s / d; ln -s /etc $OUTPUT_DIR/etc; echo f > "
	    "$OUTPUT_DIR/f; mkfifo $OUTPUT_DIR/p",
	    5000);
	EXPECT(r.file_count == 1 && strcmp(r.files[0].path, "outputs/f") == 0, "%zu", r.file_count);
	state_kept(h, s);
}

static void
with_the_interpreter(struct probe_host *h, struct code_session *s)
{
	probe_exec(h, s, "import os\nkeep = 41\nopen('made.py', 'w').write('p = 5')", 0, &r);
	bash(h, s, "bash: sees the files of python, and python its",
	    "cat made.py; echo q=6 > m2.py", 0);
	EXPECT(strcmp(r.out, "p = 5") == 0 && r.file_count == 1, "%s", r.out);
	probe_exec(h, s, "import m2\nm2.q + keep", 0, &r);
	EXPECT(strcmp(r.out, "47\n") == 0, "%s %s", r.out, r.err);
	bash(h, s, "bash: output pipes that were made non-blocking work again",
	    "python3 -c 'import os; os.set_blocking(1, False)'", 0);
	probe_exec(h, s, "print('z' * 300000)", 10000, &r);
	EXPECT(r.out_total == 300001 && r.return_code == 0, "%llu %s",
	    (unsigned long long)r.out_total, r.err);
	bash(h, s, "bash: waking the interpreter does no harm",
	    "for p in /proc/[0-9]*; do kill -CONT ${p#/proc/} 2>/dev/null; done; echo ok", 0);
	EXPECT(strcmp(r.out, "ok\n") == 0 && !r.died, "%s", r.out);
	state_kept(h, s);
	bash(h, s, "bash: killing the interpreter is told", "kill -9 -1; echo here", 0);
	EXPECT(r.died && strstr(r.err, "variables are lost") != NULL, "%d %s", r.died, r.err);
	EXPECT(strcmp(r.out, "here\n") == 0 && r.return_code == 0, "%s %d", r.out, r.return_code);
	bash(h, s, "bash: works while the next one starts", "echo ok", 0);
	EXPECT(strcmp(r.out, "ok\n") == 0 && !r.died, "%s %d", r.out, r.died);
	probe_exec(h, s, "'keep' in globals()", 0, &r);
	EXPECT(strcmp(r.out, "False\n") == 0 && !r.died, "%s%s", r.out, r.err);
	probe_exec(h, s,
	    "import subprocess\nfor i in range(100): subprocess.Popen(['sleep', '60'])", 0, &r);
	bash(h, s, "bash: works where the interpreter left the limit of processes full",
	    "echo a | cat", 0);
	EXPECT(strcmp(r.out, "a\n") == 0, "%s %s", r.out, r.err);
}

void
probes_bash(struct probe_host *h)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	probe_exec(h, s, "keep = 41", 0, &r);
	kinds_of_call(h, s);
	long_commands(h, s);
	nothing_stays(h, s);
	with_the_interpreter(h, s);
	code_session_close(&s);
}
