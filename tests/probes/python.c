#include <string.h>

#include "tests/probes/probe.h"

static const struct {
	const char *name, *code, *out, *err; /* err: a part of it; NULL: must be empty */
	int return_code;
	bool died, timed_out;
	uint32_t timeout_ms;
} calls[] = {
    {"last expression is shown", "x = 20\nx + 1", "21\n", NULL, 0, false, false, 0},
    {"state persists", "x * 2", "40\n", NULL, 0, false, false, 0},
    {"none is not shown", "None", "", NULL, 0, false, false, 0},
    {"main block runs", "if __name__ == '__main__':\n    print('main')", "main\n", NULL, 0, false,
	false, 0},
    {"stdout and stderr are apart", "import sys\nprint('a')\nprint('b', file=sys.stderr)", "a\n",
	"b\n", 0, false, false, 0},
    {"a traceback shows the source line", "def f():\n    raise ValueError('boom')\nf()", "",
	"line 2, in f\n    raise ValueError('boom')", 1, false, false, 0},
    {"and of a function of an earlier call", "f()", "",
	"line 2, in f\n    raise ValueError('boom')", 1, false, false, 0},
    {"a semicolon keeps the last value back", "x;", "", NULL, 0, false, false, 0},
    {"the last value shown has a name", "x\n", "20\n", NULL, 0, false, false, 0},
    {"which is the usual one", "print(_ + 1)", "21\n", NULL, 0, false, false, 0},
    {"a syntax error is told", "x = (", "", "SyntaxError", 1, false, false, 0},
    {"exit code is kept", "import sys\nsys.exit(7)", "", NULL, 7, false, false, 0},
    {"exit with text", "import sys\nsys.exit('boo')", "", "boo", 1, false, false, 0},
    {"exit leaves the interpreter alive", "x", "20\n", NULL, 0, false, false, 0},
    {"a lone surrogate does not fail", "print('\\ud800')", "\\ud800\n", NULL, 0, false, false, 0},
    {"a subprocess writes to the same pipes",
	"import subprocess\nsubprocess.run(['sh', '-c', 'echo o; echo e >&2'])\nNone", "o\n", "e\n",
	0, false, false, 0},
    {"stdin is empty" /* K8 */, "input()", "", "EOFError", 1, false, false, 0},
    {"an endless loop is interrupted", "print('go')\nwhile True: pass", "go\n", "KeyboardInterrupt",
	124, false, true, 500},
    {"and the state is still there", "x", "20\n", NULL, 0, false, false, 0},
    {"one that ignores signals is killed",
	"import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
	"    except Exception: pass\nwhile True:\n    try:\n        while True: pass\n"
	"    except BaseException: pass",
	"", "variables are lost", 124, true, true, 500},
    {"a fresh interpreter serves the next call", "try: x\nexcept NameError: print('fresh')",
	"fresh\n", NULL, 0, false, false, 0},
    {"what was printed before a death comes",
	"import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)",
	"last words\n", "variables are lost", 137, true, false, 0},
    {"os._exit is a death", "import os\nos._exit(9)", "", "variables are lost", 9, true, false, 0},
    {"a crash is a death", "import ctypes\nctypes.string_at(0)", "", "variables are lost", 139,
	true, false, 0},
    {"closing the request socket is a death", "import os\nprint('x')\nos.close(3)", "x\n",
	"variables are lost", -1, true, false, 0},
    {"garbage on the request socket is a death",
	"import os, time\nos.write(3, b'A' * 64)\ntime.sleep(5)", "", "variables are lost", -1,
	true, false, 0},
    {"one reply too many ends no call but its own",
	"import os, struct\nn = os.write(3, struct.pack('<4sIiI', b'OtRp', 2, 0, 0) * 2)", "", NULL,
	0, false, false, 0},
    {"and costs the interpreter", "print('fresh')", "fresh\n", "had ended", 0, false, false, 0},
    {"a fork that comes back ends",
	"import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('p' if pid else 'c')",
	"c\np\n", NULL, 0, false, false, 0},
    {"threads and a pool work" /* K12 */,
	"from concurrent.futures import ThreadPoolExecutor\n"
	"import multiprocessing as mp\nm = mp.get_context('fork')\n"
	"with ThreadPoolExecutor(4) as p: print(sum(p.map(abs, range(10))))\n"
	"q = m.Queue()\np = m.Process(target=lambda: q.put(5)); p.start(); print(q.get()); "
	"p.join()",
	"45\n5\n", NULL, 0, false, false, 0},
    {"asyncio works",
	"import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', "
	"'hi')\n"
	"    await p.wait()\nasyncio.run(f())",
	"hi\n", NULL, 0, false, false, 0},
    {"shared memory works",
	"from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=16)\n"
	"m.buf[0] = 7\nprint(m.buf[0])\nm.close(); m.unlink()",
	"7\n", NULL, 0, false, false, 0},
    {"dev/stdout can be opened by name", "open('/dev/stdout', 'w').write('named\\n')\nNone",
	"named\n", NULL, 0, false, false, 0},
    {"a module of the workspace is found",
	"open('helper.py', 'w').write('v = 3')\nimport helper\nhelper.v", "3\n", NULL, 0, false,
	false, 0},
    {"recursion is an exception", "def f(): f()\nf()", "", "RecursionError", 1, false, false, 0},
    {"a sqlite database works",
	"import sqlite3\nc = sqlite3.connect('t.db')\nc.execute('create table t(a)')\n"
	"c.commit()\nprint('db')",
	"db\n", NULL, 0, false, false, 0},
};

void
probes_python(struct probe_host *h)
{
	static struct probe_result r;
	struct code_session *s = probe_open(h, NULL);
	for (size_t i = 0; s != NULL && i < sizeof(calls) / sizeof(calls[0]); i++) {
		probe_name(calls[i].name);
		probe_exec(h, s, calls[i].code, calls[i].timeout_ms, &r);
		EXPECT(!r.failed, "%s", r.why);
		EXPECT(strcmp(r.out, calls[i].out) == 0, "stdout is \"%s\"", r.out);
		if (calls[i].err == NULL)
			EXPECT(r.err[0] == '\0', "stderr is \"%s\"", r.err);
		else
			EXPECT(strstr(r.err, calls[i].err) != NULL, "stderr is \"%s\"", r.err);
		if (calls[i].return_code >= 0)
			EXPECT(r.return_code == calls[i].return_code, "%d", r.return_code);
		EXPECT(r.died == calls[i].died, "%d", r.died);
		EXPECT(r.timed_out == calls[i].timed_out, "%d", r.timed_out);
		if (r.failed)
			break;
	}
	probe_name("a session is given");
	EXPECT(s != NULL, "none");
	code_session_close(&s);
}
