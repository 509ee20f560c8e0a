#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/env.h"

static void
say(int fd, struct str text)
{
	/* Nobody to tell when the operator's terminal is gone. */
	if (text.len > 0 && fd_write_all(fd, text, NULL) == ERR_OK &&
	    fd_write_all(fd, STR("\n"), NULL) != ERR_OK)
		return;
}

/* The descriptor is shared with the service: its position is left alone. */
static bool
read_shared(int fd, struct arena *a, struct str *ret)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || st.st_size < 0 || st.st_size > (off_t)LIMIT_CONF_BYTES)
		return false;
	size_t size = (size_t)st.st_size, done = 0;
	char *p = arena_alloc(a, size + 1);
	while (p != NULL && done < size) {
		ssize_t n = pread(fd, p + done, size - done, (off_t)done);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	*ret = str_n(p, size);
	return p != NULL;
}

static void
say_changes(
    const struct conf_source *src, const struct conf *now, conf_running_fn *running, int out_fd)
{
	int fd = running != NULL ? running(arena_cstr(now->arena, now->control_socket)) : -1;
	if (fd < 0)
		return;
	struct arena *a = arena_new(2u * LIMIT_CONF_BYTES);
	struct conf_source old_src = *src;
	struct conf_report report;
	struct conf *old = NULL;
	struct buf lines = BUF_INIT(65536);
	conf_report_init(&report, "running");
	if (read_shared(fd, a, &old_src.text) &&
	    conf_load(&old_src, &report, &old, NULL) == ERR_OK) {
		unsigned n = conf_diff(old, now, &lines);
		if (n > 0)
			say(out_fd, STR("a reload would change:"));
		else
			buf_add(&lines, STR("a reload would change nothing\n"));
		if (lines.len > 0)
			say(out_fd, str_sub(buf_str(&lines), 0, lines.len - 1));
	}
	conf_free(&old);
	conf_report_done(&report);
	buf_done(&lines);
	arena_free(&a);
	fd_close(&fd);
}

/* Files that the master will open with its own rights; ours may be less. */
static void
check_file(struct conf_report *r, struct str path, uint32_t line, const char *what)
{
	char name[4096];
	if (path.ptr == NULL)
		return;
	int fd = str_copy(name, sizeof(name), path) ? fd_open(name, O_RDONLY | O_NONBLOCK, 0) : -1;
	if (fd < 0 && errno == EACCES)
		conf_warning(r, line, "%s: %s: %s", what, name, strerror(errno));
	else if (fd < 0)
		conf_error(r, line, "%s: %s: %s", what, name, strerror(errno));
	fd_close(&fd);
}

static uint32_t
line_of(const struct conf *c, const char *key)
{
	const struct conf_origin *o = conf_origin_of(c, key);
	return o->from == FROM_ENVIRON ? REPORT_ENVIRON : o->line;
}

static void
check_files(const struct conf *c, struct conf_report *r)
{
	char what[128];
	check_file(r, c->master_key_file, line_of(c, "master_key_file"), "master_key_file");
	check_file(r, c->sandbox_ca_file, line_of(c, "sandbox_ca_file"), "sandbox_ca_file");
	check_file(
	    r, c->sandbox_token_file, line_of(c, "sandbox_token_file"), "sandbox_token_file");
	check_file(r, c->sandbox_serve_token_file, line_of(c, "sandbox_serve_token_file"),
	    "sandbox_serve_token_file");
	check_file(r, c->tls_cert, line_of(c, "tls_cert"), "tls_cert");
	check_file(r, c->tls_key, line_of(c, "tls_key"), "tls_key");
	for (uint32_t i = 0; i < c->provider_count; i++) {
		(void)snprintf(what, sizeof(what), "providers.%.*s.api_key_file",
		    STR_FMT(c->providers[i].name));
		check_file(r, c->providers[i].api_key_file, c->providers[i].line, what);
	}
}

static int
test_text(const struct conf_source *src, conf_running_fn *running, int out_fd)
{
	struct conf_report report;
	struct conf *c = NULL;
	conf_report_init(&report, src->file);
	enum err_code rc = conf_load(src, &report, &c, NULL);
	if (rc == ERR_OK)
		check_files(c, &report);
	if (report.error_count > 0)
		rc = ERR_INPUT;
	say(out_fd, buf_str(&report.errors));
	say(out_fd, buf_str(&report.warnings));
	char line[512];
	if (rc == ERR_OK)
		(void)snprintf(line, sizeof(line), "%s: the configuration is good", src->file);
	else
		(void)snprintf(line, sizeof(line), "%s: %u error%s", src->file, report.error_count,
		    report.error_count == 1 ? "" : "s");
	say(out_fd, str_c(line));
	if (rc == ERR_OK)
		say_changes(src, c, running, out_fd);
	conf_free(&c);
	conf_report_done(&report);
	return rc == ERR_OK ? 0 : 1;
}

int
conf_test(const char *path, char *const *environment, conf_running_fn *running, int out_fd)
{
	struct conf_source src = {
	    .file = path != NULL ? path : "defaults", .as_root = geteuid() == 0};
	char cwd[4096], *text = NULL;
	struct err e;
	size_t len = 0;
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		(void)memcpy(cwd, "/", 2);
	if (path != NULL && fd_read_file(path, LIMIT_CONF_BYTES, &text, &len, &e) != ERR_OK) {
		say(out_fd, str_c(e.msg));
		return 1;
	}
	struct buf block = BUF_INIT(CONF_ENVIRON_BYTES);
	conf_environ_block(&block, environment);
	src.text = str_n(text, len);
	src.environ = buf_str(&block);
	src.cwd = str_c(cwd);
	int status = test_text(&src, running, out_fd);
	mem_wipe(block.ptr, block.len);
	buf_done(&block);
	mem_wipe(text, len);
	mem_free(text);
	return status;
}
