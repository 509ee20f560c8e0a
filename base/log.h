/* log.h - one JSON object a line (or readable text), one write each
 *
 * Process: any; thread-safe. Lines are at most LOG_LINE_MAX bytes, so that those of several
 * processes do not mix in one O_APPEND file. Fields are typed; nothing of a key, prompt, completion
 * or SQL value is ever passed here. Levels:  ERROR a person must act; WARN degraded, we go on;
 * NOTICE life cycle; INFO a line a request.
 */
#ifndef OTARI_BASE_LOG_H
#define OTARI_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define LOG_LINE_MAX 4096

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

struct log_field {
	const char *key;
	enum { LOG_F_STR, LOG_F_INT } type;
	struct str str;
	int64_t num;
};

/* proc: "master", "worker 1", …; copied. fd is borrowed (not closed by later calls). */
void log_setup(int fd, bool json, enum log_level max, const char *proc);
void log_set_fd(int fd); /* after USR1 */
void log_set_level(enum log_level max);
bool log_level_parse(struct str s, enum log_level *ret);
void log_write(enum log_level level, const char *msg, const struct log_field *f, size_t n);

#define LOG_STR(k, v) ((struct log_field){(k), LOG_F_STR, (v), 0})
#define LOG_C(k, v)   ((struct log_field){(k), LOG_F_STR, str_c(v), 0})
#define LOG_INT(k, v) ((struct log_field){(k), LOG_F_INT, {NULL, 0}, (int64_t)(v)})
#define LOG_ERR(e)    ((struct log_field){"error", LOG_F_STR, str_c((e)->msg), 0})
#define LOG_AT(level, msg, ...)                                                                    \
	log_write((level), (msg),                                                                  \
	    (const struct log_field[]){{NULL, LOG_F_INT, {NULL, 0}, 0}, ##__VA_ARGS__},            \
	    sizeof((const struct log_field[]){{NULL, LOG_F_INT, {NULL, 0}, 0}, ##__VA_ARGS__}) /   \
		sizeof(struct log_field))
#define log_error(msg, ...)  LOG_AT(LOG_ERROR, msg, ##__VA_ARGS__)
#define log_warn(msg, ...)   LOG_AT(LOG_WARN, msg, ##__VA_ARGS__)
#define log_notice(msg, ...) LOG_AT(LOG_NOTICE, msg, ##__VA_ARGS__)
#define log_info(msg, ...)   LOG_AT(LOG_INFO, msg, ##__VA_ARGS__)
#define log_debug(msg, ...)  LOG_AT(LOG_DEBUG, msg, ##__VA_ARGS__)

#endif
