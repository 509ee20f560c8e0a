/* json_token.h - the token table that base/json_parse.c fills and base/json.c walks; private to
 * both
 *
 * A container is followed by its contents; `next` is the number of the token behind the whole
 * value. In an object keys and values alternate.
 */
#ifndef OTARI_BASE_JSON_TOKEN_H
#define OTARI_BASE_JSON_TOKEN_H

#include <stdint.h>

#include "base/json.h"

#define JTOK_TYPE      0x0fu
#define JTOK_ESCAPED   0x10u /* string with at least one backslash */
#define JTOK_COUNT_ONE 0x20u /* the count of values in a container starts at bit 5 */
#define JTOK_COUNT(t)  ((t)->info / JTOK_COUNT_ONE)

struct jtok {
	uint32_t off, len; /* bytes in the text */
	uint32_t next;
	uint32_t info;
};
_Static_assert(sizeof(struct jtok) == 16, "a token is 16 bytes");

struct jdoc {
	const char *text;
	struct jtok *tok;
	uint32_t count;
};

#endif
