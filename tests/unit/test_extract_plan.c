/* Which documents a request's model cannot read, and their text in their place. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/base64.h"
#include "tests/unit/dialectfix.h"
#include "worker/turn/extract_plan.h"

TestSuite(extract_plan, .timeout = 20);

#define DOCX "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
#define OLE  "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#define ANY  "application/octet-stream"
#define NONE (-1)

static struct str
base64_of(struct arena *a, struct str bytes)
{
	struct buf b = BUF_INIT(BASE64_LEN(bytes.len) + 1);
	base64_encode(bytes, &b);
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

Test(extract_plan, a_format_needs_a_name_for_it_and_bytes_that_start_so)
{
	static const struct {
		const char *type, *name, *bytes;
		int kind;
	} rows[] = {
	    {"application/pdf", "", "%PDF-1.7 …", CODE_EXTRACT_PDF},
	    {"Application/PDF; x=y", "a.bin", "\n\n%PDF-1.7", CODE_EXTRACT_PDF},
	    {"application/pdf", "a.pdf", "PK\x03\x04", NONE},
	    {"application/pdf", "a.pdf", "", NONE},
	    {DOCX, "", "PK\x03\x04", CODE_EXTRACT_DOCX},
	    {DOCX, "", "PK", NONE},
	    {DOCX, "a.doc", OLE, CODE_EXTRACT_DOC},
	    {DOCX, "a.pdf", "%PDF-1", CODE_EXTRACT_PDF},
	    {ANY, "a.b.DOCX", "PK\x03\x04", CODE_EXTRACT_DOCX},
	    {"", "Q1.xlsx", "PK\x03\x04", CODE_EXTRACT_XLSX},
	    {"application/zip", "talk.pptx", "PK\x03\x04", CODE_EXTRACT_PPTX},
	    {ANY, "a.ods", "PK\x03\x04", CODE_EXTRACT_ODF},
	    {"application/zip", "a.zip", "PK\x03\x04", NONE},
	    {ANY, "pdf", "%PDF-1", NONE},
	    {ANY, "", "%PDF-1", NONE},
	    {"text/html", "", "\xef\xbb\xbf\n<!doctype html>", CODE_EXTRACT_HTML},
	    {"text/html", "", "plain", NONE},
	    {"text/plain", "a.htm", "<p>", CODE_EXTRACT_HTML},
	    {"text/plain", "a.txt", "<p>", NONE},
	    {"image/png", "a.png", "\x89PNG", NONE},
	};
	struct arena *a = arena_new(1u << 20);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum code_extractor kind = CODE_EXTRACT_PDF;
		struct str data = base64_of(a, str_c(rows[i].bytes));
		bool is = document_kind(str_c(rows[i].type), str_c(rows[i].name), data, &kind);
		cr_expect_eq(
		    is ? (int)kind : NONE, rows[i].kind, "row %zu: %d, %d", i, is, (int)kind);
	}
	enum code_extractor kind;
	cr_expect_not(document_kind(STR("application/pdf"), STR(""), STR("JVBERi0xLjcg*"), &kind));
	arena_free(&a);
}

Test(extract_plan, what_a_service_reads_is_by_its_type_and_wire)
{
	const uint32_t pdf = DOCUMENT_BIT(CODE_EXTRACT_PDF);
	const struct {
		const char *type;
		enum wire wire;
		int native;
		uint32_t reads;
	} rows[] = {
	    {"anthropic", WIRE_MESSAGES, -1, pdf},
	    {"anthropic", WIRE_CHAT, -1, 0},
	    {"OpenAI", WIRE_CHAT, -1, pdf},
	    {"openai", WIRE_RESPONSES, -1, DOCUMENTS_ALL},
	    {"openai", WIRE_MESSAGES, -1, 0},
	    {"azure", WIRE_RESPONSES, -1, pdf},
	    {"azure", WIRE_CHAT, -1, 0},
	    {"openrouter", WIRE_CHAT, -1, pdf},
	    {"mistral", WIRE_CHAT, -1, 0},
	    {"gemini", WIRE_CHAT, -1, 0},
	    {"ollama", WIRE_CHAT, -1, 0},
	    {"anything", WIRE_RESPONSES, -1, 0},
	    {"anything", WIRE_CHAT, 1, DOCUMENTS_ALL},
	    {"openai", WIRE_RESPONSES, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(documents_read(str_c(rows[i].type), rows[i].wire, rows[i].native),
		    rows[i].reads, "row %zu", i);
	cr_expect_eq(DOCUMENTS_ALL, 0xff);
}

/* "%PDF-1.4 a" and a DOCX's first bytes */
#define A_PDF  "JVBERi0xLjQgYQ=="
#define A_ZIP  "UEsDBAo="
#define B_ZIP  "UEsDBBQ="
#define HELLO  "{\"type\":\"text\",\"text\":\"q\"}"
#define URL(t) "data:" t ";base64,"

#define CHAT_FILE(name, url)                                                                       \
	"{\"type\":\"file\",\"file\":{\"filename\":\"" name "\",\"file_data\":\"" url "\"}}"
#define BLOCK(type, data, more)                                                                    \
	"{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"media_type\":\"" type            \
	"\",\"data\":\"" data "\"}" more "}"
#define INPUT_FILE(name, url)                                                                      \
	"{\"type\":\"input_file\",\"filename\":\"" name "\",\"file_data\":\"" url "\"}"

static const char chat_body[] =
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[" HELLO
    "," CHAT_FILE("in/a.docx", URL(ANY) A_ZIP) "," CHAT_FILE("p.pdf",
	URL("application/pdf")
	    A_PDF) "]},{\"role\":\"user\",\"content\":[" CHAT_FILE("a.docx", URL(ANY) A_ZIP) "]}]}";
static const char messages_body[] =
    "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[" HELLO
    "," BLOCK("application/pdf", A_PDF,
	",\"title\":\"p.pdf\",\"context\":\"read me\"") "]},{\"role\":\"assistant\","
							"\"content\":[{\"type\":\"tool_use\","
							"\"id\":\"t1\",\"name\":\"f\","
							"\"input\":{}}]},"
							"{\"role\":\"user\",\"content\":[{\"type\":"
							"\"tool_result\",\"tool_"
							"use_id\":\"t1\","
							"\"content\":[" BLOCK(DOCX, A_ZIP,
							    ",\"title\":\"in/a.docx\"") "]}," BLOCK(DOCX,
							    A_ZIP, ",\"title\":\"a.docx\"") "]}]}";
static const char responses_body[] = "{\"model\":\"m\",\"store\":false,\"input\":[" INPUT_FILE(
    "in/a.docx", URL(ANY) A_ZIP) ",{\"role\":\"user\",\"content\":[" INPUT_FILE("p.pdf",
    URL("application/pdf")
	A_PDF) "]},{\"type\":\"function_call\",\"call_id\":\"t1\",\"name\":\"f\",\"arguments\":\"{}"
	       "\"},"
	       "{\"type\":\"function_call_output\",\"call_id\":\"t1\",\"output\":[" INPUT_FILE(
		   "a.docx", URL(ANY) A_ZIP) "]}]}";

static void
rewrite(struct conversation *c, uint32_t reads, size_t count)
{
	struct extract_plan plan;
	extract_collect(c, reads, &plan);
	cr_assert_eq(plan.count, count, "%zu", plan.count);
	for (struct extract_document *d = plan.first; d != NULL; d = d->next)
		d->text = d->extractor == CODE_EXTRACT_PDF ? STR("of paper") : STR("of words");
	extract_rewrite(c, &plan);
}

static size_t
count(struct str in, const char *what)
{
	size_t n = 0, at;
	for (; (at = str_find(in, str_c(what))) != SIZE_MAX; n++)
		in = str_from(in, at + strlen(what));
	return n;
}

#define WORDS "[Attached file: a.docx]\\nof words\\n[End of file]"
#define PAPER "[Attached file: p.pdf]\\nof paper\\n[End of file]"

Test(extract_plan, n91_95_text_takes_a_documents_place_on_every_wire)
{
	static const struct {
		enum wire wire;
		const char *body;
	} rows[] = {
	    {WIRE_CHAT, chat_body},
	    {WIRE_MESSAGES, messages_body},
	    {WIRE_RESPONSES, responses_body},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
			struct arena *a = arena_new(1u << 20);
			struct conversation *c = fix_must_decode(a, rows[i].wire, rows[i].body);
			rewrite(c, 0, 2); /* twice the same DOCX */
			struct str out = fix_encode(a, (enum wire)to, c, false);
			cr_expect_eq(count(out, WORDS), 2, "%zu to %d: %s", i, to, out.ptr);
			cr_expect_eq(count(out, PAPER), 1, "%zu to %d: %s", i, to, out.ptr);
			cr_expect_eq(count(out, A_ZIP) + count(out, A_PDF) + count(out, "base64"),
			    0, "%zu to %d: %s", i, to, out.ptr);
			arena_free(&a);
		}
}

Test(extract_plan, n91_what_the_service_reads_is_left)
{
	struct arena *a = arena_new(1u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_CHAT, chat_body);
	rewrite(c, DOCUMENT_BIT(CODE_EXTRACT_PDF), 1);
	struct str out = fix_encode(a, WIRE_CHAT, c, true);
	cr_expect_eq(count(out, WORDS), 2, "%s", out.ptr);
	cr_expect_eq(count(out, CHAT_FILE("p.pdf", URL("application/pdf") A_PDF)), 1);
	c = fix_must_decode(a, WIRE_CHAT, chat_body);
	rewrite(c, DOCUMENTS_ALL, 0);
	cr_expect(c->messages->raw.ptr != NULL, "nothing was touched");
	arena_free(&a);
}

Test(extract_plan, a_document_without_text_stays_as_it_is)
{
	struct arena *a = arena_new(1u << 20);
	struct extract_plan plan;
	struct conversation *c = fix_must_decode(a, WIRE_MESSAGES, messages_body);
	extract_collect(c, 0, &plan);
	cr_assert_eq(plan.count, 2);
	plan.first->text = STR("of paper"); /* the PDF's; the DOCX was broken */
	extract_rewrite(c, &plan);
	struct str out = fix_encode(a, WIRE_MESSAGES, c, false);
	cr_expect_eq(count(out, BLOCK(DOCX, A_ZIP, ",\"title\":\"in/a.docx\"")), 1, "%s", out.ptr);
	cr_expect_eq(count(out, BLOCK(DOCX, A_ZIP, ",\"title\":\"a.docx\"")), 1, "%s", out.ptr);
	cr_expect_eq(count(out, PAPER), 1, "%s", out.ptr);
	arena_free(&a);
}

Test(extract_plan, what_its_sender_says_of_a_document_stays)
{
	struct arena *a = arena_new(1u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_MESSAGES, messages_body);
	rewrite(c, 0, 2);
	struct str out = fix_encode(a, WIRE_CHAT, c, false);
	cr_expect_eq(count(out, "read me\\n" PAPER), 1, "%s", out.ptr);
	arena_free(&a);
}

Test(extract_plan, a_text_file_needs_no_extractor)
{
	static const struct {
		const char *name, *url;
		bool is_text;
	} rows[] = {
	    {"a.csv", "data:text/csv;charset=utf-8;base64,YSxi", true},
	    {"a.bin", "data:application/json;base64,YSxi", true},
	    {"a.MD", "data:application/octet-stream;base64,YSxi", true},
	    {"a.md", "YSxi", true},
	    {"a.bin", "data:application/octet-stream;base64,YSxi", false},
	    {"a.csv", "data:video/mp4;base64,YSxi", false},
	    {"a.csv", "data:text/csv;base64,gICA", false}, /* no UTF-8 */
	    {"a.csv", "data:text/csv;base64,YQBi", false}, /* a NUL */
	    {"a.csv", "data:text/csv;base64,YSx", false},
	};
	struct arena *a = arena_new(1u << 20);
	struct extract_plan plan;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int reads = 0; reads < 2; reads++) {
			struct str body = arena_printf(a,
			    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":["
			    "{\"type\":\"file\",\"file\":{\"filename\":\"%s\",\"file_data\":"
			    "\"%s\"}}]}]}",
			    rows[i].name, rows[i].url);
			struct conversation *c = fix_must_decode(a, WIRE_CHAT, body.ptr);
			extract_collect(c, reads == 0 ? DOCUMENTS_EXTRACTED : DOCUMENT_TEXT, &plan);
			extract_rewrite(c, &plan);
			struct str out = fix_encode(a, WIRE_CHAT, c, false);
			bool is_text = str_find(out, STR("]\\na,b\\n[End")) != SIZE_MAX;
			cr_expect_eq(
			    is_text, rows[i].is_text && reads == 0, "row %zu: %s", i, out.ptr);
			cr_expect_eq(plan.unread, 0);
			cr_expect(is_text || str_find(out, str_c(rows[i].url)) != SIZE_MAX);
		}
	arena_free(&a);
}

Test(extract_plan, there_is_a_limit_on_different_documents)
{
	struct arena *a = arena_new(4u << 20);
	struct buf b = BUF_INIT(1u << 20);
	struct extract_plan plan;
	buf_printf(&b, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[");
	for (unsigned i = 0; i < EXTRACT_DOCUMENTS_MAX + 8; i++) {
		char bytes[32] = "%PDF-";
		bytes[5] = (char)('0' + i);
		struct str data = base64_of(a, str_n(bytes, 24));
		buf_printf(&b,
		    "%s{\"type\":\"file\",\"file\":{\"filename\":\"a.pdf\",\"file_data\":"
		    "\"data:;base64,%.*s\"}}",
		    i > 0 ? "," : "", STR_FMT(data));
	}
	buf_printf(&b, "]}]}");
	struct conversation *c = fix_must_decode(a, WIRE_CHAT, b.ptr);
	extract_collect(c, 0, &plan);
	cr_expect_eq(plan.count, EXTRACT_DOCUMENTS_MAX);
	buf_done(&b);
	arena_free(&a);
}

Test(extract_plan, text_is_made_fit_and_says_that_it_was_cut)
{
	static const struct {
		const char *out;
		size_t more, max;
		const char *text;
	} rows[] = {
	    {"a\fb\n", 0, 99, "a\nb\n"},
	    {"\x1b[31mred\x1b[0m\x01", 0, 99, "red\xef\xbf\xbd"},
	    {"caf\xe9", 0, 99, "caf\xef\xbf\xbd"},
	    {" \f\n\t", 0, 99, NULL},
	    {"", 0, 99, NULL},
	    {"caf\xc3\xa9", 0, 4,
		"caf\n[text cut: the document holds 5 bytes of text, the first 3 are here]"},
	    {"ab", 7, 99,
		"ab\n[text cut: the document holds 9 bytes of text, the first 2 are here]"},
	};
	struct arena *a = arena_new(1u << 20);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str out = str_c(rows[i].out);
		struct str text = extract_text(a, out, out.len + rows[i].more, rows[i].max);
		if (rows[i].text == NULL)
			cr_expect_null(text.ptr, "row %zu: %.*s", i, STR_FMT(text));
		else
			cr_expect(
			    str_eq(text, str_c(rows[i].text)), "row %zu: %.*s", i, STR_FMT(text));
	}
	arena_free(&a);
}
