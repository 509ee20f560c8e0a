/* json.h - span reader: finds the structure of a JSON text and leaves the bytes alone
 *
 * Process: any; pure. For bodies and events of clients, providers and models. (Administrative
 * bodies and database columns are read with Jansson.) Owns:    the token table lives in the given
 * arena; every span points into the text, which must outlive it. Limits:  LIMIT_JSON_DEPTH,
 * LIMIT_JSON_TOKENS. The whole text is checked strictly (RFC 8259, UTF-8); numbers are never
 * converted unless asked; a lone surrogate escape is legal and kept as sent.
 *
 * A value is a small handle passed by value; look-ups on an absent or wrong-typed value give absent
 * again, so that paths can be written without checks: jv_get(jv_get(root, "usage"),
 * "input_tokens").
 */
#ifndef OTARI_BASE_JSON_H
#define OTARI_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum jtype { JT_ABSENT, JT_NULL, JT_FALSE, JT_TRUE, JT_NUMBER, JT_STRING, JT_ARRAY, JT_OBJECT };

struct jdoc; /* token table */
struct jval {
	const struct jdoc *doc;
	uint32_t tok; /* 0 with doc NULL: absent */
};
#define JV_ABSENT ((struct jval){NULL, 0})

/* Parses all of text (nothing but white space may follow). ERR_INPUT names the byte offset. */
MUST_CHECK enum err_code jdoc_parse(
    struct arena *a, struct str text, struct jval *ret_root, struct err *reterr);
/* ERR_INPUT when a key of `keys` (NULL-terminated list) occurs twice in the object: for keys that
 * decide (model, stream, tools, …) so that two readers cannot disagree. Compares decoded key text.
 */
MUST_CHECK enum err_code jv_unique(struct jval object, const char *const *keys, struct err *reterr);

enum jtype jv_type(struct jval v);
bool jv_is(struct jval v, enum jtype t);
bool jv_present(struct jval v);                          /* there and not null */
struct jval jv_get(struct jval object, const char *key); /* the last one, if written twice */
struct jval jv_at(struct jval array, uint32_t i);        /* O(i) */
uint32_t jv_count(struct jval array_or_object);          /* elements or members */
/* Iteration in document order: struct jiter it = {0}; while (jv_next(v, &it)) use it.key, it.value.
 * key is JV_ABSENT in arrays; otherwise a string value. */
struct jiter {
	uint32_t pos;
	bool started;
	struct jval key, value;
};
bool jv_next(struct jval array_or_object, struct jiter *it);

struct str jv_raw(struct jval v); /* the bytes as sent, quotes included; STR_NULL if absent */
/* Decoded text of a string; without escapes it points into the document, otherwise into the arena.
 * Lone surrogates become U+FFFD. STR_NULL when v is no string. */
struct str jv_str(struct arena *a, struct jval v);
bool jv_str_is(struct jval v, const char *text); /* string and equal, no allocation */
bool jv_bool(struct jval v, bool dflt);
bool jv_i64(struct jval v, int64_t *ret); /* integers (also 1e3, 5.0); false otherwise */
bool jv_double(struct jval v, double *ret);
int64_t jv_i64_or(struct jval v, int64_t dflt);
/* Offset of the value in the text, for splicing. */
size_t jv_offset(struct jval v);

#endif
