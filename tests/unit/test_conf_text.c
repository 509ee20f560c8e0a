/* The texts around the configuration: dump, shipped file, man page, otari -t, master key file. */
#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "conf/docs.h"
#include "conf/master_key.h"
#include "tests/unit/conf_fixture.h"

TestSuite(conf_text, .timeout = 20);

Test(conf_text, hides_secrets_in_the_dump)
{
	struct loaded l = load("master_key: topsecret-0123456789\n"
			       "database_url: mysql://user:dbsecret@h/d\n"
			       "files_storage_options: {key: storagesecret}\n"
			       "providers:\n"
			       "  p: {api_base: \"http://h\", api_key: keysecret,"
			       " headers: {authorization: headersecret}}\n"
			       "workspaces: {w: {code_execution: {executor: otari}}}\n");
	must_load(&l);
	struct buf b = BUF_INIT(1 << 20);
	conf_dump(l.conf, &b);
	cr_assert(strstr(b.ptr, "secret") == NULL || strstr(b.ptr, "keysecret") == NULL);
	static const char *const never[] = {
	    "topsecret", "dbsecret", "storagesecret", "keysecret", "headersecret"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		cr_assert(strstr(b.ptr, never[i]) == NULL, "%s", never[i]);
	cr_assert(strstr(b.ptr, "database_url: \"mysql://user:***@h/d\"  # line 2") != NULL);
	cr_assert(strstr(b.ptr, "port: 8000  # default") != NULL);
	cr_assert(strstr(b.ptr, "      executor: otari") != NULL);
	buf_done(&b);
	done(&l);
}

/* Errors end up in logs and on terminals. */
Test(conf_text, shows_no_secret_in_errors)
{
	static const char *const rows[] = {
	    "master_key: \"sesame one\"\n",
	    "database_url: oracle://u:sesame@h/d\n",
	    "database_url: mysql://u:sesame@h\n",
	    "database_url: sesame\n",
	    "providers: {p: {api_base: \"http://h\", api_key: \"sesame\\n1\"}}\n",
	    "providers: {p: {api_base: \"http://u:sesame@h\"}}\n",
	    "providers: {p: {api_base: \"http://h\", headers: {a: \"sesame\\n\"}}}\n",
	    "keys: [{hash: gw-sesame}]\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loaded l = load(rows[i]);
		cr_assert_eq(l.rc, ERR_INPUT, "row %zu", i);
		cr_assert(strstr(l.report.errors.ptr, "sesame") == NULL, "row %zu: %s", i,
		    l.report.errors.ptr);
		done(&l);
	}
}

static void
check_golden(const char *path, void (*make)(struct buf *))
{
	struct buf b = BUF_INIT(1 << 20);
	char *text;
	size_t n;
	make(&b);
	cr_assert_not(b.overflowed);
	if (getenv("OTARI_TEST_UPDATE") != NULL) {
		int fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		cr_assert_eq(fd_write_all(fd, buf_str(&b), NULL), ERR_OK);
		fd_close(&fd);
	}
	cr_assert_eq(fd_read_file(path, 1 << 20, &text, &n, NULL), ERR_OK, "%s is missing", path);
	cr_assert(str_eq(str_n(text, n), buf_str(&b)),
	    "%s is not what the key table makes; run the test with OTARI_TEST_UPDATE=1", path);
	mem_free(text);
	buf_done(&b);
}

Test(conf_text, ships_texts_that_agree_with_the_key_table)
{
	check_golden("otari.conf", conf_example);
	check_golden("docs/otari.conf.5", conf_man);
}

Test(conf_text, ships_a_file_that_loads)
{
	char *text;
	size_t n;
	cr_assert_eq(fd_read_file("otari.conf", 1 << 20, &text, &n, NULL), ERR_OK);
	struct loaded l = load_text(str_n(text, n), STR("OPENAI_API_KEY=x\0"));
	must_load(&l);
	cr_assert(str_eq(l.conf->sandbox_url, STR("local:")));
	cr_assert_eq(l.report.warning_count, 0, "%s", l.report.warnings.ptr);
	done(&l);
	/* Every line that is commented out is a line that could be written. */
	struct buf b = BUF_INIT(1 << 20);
	struct str rest = str_n(text, n), line;
	while (str_split(&rest, '\n', &line)) {
		bool is_key = line.len > 1 && line.ptr[0] == '#' && line.ptr[1] != ' ' &&
			      !str_starts(line, STR("#\n"));
		bool is_member = str_starts(line, STR("#  "));
		if (is_key || is_member)
			line = str_from(line, 1);
		buf_add(&b, line);
		buf_addc(&b, '\n');
	}
	l = load_text(buf_str(&b), STR("OPENAI_API_KEY=sk\0"));
	/* Keys that are only a name mean "not set"; tls, files and budgets then stay as they are.
	 */
	must_load(&l);
	cr_assert_eq(l.conf->provider_count, 3);
	cr_assert_eq(l.conf->key_count, 1);
	done(&l);
	buf_done(&b);
	mem_free(text);
}

/* What is asked for and not there must not be believed in. */
Test(conf_text, says_what_is_not_built)
{
	static const struct {
		const char *text;
		bool loads;
		const char *says;
	} rows[] = {
	    {"sandbox_url: http://10.1.2.3\nsandbox_token: 0123456789abcdef\n", true,
		"code, files and the token go over the network unencrypted"},
	    {"sandbox_token: 0123456789abcdef\n", true, "only a sandbox on another host has one"},
	    {"require_pricing: true\n", true, "require_pricing: not built yet"},
	    {"files_provider_copy: true\n", true, "files_provider_copy: not built yet"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loaded l = load_text(str_c(rows[i].text), STR("OPENAI_API_KEY=x\0"));
		const struct buf *b = rows[i].loads ? &l.report.warnings : &l.report.errors;
		cr_assert(b->ptr != NULL && strstr(b->ptr, rows[i].says) != NULL, "row %zu: %s", i,
		    b->ptr != NULL ? b->ptr : "");
		cr_assert_eq(l.report.error_count > 0, !rows[i].loads, "row %zu", i);
		done(&l);
	}
}

Test(conf_text, has_a_sound_key_table)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	for (size_t i = 0; i < n; i++) {
		cr_assert(keys[i].doc != NULL && keys[i].doc[0] != '\0', "%s", keys[i].name);
		cr_assert_eq(keys[i].doc[strlen(keys[i].doc) - 1], '.', "%s", keys[i].name);
		cr_assert_eq(
		    conf_key_find(str_c(keys[i].name)), &keys[i], "%s twice", keys[i].name);
		for (size_t j = 0; j < i; j++)
			cr_assert(keys[i].type == KT_SECTION || keys[j].type == KT_SECTION ||
				      keys[i].off != keys[j].off,
			    "%s and %s", keys[i].name, keys[j].name);
	}
	cr_assert_not_null(conf_effect_name(EFFECT_SPAWNER));
	cr_assert_str_eq(conf_key_nearest(STR("sandbox_queue")), "sandbox_queue_ms");
	cr_assert_str_eq(conf_key_nearest(STR("file_max_bytes")), "files_max_bytes");
	cr_assert_null(conf_key_nearest(STR("qqqq")));
	cr_assert_null(conf_key_nearest(STR("")));
}

/* --- otari -t and the master key ------------------------------------------------------------- */

static char *
run_test(const char *path, conf_running_fn *running, int *ret_status)
{
	static char out[65536];
	int fds[2];
	static char *env[] = {NULL, NULL};
	cr_assert(fd_pipe(fds, false));
	*ret_status = conf_test(path, env, running, fds[1]);
	fd_close(&fds[1]);
	ssize_t n = read(fds[0], out, sizeof(out) - 1);
	out[n > 0 ? n : 0] = '\0';
	fd_close(&fds[0]);
	return out;
}

Test(conf_text, tests_files_for_the_command_line)
{
	char path[] = "/tmp/otari-conf-XXXXXX";
	int fd = mkstemp(path), status;
	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, STR("port: 1\nprot: 2\n"), NULL), ERR_OK);
	char *out = run_test(path, NULL, &status), want[128];
	cr_assert_eq(status, 1);
	(void)snprintf(want, sizeof(want), "%s:2: unknown key 'prot'", path);
	cr_assert(strstr(out, want) != NULL && strstr(out, ": 1 error\n") != NULL, "%s", out);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, "\nmaster_key_file: /none\n", 24, 0), 24);
	out = run_test(path, NULL, &status);
	cr_assert_eq(status, 1);
	cr_assert(strstr(out, ":2: master_key_file: /none: No such file") != NULL, "%s", out);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, "port: 1\n", 8, 0), 8);
	out = run_test(path, NULL, &status);
	cr_assert(status == 0 && strstr(out, "the configuration is good") != NULL, "%s", out);
	fd_close(&fd);
	(void)unlink(path);
	out = run_test(path, NULL, &status);
	cr_assert(status == 1 && strstr(out, "No such file") != NULL, "%s", out);
	out = run_test(NULL, NULL, &status);
	cr_assert_eq(status, 0, "%s", out);
}

static const char RUNNING[] = "port: 1\n"
			      "master_key: sesame-0123456789abcdef\n"
			      "sandbox_pids: 64\n"
			      "aliases: {}\n"
			      "users: {a: {blocked: true}}\n"
			      "tools_header: same\n";

static int
running(const char *control_socket)
{
	cr_assert(strcmp(control_socket, "/s/control.sock") == 0, "%s", control_socket);
	int fd = fd_memfd("running");
	cr_assert_eq(fd_write_all(fd, str_c(RUNNING), NULL), ERR_OK); /* position at the end */
	return fd;
}

static int
nobody(const char *control_socket)
{
	(void)control_socket;
	return -1;
}

Test(conf_text, says_what_a_reload_would_change)
{
	char path[] = "/tmp/otari-diff-XXXXXX";
	int fd = mkstemp(path), status;
	cr_assert_eq(fd_write_all(fd,
			 STR("state_dir: /s\nport: 2\nmaster_key: other-0123456789abcdef\n"
			     "sandbox_pids: 32\nsql_threads: 3\nfiles_enabled: true\n"
			     "aliases:\nusers:\n  a:\n    blocked: true # as it was\n"
			     "pricing: {}\ntools_header: same\n"),
			 NULL),
	    ERR_OK);
	char *out = run_test(path, running, &status);
	cr_assert_eq(status, 0, "%s", out);
	static const char *const says[] = {"a reload would change:\n",
	    "\nport: 1 -> 2  (restart)\n", "\nmaster_key  (snapshot)\n",
	    "\nsandbox_pids: 64 -> 32  (new spawner)\n",
	    "\nsql_threads: 2 -> 3  (recycle workers)\n", "\naliases  (snapshot)\n",
	    "\npricing  (snapshot)\n"};
	for (size_t i = 0; i < ARRAY_LEN(says); i++)
		cr_assert(strstr(out, says[i]) != NULL, "%s: %s", says[i], out);
	static const char *const never[] = {
	    "sesame", "users", "tools_header", "files_enabled", "nothing"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		cr_assert(strstr(out, never[i]) == NULL, "%s: %s", never[i], out);
	out = run_test(path, nobody, &status);
	cr_assert(strstr(out, "reload") == NULL, "%s", out);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, RUNNING, strlen(RUNNING), 0), (ssize_t)strlen(RUNNING));
	cr_assert_eq(pwrite(fd, "state_dir: /s\n", 14, (off_t)strlen(RUNNING)), 14);
	out = run_test(path, running, &status);
	cr_assert(strstr(out, "state_dir: ") != NULL, "%s", out);
	fd_close(&fd);
	(void)unlink(path);
}

Test(conf_text, finds_the_control_socket_in_any_file)
{
	static const struct {
		const char *text, *variable, *socket; /* NULL: refused */
	} rows[] = {
	    {"state_dir: /s\nprot: 1\nport: x\nproviders: {a: {api_key: \"${NOT_SET}\"}}\n", NULL,
		"/s/control.sock"},
	    {"state_dir: /s\ncontrol_socket: c\n", NULL, "/s/c"},
	    {"state_dir: /s\ncontrol_socket: /run/c\n", NULL, "/run/c"},
	    {"state_dir: /s\n", "OTARI_STATE_DIR=/e", "/e/control.sock"},
	    {"control_socket: /c\n", "OTARI_CONTROL_SOCKET=/e", "/e"},
	    {"state_dir: /s\ncontrol_socket:\n", NULL, "/s/control.sock"},
	    {"state_dir: [x]\n", NULL, NULL},
	    {"a: [\n", NULL, NULL},
	};
	char path[] = "/tmp/otari-peek-XXXXXX", dst[256];
	int fd = mkstemp(path);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char variable[64];
		char *env[] = {variable, NULL};
		struct err e = {0};
		(void)snprintf(variable, sizeof(variable), "%s",
		    rows[i].variable != NULL ? rows[i].variable : "A=b");
		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(pwrite(fd, rows[i].text, strlen(rows[i].text), 0),
		    (ssize_t)strlen(rows[i].text));
		enum err_code rc = conf_find_control(path, env, dst, sizeof(dst), &e);
		cr_assert_eq(rc == ERR_OK, rows[i].socket != NULL, "row %zu: %s", i, e.msg);
		cr_assert(rc != ERR_OK || strcmp(dst, rows[i].socket) == 0, "row %zu: %s", i, dst);
	}
	cr_assert_eq(conf_find_control(path, NULL, dst, 3, NULL), ERR_INPUT);
	fd_close(&fd);
	(void)unlink(path);
	cr_assert_eq(conf_find_control(path, NULL, dst, sizeof(dst), NULL), ERR_IO);
}

Test(conf_text, makes_a_master_key_once)
{
	char dir[] = "/tmp/otari-mk-XXXXXX", path[64], other[64], *one, *two;
	size_t n1, n2;
	int fd;
	bool created;
	struct err e = {0};
	struct stat st;
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/master.key", dir);
	(void)snprintf(other, sizeof(other), "%s/link", dir);
	cr_assert_eq(master_key_open(path, &fd, &created, &e), ERR_OK, "%s", e.msg);
	cr_assert(created && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600);
	cr_assert_eq(st.st_nlink, 1);
	cr_assert_eq(fd_read_all(fd, 1024, &one, &n1, NULL), ERR_OK);
	fd_close(&fd);
	cr_assert(n1 == 68 && str_starts(str_n(one, n1), STR("gw-")) && one[67] == '\n');
	cr_assert_eq(master_key_open(path, &fd, &created, NULL), ERR_OK);
	cr_assert_not(created);
	cr_assert_eq(fd_read_all(fd, 1024, &two, &n2, NULL), ERR_OK);
	cr_assert(str_eq(str_n(one, n1), str_n(two, n2)));
	fd_close(&fd);
	cr_assert_eq(chmod(path, 0640), 0);
	cr_assert_eq(master_key_open(path, &fd, &created, NULL), ERR_INPUT);
	cr_assert_eq(chmod(path, 0600), 0);
	cr_assert_eq(symlink(path, other), 0);
	cr_assert_eq(master_key_open(other, &fd, &created, NULL), ERR_IO);
	cr_assert_eq(master_key_open(dir, &fd, &created, NULL), ERR_INPUT);
	cr_assert_eq(master_key_open("/nonexistent/master.key", &fd, &created, NULL), ERR_IO);
	(void)unlink(other);
	(void)unlink(path);
	cr_assert_eq(rmdir(dir), 0, "nothing is left beside it");
	mem_free(one);
	mem_free(two);
}
