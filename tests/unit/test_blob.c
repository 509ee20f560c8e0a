#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "storage/blob/blob.h"
#include "tests/unit/dbfix.h"

static struct blob_store *
open_store(char dir[32])
{
	struct blob_store *s = NULL;
	struct err err = {0};
	(void)snprintf(dir, 32, "/tmp/otari-blob-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(blob_open_local(dir, &s, &err), ERR_OK, "%s", err.msg);
	return s;
}

static enum err_code
put(struct blob_store *s, const char *key, struct str bytes)
{
	struct blob_put *p = NULL;
	enum err_code rc = blob_put_begin(s, str_c(key), &p, NULL);
	if (rc != ERR_OK)
		return rc;
	cr_assert_eq(blob_put_write(p, bytes, NULL), ERR_OK);
	return blob_put_commit(&p, NULL);
}

static bool
exists(const char *dir, const char *path)
{
	char full[256];
	(void)snprintf(full, sizeof(full), "%s/%s", dir, path);
	return access(full, F_OK) == 0;
}

Test(blob, refuses_keys_that_could_leave_the_directory)
{
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..",
	    "a/.", "a/../b", ".tmp/x", "a/b/c", "a b", "a\\b", "a/b\n", "\xc3\xa9", "a/.hidden"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_assert_not(blob_key_valid(str_c(bad[i])), "%s", bad[i]);
	cr_assert_not(blob_key_valid(str_n("a\0b", 3)));
	static const char *const good[] = {"a", "ab/file-ab12", "A-Z_0.9"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		cr_assert(blob_key_valid(str_c(good[i])), "%s", good[i]);
	static const char *const ids[] = {"file-ab12cd", "file_011CNha8iCJcU1wXNR6q4V8w", "../../x",
	    "file-", "file-a", "file-../../etc", "", "file-.a", "販売", "file-aa/../../b"};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		char key[BLOB_KEY_SIZE];
		blob_key(str_c(ids[i]), key);
		cr_assert(blob_key_valid(str_c(key)), "%s gives %s", ids[i], key);
	}
	char key[BLOB_KEY_SIZE];
	blob_key(STR("file-ab12cd"), key);
	cr_assert_str_eq(key, "ab/file-ab12cd");
}

Test(blob, stores_and_reads_ranges, .timeout = 20)
{
	char dir[32];
	struct blob_store *s = open_store(dir);
	struct err err = {0};
	cr_assert_eq(put(s, "ab/file-1", STR("0123456789")), ERR_OK);
	cr_assert_eq(put(s, "ab/file-0", STR("")), ERR_OK, "empty files are files");
	static const struct {
		uint64_t offset, length;
		const char *want;
	} rows[] = {
	    {0, BLOB_TO_END, "0123456789"},
	    {3, 4, "3456"},
	    {9, 100, "9"},
	    {10, 1, ""},
	    {99, 1, ""},
	    {0, 0, ""},
	    {UINT64_MAX, UINT64_MAX, ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct blob_get *g = NULL;
		cr_assert_eq(
		    blob_get_open(s, STR("ab/file-1"), rows[i].offset, rows[i].length, &g, &err),
		    ERR_OK);
		char all[32] = "";
		size_t n = 0, got = 0;
		do {
			cr_assert_eq(blob_get_read(g, all + n, 3, &got, &err), ERR_OK);
			n += got;
		} while (got > 0);
		all[n] = '\0';
		cr_assert_str_eq(all, rows[i].want, "row %zu", i);
		blob_get_close(&g);
	}
	struct blob_info info;
	cr_assert_eq(blob_stat(s, STR("ab/file-1"), &info, &err), ERR_OK);
	cr_assert_eq(info.bytes, 10);
	int fd = -1;
	uint64_t bytes = 0;
	cr_assert_eq(blob_open_fd(s, STR("ab/file-1"), &fd, &bytes, &err), ERR_OK);
	cr_assert(fd >= 0 && bytes == 10);
	fd_close(&fd);
	cr_assert_eq(blob_stat(s, STR("ab/none"), &info, &err), ERR_NOTFOUND);
	cr_assert_eq(blob_stat(s, STR("zz/none"), &info, &err), ERR_NOTFOUND);
	cr_assert_eq(blob_stat(s, STR("ab"), &info, &err), ERR_IO, "a shard is no blob");
	blob_close(&s);
	dbfix_rmtree(dir);
}

Test(blob, shows_nothing_before_commit_and_leaves_nothing_after_abort, .timeout = 20)
{
	char dir[32];
	struct blob_store *s = open_store(dir);
	struct err err = {0};
	struct blob_put *p = NULL;
	struct blob_info info;
	cr_assert_eq(blob_put_begin(s, STR("cd/x"), &p, &err), ERR_OK);
	cr_assert_eq(blob_put_write(p, STR("half"), &err), ERR_OK);
	cr_assert_eq(blob_stat(s, STR("cd/x"), &info, &err), ERR_NOTFOUND);
	blob_put_abort(&p);
	cr_assert_null(p);
	cr_assert_not(exists(dir, "cd"));
	blob_put_abort(&p);
	/* A put whose process died: only its temporary file is left; the sweep takes it. */
	cr_assert_eq(blob_put_begin(s, STR("cd/y"), &p, &err), ERR_OK);
	uint64_t n = 9;
	cr_assert_eq(blob_clean(s, 3600, &n, &err), ERR_OK);
	cr_assert_eq(n, 0, "it may still be going on");
	clock_fake_wall_ms(clock_wall_ms() + 3601 * 1000);
	cr_assert_eq(blob_clean(s, 3600, &n, &err), ERR_OK);
	cr_assert_eq(n, 1);
	clock_fake_wall_ms(0);
	cr_assert_eq(blob_put_commit(&p, &err), ERR_IO, "swept under its feet: refused");
	blob_close(&s);
	dbfix_rmtree(dir);
}

static bool
count_one(struct str key, const struct blob_info *info, void *arg)
{
	(void)info;
	cr_assert(blob_key_valid(key));
	return ++*(int *)arg < 3;
}

Test(blob, deletes_twice_lists_and_removes_empty_shards, .timeout = 20)
{
	char dir[32];
	struct blob_store *s = open_store(dir);
	struct err err = {0};
	static const char *const keys[] = {"aa/1", "aa/2", "bb/1", "top"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		cr_assert_eq(put(s, keys[i], STR("x")), ERR_OK);
	int n = -10;
	cr_assert_eq(blob_list(s, count_one, &n, &err), ERR_OK);
	cr_assert_eq(n, -6, "all four, no temporaries");
	n = 0;
	cr_assert_eq(blob_list(s, count_one, &n, &err), ERR_OK);
	cr_assert_eq(n, 3, "stopped");
	cr_assert_eq(blob_delete(s, STR("aa/1"), &err), ERR_OK);
	cr_assert(exists(dir, "aa"));
	cr_assert_eq(blob_delete(s, STR("aa/2"), &err), ERR_OK);
	cr_assert_not(exists(dir, "aa"));
	cr_assert_eq(blob_delete(s, STR("aa/2"), &err), ERR_OK, "again");
	cr_assert_eq(blob_delete(s, STR("../x"), &err), ERR_INPUT);
	/* A link in the directory is never followed. */
	char link[64];
	(void)snprintf(link, sizeof(link), "%s/ln", dir);
	cr_assert_eq(symlink("/etc", link), 0);
	struct blob_info info;
	cr_assert_eq(blob_stat(s, STR("ln/passwd"), &info, &err), ERR_IO);
	cr_assert_eq(put(s, "ln/evil", STR("x")), ERR_IO);
	cr_assert_eq(blob_delete(s, STR("ln/passwd"), &err), ERR_IO);
	blob_close(&s);
	dbfix_rmtree(dir);
}

Test(blob, says_so_when_the_disk_is_full, .timeout = 20)
{
	char dir[32];
	struct blob_store *s = open_store(dir);
	struct err err = {0};
	struct blob_put *p = NULL;
	(void)signal(SIGXFSZ, SIG_IGN);
	struct rlimit old;
	(void)getrlimit(RLIMIT_FSIZE, &old);
	cr_assert_eq(blob_put_begin(s, STR("cd/x"), &p, &err), ERR_OK);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4, old.rlim_max}), 0);
	enum err_code rc = blob_put_write(p, STR("more than four"), &err);
	(void)setrlimit(RLIMIT_FSIZE, &old);
	cr_assert_eq(rc, ERR_IO);
	cr_assert_neq(err.sys_errno, 0);
	blob_put_abort(&p);
	cr_assert_not(exists(dir, "cd"));
	blob_close(&s);
	dbfix_rmtree(dir);
}

struct racer {
	struct blob_store *s;
	const char *key;
	int failures;
};

static void *
put_and_delete(void *arg)
{
	struct racer *r = arg;
	for (int i = 0; i < 60; i++) {
		struct blob_put *p = NULL;
		if (blob_put_begin(r->s, str_c(r->key), &p, NULL) != ERR_OK ||
		    blob_put_write(p, STR("x"), NULL) != ERR_OK ||
		    blob_put_commit(&p, NULL) != ERR_OK ||
		    blob_delete(r->s, str_c(r->key), NULL) != ERR_OK)
			r->failures++;
	}
	return NULL;
}

/* Two threads fill and empty the same shard: it vanishes under the other's feet. */
Test(blob, bears_a_shard_that_comes_and_goes, .timeout = 30)
{
	char dir[32];
	struct blob_store *s = open_store(dir);
	struct racer r[2] = {{s, "ee/1", 0}, {s, "ee/2", 0}};
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, put_and_delete, &r[i]), 0);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	cr_assert_eq(r[0].failures + r[1].failures, 0);
	blob_close(&s);
	dbfix_rmtree(dir);
}
