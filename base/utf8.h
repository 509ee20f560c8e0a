/* utf8.h - checking and mending text of strangers. Pure. */
#ifndef OTARI_BASE_UTF8_H
#define OTARI_BASE_UTF8_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

bool utf8_valid(struct str s); /* strict: no surrogates, no overlong forms */
/* Length of the longest valid prefix; *ret_cut is true when only an unfinished sequence follows. */
size_t utf8_prefix(struct str s, bool *ret_cut);
/* Appends s with every invalid byte run replaced by U+FFFD. */
void utf8_mend(struct str s, struct buf *dst);
/* The longest prefix of at most max bytes that does not cut a character. */
struct str utf8_cut(struct str s, size_t max);
/* Appends one code point (0xFFFD for what is not one). */
void utf8_put(struct buf *dst, uint32_t code_point);

#endif
