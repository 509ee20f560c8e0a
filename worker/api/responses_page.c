#include "worker/api/responses_page.h"

#include "base/json.h"
#include "base/json_write.h"
#include "worker/http/uri.h"

enum err_code
responses_page_read(struct arena *a, struct str query, struct responses_page_query *ret,
    const char **ret_param, struct err *reterr)
{
	struct responses_page_query q = {.limit = RESPONSES_PAGE_DEFAULT};
	struct str limit = query_get(a, query, "limit"), order = query_get(a, query, "order");
	uint64_t n;
	if (limit.len > 0) {
		*ret_param = "limit";
		if (!str_u64(limit, &n) || n < 1 || n > RESPONSES_PAGE_MAX)
			return err_set(reterr, ERR_INPUT,
			    "Invalid 'limit': must be a whole number from 1 to %u.",
			    RESPONSES_PAGE_MAX);
		q.limit = (uint32_t)n;
	}
	q.ascending = str_eq(order, STR("asc"));
	if (order.len > 0 && !q.ascending && !str_eq(order, STR("desc"))) {
		*ret_param = "order";
		return err_set(reterr, ERR_INPUT, "Invalid 'order': must be 'asc' or 'desc'.");
	}
	struct str after = query_get(a, query, "after");
	q.after = after.len > 0 ? after : STR_NULL;
	*ret = q;
	return ERR_OK;
}

struct items {
	struct jval *values;
	size_t count;
};

static enum err_code
read_items(struct arena *a, struct str json, struct items *ret, struct err *reterr)
{
	struct jval root;
	struct jiter it = {0};
	enum err_code rc = jdoc_parse(a, json, &root, reterr);
	if (rc != ERR_OK)
		return err_set(reterr, ERR_INTERNAL, "a kept input cannot be read");
	ret->values = ARENA_NEW_ARRAY(a, struct jval, jv_count(root) + 1u);
	if (ret->values == NULL)
		return err_set(reterr, ERR_NOMEM, "a kept input is too large");
	ret->count = 0;
	while (jv_is(root, JT_ARRAY) && jv_next(root, &it))
		ret->values[ret->count++] = it.value;
	return ERR_OK;
}

/* The i-th item in the order of the page. */
static struct jval
item_at(const struct items *items, size_t i, bool ascending)
{
	return items->values[ascending ? i : items->count - 1 - i];
}

static void
write_id(struct jw *w, const char *key, struct jval item)
{
	struct jval id = jv_get(item, "id");
	jw_kraw(w, key, jv_is(id, JT_STRING) ? jv_raw(id) : STR("null"));
}

enum err_code
responses_page_write(struct arena *a, struct str input_json, const struct responses_page_query *q,
    struct buf *out, struct err *reterr)
{
	struct items items = {0};
	size_t from = 0;
	struct jw w;
	enum err_code rc = read_items(a, input_json, &items, reterr);
	if (rc != ERR_OK)
		return rc;
	if (q->after.ptr != NULL) {
		while (
		    from < items.count &&
		    !str_eq(jv_str(a, jv_get(item_at(&items, from, q->ascending), "id")), q->after))
			from++;
		if (from++ == items.count)
			return err_set(reterr, ERR_INPUT, "Item with id '%.*s' not found.",
			    STR_FMT(str_sub(q->after, 0, 128)));
	}
	size_t end = items.count - from > q->limit ? from + q->limit : items.count;
	jw_init(&w, out);
	jw_object(&w);
	jw_kcstr(&w, "object", "list");
	jw_key(&w, "data");
	jw_array(&w);
	for (size_t i = from; i < end; i++)
		jw_raw(&w, jv_raw(item_at(&items, i, q->ascending)));
	jw_end_array(&w);
	if (from < end) {
		write_id(&w, "first_id", item_at(&items, from, q->ascending));
		write_id(&w, "last_id", item_at(&items, end - 1, q->ascending));
	} else {
		jw_knull(&w, "first_id");
		jw_knull(&w, "last_id");
	}
	jw_kbool(&w, "has_more", end < items.count);
	jw_end_object(&w);
	return ERR_OK;
}
