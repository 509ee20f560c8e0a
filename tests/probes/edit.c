/* edit.c - the text editor, inside: files, folders, and what is no file */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/probes/probe.h"

static struct probe_result r;

static void
edit(struct probe_host *h, struct code_session *s, enum code_edit_command command, const char *path,
    const char *old, const char *text)
{
	struct code_edit e = {
	    .command = command, .path = str_c(path), .old = str_c(old), .text = str_c(text)};
	probe_edit(h, s, &e, &r);
	EXPECT(!r.failed && !r.died && r.has_edit, "%s", r.why);
	EXPECT((r.return_code == 0) == (r.edit.error == CODE_EDIT_OK), "%d", r.return_code);
}

static void
view(struct probe_host *h, struct code_session *s, const char *path)
{
	edit(h, s, CODE_EDIT_VIEW, path, "", "");
}

static void
ordinary(struct probe_host *h, struct code_session *s)
{
	probe_name("edit: a file is made with its folders, and is an output");
	edit(h, s, CODE_EDIT_CREATE, "/work/src/a.py", "", "one\ntwo\nthree\nfour\nfive\n");
	EXPECT(r.edit.error == CODE_EDIT_OK && !r.edit.is_update && r.file_count == 1 &&
		   strcmp(r.files[0].path, "src/a.py") == 0 && r.files[0].is_whole,
	    "%d %zu", (int)r.edit.error, r.file_count);
	probe_name("edit: it is seen by python");
	probe_exec(h, s,
	    "import os\nkeep = 41\nprint(open('src/a.py').read()[:3], "
	    "oct(os.stat('src/a.py').st_mode))",
	    0, &r);
	EXPECT(strcmp(r.out, "one 0o100644\n") == 0, "%s%s", r.out, r.err);
	probe_name("edit: a view of all and of some lines, by either name");
	view(h, s, "/mnt/data/src/a.py");
	EXPECT(strcmp(r.out, "one\ntwo\nthree\nfour\nfive\n") == 0 && r.edit.total_lines == 5 &&
		   r.edit.line_count == 5 && r.edit.first_line == 1 && r.file_count == 0,
	    "%s", r.out);
	struct code_edit some = {
	    .command = CODE_EDIT_VIEW, .path = STR("src/a.py"), .first_line = 2, .last_line = 3};
	probe_edit(h, s, &some, &r);
	EXPECT(strcmp(r.out, "two\nthree\n") == 0 && r.edit.first_line == 2 &&
		   r.edit.line_count == 2 && r.edit.total_lines == 5,
	    "%s", r.out);
	some.first_line = 6;
	probe_edit(h, s, &some, &r);
	EXPECT(r.edit.error == CODE_EDIT_INVALID, "%d", (int)r.edit.error);
	probe_name("edit: one place is replaced and shown as a diff");
	probe_exec(h, s, "os.chmod('src/a.py', 0o750)", 0, &r);
	edit(h, s, CODE_EDIT_STR_REPLACE, "src/a.py", "two\n", "2\n2b\n");
	EXPECT(r.edit.error == CODE_EDIT_OK &&
		   strcmp(r.out, " one\n-two\n+2\n+2b\n three\n four\n five\n") == 0 &&
		   r.edit.old_start == 1 && r.edit.old_lines == 5 && r.edit.new_start == 1 &&
		   r.edit.new_lines == 6 && r.file_count == 1,
	    "%d %s", (int)r.edit.error, r.out);
	probe_exec(h, s,
	    "print(open('src/a.py').read(), oct(os.stat('src/a.py').st_mode), "
	    "os.listdir('src'))",
	    0, &r);
	EXPECT(
	    strcmp(r.out, "one\n2\n2b\nthree\nfour\nfive\n 0o100750 ['a.py']\n") == 0, "%s", r.out);
	probe_name("edit: an existing file is updated");
	edit(h, s, CODE_EDIT_CREATE, "src/a.py", "", "new");
	EXPECT(r.edit.error == CODE_EDIT_OK && r.edit.is_update, "%d", (int)r.edit.error);
	probe_name("edit: the text is of any length that is allowed");
	char *big = mem_alloc(CODE_EDIT_TEXT_MAX + 1);
	memset(big, 'l', CODE_EDIT_TEXT_MAX + 1);
	struct code_edit e = {.command = CODE_EDIT_CREATE,
	    .path = STR("big"),
	    .text = str_n(big, CODE_EDIT_TEXT_MAX)};
	probe_edit(h, s, &e, &r);
	EXPECT(r.edit.error == CODE_EDIT_OK && r.files[0].size == CODE_EDIT_TEXT_MAX, "%s", r.why);
	e.text.len++;
	probe_edit(h, s, &e, &r);
	EXPECT(r.failed && !r.has_edit, "%d", (int)r.edit.error);
	mem_free(big);
	view(h, s, "big");
	EXPECT(r.edit.error == CODE_EDIT_TOO_LARGE, "%d", (int)r.edit.error);
}

static void
refused(struct probe_host *h, struct code_session *s)
{
	static const struct {
		enum code_edit_command command;
		const char *path, *old, *text;
		enum code_edit_error error;
	} rows[] = {
	    {CODE_EDIT_VIEW, "none", "", "", CODE_EDIT_NOT_FOUND},
	    {CODE_EDIT_VIEW, "none/a", "", "", CODE_EDIT_NOT_FOUND},
	    {CODE_EDIT_STR_REPLACE, "none", "a", "b", CODE_EDIT_NOT_FOUND},
	    {CODE_EDIT_VIEW, "/etc/passwd", "", "", CODE_EDIT_INVALID},
	    {CODE_EDIT_VIEW, "../etc/passwd", "", "", CODE_EDIT_INVALID},
	    {CODE_EDIT_VIEW, "", "", "", CODE_EDIT_INVALID},
	    {CODE_EDIT_CREATE, "/proc/self/x", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_CREATE, "dir", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_CREATE, "/work", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_STR_REPLACE, "dir", "a", "b", CODE_EDIT_INVALID},
	    {CODE_EDIT_STR_REPLACE, "src/a.py", "zz", "b", CODE_EDIT_NO_MATCH},
	    {CODE_EDIT_STR_REPLACE, "twice", "a", "b", CODE_EDIT_MANY_MATCHES},
	    {CODE_EDIT_VIEW, "bytes", "", "", CODE_EDIT_NOT_TEXT},
	    {CODE_EDIT_STR_REPLACE, "bytes", "a", "b", CODE_EDIT_NOT_TEXT},
	    {CODE_EDIT_STR_REPLACE, "src/a.py", "new", "\xff", CODE_EDIT_NOT_TEXT},
	    {CODE_EDIT_VIEW, "sparse", "", "", CODE_EDIT_TOO_LARGE}, /* K5 */
	    {CODE_EDIT_VIEW, "pipe", "", "", CODE_EDIT_INVALID},
	    {CODE_EDIT_CREATE, "pipe", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_VIEW, "link", "", "", CODE_EDIT_INVALID}, /* K15 */
	    {CODE_EDIT_CREATE, "link", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_STR_REPLACE, "link", "root", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_VIEW, "linked/passwd", "", "", CODE_EDIT_NOT_FOUND},
	    {CODE_EDIT_CREATE, "linked/x", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_CREATE, "bytes/x", "", "x", CODE_EDIT_INVALID},
	    {CODE_EDIT_VIEW, "locked", "", "", CODE_EDIT_FAILED},
	};
	probe_exec(h, s,
	    "os.makedirs('dir/sub/deep'); os.symlink('/etc/passwd', 'link'); os.symlink('/etc', "
	    "'linked')\n"
	    "os.mkfifo('pipe'); open('bytes', 'wb').write(b'a\\xff'); open('twice', "
	    "'w').write('a a')\n"
	    "f = open('sparse', 'wb'); f.truncate(100 << 20); f.close()\n"
	    "open('locked', 'w').write('l'); os.chmod('locked', 0)\n"
	    "open('dir/sub/f', 'w').write('f'); open('dir/sub/deep/g', 'w').write('g'); "
	    "open('dir/.hidden', 'w').write('h')\n"
	    "open(b'dir/\\xff\\n', 'w').write('123')",
	    0, &r);
	EXPECT(r.return_code == 0, "%s", r.err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[128];
		(void)snprintf(name, sizeof(name), "edit: refused: %d of \"%s\"",
		    (int)rows[i].command, rows[i].path);
		probe_name(name);
		edit(h, s, rows[i].command, rows[i].path, rows[i].old, rows[i].text);
		EXPECT(r.edit.error == rows[i].error, "%d", (int)r.edit.error);
		EXPECT(r.out[0] == '\0' && r.file_count == 0, "%s %zu", r.out, r.file_count);
	}
	probe_name("edit: and nothing was written elsewhere");
	probe_exec(h, s,
	    "print(open('/etc/passwd').read()[:5], os.path.islink('link'), open('twice').read())",
	    0, &r);
	EXPECT(strcmp(r.out, "root: True a a\n") == 0, "%s %s", r.out, r.err);
	probe_name("edit: a folder is listed two levels deep, sorted, in text");
	view(h, s, "dir");
	EXPECT(r.edit.is_directory && strcmp(r.out, "-\t/work/dir/\n-\t/work/dir/sub/\n"
						    "-\t/work/dir/sub/deep/\n"
						    "1\t/work/dir/sub/f\n3\t/work/dir/?"
						    "?\n") == 0,
	    "%s", r.out);
	EXPECT(r.edit.line_count == 5 && r.edit.total_lines == 5, "%d", r.edit.line_count);
	probe_name("edit: a folder with thousands of names is cut");
	probe_exec(h, s,
	    "os.mkdir('many')\nfor i in range(1500): open('many/%04d' % i, 'w').close()", 0, &r);
	view(h, s, "many");
	EXPECT(r.edit.line_count == 1002, "%d", r.edit.line_count);
	probe_exec(h, s, "import shutil; shutil.rmtree('many')", 0, &r);
}

static void
in_trouble(struct probe_host *h, struct code_session *s)
{
	probe_name("edit: a full disk leaves the old file as it was");
	probe_exec(h, s,
	    "open('old', 'w').write('old text')\ntry:\n    with open('/tmp/fill', 'wb') as f:\n    "
	    "    "
	    "while True: f.write(bytes(1 << 20))\nexcept OSError: pass\n"
	    "try:\n    with open('/tmp/fill2', 'wb') as f:\n        "
	    "while True: f.write(bytes(1 << 12)); f.flush()\nexcept OSError as e: print(e.errno)",
	    0, &r);
	EXPECT(strcmp(r.out, "28\n") == 0, "%s%s", r.out, r.err);
	edit(h, s, CODE_EDIT_STR_REPLACE, "old", "old", "new");
	EXPECT(r.edit.error == CODE_EDIT_FAILED, "%d", (int)r.edit.error);
	edit(h, s, CODE_EDIT_CREATE, "old", "", "new");
	EXPECT(r.edit.error == CODE_EDIT_FAILED, "%d", (int)r.edit.error);
	probe_exec(h, s,
	    "import glob\nfor f in glob.glob('/tmp/fill*'): os.unlink(f)\n"
	    "print(keep, open('old').read(), sorted(os.listdir('.'))[:2])",
	    0, &r);
	EXPECT(strcmp(r.out, "41 old text ['big', 'bytes']\n") == 0, "%s%s", r.out, r.err);
	probe_name("edit: works without an interpreter");
	probe_exec(h, s, "os._exit(1)", 0, &r);
	EXPECT(r.died, "%d", r.died);
	view(h, s, "old");
	EXPECT(strcmp(r.out, "old text") == 0, "%s", r.out);
	probe_exec(h, s, "print('fresh')", 0, &r);
	EXPECT(strcmp(r.out, "fresh\n") == 0, "%s%s", r.out, r.err);
}

void
probes_edit(struct probe_host *h)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	ordinary(h, s);
	refused(h, s);
	in_trouble(h, s);
	code_session_close(&s);
}
