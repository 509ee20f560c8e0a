/* pair.c - two sessions at once: what one of them sees or reaches of the other */
#include <stdio.h>
#include <string.h>

#include "sandbox/jail/jail.h"
#include "tests/probes/probe.h"

static struct probe_result held, r;

/* What can be left lying about, then a while to be found in. */
static const char victim[] =
    "import os, socket, subprocess, sys, time, fcntl\n"
    "from multiprocessing import shared_memory\n"
    "for d in ('/work', '/tmp', '/dev/shm'): open(d + '/mark-of-a', 'w').write('hunter3')\n"
    "m = shared_memory.SharedMemory(create=True, size=4096, name='mark-of-a-too')\n"
    "f = open('/work/lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n"
    "os.environ['MARK'] = 'hunter3'\n"
    "os.mkfifo('/tmp/pipe')\n"
    "try: meet = socket.socket(socket.AF_UNIX); meet.bind('\\0mark-of-a'); meet.listen()\n"
    "except OSError: pass\n"
    "child = subprocess.Popen(['sleep', '4242.7'], env={'MARK': 'hunter3'})\n"
    "time.sleep(4)\n"
    "print(child.poll(), open('/tmp/mark-of-a').read(), os.stat('/work').st_dev)\n"
    "child.kill(); m.close(); m.unlink()";

static const char neighbour[] =
    "import os, signal, struct, sys, ctypes\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def got(*a): print('REACHED', *a)\n"
    "for root, dirs, files in os.walk('/'):\n"
    "    if root.startswith(('/usr', '/proc')): dirs[:] = []\n"
    "    for n in files + dirs:\n"
    "        if n in ('mark-of-a', 'mark-of-a-too', 'lock', 'pipe'): got(root, n)\n"
    "pids = {int(p) for p in os.listdir('/proc') if p.isdigit()}\n"
    "if pids - {1, os.getpid()}: got('processes', pids)\n"
    "for pid in range(2, 40000):\n"
    "    if pid == os.getpid(): continue\n"
    "    try: os.kill(pid, signal.SIGKILL)\n"
    "    except ProcessLookupError: continue\n"
    "    except OSError as e: got(pid, e); continue\n"
    "    got('killed', pid)\n"
    "for pid in range(2, 40000, 7):\n"
    "    if pid != os.getpid() and libc.syscall(434, pid, 0) >= 0: got('pidfd', pid)\n"
    "for pid in range(2, 3000):\n"
    "    for f in ('environ', 'fd', 'cwd', 'root'):\n"
    "        if pid != os.getpid() and os.path.lexists('/proc/%d/%s' % (pid, f)): got(pid, f)\n"
    "for nr, a in ((29, (0x6d61726b, 0, 0)), (68, (0x6d61726b, 0)), (64, (0x6d61726b, 0, 0))):\n"
    "    if FILTER and libc.syscall(nr, *a) >= 0: got('ipc', nr)\n"
    "for l in open('/proc/self/mountinfo'):\n"
    "    if 'upper' in l or 'mark' in l: got(l)\n"
    "if APART:\n"
    "    import socket\n"
    "    try: socket.socket(socket.AF_UNIX).connect('\\0mark-of-a'); got('socket')\n"
    "    except OSError: pass\n"
    "print(os.stat('/work').st_dev)";

static void
see(struct probe_host *h, struct code_session *a, struct code_session *b)
{
	struct probe_run run;
	static char code[8192];
	char word[16] = "";
	unsigned long device_a = 0, device_b = 0;
	probe_name("one session sees and reaches nothing of another");
	probe_begin(a, CODE_PYTHON, str_c(victim), 20000, &run, &held);
	for (int i = 0; i < 200 && !run.is_done && probe_count("cmdline", "4242.7") == 0; i++)
		probe_turn(h, 20);
	/* Abstract sockets: kept apart by the filter, or by Landlock of Linux 6.12. */
	(void)snprintf(code, sizeof(code), "FILTER = %d\nAPART = %d\n%s",
	    (probe_mode.without & JAIL_WITHOUT_SECCOMP) == 0,
	    (probe_mode.without & JAIL_WITHOUT_SECCOMP) == 0 ||
		((probe_mode.without & JAIL_WITHOUT_LANDLOCK) == 0 && jail_landlock_scopes()),
	    neighbour);
	probe_exec(h, b, code, 20000, &r);
	EXPECT(!r.failed && r.return_code == 0, "%s %s", r.why, r.err);
	EXPECT(!run.is_done, "it was over too early: %s", held.err);
	EXPECT(sscanf(r.out, "%lu", &device_b) == 1, "%s", r.out);
	probe_wait(h, &run);
	EXPECT(
	    sscanf(held.out, "%15s hunter3 %lu", word, &device_a) == 2 && strcmp(word, "None") == 0,
	    "%s %s", held.out, held.err);
	EXPECT(device_a != device_b, "one device for both: %lu", device_a);
}

/* The interpreter's socket leads to otari-init, which must take no descriptor from it. */
static void
feed(struct probe_host *h, struct code_session *s)
{
	probe_name("descriptors that are sent to init are not kept");
	for (int i = 0; i < 6; i++) {
		probe_exec(h, s,
		    "import array, os, socket\ns = socket.socket(fileno=3)\n"
		    "f = array.array('i', [os.open('/dev/null', 0) for i in range(100)])\n"
		    "for i in range(40):\n"
		    "    s.sendmsg([b'\\xff' * 16], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, f)])\n"
		    "import time; time.sleep(5)",
		    8000, &r);
		if (!EXPECT(!r.failed && r.died, "%s %s", r.why, r.err))
			return;
	}
	probe_exec(h, s, "open('after', 'w').write('x')\nprint(6 * 7)", 8000, &r);
	EXPECT(!r.failed && strstr(r.out, "42") != NULL && r.file_count == 1, "%s %s %s", r.why,
	    r.out, r.err);
}

void
probes_pair(struct probe_host *h)
{
	struct code_session *a = probe_open(h, NULL), *b = probe_open(h, NULL);
	if (EXPECT(a != NULL && b != NULL, "no sessions")) {
		see(h, a, b);
		feed(h, a);
	}
	code_session_close(&a);
	code_session_close(&b);
}
