/* abuse.c - code that uses up what it can get */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static void
run(struct probe_host *h, struct code_session *s, const char *name, const char *code,
    uint32_t timeout_ms)
{
	probe_name(name);
	probe_exec(h, s, code, timeout_ms, &r);
	EXPECT(!r.failed, "%s", r.why);
}

static void
alive(struct probe_host *h, struct code_session *s)
{
	static struct probe_result again;
	probe_exec(h, s, "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]))",
	    0, &again);
	EXPECT(!again.failed && strcmp(again.out, "2\n") == 0, "%s%s%s", again.why, again.out,
	    again.err);
}

static void
processes(struct probe_host *h, struct code_session *s)
{
	run(h, s, "a fork bomb meets the limit and nothing of it stays" /* K10 */,
	    "import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
	    "            time.sleep(100)\n        n += 1\nexcept OSError as e: print(n < 64, "
	    "e.errno)",
	    5000);
	EXPECT(strcmp(r.out, "True 11\n") == 0, "%s %s", r.out, r.err);
	alive(h, s);
	run(h, s, "a fork bomb that forks on dies at the limit of time" /* K10 */,
	    "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass", 1500);
	EXPECT(r.timed_out && r.exec_ms < 8000, "%d %u", r.timed_out, r.exec_ms);
	alive(h, s);
	run(h, s, "a daemon does not outlive its call" /* K9 */,
	    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
	    "        while True:\n            open('/tmp/beat', 'a').write('x'); time.sleep(0.01)\n"
	    "    os._exit(0)\nfor i in range(400):\n    if os.path.exists('/tmp/beat'): break\n"
	    "    time.sleep(0.01)",
	    5000);
	alive(h, s);
	run(h, s, "and really does nothing more",
	    "import os, time\na = os.path.getsize('/tmp/beat')\ntime.sleep(0.2)\n"
	    "print(a == os.path.getsize('/tmp/beat'))",
	    5000);
	EXPECT(strcmp(r.out, "True\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "processes that wake each other up die too",
	    "import os, signal\nfor i in range(20):\n    if os.fork() == 0:\n"
	    "        while True:\n            try: os.kill(-1, signal.SIGCONT)\n"
	    "            except BaseException: pass\n",
	    5000);
	alive(h, s);
	probe_name("killed children do not use up the limit over many calls");
	for (int i = 0; i < 12; i++) {
		probe_exec(h, s,
		    "import subprocess\nps = [subprocess.Popen(['sleep', '60']) for i in "
		    "range(10)]",
		    5000, &r);
		if (!EXPECT(r.return_code == 0, "call %d: %s", i, r.err))
			break;
	}
	run(h, s, "and their owner learns how they ended", "print({p.poll() for p in ps})", 5000);
	EXPECT(strcmp(r.out, "{-9}\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "many short commands leave nothing" /* K18 */,
	    "for i in range(150): subprocess.run(['true'])", 20000);
	EXPECT(r.return_code == 0, "%s", r.err);
	alive(h, s);
	run(h, s, "a hidden process dies too",
	    "import os, ctypes\nif os.fork() == 0:\n    ctypes.CDLL(None).prctl(4, 0)\n"
	    "    while True: pass",
	    5000);
	alive(h, s);
	run(h, s, "kill -9 -1 ends the interpreter, not the session",
	    "import os\nif os.fork() == 0: os.kill(-1, 9)\nimport time; time.sleep(5)", 5000);
	EXPECT(r.died, "%s", r.out);
	alive(h, s);
	run(h, s, "the first process cannot be killed",
	    "import os\nfor g in (9, 15, 11, 19, 1): os.kill(1, g)\nprint('ok')", 5000);
	EXPECT(strcmp(r.out, "ok\n") == 0 && !r.died, "%s %s", r.out, r.err);
	run(h, s, "a stopped interpreter ends at the limit",
	    "import os\nif os.fork() == 0:\n    os.kill(os.getppid(), 19)\n    os._exit(0)\n"
	    "import time; time.sleep(60)",
	    700);
	EXPECT(r.timed_out && r.exec_ms < 5000, "%d %u", r.timed_out, r.exec_ms);
	alive(h, s);
}

/* Six processes take 300 MiB each, where 1 GiB is allowed. Without a cgroup the watch ends the
 * call; with one the kernel ends as many as it must. */
static void
many_take(struct probe_host *h, struct code_session *s, const char *name, const char *what,
    const char *how)
{
	char code[1024];
	(void)snprintf(code, sizeof(code),
	    "import ctypes, mmap, os, threading, time\nlibc = ctypes.CDLL(None)\n"
	    "def take():\n    b = %s\n    for k in range(0, len(b), 4096): b[k] = 1\n"
	    "    time.sleep(100)\n"
	    "def late(): time.sleep(0.5); take()\n"
	    "def hide():\n    libc.prctl(15, b'x\\nRssAnon: 0\\n')\n"
	    "    threading.Thread(target=late).start(); libc.syscall(60, 0)\n"
	    "for i in range(6):\n    if os.fork() == 0: %s()\n"
	    "dead, end = 0, time.monotonic() + 40\n"
	    "while dead < 3 and time.monotonic() < end:\n    p, status = os.waitpid(-1, "
	    "os.WNOHANG)\n"
	    "    if p: dead += status == 9\n    else: time.sleep(0.01)\n"
	    "print(dead >= 3)",
	    what, how);
	run(h, s, name, code, 60000);
	bool is_ended = r.died && r.return_code == 137;
	EXPECT(is_ended || strcmp(r.out, "True\n") == 0, "%d %d %s%s", r.died, r.return_code, r.out,
	    r.err);
	EXPECT(!r.timed_out, "%s", r.err);
	EXPECT(strstr(r.err, is_ended ? "[ended: the memory limit of 1024 MiB was reached]\n"
				      : "[a process was ended: the memory limit of 1024 MiB was "
					"reached]\n") != NULL,
	    "%s", r.err);
	alive(h, s);
}

/* K9: what the code of a call set up to wake the interpreter after it */
static void
wakers(struct probe_host *h, struct code_session *s)
{
	static const char prelude[] =
	    "import ctypes, os, signal, threading, time\nlibc = ctypes.CDLL(None)\nkeep = 41\n"
	    "def beat():\n    while True:\n        open('/tmp/beat', 'a').write('x'); "
	    "time.sleep(0.001)\n"
	    "threading.Thread(target=beat, daemon=True).start()\n";
	static const struct {
		const char *name, *code;
	} rows[] = {
	    {"a timer cannot wake the interpreter between calls",
		"class E(ctypes.Structure): _fields_ = [('v', ctypes.c_long), ('s', ctypes.c_int), "
		"('n', ctypes.c_int), ('p', ctypes.c_char * 48)]\n"
		"t = ctypes.c_void_p()\n"
		"if libc.timer_create(1, ctypes.byref(E(0, 18, 0)), ctypes.byref(t)) == 0:\n"
		"    libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 30000000, 0, 30000000), "
		"None)"},
	    {"nor can one that never rests",
		"class E(ctypes.Structure): _fields_ = [('v', ctypes.c_long), ('s', ctypes.c_int), "
		"('n', ctypes.c_int), ('p', ctypes.c_char * 48)]\n"
		"t = ctypes.c_void_p()\n"
		"if libc.timer_create(1, ctypes.byref(E(0, 18, 0)), ctypes.byref(t)) == 0:\n"
		"    libc.timer_settime(t, 0, (ctypes.c_long * 4)(0, 20000, 0, 20000), "
		"None)"},
	    {"nor can the end of a child",
		"if libc.syscall(56, 18, 0, 0, 0, 0) == 0:\n    while True: time.sleep(1)"},
	    {"nor a pipe that is emptied",
		"import fcntl\ntry:\n    fcntl.fcntl(1, 10, 18)\n"
		"    fcntl.fcntl(1, fcntl.F_SETOWN, os.getpid())\n"
		"    fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_ASYNC)\n"
		"except OSError: pass\n"
		"print('x' * 9000)"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run(h, s, rows[i].name, prelude, 5000);
		probe_exec(h, s, rows[i].code, 5000, &r);
		EXPECT(r.return_code == 0, "%s", r.err);
		probe_turn(h, 400);
		probe_run(h, s, CODE_BASH,
		    STR("a=$(stat -c %s /tmp/beat); sleep 0.2; [ $a = $(stat -c %s /tmp/beat) ] && "
			"echo quiet"),
		    5000, &r);
		EXPECT(strstr(r.out, "quiet\n") != NULL, "%s%s", r.out, r.err);
		bool is_told = strstr(r.err, "had ended") != NULL || r.died;
		probe_exec(h, s, "print('keep' in globals())", 5000, &r);
		EXPECT(strcmp(r.out, is_told ? "False\n" : "True\n") == 0, "%d %s%s", is_told,
		    r.out, r.err);
		probe_exec(h, s, "import os\nos._exit(0)", 5000, &r);
	}
}

static void
memory_and_disk(struct probe_host *h, struct code_session *s)
{
	run(h, s, "a memory bomb is a MemoryError" /* K13 */,
	    "a = []\nwhile True: a.append(bytearray(1 << 26))", 20000);
	EXPECT(strstr(r.err, "MemoryError") != NULL || r.died, "%s", r.err);
	run(h, s, "memory is given back", "a = None", 5000);
	many_take(
	    h, s, "many processes cannot take more than one may", "bytearray(300 << 20)", "take");
	many_take(h, s, "nor as memory that they share", "mmap.mmap(-1, 300 << 20)", "take");
	many_take(h, s, "nor when their first threads have ended", "bytearray(300 << 20)", "hide");
	run(h, s, "pages that forks share are counted once",
	    "import os\nb = bytearray(300 << 20)\nfor k in range(0, len(b), 4096): b[k] = 1\n"
	    "pids = []\nfor i in range(6):\n    p = os.fork()\n    if p == 0: import time; "
	    "time.sleep(1); os._exit(0)\n"
	    "    pids.append(p)\nfor p in pids: os.waitpid(p, 0)\nb = None\nprint('ok')",
	    15000);
	EXPECT(strcmp(r.out, "ok\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "a full disk is ENOSPC" /* K4 */,
	    "n = 0\ntry:\n    for i in range(3):\n        with open('/tmp/big%d' % i, 'wb') as f:\n"
	    "            for k in range(100): f.write(bytes(1 << 20)); n += 1\n"
	    "except OSError as e: print(e.errno, 100 < n < 129)",
	    20000);
	EXPECT(strcmp(r.out, "28 True\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "and can be emptied",
	    "import os, glob\nfor f in glob.glob('/tmp/big*'): os.unlink(f)\nopen('t', "
	    "'w').write('x')",
	    5000);
	EXPECT(strcmp(r.out, "1\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "inodes are bounded",
	    "import os\nn = 0\nos.mkdir('/tmp/many')\ntry:\n    while True: open('/tmp/many/%d' % "
	    "n, 'w').close(); n += 1\n"
	    "except OSError as e: print(e.errno, n < 4096)\nimport shutil; "
	    "shutil.rmtree('/tmp/many')",
	    20000);
	EXPECT(strcmp(r.out, "28 True\n") == 0, "%s %s", r.out, r.err);
	run(h, s, "a giant file is EFBIG" /* K4: also by fallocate */,
	    "import os\nf = open('/tmp/giant', 'wb')\ntry: f.truncate(1 << 40)\nexcept OSError as "
	    "e: print(e.errno)\n"
	    "try: os.posix_fallocate(f.fileno(), 0, 10 << 30)\nexcept OSError as e: print(e.errno)",
	    5000);
	EXPECT(strcmp(r.out, "27\n27\n") == 0, "%s %s", r.out, r.err);
}

static void
floods(struct probe_host *h, struct code_session *s)
{
	run(h, s, "a flood is ended" /* K4 */,
	    "import os\nb = b'x' * (1 << 20)\nwhile True: os.write(1, b)", 60000);
	EXPECT(r.died && strstr(r.err, "too much output") != NULL, "%d %s", r.died, r.err);
	EXPECT(r.exec_ms < 50000, "%u", r.exec_ms);
	alive(h, s);
	run(h, s, "and one that the kernel copies",
	    "import os\nf = os.open('/dev/zero', 0)\ng = open('/tmp/f', 'wb+'); g.truncate(1 << "
	    "26)\n"
	    "while True: os.sendfile(1, g.fileno(), 0, 1 << 26)",
	    60000);
	EXPECT(r.died && strstr(r.err, "too much output") != NULL, "%d %s", r.died, r.err);
	probe_exec(h, s, "import os\nos.unlink('/tmp/f')", 5000, &r);
}

static void
output(struct probe_host *h, struct code_session *s)
{
	run(h, s, "much output is cut and counted" /* K7 */,
	    "import sys\nsys.stdout.write('x' * 5000000)\nsys.stderr.write('y' * 3000000)\nNone",
	    20000);
	EXPECT(r.out_len == 1 << 20 && r.out_total == 5000000 && r.err_total == 3000000,
	    "%zu %llu %llu", r.out_len, (unsigned long long)r.out_total,
	    (unsigned long long)r.err_total);
	EXPECT(r.return_code == 0, "%d", r.return_code);
	if (probe_is_thorough())
		floods(h, s);
	run(h, s, "output pipes that nobody may open work again",
	    "import os\nfor n in (1, 2):\n"
	    "    try: os.fchmod(n, 0)\n    except OSError: pass\n"
	    "    os.set_blocking(n, False)\nprint('x')",
	    5000);
	run(h, s, "in the next call", "import os\nos.set_blocking(1, True)\nprint('y' * 100000)",
	    5000);
	EXPECT(r.out_total == 100001, "%llu %s", (unsigned long long)r.out_total, r.err);
	run(h, s, "bytes that are no text come through",
	    "import os\nos.write(1, bytes(range(256)))\nos.write(2, b'\\xff\\xfe')\nNone", 5000);
	EXPECT(r.out_len == 256 && r.out_total == 256 && r.err_total == 2, "%zu", r.out_len);
	run(h, s, "output pipes that were made non-blocking work again",
	    "import os\nos.set_blocking(1, False)\nos._exit(0)", 5000);
	run(h, s, "after a fresh start", "print('z' * 200000)", 10000);
	EXPECT(r.out_total == 200001, "%llu %s", (unsigned long long)r.out_total, r.err);
}

void
probes_abuse(struct probe_host *h)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	processes(h, s);
	wakers(h, s);
	memory_and_disk(h, s);
	output(h, s);
	code_session_close(&s);
}
