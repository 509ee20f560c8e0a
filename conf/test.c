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

static int
test_text(const struct conf_source *src, int out_fd)
{
	struct conf_report report;
	struct conf *c;
	conf_report_init(&report, src->file);
	enum err_code rc = conf_load(src, &report, &c, NULL);
	say(out_fd, buf_str(&report.errors));
	say(out_fd, buf_str(&report.warnings));
	char line[512];
	if (rc == ERR_OK) {
		(void)snprintf(line, sizeof(line), "%s: the configuration is good", src->file);
		conf_free(&c);
	} else {
		(void)snprintf(line, sizeof(line), "%s: %u error%s", src->file, report.error_count,
		    report.error_count == 1 ? "" : "s");
	}
	say(out_fd, str_c(line));
	conf_report_done(&report);
	return rc == ERR_OK ? 0 : 1;
}

int
conf_test(const char *path, char *const *environment, int out_fd)
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
	int status = test_text(&src, out_fd);
	mem_wipe(block.ptr, block.len);
	buf_done(&block);
	mem_wipe(text, len);
	mem_free(text);
	return status;
}
