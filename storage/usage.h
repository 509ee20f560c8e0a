/* usage.h - what one settled request used: the record of the spool and the row of usage_logs
 *
 * Strings are borrowed. Over-long ones are cut (on a character) when the record
 * is encoded.
 */
#ifndef OTARI_STORAGE_USAGE_H
#define OTARI_STORAGE_USAGE_H

#include <stdint.h>

#include "base/str.h"

#define USAGE_ID_MAX_BYTES    128u  /* request, key and workspace ids, provider, endpoint, status */
#define USAGE_NAME_MAX_BYTES  255u  /* user, end user, model */
#define USAGE_TOOLS_MAX_BYTES 1800u /* longer is left out: half a JSON text is of no use */
#define USAGE_ERROR_MAX_BYTES 512u

struct usage {
	struct str request_id; /* unique; settling twice is one row */
	struct str user_id;
	struct str key_id; /* STR_NULL: master key */
	struct str workspace_id;
	struct str endpoint;   /* "/v1/messages" */
	struct str provider;   /* configured instance */
	struct str model;      /* as the provider names it */
	struct str status;     /* "success" or "error" */
	struct str end_user;   /* the client's own tag; STR_NULL */
	struct str tools_json; /* {"code_execution":{"billed":n,"errors":m,…}}; STR_NULL */
	struct str error;      /* STR_NULL */
	int64_t ts_ms;         /* settlement, UTC epoch */
	int64_t status_code;
	int64_t latency_ms;
	int64_t prompt_tokens, completion_tokens;
	int64_t cache_read_tokens, cache_write_tokens, reasoning_tokens;
	int64_t cost_microusd;
};

#endif
