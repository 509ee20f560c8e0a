/* Requests: what is refused and how it is named; what the conversation holds afterwards. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/limits.h"
#include "tests/unit/dialectfix.h"

#define U     "\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"
#define M(s)  "{\"model\":\"m\",\"max_tokens\":5," s "}"
#define MU(s) M(U "," s)
#define C(s)  "{\"model\":\"m\"," s "}"
#define CU(s) C(U "," s)
#define MB(b) M("\"messages\":[{\"role\":\"user\",\"content\":[" b "]}]")
#define CB(b) C("\"messages\":[{\"role\":\"user\",\"content\":[" b "]}]")

static const struct {
	enum wire wire;
	const char *body, *want;
} refused[] = {
    {WIRE_MESSAGES, "[]", "body: Input should be an object"},
    {WIRE_MESSAGES, "{}", "model: Field required"},
    {WIRE_MESSAGES, "{\"model\":5}", "model: Input should be a string"},
    {WIRE_MESSAGES, "{\"model\":\"m\"," U "}", "max_tokens: Field required"},
    {WIRE_MESSAGES, "{\"model\":\"m\",\"model\":\"n\",\"max_tokens\":5," U "}",
	"model: written twice"},
    {WIRE_MESSAGES, "{\"model\":\"m\",\"max_tokens\":\"5\"," U "}",
	"max_tokens: Input should be a number"},
    {WIRE_MESSAGES, M("\"messages\":[]"), "messages: at least one message is required"},
    {WIRE_MESSAGES, M("\"messages\":{}"), "messages: Input should be an array"},
    {WIRE_MESSAGES, M("\"messages\":[5]"), "messages[0]: Input should be an object"},
    {WIRE_MESSAGES, M("\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]"),
	"messages[0].role: Input should be 'user' or 'assistant'"},
    {WIRE_MESSAGES, M("\"messages\":[{\"role\":\"user\"}]"), "messages[0].content: Field required"},
    {WIRE_MESSAGES, M("\"messages\":[{\"role\":\"user\",\"content\":5}]"),
	"messages[0].content: Input should be a string or an array of blocks"},
    {WIRE_MESSAGES, MB("{\"text\":\"x\"}"), "messages[0].content[0].type: Field required"},
    {WIRE_MESSAGES, MB("{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"text\"}"),
	"messages[0].content[1].text: Field required"},
    {WIRE_MESSAGES, MB("{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"x\"}}"),
	"messages[0].content[0].source.media_type: Field required"},
    {WIRE_MESSAGES, MB("{\"type\":\"image\",\"source\":{\"type\":\"ftp\"}}"),
	"messages[0].content[0].source.type: unknown source 'ftp'"},
    {WIRE_MESSAGES, MB("{\"type\":\"tool_result\",\"content\":\"x\"}"),
	"messages[0].content[0].tool_use_id: Field required"},
    {WIRE_MESSAGES, MB("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":\"{}\"}"),
	"messages[0].content[0].input: Input should be an object"},
    {WIRE_MESSAGES,
	MB("{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{\"type\":\"text\","
	   "\"text\":1}]}"),
	"messages[0].content[0].content[0].text: Input should be a string"},
    {WIRE_MESSAGES, MU("\"stream\":\"yes\""), "stream: Input should be a boolean"},
    {WIRE_MESSAGES, MU("\"tools\":[{\"name\":\"f\"}]"), "tools[0].input_schema: Field required"},
    {WIRE_MESSAGES,
	MU("\"tools\":[{\"type\":\"code_execution_20250825\",\"container\":{\"file_ids\":[1]}}]"),
	"tools[0].container.file_ids[0]: Input should be a string"},
    {WIRE_MESSAGES, MU("\"tool_choice\":\"auto\""), "tool_choice: Input should be an object"},
    {WIRE_MESSAGES, MU("\"tool_choice\":{\"type\":\"tool\"}"), "tool_choice.name: Field required"},
    {WIRE_MESSAGES, MU("\"max_tool_iterations\":0"),
	"max_tool_iterations: Input should be an integer from 1 to 25"},
    {WIRE_MESSAGES, MU("\"max_tool_iterations\":26"),
	"max_tool_iterations: Input should be an integer from 1 to 25"},
    {WIRE_MESSAGES, MU("\"max_tool_iterations\":2.5"),
	"max_tool_iterations: Input should be an integer from 1 to 25"},
    {WIRE_MESSAGES, MU("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":\"x\"}"),
	"thinking.budget_tokens: Input should be a number"},
    {WIRE_CHAT, "{}", "model: Field required"},
    {WIRE_CHAT, C("\"messages\":[{\"role\":\"wizard\"}]"),
	"messages[0].role: Input should be 'system', 'developer', 'user', 'assistant' or 'tool'"},
    {WIRE_CHAT, C("\"messages\":[{\"role\":\"user\",\"content\":null}]"),
	"messages[0].content: Field required"},
    {WIRE_CHAT, C("\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]"),
	"messages[0].tool_call_id: Field required"},
    {WIRE_CHAT, C("\"messages\":[{\"role\":\"function\",\"name\":\"f\",\"content\":\"x\"}]"),
	"messages[0].role: no function_call before this message"},
    {WIRE_CHAT, C("\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{}}]}]"),
	"messages[0].tool_calls[0].id: Field required"},
    {WIRE_CHAT,
	C("\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"function\":{}}]}"
	  "]"),
	"messages[0].tool_calls[0].function.name: Field required"},
    {WIRE_CHAT, CB("{\"type\":\"image_url\",\"image_url\":{}}"),
	"messages[0].content[0].image_url.url: Field required"},
    {WIRE_CHAT, CB("{\"type\":\"file\",\"file\":{}}"),
	"messages[0].content[0].file: file_id or file_data is required"},
    {WIRE_CHAT, CU("\"n\":0"), "n: Input should be an integer from 1 to 128"},
    {WIRE_CHAT, CU("\"n\":1e9"), "n: Input should be an integer from 1 to 128"},
    {WIRE_CHAT, CU("\"stop\":[1]"), "stop[0]: Input should be a string"},
    {WIRE_CHAT, CU("\"stop\":5"), "stop: Input should be a string or an array of strings"},
    {WIRE_CHAT, CU("\"tools\":[{\"type\":\"function\"}]"), "tools[0].function: Field required"},
    {WIRE_CHAT, CU("\"tools\":[{\"type\":\"function\",\"function\":{}}]"),
	"tools[0].function.name: Field required"},
    {WIRE_CHAT, CU("\"tool_choice\":5"), "tool_choice: Input should be a string or an object"},
    {WIRE_CHAT, CU("\"response_format\":{\"type\":\"json_schema\"}"),
	"response_format.json_schema: Field required"},
    {WIRE_CHAT, CU("\"stream_options\":{\"include_usage\":1}"),
	"stream_options.include_usage: Input should be a boolean"},
};

Test(dialect_in, refusals_name_the_member, .timeout = 20)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct arena *a = arena_new(16u << 20);
		struct err e = {0};
		struct conversation *c = fix_decode(a, refused[i].wire, str_c(refused[i].body), &e);
		cr_expect(c == NULL, "%s was taken", refused[i].body);
		cr_expect_str_eq(e.msg, refused[i].want, "%s: %s", refused[i].body, e.msg);
		cr_expect_eq(e.code, ERR_INPUT);
		arena_free(&a);
	}
}

static struct conversation *
decode(struct arena *a, enum wire w, const char *body)
{
	struct err e = {0};
	struct conversation *c = fix_decode(a, w, str_c(body), &e);
	cr_assert(c != NULL, "%s: %s", body, e.msg);
	return c;
}

Test(dialect_in, code_is_declared_by_type_alone_in_every_dialect, .timeout = 10)
{
	static const struct {
		const char *tool;
		enum tool_kind messages, chat;
	} rows[] = {{"{\"type\":\"otari_code_execution\"}", TOOL_CODE, TOOL_CODE},
	    {"{\"type\":\"code_execution\"}", TOOL_CODE, TOOL_CODE},
	    {"{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\",\"file_ids\":[\"f1\","
	     "\"f2\"]}}",
		TOOL_CODE, TOOL_CODE},
	    {"{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}", TOOL_CODE,
		TOOL_CODE},
	    {"{\"type\":\"code_execution_next\"}", TOOL_CODE, TOOL_CODE},
	    {"{\"type\":\"code_executioner\"}", TOOL_OPAQUE, TOOL_OPAQUE},
	    {"{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}", TOOL_OPAQUE,
		TOOL_OPAQUE},
	    {"{\"type\":\"custom\",\"name\":\"code_execution\",\"input_schema\":{},\"custom\":{"
	     "\"name\":\"x\"}}",
		TOOL_FUNCTION, TOOL_FUNCTION},
	    {"{\"name\":\"code_execution\",\"input_schema\":{},\"function\":{\"name\":\"code_"
	     "execution\"}}",
		TOOL_FUNCTION, TOOL_FUNCTION}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct str body = arena_printf(a, MU("\"tools\":[%s]"), rows[i].tool);
		struct conversation *m = decode(a, WIRE_MESSAGES, body.ptr);
		struct conversation *c = decode(a, WIRE_CHAT, body.ptr);
		cr_expect_eq(m->tools->kind, rows[i].messages, "%s", rows[i].tool);
		cr_expect_eq(c->tools->kind, rows[i].chat, "%s", rows[i].tool);
		if (i == 2)
			cr_expect_eq(c->tools->container_file_count, 2);
		arena_free(&a);
	}
}

Test(dialect_in, gateway_members_are_kept_apart, .timeout = 10)
{
	static const char body[] =
	    MU("\"max_tool_iterations\":25,\"tools_header\":\"h\",\"session_label\":\"s\","
	       "\"guardrails\":[],"
	       "\"mcp_server_ids\":[\"x\"],\"thread\":{},\"mcp_servers\":[],\"tools\":[{\"type\":"
	       "\"code_execution\",\"purpose_hint\":\"p\"}]");
	for (int w = 0; w < 2; w++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = decode(a, w ? WIRE_MESSAGES : WIRE_CHAT, body);
		cr_expect_eq(c->max_tool_iterations, 25);
		cr_expect(str_eq(c->tools_header, STR("h")) && str_eq(c->session_label, STR("s")));
		cr_expect(c->has_mcp_server_ids && c->has_thread);
		cr_expect(str_eq(c->tools->purpose_hint, STR("p")));
		cr_expect(str_eq(c->tools->raw, STR("{\"type\":\"code_execution\"}")));
		bool servers = false;
		for (const struct field *f = c->extra; f != NULL; f = f->next) {
			cr_expect(!str_eq(f->key, STR("tools_header")) &&
				  !str_eq(f->key, STR("guardrails")));
			servers = servers || str_eq(f->key, STR("mcp_servers"));
		}
		cr_expect(servers, "the vendor's own member is the client's");
		arena_free(&a);
	}
}

Test(dialect_in, messages_settings, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = decode(a, WIRE_MESSAGES,
	    MU("\"system\":[{\"type\":\"text\",\"text\":\"s\"}],\"stream\":true,\"temperature\":"
	       "null,"
	       "\"stop_sequences\":[\"a\",\"b\"],\"metadata\":{\"user_id\":\"u\"},\"thinking\":{"
	       "\"type\":"
	       "\"enabled\",\"budget_tokens\":8000},\"tool_choice\":{\"type\":\"tool\",\"name\":"
	       "\"t\","
	       "\"disable_parallel_tool_use\":true},\"output_config\":{\"format\":{\"type\":\"json_"
	       "schema\","
	       "\"schema\":{\"a\":1}}}"));
	cr_expect(c->stream && c->stop_count == 2 && c->temperature_raw.ptr == NULL);
	cr_expect(str_eq(c->user, STR("u")) && str_eq(c->effort, STR("medium")));
	cr_expect(str_eq(c->budget_raw, STR("8000")));
	cr_expect(c->choice.kind == CHOICE_NAMED && c->choice.parallel == 0);
	cr_expect(
	    c->format.kind == FORMAT_JSON_SCHEMA && str_eq(c->format.schema_raw, STR("{\"a\":1}")));
	cr_expect(c->messages->role == MESSAGE_SYSTEM && c->messages->next == c->last);
	arena_free(&a);
}

Test(dialect_in, a_turn_that_ended_with_our_execution_is_continued_by_the_user, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = decode(a, WIRE_MESSAGES,
	    M("\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
	      "\"content\":[{\"type\":"
	      "\"server_tool_use\",\"id\":\"otari_srvtoolu_1\",\"name\":\"code_execution\","
	      "\"input\":{\"code\":"
	      "\"1\"}},{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"otari_srvtoolu_"
	      "1\",\"content\":"
	      "{\"type\":\"code_execution_result\",\"stdout\":\"x\",\"stderr\":\"\",\"return_"
	      "code\":0,"
	      "\"content\":[]}}]}]"));
	cr_expect(c->last->role == MESSAGE_USER);
	cr_expect(str_eq(c->last->parts->text, STR("Continue.")));
	arena_free(&a);
}

Test(dialect_in, reasoning_of_a_chat_server_comes_back_to_it_alone, .timeout = 10)
{
	static const char body[] = M(
	    "\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
	    "\"content\":[{\"type\":"
	    "\"thinking\",\"thinking\":\"hm\",\"signature\":\"otari_rs_reasoning\"},{\"type\":"
	    "\"tool_use\","
	    "\"id\":\"a\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	    "\"tool_result\",\"tool_use_id\":\"a\"}]}]");
	struct arena *a = arena_new(16u << 20);
	struct str chat = fix_translate(a, WIRE_MESSAGES, WIRE_CHAT, str_c(body));
	struct str messages = fix_translate(a, WIRE_MESSAGES, WIRE_MESSAGES, str_c(body));
	cr_expect(
	    str_find(chat, STR("\"reasoning\":\"hm\",\"tool_calls\"")) != SIZE_MAX, "%s", chat.ptr);
	cr_expect_eq(str_find(messages, STR("thinking")), SIZE_MAX, "%s", messages.ptr);
	arena_free(&a);
}

Test(dialect_in, what_the_other_wire_cannot_say_is_named, .timeout = 10)
{
	static const struct {
		enum wire from;
		const char *body, *want;
	} rows[] = {
	    {WIRE_MESSAGES,
		MU("\"top_k\":5,\"context_management\":{},\"mcp_servers\":[],\"cache_control\":{},"
		   "\"inference_geo\":null,\"bad\\r\\nname\":1,\"metadata\":{\"user_id\":\"u\"},"
		   "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}]"),
		"messages.metadata.user_id,messages.top_k,messages.context_management,"
		"messages.mcp_servers,messages.other,messages.tools.web_search_20250305"},
	    {WIRE_CHAT,
		CU("\"seed\":1,\"logit_bias\":{},\"presence_penalty\":1,\"store\":true,\"stop\":\" "
		   "\","
		   "\"response_format\":{\"type\":\"json_object\"},\"logprobs\":false"),
		"chat.stop,chat.response_format.json_object,chat.seed,chat.logit_bias,chat."
		"presence_penalty"},
	    {WIRE_MESSAGES,
		MB("{\"type\":\"hologram\"},{\"type\":\"image\",\"source\":{\"type\":\"file\","
		   "\"file_id\":\"f\"}},{\"type\":\"document\",\"source\":{\"type\":\"url\","
		   "\"url\":"
		   "\"u\"}}"),
		"messages.content.hologram,messages.content.image,messages.content.document_url"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = decode(a, rows[i].from, rows[i].body);
		struct encode_options opt = {.model = STR("m")};
		struct buf out = BUF_INIT(1u << 20);
		enum wire to = rows[i].from == WIRE_CHAT ? WIRE_MESSAGES : WIRE_CHAT;
		cr_expect_eq(dialect_of(to)->encode(c, &opt, &out, NULL), ERR_OK);
		struct str dropped = fix_dropped(a, c);
		cr_expect(str_eq(dropped, str_c(rows[i].want)), "%s", dropped.ptr);
		buf_done(&out);
		arena_free(&a);
	}
}

/* A20: a parameter is mapped, or refused, or named; this is the mapped part, one by one. */
Test(dialect_in, a20_each_parameter_of_messages_on_chat, .timeout = 10)
{
	static const struct {
		const char *member, *plain, *native;
	} rows[] = {
	    {"\"temperature\":0.70", "\"temperature\":0.70", "\"temperature\":0.70"},
	    {"\"top_p\":1e-1", "\"top_p\":1e-1", "\"top_p\":1e-1"},
	    {"\"stop_sequences\":[\"a\",\"b\",\"c\",\"d\",\"e\"]",
		"\"stop\":[\"a\",\"b\",\"c\",\"d\"]", "\"stop\":[\"a\",\"b\",\"c\",\"d\"]"},
	    {"\"x\":1", "\"max_tokens\":5", "\"max_completion_tokens\":5"},
	    {"\"stream\":true", "\"stream\":true,\"stream_options\":{\"include_usage\":true}",
		"\"stream\":true,\"stream_options\":{\"include_usage\":true}"},
	    {"\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}",
		"\"reasoning_effort\":\"low\"", "\"reasoning_effort\":\"low\""},
	    {"\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":50000}",
		"\"reasoning_effort\":\"high\"", "\"reasoning_effort\":\"xhigh\""},
	    {"\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"max\"}",
		"\"reasoning_effort\":\"high\"", "\"reasoning_effort\":\"max\""},
	    {"\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"a\":0.7}}}",
		"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
		"\"response\",\"schema\":"
		"{\"a\":0.7}}}",
		"\"response_format\":{"},
	    {"\"output_format\":{\"type\":\"json_schema\",\"schema\":{\"a\":0.7}}",
		"\"schema\":{\"a\":0.7}", "\"schema\":{\"a\":0.7}"},
	    {"\"metadata\":{\"user_id\":\"u\"}", "", "\"user\":\"u\""},
	    {"\"service_tier\":\"standard_only\"", "", "\"service_tier\":\"default\""},
	    {"\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],\"tool_choice\":{\"type\":\"tool\","
	     "\"name\":\"f\"}",
		"\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
		"\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct str body = arena_printf(a, MU("%s"), rows[i].member);
		struct str plain = fix_translate(a, WIRE_MESSAGES, WIRE_CHAT, body);
		struct str native = fix_translate_native(a, WIRE_MESSAGES, WIRE_CHAT, body);
		cr_expect(str_find(plain, str_c(rows[i].plain)) != SIZE_MAX, "%s: %s",
		    rows[i].member, plain.ptr);
		cr_expect(str_find(native, str_c(rows[i].native)) != SIZE_MAX, "%s: %s",
		    rows[i].member, native.ptr);
		arena_free(&a);
	}
}

Test(dialect_in, chat_without_a_counterpart_is_refused, .timeout = 10)
{
	static const struct {
		const char *body, *want;
	} rows[] = {{CU("\"n\":2"), "error: n: this model gives one choice"},
	    {CU("\"logprobs\":true"), "error: logprobs: this model gives none"},
	    {CB("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"x\",\"format\":\"wav\"}}"),
		"error: input_audio: this model takes no audio"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct str s = fix_translate(a, WIRE_CHAT, WIRE_MESSAGES, str_c(rows[i].body));
		cr_expect(str_eq(s, str_c(rows[i].want)), "%s", s.ptr);
		arena_free(&a);
	}
}

Test(dialect_in, a12_ids_are_rewritten_on_both_halves_and_stay_distinct, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct str s = fix_translate(a, WIRE_CHAT, WIRE_MESSAGES,
	    STR(C("\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
		  "\"tool_calls\":["
		  "{\"id\":\"a.b\",\"function\":{\"name\":\"f\"}},{\"id\":\"a:b\",\"function\":{"
		  "\"name\":\"f\"}},"
		  "{\"id\":\"ok-1\",\"function\":{\"name\":\"f\"}}]},{\"role\":\"tool\",\"tool_"
		  "call_id\":\"a:b\","
		  "\"content\":\"1\"},{\"role\":\"tool\",\"tool_call_id\":\"a.b\",\"content\":"
		  "\"2\"},{\"role\":"
		  "\"tool\",\"tool_call_id\":\"ok-1\",\"content\":\"3\"}]")));
	struct jval v;
	cr_assert_eq(jdoc_parse(a, s, &v, NULL), ERR_OK);
	struct jval calls = jv_get(jv_at(jv_get(v, "messages"), 1), "content");
	struct jval results = jv_get(jv_at(jv_get(v, "messages"), 2), "content");
	struct str id[2], back[2];
	for (uint32_t i = 0; i < 2; i++) {
		id[i] = jv_str(a, jv_get(jv_at(calls, i), "id"));
		back[i] = jv_str(a, jv_get(jv_at(results, i), "tool_use_id"));
	}
	cr_expect(
	    str_eq(id[0], back[1]) && str_eq(id[1], back[0]) && !str_eq(id[0], id[1]), "%s", s.ptr);
	cr_expect(str_starts(id[0], STR("toolu_")));
	cr_expect(jv_str_is(jv_get(jv_at(calls, 2), "id"), "ok-1"));
	arena_free(&a);
}

Test(dialect_in, mistral_gets_ids_and_an_order_that_it_takes, .timeout = 10)
{
	static const char chat[] = C("\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":"
				     "\"q\"},{\"role\":\"assistant\",\"content\":\"\","
				     "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\","
				     "\"function\":{\"name\":\"f\",\"arguments\":"
				     "\"{}\"}},{\"id\":\"abcDEF123\",\"function\":{\"name\":\"f\","
				     "\"arguments\":\"{}\"}}]},{\"role\":\"tool\","
				     "\"tool_call_id\":\"call_1\",\"content\":\"1\"},{\"role\":"
				     "\"tool\",\"tool_call_id\":\"abcDEF123\","
				     "\"content\":\"2\"},{\"role\":\"user\",\"content\":\"go\"}]");
	struct arena *a = arena_new(16u << 20);
	struct encode_options opt = {.is_mistral = true};
	struct str s = fix_translate_with(a, WIRE_CHAT, WIRE_CHAT, str_c(chat), opt);
	struct jval v, m;
	cr_assert_eq(jdoc_parse(a, s, &v, NULL), ERR_OK, "%s", s.ptr);
	m = jv_get(v, "messages");
	struct str id = jv_str(a, jv_get(jv_at(jv_get(jv_at(m, 1), "tool_calls"), 0), "id"));
	cr_expect(
	    id.len == 9 && str_eq(id, jv_str(a, jv_get(jv_at(m, 2), "tool_call_id"))), "%s", s.ptr);
	cr_expect(jv_str_is(jv_get(jv_at(m, 3), "tool_call_id"), "abcDEF123"), "%s", s.ptr);
	cr_expect(jv_str_is(jv_get(jv_at(m, 4), "role"), "assistant"), "%s", s.ptr);
	cr_expect(jv_str_is(jv_get(jv_at(m, 5), "role"), "user"), "%s", s.ptr);
	cr_expect(!jv_present(jv_get(v, "stream_options")), "%s", s.ptr);
	arena_free(&a);
}

Test(dialect_in, long_tool_names_come_back, .timeout = 10)
{
	char name[101];
	memset(name, 'n', sizeof(name) - 1);
	name[100] = '\0';
	struct arena *a = arena_new(16u << 20);
	struct str body =
	    arena_printf(a, MU("\"tools\":[{\"name\":\"%s\",\"input_schema\":{}}]"), name);
	struct conversation *c = decode(a, WIRE_MESSAGES, body.ptr);
	struct str s = fix_translate(a, WIRE_MESSAGES, WIRE_CHAT, body);
	struct jval v;
	cr_assert_eq(jdoc_parse(a, s, &v, NULL), ERR_OK);
	struct str cut =
	    jv_str(a, jv_get(jv_get(jv_at(jv_get(v, "tools"), 0), "function"), "name"));
	cr_expect_eq(cut.len, 64, "%s", s.ptr);
	struct str answer = arena_printf(a,
	    "{\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":"
	    "\"a\",\"function\":"
	    "{\"name\":\"%.*s\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}",
	    STR_FMT(cut));
	struct fix_way way = {WIRE_CHAT, WIRE_MESSAGES, false, false, false, c};
	struct fix_answer r;
	fix_answer(a, &way, answer, 0, &r);
	cr_expect(str_find(r.bytes, arena_printf(a, "\"name\":\"%s\"", name)) != SIZE_MAX, "%s",
	    r.bytes.ptr);
	arena_free(&a);
}

Test(dialect_in, hostile_bodies_are_cheap, .timeout = 10)
{
	struct arena *a = arena_new(64u << 20);
	struct buf b = BUF_INIT(1u << 20);
	struct err e;
	buf_add(&b, STR("{\"model\":\"m\",\"max_tokens\":1," U));
	for (int i = 0; i < 2000; i++)
		buf_printf(&b, ",\"k%d\":1", i);
	buf_addc(&b, '}');
	cr_expect(fix_decode(a, WIRE_MESSAGES, buf_str(&b), &e) == NULL);
	cr_expect_str_eq(e.msg, "body: more than 1024 members");
	buf_done(&b);
	arena_free(&a);
}
