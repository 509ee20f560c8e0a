#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "worker/turn/keep.h"
#include "worker/turn/recall.h"

TestSuite(recall, .timeout = 60);

#define ARENA_BYTES (256u << 20)

static struct arena *a;
static struct err err;

static void
set_up(void)
{
	a = arena_new(ARENA_BYTES);
}

static void
tear_down(void)
{
	arena_free(&a);
}

static struct jval
parse(struct str text)
{
	struct jval root;
	cr_assert_eq(jdoc_parse(a, text, &root, &err), ERR_OK, "%s: %.*s", err.msg,
	    (int)(text.len < 300 ? text.len : 300), text.ptr);
	return root;
}

/* A body with what a previous response and one more hold. */
static enum err_code
build(const char *body, const struct recall_found *found, bool keep, struct recalled *ret)
{
	struct recall_wants w;
	struct jval root = parse(str_c(body));
	enum err_code rc = recall_read(a, root, &w, &err);
	return rc == ERR_OK ? recall_build(a, root, &w, found, STR("openai"), keep, ret, &err) : rc;
}

#define INPUT                                                                                      \
	"[{\"id\":\"msg_otari_1\",\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":"  \
	"\"input_text\",\"text\":\"one\"}]}]"
#define OUTPUT                                                                                     \
	"[{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]},{\"type\":\"function_call\","    \
	"\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":\"f\",\"arguments\":"                     \
	"\"{\\\"n\\\":18446744073709551615}\",\"x\":0.70},{\"id\":\"otari_ci_1\",\"type\":"        \
	"\"code_interpreter_call\",\"code\":\"1\",\"container_id\":\"otari_cntr_1\"}]"

static const struct store_response previous = {
    .id = STR_INIT("resp_1"),
    .provider = STR_INIT("openai"),
    .input_json = STR_INIT(INPUT),
    .response_json = STR_INIT("{\"id\":\"resp_1\",\"output\":" OUTPUT ",\"instructions\":\"old\"}"),
};
static const struct store_response foreign = {
    .id = STR_INIT("resp_1"),
    .provider = STR_INIT("claude"),
    .input_json = STR_INIT(INPUT),
    .response_json = STR_INIT("{\"id\":\"resp_1\",\"output\":" OUTPUT "}"),
};
static const size_t first_holder[4] = {0, 0, 0, 0};

#define SENT_INPUT                                                                                 \
	"{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"  \
	"\"one\"}]}"
#define SENT_REASONING "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}"
#define SENT_CALLS                                                                                 \
	"{\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"f\",\"arguments\":"         \
	"\"{\\\"n\\\":18446744073709551615}\",\"x\":0.70},{\"id\":\"otari_ci_1\",\"type\":"        \
	"\"code_interpreter_call\",\"code\":\"1\",\"container_id\":\"otari_cntr_1\"}"

Test(recall, puts_history_in_front_of_the_input, .init = set_up, .fini = tear_down)
{
	static const struct {
		const char *name, *body, *sent;
		const struct store_response *previous;
	} rows[] = {
	    {"a text",
		"{\"model\":\"m\",\"previous_response_id\":\"resp_1\",\"input\":\"t\\u0077o\","
		"\"unknown\":1e400}",
		"{\"input\":[" SENT_INPUT "," SENT_REASONING "," SENT_CALLS
		",{\"role\":\"user\",\"content\":\"t\\u0077o\"}],\"model\":\"m\",\"unknown\":"
		"1e400}",
		&previous},
	    {"an output of the call that is remembered",
		"{\"previous_response_id\":\"resp_1\",\"input\":[{\"type\":\"function_call_"
		"output\",\"call_id\":\"call_1\",\"output\":\"4\"}]}",
		"{\"input\":[" SENT_INPUT "," SENT_REASONING "," SENT_CALLS
		",{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"4\"}]}",
		&previous},
	    {"another provider's reasoning stays behind",
		"{\"previous_response_id\":\"resp_1\",\"input\":[]}",
		"{\"input\":[" SENT_INPUT "," SENT_CALLS "]}", &foreign},
	    {"no input at all", "{\"previous_response_id\":\"resp_1\",\"model\":\"m\"}",
		"{\"input\":[" SENT_INPUT "," SENT_REASONING "," SENT_CALLS "],\"model\":\"m\"}",
		&previous},
	    {"references, with a type and without",
		"{\"input\":[{\"type\":\"item_reference\",\"id\":\"fc_1\"},{\"id\":"
		"\"msg_otari_1\"},{\"role\":\"user\",\"content\":\"x\"}]}",
		"{\"input\":[{\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"f\","
		"\"arguments\":\"{\\\"n\\\":18446744073709551615}\",\"x\":0.70}," SENT_INPUT
		",{\"role\":\"user\",\"content\":\"x\"}]}",
		NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct recall_found found = {rows[i].previous, &previous, first_holder, 0};
		struct recalled r = {.body = STR_NULL};
		cr_assert_eq(build(rows[i].body, &found, false, &r), ERR_OK, "%s: %s", rows[i].name,
		    err.msg);
		cr_expect(str_eq(r.body, str_c(rows[i].sent)), "%s:\n%.*s\n%s", rows[i].name,
		    STR_FMT(r.body), rows[i].sent);
		cr_expect(r.input.ptr == NULL, "%s", rows[i].name);
	}
}

Test(recall, keeps_items_with_ids_and_typed_parts, .init = set_up, .fini = tear_down)
{
	static const struct recall_found none = {NULL, NULL, NULL, 0};
	struct recall_found found = {&previous, NULL, NULL, 0};
	struct recalled r;
	cr_assert_eq(build("{\"input\":\"hi\"}", &none, true, &r), ERR_OK, "%s", err.msg);
	cr_expect(r.body.ptr == NULL, "nothing to put in front");
	cr_assert_eq(r.item_count, 1);
	struct jval item = jv_at(parse(r.input), 0);
	cr_expect(str_starts(jv_str(a, jv_get(item, "id")), STR("msg_otari_")));
	cr_expect(str_eq(jv_str(a, jv_get(item, "id")), r.item_ids[0]));
	cr_expect(jv_str_is(jv_get(item, "type"), "message"));
	cr_expect(jv_str_is(jv_get(jv_at(jv_get(item, "content"), 0), "text"), "hi"));
	cr_expect(jv_str_is(jv_get(jv_at(jv_get(item, "content"), 0), "type"), "input_text"));

	cr_assert_eq(
	    build("{\"previous_response_id\":\"resp_1\",\"input\":["
		  "{\"role\":\"assistant\",\"content\":\"a\"},"
		  "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"o\"},"
		  "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"},"
		  "{\"type\":\"mystery\"}]}",
		&found, true, &r),
	    ERR_OK, "%s", err.msg);
	struct jval kept = parse(r.input);
	static const char *const prefixes[] = {"msg_otari_1", "rs_1", "fc_1", "otari_ci_1",
	    "msg_otari_", "fco_otari_", "ws_1", "item_otari_"};
	cr_assert_eq(jv_count(kept), ARRAY_LEN(prefixes));
	for (uint32_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		struct str id = jv_str(a, jv_get(jv_at(kept, i), "id"));
		cr_expect(str_starts(id, str_c(prefixes[i])), "%u: %.*s", i, STR_FMT(id));
	}
	cr_expect(
	    jv_str_is(jv_get(jv_at(jv_get(jv_at(kept, 4), "content"), 0), "type"), "output_text"));
	cr_expect_eq(r.item_count, 4, "only what this request brought");
	/* The next turn sends none of the ids that were made here. */
	const struct store_response next = {.id = STR("resp_2"),
	    .provider = STR("openai"),
	    .input_json = r.input,
	    .response_json = STR("{\"output\":[]}")};
	found.previous = &next;
	cr_assert_eq(
	    build("{\"previous_response_id\":\"resp_2\",\"input\":\"x\"}", &found, false, &r),
	    ERR_OK);
	cr_expect(str_find(r.body, STR("msg_otari_")) == SIZE_MAX, "%.*s", STR_FMT(r.body));
	cr_expect(str_find(r.body, STR("fco_otari_")) == SIZE_MAX);
}

Test(recall, refuses_what_cannot_be_meant, .init = set_up, .fini = tear_down)
{
	static const struct store_response damaged = {
	    .id = STR_INIT("resp_1"), .input_json = STR_INIT("["), .response_json = STR_INIT("{}")};
	static const struct {
		const char *body;
		const struct store_response *previous, *holder;
		enum err_code rc;
	} rows[] = {
	    {"{\"previous_response_id\":7,\"input\":\"x\"}", NULL, NULL, ERR_INPUT},
	    {"{\"conversation\":\"conv_1\",\"input\":\"x\"}", NULL, NULL, ERR_INPUT},
	    {"{\"previous_response_id\":\"resp_1\",\"input\":\"x\"}", &damaged, NULL, ERR_INTERNAL},
	    {"{\"input\":[{\"id\":\"other\"}]}", NULL, &previous, ERR_NOTFOUND},
	    {"{\"previous_response_id\":\"resp_1\",\"input\":[{\"id\":\"fc_1\"}]}", &previous,
		&previous, ERR_INPUT},
	    {"{\"input\":[{\"id\":\"fc_1\"},{\"id\":\"fc_1\"}]}", NULL, &previous, ERR_INPUT},
	    {"{\"previous_response_id\":\"resp_1\",\"input\":[{\"type\":\"reasoning\",\"id\":"
	     "\"rs_1\"}]}",
		&previous, NULL, ERR_INPUT},
	    {"{\"input\":[7,null,\"x\",[],{}]}", NULL, NULL, ERR_OK}, /* the reader's to refuse */
	    {"{\"input\":[{\"id\":\"x\",\"call_id\":\"c\"}]}", NULL, NULL, ERR_OK},
	    {"{\"input\":{}}", NULL, NULL, ERR_INPUT},
	    {"{\"previous_response_id\":\"resp_1\",\"input\":7}", &previous, NULL, ERR_INPUT},
	    {"{}", NULL, NULL, ERR_OK},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct recall_found found = {rows[i].previous, rows[i].holder, first_holder, 0};
		struct recalled r;
		cr_expect_eq(build(rows[i].body, &found, true, &r), rows[i].rc, "%s: %s",
		    rows[i].body, err.msg);
	}
	struct buf many = BUF_INIT(1u << 20);
	struct recall_wants w;
	buf_add(&many, STR("{\"input\":[{\"id\":\"x\"}"));
	for (unsigned i = 0; i < RECALL_REFERENCES_MAX; i++)
		buf_printf(&many, ",{\"id\":\"x\"},{\"id\":\"i%u\"}", i);
	buf_add(&many, STR("]}"));
	cr_expect_eq(recall_read(a, parse(buf_str(&many)), &w, &err), ERR_INPUT);
	buf_done(&many);
}

Test(recall, big_histories_go_through_whole, .init = set_up, .fini = tear_down)
{
	size_t n = 8u << 20;
	struct buf text = BUF_INIT(32u << 20);
	buf_add(&text, STR("[{\"id\":\"m\",\"role\":\"user\",\"content\":\""));
	char *room = buf_reserve(&text, n);
	memset(room, 'x', n);
	buf_commit(&text, n);
	buf_add(&text, STR("\"}]"));
	const struct store_response big = {.id = STR("resp_1"),
	    .input_json = buf_str(&text),
	    .response_json = STR("{\"output\":[]}")};
	struct recall_found found = {&big, NULL, NULL, 0};
	struct recalled r;
	cr_assert_eq(
	    build("{\"previous_response_id\":\"resp_1\",\"input\":\"x\"}", &found, true, &r),
	    ERR_OK, "%s", err.msg);
	cr_expect(r.body.len > n && r.input.len > n);
	struct jval content = jv_get(jv_at(jv_get(parse(r.body), "input"), 0), "content");
	cr_expect_eq(jv_str(a, content).len, n);
	buf_done(&text);
}

/* As many references into as many items as may be: a thread of the worker's is away for it. */
Test(recall, the_most_references_find_their_items_soon, .init = set_up, .fini = tear_down)
{
	const size_t items = 200000, asked = RECALL_REFERENCES_MAX, repeated = 100000;
	static size_t holder_of[RECALL_REFERENCES_MAX];
	struct buf history = BUF_INIT(32u << 20), body = BUF_INIT(32u << 20);
	buf_addc(&history, '[');
	for (size_t i = 0; i < items; i++)
		buf_printf(&history, "%s{\"id\":\"i%zu\"}", i > 0 ? "," : "", i);
	buf_addc(&history, ']');
	buf_add(&body, STR("{\"input\":["));
	for (size_t i = 0; i < asked; i++)
		buf_printf(&body, "%s{\"id\":\"i%zu\"}", i > 0 ? "," : "", items - 1 - i);
	struct buf many = BUF_INIT(32u << 20);
	buf_add(&many, buf_str(&body));
	for (size_t i = 0; i < repeated; i++)
		buf_printf(&many, ",{\"id\":\"i%zu\"}", items - asked);
	buf_add(&body, STR("]}"));
	buf_add(&many, STR("]}"));
	const struct store_response big = {.id = STR("resp_1"),
	    .input_json = buf_str(&history),
	    .response_json = STR("{\"output\":[]}")};
	struct recall_found found = {NULL, &big, holder_of, 0};
	struct recalled r;
	int64_t from = clock_mono_us();
	cr_assert_eq(build(body.ptr, &found, false, &r), ERR_OK, "%s", err.msg);
	cr_log_info("%zu references into %zu items: %lld us", asked, items,
	    (long long)(clock_mono_us() - from));
	struct jval input = jv_get(parse(r.body), "input");
	cr_expect_eq(jv_count(input), asked);
	from = clock_mono_us();
	cr_expect_eq(build(many.ptr, &found, false, &r), ERR_INPUT, "they are there twice");
	cr_log_info("%zu repeated ones: %lld us", repeated, (long long)(clock_mono_us() - from));
	buf_done(&history);
	buf_done(&body);
	buf_done(&many);
}

Test(recall, answers_are_kept_as_the_client_got_them, .init = set_up, .fini = tear_down)
{
	static const char whole[] =
	    "{\"id\":\"resp_9\",\"output\":[{\"id\":\"msg_9\"},{\"type\":\"x\"}],\"n\":1e400}";
	char stream[512];
	(void)snprintf(stream, sizeof(stream),
	    "event: response.output_text.delta\ndata: {\"response\":{\"id\":\"no\"}}\n\n"
	    "event: response.completed\ndata: "
	    "{\"type\":\"response.completed\",\"response\":%s}\n\n",
	    whole);
	struct str ids[] = {STR("msg_otari_1"), STR("")};
	struct keep_plan plan = {.is_wanted = true,
	    .input = STR("[]"),
	    .item_ids = ids,
	    .item_count = 2,
	    .retention_hours = 2};
	struct store_response row;
	cr_assert(str_eq(keep_response_of(a, str_c(whole), false), str_c(whole)));
	cr_assert(str_eq(keep_response_of(a, str_c(stream), true), str_c(whole)));
	cr_expect(
	    keep_response_of(a, STR("event: error\ndata: {\"error\":{}}\n\n"), true).ptr == NULL);
	cr_expect(keep_response_of(a, STR(""), true).ptr == NULL);
	cr_expect(keep_response_of(a, STR(": ping\n\n"), true).ptr == NULL);
	cr_assert_eq(keep_row(a, &plan, str_c(whole), 1000, &row, &err), ERR_OK, "%s", err.msg);
	cr_expect(str_eq(row.id, STR("resp_9")));
	cr_expect(row.created_at_s == 1000 && row.expires_at_s == 8200);
	cr_assert_eq(row.item_count, 2, "what has no id cannot be named");
	cr_expect(str_eq(row.item_ids[0], STR("msg_9")));
	plan.retention_hours = 0;
	cr_assert_eq(keep_row(a, &plan, str_c(whole), 1000, &row, &err), ERR_OK);
	cr_expect_eq(row.expires_at_s, 0);
	cr_expect_eq(keep_row(a, &plan, STR("{\"output\":[]}"), 1, &row, &err), ERR_INPUT);
	cr_expect_eq(keep_row(a, &plan, STR("{\"id\":7}"), 1, &row, &err), ERR_INPUT);
	cr_expect_eq(keep_row(a, &plan, STR("nonsense"), 1, &row, &err), ERR_INPUT);
}
