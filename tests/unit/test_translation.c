/* Carries out every row of the translation tables, and keeps docs/TRANSLATION.md what they say.
 * After a change: OTARI_TEST_UPDATE=1 build/debug/unit --filter 'translation/page*' */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "tests/unit/dialectfix.h"
#include "tests/unit/translation_settings.h"
#include "worker/dialect/mapping.h"

#define PAGE_PATH "docs/TRANSLATION.md"
#define ROWS(r)   r, ARRAY_LEN(r)
#define Q         "{'role':'user','content':'q'}"
#define F_TOOL    "'tools':[{'type':'function','function':{'name':'f'}}],"
#define R_TOOL    "'tools':[{'type':'function','name':'f'}],"
#define M_TOOL    "'tools':[{'name':'f','input_schema':{'type':'object'}}],"

static const char *const names[] = {
    [WIRE_CHAT] = "Chat", [WIRE_MESSAGES] = "Messages", [WIRE_RESPONSES] = "Responses"};

static const struct translation_section sections[] = {
    {"System text beside the messages", NULL,
	{"{'model':'m',", "{'model':'m','max_tokens':99,", "{'model':'m',"},
	{"'messages':[" Q "]}", "'messages':[" Q "]}", "'input':'q'}"}, ROWS(role_rows)},
    {"Roles",
	"Towards Messages, later system text becomes the user's, marked as a note; also towards "
	"Chat "
	"servers other than OpenAI's, because many models' templates take system text only in "
	"front.",
	{C_HEAD, M_HEAD, R_HEAD}, {TAIL, TAIL, TAIL}, ROWS(message_rows)},
    {"Parts of a Chat client's message", NULL, {C_HEAD "{'role':'user','content':[", NULL, NULL},
	{"]}]}", NULL, NULL}, ROWS(chat_part_rows)},
    {"Parts of a Messages client's message", NULL,
	{NULL, M_HEAD "{'role':'user','content':[", NULL}, {NULL, "]}]}", NULL},
	ROWS(messages_part_rows)},
    {"Parts of a Responses client's message", NULL,
	{NULL, NULL, R_HEAD "{'role':'user','content':["}, {NULL, NULL, "]}]}"},
	ROWS(responses_part_rows)},
    {"Calls, results, executions",
	"A call's id is kept where it fits the other wire, else replaced by one that depends on it "
	"alone, the same on call and result. Arguments and schemas travel as the bytes that were "
	"sent. An execution that the gateway itself ran and showed (`otari_…`) becomes such text "
	"on its own wire as well.",
	{C_HEAD Q ",", M_HEAD Q ",", R_HEAD Q ","}, {TAIL, TAIL, TAIL}, ROWS(call_rows)},
    {"Reasoning",
	"Reasoning goes back only to the wire it came from. A client of another wire keeps what "
	"only "
	"the provider can read behind a mark (`otari_rs_…`), which no provider ever sees.",
	{C_HEAD Q ",", M_HEAD Q ",", R_HEAD Q ","}, {TAIL, TAIL, TAIL}, ROWS(reasoning_rows)},
    {"Tools",
	"A declaration of code execution that the gateway runs itself is shown to the model as a "
	"function `code_execution`, whatever the wires; from `code_execution_20250825` on "
	"`bash_code_execution` and `text_editor_code_execution` stand beside it.",
	{"{'model':'m','messages':[" Q "],'tools':[",
	    "{'model':'m','max_tokens':99,'messages':[" Q "],'tools':[",
	    "{'model':'m','input':'q','tools':["},
	{TAIL, TAIL, TAIL}, ROWS(tool_rows)},
    {"Choice of a tool", NULL,
	{"{'model':'m','messages':[" Q "]," F_TOOL "'tool_choice':",
	    "{'model':'m','max_tokens':99,'messages':[" Q "]," M_TOOL "'tool_choice':",
	    "{'model':'m','input':'q'," R_TOOL "'tool_choice':"},
	{"}", "}", "}"}, ROWS(choice_rows)},
    {"Settings",
	"Towards a Responses provider a request of another wire always says "
	"`\"store\":false`, so that nothing stays there.",
	{"{'model':'m','messages':[" Q "],", "{'model':'m','messages':[" Q "],",
	    "{'model':'m','input':'q',"},
	{"}", "}", "}"}, ROWS(setting_rows)},
};

/* ' for " */
static struct str
json(struct arena *a, const char *text)
{
	struct str s = arena_str(a, str_c(text));
	char *p = (char *)(uintptr_t)s.ptr;
	for (size_t i = 0; i < s.len; i++)
		p[i] = p[i] == '\'' ? '"' : p[i];
	return s;
}

static void
check_cell(const struct translation_section *s, const struct translation_row *r, enum wire to)
{
	struct arena *a = arena_new(16u << 20);
	struct str body = arena_printf(a, "%s%s%s", s->head[r->from], r->in, s->tail[r->from]);
	struct err e = {0};
	struct conversation *c = fix_decode(a, r->from, json(a, body.ptr), &e);
	cr_assert(c != NULL, "%s: %s: %s", r->what, body.ptr, e.msg);
	struct encode_options opt = {.model = STR("m"), .native_openai = r->native};
	struct buf out = BUF_INIT(1u << 20);
	const char *want = r->want[to];
	if (dialect_of(to)->encode(c, &opt, &out, &e) != ERR_OK) {
		buf_clear(&out);
		buf_printf(&out, "refused %s", e.msg);
	}
	struct str dropped = fix_dropped(a, c), got = buf_str(&out);
	if (want != NULL && strcmp(want, "=") == 0)
		want = r->in;
	bool named = want != NULL && strncmp(want, "dropped ", 8) == 0;
	bool refused = want != NULL && strncmp(want, "refused ", 8) == 0;
	if (named)
		cr_expect(str_eq(dropped, str_c(want + 8)), "%s → %s: dropped %s, got %.*s",
		    r->what, names[to], dropped.ptr, STR_FMT(got));
	else if (refused)
		cr_expect(
		    str_eq(got, str_c(want)), "%s → %s: %.*s", r->what, names[to], STR_FMT(got));
	else if (want != NULL)
		cr_expect(str_find(got, json(a, want)) != SIZE_MAX && dropped.len == 0,
		    "%s → %s: dropped '%s', got %.*s", r->what, names[to], dropped.ptr,
		    STR_FMT(got));
	else
		cr_expect(!str_starts(got, STR("refused")) && dropped.len == 0,
		    "%s → %s: dropped '%s', got %.*s", r->what, names[to], dropped.ptr,
		    STR_FMT(got));
	buf_done(&out);
	arena_free(&a);
}

Test(translation, every_row_holds, .timeout = 30)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		for (size_t n = 0; n < sections[i].count; n++)
			for (int to = WIRE_CHAT; to <= WIRE_RESPONSES; to++)
				check_cell(&sections[i], &sections[i].rows[n], (enum wire)to);
}

/* --- the page --- */

static void
put_code(struct buf *b, struct arena *a, const char *text, bool is_json)
{
	struct str s = is_json ? json(a, text) : str_c(text);
	buf_addc(b, '`');
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '`') /* a fence inside code; no code span of one tick can hold it */
			continue;
		if (s.ptr[i] == '|')
			buf_addc(b, '\\');
		buf_addc(b, s.ptr[i]);
	}
	buf_addc(b, '`');
}

static void
put_cell(struct buf *b, struct arena *a, const struct translation_row *r, enum wire w)
{
	const char *want = r->want[w];
	buf_add(b, STR(" | "));
	if (want == NULL) {
		buf_add(b, STR("–"));
	} else if (strcmp(want, "=") == 0) {
		buf_add(b, w == r->from ? STR("as sent") : STR("the same"));
	} else if (strncmp(want, "dropped ", 8) == 0) {
		buf_add(b, STR("dropped: "));
		put_code(b, a, want + 8, false);
	} else if (strncmp(want, "refused ", 8) == 0) {
		buf_printf(b, "400: %s", want + 8);
	} else {
		put_code(b, a, want, true);
	}
}

static void
put_section(struct buf *b, const struct translation_section *s)
{
	struct arena *a = arena_new(4u << 20);
	buf_printf(b, "\n## %s\n", s->title);
	if (s->text != NULL)
		buf_printf(b, "\n%s\n", s->text);
	buf_add(b, STR("\n| client | what | sent | to Chat | to Messages | to Responses |\n"
		       "|---|---|---|---|---|---|\n"));
	for (size_t i = 0; i < s->count; i++) {
		const struct translation_row *r = &s->rows[i];
		buf_printf(b, "| %s | %s%s | ", names[r->from], r->what,
		    r->native ? " (towards OpenAI itself)" : "");
		put_code(b, a, r->in, true);
		for (int w = WIRE_CHAT; w <= WIRE_RESPONSES; w++)
			put_cell(b, a, r, (enum wire)w);
		buf_add(b, STR(" |\n"));
	}
	arena_free(&a);
}

static void
put_finish(struct buf *b)
{
	buf_add(b,
	    STR("\n## Why an answer ended\n\n"
		"The wire's own word comes back unchanged when client and provider speak the same "
		"one. A call that is complete is reported as a call, also by servers that say "
		"`stop`; one that was cut off is not.\n\n"
		"| Chat `finish_reason` | Messages `stop_reason` | Responses `status` |\n"
		"|---|---|---|\n"));
	for (int r = FINISH_STOP; r < FINISH_OTHER; r++) {
		const char *why = finish_to_responses((enum finish_reason)r);
		buf_printf(b, "| `%s` | `%s` | ", finish_to_chat((enum finish_reason)r),
		    finish_to_messages((enum finish_reason)r));
		if (why != NULL)
			buf_printf(b, "`incomplete`: `%s` |\n", why);
		else
			buf_add(b, STR("`completed` |\n"));
	}
}

static void
put_usage(struct buf *b)
{
	buf_add(b,
	    STR("\n## Usage\n\n"
		"OpenAI's input counts what came from a cache, Anthropic's does not: it is added "
		"or taken away, never below 0.\n\n"
		"| Chat | Messages | Responses |\n|---|---|---|\n"
		"| `prompt_tokens` | `input_tokens` + `cache_read_input_tokens` + "
		"`cache_creation_input_tokens` | `input_tokens` |\n"
		"| `prompt_tokens_details.cached_tokens` | `cache_read_input_tokens` | "
		"`input_tokens_details.cached_tokens` |\n"
		"| `prompt_tokens_details.cache_write_tokens` | `cache_creation_input_tokens` | "
		"`input_tokens_details.cache_write_tokens` |\n"
		"| `completion_tokens` | `output_tokens` | `output_tokens` |\n"
		"| `completion_tokens_details.reasoning_tokens` | "
		"`output_tokens_details.thinking_tokens` | "
		"`output_tokens_details.reasoning_tokens` |\n"
		"| `total_tokens` | – | `total_tokens` |\n"));
}

static void
put_errors(struct buf *b)
{
	static const int statuses[] = {
	    400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 504, 529};
	buf_add(
	    b, STR("\n## Errors\n\n"
		   "`error.type` by status. An unknown status below 500 reads as 400, any other as "
		   "500.\n\n"
		   "| status | Chat, Responses | Messages |\n|---|---|---|\n"));
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		buf_printf(b, "| %d | `%s` | `%s` |\n", statuses[i],
		    error_type_for(WIRE_CHAT, statuses[i]),
		    error_type_for(WIRE_MESSAGES, statuses[i]));
}

static void
put_efforts(struct buf *b)
{
	static const char *const words[] = {
	    "none", "minimal", "low", "medium", "high", "xhigh", "max"};
	buf_add(b,
	    STR("\n## Reasoning effort\n\n"
		"OpenAI itself gets the word as it is. A thinking budget below 2,048 tokens counts "
		"as `low`, below 8,192 as `medium`, below 24,576 as `high`, above as `xhigh`.\n\n"
		"| word | to other servers |\n|---|---|\n"));
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		buf_printf(
		    b, "| `%s` | `%.*s` |\n", words[i], STR_FMT(effort_common(str_c(words[i]))));
}

static void
put_members(struct buf *b)
{
	static const struct {
		enum member_use use;
		const char *text;
	} uses[] = {{MEMBER_MAPPED, "translated as above"},
	    {MEMBER_HINT, "for the vendor's own service; left out elsewhere without a word"}};
	buf_add(b,
	    STR("\n## Members of a request\n\n"
		"On its own wire a request keeps all its members, known or not, byte for byte. On "
		"another wire a member that is not listed here is named in the `Otari-Dropped` "
		"header of the answer, or refused with 400 under `strict_translation: true`.\n"));
	for (int w = WIRE_CHAT; w <= WIRE_RESPONSES; w++)
		for (size_t u = 0; u < ARRAY_LEN(uses); u++) {
			enum member_use use;
			const char *key, *comma = "";
			buf_printf(b, "\n* %s, %s: ", names[w], uses[u].text);
			for (size_t i = 0; (key = member_at((enum wire)w, i, &use)) != NULL; i++)
				if (use == uses[u].use) {
					buf_printf(b, "%s`%s`", comma, key);
					comma = ", ";
				}
			buf_add(b, STR("."));
		}
	buf_add(b, STR("\n* The gateway's own on every wire, never sent on: "));
	enum member_use use;
	const char *key, *comma = "";
	for (size_t i = 0; (key = member_at(WIRE_CHAT, i, &use)) != NULL; i++)
		if (use == MEMBER_GATEWAY) {
			buf_printf(b, "%s`%s`", comma, key);
			comma = ", ";
		}
	buf_add(b, STR("; and `purpose_hint` on a tool.\n"));
}

static void
make_page(struct buf *b)
{
	buf_add(b,
	    STR("# What becomes of a request on another wire\n\n"
		"Made from the tables of `tests/unit/translation_rows.h`, "
		"`tests/unit/translation_settings.h` and `worker/dialect/mapping.c` by "
		"`tests/unit/test_translation.c`, which also carries out every row. Clients speak "
		"OpenAI's Chat Completions, Anthropic's Messages or OpenAI's Responses; so do "
		"providers; all nine pairs work, streamed and whole.\n\n"
		"*Dropped* means left out and named in the `Otari-Dropped` header; – means that "
		"nothing is to be sent.\n"));
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		put_section(b, &sections[i]);
	put_efforts(b);
	put_members(b);
	put_finish(b);
	put_usage(b);
	put_errors(b);
}

Test(translation, page_is_what_the_tables_say, .timeout = 20)
{
	struct buf b = BUF_INIT(1u << 20);
	char *text;
	size_t n;
	make_page(&b);
	cr_assert_not(b.overflowed);
	if (getenv("OTARI_TEST_UPDATE") != NULL) {
		int fd = fd_open(PAGE_PATH, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		cr_assert_eq(fd_write_all(fd, buf_str(&b), NULL), ERR_OK);
		fd_close(&fd);
	}
	cr_assert_eq(fd_read_file(PAGE_PATH, 1u << 20, &text, &n, NULL), ERR_OK, PAGE_PATH);
	cr_assert(str_eq(str_n(text, n), buf_str(&b)),
	    PAGE_PATH " is not what the tables make; run the test with OTARI_TEST_UPDATE=1");
	mem_free(text);
	buf_done(&b);
}
