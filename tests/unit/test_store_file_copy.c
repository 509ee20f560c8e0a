#include <criterion/criterion.h>

#include "storage/sql/store_file_copy.h"
#include "tests/unit/dbfix.h"

TestSuite(store_file_copy, .timeout = 120);

static enum err_code
put(struct dbfix *f, const char *file, const char *account, const char *copy, int64_t expires)
{
	struct store_file_copy c = {str_c(file), str_c(account), str_c(copy), expires};
	return store_file_copy_put(f->db, &c, NULL);
}

static struct str
get(struct dbfix *f, struct arena *a, const char *file, const char *account, int64_t now)
{
	struct str id = STR_NULL;
	enum err_code rc =
	    store_file_copy_get(f->db, a, str_c(file), str_c(account), now, &id, NULL);
	cr_assert(rc == ERR_OK || rc == ERR_NOTFOUND, "%s", f->name);
	return id;
}

static void
life(struct dbfix *f)
{
	struct arena *a = arena_new(1u << 20);
	size_t n = 0;

	cr_assert_eq(put(f, "file-1", "acct", "file_a", 500), ERR_OK, "%s", f->name);
	cr_expect(str_eq(get(f, a, "file-1", "acct", 499), STR("file_a")), "%s", f->name);
	cr_expect_null(get(f, a, "file-1", "acct", 500).ptr, "%s: expired", f->name);
	cr_expect_null(get(f, a, "file-1", "other", 1).ptr, "%s: another account", f->name);
	cr_expect_null(get(f, a, "FILE-1", "acct", 1).ptr);
	cr_assert_eq(put(f, "file-1", "acct", "file_b", 900), ERR_OK);
	cr_expect(str_eq(get(f, a, "file-1", "acct", 1), STR("file_b")), "%s: the later", f->name);
	cr_assert_eq(put(f, "file-2", "acct", "file_c", 600), ERR_OK);
	cr_assert_eq(put(f, "file-3", "acct", "file_d", 600), ERR_OK);
	cr_assert_eq(store_file_copy_sweep(f->db, 700, 1, &n, NULL), ERR_OK);
	cr_expect_eq(n, 1, "%s: bounded", f->name);
	cr_assert_eq(store_file_copy_sweep(f->db, 700, 100, &n, NULL), ERR_OK);
	cr_expect_eq(n, 1);
	cr_expect(str_eq(get(f, a, "file-1", "acct", 1), STR("file_b")));
	cr_expect_null(get(f, a, "file-2", "acct", 1).ptr);
	char huge[300];
	for (size_t i = 0; i < sizeof(huge); i++)
		huge[i] = 'x';
	huge[299] = '\0';
	cr_expect_eq(put(f, "file-9", "acct", huge, 900), ERR_INPUT);
	arena_free(&a);
}

Test(store_file_copy, lives_as_long_as_the_provider_keeps_it)
{
	dbfix_each(life);
}
