/* Recorded answers of real services, read and written to clients of all three wires; then sent back
 * as the next request's transcript. The recordings are not part of the repository: OTARI_RECORDED
 * names their folder, else ../shared/data/recorded is tried, else the test says that it was
 * skipped. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "tests/unit/dialectfix.h"

struct tally {
	unsigned files, answers, failed_answers, calls;
	size_t text_bytes;
};

static bool
find_folder(char *path, size_t size)
{
	const char *env = getenv("OTARI_RECORDED");
	static const char *const tries[] = {
	    "../shared/data/recorded", "../../shared/data/recorded"};
	if (env != NULL) {
		(void)snprintf(path, size, "%s", env);
		return access(path, R_OK) == 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		(void)snprintf(path, size, "%s", tries[i]);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* The answer as a member of the next request; it must decode, and encode to every wire. */
static void
send_back(struct arena *a, enum wire w, struct str whole, const char *file)
{
	struct jval v;
	struct str body;
	cr_assert_eq(jdoc_parse(a, whole, &v, NULL), ERR_OK, "%s", file);
	if ((w == WIRE_MESSAGES && jv_count(jv_get(v, "content")) == 0) ||
	    (w == WIRE_RESPONSES && jv_count(jv_get(v, "output")) == 0))
		return;
	if (w == WIRE_RESPONSES)
		body = arena_printf(
		    a, "{\"model\":\"m\",\"input\":%.*s}", STR_FMT(jv_raw(jv_get(v, "output"))));
	else if (w == WIRE_MESSAGES)
		body = arena_printf(a,
		    "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
		    "\"content\":\"q\"},"
		    "{\"role\":\"assistant\",\"content\":%.*s},{\"role\":\"user\",\"content\":"
		    "\"go\"}]}",
		    STR_FMT(jv_raw(jv_get(v, "content"))));
	else
		body = arena_printf(a,
		    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"},%.*s]}",
		    STR_FMT(jv_raw(jv_get(jv_at(jv_get(v, "choices"), 0), "message"))));
	for (enum wire to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
		struct jval out;
		struct str s = fix_translate(a, w, to, body);
		cr_expect_eq(
		    jdoc_parse(a, s, &out, NULL), ERR_OK, "%s: %.*s", file, (int)s.len, s.ptr);
	}
}

/* All text that a recording shows, read without the dialects. */
static struct str
naive_text(struct arena *a, enum wire w, struct str lines)
{
	struct buf b = BUF_INIT(16u << 20);
	struct str line;
	while (str_split(&lines, '\n', &line)) {
		struct jval v;
		if (jdoc_parse(a, line, &v, NULL) != ERR_OK)
			continue;
		struct jval d = w == WIRE_CHAT ? jv_get(jv_at(jv_get(v, "choices"), 0), "delta")
					       : jv_get(v, "delta");
		struct jval content = jv_get(d, w == WIRE_CHAT ? "content" : "text");
		if (w == WIRE_RESPONSES)
			content = jv_str_is(jv_get(v, "type"), "response.output_text.delta")
				      ? d
				      : JV_ABSENT;
		buf_add(&b, jv_str(a, content));
		struct jiter it = {0};
		while (jv_is(content, JT_ARRAY) && jv_next(content, &it))
			buf_add(&b, jv_str(a, jv_get(it.value, "text")));
	}
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

/* All text of an answer that a client accumulated. */
static struct str
shown_text(struct arena *a, enum wire w, struct str answer)
{
	struct buf b = BUF_INIT(16u << 20);
	struct jval v;
	struct jiter it = {0};
	cr_assert_eq(jdoc_parse(a, answer, &v, NULL), ERR_OK);
	struct jval message = jv_get(jv_at(jv_get(v, "choices"), 0), "message");
	if (w == WIRE_CHAT)
		buf_add(&b, jv_str(a, jv_get(message, "content")));
	while (jv_next(jv_get(v, "content"), &it))
		if (jv_str_is(jv_get(it.value, "type"), "text"))
			buf_add(&b, jv_str(a, jv_get(it.value, "text")));
	it = (struct jiter){0};
	while (jv_next(jv_get(v, "output"), &it)) {
		struct jiter part = {0};
		while (jv_next(jv_get(it.value, "content"), &part))
			if (jv_str_is(jv_get(part.value, "type"), "output_text"))
				buf_add(&b, jv_str(a, jv_get(part.value, "text")));
	}
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
check_answer(enum wire from, struct str in, bool stream, const char *file, struct tally *tally)
{
	struct arena *a = arena_new(256u << 20);
	struct str text = stream ? naive_text(a, from, in) : STR_NULL;
	if (stream)
		in = fix_frames(a, from, in);
	for (enum wire to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
		struct fix_way way = {from, to, stream, true, true, NULL};
		struct fix_answer streamed, cut, whole;
		fix_answer(a, &way, in, 0, &streamed);
		cr_expect_eq(streamed.code, ERR_OK, "%s", file);
		cr_expect(streamed.ended || streamed.failed, "%s has no end", file);
		if (!streamed.ended) {
			tally->failed_answers++;
			break;
		}
		tally->calls += to == WIRE_CHAT ? streamed.calls : 0;
		fix_answer(a, &way, in, stream ? 37 : 0, &cut);
		cr_expect(str_eq(cut.bytes, streamed.bytes), "%s cut in pieces", file);
		way.stream_out = false;
		fix_answer(a, &way, in, 0, &whole);
		struct str acc = fix_accumulate(a, way.to, streamed.bytes);
		cr_expect(fix_json_eq(acc, whole.bytes), "%s to %s:\n%.*s\n%.*s", file,
		    wire_name(way.to), STR_FMT(acc), STR_FMT(whole.bytes));
		struct str shown = shown_text(a, way.to, whole.bytes);
		cr_expect(!stream || str_eq(shown, text), "%s to %s says\n%.*s\nnot\n%.*s", file,
		    wire_name(way.to), STR_FMT(shown), STR_FMT(text));
		tally->text_bytes += to == WIRE_CHAT ? shown.len : 0;
		send_back(a, way.to, whole.bytes, file);
	}
	arena_free(&a);
}

static void
check_file(const char *service, const char *path, const char *name, struct tally *tally)
{
	struct str n = str_c(name);
	enum wire from = str_eq(str_c(service), STR("anthropic")) ? WIRE_MESSAGES : WIRE_CHAT;
	bool stream = str_ends(n, STR(".chunks.txt"));
	char *bytes;
	size_t len;
	if (!stream && !str_ends(n, STR(".json")))
		return;
	/* One service's Responses recordings have no prefix. */
	if (str_starts(n, STR("responses__")) || str_eq(str_c(service), STR("azure")))
		from = WIRE_RESPONSES;
	cr_assert_eq(fd_read_file(path, 16u << 20, &bytes, &len, NULL), ERR_OK, "%s", path);
	struct str rest = str_n(bytes, len);
	while (str_trim(rest).len > 0) { /* some recordings hold several answers */
		struct str mark = from == WIRE_RESPONSES ? STR("{\"type\":\"response.completed\"")
							 : STR("{\"type\":\"message_stop\"");
		size_t stop = stream ? str_find(rest, mark) : SIZE_MAX;
		size_t nl = stop != SIZE_MAX ? str_chr(str_from(rest, stop), '\n') : SIZE_MAX;
		size_t end = nl != SIZE_MAX ? stop + nl + 1 : rest.len;
		check_answer(from, str_sub(rest, 0, end), stream, name, tally);
		tally->answers++;
		rest = str_from(rest, end);
	}
	tally->files++;
	mem_free(bytes);
}

static void
check_service(const char *root, const char *service, struct tally *tally)
{
	char dir[1024], path[2048];
	(void)snprintf(dir, sizeof(dir), "%s/%s", root, service);
	DIR *d = opendir(dir);
	if (d == NULL)
		return;
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		check_file(service, path, e->d_name, tally);
	}
	closedir(d);
}

Test(dialect_recorded, every_recorded_answer_reaches_every_client, .timeout = 120)
{
	char root[400];
	struct tally tally = {0};
	if (!find_folder(root, sizeof(root))) {
		cr_skip("no recordings: set OTARI_RECORDED");
		return;
	}
	DIR *d = opendir(root);
	cr_assert(d != NULL);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
		if (e->d_name[0] != '.')
			check_service(root, e->d_name, &tally);
	closedir(d);
	printf(
	    "recorded: %u files, %u answers, %u of them errors, %u tool calls, %zu bytes of text\n",
	    tally.files, tally.answers, tally.failed_answers, tally.calls, tally.text_bytes);
	cr_expect(tally.files > 0);
}
