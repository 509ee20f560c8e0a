#include "worker/api/upload_form.h"

#include "base/utf8.h"

/* Anthropic's expires_in_seconds and OpenAI's expires_after[seconds]. */
#define EXPIRES_MIN_S           3600u
#define EXPIRES_ANTHROPIC_MAX_S 7776000u
#define EXPIRES_OPENAI_MAX_S    2592000u

static enum err_code
read_text(struct arena *a, const char *name, struct str value, struct str *ret, struct err *reterr)
{
	bool ok = value.len <= UPLOAD_TEXT_MAX_BYTES && utf8_valid(value);
	for (size_t i = 0; ok && i < value.len; i++)
		ok = (unsigned char)value.ptr[i] >= 0x20 && value.ptr[i] != 0x7f;
	if (!ok)
		return err_set(reterr, ERR_INPUT,
		    "%s: must be UTF-8 of at most %u bytes without control characters", name,
		    UPLOAD_TEXT_MAX_BYTES);
	*ret = arena_str(a, value);
	return ERR_OK;
}

static enum err_code
read_seconds(const char *name, struct str value, uint32_t max, int64_t *ret, struct err *reterr)
{
	uint64_t n;
	if (!str_u64(value, &n) || n < EXPIRES_MIN_S || n > max)
		return err_set(reterr, ERR_INPUT, "%s: must be a whole number from %u to %u", name,
		    EXPIRES_MIN_S, max);
	*ret = (int64_t)n;
	return ERR_OK;
}

enum err_code
upload_form_field(
    struct upload_form *f, struct arena *a, struct str name, struct str value, struct err *reterr)
{
	if (str_eq(name, STR("purpose")))
		return read_text(a, "purpose", value, &f->purpose, reterr);
	if (str_eq(name, STR("user")))
		return read_text(a, "user", value, &f->user, reterr);
	if (str_eq(name, STR("expires_in_seconds")))
		return read_seconds(
		    "expires_in_seconds", value, EXPIRES_ANTHROPIC_MAX_S, &f->expires_in_s, reterr);
	if (str_eq(name, STR("expires_after[seconds]")))
		return read_seconds("expires_after[seconds]", value, EXPIRES_OPENAI_MAX_S,
		    &f->expires_in_s, reterr);
	if (str_eq(name, STR("expires_after[anchor]")) && !str_eq(value, STR("created_at")))
		return err_set(reterr, ERR_INPUT, "expires_after[anchor]: must be 'created_at'");
	return ERR_OK;
}

int64_t
upload_form_expiry(const struct upload_form *f, int64_t now_ms, uint32_t retention_hours)
{
	int64_t kept_s = (int64_t)retention_hours * 3600;
	if (f->expires_in_s > 0 && (kept_s == 0 || f->expires_in_s < kept_s))
		kept_s = f->expires_in_s;
	return kept_s == 0 ? 0 : now_ms + kept_s * 1000;
}
