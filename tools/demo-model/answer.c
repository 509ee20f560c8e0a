#include "tools/demo-model/answer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u * 1024u * 1024u)

void
answer_init(struct answer *a, const char *id_prefix, struct str model)
{
	memset(a, 0, sizeof(*a));
	id_make(id_prefix, a->id);
	if (!str_copy(a->model, sizeof(a->model), model))
		str_copy(a->model, sizeof(a->model), STR("demo"));
	buf_init(&a->reasoning, TEXT_MAX);
	buf_init(&a->text, TEXT_MAX);
}

void
answer_done(struct answer *a)
{
	buf_done(&a->reasoning);
	buf_done(&a->text);
	for (size_t i = 0; i < a->call_count; i++)
		buf_done(&a->calls[i].arguments);
}

struct answer_call *
answer_add_call(struct answer *a, const char *id_prefix, const char *name)
{
	struct answer_call *c;

	if (a->call_count == ANSWER_CALLS_MAX)
		return NULL;
	c = &a->calls[a->call_count++];
	id_make(id_prefix, c->id);
	str_copy(c->name, sizeof(c->name), str_c(name));
	buf_init(&c->arguments, TEXT_MAX);
	return c;
}

void
answer_call_member(struct answer_call *c, const char *name, struct str value)
{
	json_t *args = json_pack("{s:s%}", name, value.ptr, value.len);
	char *text = json_dumps(args, JSON_ENSURE_ASCII);

	buf_clear(&c->arguments);
	buf_add(&c->arguments, str_c(text != NULL ? text : "{}"));
	free(text);
	json_decref(args);
}

void
answer_call_code(struct answer_call *c, struct str code)
{
	answer_call_member(c, "code", code);
}

void
answer_count(struct answer *a)
{
	size_t bytes = a->reasoning.len + a->text.len;

	if (a->output_tokens != 0)
		return;
	for (size_t i = 0; i < a->call_count; i++)
		bytes += a->calls[i].arguments.len + 16;
	a->output_tokens = (int64_t)(bytes / 4 + 1);
}

bool
answer_fragment(struct str *rest, size_t bytes, struct str *ret)
{
	size_t n = rest->len < bytes ? rest->len : bytes;

	if (n == 0)
		return false;
	while (n < rest->len && ((unsigned char)rest->ptr[n] & 0xc0) == 0x80)
		n++;
	*ret = str_n(rest->ptr, n);
	*rest = str_from(*rest, n);
	return true;
}
