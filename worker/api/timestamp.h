/* timestamp.h - RFC 3339 times of administrative bodies. Pure. */
#ifndef OTARI_WORKER_API_TIMESTAMP_H
#define OTARI_WORKER_API_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* "2026-11-30T10:00:00Z", with any offset, a fraction (dropped), a blank for the T, or no offset
 * (then UTC). Years 1970 to 9999. *ret: UTC epoch seconds. */
bool timestamp_parse(struct str s, int64_t *ret);

#endif
