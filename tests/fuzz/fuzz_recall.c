/* A Responses request that goes on from a kept answer: line 1 the body, line 2 the kept input, line
 * 3 the kept response. What is built must be JSON, and what is kept must have ids. */
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "worker/api/responses_page.h"
#include "worker/dialect/responses.h"
#include "worker/turn/keep.h"
#include "worker/turn/recall.h"

#define ARENA_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_kept(struct arena *a, const struct recalled *r)
{
	struct jval kept;
	struct jiter it = {0};
	CHECK(jdoc_parse(a, r->input, &kept, NULL) == ERR_OK && jv_is(kept, JT_ARRAY));
	for (size_t i = 0; i < r->item_count; i++)
		CHECK(r->item_ids[i].len > 0);
	while (jv_next(kept, &it))
		(void)jv_str(a, jv_get(it.value, "id"));
	struct responses_page_query q = {.limit = 2};
	struct buf page = BUF_INIT(1u << 20);
	CHECK(responses_page_write(a, r->input, &q, &page, NULL) == ERR_OK);
	CHECK(page.overflowed || jdoc_parse(a, buf_str(&page), &kept, NULL) == ERR_OK);
	buf_done(&page);
}

static void
go_on(struct arena *a, struct str body, struct str input, struct str response)
{
	static const size_t holder_of[RECALL_REFERENCES_MAX];
	struct store_response row = {
	    .provider = STR("p"), .input_json = input, .response_json = response};
	struct recall_found found = {&row, &row, holder_of, 0};
	struct jval root, again;
	struct recall_wants wants;
	struct recalled r = {.body = STR_NULL};
	if (jdoc_parse(a, body, &root, NULL) != ERR_OK || !jv_is(root, JT_OBJECT) ||
	    recall_read(a, root, &wants, NULL) != ERR_OK)
		return;
	if (wants.previous_id.ptr == NULL)
		found.previous = NULL;
	if (recall_build(a, root, &wants, &found, STR("p"), true, &r, NULL) != ERR_OK)
		return;
	check_kept(a, &r);
	if (r.body.ptr == NULL)
		return;
	struct conversation *conv = NULL;
	struct err err;
	CHECK(jdoc_parse(a, r.body, &again, NULL) == ERR_OK);
	(void)!responses_decode(a, r.body, again, &conv, &err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_n(data, size), line[3] = {STR_NULL, STR_NULL, STR_NULL};
	struct arena *a = arena_new(ARENA_BYTES);
	struct keep_plan plan = {.is_wanted = true, .input = STR("[]")};
	struct store_response row;
	for (size_t i = 0; i < ARRAY_LEN(line) && str_split(&rest, '\n', &line[i]); i++)
		;
	go_on(a, line[0], line[1], line[2]);
	struct str response = keep_response_of(a, line[2], false);
	if (response.ptr != NULL)
		(void)!keep_row(a, &plan, response, 1, &row, NULL);
	(void)keep_response_of(a, str_n(data, size), true);
	arena_free(&a);
	return 0;
}
