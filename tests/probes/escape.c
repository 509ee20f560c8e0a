/* escape.c - runs the pieces of escape.py, tricks.py and inside.py, each in a session of its own
 *
 * And looks at what is outside after them: a file, the mounts and the name of this host.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/jail/jail.h"
#include "tests/probes/probe.h"

#define EMBED(name, path)                                                                          \
	extern const char name[];                                                                  \
	__asm__(".section .rodata\n"                                                               \
		".global " #name "\n" #name ":\n"                                                  \
		".incbin \"" path "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".previous\n");
EMBED(escape_text, "tests/probes/escape.py")
EMBED(tricks_text, "tests/probes/tricks.py")
EMBED(inside_text, "tests/probes/inside.py")

#define MARK   "\n#: "
#define SECRET "hunter2 is what the host keeps"

struct outside {
	char path[64];
	char *mounts, host[128];
};

static char *
read_mounts(void)
{
	struct err e;
	char *text = NULL;
	size_t len;
	if (fd_read_file("/proc/self/mountinfo", 1u << 20, &text, &len, &e) != ERR_OK)
		return NULL;
	return text;
}

/* A file that anybody may read who finds it. */
static bool
prepare(struct outside *o)
{
	(void)snprintf(o->path, sizeof(o->path), "/tmp/otari-probe-XXXXXX");
	int fd = mkostemp(o->path, O_CLOEXEC);
	bool ok = fd >= 0 && fchmod(fd, 0666) == 0 &&
		  write(fd, SECRET, sizeof(SECRET)) == (ssize_t)sizeof(SECRET);
	fd_close(&fd);
	o->mounts = read_mounts();
	return ok && o->mounts != NULL && gethostname(o->host, sizeof(o->host)) == 0;
}

static void
check_outside(struct outside *o)
{
	struct err e;
	char *text = NULL, host[128] = "";
	size_t len = 0;
	probe_name("the host is as it was");
	EXPECT(fd_read_file(o->path, 4096, &text, &len, &e) == ERR_OK && len == sizeof(SECRET) &&
		   memcmp(text, SECRET, len) == 0,
	    "%zu", len);
	mem_free(text);
	text = read_mounts();
	EXPECT(text != NULL && strcmp(text, o->mounts) == 0, "other mounts");
	mem_free(text);
	mem_free(o->mounts);
	EXPECT(gethostname(host, sizeof(host)) == 0 && strcmp(host, o->host) == 0, "%s", host);
	(void)unlink(o->path);
}

static void
run_piece(struct probe_host *h, const char *prelude, const char *name, struct str body)
{
	static struct probe_result r;
	struct buf code = BUF_INIT(CODE_SOURCE_MAX);
	probe_name(name);
	buf_add(&code, str_c(prelude));
	buf_add(&code, body);
	struct code_session *s = probe_open(h, NULL);
	if (EXPECT(s != NULL, "no session")) {
		probe_exec(h, s, code.ptr, 30000, &r);
		EXPECT(!r.failed, "%s", r.why);
		EXPECT(r.return_code == 0 && !r.died, "%d %s", r.return_code, r.err);
		EXPECT(r.out[0] == '\0', "%s", r.out);
	}
	code_session_close(&s);
	buf_done(&code);
}

/* Of a name's last word whether the piece runs in this mode; it is cut off. */
static bool
is_for_mode(char *name)
{
	bool has_filter = (probe_mode.without & JAIL_WITHOUT_SECCOMP) == 0;
	char *tag = strstr(name, " [");
	if (tag == NULL)
		return true;
	*tag = '\0';
	return strcmp(tag + 1, "[filter]") == 0 ? has_filter : !has_filter;
}

static void
run_all(struct probe_host *h, const char *prelude, const char *first)
{
	for (const char *at = first; at != NULL;) {
		char name[96];
		at += sizeof(MARK) - 1;
		const char *body = strchr(at, '\n'), *next = strstr(at, MARK);
		size_t len = next != NULL ? (size_t)(next - body) : strlen(body);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(body - at), at);
		if (is_for_mode(name))
			run_piece(h, prelude, name, str_n(body, len));
		at = next;
	}
}

void
probes_escape(struct probe_host *h)
{
	struct outside o = {.path = ""};
	struct buf prelude = BUF_INIT(65536);
	const char *begin = strstr(escape_text, MARK "prelude");
	const char *first = strstr(begin + 1, MARK);
	probe_name("a host to look at");
	if (!EXPECT(prepare(&o), "%d", errno))
		return;
	buf_printf(&prelude, "FILTER, LANDLOCK, HOST_FILE = %d, %d, '%s'\n",
	    (probe_mode.without & JAIL_WITHOUT_SECCOMP) == 0,
	    (probe_mode.without & JAIL_WITHOUT_LANDLOCK) == 0, o.path);
	buf_add(&prelude, str_n(begin, (size_t)(first - begin)));
	buf_add(&prelude, str_n("\n", 2)); /* with its end */
	run_all(h, prelude.ptr, first);
	run_all(h, prelude.ptr, strstr(tricks_text, MARK));
	run_all(h, prelude.ptr, strstr(inside_text, MARK));
	check_outside(&o);
	buf_done(&prelude);
}
