#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "storage/sql/store_file.h"
#include "tests/unit/dbfix.h"

#define NOW   1000000
#define ARENA (8u * 1024u * 1024u)

static const struct store_file_scope BOB = {STR_INIT("bob"), STR_INIT("w1")};
static const struct store_file_scope BOB_ANY = {STR_INIT("bob"), {NULL, 0}};

static struct store_file
sample(const char *id, int64_t created_at_ms)
{
	return (struct store_file){
	    .id = str_c(id),
	    .user_id = STR("bob"),
	    .workspace_id = STR("w1"),
	    .filename = STR("Simple \xe2\x80\x93 G\xc3\xa9n\xc3\xa9rer \xf0\x9f\x93\x88.csv"),
	    .mime_type = STR("text/csv"),
	    .purpose = STR("user_data"),
	    .storage_ref = STR("ab/x"),
	    .bytes = 5,
	    .created_at_ms = created_at_ms,
	};
}

static void
insert(struct dbfix *f, const struct store_file *file)
{
	struct err err = {0};
	cr_assert_eq(store_file_insert(f->db, file, &err), ERR_OK, "%s: %s", f->name, err.msg);
}

/* "id id id", with "+" when there are more. */
static const char *
page(struct dbfix *f, struct arena *a, const struct store_file_query *q)
{
	static char text[1024];
	struct store_file *items = NULL;
	size_t n = 0;
	bool more = false;
	struct err err = {0};
	enum err_code rc = store_file_list(f->db, a, q, &items, &n, &more, &err);
	if (rc != ERR_OK)
		return err_name(rc);
	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(text);
		(void)snprintf(
		    text + at, sizeof(text) - at, "%s%.*s", i > 0 ? " " : "", STR_FMT(items[i].id));
	}
	size_t at = strlen(text);
	if (more)
		(void)snprintf(text + at, sizeof(text) - at, "+");
	return text;
}

static void
get_and_delete(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	struct store_file in = sample("file-1", NOW - 10), out;
	in.sha256_hex = STR("00ff");
	in.metadata_json = STR("{\"a\":1}");
	in.expires_at_ms = NOW + 5;
	insert(f, &in);
	cr_assert_eq(store_file_insert(f->db, &in, &err), ERR_CONFLICT, "%s", f->name);
	cr_assert_eq(store_file_get(f->db, a, &BOB, in.id, NOW, &out, &err), ERR_OK);
	cr_assert(str_eq(out.filename, in.filename), "%s: %.*s", f->name, STR_FMT(out.filename));
	cr_assert(
	    str_eq(out.metadata_json, in.metadata_json) && str_eq(out.sha256_hex, STR("00ff")));
	cr_assert(out.bytes == 5 && out.created_at_ms == NOW - 10 && out.expires_at_ms == NOW + 5);
	cr_assert_null(out.provider.ptr);
	cr_assert_eq(out.deleted_at_ms, 0);
	static const struct {
		struct store_file_scope scope;
		const char *id;
		int64_t now_ms;
		enum err_code want;
	} rows[] = {
	    {{STR_INIT("bob"), STR_INIT("w1")}, "file-1", NOW, ERR_OK},
	    {{STR_INIT("bob"), {NULL, 0}}, "file-1", NOW, ERR_OK},
	    {{STR_INIT("bob"), STR_INIT("w2")}, "file-1", NOW, ERR_NOTFOUND},
	    {{STR_INIT("eve"), STR_INIT("w1")}, "file-1", NOW, ERR_NOTFOUND},
	    {{STR_INIT("bob "), STR_INIT("w1")}, "file-1", NOW, ERR_NOTFOUND}, /* no padding */
	    {{STR_INIT("BOB"), STR_INIT("w1")}, "file-1", NOW, ERR_NOTFOUND},  /* no folding */
	    {{STR_INIT("bob"), STR_INIT("w1")}, "FILE-1", NOW, ERR_NOTFOUND},
	    {{STR_INIT("bob"), STR_INIT("w1")}, "file-1 ", NOW, ERR_NOTFOUND},
	    {{STR_INIT("bob"), STR_INIT("w1")}, "file-1", NOW + 5, ERR_NOTFOUND}, /* expired */
	    {{STR_INIT("bob"), STR_INIT("w1")}, "\xff\xfe' OR 1=1", NOW, ERR_NOTFOUND},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(store_file_get(f->db, a, &rows[i].scope, str_c(rows[i].id),
				 rows[i].now_ms, &out, &err),
		    rows[i].want, "%s row %zu: %s", f->name, i, err.msg);
	cr_assert_eq(
	    store_file_get(f->db, a, &BOB, str_n("file-1\0x", 8), NOW, &out, &err), ERR_NOTFOUND);
	const struct store_file_scope eve = {STR("eve"), STR("w1")};
	cr_assert_eq(store_file_delete(f->db, a, &eve, in.id, NOW, &out, &err), ERR_NOTFOUND);
	cr_assert_eq(store_file_delete(f->db, a, &BOB, in.id, NOW, &out, &err), ERR_OK);
	cr_assert(str_eq(out.storage_ref, STR("ab/x")));
	cr_assert_eq(store_file_delete(f->db, a, &BOB, in.id, NOW, &out, &err), ERR_NOTFOUND);
	cr_assert_eq(store_file_get(f->db, a, &BOB, in.id, NOW, &out, &err), ERR_NOTFOUND);
	arena_free(&a);
}

Test(store_file, shows_a_file_to_its_owner_only, .timeout = 60)
{
	dbfix_each(get_and_delete);
}

static void
paging(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	/* c, d and e share a millisecond; x is another workspace's, y another user's. */
	static const struct {
		const char *id;
		int64_t at;
	} files[] = {{"a", 1}, {"b", 2}, {"e", 3}, {"c", 3}, {"d", 3}, {"f", 4}};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct store_file s = sample(files[i].id, files[i].at);
		if (s.id.ptr[0] == 'b')
			s.purpose = STR("vision");
		insert(f, &s);
	}
	struct store_file other = sample("x", 3);
	other.workspace_id = STR("w2");
	insert(f, &other);
	other = sample("y", 3);
	other.user_id = STR("eve");
	insert(f, &other);

	static const struct {
		const char *after, *before, *purpose;
		uint32_t limit;
		bool ascending, any;
		const char *want;
	} rows[] = {
	    {NULL, NULL, NULL, 100, false, false, "f e d c b a"},
	    {NULL, NULL, NULL, 100, true, false, "a b c d e f"},
	    {NULL, NULL, NULL, 6, false, false, "f e d c b a"},
	    {NULL, NULL, NULL, 2, false, false, "f e+"},
	    {"e", NULL, NULL, 2, false, false, "d c+"},
	    {"c", NULL, NULL, 2, false, false, "b a"},
	    {"a", NULL, NULL, 2, false, false, ""},
	    {"c", NULL, NULL, 2, true, false, "d e+"},
	    {"e", NULL, NULL, 2, true, false, "f"},
	    {NULL, NULL, "vision", 2, true, false, "b"},
	    {NULL, NULL, "Vision", 2, true, false, ""},
	    {NULL, NULL, "", 2, true, false, "a b+"},
	    {NULL, "b", NULL, 2, false, false, "d c+"},
	    {NULL, "e", NULL, 2, false, false, "f"},
	    {NULL, "f", NULL, 2, false, false, ""},
	    {NULL, "d", NULL, 2, true, false, "b c+"},
	    {NULL, NULL, NULL, 100, false, true, "f x e d c b a"},
	    {"x", NULL, NULL, 2, false, true, "e d+"},
	    {"x", NULL, NULL, 2, false, false, "not_found"},
	    {"y", NULL, NULL, 2, false, true, "not_found"},
	    {"nope", NULL, NULL, 2, false, false, "not_found"},
	    {NULL, "nope", NULL, 2, false, false, "not_found"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_file_query q = {
		    .scope = rows[i].any ? BOB_ANY : BOB,
		    .purpose = str_c(rows[i].purpose),
		    .after_id = str_c(rows[i].after),
		    .before_id = str_c(rows[i].before),
		    .limit = rows[i].limit,
		    .ascending = rows[i].ascending,
		    .now_ms = NOW,
		};
		cr_assert_str_eq(page(f, a, &q), rows[i].want, "%s row %zu", f->name, i);
	}
	/* List and delete: the cursor is deleted, then expired; its position stays. */
	struct store_file out;
	struct store_file_query q = {.scope = BOB, .limit = 2, .now_ms = NOW};
	cr_assert_str_eq(page(f, a, &q), "f e+");
	cr_assert_eq(store_file_delete(f->db, a, &BOB, STR("f"), NOW, &out, &err), ERR_OK);
	cr_assert_eq(store_file_delete(f->db, a, &BOB, STR("e"), NOW, &out, &err), ERR_OK);
	q.after_id = STR("e");
	cr_assert_str_eq(page(f, a, &q), "d c+");
	struct store_file gone = sample("g", 2);
	gone.expires_at_ms = NOW;
	insert(f, &gone);
	q.after_id = STR("g");
	cr_assert_str_eq(page(f, a, &q), "b a", "expired files are not listed");

	static const struct str ids[] = {STR_INIT("a"), STR_INIT("nope"), STR_INIT("d"),
	    STR_INIT("a"), STR_INIT("e"), STR_INIT("x")};
	struct store_file *items = NULL;
	size_t n = 0;
	cr_assert_eq(
	    store_file_list_ids(f->db, a, &BOB, ids, ARRAY_LEN(ids), NOW, &items, &n, &err),
	    ERR_OK);
	cr_assert(n == 2 && str_eq(items[0].id, STR("d")) && str_eq(items[1].id, STR("a")));
	arena_free(&a);
}

Test(store_file, pages_in_both_orders_without_repeats, .timeout = 60)
{
	dbfix_each(paging);
}

static void
many(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	cr_assert_eq(db_begin(f->db, DB_WRITE, &err), ERR_OK);
	for (int i = 0; i < 250; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "n%03d", i);
		struct store_file s = sample(id, i / 7);
		insert(f, &s);
	}
	cr_assert_eq(db_commit(f->db, &err), ERR_OK);
	char last[16] = "";
	int seen = 0, pages = 0;
	bool more = true;
	while (more) {
		struct store_file_query q = {.scope = BOB, .limit = 33, .now_ms = NOW};
		if (last[0] != '\0')
			q.after_id = str_c(last);
		struct store_file *items = NULL;
		size_t n = 0;
		cr_assert_eq(store_file_list(f->db, a, &q, &items, &n, &more, &err), ERR_OK);
		for (size_t i = 0; i < n; i++) {
			char id[16];
			(void)snprintf(id, sizeof(id), "n%03d", 249 - seen++);
			cr_assert(str_eq(items[i].id, str_c(id)), "%s", id);
		}
		cr_assert(str_copy(last, sizeof(last), items[n - 1].id));
		pages++;
	}
	cr_assert(seen == 250 && pages == 8);
	/* Over the arena's cap: an error, not a short page. */
	struct arena *tiny = arena_new(4096);
	struct store_file_query q = {.scope = BOB, .limit = 250, .now_ms = NOW};
	struct store_file *items = NULL;
	size_t n = 0;
	cr_assert_eq(store_file_list(f->db, tiny, &q, &items, &n, &more, &err), ERR_NOMEM);
	arena_free(&tiny);
	arena_free(&a);
}

Test(store_file, walks_hundreds_page_by_page, .timeout = 60)
{
	dbfix_each(many);
}

static void
refused(struct dbfix *f)
{
	struct err err = {0};
	static char name[600];
	memset(name, 'x', sizeof(name));
	struct store_file s = sample("long", 1);
	s.filename = str_n(name, sizeof(name));
	cr_assert_eq(store_file_insert(f->db, &s, &err), ERR_INPUT, "%s", err.msg);
	s = sample("bad-utf8", 1);
	s.filename = STR("\xff\xfe.csv");
	cr_assert_eq(store_file_insert(f->db, &s, &err), ERR_INPUT, "%s", err.msg);
}

Test(store_file, refuses_what_the_columns_do_not_hold, .timeout = 60)
{
	dbfix_each(refused);
}
