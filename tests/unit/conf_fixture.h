/* conf_fixture.h - loading a configuration in a test */
#ifndef OTARI_TESTS_UNIT_CONF_FIXTURE_H
#define OTARI_TESTS_UNIT_CONF_FIXTURE_H

#include <string.h>

#include <criterion/criterion.h>

#include "conf/conf.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct loaded {
	struct conf_report report;
	struct conf *conf;
	enum err_code rc;
};

static inline struct loaded
load_text(struct str text, struct str environ)
{
	struct loaded l = {0};
	struct conf_source src = {
	    .file = "otari.conf", .text = text, .environ = environ, .cwd = STR("/srv/o")};
	struct err e = {0};
	conf_report_init(&l.report, src.file);
	l.rc = conf_load(&src, &l.report, &l.conf, &e);
	cr_assert((l.rc == ERR_OK) == (l.report.error_count == 0));
	cr_assert(l.rc == ERR_OK || strcmp(e.msg, l.report.first.msg) == 0);
	return l;
}

static inline struct loaded
load(const char *text)
{
	return load_text(str_c(text), STR(""));
}

static inline void
done(struct loaded *l)
{
	conf_free(&l->conf);
	conf_report_done(&l->report);
}

static inline void
must_load(struct loaded *l)
{
	cr_assert_eq(l->rc, ERR_OK, "%s", l->report.errors.ptr);
}

#endif
