#include "worker/dialect/usage.h"

static int64_t
count(struct jval v)
{
	int64_t n;
	return jv_i64(v, &n) && n >= 0 ? n : -1;
}

static int64_t
first_of(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

static void
add(int64_t *sum, int64_t n)
{
	if (n < 0)
		return;
	int64_t total;
	if (*sum < 0)
		*sum = n;
	else if (!__builtin_add_overflow(*sum, n, &total))
		*sum = total;
}

static void
read_messages(struct jval o, struct token_usage *u)
{
	u->input = count(jv_get(o, "input_tokens"));
	u->output = count(jv_get(o, "output_tokens"));
	u->cache_read = count(jv_get(o, "cache_read_input_tokens"));
	u->cache_write = count(jv_get(o, "cache_creation_input_tokens"));
	if (u->input >= 0) {
		add(&u->input, u->cache_read);
		add(&u->input, u->cache_write);
	}
	u->reasoning = count(jv_get(jv_get(o, "output_tokens_details"), "thinking_tokens"));
}

/* Some compatible services name the cached part in their own way: prompt_cache_hit_tokens,
 * cached_tokens. */
static void
read_chat(struct jval o, struct token_usage *u)
{
	u->input = count(jv_get(o, "prompt_tokens"));
	u->output = count(jv_get(o, "completion_tokens"));
	u->cache_read = count(jv_get(jv_get(o, "prompt_tokens_details"), "cached_tokens"));
	u->cache_read = first_of(u->cache_read, count(jv_get(o, "prompt_cache_hit_tokens")));
	u->cache_read = first_of(u->cache_read, count(jv_get(o, "cached_tokens")));
	u->cache_write = count(jv_get(jv_get(o, "prompt_tokens_details"), "cache_write_tokens"));
	u->reasoning = count(jv_get(jv_get(o, "completion_tokens_details"), "reasoning_tokens"));
}

static void
read_responses(struct jval o, struct token_usage *u)
{
	u->input = count(jv_get(o, "input_tokens"));
	u->output = count(jv_get(o, "output_tokens"));
	u->cache_read = count(jv_get(jv_get(o, "input_tokens_details"), "cached_tokens"));
	u->cache_write = count(jv_get(jv_get(o, "input_tokens_details"), "cache_write_tokens"));
	u->reasoning = count(jv_get(jv_get(o, "output_tokens_details"), "reasoning_tokens"));
}

void
usage_read(enum wire wire, struct jval object, struct token_usage *ret)
{
	*ret = TOKEN_USAGE_NONE;
	if (!jv_is(object, JT_OBJECT))
		return;
	switch (wire) {
	case WIRE_MESSAGES:
		read_messages(object, ret);
		break;
	case WIRE_CHAT:
		read_chat(object, ret);
		break;
	case WIRE_RESPONSES:
		read_responses(object, ret);
		break;
	}
	ret->raw = jv_raw(object);
}

void
usage_update(struct token_usage *have, const struct token_usage *later)
{
	have->input = first_of(later->input, have->input);
	have->output = first_of(later->output, have->output);
	have->cache_read = first_of(later->cache_read, have->cache_read);
	have->cache_write = first_of(later->cache_write, have->cache_write);
	have->reasoning = first_of(later->reasoning, have->reasoning);
	if (later->raw.ptr != NULL)
		have->raw = later->raw;
}

void
token_usage_add(struct token_usage *sum, const struct token_usage *round)
{
	add(&sum->input, round->input);
	add(&sum->output, round->output);
	add(&sum->cache_read, round->cache_read);
	add(&sum->cache_write, round->cache_write);
	add(&sum->reasoning, round->reasoning);
	sum->raw = STR_NULL;
}
