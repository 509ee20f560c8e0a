/* Documents on their way to a model: as text where its service does not read them, as they are
 * where it does or where something is wrong with them. Numbers of the acceptance list
 * (tests/BEHAVIOUR.md). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(documents, .timeout = 240);

/* Writes them into the directory that is its argument. bomb: unpacks to more than is read;
 * slow: to as much as is read, in many pieces; cut: ends in the middle. */
static const char make[] =
    "import os, sys, zipfile\n"
    "os.chdir(sys.argv[1])\n"
    "def z(name, **parts):\n"
    "    with zipfile.ZipFile(name, 'w', zipfile.ZIP_DEFLATED) as f:\n"
    "        for k, v in parts.items():\n"
    "            with f.open(k.replace('__', '/') + '.xml', 'w', force_zip64=True) as o:\n"
    "                for piece in [v] if isinstance(v, str) else v: o.write(piece.encode())\n"
    "def many(head, piece, n, tail):\n"
    "    yield head\n"
    "    for _ in range(n): yield piece * 1024\n"
    "    yield tail\n"
    "W = '<w:document xmlns:w=\"http://w\"><w:body>'\n"
    "E = '</w:body></w:document>'\n"
    "P = '<w:p><w:r><w:t>%s</w:t></w:r></w:p>'\n"
    "z('a.docx', word__document=W + P % 'Gr\\u00fc\\u00dfe' + P % 'from a document' + E)\n"
    "with zipfile.ZipFile('a.xlsx', 'w', zipfile.ZIP_DEFLATED) as f:\n"
    "    f.writestr('xl/workbook.xml', '<w xmlns:r=\"http://r\"><sheets><sheet name=\"Q1\" "
    "r:id=\"r1\"/></sheets></w>')\n"
    "    f.writestr('xl/_rels/workbook.xml.rels', '<Relationships><Relationship Id=\"r1\" "
    "Target=\"worksheets/s.xml\"/></Relationships>')\n"
    "    f.writestr('xl/sharedStrings.xml', '<sst><si><t>revenue</t></si></sst>')\n"
    "    f.writestr('xl/worksheets/s.xml', '<s><row><c r=\"A1\" t=\"s\"><v>0</v></c><c "
    "r=\"B1\"><v>4711</v></c></row></s>')\n"
    "b = b'%PDF-1.4\\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\\n2 0 obj<</Type/Pages/Kids[3 0 "
    "R]/Count 1>>endobj\\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 "
    "R/Resources<</Font<</F 5 0 R>>>>>>endobj\\n4 0 obj<</Length 36>>stream\\nBT /F 12 Tf 20 99 Td "
    "(Paper) Tj ET\\n\\nendstream endobj\\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/"
    "Helvetica>>endobj\\ntrailer<</Root 1 0 R>>\\n'\n"
    "open('a.pdf', 'wb').write(b)\n"
    "z('bomb.docx', word__document=many(W, 'x' * 1024, 300, E))\n"
    "z('slow.docx', word__document=many(W, P % 'x', 6800, E))\n"
    "open('cut.docx', 'wb').write(open('a.docx', 'rb').read()[:200])\n";

struct doc {
	struct str bytes; /* malloc()ed */
	struct buf base64;
	struct text id; /* once uploaded */
};

static void
make_documents(struct server *s)
{
	char out[2000];
	const char *const argv[] = {"python3", "-c", make, s->dir, NULL};
	int code = program_run("/usr/bin/python3", argv, out, sizeof(out));
	cr_assert_eq(code, 0, "%d %s", code, out);
}

static struct doc
take(struct server *s, const char *name)
{
	struct doc d = {.base64 = BUF_INIT(8u << 20)};
	struct err e;
	char path[400], *bytes;
	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	cr_assert_eq(fd_read_file(path, 4u << 20, &bytes, &d.bytes.len, &e), ERR_OK, "%s", e.msg);
	d.bytes.ptr = bytes;
	base64_encode(d.bytes, &d.base64);
	return d;
}

/* type: as a client says it; many say nothing. */
static struct doc
upload(struct server *s, const char *name, const char *type)
{
	struct doc d = take(s, name);
	struct reply r;
	server_upload(s, "/v1/files", name, type, d.bytes, "user_data", NULL, &r);
	cr_assert_eq(r.status, 200, "%s: %s", name, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(d.id.s, sizeof(d.id.s), str_c(at(root, "id"))));
	json_decref(root);
	reply_done(&r);
	return d;
}

static void
doc_done(struct doc *d)
{
	mem_free((char *)(uintptr_t)d->bytes.ptr);
	buf_done(&d->base64);
}

/* A user message with the uploaded documents, then a question. */
static char *
talk_of(const char *path, const struct doc *docs, size_t n)
{
	static const struct {
		const char *path, *before, *after, *text;
	} wires[] = {
	    {CHAT, "{\"type\":\"file\",\"file\":{\"file_id\":\"", "\"}}", "text"},
	    {MESSAGES, "{\"type\":\"document\",\"source\":{\"type\":\"file\",\"file_id\":\"",
		"\"}}", "text"},
	    {ANSWERS, "{\"type\":\"input_file\",\"file_id\":\"", "\"}", "input_text"},
	};
	struct buf b = BUF_INIT(65536);
	size_t w = 0;
	while (strcmp(wires[w].path, path) != 0)
		w++;
	buf_add(&b, STR("{\"role\":\"user\",\"content\":["));
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s%s,", wires[w].before, docs[i].id.s, wires[w].after);
	buf_printf(&b, "{\"type\":\"%s\",\"text\":\"what is it?\"}]}", wires[w].text);
	char *s = mem_strndup(b.ptr, b.len);
	buf_done(&b);
	return s;
}

static void
ask(struct server *s, const char *path, const char *model, const char *talk)
{
	struct reply r;
	const char *more = strcmp(path, ANSWERS) == 0 ? ",\"store\":false" : "";
	talk_ask(s, path, model, "", false, talk, more, &r);
	cr_assert_eq(r.status, 200, "%s %s: %ld %s", path, model, r.status, r.body.ptr);
	reply_done(&r);
}

static void
ask_about(struct server *s, const char *path, const char *model, const struct doc *docs, size_t n)
{
	char *talk = talk_of(path, docs, n);
	ask(s, path, model, talk);
	mem_free(talk);
}

/* Did the last request bring the provider the document's bytes? */
static bool
got_bytes(struct server *s, const struct doc *d)
{
	char *saw = provider_saw(s, 0);
	bool got = strstr(saw, d->base64.ptr) != NULL;
	mem_free(saw);
	return got;
}

static void
expect_text(struct server *s, const char *path, const char *text)
{
	char *saw = provider_saw(s, 0);
	cr_expect_eq(occurrences(saw, text), 1, "%s: %s\n%.3000s", path, text, saw);
	mem_free(saw);
}

static const char *const paths[] = {CHAT, MESSAGES, ANSWERS};

static bool
reads_pdf(void)
{
	return access("/usr/bin/pdftotext", X_OK) == 0;
}

#define WORDS                                                                                      \
	"[Attached file: a.docx]\\nGr\xc3\xbc\xc3\x9f"                                             \
	"e\\nfrom a document\\n\\n[End of file]"
#define SHEET "[Attached file: a.xlsx]\\n[Sheet Q1]\\nrevenue\\t4711\\n\\n[End of file]"

/* --- who reads what -------------------------------------------------------------------------- */

Test(documents, n91_n93_become_text_for_a_model_that_reads_none)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docs[] = {
	    upload(s, "a.docx", "application/octet-stream"),
	    upload(
		s, "a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
	    upload(s, "a.pdf", "application/pdf"),
	};
	size_t n = reads_pdf() ? 3 : 2;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask_about(s, paths[i], "plain:text", docs, n);
		expect_text(s, paths[i], WORDS);
		expect_text(s, paths[i], SHEET);
		if (n == 3)
			expect_text(s, paths[i], "Paper");
		char *saw = provider_saw(s, 0);
		cr_expect(strstr(saw, "base64") == NULL, "%s: %.3000s", paths[i], saw);
		cr_expect(strstr(saw, "file-") == NULL, "an id of ours: %.3000s", saw);
		mem_free(saw);
	}
	cr_expect_eq(server_metric(s, "otari_documents_total{result=\"text\"}"), 3.0 * (double)n);
	cr_expect_eq(server_metric(s, "otari_code_runs_total"), 0);

	/* for the code alone, but there is none */
	char *talk = NULL;
	cr_assert(asprintf(&talk,
		      "{\"role\":\"user\",\"content\":[{\"type\":\"container_upload\","
		      "\"file_id\":\"%s\"},{\"type\":\"text\",\"text\":\"q\"}]}",
		      docs[0].id.s) > 0);
	ask(s, MESSAGES, "plain:text", talk);
	free(talk);
	expect_text(s, MESSAGES, WORDS);
	for (size_t i = 0; i < ARRAY_LEN(docs); i++)
		doc_done(&docs[i]);
	server_stop(&s);
}

Test(documents, n91_n105_reach_a_service_that_reads_them_as_they_are)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc pdf = upload(s, "a.pdf", "application/pdf");
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	static const struct {
		const char *model;
		bool docx; /* read as well */
	} rows[] = {{"fake:text", false}, {"claude:text", false}, {"answers:text", true}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
			ask_about(s, paths[k], rows[i].model, &pdf, 1);
			cr_expect(got_bytes(s, &pdf), "%s %s", rows[i].model, paths[k]);
			ask_about(s, paths[k], rows[i].model, &docx, 1);
			cr_expect_eq(
			    got_bytes(s, &docx), rows[i].docx, "%s %s", rows[i].model, paths[k]);
			if (!rows[i].docx)
				expect_text(s, paths[k], WORDS);
		}
	doc_done(&pdf);
	doc_done(&docx);
	server_stop(&s);
}

Test(documents, n95_come_inline_in_every_dialect)
{
	static const struct {
		const char *path, *model, *before, *between, *after;
	} rows[] = {
	    {CHAT, "claude:text",
		"{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{\"filename\":"
		"\"a.docx\",\"file_data\":\"data:application/octet-stream;base64,",
		"", "\"}}]}"},
	    {MESSAGES, "plain:text",
		"{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"title\":\"a.docx\","
		"\"source\":{\"type\":\"base64\",\"media_type\":\"application/x-docx\",\"data\":\"",
		"", "\"}}]}"},
	    {ANSWERS, "plain:text",
		"{\"type\":\"input_file\",\"filename\":\"in/a.docx\",\"file_data\":"
		"\"data:application/octet-stream;base64,",
		"", "\"}"},
	};
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docx = take(s, "a.docx");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *talk = NULL;
		cr_assert(
		    asprintf(&talk, "%s%s%s", rows[i].before, docx.base64.ptr, rows[i].after) > 0);
		ask(s, rows[i].path, rows[i].model, talk);
		free(talk);
		expect_text(s, rows[i].path, WORDS);
		cr_expect_not(got_bytes(s, &docx), "%s", rows[i].path);
	}
	doc_done(&docx);
	server_stop(&s);
}

/* Requests in the provider's own format: where nothing is to be read they go as they are. */
Test(documents, leave_the_fast_path_only_where_one_is_to_be_read)
{
#define FILE_OF(type)                                                                              \
	"{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{\"filename\":\"a.docx\","    \
	"\"file_data\":\"data:" type ";base64,"
#define BLOCK_OF(type)                                                                             \
	"{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"title\":\"a.docx\",\"source\":{" \
	"\"type\":\"base64\",\"media_type\":\"" type "\",\"data\":\""
	enum { NO_DOC, DOCX, PDF };
	static const struct {
		const char *path, *model, *before;
		int doc;
		const char *after;
		bool is_read;
	} rows[] = {
	    {CHAT, "plain:text", FILE_OF("application/octet-stream"), DOCX, "\"}}]}", true},
	    {CHAT, "plain:text", "{\"role\":\"user\",\"content\":\"\\\"file_data\\\"\"}", NO_DOC,
		"", false},
	    {CHAT, "plain:text", FILE_OF("application/zip") "UEsDBA==", NO_DOC, "\"}}]}", true},
	    {CHAT, "fake:text", FILE_OF("application/pdf"), PDF, "\"}}]}", false},
	    {MESSAGES, "claude:text", BLOCK_OF("application/pdf"), PDF, "\"}}]}", false},
	    {MESSAGES, "claude:text", BLOCK_OF("application/octet-stream"), DOCX, "\"}}]}", true},
	    {ANSWERS, "answers:text",
		"{\"type\":\"input_file\",\"filename\":\"a.docx\",\"file_data\":"
		"\"data:application/octet-stream;base64,",
		DOCX, "\"}", false},
	};
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docs[] = {take(s, "a.docx"), take(s, "a.pdf")};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct doc *d = rows[i].doc != NO_DOC ? &docs[rows[i].doc - DOCX] : NULL;
		double fast = server_metric(s, "otari_fast_path_total");
		char *talk = NULL;
		cr_assert(asprintf(&talk, "%s%s%s", rows[i].before, d != NULL ? d->base64.ptr : "",
			      rows[i].after) > 0);
		ask(s, rows[i].path, rows[i].model, talk);
		cr_expect_eq(server_metric(s, "otari_fast_path_total") - fast,
		    rows[i].is_read ? 0 : 1, "row %zu", i);
		if (rows[i].is_read && d != NULL)
			expect_text(s, rows[i].path, WORDS);
		else if (!rows[i].is_read)
			expect_text(s, rows[i].path, talk); /* byte for byte */
		free(talk);
	}
	doc_done(&docs[0]);
	doc_done(&docs[1]);
	server_stop(&s);
}

/* --- what is wrong --------------------------------------------------------------------------- */

Test(documents, that_cannot_be_read_are_left_and_the_others_are_read)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docs[] = {
	    upload(s, "cut.docx", "application/octet-stream"),
	    upload(s, "bomb.docx", "application/octet-stream"),
	    upload(s, "a.docx", "application/octet-stream"),
	};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask_about(s, paths[i], "plain:text", docs, 3);
		cr_expect(got_bytes(s, &docs[0]), "%s", paths[i]);
		cr_expect(got_bytes(s, &docs[1]), "%s", paths[i]);
		expect_text(s, paths[i], WORDS);
	}
	cr_expect_eq(server_metric(s, "otari_documents_total{result=\"left\"}"), 6);
	for (size_t i = 0; i < ARRAY_LEN(docs); i++)
		doc_done(&docs[i]);
	server_stop(&s);
}

static bool
wait_sessions(struct server *s, double n)
{
	for (int i = 0; i < 3000; i++) {
		if (server_metric(s, "otari_sandbox_sessions_leased") == n)
			return true;
		pause_short();
	}
	return false;
}

Test(documents, whose_client_goes_away_leave_no_session)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc slow = upload(s, "slow.docx", "application/octet-stream");
	char *talk = talk_of(CHAT, &slow, 1);
	char *body = talk_body(CHAT, "plain:text", "", false, talk, "");
	int fd = stream_open(s, CHAT, body);
	cr_expect(wait_sessions(s, 1), "it is being read");
	close(fd);
	cr_expect(wait_sessions(s, 0), "nobody waits for it");
	cr_expect_eq(provider_count(s), 0);
	mem_free(body);
	mem_free(talk);
	doc_done(&slow);
	server_stop(&s);
}

Test(documents, do_not_hold_up_a_daemon_that_stops)
{
	struct server_opts o = {.conf = "drain_timeout_ms: 300\n"};
	struct server *s = start_sandboxed(&o);
	make_documents(s);
	server_expect(s, "not drained in time");
	struct doc slow = upload(s, "slow.docx", "application/octet-stream");
	char *talk = talk_of(CHAT, &slow, 1);
	char *body = talk_body(CHAT, "plain:text", "", false, talk, "");
	int fd = stream_open(s, CHAT, body);
	cr_expect(wait_sessions(s, 1), "it is being read");
	server_stop(&s); /* leaves nothing */
	close(fd);
	mem_free(body);
	mem_free(talk);
	doc_done(&slow);
}

Test(documents, are_left_where_there_is_no_room_to_read_them)
{
	struct server_opts o = {
	    .conf = "sandbox_max_sessions: 1\nsandbox_pool_size: 1\nsandbox_queue_ms: 100\n",
	    .workers = 1,
	};
	struct server *s = start_sandboxed(&o);
	make_documents(s);
	server_expect(s, "documents of a request stay as they are");
	struct doc slow = upload(s, "slow.docx", "application/octet-stream");
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	char *talk = talk_of(CHAT, &slow, 1);
	char *body = talk_body(CHAT, "plain:text", "", false, talk, "");
	int fd = stream_open(s, CHAT, body);
	cr_expect(wait_sessions(s, 1), "it is being read");
	ask_about(s, MESSAGES, "plain:text", &docx, 1);
	cr_expect(got_bytes(s, &docx));
	close(fd);
	mem_free(body);
	mem_free(talk);
	doc_done(&slow);
	doc_done(&docx);
	server_stop(&s);
}

/* Without a session, and so without a sandbox. */
Test(documents, n91_a_text_file_that_comes_inline_is_text_everywhere)
{
	static const char inline_csv[] =
	    "{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":{\"filename\":\"a.csv\","
	    "\"file_data\":\"data:text/csv;base64,YSxi\"}}]}";
	static const struct {
		const char *model, *saw;
	} rows[] = {
	    {"plain:text", "[Attached file: a.csv]\\na,b\\n[End of file]"},
	    {"fake:text", "[Attached file: a.csv]\\na,b\\n[End of file]"},
	    {"claude:text", "[Attached file: a.csv]\\na,b\\n[End of file]"},
	    {"answers:text", "data:text/csv;base64,YSxi"},
	};
	struct server *s = server_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask(s, CHAT, rows[i].model, inline_csv);
		expect_text(s, rows[i].model, rows[i].saw);
	}
	server_stop(&s);
}

static void
expect_left(const struct server_opts *o, struct server *s)
{
	make_documents(s);
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask_about(s, paths[i], "plain:text", &docx, 1);
		cr_expect(got_bytes(s, &docx), "%s %s", o->conf != NULL ? o->conf : "", paths[i]);
	}
	doc_done(&docx);
	server_stop(&s);
}

Test(documents, are_left_without_a_sandbox)
{
	struct server_opts o = {0};
	expect_left(&o, server_start(&o));
}

Test(documents, n91_are_left_where_the_deployment_wants_so)
{
	struct server_opts o = {.conf = "file_understanding_enabled: false\n"};
	struct server *s = start_sandboxed(&o);
	make_documents(s);
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask_about(s, paths[i], "plain:text", &docx, 1);
		cr_expect_not(got_bytes(s, &docx), "%s", paths[i]);
		expect_text(s, paths[i], docx.id.s);
	}
	doc_done(&docx);
	server_stop(&s);
}

Test(documents, are_read_also_where_a_workspace_may_run_no_code)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	put_policy(s, "{\"enabled\":false}");
	ask_about(s, CHAT, "plain:text", &docx, 1);
	expect_text(s, CHAT, WORDS);
	doc_done(&docx);
	server_stop(&s);
}

/* --- with code ------------------------------------------------------------------------------- */

Test(documents, n92_n94_are_read_once_and_lie_in_the_codes_directory)
{
	struct server *s = start_with_sandbox();
	make_documents(s);
	struct doc docx = upload(s, "a.docx", "application/octet-stream");
	struct buf talk = BUF_INIT(65536);
	struct reply r;
	char *twice = talk_of(MESSAGES, (struct doc[]){docx, docx}, 2);
	buf_printf(&talk,
	    "%s,{\"role\":\"assistant\",\"content\":\"?\"},{\"role\":\"user\",\"content\":"
	    "\"run: import os\\nprint(sorted(os.listdir()))\"}",
	    twice);
	talk_ask(s, MESSAGES, "plain:tool", DATED, false, talk.ptr, "", &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "['a.docx', 'outputs']");
	char *saw = provider_saw(s, 1);
	cr_expect_eq(occurrences(saw, WORDS), 2, "%.3000s", saw);
	cr_expect_eq(server_metric(s, "otari_documents_total{result=\"text\"}"), 1);
	mem_free(saw);
	mem_free(twice);
	buf_done(&talk);
	reply_done(&r);
	doc_done(&docx);
	server_stop(&s);
}
