/* convert.c - text of documents, by the programs of a session; the documents are made in it */
#include <string.h>

#include "tests/probes/probe.h"

static struct probe_result r;

static const char make[] =
    "import zipfile\n"
    "def z(name, **parts):\n"
    "    with zipfile.ZipFile(name, 'w', zipfile.ZIP_DEFLATED) as f:\n"
    "        for k, v in parts.items(): f.writestr(k.replace('__', '/') + '.xml', v)\n"
    "W = '<w:%s xmlns:w=\"http://w\">'\n"
    "z('a.docx', word__document=W % 'document' + '<w:p><w:r><w:t>Gr\\u00fc\\u00dfe</w:t><w:tab/>"
    "<w:t>two</w:t></w:r></w:p><w:p><w:instrText>no</w:instrText><w:t>end</w:t></w:p>"
    "</w:document>')\n"
    "A = '<s xmlns:a=\"http://a\"><a:p><a:t>%s</a:t></a:p></s>'\n"
    "z('a.pptx', ppt__slides__slide10=A % 'last', ppt__slides__slide2=A % 'second', "
    "ppt__slides__slide1=A % 'first')\n"
    "R = '<Relationships><Relationship Id=\"r1\" Target=\"worksheets/s.xml\"/></Relationships>'\n"
    "with zipfile.ZipFile('a.xlsx', 'w') as f:\n"
    "    f.writestr('xl/workbook.xml', '<w xmlns:r=\"http://r\"><sheet name=\"Q1\" "
    "r:id=\"r1\"/></w>')\n"
    "    f.writestr('xl/_rels/workbook.xml.rels', R)\n"
    "    f.writestr('xl/sharedStrings.xml', "
    "'<sst><si><t>name</t></si><si><r><t>ri</t></r><r><t>ch</t></r></si></sst>')\n"
    "    f.writestr('xl/worksheets/s.xml', '<s><row><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" "
    "t=\"s\"><v>1</v></c></row><row><c r=\"B2\"><v>4.5</v></c><c "
    "t=\"s\"><v>99</v></c></row></s>')\n"
    "z('a.odt', content='<d xmlns:t=\"http://t\"><t:h>Head</t:h><t:p>a<t:s "
    "t:c=\"3\"/>b</t:p></d>')\n"
    "open('a.html', 'w').write('<title>T</title><style>x{}</style><p>a  "
    "<b>b</b>&amp;c<script>no</script>')\n"
    "b = b'%PDF-1.4\\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\\n2 0 obj<</Type/Pages/Kids[3 0 "
    "R]/Count 1>>endobj\\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 "
    "R/Resources<</Font<</F 5 0 R>>>>>>endobj\\n4 0 obj<</Length 36>>stream\\nBT /F 12 Tf 20 99 Td "
    "(Paper) Tj ET\\n\\nendstream endobj\\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/"
    "Helvetica>>endobj\\ntrailer<</Root 1 0 R>>\\n'\n"
    "open('-a.pdf', 'wb').write(b)\n"
    "z('bomb.docx', word__document=W % 'document' + '<w:t>' + 'x' * (300 << 20) + "
    "'</w:t></w:document>')\n"
    "z('dtd.docx', word__document='<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>')\n"
    "z('cut.docx', word__document=W % 'document' + '<w:t>part')\n"
    "open('no.docx', 'w').write('text')\n";

static void
texts(struct probe_host *h, struct code_session *s)
{
	static const struct {
		enum code_extractor extractor;
		const char *name, *out;
	} rows[] = {
	    {CODE_EXTRACT_DOCX, "a.docx",
		"Gr\xc3\xbc\xc3\x9f"
		"e\ttwo\nend\n"},
	    {CODE_EXTRACT_PPTX, "a.pptx", "[Slide 1]\nfirst\n[Slide 2]\nsecond\n[Slide 3]\nlast\n"},
	    {CODE_EXTRACT_XLSX, "a.xlsx", "[Sheet Q1]\nname\t\trich\n\t4.5\t99\n"},
	    {CODE_EXTRACT_ODF, "a.odt", "Head\na   b\n"},
	    {CODE_EXTRACT_HTML, "a.html", "\nT\n\na b&c\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		probe_name("convert: the text of a document");
		probe_convert(h, s, rows[i].extractor, rows[i].name, 0, &r);
		EXPECT(!r.failed && r.return_code == 0, "%s: %d %s%s", rows[i].name, r.return_code,
		    r.err, r.why);
		EXPECT(strcmp(r.out, rows[i].out) == 0, "%s: %s", rows[i].name, r.out);
		EXPECT(r.file_count == 0, "%zu", r.file_count);
	}
	probe_name("convert: a PDF, or that there is no program for it");
	probe_convert(h, s, CODE_EXTRACT_PDF, "-a.pdf", 0, &r);
	if (r.return_code == 127)
		EXPECT(strstr(r.err, "no program for this") != NULL, "%s", r.err);
	else
		EXPECT(r.return_code == 0 && strstr(r.out, "Paper") != NULL, "%d %s%s",
		    r.return_code, r.out, r.err);
}

static void
refused(struct probe_host *h, struct code_session *s)
{
	static const struct {
		const char *name, *err;
	} rows[] = {{"bomb.docx", "too large when unpacked"}, {"dtd.docx", "document type"},
	    {"cut.docx", "no element found"}, {"no.docx", "cannot be read"},
	    {"none.docx", "No such file"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		probe_name("convert: what is no such document is told in one line");
		probe_convert(h, s, CODE_EXTRACT_DOCX, rows[i].name, 0, &r);
		EXPECT(!r.failed && !r.died && r.return_code == 1, "%s: %d %s", rows[i].name,
		    r.return_code, r.why);
		EXPECT(strstr(r.err, rows[i].err) != NULL &&
			   strchr(r.err, '\n') == strrchr(r.err, '\n'),
		    "%s: %s", rows[i].name, r.err);
	}
	probe_name("convert: one that takes too long ends at the limit");
	probe_exec(h, s, "os.mkfifo('pipe')", 0, &r);
	probe_convert(h, s, CODE_EXTRACT_HTML, "pipe", 500, &r);
	EXPECT(r.timed_out && r.return_code == 124 && !r.died, "%d", r.return_code);
	probe_name("convert: variables are kept");
	probe_exec(h, s, "print(keep)", 0, &r);
	EXPECT(strcmp(r.out, "41\n") == 0, "%s%s", r.out, r.err);
}

void
probes_convert(struct probe_host *h)
{
	struct code_session *s = probe_open(h, NULL);
	if (s == NULL)
		return;
	probe_name("convert: documents are made");
	probe_exec(h, s, "keep = 41\nimport os", 0, &r);
	probe_exec(h, s, make, 60000, &r);
	EXPECT(r.return_code == 0, "%s", r.err);
	texts(h, s);
	refused(h, s);
	code_session_close(&s);
}
