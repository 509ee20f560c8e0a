#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum err_code
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	int saved = errno;
	if (e == NULL)
		return code;
	e->code = code;
	e->sys_errno = code == ERR_IO ? saved : 0;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (e->sys_errno != 0 && n >= 0 && (size_t)n < sizeof(e->msg))
		(void)snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, ": %s", strerror(saved));
	errno = saved;
	return code;
}

void
err_prefix(struct err *e, const char *fmt, ...)
{
	if (e == NULL)
		return;
	char old[sizeof(e->msg)];
	memcpy(old, e->msg, sizeof(old));
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->msg))
		(void)snprintf(e->msg + n, sizeof(e->msg) - (size_t)n, "%.*s",
		    (int)(sizeof(e->msg) - (size_t)n - 1), old);
}

const char *
err_name(enum err_code code)
{
	static const char *const names[ERR_MAX_] = {
	    [ERR_OK] = "ok",
	    [ERR_INPUT] = "input",
	    [ERR_AUTH] = "auth",
	    [ERR_DENIED] = "denied",
	    [ERR_NOTFOUND] = "not_found",
	    [ERR_CONFLICT] = "conflict",
	    [ERR_TOOLARGE] = "too_large",
	    [ERR_LIMIT] = "limit",
	    [ERR_BUDGET] = "budget",
	    [ERR_TIMEOUT] = "timeout",
	    [ERR_UPSTREAM] = "upstream",
	    [ERR_UNCERTAIN] = "uncertain",
	    [ERR_BUSY] = "busy",
	    [ERR_IO] = "io",
	    [ERR_PROTO] = "protocol",
	    [ERR_NOMEM] = "no_memory",
	    [ERR_UNSUPPORTED] = "unsupported",
	    [ERR_INTERNAL] = "internal",
	};
	return (unsigned)code < ERR_MAX_ ? names[code] : "unknown";
}
