/* The record's bytes. Pure. */
#include <string.h>

#include "base/digest.h"
#include "base/utf8.h"
#include "storage/spool.h"

#define VERSION     1u
#define TEXT_ABSENT 0xffffu

#define N_NUMS  9u
#define N_TEXTS 11u
_Static_assert(SPOOL_HEAD_BYTES + 8 * N_NUMS + 2 * N_TEXTS + 7 * USAGE_ID_MAX_BYTES +
		       3 * USAGE_NAME_MAX_BYTES + USAGE_TOOLS_MAX_BYTES + USAGE_ERROR_MAX_BYTES <=
		   LIMIT_SPOOL_RECORD_BYTES,
    "a record of the longest texts fits");

/* Field order on disk. Append-only; a change of an existing field is a new version. */
struct field {
	size_t at;
	size_t max; /* texts */
};
#define AT(f) offsetof(struct usage, f)
static const struct field nums[N_NUMS] = {
    {AT(ts_ms), 0},
    {AT(status_code), 0},
    {AT(latency_ms), 0},
    {AT(prompt_tokens), 0},
    {AT(completion_tokens), 0},
    {AT(cache_read_tokens), 0},
    {AT(cache_write_tokens), 0},
    {AT(reasoning_tokens), 0},
    {AT(cost_microusd), 0},
};
static const struct field texts[N_TEXTS] = {
    {AT(request_id), USAGE_ID_MAX_BYTES},
    {AT(user_id), USAGE_NAME_MAX_BYTES},
    {AT(key_id), USAGE_ID_MAX_BYTES},
    {AT(workspace_id), USAGE_ID_MAX_BYTES},
    {AT(endpoint), USAGE_ID_MAX_BYTES},
    {AT(provider), USAGE_ID_MAX_BYTES},
    {AT(model), USAGE_NAME_MAX_BYTES},
    {AT(status), USAGE_ID_MAX_BYTES},
    {AT(end_user), USAGE_NAME_MAX_BYTES},
    {AT(tools_json), USAGE_TOOLS_MAX_BYTES},
    {AT(error), USAGE_ERROR_MAX_BYTES},
};

static void
put_u32(unsigned char *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint32_t
get_u32(const char *p)
{
	uint32_t v = 0;
	for (unsigned i = 0; i < 4; i++)
		v |= (uint32_t)(unsigned char)p[i] << (8 * i);
	return v;
}

static size_t
put_text(unsigned char *p, struct str s, size_t max)
{
	uint32_t len = TEXT_ABSENT;
	if (s.ptr != NULL && (s.len <= max || max != USAGE_TOOLS_MAX_BYTES)) {
		s = utf8_cut(s, max);
		len = (uint32_t)s.len;
		memcpy(p + 2, s.ptr, s.len);
	}
	p[0] = (unsigned char)len;
	p[1] = (unsigned char)(len >> 8);
	return len == TEXT_ABSENT ? 2 : 2 + (size_t)len;
}

size_t
spool_encode(const struct usage *u, unsigned char dst[LIMIT_SPOOL_RECORD_BYTES])
{
	const char *base = (const char *)u;
	size_t n = SPOOL_HEAD_BYTES;
	for (size_t i = 0; i < N_NUMS; i++) {
		int64_t v;
		memcpy(&v, base + nums[i].at, sizeof(v));
		put_u32(dst + n, (uint32_t)(uint64_t)v);
		put_u32(dst + n + 4, (uint32_t)((uint64_t)v >> 32));
		n += 8;
	}
	for (size_t i = 0; i < N_TEXTS; i++) {
		struct str s;
		memcpy(&s, base + texts[i].at, sizeof(s));
		n += put_text(dst + n, s, texts[i].max);
	}
	size_t payload = n - SPOOL_HEAD_BYTES;
	memcpy(dst, "OUS", 3);
	dst[3] = VERSION;
	put_u32(dst + 4, (uint32_t)payload);
	put_u32(dst + 8, crc32_of(str_n(dst + SPOOL_HEAD_BYTES, payload)));
	return n;
}

static bool
decode_payload(struct str p, struct usage *ret)
{
	struct usage u = {.ts_ms = 0};
	char *base = (char *)&u;
	if (p.len < 8 * N_NUMS)
		return false;
	for (size_t i = 0; i < N_NUMS; i++) {
		uint64_t v = get_u32(p.ptr) | (uint64_t)get_u32(p.ptr + 4) << 32;
		memcpy(base + nums[i].at, &v, sizeof(v));
		p = str_from(p, 8);
	}
	for (size_t i = 0; i < N_TEXTS; i++) {
		if (p.len < 2)
			return false;
		size_t len = (size_t)(unsigned char)p.ptr[0] | (size_t)(unsigned char)p.ptr[1] << 8;
		p = str_from(p, 2);
		struct str s = STR_NULL;
		if (len != TEXT_ABSENT) {
			if (len > texts[i].max || len > p.len)
				return false;
			s = str_sub(p, 0, len);
			p = str_from(p, len);
		}
		memcpy(base + texts[i].at, &s, sizeof(s));
	}
	if (p.len > 0 || u.request_id.len == 0)
		return false;
	*ret = u;
	return true;
}

/* To the next place where a record may begin. */
static enum spool_found
damaged(struct str bytes, size_t *ret_len)
{
	size_t next = str_find(str_from(bytes, 1), STR("OUS"));
	*ret_len = next == SIZE_MAX ? bytes.len : next + 1;
	return SPOOL_DAMAGED;
}

enum spool_found
spool_decode(struct str bytes, struct usage *ret, size_t *ret_len)
{
	*ret_len = 0;
	if (!str_eq(str_sub(bytes, 0, 3), str_sub(STR("OUS"), 0, bytes.len)))
		return damaged(bytes, ret_len);
	if (bytes.len < SPOOL_HEAD_BYTES)
		return SPOOL_SHORT;
	size_t payload = get_u32(bytes.ptr + 4);
	if (payload > LIMIT_SPOOL_RECORD_BYTES - SPOOL_HEAD_BYTES || bytes.ptr[3] == 0)
		return damaged(bytes, ret_len);
	if (bytes.len < SPOOL_HEAD_BYTES + payload)
		return SPOOL_SHORT;
	struct str p = str_sub(bytes, SPOOL_HEAD_BYTES, payload);
	if (crc32_of(p) != get_u32(bytes.ptr + 8))
		return damaged(bytes, ret_len);
	*ret_len = SPOOL_HEAD_BYTES + payload;
	if (bytes.ptr[3] != VERSION)
		return SPOOL_NEWER;
	return decode_payload(p, ret) ? SPOOL_RECORD : SPOOL_DAMAGED;
}
