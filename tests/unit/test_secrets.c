/* Secrets segments. */
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "ipc/secrets.h"

TestSuite(secrets, .timeout = 10);

static int
make(void)
{
	struct secrets_builder *b = secrets_builder_new();
	secrets_builder_add(b, STR("provider/openai"), STR("sk-1"));
	secrets_builder_add(b, STR("database_url"), STR("mysql://u:p\0q@h/d"));
	secrets_builder_add(b, STR("empty"), STR(""));
	int fd = -1;
	struct err e = {0};
	cr_assert_eq(secrets_builder_end(&b, &fd, &e), ERR_OK, "%s", e.msg);
	cr_assert_null(b);
	return fd;
}

Test(secrets, go_round)
{
	struct secrets *s;
	struct err e = {0};
	int fd = make();
	cr_assert(fd_is_sealed(fd));
	cr_assert_eq(secrets_map(fd, &s, &e), ERR_OK, "%s", e.msg);
	cr_assert(str_eq(secrets_get(s, STR("provider/openai")), STR("sk-1")));
	cr_assert(str_eq(secrets_get(s, STR("database_url")), STR("mysql://u:p\0q@h/d")));
	struct str empty = secrets_get(s, STR("empty"));
	cr_assert(empty.ptr != NULL && empty.len == 0);
	cr_assert_null(secrets_get(s, STR("provider/openai2")).ptr);
	secrets_free(&s);
	secrets_free(&s);
}

Test(secrets, may_be_none)
{
	struct secrets_builder *b = secrets_builder_new();
	struct secrets *s;
	int fd = -1;
	cr_assert_eq(secrets_builder_end(&b, &fd, NULL), ERR_OK);
	cr_assert_eq(secrets_map(fd, &s, NULL), ERR_OK);
	cr_assert_null(secrets_get(s, STR("x")).ptr);
	secrets_free(&s);
}

Test(secrets, refuse_too_much)
{
	struct secrets_builder *b = secrets_builder_new();
	size_t n = 5u * 1024u * 1024u;
	char *big = mem_alloc(n);
	secrets_builder_add(b, STR("big"), str_n(big, n));
	int fd = -1;
	cr_assert_eq(secrets_builder_end(&b, &fd, NULL), ERR_TOOLARGE);
	cr_assert_eq(fd, -1);
	mem_free(big);
}

static enum err_code
try_map(const char *bytes, size_t n, bool seal)
{
	int fd = fd_memfd("test");
	cr_assert_eq(fd_write_all(fd, str_n(bytes, n), NULL), ERR_OK);
	if (seal)
		cr_assert(fd_seal(fd));
	struct secrets *s = NULL;
	enum err_code rc = secrets_map(fd, &s, NULL);
	secrets_free(&s);
	return rc;
}

Test(secrets, refuse_false_images)
{
	int fd = make();
	char *bytes;
	size_t n;
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(fd_read_all(fd, 65536, &bytes, &n, NULL), ERR_OK);
	fd_close(&fd);
	cr_assert_eq(try_map(bytes, n, true), ERR_OK);
	cr_assert_eq(try_map(bytes, n, false), ERR_PROTO);
	for (size_t cut = 0; cut < n; cut++)
		cr_assert_eq(try_map(bytes, cut, true), ERR_PROTO, "cut at %zu", cut);
	for (size_t i = 0; i < n - 1; i++) {
		char old = bytes[i];
		bytes[i] = (char)0xFF;
		enum err_code rc = try_map(bytes, n, true);
		cr_assert(rc == ERR_OK || rc == ERR_PROTO);
		bytes[i] = old;
	}
	mem_free(bytes);
}
