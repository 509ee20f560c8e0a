/* convert.c - the extractors of text: a fixed table of programs, one of the session's files
 *
 * The worker names the extractor, never a program or an option. Where the program of a kind is not
 * installed the next one is tried; where none is, the call fails as one of a missing command.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

#define ARGS_MAX 12

/* The script's text, followed by a NUL. */
extern const char extract_text[];
__asm__(".section .rodata\n"
	".global extract_text\n"
	"extract_text:\n"
	".incbin \"sandbox/init/extract.py\"\n"
	".byte 0\n"
	".previous\n");

/* Stands for the file, an absolute path. */
static const char file_arg[] = "FILE";

static const struct {
	enum frame_extractor extractor;
	const char *path; /* NULL: the script, with argv as its arguments */
	const char *argv[ARGS_MAX];
} table[] = {
    {FRAME_EXTRACT_PDF, "/usr/bin/pdftotext",
	{"pdftotext", "-layout", "-q", "-enc", "UTF-8", file_arg, "-"}},
    {FRAME_EXTRACT_DOC, "/usr/bin/antiword", {"antiword", "-m", "UTF-8.txt", file_arg}},
    {FRAME_EXTRACT_DOC, "/usr/bin/catdoc", {"catdoc", "-d", "utf-8", file_arg}},
    {FRAME_EXTRACT_DOCX, NULL, {"docx", file_arg}},
    {FRAME_EXTRACT_PPTX, NULL, {"pptx", file_arg}},
    {FRAME_EXTRACT_XLSX, NULL, {"xlsx", file_arg}},
    {FRAME_EXTRACT_ODF, NULL, {"odf", file_arg}},
    {FRAME_EXTRACT_HTML, NULL, {"html", file_arg}},
};

static int
start(size_t row, const char *file)
{
	const char *const script[] = {
	    python_path, "-I", "-S", "-B", "-X", "utf8", "-c", extract_text};
	const char *argv[ARGS_MAX + sizeof(script) / sizeof(script[0])] = {NULL};
	const char *const paths[] = {table[row].path != NULL ? table[row].path : python_path, NULL};
	size_t n = 0;
	if (table[row].path == NULL)
		for (; n < sizeof(script) / sizeof(script[0]); n++)
			argv[n] = script[n];
	for (size_t i = 0; table[row].argv[i] != NULL; i++)
		argv[n++] = table[row].argv[i] == file_arg ? file : table[row].argv[i];
	return program_start(paths, argv, STR_NULL);
}

int
convert_start(struct str source)
{
	struct frame_convert c;
	char file[sizeof(INIT_WORK) + FRAME_PATH_MAX + 1] = INIT_WORK "/";
	if (!frame_convert_get(source, &c))
		init_leave(70);
	memcpy(file + sizeof(INIT_WORK), c.path.ptr, c.path.len);
	file[sizeof(INIT_WORK) + c.path.len] = '\0';
	int e = ENOENT;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && e == ENOENT; i++)
		if (table[i].extractor == c.extractor)
			e = start(i, file);
	return e;
}
