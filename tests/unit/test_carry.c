/* What is carried over to the client's next request: which ids, which text, and where it goes. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/json.h"
#include "base/mem.h"
#include "tests/unit/dialectfix.h"
#include "worker/turn/carry.h"
#include "worker/turn/mint.h"

TestSuite(carry, .timeout = 60);

#define ARENA_BYTES (64u << 20)

Test(carry, ids_that_may_come_again_are_told_from_those_that_do_not)
{
	static const struct {
		const char *id;
		bool unique;
	} rows[] = {
	    {"toolu_01A09q90qw90lq917835lq9", true}, {"call_JYbZ4bVqbCyQxJ3ZqjLkq7Rk", true},
	    {"chatcmpl-tool-2fd2f5b0d8a44a3e9d4be3a1f5cba2fd", true},
	    {"otari__thought__QUJDREVGR0hJSktMTU5PUFFSU1RVVg1", true}, {"", false}, {"0", false},
	    {"call_1", false}, {"call_0000000000000001", false}, {"toolcall00000001", false},
	    {"functions.get_weather:0", false}, {"get_weather_for_many_cities_12", false},
	    {"123456789012345678901234567890", false}, {"abcdefghijklmnopqrstuvwxyzabcdef", false},
	    {"D681PevKs", false}, /* nine of Mistral's: random, but a new one costs nothing */
	};
	struct arena *a = arena_new(ARENA_BYTES);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(mint_is_unique(str_c(rows[i].id)), rows[i].unique, "%s", rows[i].id);
	for (int w = WIRE_CHAT; w <= WIRE_RESPONSES; w++)
		cr_expect(mint_is_unique(mint_call_id(a, (enum wire)w)));
	struct carry c = {0};
	cr_expect(str_eq(carry_add_call(&c, a, WIRE_CHAT, str_c(rows[0].id)), str_c(rows[0].id)));
	struct str second = carry_add_call(&c, a, WIRE_MESSAGES, STR("call_1"));
	cr_expect(str_starts(second, STR("toolu_")));
	cr_expect(str_eq(c.call_id, str_c(rows[0].id)), "the first one counts");
	struct str third = carry_add_call(
	    &c, a, WIRE_CHAT, STR("otari_srvtoolu_0a1b2c3d4e5f60718293a4b5c6d7e8f9"));
	cr_expect(str_starts(third, STR("call_")), "it would come back as an execution of ours");
	arena_free(&a);
}

static struct code_record
record(const char *id, const char *code)
{
	return (struct code_record){
	    .id = str_c(id), .tool = CODE_TOOL_PYTHON, .code = str_c(code), .ran = true};
}

/* What is kept of these, as it comes back for a Chat transcript with that call. */
static struct str
kept_text(struct arena *a, const struct carry *c)
{
	struct str text = carry_text(c, a);
	cr_assert(text.len > 0 && text.len <= STORE_TOOL_RESULT_MAX_BYTES, "%zu", text.len);
	return text;
}

Test(carry, text_is_the_heading_of_a_fold_and_what_the_model_was_told)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct carry c = {0};
	struct code_record one = record("otari_srvtoolu_1", "print(\"a\")\n");
	struct code_record edit = {.id = STR("otari_srvtoolu_2"),
	    .tool = CODE_TOOL_EDITOR,
	    .input_raw = STR("{\"command\":\"view\",\"path\":\"a\"}")};
	struct jval root;

	carry_add_run(&c, a, &one, STR("stdout:\na\n"));
	cr_expect_null(carry_text(&c, a).ptr, "the client got no call: nothing to come back to");
	(void)carry_add_call(&c, a, WIRE_CHAT, STR("call_1"));
	carry_add_run(&c, a, &edit, STR("1 line"));
	cr_assert_eq(jdoc_parse(a, kept_text(a, &c), &root, NULL), ERR_OK);
	struct jval runs = jv_get(root, "runs");
	cr_assert_eq(jv_count(runs), 2);
	cr_expect(jv_str_is(jv_get(jv_at(runs, 0), "text"),
	    "[code was executed]\n```python\nprint(\"a\")\n```\nstdout:\na\n"));
	cr_expect(jv_str_is(jv_get(jv_at(runs, 1), "text"),
	    "[the text editor was used]\n```json\n{\"command\":\"view\",\"path\":\"a\"}\n```\n1 "
	    "line"));
	cr_expect(jv_str_is(jv_get(jv_at(runs, 1), "id"), "otari_srvtoolu_2"));
	struct carry none = {0};
	(void)carry_add_call(&none, a, WIRE_CHAT, STR("call_1"));
	cr_expect_null(carry_text(&none, a).ptr, "nothing ran");
	arena_free(&a);
}

Test(carry, large_results_are_cut_and_the_latest_are_kept)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct carry c = {0};
	struct jval root;
	size_t n = 600u * 1024u;
	char *worst = mem_alloc(n);

	memset(worst, '"', n); /* twice as long in JSON */
	(void)carry_add_call(&c, a, WIRE_CHAT, STR("call_1"));
	struct code_record big = {
	    .id = STR("big"), .tool = CODE_TOOL_PYTHON, .code = str_n(worst, n)};
	carry_add_run(&c, a, &big, str_n(worst, n));
	cr_assert_eq(jdoc_parse(a, kept_text(a, &c), &root, NULL), ERR_OK);
	struct str text = jv_str(a, jv_get(jv_at(jv_get(root, "runs"), 0), "text"));
	cr_expect(
	    str_starts(text, STR("[code was executed]\n\"\"\"")), "code that long is left out");
	cr_expect(str_ends(text, STR("\"\n[cut here; 614400 bytes in all]")));
	struct code_record worse = {.id = STR("worse"),
	    .tool = CODE_TOOL_PYTHON,
	    .code = str_n(worst, CARRY_CODE_MAX_BYTES)};
	memset(worst, '\\', n);
	carry_add_run(&c, a, &worse, str_n(worst, n));
	for (int i = 0; i < 3; i++) {
		struct code_record small = record("small", "1");
		carry_add_run(&c, a, &small, STR("(no output)"));
	}
	cr_assert_eq(jdoc_parse(a, kept_text(a, &c), &root, NULL), ERR_OK);
	struct jval runs = jv_get(root, "runs");
	cr_expect_eq(jv_count(runs), 4, "the oldest has no room");
	cr_expect(jv_str_is(jv_get(jv_at(runs, 0), "id"), "worse"));
	cr_expect(jv_str_is(jv_get(jv_at(runs, 3), "id"), "small"));
	mem_free(worst);
	arena_free(&a);
}

/* --- transcripts ---------------------------------------------------------------------------------
 */

#define KEPT(id, text) "{\"runs\":[{\"id\":\"" id "\",\"text\":\"" text "\"}]}"

static size_t last_added;

/* Decodes, attaches `kept` to every call in the transcript, encodes. */
static struct str
attached(struct arena *a, enum wire from, enum wire to, const char *body, const char *kept)
{
	struct err err;
	struct str ids[STORE_TOOL_RESULT_IDS_MAX], texts[STORE_TOOL_RESULT_IDS_MAX];
	struct buf out = BUF_INIT(1u << 20);
	struct encode_options opt = {.model = STR("m")};
	struct conversation *conv = fix_decode(a, from, str_c(body), &err);

	cr_assert_not_null(conv, "%s", err.msg);
	size_t n = carry_find(conv, ids);
	for (size_t i = 0; i < n; i++)
		texts[i] = i == 0 ? str_c(kept) : STR_NULL;
	carry_attach(conv, ids, texts, n);
	last_added = conv->added_bytes;
	cr_assert_eq(dialect_of(to)->encode(conv, &opt, &out, &err), ERR_OK, "%s", err.msg);
	struct str s = arena_str(a, buf_str(&out));
	buf_done(&out);
	return s;
}

static void
expect_inside(struct arena *a, enum wire from, enum wire to, const char *body, const char *want)
{
	struct str got = attached(a, from, to, body, KEPT("x", "RAN"));
	cr_expect_eq(last_added, 3u, "it counts for where the body is written");
	cr_expect(str_find(got, str_c(want)) != SIZE_MAX, "%s\n%.*s", want, STR_FMT(got));
	size_t at = str_find(got, STR("RAN"));
	cr_expect(at != SIZE_MAX && str_find(str_from(got, at + 1), STR("RAN")) == SIZE_MAX);
}

#define CHAT_TALK                                                                                  \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":"          \
	"\"assistant\",\"content\":\"I look.\",\"tool_calls\":[{\"id\":\"a\",\"type\":"            \
	"\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{ }\"}},{\"id\":\"b\","         \
	"\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":"   \
	"\"tool\",\"tool_call_id\":\"a\",\"content\":\"1\"},{\"role\":\"tool\","                   \
	"\"tool_call_id\":\"b\",\"content\":\"2\"}]}"

Test(carry, goes_in_front_of_the_call_on_every_wire)
{
	struct arena *a = arena_new(ARENA_BYTES);

	expect_inside(a, WIRE_CHAT, WIRE_CHAT, CHAT_TALK,
	    "{\"role\":\"assistant\",\"content\":\"I look.\\n\\nRAN\",\"tool_calls\":[{\"id\":"
	    "\"a\"");
	expect_inside(a, WIRE_CHAT, WIRE_MESSAGES, CHAT_TALK,
	    "{\"type\":\"text\",\"text\":\"I look.\"},{\"type\":\"text\",\"text\":\"RAN\"},{"
	    "\"type\":\"tool_use\",\"id\":\"a\"");
	expect_inside(a, WIRE_CHAT, WIRE_RESPONSES, CHAT_TALK,
	    "\"text\":\"RAN\"}]},{\"type\":\"function_call\"");
	/* thinking stays in front, and everything else is as the client sent it */
	expect_inside(a, WIRE_MESSAGES, WIRE_MESSAGES,
	    "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
	    "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\","
	    "\"signature\":\"s\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{"
	    "\"n\":1.50}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
	    "\"tool_use_id\":\"a\",\"content\":\"1\"}]}]}",
	    "\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"RAN\"},{\"type\":\"tool_use\","
	    "\"id\":\"a\",\"name\":\"f\",\"input\":{\"n\":1.50}}]}");
	/* reasoning of Responses must be followed by what it led to */
	expect_inside(a, WIRE_RESPONSES, WIRE_RESPONSES,
	    "{\"model\":\"m\",\"store\":false,\"input\":[{\"role\":\"user\",\"content\":\"q\"},{"
	    "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"e\"},{"
	    "\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"},{"
	    "\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"1\"}]}",
	    "\"text\":\"RAN\"}]},{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],"
	    "\"encrypted_content\":\"e\"},{\"type\":\"function_call\",\"call_id\":\"a\"");
	arena_free(&a);
}

Test(carry, leaves_alone_what_the_client_sent_back)
{
	static const char messages[] =
	    "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
	    "{"
	    "\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\",\"id\":"
	    "\"otari_srvtoolu_1\",\"name\":\"code_execution\",\"input\":{\"code\":\"c\"}},{"
	    "\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"otari_srvtoolu_1\","
	    "\"content\":{\"type\":\"code_execution_result\",\"stdout\":\"RAN\",\"stderr\":\"\","
	    "\"return_code\":0,\"content\":[]}},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\","
	    "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
	    "\"tool_use_id\":\"a\",\"content\":\"1\"}]}]}";
	static const char responses[] =
	    "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"q\"},{\"type\":"
	    "\"code_interpreter_call\",\"id\":\"otari_ci_1\",\"code\":\"c\",\"container_id\":\"k\","
	    "\"status\":\"completed\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"RAN\"}]},{"
	    "\"type\":"
	    "\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":"
	    "\"function_call_output\",\"call_id\":\"a\",\"output\":\"1\"}]}";
	struct arena *a = arena_new(ARENA_BYTES);
	struct str got;

	got = attached(a, WIRE_MESSAGES, WIRE_CHAT, messages, KEPT("otari_srvtoolu_1", "TWICE"));
	cr_expect(str_find(got, STR("RAN")) != SIZE_MAX, "%.*s", STR_FMT(got));
	cr_expect_eq(str_find(got, STR("TWICE")), SIZE_MAX, "%.*s", STR_FMT(got));
	got = attached(a, WIRE_RESPONSES, WIRE_CHAT, responses, KEPT("otari_ci_1", "TWICE"));
	cr_expect(str_find(got, STR("RAN")) != SIZE_MAX, "%.*s", STR_FMT(got));
	cr_expect_eq(str_find(got, STR("TWICE")), SIZE_MAX, "%.*s", STR_FMT(got));
	/* of two executions the one that was dropped comes back */
	got = attached(a, WIRE_MESSAGES, WIRE_CHAT, messages,
	    "{\"runs\":[{\"id\":\"otari_srvtoolu_0\",\"text\":\"DROPPED\"},{\"id\":"
	    "\"otari_srvtoolu_1\",\"text\":\"TWICE\"}]}");
	cr_expect(str_find(got, STR("DROPPED")) != SIZE_MAX, "%.*s", STR_FMT(got));
	cr_expect_eq(str_find(got, STR("TWICE")), SIZE_MAX, "%.*s", STR_FMT(got));
	arena_free(&a);
}

Test(carry, what_the_table_holds_is_not_trusted)
{
	static const char *const texts[] = {"", "{", "[]", "null", "{\"runs\":1}",
	    "{\"runs\":[1,{},{\"text\":2},{\"id\":{},\"text\":\"\"}]}", "{\"runs\":{\"a\":\"b\"}}"};
	struct arena *a = arena_new(ARENA_BYTES);
	struct str plain = fix_translate(a, WIRE_CHAT, WIRE_CHAT, STR(CHAT_TALK));

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct str got = attached(a, WIRE_CHAT, WIRE_CHAT, CHAT_TALK, texts[i]);
		cr_expect(str_find(got, STR("\"I look.\"")) != SIZE_MAX, "%s: %.*s", texts[i],
		    STR_FMT(got));
		cr_expect_eq(got.len >= plain.len, true);
	}
	arena_free(&a);
}

Test(carry, looks_for_calls_with_results_alone_and_for_the_last_of_many)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct buf b = BUF_INIT(8u << 20);
	struct str ids[STORE_TOOL_RESULT_IDS_MAX];
	struct err err;
	int n = STORE_TOOL_RESULT_IDS_MAX + 50;

	buf_add(&b, STR("{\"model\":\"m\",\"max_tokens\":9,\"messages\":["));
	for (int i = 0; i < n; i++)
		buf_printf(&b,
		    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t%d\","
		    "\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"
		    "\"tool_result\",\"tool_use_id\":\"t%d\",\"content\":\"1\"}]},",
		    i, i == n - 3 ? -1 : i);
	buf_add(&b, STR("{\"role\":\"user\",\"content\":\"q\"}]}"));
	struct conversation *conv = fix_decode(a, WIRE_MESSAGES, buf_str(&b), &err);
	cr_assert_not_null(conv, "%s", err.msg);
	cr_assert_eq(carry_find(conv, ids), STORE_TOOL_RESULT_IDS_MAX);
	cr_expect(str_eq(ids[0], STR("t49")), "%.*s", STR_FMT(ids[0]));
	cr_expect(str_eq(ids[STORE_TOOL_RESULT_IDS_MAX - 1], STR("t305")));
	for (size_t i = 0; i < STORE_TOOL_RESULT_IDS_MAX; i++)
		cr_expect(!str_eq(ids[i], STR("t303")), "it has no result");
	conv = fix_decode(a, WIRE_MESSAGES,
	    STR("{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":"
		"\"q\"}]}"),
	    &err);
	cr_expect_eq(carry_find(conv, ids), 0);
	buf_done(&b);
	arena_free(&a);
}
