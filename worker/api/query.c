#include "worker/api/query.h"

#include "base/base64.h"
#include "base/buf.h"
#include "worker/http/uri.h"

#define PAGE_PREFIX     "page_"
#define TOKEN_MAX_BYTES 512u
#define IDS_RAW_MAX     1000u /* repeated ids are allowed; so many fields are looked at */
#define SKIP_MAX        1000000000u

static int
refuse(struct err *reterr, int status, const char *text)
{
	err_set(reterr, ERR_INPUT, "%s", text);
	return status;
}

/* Absent and empty alike are STR_NULL. */
static struct str
get(struct arena *a, struct str query, const char *name)
{
	struct str s = query_get(a, query, name);
	return s.len == 0 ? STR_NULL : s;
}

static bool
read_number(struct arena *a, struct str query, const char *name, uint32_t min, uint32_t max,
    uint32_t dflt, uint32_t *ret)
{
	struct str s = query_get(a, query, name);
	uint64_t n;
	*ret = dflt;
	if (s.ptr == NULL)
		return true;
	if (!str_u64(s, &n) || n < min || n > max)
		return false;
	*ret = (uint32_t)n;
	return true;
}

bool
query_uuid(struct arena *a, struct str s, struct str *ret)
{
	char text[37];
	if (s.len != 36)
		return false;
	for (size_t i = 0; i < 36; i++) {
		char c = s.ptr[i];
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (c >= 'A' && c <= 'F')
			c = (char)(c - 'A' + 'a');
		bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
		if (is_dash ? c != '-' : !is_hex)
			return false;
		text[i] = c;
	}
	*ret = arena_str(a, str_n(text, 36));
	return true;
}

struct str
query_page_token(struct arena *a, struct str last_id)
{
	if (last_id.len > TOKEN_MAX_BYTES / 2)
		return STR("");
	char text[TOKEN_MAX_BYTES];
	size_t n = base64url_encode(last_id, text);
	return arena_printf(a, PAGE_PREFIX "%.*s", (int)n, text);
}

static bool
read_token(struct arena *a, struct str token, struct str *ret)
{
	if (!str_starts(token, STR(PAGE_PREFIX)) || token.len > TOKEN_MAX_BYTES)
		return false;
	struct buf id = BUF_INIT(TOKEN_MAX_BYTES);
	bool ok = base64url_decode(str_from(token, sizeof(PAGE_PREFIX) - 1), &id) && id.len > 0;
	if (ok)
		*ret = arena_str(a, buf_str(&id));
	buf_done(&id);
	return ok;
}

static int
read_ids(struct arena *a, struct str query, struct file_query *q, struct err *reterr)
{
	struct str *raw = ARENA_NEW_ARRAY(a, struct str, IDS_RAW_MAX);
	struct str *ids = ARENA_NEW_ARRAY(a, struct str, QUERY_FILE_IDS_MAX);
	if (raw == NULL || ids == NULL)
		return refuse(reterr, 500, "Internal server error");
	size_t n = query_get_all(a, query, "ids", raw, IDS_RAW_MAX);
	if (n == 0)
		return 0;
	if (n > IDS_RAW_MAX)
		return refuse(reterr, 400, "ids: at most 100 distinct ids are allowed");
	if (query_get(a, query, "page").ptr != NULL || query_get(a, query, "limit").ptr != NULL)
		return refuse(reterr, 400, "ids: cannot be combined with page or limit");
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;
		while (k < q->id_count && !str_eq(ids[k], raw[i]))
			k++;
		if (k < q->id_count)
			continue;
		if (q->id_count == QUERY_FILE_IDS_MAX)
			return refuse(reterr, 400, "ids: at most 100 distinct ids are allowed");
		ids[q->id_count++] = raw[i];
	}
	q->ids = ids;
	q->by_ids = true;
	return 0;
}

static int
read_cursor(struct arena *a, struct str query, struct file_query *q, struct err *reterr)
{
	struct str page = get(a, query, "page");
	q->after = get(a, query, "after");
	if (q->after.ptr == NULL)
		q->after = get(a, query, "after_id");
	q->before = get(a, query, "before_id");
	if ((page.ptr != NULL) + (q->after.ptr != NULL) + (q->before.ptr != NULL) > 1)
		return refuse(reterr, 400, "after, before_id and page exclude each other");
	if (page.ptr == NULL)
		return 0;
	if (!read_token(a, page, &q->after))
		return refuse(reterr, 400, "page: not a token of this gateway");
	q->after_is_token = true;
	return 0;
}

int
query_read_files(
    struct arena *a, struct str query, enum wire wire, struct file_query *ret, struct err *reterr)
{
	struct file_query q = {.limit = QUERY_LIMIT_DEFAULT};
	int status = read_ids(a, query, &q, reterr);
	if (status != 0)
		return status;
	status = read_cursor(a, query, &q, reterr);
	if (status != 0)
		return status;
	uint32_t max = wire == WIRE_MESSAGES ? QUERY_LIMIT_MAX : QUERY_OPENAI_MAX;
	if (!read_number(a, query, "limit", 1, max, QUERY_LIMIT_DEFAULT, &q.limit))
		return refuse(reterr, 422, "limit: must be a whole number from 1 to 1000");
	if (q.limit > QUERY_LIMIT_MAX)
		q.limit = QUERY_LIMIT_MAX;
	struct str order = query_get(a, query, "order");
	q.ascending = str_eq(order, STR("asc"));
	if (order.ptr != NULL && !q.ascending && !str_eq(order, STR("desc")))
		return refuse(reterr, 422, "order: must be 'asc' or 'desc'");
	struct str workspace = get(a, query, "workspace_id");
	if (workspace.ptr != NULL && !query_uuid(a, workspace, &q.workspace_id))
		return refuse(reterr, 422, "workspace_id: must be a UUID");
	q.purpose = get(a, query, "purpose");
	q.user = get(a, query, "user");
	*ret = q;
	return 0;
}

int
query_read_models(struct arena *a, struct str query, struct model_query *ret, struct err *reterr)
{
	struct model_query q;
	if (!read_number(a, query, "limit", 1, QUERY_LIMIT_MAX, QUERY_MODELS_DEFAULT, &q.limit))
		return refuse(reterr, 400, "limit: must be a whole number from 1 to 1000");
	q.after_id = get(a, query, "after_id");
	q.before_id = get(a, query, "before_id");
	if (q.after_id.ptr != NULL && q.before_id.ptr != NULL)
		return refuse(reterr, 400, "after_id and before_id exclude each other");
	*ret = q;
	return 0;
}

int
query_read_admin(struct arena *a, struct str query, struct admin_query *ret, struct err *reterr)
{
	struct admin_query q;
	if (!read_number(a, query, "skip", 0, SKIP_MAX, 0, &q.skip))
		return refuse(reterr, 422, "skip: must be a whole number from 0");
	if (!read_number(a, query, "limit", 1, QUERY_LIMIT_MAX, QUERY_LIMIT_DEFAULT, &q.limit))
		return refuse(reterr, 422, "limit: must be a whole number from 1 to 1000");
	*ret = q;
	return 0;
}

struct page_slice
page_from(size_t total, size_t from, uint32_t limit)
{
	size_t left = from < total ? total - from : 0;
	size_t count = left < limit ? left : limit;
	return (struct page_slice){.first = from, .count = count, .has_more = count < left};
}

struct page_slice
page_before(size_t position, uint32_t limit)
{
	size_t count = position < limit ? position : limit;
	return (struct page_slice){
	    .first = position - count, .count = count, .has_more = count < position};
}
