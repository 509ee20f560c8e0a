/* exhaust.c - takes what it can get of one thing and holds it; others must not feel it
 *
 * Each piece takes until it is refused, says so by the name of its process, and stays. Meanwhile a
 * session is opened, gets a file and computes.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/probes/probe.h"

static struct probe_result held, r;

static const char prelude[] =
    "import array, ctypes, fcntl, os, resource, signal, socket, sys, threading, time\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def until_refused(f, most):\n"
    "    kept = []\n"
    "    try:\n"
    "        while len(kept) < most: kept.append(f())\n"
    "    except (OSError, RuntimeError, MemoryError): return kept\n"
    "    raise SystemExit('no limit at %d' % len(kept))\n"
    "def holding():\n"
    "    libc.prctl(15, b'probe-holds')\n"
    "    time.sleep(100)\n"
    "def in_children(n, f):\n"
    "    pids = []\n"
    "    for i in range(n):\n"
    "        p, q = os.pipe()\n"
    "        pid = os.fork()\n"
    "        if pid == 0:\n"
    "            kept = f(); os.write(q, b'x'); time.sleep(100)\n"
    "        os.close(q)\n"
    "        if os.read(p, 1) != b'x': raise SystemExit('a child ended')\n"
    "        os.close(p)\n";

/* What the kernel counts by user, who may be one for all sessions: `of the user`. */
static const struct {
	const char *name, *code;
} takes[] = {
    {"of the user: timers",
	"class E(ctypes.Structure): _fields_ = [('v', ctypes.c_long), ('s', ctypes.c_int), "
	"('n', ctypes.c_int), ('p', ctypes.c_char * 48)]\n"
	"signal.signal(40, signal.SIG_IGN)\n"
	"def timer():\n"
	"    t = ctypes.c_int()\n"
	"    if libc.syscall(222, 1, ctypes.byref(E(0, 40, 0)), ctypes.byref(t)): raise OSError\n"
	"    libc.syscall(223, t, 0, (ctypes.c_long * 4)(0, 1000, 0, 1000), None)\n"
	"    return t\n"
	"until_refused(timer, 20000)"},
    {"of the user: queued signals", "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
				    "i = ctypes.create_string_buffer(128)\ni[0] = 40\n"
				    "ctypes.c_int.from_buffer(i, 8).value = -1\n"
				    "def one():\n"
				    "    if libc.syscall(129, os.getpid(), 40, i): raise OSError\n"
				    "until_refused(one, 20000)"},
    {"event descriptors", "in_children(20, lambda: until_refused(lambda: os.eventfd(0), 100000))"},
    {"of the user: epolls of epolls",
	"import select\ndef f():\n    e = select.epoll(); e.register(last[0]); "
	"last[0] = e; return e\n"
	"last = [select.epoll()]\n"
	"in_children(20, lambda: until_refused(lambda: select.epoll(), 100000))\n"
	"until_refused(f, 100000)"},
    {"of the user: pipes with all that goes in",
	"def f():\n    p = os.pipe()\n    try: fcntl.fcntl(p[0], 1031, 1 << 20)\n"
	"    except OSError: pass\n"
	"    os.set_blocking(p[1], False)\n    try:\n"
	"        while True: os.write(p[1], bytes(65536))\n    except BlockingIOError: pass\n"
	"    return p\nin_children(3, lambda: until_refused(f, 100000))"},
    {"of the user: sockets with all that goes in",
	"def f():\n    p = socket.socketpair(); p[0].setblocking(False)\n    try:\n"
	"        while True: p[0].send(bytes(65536))\n    except BlockingIOError: pass\n"
	"    return p\nin_children(4, lambda: until_refused(f, 100000))"},
    {"of the user: descriptors in flight",
	"a, b = socket.socketpair(); a.setblocking(False)\n"
	"f = array.array('i', [os.open('/dev/null', 0) for i in range(100)])\n"
	"until_refused(lambda: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, f)]), "
	"100000)"},
    {"sockets in sockets",
	"def f():\n    a, b = socket.socketpair()\n"
	"    b.sendmsg([b'x'], [(1, 1, array.array('i', [a.fileno(), b.fileno()]))])\n"
	"until_refused(f, 100000)"},
    {"threads", "until_refused(lambda: threading.Thread(target=time.sleep, args=(99,), "
		"daemon=True).start(), 100000)"},
    {"dead children", "until_refused(lambda: os.fork() or os._exit(0), 100000)"},
    {"ranges of locks", "f = open('l', 'w')\nfor i in range(20000): fcntl.lockf(f, fcntl.LOCK_EX, "
			"1, i * 2)"},
    {"pieces of memory", "import mmap\nk = []\ntry:\n    for i in range(100000):\n"
			 "        k.append(mmap.mmap(-1, 4096, prot=1 + i % 2 * 2))\n"
			 "except OSError: pass"},
    {"a long command", "try: os.spawnv(os.P_WAIT, '/bin/true', ['x' * 130000] * 20000)\n"
		       "except OSError: pass"},
    {"folders in folders", "def f(): os.mkdir('d'); os.chdir('d')\nuntil_refused(f, 100000)"},
    {"names of one file", "open('o', 'w').close()\nn = iter(range(10**6))\n"
			  "until_refused(lambda: os.link('o', 'o%d' % next(n)), 100000)"},
    {"long names", "n = iter(range(10**6))\n"
		   "until_refused(lambda: open('%0250d' % next(n), 'x').close(), 100000)"},
    {"processor time", "def f():\n    if os.fork() == 0:\n        while True: pass\n"
		       "for i in range(20): f()"},
    {"wake-ups", "p = [os.pipe() for i in range(20)]\n"
		 "for i in range(20):\n    if os.fork() == 0:\n        while True:\n"
		 "            os.write(p[i][1], b'x'); os.read(p[(i + 1) % 20][0], 1)"},
    {"flushes",
	"for i in range(10):\n    if os.fork() == 0:\n        f = open('/tmp/%d' % i, 'wb')\n"
	"        while True: f.seek(0); f.write(bytes(4096)); f.flush(); os.fsync(f.fileno())"},
};

static void
hold(struct probe_host *h, const char *name, const char *code)
{
	static char text[8192], title[96];
	struct probe_run run;
	struct code_session *a = probe_open(h, NULL), *ready[2] = {NULL}, *b = NULL;
	(void)snprintf(title, sizeof(title), "one that takes all: %s", name);
	probe_name(title);
	if (!EXPECT(a != NULL, "no session"))
		return;
	(void)snprintf(text, sizeof(text), "%s%s\nholding()", prelude, code);
	probe_begin(a, CODE_PYTHON, str_c(text), 40000, &run, &held);
	for (int i = 0; i < 600 && !run.is_done && probe_count("comm", "probe-holds") == 0; i++)
		probe_turn(h, 50);
	EXPECT(!run.is_done, "ended: %d %s%s", held.return_code, held.out, held.err);
	int64_t start = clock_mono_ms();
	/* What may hinder the start of another is tried on one that was not ready: two are. */
	for (size_t i = 0; i < 2 && str_starts(str_c(name), STR("of the user")); i++)
		ready[i] = probe_open(h, NULL);
	b = probe_open(h, NULL);
	if (EXPECT(b != NULL, "no session beside it")) {
		struct err e = probe_put(h, b, "data", "12", 2);
		EXPECT(e.code == ERR_OK, "%s", e.msg);
		probe_exec(h, b, "print(int(open('data').read()) * 7 // 2)", 20000, &r);
		EXPECT(!r.failed && strcmp(r.out, "42\n") == 0, "%s %s %s", r.why, r.out, r.err);
	}
	(void)printf("measured  a session beside %-28s %5lld ms\n", name,
	    (long long)(clock_mono_ms() - start));
	code_session_close(&b);
	for (size_t i = 0; i < 2; i++)
		code_session_close(&ready[i]);
	code_session_close(&a);
	for (int i = 0; i < 200 && probe_count("comm", "probe-holds") > 0; i++)
		probe_turn(h, 50);
	EXPECT(probe_count("comm", "probe-holds") == 0, "something of it goes on");
}

void
probes_exhaust(struct probe_host *h)
{
	for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
		hold(h, takes[i].name, takes[i].code);
}
