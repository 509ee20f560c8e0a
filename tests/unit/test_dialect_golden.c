/* tests/golden/<from>_to_<to>/NAME.in.json: a client's request; NAME.out.json: what the provider
 * must get, byte for byte but for white space between tokens; NAME.openai.out.json, if there: what
 * OpenAI's own service must get. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "tests/unit/dialectfix.h"

static struct str
without_space(struct arena *a, struct str s)
{
	char *dst = arena_alloc(a, s.len + 1);
	size_t n = 0;
	bool in_string = false;
	cr_assert(dst != NULL);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (in_string && c == '\\') {
			dst[n++] = c;
			c = s.ptr[++i];
		} else if (c == '"') {
			in_string = !in_string;
		} else if (!in_string && strchr(" \n\t\r", c) != NULL) {
			continue;
		}
		dst[n++] = c;
	}
	return str_n(dst, n);
}

static struct str
slurp(struct arena *a, const char *dir, const char *name, const char *suffix)
{
	char path[1024], *bytes;
	size_t len;
	(void)snprintf(path, sizeof(path), "tests/golden/%s/%s%s", dir, name, suffix);
	cr_assert_eq(fd_read_file(path, 1u << 20, &bytes, &len, NULL), ERR_OK, "%s", path);
	struct str s = arena_str(a, str_n(bytes, len));
	mem_free(bytes);
	return s;
}

static void
check_pair(struct arena *a, const char *dir, const char *stem, const char *suffix, struct str got)
{
	/* arguments inside strings keep their spaces; everything else is compared as bytes */
	struct str want = without_space(a, slurp(a, dir, stem, suffix));
	got = without_space(a, got);
	cr_expect(str_eq(got, want), "%s/%s%s:\n%.*s\nwanted:\n%.*s", dir, stem, suffix,
	    STR_FMT(got), STR_FMT(want));
}

static unsigned
check_folder(const char *dir_name, enum wire from, enum wire to)
{
	char dir[256], path[1024];
	unsigned n = 0;
	(void)snprintf(dir, sizeof(dir), "tests/golden/%s", dir_name);
	DIR *d = opendir(dir);
	cr_assert(d != NULL, "%s: run from the top of the source tree", dir);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		struct str name = str_c(e->d_name);
		if (!str_ends(name, STR(".in.json")))
			continue;
		struct arena *a = arena_new(64u << 20);
		const char *stem = arena_cstr(a, str_sub(name, 0, name.len - 8));
		struct str in = slurp(a, dir_name, stem, ".in.json");
		check_pair(a, dir_name, stem, ".out.json", fix_translate(a, from, to, in));
		(void)snprintf(path, sizeof(path), "%s/%s.openai.out.json", dir, stem);
		if (access(path, R_OK) == 0)
			check_pair(a, dir_name, stem, ".openai.out.json",
			    fix_translate_native(a, from, to, in));
		n++;
		arena_free(&a);
	}
	closedir(d);
	return n;
}

Test(dialect_golden, requests, .timeout = 20)
{
	cr_expect(check_folder("messages_to_chat", WIRE_MESSAGES, WIRE_CHAT) > 0);
	cr_expect(check_folder("chat_to_chat", WIRE_CHAT, WIRE_CHAT) > 0);
	cr_expect(check_folder("messages_to_messages", WIRE_MESSAGES, WIRE_MESSAGES) > 0);
	cr_expect(check_folder("chat_to_messages", WIRE_CHAT, WIRE_MESSAGES) > 0);
	cr_expect(check_folder("responses_to_responses", WIRE_RESPONSES, WIRE_RESPONSES) > 0);
	cr_expect(check_folder("responses_to_chat", WIRE_RESPONSES, WIRE_CHAT) > 0);
	cr_expect(check_folder("responses_to_messages", WIRE_RESPONSES, WIRE_MESSAGES) > 0);
	cr_expect(check_folder("chat_to_responses", WIRE_CHAT, WIRE_RESPONSES) > 0);
	cr_expect(check_folder("messages_to_responses", WIRE_MESSAGES, WIRE_RESPONSES) > 0);
}
