/* A spool file as the sweeper reads it: every step moves on, and what is a record encodes again. */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "storage/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = str_n(data, size);
	while (bytes.len > 0) {
		struct usage u, v;
		size_t len, again_len;
		enum spool_found f = spool_decode(bytes, &u, &len);
		if (f == SPOOL_SHORT) {
			CHECK(len == 0);
			break;
		}
		CHECK(len > 0 && len <= bytes.len);
		if (f == SPOOL_RECORD) {
			unsigned char again[LIMIT_SPOOL_RECORD_BYTES];
			size_t n = spool_encode(&u, again);
			CHECK(n <= len); /* texts may be cut on a character */
			CHECK(spool_decode(str_n(again, n), &v, &again_len) == SPOOL_RECORD);
			CHECK(again_len == n && v.ts_ms == u.ts_ms);
		}
		bytes = str_from(bytes, len);
	}
	return 0;
}
