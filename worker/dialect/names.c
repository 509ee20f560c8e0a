#include "worker/dialect/names.h"

#include "base/digest.h"

#define ID_MAX        64u
#define NAME_MAX_CHAT 64u
#define MISTRAL_ID    9u

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static struct str
plain_id(struct arena *a, struct str id, const char *prefix)
{
	bool fits = id.len > 0 && id.len <= ID_MAX;
	for (size_t i = 0; fits && i < id.len; i++)
		fits = is_alnum(id.ptr[i]) || id.ptr[i] == '_' || id.ptr[i] == '-';
	if (fits)
		return id;
	unsigned char sum[SHA256_BYTES];
	char hex[2 * 16 + 1];
	sha256_of(id, sum);
	hex_encode(sum, 16, hex);
	return arena_printf(a, "%s%s", prefix, hex);
}

struct str
id_for_messages(struct arena *a, struct str id)
{
	return plain_id(a, id, "toolu_");
}

struct str
id_for_responses(struct arena *a, struct str id)
{
	return plain_id(a, id, "call_");
}

struct str
id_for_mistral(struct arena *a, struct str id)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	bool fits = id.len == MISTRAL_ID;
	for (size_t i = 0; fits && i < id.len; i++)
		fits = is_alnum(id.ptr[i]);
	if (fits)
		return id;
	unsigned char sum[SHA256_BYTES];
	char text[MISTRAL_ID];
	sha256_of(id, sum);
	for (size_t i = 0; i < MISTRAL_ID; i++) /* two bytes a digit: nearly even */
		text[i] =
		    digits[((unsigned)sum[2 * i] << 8 | sum[2 * i + 1]) % (sizeof(digits) - 1)];
	return arena_str(a, str_n(text, sizeof(text)));
}

struct str
name_for_chat(struct arena *a, struct str name)
{
	if (name.len <= NAME_MAX_CHAT)
		return name;
	unsigned char sum[SHA256_BYTES];
	char hex[2 * 6 + 1];
	sha256_of(name, sum);
	hex_encode(sum, 6, hex);
	return arena_printf(a, "%.*s_%s", (int)(NAME_MAX_CHAT - sizeof(hex)), name.ptr, hex);
}

struct str
name_from_chat(struct arena *a, const struct conversation *request, struct str name)
{
	if (name.len != NAME_MAX_CHAT || request == NULL)
		return name;
	for (const struct tool *t = request->tools; t != NULL; t = t->next)
		if (t->name.len > NAME_MAX_CHAT && str_eq(name_for_chat(a, t->name), name))
			return t->name;
	return name;
}
