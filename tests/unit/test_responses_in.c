/* Responses requests: what is refused and how it is named, what the conversation holds, and what
 * the gateway's own changes become when it goes on to a provider. */
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"
#include "worker/dialect/origin.h"

#define R(s)  "{\"model\":\"m\"," s "}"
#define RU(s) R("\"input\":\"q\"," s)
#define RI(s) R("\"input\":[" s "]")
#define CALL(id, name)                                                                             \
	"{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"" name                      \
	"\",\"arguments\":\"{}\"}"

static const struct {
	const char *body, *want;
	enum err_code code;
} refused[] = {
    {"[]", "body: Input should be an object", ERR_INPUT},
    {"{\"input\":\"q\"}", "model: Field required", ERR_INPUT},
    {"{\"model\":\"m\"}", "input: Field required", ERR_INPUT},
    {R("\"input\":5"), "input: Input should be a string or an array of items", ERR_INPUT},
    {R("\"input\":[]"), "input: at least one item is required", ERR_INPUT},
    {R("\"input\":\"q\",\"input\":\"r\""), "input: written twice", ERR_INPUT},
    {RU("\"instructions\":[]"), "instructions: Input should be a string", ERR_INPUT},
    {RU("\"background\":true"), "background: not supported", ERR_INPUT},
    {RU("\"store\":\"yes\""), "store: Input should be a boolean", ERR_INPUT},
    {RU("\"previous_response_id\":\"resp_1\",\"conversation\":\"conv_1\""),
	"previous_response_id: not together with conversation", ERR_INPUT},
    {RU("\"include\":[5]"), "include[0]: Input should be a string", ERR_INPUT},
    {RU("\"max_output_tokens\":\"9\""), "max_output_tokens: Input should be a number", ERR_INPUT},
    {RU("\"reasoning\":{\"effort\":5}"), "reasoning.effort: Input should be a string", ERR_INPUT},
    {RU("\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":5}}"),
	"text.format.schema: Input should be an object", ERR_INPUT},
    {RU("\"tools\":[{\"name\":\"f\"}]"), "tools[0].type: Field required", ERR_INPUT},
    {RU("\"tools\":[{\"type\":\"function\"}]"), "tools[0].name: Field required", ERR_INPUT},
    {RU("\"tools\":[{\"type\":\"code_interpreter\",\"container\":{\"file_ids\":[1]}}]"),
	"tools[0].container.file_ids[0]: Input should be a string", ERR_INPUT},
    {RU("\"tool_choice\":5"), "tool_choice: Input should be a string or an object", ERR_INPUT},
    {RU("\"tool_choice\":{\"type\":\"function\"}"), "tool_choice.name: Field required", ERR_INPUT},
    {RU("\"tool_choice\":{\"type\":\"allowed_tools\"}"), "tool_choice.tools: Field required",
	ERR_INPUT},
    {RI("5"), "input[0]: Input should be an object", ERR_INPUT},
    {RI("{}"), "input[0].type: Field required", ERR_INPUT},
    {RI("{\"role\":\"tool\",\"content\":\"x\"}"),
	"input[0].role: Input should be 'assistant', 'system', 'developer' or 'user'", ERR_INPUT},
    {RI("{\"role\":\"user\"}"), "input[0].content: Field required", ERR_INPUT},
    {RI("{\"role\":\"user\",\"content\":[{\"text\":\"x\"}]}"),
	"input[0].content[0].type: Field required", ERR_INPUT},
    {RI("{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}"),
	"input[0].content[0]: One of image_url and file_id is required", ERR_INPUT},
    {RI("{\"role\":\"user\",\"content\":[{\"type\":\"input_file\"}]}"),
	"input[0].content[0]: One of file_id, file_data and file_url is required", ERR_INPUT},
    {RI("{\"type\":\"function_call\",\"name\":\"f\"}"), "input[0].call_id: Field required",
	ERR_INPUT},
    {RI(CALL("a", "f") ",{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":5}"),
	"input[1].output: Input should be a string or an array of parts", ERR_INPUT},
    {RI("{\"type\":\"additional_tools\",\"tools\":[{\"type\":\"function\"}]}"),
	"input[0].tools[0].name: Field required", ERR_INPUT},
    {RI("{\"type\":\"item_reference\",\"id\":\"rs_1\"}"),
	"Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try "
	"again with `store` set to true, or remove this item from your input.",
	ERR_NOTFOUND},
    {RI("{\"id\":\"msg_1\"}"),
	"Item with id 'msg_1' not found. Items are not persisted when `store` is set to false. Try "
	"again with `store` set to true, or remove this item from your input.",
	ERR_NOTFOUND},
};

Test(responses_in, refusals_name_the_member, .timeout = 20)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct arena *a = arena_new(16u << 20);
		struct err e = {0};
		struct conversation *c = fix_decode(a, WIRE_RESPONSES, str_c(refused[i].body), &e);
		cr_expect(c == NULL, "%s was taken", refused[i].body);
		cr_expect_str_eq(e.msg, refused[i].want, "%s: %s", refused[i].body, e.msg);
		cr_expect_eq(e.code, refused[i].code, "%s", refused[i].body);
		arena_free(&a);
	}
}

Test(responses_in, b10_an_output_without_a_call_id_is_refused_at_the_door, .timeout = 10)
{
	static const char *const items[] = {"{\"type\":\"function_call_output\",\"output\":\"x\"}",
	    "{\"type\":\"function_call_output\",\"call_id\":null,\"output\":\"x\"}",
	    "{\"type\":\"custom_tool_call_output\",\"output\":\"x\"}"};
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		struct arena *a = arena_new(16u << 20);
		struct err e = {0};
		struct str body = arena_printf(a, RI(CALL("a", "f") ",%s"), items[i]);
		cr_expect(fix_decode(a, WIRE_RESPONSES, body, &e) == NULL);
		cr_expect_str_eq(e.msg, "input[1].call_id: Field required");
		arena_free(&a);
	}
	struct arena *a = arena_new(16u << 20);
	struct err e = {0};
	cr_expect(
	    fix_decode(a, WIRE_RESPONSES,
		STR(RI("{\"type\":\"function_call_output\",\"call_id\":\"\",\"output\":\"x\"}")),
		&e) == NULL);
	cr_expect_str_eq(e.msg, "input[0].call_id: Input should not be empty");
	arena_free(&a);
}

Test(responses_in, settings, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES,
	    RU("\"store\":false,\"previous_response_id\":\"resp_1\",\"include\":[\"a\",\"b\"],"
	       "\"instructions\":\"i\",\"safety_identifier\":\"u\",\"reasoning\":{\"effort\":"
	       "\"low\",\"summary\":\"auto\"},\"text\":{\"verbosity\":\"high\",\"format\":{"
	       "\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"a\":1},\"strict\":true}},"
	       "\"parallel_tool_calls\":false,\"temperature\":null,\"max_output_tokens\":9,"
	       "\"tools\":[{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\","
	       "\"file_ids\":[\"f1\",\"f2\"]}}],\"tool_choice\":{\"type\":\"code_interpreter\"}"));
	cr_expect_eq(c->store, 0);
	cr_expect(str_eq(c->previous_response_id, STR("resp_1")));
	cr_expect(conversation_includes(c, "b") && !conversation_includes(c, "c"));
	cr_expect(str_eq(c->include_raw, STR("[\"a\",\"b\"]")));
	cr_expect(str_eq(c->instructions_raw, STR("\"i\"")));
	cr_expect(c->messages->role == MESSAGE_SYSTEM && c->messages->is_instructions);
	cr_expect(str_eq(c->user, STR("u")) && str_eq(c->effort, STR("low")));
	cr_expect(str_eq(c->reasoning_summary, STR("auto")));
	cr_expect(str_eq(c->verbosity, STR("high")) && c->format.strict == 1);
	cr_expect(c->choice.kind == CHOICE_OPAQUE && c->choice.parallel == 0);
	cr_expect(c->tools->kind == TOOL_CODE && c->tools->container_file_count == 2);
	cr_expect(c->temperature_raw.ptr == NULL && str_eq(c->max_tokens_raw, STR("9")));
	c = fix_must_decode(a, WIRE_RESPONSES, R("\"previous_response_id\":\"resp_1\""));
	cr_expect(c->store == -1 && c->messages == NULL);
	arena_free(&a);
}

Test(responses_in, b9_every_item_joins_by_call_id_in_order, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES,
	    RI("{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":\"f\","
	       "\"arguments\":\"\"},{\"type\":\"function_call\",\"id\":\"fc_2\",\"call_id\":"
	       "\"call_2\",\"name\":\"f\"},{\"type\":\"function_call_output\",\"id\":\"fc_2\","
	       "\"call_id\":\"call_1\",\"output\":\"1\"},{\"type\":\"function_call_output\","
	       "\"call_id\":\"call_2\",\"output\":\"2\"}"));
	struct message *m = c->messages;
	cr_expect(str_eq(m->parts->id, STR("call_1")) && m->role == MESSAGE_ASSISTANT);
	cr_expect(str_eq(m->next->parts->id, STR("call_2")));
	m = m->next->next;
	cr_expect(m->role == MESSAGE_USER && str_eq(m->parts->id, STR("call_1")));
	cr_expect(str_eq(m->parts->next->id, STR("call_2")) && m->next == NULL);
	arena_free(&a);
}

Test(responses_in, b11_a_response_that_nobody_put_in_front_is_not_found, .timeout = 10)
{
	static const char body[] = RU("\"previous_response_id\":\"resp_1\"");
	struct arena *a = arena_new(16u << 20);
	static const enum wire others[] = {WIRE_CHAT, WIRE_MESSAGES};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct str s = fix_translate(a, WIRE_RESPONSES, others[i], str_c(body));
		cr_expect(str_eq(s, STR("error: Previous response with id 'resp_1' not found.")),
		    "%s", s.ptr);
		struct conversation *c = fix_must_decode(a, WIRE_RESPONSES, body);
		c->previous_response_id = STR_NULL; /* as the store does */
		cr_expect(!str_starts(fix_encode(a, others[i], c, false), STR("error")));
		s = fix_translate(
		    a, WIRE_RESPONSES, others[i], STR(RU("\"conversation\":\"conv_1\"")));
		cr_expect(str_starts(s, STR("error: conversation: ")), "%s", s.ptr);
	}
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES, body);
	c->previous_response_id = STR_NULL;
	cr_expect(str_find(fix_encode(a, WIRE_RESPONSES, c, true), STR("resp_1")) == SIZE_MAX);
	arena_free(&a);
}

Test(responses_in, b14_a_summary_beside_a_server_tool_is_no_conflict, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct str s = fix_translate(a, WIRE_RESPONSES, WIRE_MESSAGES,
	    STR(RU("\"reasoning\":{\"summary\":\"auto\",\"effort\":\"high\"},\"tools\":[{\"type\":"
		   "\"web_search\"},{\"type\":\"function\",\"name\":\"f\"}]")));
	cr_expect(
	    str_find(s, STR("\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"}")) !=
		SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}

Test(responses_in, what_other_wires_cannot_say_is_named, .timeout = 20)
{
	static const struct {
		enum wire from, to;
		const char *body, *want;
	} rows[] = {
	    {WIRE_RESPONSES, WIRE_CHAT,
		RU("\"truncation\":\"auto\",\"top_logprobs\":0,\"max_tool_calls\":3,\"metadata\":{}"
		   ","
		   "\"user\":\"u\",\"text\":{\"verbosity\":\"low\"},\"background\":false,"
		   "\"include\":[],"
		   "\"tools\":[{\"type\":\"mcp\",\"server_label\":\"l\"}]"),
		"responses.user,responses.text.verbosity,responses.truncation,responses.max_tool_"
		"calls,responses.tools.mcp"},
	    {WIRE_RESPONSES, WIRE_MESSAGES,
		R("\"truncation\":\"disabled\",\"tool_choice\":{\"type\":\"file_search\"},"
		  "\"tools\":[{"
		  "\"type\":\"file_search\"},{\"type\":\"function\",\"name\":\"f\"}],\"text\":{"
		  "\"format\":{\"type\":\"json_object\"}},\"input\":[{\"type\":\"mcp_call\",\"id\":"
		  "\"m\"},{\"role\":\"user\",\"content\":[{\"type\":\"hologram\"}]}]"),
		"responses.input.mcp_call,responses.input.hologram,responses.text.format.json_"
		"object,responses.tools.file_search,responses.tool_choice.file_search"},
	    {WIRE_CHAT, WIRE_RESPONSES,
		R("\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"stop\":\"x\",\"seed\":1,"
		  "\"logit_bias\":{},\"user\":\"u\",\"presence_penalty\":0,\"verbosity\":\"low\""),
		"chat.stop,chat.verbosity,chat.user,chat.seed,chat.logit_bias"},
	    {WIRE_MESSAGES, WIRE_RESPONSES,
		R("\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"top_k\":"
		  "5,"
		  "\"stop_sequences\":[\"x\"],\"metadata\":{\"user_id\":\"u\"},\"tools\":[{"
		  "\"type\":"
		  "\"web_search_20250305\",\"name\":\"web_search\"}]"),
		"messages.stop_sequences,messages.metadata.user_id,messages.top_k,messages.tools."
		"web_"
		"search_20250305"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = fix_must_decode(a, rows[i].from, rows[i].body);
		struct str out = fix_encode(a, rows[i].to, c, false);
		cr_expect(!str_starts(out, STR("error")), "%s", out.ptr);
		struct str dropped = fix_dropped(a, c);
		cr_expect(str_eq(dropped, str_c(rows[i].want)), "%zu: %s", i, dropped.ptr);
		arena_free(&a);
	}
}

Test(responses_in, what_would_give_another_answer_is_refused, .timeout = 10)
{
	static const struct {
		enum wire from, to;
		const char *body, *want;
	} rows[] = {
	    {WIRE_CHAT, WIRE_RESPONSES,
		R("\"n\":2,\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"),
		"error: n: this model gives one choice"},
	    {WIRE_CHAT, WIRE_RESPONSES,
		R("\"logprobs\":true,\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"),
		"error: logprobs: this model gives none"},
	    {WIRE_RESPONSES, WIRE_MESSAGES,
		RI("{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{"
		   "\"data\":\"x\",\"format\":\"wav\"}}]}"),
		"error: input_audio: this model takes no audio"},
	    {WIRE_RESPONSES, WIRE_CHAT, RU("\"prompt\":{\"id\":\"p\"}"),
		"error: prompt: this model's provider keeps none"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct str s = fix_translate(a, rows[i].from, rows[i].to, str_c(rows[i].body));
		cr_expect(str_eq(s, str_c(rows[i].want)), "%s", s.ptr);
		arena_free(&a);
	}
}

Test(responses_in, marks_lead_reasoning_back_to_its_own_wire, .timeout = 10)
{
	static const struct {
		enum wire wire;
		const char *name, *id, *secret;
		bool redacted;
	} rows[] = {{WIRE_CHAT, "reasoning", "", "", false},
	    {WIRE_CHAT, "reasoning_content", "", "", false},
	    {WIRE_MESSAGES, "", "", "SIG.with.dots", false}, {WIRE_MESSAGES, "", "", "DATA", true},
	    {WIRE_RESPONSES, "", "rs_1", "gAA.A", false}, {WIRE_RESPONSES, "", "", "", false}};
	struct arena *a = arena_new(1u << 20);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct part p = {.kind = PART_REASONING};
		struct str mark = origin_mark(a, rows[i].wire, str_c(rows[i].name),
		    str_c(rows[i].id), str_c(rows[i].secret), rows[i].redacted);
		cr_expect(origin_restore(&p, mark), "%s", mark.ptr);
		cr_expect_eq(p.raw_wire, rows[i].wire, "%s", mark.ptr);
		bool hidden = rows[i].wire == WIRE_RESPONSES || rows[i].redacted;
		cr_expect(str_eq(hidden ? p.encrypted : p.signature, str_c(rows[i].secret)), "%s",
		    mark.ptr);
		cr_expect(str_eq(p.id, str_c(rows[i].id)));
		cr_expect(rows[i].wire != WIRE_CHAT || str_eq(p.name, str_c(rows[i].name)));
	}
	struct part p = {.kind = PART_REASONING, .encrypted = STR("gAAA")};
	cr_expect(!origin_restore(&p, p.encrypted) && str_eq(p.encrypted, STR("gAAA")));
	cr_expect(!origin_restore(&p, STR_NULL));
	arena_free(&a);
}

Test(responses_in, a_response_that_ended_with_our_execution_is_continued, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES,
	    RI("{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"code_interpreter_call\",\"id\":"
	       "\"otari_ci_1\",\"code\":\"1\",\"outputs\":null}"));
	cr_expect(c->last->role == MESSAGE_USER);
	cr_expect(str_eq(c->last->parts->text, STR("Continue.")));
	arena_free(&a);
}

/* Files that the gateway holds: attach puts their bytes in the place of the id. */
Test(responses_in, a_file_takes_the_place_of_its_id, .timeout = 10)
{
	static const char body[] =
	    RI("{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"see\","
	       "\"new\":1},{\"type\":\"input_file\",\"file_id\":\"file-1\"}]},{\"type\":"
	       "\"custom_tool_call\",\"call_id\":\"c1\",\"name\":\"c\",\"input\":\"\"},{"
	       "\"type\":\"custom_tool_call_output\",\"call_id\":\"c1\",\"output\":[{\"type\":"
	       "\"input_image\",\"file_id\":\"file-2\",\"detail\":\"low\"}]}");
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES, body);
	struct tool custom = {.kind = TOOL_FUNCTION,
	    .type = STR("custom"),
	    .name = STR("c"),
	    .raw = STR("{\"type\":\"custom\",\"name\":\"c\"}"),
	    .raw_wire = WIRE_RESPONSES};
	struct part *file = c->messages->parts->next, *result = c->last->parts;
	struct media bytes = {.source = MEDIA_BASE64,
	    .data = STR("AA=="),
	    .media_type = STR("image/png"),
	    .filename = STR("a.png")};
	c->tools = &custom;
	cr_assert(file->media.source == MEDIA_FILE_ID && result->kind == PART_RESULT);
	c->messages->raw = file->raw = result->raw = result->content->raw = STR_NULL;
	file->media = result->content->media = bytes;
	struct str s = fix_encode(a, WIRE_RESPONSES, c, true);
	cr_expect(
	    str_find(s, STR("\"content\":[{\"type\":\"input_text\",\"text\":\"see\",\"new\":1},{"
			    "\"type\":\"input_file\",\"filename\":\"a.png\",\"file_data\":"
			    "\"data:image/png;base64,AA==\"}]")) != SIZE_MAX,
	    "%s", s.ptr);
	cr_expect(
	    str_find(s, STR("{\"type\":\"custom_tool_call_output\",\"call_id\":\"c1\",\"output\":[{"
			    "\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":"
			    "\"data:image/png;base64,AA==\"}]}")) != SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}

/* An answer of a Responses provider, as the next round sends it back. */
Test(responses_in, a_collected_round_goes_back_as_items, .timeout = 10)
{
	static const char body[] =
	    RU("\"store\":false,\"tools\":[{\"type\":\"custom\",\"name\":\"c\"}]");
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES, body);
	struct message *m = conversation_add(c, MESSAGE_ASSISTANT);
	struct part *p = message_add(c, m, PART_REASONING);
	p->id = STR("rs_1");
	p->encrypted = STR("E");
	p = message_add(c, m, PART_TEXT);
	p->text = STR("t");
	p = message_add(c, m, PART_CALL);
	p->id = STR("call_1");
	p->name = STR("c");
	p->arguments = STR("{\"input\":\"free \\\"text\\\"\"}");
	p = message_add(c, m, PART_OPAQUE);
	p->raw = STR("{\"type\":\"web_search_call\",\"id\":\"ws_1\"}");
	p->name = STR("web_search_call");
	m = conversation_add(c, MESSAGE_USER);
	p = message_add(c, m, PART_RESULT);
	p->id = STR("call_1");
	p->is_error = true;
	struct str s = fix_encode(a, WIRE_RESPONSES, c, true);
	cr_expect(
	    str_find(
		s, STR("\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":"
		       "\"input_text\",\"text\":\"q\"}]},{\"type\":\"reasoning\",\"id\":\"rs_1\","
		       "\"summary\":[],\"encrypted_content\":\"E\"},{\"type\":\"message\",\"role\":"
		       "\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"t\"}]},{"
		       "\"type\":\"custom_tool_call\",\"call_id\":\"call_1\",\"name\":\"c\","
		       "\"input\":\"free \\\"text\\\"\"},{\"type\":\"web_search_call\",\"id\":\"ws_"
		       "1\"},{\"type\":\"custom_tool_call_output\",\"call_id\":\"call_1\","
		       "\"output\":\"Error: \"}]")) != SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}
