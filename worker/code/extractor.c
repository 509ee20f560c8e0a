#include "base/mem.h"
#include "worker/code/session.h"

bool
code_extractor_of(struct str type, enum code_extractor *ret)
{
#define OOXML "application/vnd.openxmlformats-officedocument."
#define ODF   "application/vnd.oasis.opendocument."
	static const struct {
		struct str type;
		enum code_extractor extractor;
	} rows[] = {
	    {STR_INIT("application/pdf"), CODE_EXTRACT_PDF},
	    {STR_INIT("application/msword"), CODE_EXTRACT_DOC},
	    {STR_INIT(OOXML "wordprocessingml.document"), CODE_EXTRACT_DOCX},
	    {STR_INIT(OOXML "presentationml.presentation"), CODE_EXTRACT_PPTX},
	    {STR_INIT(OOXML "spreadsheetml.sheet"), CODE_EXTRACT_XLSX},
	    {STR_INIT(ODF "text"), CODE_EXTRACT_ODF},
	    {STR_INIT(ODF "spreadsheet"), CODE_EXTRACT_ODF},
	    {STR_INIT(ODF "presentation"), CODE_EXTRACT_ODF},
	    {STR_INIT("text/html"), CODE_EXTRACT_HTML},
	    {STR_INIT("application/xhtml+xml"), CODE_EXTRACT_HTML},
	};
	type = str_trim(str_sub(type, 0, str_chr(type, ';')));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq_nocase(type, rows[i].type)) {
			*ret = rows[i].extractor;
			return true;
		}
	return false;
}

bool
code_extractor_of_name(struct str filename, enum code_extractor *ret)
{
	static const struct {
		struct str extension;
		enum code_extractor extractor;
	} rows[] = {
	    {STR_INIT("pdf"), CODE_EXTRACT_PDF},
	    {STR_INIT("doc"), CODE_EXTRACT_DOC},
	    {STR_INIT("docx"), CODE_EXTRACT_DOCX},
	    {STR_INIT("pptx"), CODE_EXTRACT_PPTX},
	    {STR_INIT("xlsx"), CODE_EXTRACT_XLSX},
	    {STR_INIT("odt"), CODE_EXTRACT_ODF},
	    {STR_INIT("ods"), CODE_EXTRACT_ODF},
	    {STR_INIT("odp"), CODE_EXTRACT_ODF},
	    {STR_INIT("html"), CODE_EXTRACT_HTML},
	    {STR_INIT("htm"), CODE_EXTRACT_HTML},
	    {STR_INIT("xhtml"), CODE_EXTRACT_HTML},
	};
	size_t dot = str_rchr(filename, '.');
	if (dot == SIZE_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq_nocase(str_from(filename, dot + 1), rows[i].extension)) {
			*ret = rows[i].extractor;
			return true;
		}
	return false;
}
