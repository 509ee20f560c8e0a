/* escape.c - runs the pieces of escape.py, each in a session of its own */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/probes/probe.h"

extern const char escape_text[];
__asm__(".section .rodata\n"
	".global escape_text\n"
	"escape_text:\n"
	".incbin \"tests/probes/escape.py\"\n"
	".byte 0\n"
	".previous\n");

#define MARK "\n#: "

static void
run_piece(
    struct probe_host *h, const char *prelude, size_t prelude_len, const char *piece, size_t len)
{
	static struct probe_result r;
	char name[96];
	const char *body = memchr(piece, '\n', len);
	(void)snprintf(name, sizeof(name), "%.*s", (int)(body - piece), piece);
	probe_name(name);
	size_t body_len = len - (size_t)(body - piece);
	char *code = mem_alloc(prelude_len + body_len + 1);
	memcpy(code, prelude, prelude_len);
	memcpy(code + prelude_len, body, body_len);
	struct code_session *s = probe_open(h, NULL);
	if (EXPECT(s != NULL, "no session")) {
		probe_exec(h, s, code, 20000, &r);
		EXPECT(!r.failed, "%s", r.why);
		EXPECT(r.return_code == 0 && !r.died, "%d %s", r.return_code, r.err);
		EXPECT(r.out[0] == '\0', "%s", r.out);
	}
	code_session_close(&s);
	mem_free(code);
}

void
probes_escape(struct probe_host *h)
{
	const char *at = strstr(escape_text, MARK "prelude");
	const char *next = strstr(at + 1, MARK);
	const char *prelude = strchr(at + 1, '\n');
	size_t prelude_len = (size_t)(next - prelude);
	while (next != NULL) {
		at = next + sizeof(MARK) - 1;
		next = strstr(at, MARK);
		run_piece(
		    h, prelude, prelude_len, at, next != NULL ? (size_t)(next - at) : strlen(at));
	}
}
