#include "worker/turn/mint.h"

#include "base/id.h"

static struct str
mint(struct arena *a, const char *prefix)
{
	char id[ID_SIZE];
	id_make(prefix, id);
	return arena_str(a, str_c(id));
}

struct str
mint_execution_id(struct arena *a, enum wire wire)
{
	return mint(a, wire == WIRE_RESPONSES ? "otari_ci_" : "otari_srvtoolu_");
}

struct str
mint_container_id(struct arena *a)
{
	return mint(a, "otari_cntr_");
}

struct str
mint_call_id(struct arena *a, enum wire wire)
{
	return mint(a, wire == WIRE_MESSAGES ? "toolu_" : "call_");
}

#define RUN_MIN_BYTES    16u
#define RUN_MIN_DISTINCT 8u

static bool
is_random(struct str run)
{
	bool seen[256] = {false};
	unsigned distinct = 0, digits = 0;
	for (size_t i = 0; i < run.len; i++) {
		unsigned char c = (unsigned char)run.ptr[i];
		distinct += !seen[c];
		seen[c] = true;
		digits += c <= '9';
	}
	return run.len >= RUN_MIN_BYTES && distinct >= RUN_MIN_DISTINCT && digits > 0 &&
	       digits < run.len;
}

bool
mint_is_unique(struct str call_id)
{
	size_t from = 0;
	for (size_t i = 0; i <= call_id.len; i++) {
		unsigned char c = i < call_id.len ? (unsigned char)call_id.ptr[i] : '-';
		bool is_alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
		if (is_alnum)
			continue;
		if (is_random(str_sub(call_id, from, i - from)))
			return true;
		from = i + 1;
	}
	return false;
}

struct str
mint_file_id(struct arena *a)
{
	return mint(a, "file-");
}
