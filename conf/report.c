#include "conf/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

#define LINE_BYTES 512u

void
conf_report_init(struct conf_report *r, const char *file)
{
	*r = (struct conf_report){.file = file};
	buf_init(&r->errors, (size_t)REPORT_LINES_MAX * LINE_BYTES);
	buf_init(&r->warnings, (size_t)REPORT_LINES_MAX * LINE_BYTES);
}

void
conf_report_done(struct conf_report *r)
{
	buf_done(&r->errors);
	buf_done(&r->warnings);
}

struct str
conf_shown(struct str value)
{
	return utf8_cut(value, 60);
}

/* One line, and nothing that a terminal would act on. */
static void
make_plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7F)
			*text = '?';
}

static void
add(struct conf_report *r, struct buf *to, uint32_t line, const char *text)
{
	if (to->len > 0)
		buf_addc(to, '\n');
	if (line == REPORT_ENVIRON)
		buf_printf(to, "environment: %s", text);
	else if (line > 0)
		buf_printf(to, "%s:%u: %s", r->file, line, text);
	else
		buf_printf(to, "%s: %s", r->file, text);
}

void
conf_error(struct conf_report *r, uint32_t line, const char *fmt, ...)
{
	char text[LINE_BYTES - 128];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	make_plain(text);
	if (r->error_count++ < REPORT_LINES_MAX)
		add(r, &r->errors, line, text);
	if (r->error_count > 1)
		return;
	if (line == REPORT_ENVIRON)
		(void)err_set(&r->first, ERR_INPUT, "environment: %s", text);
	else if (line > 0)
		(void)err_set(&r->first, ERR_INPUT, "%s:%u: %s", r->file, line, text);
	else
		(void)err_set(&r->first, ERR_INPUT, "%s: %s", r->file, text);
}

void
conf_warning(struct conf_report *r, uint32_t line, const char *fmt, ...)
{
	char text[LINE_BYTES - 128];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	make_plain(text);
	if (r->warning_count++ < REPORT_LINES_MAX)
		add(r, &r->warnings, line, text);
}
