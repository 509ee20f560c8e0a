/* A transcript that kept tool results and copies of files are put into: the first byte says which
 * wires, line 1 is the body, line 2 the text that a table kept for every call. What is sent on must
 * be JSON. */
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "worker/dialect/dialect.h"
#include "worker/turn/attach_plan.h"
#include "worker/turn/carry.h"

#define ARENA_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
put_files(struct conversation *conv)
{
	struct attach_plan plan;
	if (attach_collect(conv, ATTACH_PROVIDER, NULL, &plan, NULL) != ERR_OK)
		return;
	for (struct attachment *f = plan.first; f != NULL; f = f->next) {
		f->is_found = true;
		f->lent_id = STR("file-copy");
		f->filename = f->file_id;
		f->mime_type = STR("text/csv");
	}
	attach_name(conv->arena, &plan);
	attach_rewrite(conv, &plan);
}

static void
put_results(struct conversation *conv, struct str kept)
{
	struct str ids[STORE_TOOL_RESULT_IDS_MAX], texts[STORE_TOOL_RESULT_IDS_MAX];
	size_t n = carry_find(conv, ids);
	for (size_t i = 0; i < n; i++)
		texts[i] = kept;
	carry_attach(conv, ids, texts, n);
}

static void
send_on(struct conversation *conv, enum wire to)
{
	const struct encode_options opt = {.model = STR("m"), .default_max_tokens = 9};
	struct buf out = BUF_INIT(32u << 20);
	struct jval root;
	struct err err;
	enum err_code rc = dialect_of(to)->encode(conv, &opt, &out, &err);
	if (rc == ERR_OK && !out.overflowed && !arena_overflowed(conv->arena))
		CHECK(jdoc_parse(conv->arena, buf_str(&out), &root, NULL) == ERR_OK);
	buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = str_n((const char *)data, size);
	struct conversation *conv = NULL;
	struct jval root;
	struct err err;
	if (size < 2)
		return 0;
	enum wire from = (enum wire)(data[0] % 3), to = (enum wire)(data[0] / 3 % 3);
	size_t line = str_chr(all, '\n');
	struct str body = str_sub(all, 1, line == SIZE_MAX ? size : line - 1);
	struct str kept = line == SIZE_MAX ? STR("") : str_from(all, line + 1);
	struct arena *a = arena_new(ARENA_BYTES);
	if (line != 0 && jdoc_parse(a, body, &root, NULL) == ERR_OK && jv_is(root, JT_OBJECT) &&
	    dialect_of(from)->decode(a, body, root, &conv, &err) == ERR_OK) {
		put_files(conv);
		put_results(conv, kept);
		send_on(conv, to);
	}
	arena_free(&a);
	return 0;
}
