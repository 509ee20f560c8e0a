#include "worker/dialect/fold.h"

#include "worker/dialect/minted.h"

/* What a call of each kind holds and how it is fenced (anthropic-wire §5.2). */
static const struct {
	const char *member; /* NULL: the whole input says what was done */
	struct str language, marker;
} kinds[CODE_TOOL_COUNT] = {
    [CODE_TOOL_PYTHON] = {"code", STR_INIT("python"), STR_INIT("[code was executed]")},
    [CODE_TOOL_BASH] = {"command", STR_INIT("bash"), STR_INIT("[code was executed]")},
    [CODE_TOOL_EDITOR] = {NULL, STR_INIT("json"), STR_INIT("[the text editor was used]")},
};

/* What of a call's input says what was done. */
static struct str
what_of(struct arena *a, enum code_tool kind, struct jval input)
{
	const char *member = kinds[kind].member;
	return member != NULL ? jv_str(a, jv_get(input, member)) : jv_raw(input);
}

static enum fold_action
remember(struct fold *f, struct jval block, struct str id)
{
	enum code_tool kind;
	if (!code_tool_of(jv_str(f->arena, jv_get(block, "name")), &kind))
		return id_is_minted(id) ? FOLD_REMOVE : FOLD_KEEP;
	struct fold_call *c = ARENA_NEW(f->arena, struct fold_call);
	if (c == NULL)
		return FOLD_REMOVE;
	c->id = id;
	c->kind = kind;
	c->code = what_of(f->arena, kind, jv_get(block, "input"));
	c->next = f->calls;
	f->calls = c;
	return FOLD_REMOVE;
}

static const struct fold_call *
recall(const struct fold *f, struct str id)
{
	unsigned n = 0;
	for (const struct fold_call *c = f->calls; c != NULL && n < FOLD_PENDING_MAX;
	     c = c->next, n++)
		if (str_eq(c->id, id))
			return c;
	return NULL;
}

static void
add_section(struct buf *b, const char *title, struct str text)
{
	if (text.len == 0)
		return;
	buf_printf(b, "\n%s:\n", title);
	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	buf_add(b, text);
}

static void
add_files(struct arena *a, struct buf *b, struct jval outputs)
{
	struct jiter it = {0};
	bool any = false;
	while (jv_next(outputs, &it)) {
		struct str id = jv_str(a, jv_get(it.value, "file_id"));
		if (id.len == 0)
			continue;
		buf_add(b, any ? STR(", ") : STR("\nfiles: "));
		buf_add(b, id);
		any = true;
	}
}

/* The fence must be longer than any run of backticks in the code. */
static void
add_code(struct buf *b, struct str code, struct str language)
{
	size_t run = 0, longest = 2;
	for (size_t i = 0; i < code.len; i++) {
		run = code.ptr[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	buf_addc(b, '\n');
	for (size_t i = 0; i <= longest; i++)
		buf_addc(b, '`');
	buf_add(b, language);
	buf_addc(b, '\n');
	buf_add(b, code);
	if (code.len > 0 && code.ptr[code.len - 1] != '\n')
		buf_addc(b, '\n');
	for (size_t i = 0; i <= longest; i++)
		buf_addc(b, '`');
}

/* What the editor answered: a view's text, a create's word, a replacement's diff. */
static void
add_edit(struct arena *a, struct buf *b, struct jval content)
{
	struct jval lines = jv_get(content, "lines"), update = jv_get(content, "is_file_update");
	struct jiter it = {0};
	struct buf diff = BUF_INIT(64u << 20);
	if (jv_is(jv_get(content, "content"), JT_STRING))
		add_section(b, "content", jv_str(a, jv_get(content, "content")));
	if (jv_is(update, JT_TRUE) || jv_is(update, JT_FALSE))
		buf_add(b, jv_bool(update, false) ? STR("\nwritten over") : STR("\ncreated"));
	while (jv_next(lines, &it)) {
		buf_add(&diff, jv_str(a, it.value));
		buf_addc(&diff, '\n');
	}
	add_section(b, "changed", buf_str(&diff));
	buf_done(&diff);
}

static void
add_error(struct arena *a, struct buf *b, struct jval content)
{
	struct str code = jv_str(a, jv_get(content, "error_code"));
	struct str message = jv_str(a, jv_get(content, "error_message"));
	if (!str_ends(jv_str(a, jv_get(content, "type")), STR("_error")))
		return;
	buf_add(b, STR("\nerror: "));
	buf_add(b, code.len > 0 ? code : STR("unavailable"));
	if (message.len > 0) {
		buf_add(b, STR(": "));
		buf_add(b, message);
	}
}

void
fold_heading(struct buf *b, enum code_tool kind, struct str what)
{
	buf_add(b, kinds[kind].marker);
	if (what.len > 0)
		add_code(b, what, kinds[kind].language);
}

void
fold_call(struct arena *a, struct buf *b, enum code_tool kind, struct str arguments)
{
	struct jval input = JV_ABSENT;
	bool is_json = jdoc_parse(a, arguments, &input, NULL) == ERR_OK;
	fold_heading(b, kind, is_json ? what_of(a, kind, input) : arguments);
}

static struct str
result_text(struct fold *f, struct jval content, enum code_tool kind, const struct fold_call *call)
{
	struct arena *a = f->arena;
	struct buf b = BUF_INIT(64u << 20);
	fold_heading(&b, kind, call != NULL ? call->code : STR(""));
	add_error(a, &b, content);
	add_section(&b, "stdout", jv_str(a, jv_get(content, "stdout")));
	add_section(&b, "stderr", jv_str(a, jv_get(content, "stderr")));
	if (kind == CODE_TOOL_EDITOR)
		add_edit(a, &b, content);
	int64_t rc;
	if (jv_i64(jv_get(content, "return_code"), &rc) && rc != 0)
		buf_printf(&b, "\nreturn_code: %lld", (long long)rc);
	add_files(a, &b, jv_get(content, "content"));
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}

/* "bash_code_execution_tool_result": the kind's name and the suffix. */
static bool
is_code_result(struct str type, enum code_tool *ret)
{
	static const struct str suffix = STR_INIT("_tool_result");
	return str_ends(type, suffix) && code_tool_of(str_sub(type, 0, type.len - suffix.len), ret);
}

enum fold_action
fold_block(struct fold *f, struct jval block, bool minted_only, struct str *ret_text)
{
	struct str type = jv_str(f->arena, jv_get(block, "type"));
	enum code_tool kind;
	bool result = str_ends(type, STR("_tool_result"));
	struct str id = jv_str(f->arena, jv_get(block, result ? "tool_use_id" : "id"));
	if (minted_only && !id_is_minted(id))
		return FOLD_KEEP;
	if (str_eq(type, STR("server_tool_use")))
		return remember(f, block, id);
	if (is_code_result(type, &kind)) {
		*ret_text = result_text(f, jv_get(block, "content"), kind, recall(f, id));
		return FOLD_TEXT;
	}
	/* Other tools that the gateway ran: what they gave is in the text that follows. */
	return id_is_minted(id) && (result || str_eq(type, STR("mcp_tool_use"))) ? FOLD_REMOVE
										 : FOLD_KEEP;
}

/* "…/files/ID/content": how an image that we stored is shown. */
static struct str
file_of_url(struct str url)
{
	size_t at = str_find(url, STR("/files/"));
	if (at == SIZE_MAX || str_starts_nocase(url, STR("data:")))
		return STR_NULL;
	struct str rest = str_from(url, at + 7);
	return str_sub(rest, 0, str_chr(rest, '/'));
}

static void
add_item_outputs(struct arena *a, struct buf *b, struct jval outputs)
{
	struct jiter it = {0};
	bool any = false;
	while (jv_next(outputs, &it))
		add_section(b, "logs", jv_str(a, jv_get(it.value, "logs")));
	it = (struct jiter){0};
	while (jv_next(outputs, &it)) {
		struct str id = jv_str(a, jv_get(it.value, "file_id"));
		if (id.len == 0)
			id = file_of_url(jv_str(a, jv_get(it.value, "url")));
		if (id.len == 0)
			continue;
		buf_add(b, any ? STR(", ") : STR("\nfiles: "));
		buf_add(b, id);
		any = true;
	}
}

struct str
fold_code_item(struct arena *a, struct jval item)
{
	struct buf b = BUF_INIT(64u << 20);
	struct str code = jv_str(a, jv_get(item, "code"));
	fold_heading(&b, CODE_TOOL_PYTHON, code);
	add_item_outputs(a, &b, jv_get(item, "outputs"));
	if (jv_str_is(jv_get(item, "status"), "failed"))
		buf_add(&b, STR("\nstatus: failed"));
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}
