/* Recorded answers of real services, read and written to clients of both wires; then sent back as
 * the next request's transcript. The recordings are not part of the repository: OTARI_RECORDED
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
	unsigned files, failed_answers, calls;
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

/* The answer as a member of the next request; it must decode, and encode to both wires. */
static void
send_back(struct arena *a, enum wire w, struct str whole, const char *file)
{
	struct jval v;
	struct str body;
	cr_assert_eq(jdoc_parse(a, whole, &v, NULL), ERR_OK, "%s", file);
	if (w == WIRE_MESSAGES && jv_count(jv_get(v, "content")) == 0)
		return;
	if (w == WIRE_MESSAGES)
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
	for (int to = 0; to < 2; to++) {
		struct jval out;
		struct str s = fix_translate(a, w, to ? WIRE_MESSAGES : WIRE_CHAT, body);
		cr_expect_eq(
		    jdoc_parse(a, s, &out, NULL), ERR_OK, "%s: %.*s", file, (int)s.len, s.ptr);
	}
}

static void
check_answer(enum wire from, struct str in, bool stream, const char *file, struct tally *tally)
{
	struct arena *a = arena_new(256u << 20);
	if (stream)
		in = fix_frames(a, from, in);
	for (int to = 0; to < 2; to++) {
		struct fix_way way = {
		    from, to ? WIRE_MESSAGES : WIRE_CHAT, stream, true, true, NULL};
		struct fix_answer streamed, cut, whole;
		fix_answer(a, &way, in, 0, &streamed);
		cr_expect_eq(streamed.code, ERR_OK, "%s", file);
		cr_expect(streamed.ended || streamed.failed, "%s has no end", file);
		if (!streamed.ended) {
			tally->failed_answers++;
			break;
		}
		tally->calls += to ? streamed.calls : 0;
		fix_answer(a, &way, in, stream ? 37 : 0, &cut);
		cr_expect(str_eq(cut.bytes, streamed.bytes), "%s cut in pieces", file);
		way.stream_out = false;
		fix_answer(a, &way, in, 0, &whole);
		struct str acc = fix_accumulate(a, way.to, streamed.bytes);
		cr_expect(fix_json_eq(acc, whole.bytes), "%s to %s:\n%.*s\n%.*s", file,
		    wire_name(way.to), STR_FMT(acc), STR_FMT(whole.bytes));
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
	if (str_starts(n, STR("responses__")) || (!stream && !str_ends(n, STR(".json"))))
		return;
	/* One service's Responses recordings have no prefix. */
	if (str_eq(str_c(service), STR("azure")))
		return;
	cr_assert_eq(fd_read_file(path, 16u << 20, &bytes, &len, NULL), ERR_OK, "%s", path);
	check_answer(from, str_n(bytes, len), stream, name, tally);
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
	printf("recorded answers: %u files, %u of them errors, %u tool calls\n", tally.files,
	    tally.failed_answers, tally.calls);
	cr_expect(tally.files > 0);
}
