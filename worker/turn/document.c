#include "worker/turn/document.h"

#include "base/base64.h"
#include "worker/turn/attach_plan.h"

#define HEAD_BYTES 1024u /* where a document shows what it is */

/* --- what it is ------------------------------------------------------------------------------ */
/* "<" behind a byte order mark and white space, and no NUL: as browsers tell it, about. */
static bool
starts_as_markup(struct str head)
{
	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_from(head, 3);
	return str_starts(str_trim(head), STR("<")) && str_chr(head, '\0') == SIZE_MAX;
}

static bool
starts_as(enum code_extractor e, struct str head)
{
	switch (e) {
	case CODE_EXTRACT_PDF: /* readers take something in front of it */
		return str_find(head, STR("%PDF-")) != SIZE_MAX;
	case CODE_EXTRACT_DOC:
		return str_starts(head, STR("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"));
	case CODE_EXTRACT_DOCX:
	case CODE_EXTRACT_PPTX:
	case CODE_EXTRACT_XLSX:
	case CODE_EXTRACT_ODF:
		return str_starts(head, STR("PK\x03\x04"));
	case CODE_EXTRACT_HTML:
		return starts_as_markup(head);
	}
	return false;
}

bool
document_kind(
    struct str media_type, struct str filename, struct str base64, enum code_extractor *ret)
{
	enum code_extractor by_type, by_name;
	bool has_type = code_extractor_of(media_type, &by_type);
	bool has_name = code_extractor_of_name(filename, &by_name);
	if (!has_type && !has_name)
		return false;
	struct buf head = BUF_INIT(2 * HEAD_BYTES);
	size_t n = BASE64_LEN(HEAD_BYTES); /* whole groups, and no padding among them */
	bool found = base64_decode(str_sub(base64, 0, n), &head);
	if (found && has_type && starts_as(by_type, buf_str(&head)))
		*ret = by_type;
	else if (found && has_name && starts_as(by_name, buf_str(&head)))
		*ret = by_name;
	else
		found = false;
	buf_done(&head);
	return found;
}

bool
document_is_text(struct str media_type, struct str filename)
{
	static const struct str extensions[] = {STR_INIT("txt"), STR_INIT("md"), STR_INIT("csv"),
	    STR_INIT("tsv"), STR_INIT("json"), STR_INIT("jsonl"), STR_INIT("xml"), STR_INIT("yaml"),
	    STR_INIT("yml"), STR_INIT("toml"), STR_INIT("ini"), STR_INIT("log"), STR_INIT("sql"),
	    STR_INIT("py"), STR_INIT("js"), STR_INIT("ts"), STR_INIT("c"), STR_INIT("h"),
	    STR_INIT("sh")};
	size_t dot = str_rchr(filename, '.');
	if (media_type.len > 0 && !str_eq_nocase(media_type, STR("application/octet-stream")))
		return attach_is_text(media_type);
	for (size_t i = 0; dot != SIZE_MAX && i < ARRAY_LEN(extensions); i++)
		if (str_eq_nocase(str_from(filename, dot + 1), extensions[i]))
			return true;
	return false;
}

/* --- who reads it ---------------------------------------------------------------------------- */
uint32_t
documents_read(struct str provider_type, enum wire wire, int native)
{
	/* What the service's own documentation says of documents that come inline. A service that
	 * is not here (mistral and gemini on the chat wire, servers of open models) either names no
	 * such part on that wire or names it by address only. */
	static const struct {
		struct str provider;
		enum wire wire;
		uint32_t formats;
	} rows[] = {
	    /* document block, source base64: application/pdf and nothing else */
	    {STR_INIT("anthropic"), WIRE_MESSAGES, DOCUMENT_BIT(CODE_EXTRACT_PDF)},
	    /* file inputs: file parts of Chat are PDF only, input_file takes office formats, HTML…
	     */
	    {STR_INIT("openai"), WIRE_CHAT, DOCUMENT_BIT(CODE_EXTRACT_PDF)},
	    {STR_INIT("openai"), WIRE_RESPONSES, DOCUMENTS_ALL},
	    /* of the Responses API there, PDF alone is documented, and of Chat nothing */
	    {STR_INIT("azure"), WIRE_RESPONSES, DOCUMENT_BIT(CODE_EXTRACT_PDF)},
	    /* PDF inputs: parsed there where the model cannot; the Messages block is Anthropic's */
	    {STR_INIT("openrouter"), WIRE_CHAT, DOCUMENT_BIT(CODE_EXTRACT_PDF)},
	    {STR_INIT("openrouter"), WIRE_MESSAGES, DOCUMENT_BIT(CODE_EXTRACT_PDF)},
	};
	if (native >= 0)
		return native == 1 ? DOCUMENTS_ALL : DOCUMENTS_NONE;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].wire == wire && str_eq_nocase(rows[i].provider, provider_type))
			return rows[i].formats;
	return DOCUMENTS_NONE;
}
