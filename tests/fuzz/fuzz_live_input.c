/* A call's arguments in pieces: byte 1 says how long they are. What is out can always be closed,
 * does not depend on the borders, and says what the whole says. */
#include "base/arena.h"
#include "base/check.h"
#include "base/json.h"
#include "worker/dialect/live_input.h"

#define MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_closes(struct live_input live, struct str so_far, struct str text)
{
	struct arena *a = arena_new(64u << 20);
	struct buf json = BUF_INIT(2 * MAX);
	struct jval v;
	buf_add(&json, so_far);
	(void)live_input_end(&live, &json);
	CHECK(jdoc_parse(a, buf_str(&json), &v, NULL) == ERR_OK && jv_is(v, JT_OBJECT));
	struct str code = jv_str(a, jv_get(v, "code"));
	CHECK(str_eq(code.ptr != NULL ? code : STR(""), text));
	buf_done(&json);
	arena_free(&a);
}

static bool
feed(struct str in, size_t step, struct buf *json, struct buf *text)
{
	struct live_input live;
	live_input_init(&live, STR("code"), MAX);
	for (size_t at = 0; at < in.len; at += step) {
		live_input_feed(&live, str_sub(in, at, step), json, text);
		if (in.len < 4096)
			check_closes(live, buf_str(json), buf_str(text));
	}
	return live_input_end(&live, json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf json[2] = {BUF_INIT(2 * MAX), BUF_INIT(2 * MAX)};
	struct buf text[2] = {BUF_INIT(2 * MAX), BUF_INIT(2 * MAX)};
	if (size < 1)
		return 0;
	struct str in = str_n(data + 1, size - 1);
	bool is_whole = feed(in, data[0] % 16 + 1u, &json[0], &text[0]);
	CHECK(feed(in, MAX, &json[1], &text[1]) == is_whole);
	CHECK(str_eq(buf_str(&json[0]), buf_str(&json[1])));
	CHECK(str_eq(buf_str(&text[0]), buf_str(&text[1])));
	struct arena *a = arena_new(64u << 20);
	struct jval v;
	if (is_whole) {
		CHECK(jdoc_parse(a, in, &v, NULL) == ERR_OK && jv_is(v, JT_OBJECT));
		struct str code = jv_str(a, jv_get(v, "code"));
		CHECK(str_eq(code.ptr != NULL ? code : STR(""), buf_str(&text[0])));
	}
	arena_free(&a);
	for (int i = 0; i < 2; i++) {
		buf_done(&json[i]);
		buf_done(&text[i]);
	}
	return 0;
}
