/* files.c - seeds in, produced files out, and what must not come out */
#include <string.h>

#include "base/digest.h"
#include "base/mem.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static void
run(struct probe_host *h, struct code_session *s, const char *name, const char *code)
{
	probe_name(name);
	probe_exec(h, s, code, 20000, &r);
	EXPECT(!r.failed, "%s", r.why);
	EXPECT(r.return_code == 0, "%d %s", r.return_code, r.err);
}

static const struct probe_file *
find(const char *path)
{
	for (size_t i = 0; i < r.file_count; i++)
		if (strcmp(r.files[i].path, path) == 0)
			return &r.files[i];
	return NULL;
}

static bool
has(const char *path, uint64_t size)
{
	const struct probe_file *f = find(path);
	return f != NULL && f->size == size && f->got == size && f->is_whole;
}

static void
seeds(struct probe_host *h, struct code_session *s)
{
	probe_name("seeds arrive and are no outputs");
	struct err e = probe_put(h, s, "data.csv", "a,b\n1,2\n", 8);
	EXPECT(e.code == ERR_OK, "%s", e.msg);
	e = probe_put(h, s, "deep/er/x.bin", "\0\xff", 2);
	EXPECT(e.code == ERR_OK, "%s", e.msg);
	probe_exec(h, s,
	    "print(open('data.csv').read() + open('/mnt/data/data.csv').read(), end='')\n"
	    "open('deep/er/x.bin', 'rb').read()",
	    0, &r);
	EXPECT(strcmp(r.out, "a,b\n1,2\na,b\n1,2\nb'\\x00\\xff'\n") == 0, "%s %s", r.out, r.err);
	EXPECT(r.file_count == 0, "%s", r.files[0].path);
	probe_name("hostile seed names are refused");
	static const char *const bad[] = {"", "/etc/x", "../x", "a/../b", ".", "..", "a//b", "a/"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e = probe_put(h, s, bad[i], "x", 1);
		EXPECT(e.code == ERR_INPUT, "%s: %d", bad[i], (int)e.code);
	}
	probe_name("a seed does not follow planted links" /* K3 */);
	probe_exec(h, s, "import os\nos.symlink('/tmp', 'out')\nos.symlink('/tmp/t', 'ln')", 0, &r);
	e = probe_put(h, s, "out/x", "x", 1);
	EXPECT(e.code == ERR_INTERNAL, "%d %s", (int)e.code, e.msg);
	e = probe_put(h, s, "ln", "xyz", 3);
	EXPECT(e.code == ERR_OK, "%s", e.msg);
	probe_exec(
	    h, s, "print(os.listdir('/tmp'), open('ln').read(), os.path.islink('ln'))", 0, &r);
	EXPECT(strcmp(r.out, "[] xyz False\n") == 0, "%s %s", r.out, r.err);
	probe_name("a seed waits for no reader, and no folder is in its way for long");
	probe_exec(
	    h, s, "os.mkfifo('fifo')\nos.mkdir('folder')\nopen('folder/x', 'w').close()", 0, &r);
	e = probe_put(h, s, "fifo", "abc", 3);
	EXPECT(e.code == ERR_OK, "%d %s", (int)e.code, e.msg);
	e = probe_put(h, s, "folder", "abc", 3);
	EXPECT(e.code != ERR_OK, "a file in place of a folder");
	e = probe_put(h, s, "fifo/x", "abc", 3);
	EXPECT(e.code != ERR_OK, "a file below a file");
	probe_exec(h, s, "print(open('fifo').read(), os.listdir('folder'))", 5000, &r);
	EXPECT(strcmp(r.out, "abc ['x']\n") == 0, "%s %s", r.out, r.err);
	probe_name("a seed larger than the workspace is told");
	size_t n = 140u << 20;
	char *big = mem_alloc(n);
	e = probe_put(h, s, "big", big, n);
	mem_free(big);
	EXPECT(e.code == ERR_TOOLARGE, "%d %s", (int)e.code, e.msg);
	probe_exec(h, s, "os.unlink('big')\nos.unlink('out')", 0, &r);
	EXPECT(r.return_code == 0, "%s", r.err);
}

static void
outputs(struct probe_host *h, struct code_session *s)
{
	run(h, s, "what a call makes comes out, byte for byte",
	    "b = bytes(range(256)) * 1000\nopen('a.bin', 'wb').write(b)\n"
	    "import os\nopen(os.environ['OUTPUT_DIR'] + '/c.txt', 'w').write('c')\nNone");
	EXPECT(r.file_count == 2 && has("a.bin", 256000) && has("outputs/c.txt", 1), "%zu",
	    r.file_count);
	run(h, s, "nothing comes twice", "1");
	EXPECT(r.file_count == 0, "%s", r.files[0].path);
	run(h, s, "a change is seen, also with a faked time",
	    "st = os.stat('a.bin')\nf = open('a.bin', 'r+b'); f.write(b'X'); f.close()\n"
	    "os.utime('a.bin', ns=(st.st_atime_ns, st.st_mtime_ns))");
	EXPECT(r.file_count == 1 && has("a.bin", 256000), "%zu", r.file_count);
	run(h, s, "a seed that is rewritten is an output",
	    "open('data.csv', 'a').write('3,4\\n')\nNone");
	EXPECT(has("data.csv", 12), "%zu", r.file_count);
	run(h, s, "an empty file comes", "open('empty', 'w').close()");
	EXPECT(has("empty", 0), "%zu", r.file_count);
	run(h, s, "files are sorted, 20 come, 30 are named",
	    "for i in range(50): open('f%02d' % i, 'w').write('x' * i)");
	EXPECT(r.file_count == 20 && r.omitted_total == 30 && r.omitted_count == 30, "%zu %u",
	    r.file_count, r.omitted_total);
	EXPECT(strcmp(r.files[0].path, "f00") == 0 && strcmp(r.files[19].path, "f19") == 0 &&
		   r.omitted_reason == CODE_OMIT_COUNT,
	    "%s", r.files[0].path);
	run(h, s, "64 MiB come, more is named, smaller ones after it still come",
	    "for i in range(3): open('g%d' % i, 'wb').write(bytes(30 << 20))\nopen('h', "
	    "'w').write('h')\nNone");
	EXPECT(r.file_count == 3 && has("g0", 30u << 20) && has("g1", 30u << 20) && has("h", 1) &&
		   r.omitted_total == 1 && r.omitted_reason == CODE_OMIT_BYTES,
	    "%zu %u", r.file_count, r.omitted_total);
	run(h, s, "a sparse giant is named, not sent" /* K5 */,
	    "for i in range(3): os.unlink('g%d' % i)\nf = open('sparse', 'wb'); f.truncate(100 << "
	    "20); f.close()");
	EXPECT(r.file_count == 0 && r.omitted_total == 1, "%zu %u", r.file_count, r.omitted_total);
}

static void
hostile(struct probe_host *h, struct code_session *s)
{
	run(h, s, "links, pipes and closed files do not come" /* K1 */,
	    "os.unlink('sparse')\nfor i, t in enumerate(['/etc/passwd', '/proc/1/environ', "
	    "'/proc/self/mem', '..', '/dev/zero', 'a.bin']):\n"
	    "    os.symlink(t, 'link%d' % i)\n"
	    "os.mkfifo('pipe')\nos.mkdir('locked'); open('locked/x', 'w').write('x'); "
	    "os.chmod('locked', 0)\n"
	    "open('mode0', 'w').write('x'); os.chmod('mode0', 0)");
	EXPECT(
	    r.file_count == 0 && r.omitted_total == 1 && r.omitted_reason == CODE_OMIT_UNREADABLE,
	    "%zu %u", r.file_count, r.omitted_total);
	run(h, s, "names are bytes",
	    "os.mkdir('odd'); os.chdir('odd')\n"
	    "for n in (b'new\\nline', b'\\xff\\xfe', b'-rf', b'.hidden', b'a b', b'x' * 255, "
	    "b'\"q\\'', b'%00', b'\\\\'):\n"
	    "    open(n, 'wb').write(b'1')\nos.chdir('/work')");
	EXPECT(r.file_count == 9 && has("odd/new\nline", 1) && has("odd/\xff\xfe", 1) &&
		   has("odd/-rf", 1) && has("odd/.hidden", 1),
	    "%zu", r.file_count);
	run(h, s, "deep folders end somewhere",
	    "import shutil; shutil.rmtree('odd')\nfor i in range(300): os.mkdir('d'); "
	    "os.chdir('d'); open('x', 'w').write('x')\n"
	    "os.chdir('/work')");
	EXPECT(r.file_count == 15 && r.omitted_total == 0, "%zu %u", r.file_count, r.omitted_total);
	run(h, s, "a hard link is one more file",
	    "import subprocess; subprocess.run(['rm', '-rf', 'd'])\nopen('one', 'w').write('1'); "
	    "os.link('one', 'two')");
	EXPECT(r.file_count == 2, "%zu", r.file_count);
	run(h, s, "a writer that goes on is stopped while files are read",
	    "if os.fork() == 0:\n    while True:\n        with open('moving', 'w') as f: "
	    "f.write('m' * 100000)\n"
	    "import time; time.sleep(0.1)");
	EXPECT(
	    r.file_count <= 1 && (r.file_count == 0 || r.files[0].is_whole), "%zu", r.file_count);
	run(h, s, "a thread that goes on is stopped while files are read",
	    "import threading\ndef w():\n    while True:\n        with open('moving2', 'w') as f: "
	    "f.write('m' * 100000)\n"
	    "threading.Thread(target=w, daemon=True).start(); time.sleep(0.1)");
	EXPECT(
	    r.file_count <= 1 && (r.file_count == 0 || r.files[0].is_whole), "%zu", r.file_count);
	probe_name("names that change what they are while files are read");
	probe_exec(h, s,
	    "import random\ndef churn(k):\n    random.seed(k)\n    while True:\n"
	    "        n = 'swap%d' % random.randrange(4)\n        try:\n"
	    "            random.choice([lambda: os.rename(n, 'swap0'), lambda: os.unlink(n),\n"
	    "                lambda: os.symlink('/etc/passwd', n), lambda: os.mkfifo(n), lambda: "
	    "os.mkdir(n),\n"
	    "                lambda: os.rmdir(n), lambda: os.link('one', n), lambda: "
	    "os.rename('swap0', n),\n"
	    "                lambda: open(n, 'w').write('s' * 1000), lambda: os.symlink('/usr', "
	    "n),\n"
	    "                lambda: os.link(n, 'swap0')])()\n"
	    "        except OSError: pass\n"
	    "import threading\nfor k in range(4):\n    threading.Thread(target=churn, args=(k,), "
	    "daemon=True).start()\n"
	    "None",
	    5000, &r);
	EXPECT(!r.failed && r.return_code == 0, "%s %s", r.why, r.err);
	for (int i = 0; i < 30; i++) {
		probe_exec(h, s,
		    "for k in range(10, 14):\n    if os.fork() == 0: churn(k)\n"
		    "import time; time.sleep(0.01)",
		    5000, &r);
		if (!EXPECT(!r.failed && r.return_code == 0, "%s %s", r.why, r.err))
			return;
		for (size_t k = 0; k < r.file_count; k++)
			EXPECT(strncmp(r.files[k].path, "swap", 4) != 0 ||
				   (r.files[k].is_whole &&
				       (r.files[k].size <= 1 || r.files[k].size == 1000)),
			    "%s %llu", r.files[k].path, (unsigned long long)r.files[k].size);
	}
	probe_name("files of a call that dies still come");
	probe_exec(h, s, "open('last', 'w').write('l')\nimport os\nos._exit(3)", 5000, &r);
	EXPECT(r.died && has("last", 1), "%d %zu", r.died, r.file_count);
	run(h, s, "thousands of files", "for i in range(3000): open('n%04d' % i, 'w').write('n')");
	EXPECT(r.file_count == 20 && r.omitted_total == 2980 && r.omitted_count == 256,
	    "%zu %u %zu", r.file_count, r.omitted_total, r.omitted_count);
}

/* As much of matplotlib as the interpreter's side knows of, for hosts without it. */
static const char stub[] =
    "import os\nos.mkdir('matplotlib')\nopen('matplotlib/__init__.py', 'w').close()\n"
    "open('matplotlib/figure.py', 'w').write('class Figure:\\n"
    "    def __init__(self): self.axes = []\\n"
    "    def savefig(self, name): open(name, \"w\").write(str(self.axes))\\n')\n"
    "open('matplotlib/pyplot.py', 'w').write('from matplotlib.figure import Figure\\n"
    "figures = {}; current = 1\\n"
    "def figure(n=None):\\n    global current\\n    current = n or max(figures, default=0) + 1\\n"
    "    return figures.setdefault(current, Figure())\\n"
    "def get_fignums(): return sorted(figures)\\n"
    "def plot(x): figure(current).axes.append(x)\\n"
    "def savefig(n): figure(current).savefig(n)\\n"
    "def close(f):\\n    for k in [k for k in figures if figures[k] is f]: del figures[k]\\n"
    "def show(): pass\\n')\n";

static void
figures(struct probe_host *h, struct code_session *s)
{
	probe_exec(h, s, "import matplotlib", 60000, &r);
	if (r.return_code != 0)
		probe_exec(h, s, stub, 60000, &r);
	probe_name("open figures are saved, saved ones are not saved again");
	probe_exec(h, s,
	    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('mine.png')\n"
	    "plt.figure()\nplt.plot([2, 1])\nplt.show()",
	    60000, &r);
	EXPECT(r.err[0] == '\0', "%s", r.err);
	EXPECT(
	    r.file_count == 2 && find("mine.png") != NULL && find("outputs/figure_1.png") != NULL,
	    "%zu %s", r.file_count, r.err);
	probe_name("a figure is saved wherever the code went, beside older ones");
	probe_exec(h, s,
	    "import os, shutil\nshutil.copy('outputs/figure_1.png', 'x'); os.chdir('/tmp')\n"
	    "plt.figure()\nplt.plot([3])\nplt.figure()\nNone",
	    60000, &r);
	EXPECT(r.file_count == 2 && find("x") != NULL && find("outputs/figure_2.png") != NULL,
	    "%zu %s", r.file_count, r.err);
	probe_exec(h, s, "print(len(plt.get_fignums()))", 0, &r);
	EXPECT(r.file_count == 0 && strcmp(r.out, "2\n") == 0, "%zu %s", r.file_count, r.out);
}

void
probes_files(struct probe_host *h)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	seeds(h, s);
	outputs(h, s);
	hostile(h, s);
	code_session_close(&s);
	s = probe_open(h, NULL);
	if (s != NULL)
		figures(h, s);
	code_session_close(&s);
}
