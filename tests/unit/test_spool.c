#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/digest.h"
#include "base/fd.h"
#include "storage/spool.h"
#include "tests/unit/dbfix.h"

static struct usage
sample(const char *id)
{
	return (struct usage){
	    .request_id = str_c(id),
	    .user_id = STR("u"),
	    .key_id = STR_NULL,
	    .workspace_id = STR("w"),
	    .endpoint = STR("/v1/messages"),
	    .provider = STR("p"),
	    .model = STR("m"),
	    .status = STR("success"),
	    .end_user = STR(""),
	    .tools_json = STR("{\"code_execution\":{\"billed\":1}}"),
	    .error = STR_NULL,
	    .ts_ms = 1796000000123,
	    .status_code = 200,
	    .latency_ms = -1,
	    .prompt_tokens = INT64_MAX,
	    .completion_tokens = 5,
	    .cost_microusd = 42,
	};
}

static void
make_dir(char dir[32])
{
	(void)snprintf(dir, 32, "/tmp/otari-spool-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static size_t
count_files(const char *dir, const char *ending)
{
	size_t n = 0;
	DIR *d = opendir(dir);
	const struct dirent *e;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' && str_ends(str_c(e->d_name), str_c(ending));
	(void)closedir(d);
	return n;
}

struct got {
	size_t n, fail_at;
	char last[64];
	char seen[4096];
};

static enum err_code
collect(const struct usage *rows, size_t n, void *arg, struct err *reterr)
{
	struct got *g = arg;
	if (g->fail_at > 0 && g->n >= g->fail_at)
		return err_set(reterr, ERR_BUSY, "no database");
	for (size_t i = 0; i < n; i++) {
		cr_assert(str_copy(g->last, sizeof(g->last), rows[i].request_id));
		size_t at = strlen(g->seen);
		(void)snprintf(g->seen + at, sizeof(g->seen) - at, "%s ", g->last);
	}
	g->n += n;
	return ERR_OK;
}

Test(spool, encodes_and_decodes_every_field)
{
	unsigned char bytes[LIMIT_SPOOL_RECORD_BYTES];
	struct usage u = sample("req_1"), v;
	size_t len, n = spool_encode(&u, bytes);
	cr_assert_eq(spool_decode(str_n(bytes, n), &v, &len), SPOOL_RECORD);
	cr_assert_eq(len, n);
	cr_assert(str_eq(v.request_id, u.request_id) && str_eq(v.tools_json, u.tools_json));
	cr_assert(str_eq(v.endpoint, u.endpoint) && str_eq(v.model, u.model));
	cr_assert_null(v.key_id.ptr);
	cr_assert_null(v.error.ptr);
	cr_assert(v.end_user.ptr != NULL && v.end_user.len == 0, "empty is not absent");
	cr_assert(v.ts_ms == u.ts_ms && v.latency_ms == -1 && v.prompt_tokens == INT64_MAX);
	cr_assert(v.completion_tokens == 5 && v.cost_microusd == 42 && v.status_code == 200);

	/* The longest texts of strangers still fit; they are cut on a character. */
	static char big[9000];
	for (size_t i = 0; i + 2 < sizeof(big); i += 3)
		memcpy(big + i, "\xe2\x82\xac", 3);
	struct str all = str_n(big, sizeof(big));
	u = (struct usage){all, all, all, all, all, all, all, all, all, all, all, .ts_ms = 1};
	n = spool_encode(&u, bytes);
	cr_assert_leq(n, LIMIT_SPOOL_RECORD_BYTES);
	cr_assert_eq(spool_decode(str_n(bytes, n), &v, &len), SPOOL_RECORD);
	cr_assert_eq(v.error.len, 510);
	cr_assert_null(v.tools_json.ptr, "half a JSON text is left out");
}

Test(spool, refuses_what_is_torn_or_damaged)
{
	unsigned char bytes[LIMIT_SPOOL_RECORD_BYTES];
	struct usage u = sample("req_1"), v;
	size_t len, n = spool_encode(&u, bytes);
	for (size_t cut = 0; cut < n; cut++) {
		enum spool_found f = spool_decode(str_n(bytes, cut), &v, &len);
		cr_assert(f == SPOOL_SHORT && len == 0, "cut at %zu", cut);
	}
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= 0x40;
		enum spool_found f = spool_decode(str_n(bytes, n), &v, &len);
		/* A flipped length may ask for more; a flipped version says so. */
		cr_assert(f != SPOOL_RECORD && (f == SPOOL_SHORT || len > 0), "flip at %zu", i);
		bytes[i] ^= 0x40;
	}
	bytes[3] = 2;
	cr_assert_eq(spool_decode(str_n(bytes, n), &v, &len), SPOOL_NEWER);
	cr_assert_eq(len, n);
}

Test(spool, hands_over_and_drains_in_order, .timeout = 20)
{
	char dir[32];
	make_dir(dir);
	struct err err = {0};
	struct spool *s = NULL;
	cr_assert_eq(spool_open(dir, "1", &s, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(count_files(dir, ""), 0, "nothing before the first append");
	for (int i = 0; i < 600; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "r%d", i);
		struct usage u = sample(id);
		cr_assert_eq(spool_append(s, &u, &err), ERR_OK, "%s", err.msg);
	}
	struct got g = {0};
	struct spool_drained d = {0};
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert_eq(count_files(dir, ".spool"), d.left, "a live file is left alone");
	cr_assert_eq(spool_rotate(s, &err), ERR_OK);
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert_eq(g.n, 600);
	cr_assert_str_eq(g.last, "r599");
	cr_assert(d.records == 600 && d.damaged == 0 && d.left == 0);
	spool_close(&s);
	cr_assert_eq(count_files(dir, ""), 0);
	dbfix_rmtree(dir);
}

Test(spool, keeps_the_file_when_the_database_is_away, .timeout = 20)
{
	char dir[32];
	make_dir(dir);
	struct err err = {0};
	struct spool *s = NULL;
	cr_assert_eq(spool_open(dir, "1", &s, &err), ERR_OK);
	for (int i = 0; i < 300; i++) {
		struct usage u = sample("x");
		cr_assert_eq(spool_append(s, &u, &err), ERR_OK);
	}
	spool_close(&s);
	size_t files = count_files(dir, ".ready");
	struct got g = {.fail_at = 1};
	struct spool_drained d = {0};
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_BUSY);
	cr_assert_geq(d.left, 1);
	g = (struct got){0};
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert_geq(g.n, 44, "at least the whole file again");
	cr_assert_geq(files, 1);
	cr_assert_eq(count_files(dir, ""), 0);
	dbfix_rmtree(dir);
}

/* What kill -9 leaves: the records that were appended, in a file that nobody locks. */
Test(spool, loses_nothing_to_kill_9, .timeout = 20)
{
	char dir[32];
	make_dir(dir);
	int ready[2];
	cr_assert(fd_pipe(ready, false));
	pid_t pid = fork();
	if (pid == 0) {
		struct spool *s = NULL;
		if (spool_open(dir, "7", &s, NULL) != ERR_OK)
			_exit(1);
		for (int i = 0; i < 50; i++) {
			char id[16];
			(void)snprintf(id, sizeof(id), "k%d", i);
			struct usage u = sample(id);
			if (spool_append(s, &u, NULL) != ERR_OK)
				_exit(1);
		}
		(void)!write(ready[1], "x", 1);
		(void)pause();
	}
	char c;
	cr_assert_eq(read(ready[0], &c, 1), 1);
	struct got g = {0};
	struct spool_drained d = {0};
	struct err err = {0};
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert(g.n == 0 && d.left == 1, "its writer lives");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert_eq(g.n, 50);
	cr_assert_eq(d.left, 0);
	cr_assert_eq(count_files(dir, ""), 0);
	dbfix_rmtree(dir);
}

static void
write_file(const char *dir, const char *name, const void *p, size_t n)
{
	char path[96];
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, str_n(p, n), NULL), ERR_OK);
	fd_close(&fd);
}

Test(spool, skips_and_counts_torn_and_damaged_records, .timeout = 20)
{
	unsigned char a[LIMIT_SPOOL_RECORD_BYTES], b[LIMIT_SPOOL_RECORD_BYTES];
	struct usage ua = sample("a"), ub = sample("b");
	size_t na = spool_encode(&ua, a), nb = spool_encode(&ub, b);
	static char file[4 * LIMIT_SPOOL_RECORD_BYTES];
	/* name, pieces: a whole, A damaged, t torn, g garbage, n newer, L length says too much */
	static const struct {
		const char *pieces;
		size_t records, damaged, bad_files;
	} rows[] = {
	    {"at", 1, 1, 0},
	    {"taa", 2, 1, 0},
	    {"aAa", 2, 1, 0},
	    {"gaga", 2, 2, 0},
	    {"Laa", 2, 1, 0},
	    {"", 0, 0, 0},
	    {"ana", 2, 0, 1},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char dir[32];
		make_dir(dir);
		size_t n = 0;
		for (const char *p = rows[i].pieces; *p != '\0'; p++) {
			size_t len = *p == 't' ? na - 7 : na;
			memcpy(file + n, a, na);
			if (*p == 'A')
				file[n + 30] ^= 1;
			if (*p == 'L')
				file[n + 5] = 0x0f; /* 3.8 KiB */
			if (*p == 'g') {
				memset(file + n, 'O', 11);
				len = 11;
			}
			if (*p == 'n')
				file[n + 3] = 9;
			n += len;
		}
		write_file(dir, "usage-1-1-x.spool", file, n);
		write_file(dir, "usage-1-1-y.ready", b, nb);
		write_file(dir, "other", b, nb);
		struct got g = {0};
		struct spool_drained d = {0};
		struct err err = {0};
		cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK, "%s", err.msg);
		cr_assert_eq(g.n, rows[i].records + 1, "%s: %zu", rows[i].pieces, g.n);
		cr_assert_eq(d.damaged, rows[i].damaged, "%s: %lu", rows[i].pieces, d.damaged);
		cr_assert_eq(count_files(dir, ".bad"), rows[i].bad_files, "%s", rows[i].pieces);
		cr_assert_eq(count_files(dir, ""), 1 + rows[i].bad_files, "%s", rows[i].pieces);
		dbfix_rmtree(dir);
	}
}

Test(spool, leaves_no_half_record_when_the_disk_is_full, .signal = 0, .timeout = 20)
{
	char dir[32];
	make_dir(dir);
	struct err err = {0};
	struct spool *s = NULL;
	cr_assert_eq(spool_open(dir, "1", &s, &err), ERR_OK);
	struct usage u = sample("fits");
	cr_assert_eq(spool_append(s, &u, &err), ERR_OK);
	/* A file size limit stands for the full disk: the write comes back short. */
	(void)signal(SIGXFSZ, SIG_IGN);
	unsigned char bytes[LIMIT_SPOOL_RECORD_BYTES];
	size_t one = spool_encode(&u, bytes);
	struct rlimit old, small;
	(void)getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){one + one / 2, old.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum err_code rc = spool_append(s, &u, &err);
	(void)setrlimit(RLIMIT_FSIZE, &old);
	cr_assert_eq(rc, ERR_IO);
	u = sample("later");
	cr_assert_eq(spool_append(s, &u, &err), ERR_OK);
	spool_close(&s);
	struct got g = {0};
	struct spool_drained d = {0};
	cr_assert_eq(spool_drain(dir, collect, &g, &d, &err), ERR_OK);
	cr_assert_str_eq(g.seen, "fits later ");
	cr_assert_eq(d.damaged, 0);
	dbfix_rmtree(dir);
}
