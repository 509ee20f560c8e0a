/* report.h - collects what is wrong with a configuration, each line with file and line number
 *
 * Process: builder, otari -t, otarictl. Not thread-safe.
 * Limits:  REPORT_LINES_MAX errors and as many warnings are kept; the rest is only counted.
 * Values of secrets are never passed here; values of other keys are cut to a readable length.
 */
#ifndef OTARI_CONF_REPORT_H
#define OTARI_CONF_REPORT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define REPORT_LINES_MAX 50u
#define REPORT_ENVIRON   UINT32_MAX /* as a line: the environment */

struct conf_report {
	const char *file;            /* as the operator named it; borrowed */
	struct buf errors, warnings; /* "file:line: message" lines, separated by \n */
	unsigned error_count, warning_count;
	struct err first; /* the first error, for callers with room for one line */
};

void conf_report_init(struct conf_report *r, const char *file);
void conf_report_done(struct conf_report *r);
/* line 0: the file as a whole; REPORT_ENVIRON. */
void conf_error(struct conf_report *r, uint32_t line, const char *fmt, ...) PRINTF(3, 4);
void conf_warning(struct conf_report *r, uint32_t line, const char *fmt, ...) PRINTF(3, 4);
/* For "%.*s": at most 60 bytes of a value, never a cut character. */
struct str conf_shown(struct str value);

#endif
