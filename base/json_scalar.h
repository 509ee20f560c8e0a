/* json_scalar.h - JSON's numbers and literals, for readers that see a text in pieces. Pure. */
#ifndef OTARI_BASE_JSON_SCALAR_H
#define OTARI_BASE_JSON_SCALAR_H

#include <stdbool.h>

#include "base/str.h"

bool json_is_number(struct str s);
/* May s become true, false or null? *ret_whole: it is one of them. */
bool json_literal_begins(struct str s, bool *ret_whole);

#endif
