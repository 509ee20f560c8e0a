/* str.h - views of length-counted bytes
 *
 * A struct str owns nothing and may hold any byte, NUL included. Pure; any thread.
 */
#ifndef OTARI_BASE_STR_H
#define OTARI_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
	const char *ptr;
	size_t len;
};

#define STR(lit) ((struct str){"" lit, sizeof(lit) - 1})
#define STR_INIT(lit)                                                                              \
	{                                                                                          \
		"" lit, sizeof(lit) - 1                                                            \
	}                                  /* for static initialisers */
#define STR_NULL   ((struct str){NULL, 0}) /* absent, as opposed to empty */
#define STR_FMT(s) (int)(s).len, (s).ptr   /* for "%.*s" */

struct str str_c(const char *nul_terminated); /* NULL gives STR_NULL */
static inline struct str
str_n(const void *p, size_t n)
{
	return (struct str){p, n};
}
bool str_eq(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII */
int str_cmp(struct str a, struct str b);        /* bytewise, as memcmp then length */
bool str_starts(struct str s, struct str prefix);
bool str_starts_nocase(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_sub(struct str s, size_t from, size_t len); /* clamped */
struct str str_from(struct str s, size_t from);            /* clamped */
struct str str_trim(struct str s);                         /* ASCII white space, both ends */
/* Index of the first occurrence, or SIZE_MAX. */
size_t str_find(struct str s, struct str needle);
size_t str_chr(struct str s, char c);
size_t str_rchr(struct str s, char c);
/* Cuts the piece before the next sep off *rest; false when *rest was already used up (ptr NULL). */
bool str_split(struct str *rest, char sep, struct str *ret_piece);
/* Whole string must be digits (one leading '-' for i64); false on anything else or overflow. */
bool str_u64(struct str s, uint64_t *ret);
bool str_i64(struct str s, int64_t *ret);
/* Copies into dst (always NUL-terminated); false when it did not fit or holds a NUL. */
bool str_copy(char *dst, size_t dst_size, struct str s);

#endif
