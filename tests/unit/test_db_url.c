#include <string.h>

#include <criterion/criterion.h>

#include "storage/sql/db_url.h"

Test(db_url, reads_every_form)
{
	static const struct {
		const char *url, *path, *host, *user, *password, *database, *socket;
		unsigned port;
		bool tls, verify;
	} rows[] = {
	    {"sqlite:///rel/x.db", "rel/x.db", "", "", "", "", "", 3306, false, false},
	    {"sqlite:////abs/x.db", "/abs/x.db", "", "", "", "", "", 3306, false, false},
	    {"sqlite+aiosqlite:///./x.db", "./x.db", "", "", "", "", "", 3306, false, false},
	    {"mysql://u:p@h:33/d", "", "h", "u", "p", "d", "", 33, false, false},
	    {"mysql+pymysql://u@h/d", "", "h", "u", "", "d", "", 3306, false, false},
	    {"MySQL://localhost/d", "", "127.0.0.1", "", "", "d", "", 3306, false, false},
	    {"mariadb://u:p%40%3A%2F%25@h/d%20e", "", "h", "u", "p@:/%", "d e", "", 3306, false,
		false},
	    {"mysql://u:a@b:c@h/d", "", "h", "u", "a@b:c", "d", "", 3306, false, false},
	    {"mysql://u:p@[::1]:3307/d", "", "::1", "u", "p", "d", "", 3307, false, false},
	    {"mysql://u:p@h/d?socket=/run/my.sock&charset=utf8mb4", "", "h", "u", "p", "d",
		"/run/my.sock", 3306, false, false},
	    {"mysql://u:p@h/d?ssl=true", "", "h", "u", "p", "d", "", 3306, true, false},
	    {"mysql://u:p@h/d?ssl_ca=%2Fca.pem", "", "h", "u", "p", "d", "", 3306, true, true},
	    {"mysql://:@/d", "", "127.0.0.1", "", "", "d", "", 3306, false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct db_url u;
		struct err err = {0};
		cr_assert_eq(db_url_parse(str_c(rows[i].url), &u, &err), ERR_OK, "%s: %s",
		    rows[i].url, err.msg);
		cr_assert_str_eq(u.path, rows[i].path, "%s", rows[i].url);
		cr_assert_str_eq(u.host, rows[i].host, "%s", rows[i].url);
		cr_assert_str_eq(u.user, rows[i].user, "%s", rows[i].url);
		cr_assert_str_eq(u.password, rows[i].password, "%s", rows[i].url);
		cr_assert_str_eq(u.database, rows[i].database, "%s", rows[i].url);
		cr_assert_str_eq(u.socket, rows[i].socket, "%s", rows[i].url);
		cr_assert_eq(u.port, rows[i].port, "%s", rows[i].url);
		cr_assert_eq(u.tls, rows[i].tls, "%s", rows[i].url);
		cr_assert_eq(u.tls_verify, rows[i].verify, "%s", rows[i].url);
	}
}

Test(db_url, refuses_the_rest_without_showing_it)
{
	static const char *const bad[] = {"", ":", "sqlite", "sqlite:", "sqlite://", "sqlite:///",
	    "sqlite:///:memory:", "sqlite:///x?y=1", "sqlite://host/x", "oracle://u:s3cr3t@h/d",
	    "mysql:", "mysql://", "mysql://u:s3cr3t@h", "mysql://u:s3cr3t@h/", "mysql://h:0/d",
	    "mysql://h:65536/d", "mysql://h:x/d", "mysql://[::1/d", "mysql://[::1]x/d",
	    "mysql://u:%zzs3cr3t@h/d", "mysql://u:s3cr3t%@h/d", "mysql://u:%00s3cr3t@h/d",
	    "mysql://u@h/d?foo=s3cr3t", "mysql://u@h/d?ssl", "mysql://u@h/d?ssl=maybe",
	    "mysql://u@h/d?socket=rel", "mysql://u@h/d?ssl_verify=1", "mysql://h/a/b"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct db_url u;
		struct err err = {0};
		cr_assert_eq(db_url_parse(str_c(bad[i]), &u, &err), ERR_INPUT, "%s", bad[i]);
		cr_assert_null(strstr(err.msg, "s3cr3t"), "%s", err.msg);
	}
	struct db_url u;
	struct err err = {0};
	cr_assert_eq(
	    db_url_parse(STR("postgresql+asyncpg://u:s3cr3t@h/d"), &u, &err), ERR_UNSUPPORTED);
	cr_assert_not_null(strstr(err.msg, "PostgreSQL is not supported"));
	cr_assert_null(strstr(err.msg, "s3cr3t"));
}
