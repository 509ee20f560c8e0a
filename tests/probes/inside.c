/* inside.c - what the host sees of a session's processes, and code that hides from it or from init
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"
#include "tests/probes/probe.h"

static struct probe_result r, held;

static bool
says(pid_t pid, const char *file, const char *text)
{
	char path[64], got[8192];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	probe_read_text(path, got, sizeof(got));
	return strstr(got, text) != NULL;
}

/* Nothing but input, output and errors; an interpreter has its request socket, and for a moment
 * what the start of a child takes. The first that is too much as text; "": none. */
static void
find_descriptor(pid_t pid, size_t most, char *ret, size_t room)
{
	static const char *const want[] = {"/dev/null", "pipe:", "pipe:", "socket:"};
	char path[320], target[128];
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	(void)snprintf(ret, room, "%s", d == NULL ? "not to be seen" : "");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		uint64_t n;
		if (!str_u64(str_c(e->d_name), &n))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		ssize_t len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		if (n >= most || strncmp(target, want[n], strlen(want[n])) != 0)
			(void)snprintf(ret, room, "%s: %s", e->d_name, target);
	}
	if (d != NULL)
		closedir(d);
}

static void
look_at_descriptors(struct probe_host *h, pid_t pid, bool is_interpreter)
{
	char extra[400] = "?";
	for (int i = 0; i < 50 && extra[0] != '\0'; i++) {
		find_descriptor(pid, is_interpreter ? 4 : 3, extra, sizeof(extra));
		probe_turn(h, extra[0] != '\0' ? 20 : 0);
	}
	EXPECT(extra[0] == '\0', "%s", extra);
}

static void
look_at(struct probe_host *h, const char *name, const char *marker, bool is_interpreter)
{
	pid_t pid = 0;
	probe_name(name);
	for (int i = 0; i < 300 && pid == 0; i++) {
		probe_turn(h, 20);
		pid = probe_pid(marker);
	}
	if (is_interpreter && pid != 0) /* the marked one is its child */
		pid = probe_parent(pid);
	if (!EXPECT(pid > 0, "it does not run"))
		return;
	look_at_descriptors(h, pid, is_interpreter);
	static const char *const rights[] = {"\nCapInh:\t0000000000000000\n",
	    "\nCapPrm:\t0000000000000000\n", "\nCapEff:\t0000000000000000\n",
	    "\nCapBnd:\t0000000000000000\n", "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n"};
	for (size_t i = 0; i < ARRAY_LEN(rights); i++)
		EXPECT(says(pid, "status", rights[i]), "not%s", rights[i]);
	EXPECT((probe_mode.without & JAIL_WITHOUT_SECCOMP) != 0 ||
		   says(pid, "status", "\nSeccomp:\t2\n"),
	    "no filter");
	EXPECT(!says(pid, "status", "\nUid:\t0\t"), "root of the host");
	EXPECT(says(pid, "oom_score_adj", "1000\n"), "not the first to go");
	EXPECT(says(pid, "limits", "Max core file size        1                    1  "), "a core");
	EXPECT(!says(pid, "environ", "hunter2"), "the spawner's environment");
	if (h->report.layer[SB_MEMORY_CGROUP].state == SB_ACTIVE)
		EXPECT(says(pid, "cgroup", "/slot"), "in no cgroup of a session");
}

static void
from_outside(struct probe_host *h)
{
	static const char sleep_in_python[] =
	    "import subprocess\nsubprocess.run(['sleep', '4716.2'])";
	struct probe_run run;
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	probe_begin(s, CODE_BASH, STR("exec sleep 4716.1"), 60000, &run, &held);
	look_at(h, "a shell has no descriptor, right or secret of the host", "4716.1", false);
	(void)probe_signal("4716.1");
	probe_wait(h, &run);
	for (int i = 0; i < 2; i++) {
		probe_begin(s, CODE_PYTHON, str_c(sleep_in_python), 60000, &run, &held);
		look_at(h,
		    i == 0 ? "nor has what an interpreter starts" : "nor what a second one does",
		    "4716.2", false);
		look_at(h, i == 0 ? "nor the interpreter" : "nor the second one", "4716.2", true);
		(void)probe_signal("4716.2");
		probe_wait(h, &run);
		probe_exec(h, s, "import os\nos._exit(1)", 5000, &r);
	}
	probe_run(h, s, CODE_BASH, STR("mkfifo 4716.docx"), 5000, &r);
	probe_begin_convert(s, CODE_EXTRACT_DOCX, "4716.docx", 8000, &run, &held);
	look_at(h, "nor what reads a document", "4716.docx", false);
	(void)probe_signal("4716.docx");
	probe_wait(h, &run);
	code_session_close(&s);
}

static void
quiet(struct probe_host *h, struct code_session *s, const char *name, const char *code)
{
	probe_name(name);
	probe_exec(
	    h, s, "import os\nif os.path.exists('/tmp/beat'): os.unlink('/tmp/beat')", 5000, &r);
	probe_exec(h, s, code, 8000, &r);
	EXPECT(!r.failed, "%s", r.why);
	probe_exec(h, s,
	    "import os, time\ndef n(): return os.path.getsize('/tmp/beat')\na = "
	    "n()\ntime.sleep(0.2)\n"
	    "print(a > 0, n() - a, len([p for p in os.listdir('/proc') if p.isdigit()]))",
	    5000, &r);
	EXPECT(strcmp(r.out, "True 0 2\n") == 0, "%s%s%s", r.why, r.out, r.err);
}

/* From kill.c, which finds processes by /proc and tells the living by a pidfd. */
static void
hide(struct probe_host *h, struct code_session *s)
{
	static const char *const rows[][2] = {
	    {"one whose first thread has ended dies too",
		"import ctypes, os, threading, time\nlibc = ctypes.CDLL(None)\n"
		"def beat():\n    while True: open('/tmp/beat', 'a').write('x'); "
		"time.sleep(0.001)\n"
		"if os.fork() == 0:\n    threading.Thread(target=beat).start(); libc.syscall(60, "
		"0)\n"
		"while not os.path.exists('/tmp/beat'): time.sleep(0.01)"},
	    {"one that is always another dies too",
		"import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True:\n"
		"        if os.fork(): os._exit(0)\n        open('/tmp/beat', 'a').write('x')\n"
		"while not os.path.exists('/tmp/beat'): time.sleep(0.01)"},
	    {"one that is always another program dies too",
		"import os, subprocess, time\n"
		"open('e', 'w').write('echo -n x >> /tmp/beat; exec bash e')\n"
		"subprocess.Popen(['bash', 'e'])\n"
		"while not os.path.exists('/tmp/beat'): time.sleep(0.01)"},
	    {"what is started by an end dies too",
		"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''import atexit, "
		"os\n"
		"def f():\n    if os.fork() == 0:\n        os.setsid()\n"
		"        while True: open('/tmp/beat', 'a').write('x')\natexit.register(f)'''])\n"
		"import os, time\nwhile not os.path.exists('/tmp/beat'): time.sleep(0.01)"},
	    {"one that follows the death of another dies too",
		"import ctypes, os, signal, time\nlibc = ctypes.CDLL(None)\n"
		"p = os.fork()\nif p == 0:\n    if os.fork() == 0:\n"
		"        libc.prctl(1, signal.SIGCONT); signal.signal(signal.SIGCONT, lambda *a: "
		"os.fork())\n"
		"        while True: open('/tmp/beat', 'a').write('x'); time.sleep(0.001)\n"
		"    time.sleep(60)\n"
		"while not os.path.exists('/tmp/beat'): time.sleep(0.01)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		quiet(h, s, rows[i][0], rows[i][1]);
}

/* The watch tells init by a signal that the kernel sent for nobody in here. */
static void
forge(struct probe_host *h, struct code_session *s)
{
	static const char *const calls[] = {"129, 1, 10, i", "297, 1, 1, 10, i",
	    "424, libc.syscall(434, 1, 0), 10, i, 0", "62, 1, 10", "234, 1, 1, 10"};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		char code[512];
		probe_name("the note of the memory limit cannot be forged");
		(void)snprintf(code, sizeof(code),
		    "import ctypes, struct\nlibc = ctypes.CDLL(None)\n"
		    "i = ctypes.create_string_buffer(struct.pack('6i', 10, 0, -1, 0, 0, 0) + "
		    "bytes(104))\n"
		    "print(libc.syscall(%s) in (0, -1))",
		    calls[i]);
		probe_exec(h, s, code, 5000, &r);
		EXPECT(strcmp(r.out, "True\n") == 0 && strstr(r.err, "memory") == NULL, "%s: %s%s",
		    calls[i], r.out, r.err);
	}
}

static void
spoil(struct probe_host *h, struct code_session *s)
{
	static const char *const ways[] = {"os.chmod('/work', 0)",
	    "os.chmod('/work', 0); os.chmod('/tmp', 0); os.chmod('/dev/shm', 0)",
	    "shutil.rmtree('/work/outputs'); os.symlink('/usr', '/work/outputs')",
	    "shutil.rmtree('/work/outputs'); os.mkfifo('/work/outputs')",
	    "shutil.rmtree('/work/outputs'); open('/work/outputs', 'w')",
	    "os.umask(0o777); sys.path[:] = []; os.environ.clear(); os.chdir('/proc/self/fd')"};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		char code[256];
		probe_name(
		    "a workspace that was spoiled ends nothing, and works when it is mended");
		(void)snprintf(code, sizeof(code), "import os, shutil, sys\n%s", ways[i]);
		probe_exec(h, s, code, 5000, &r);
		EXPECT(!r.failed, "%s", r.why);
		probe_run(h, s, CODE_BASH, STR("echo here"), 5000, &r);
		EXPECT(!r.failed && strcmp(r.out, "here\n") == 0, "%s: %s%s%s", ways[i], r.why,
		    r.out, r.err);
		probe_run(h, s, CODE_BASH,
		    STR("chmod 755 /work; chmod 1777 /tmp /dev/shm; cd /work; rm -rf outputs; "
			"mkdir outputs; "
			"echo f > outputs/f; chmod 644 outputs/f"),
		    5000, &r);
		/* Nobody could see what was there before, so that may come as well. */
		bool is_there = false;
		for (size_t k = 0; k < r.file_count; k++)
			is_there |=
			    strcmp(r.files[k].path, "outputs/f") == 0 && r.files[k].is_whole;
		EXPECT(is_there, "%s: %zu %s%s", ways[i], r.file_count, r.out, r.err);
		probe_exec(h, s, "import os\nos._exit(0)", 5000, &r);
		probe_exec(h, s, "print(6 * 7)", 20000, &r);
		EXPECT(strcmp(r.out, "42\n") == 0, "%s: %s%s%s", ways[i], r.why, r.out, r.err);
	}
}

void
probes_inside(struct probe_host *h)
{
	from_outside(h);
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	hide(h, s);
	forge(h, s);
	spoil(h, s);
	code_session_close(&s);
}
