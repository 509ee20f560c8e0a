#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

static _Atomic int log_fd = STDERR_FILENO;
static _Atomic int log_max = LOG_INFO;
static bool log_json;
static char log_proc[32] = "otari";

static const char *const level_names[] = {"error", "warn", "notice", "info", "debug"};

struct line {
	char b[LOG_LINE_MAX];
	size_t n;
};

void
log_setup(int fd, bool json, enum log_level max, const char *proc)
{
	log_fd = fd;
	log_json = json;
	log_max = (int)max;
	(void)snprintf(log_proc, sizeof(log_proc), "%s", proc);
}

void
log_set_fd(int fd)
{
	log_fd = fd;
}

void
log_set_level(enum log_level max)
{
	log_max = (int)max;
}

bool
log_level_parse(struct str s, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
		if (str_eq_nocase(s, str_c(level_names[i]))) {
			*ret = (enum log_level)i;
			return true;
		}
	return false;
}

/* Keeps 8 bytes for the end of the line, so that a cut line still closes. */
static void
put(struct line *l, struct str s)
{
	size_t room = sizeof(l->b) - 8 - l->n;
	if (s.len > room)
		s.len = room;
	if (s.len > 0)
		memcpy(l->b + l->n, s.ptr, s.len);
	l->n += s.len;
}

static void
put_escaped(struct line *l, struct str s)
{
	while (s.len > 0 && l->n + 16 < sizeof(l->b)) {
		bool cut;
		unsigned char c = (unsigned char)s.ptr[0];
		char esc[8];
		if (c == '"' || c == '\\') {
			esc[0] = '\\';
			esc[1] = (char)c;
			put(l, str_n(esc, 2));
		} else if (c < 0x20 || c == 0x7f) {
			(void)snprintf(esc, sizeof(esc), "\\u%04x", c);
			put(l, str_n(esc, 6));
		} else if (c < 0x80) {
			put(l, str_n(s.ptr, 1));
		} else {
			size_t n = utf8_prefix(str_sub(s, 0, 4), &cut);
			if (n == 0) {
				put(l, STR("\xef\xbf\xbd"));
			} else {
				/* one character: up to the next lead byte */
				size_t one = 1;
				while (one < n && ((unsigned char)s.ptr[one] & 0xc0) == 0x80)
					one++;
				put(l, str_n(s.ptr, one));
				s = str_from(s, one - 1);
			}
		}
		s = str_from(s, 1);
	}
}

static void
put_field(struct line *l, const struct log_field *f)
{
	char num[24];
	put(l, log_json ? STR(",\"") : STR(" "));
	put(l, str_c(f->key));
	put(l, log_json ? STR("\":") : STR("="));
	if (f->type == LOG_F_INT) {
		int n = snprintf(num, sizeof(num), "%lld", (long long)f->num);
		put(l, str_n(num, (size_t)n));
		return;
	}
	if (log_json)
		put(l, STR("\""));
	put_escaped(l, f->str);
	if (log_json)
		put(l, STR("\""));
}

void
log_write(enum log_level level, const char *msg, const struct log_field *f, size_t n)
{
	if ((int)level > log_max)
		return;
	int saved = errno;
	struct line l;
	l.n = 0;
	char ts[CLOCK_RFC3339_SIZE], head[160];
	clock_rfc3339_ms(clock_wall_ms(), ts);
	int hn = log_json
		     ? snprintf(head, sizeof(head),
			   "{\"ts\":\"%s\",\"level\":\"%s\",\"proc\":\"%s\",\"pid\":%d,\"msg\":\"",
			   ts, level_names[level], log_proc, (int)getpid())
		     : snprintf(head, sizeof(head), "%s %-6s %s[%d]: ", ts, level_names[level],
			   log_proc, (int)getpid());
	put(&l, str_n(head, (size_t)hn));
	put_escaped(&l, str_c(msg));
	if (log_json)
		put(&l, STR("\""));
	for (size_t i = 0; i < n; i++)
		if (f[i].key != NULL)
			put_field(&l, &f[i]);
	if (log_json)
		l.b[l.n++] = '}';
	l.b[l.n++] = '\n';
	ssize_t ignored = write(log_fd, l.b, l.n);
	(void)ignored;
	errno = saved;
}
