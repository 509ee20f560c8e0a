/* json_write.h - appends JSON to a buffer; commas and escaping are its job
 *
 * Pure. Raw spans that a stranger sent and base/json checked may be put in unchanged (jw_raw).
 */
#ifndef OTARI_BASE_JSON_WRITE_H
#define OTARI_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define JW_DEPTH 64

struct jw {
	struct buf *out; /* borrowed */
	unsigned depth;
	bool need_comma[JW_DEPTH + 1];
};

void jw_init(struct jw *w, struct buf *out);
void jw_object(struct jw *w); /* { */
void jw_array(struct jw *w);  /* [ */
void jw_end_object(struct jw *w);
void jw_end_array(struct jw *w);
void jw_key(struct jw *w, const char *key);
void jw_key_str(struct jw *w, struct str key);
/* Values. Invalid UTF-8 in s becomes U+FFFD; control characters are escaped; NUL as \u0000. */
void jw_str(struct jw *w, struct str s);
void jw_cstr(struct jw *w, const char *s); /* NULL writes null */
void jw_i64(struct jw *w, int64_t v);
void jw_double(struct jw *w, double v); /* shortest text that reads back the same */
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, struct str json); /* one complete value, already checked */
/* key + value in one call */
void jw_kstr(struct jw *w, const char *key, struct str s);
void jw_kcstr(struct jw *w, const char *key, const char *s);
void jw_ki64(struct jw *w, const char *key, int64_t v);
void jw_kbool(struct jw *w, const char *key, bool v);
void jw_knull(struct jw *w, const char *key);
void jw_kraw(struct jw *w, const char *key, struct str json);
/* The inside of a JSON string (no quotes), for streaming a string in pieces. */
void jw_escape(struct buf *out, struct str s);

#endif
