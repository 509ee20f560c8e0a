#include "storage/sql/db_url.h"

#include <string.h>

#include "base/mem.h"

#define MYSQL_PORT 3306u

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Percent-decodes into a C string; false when it does not fit, is malformed or holds a NUL. */
static bool
decode(struct str s, char *dst, size_t dst_size)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (c == '%') {
			if (s.len - i < 3)
				return false;
			int hi = hex_digit(s.ptr[i + 1]), lo = hex_digit(s.ptr[i + 2]);
			if (hi < 0 || lo < 0)
				return false;
			c = (char)(hi * 16 + lo);
			i += 2;
		}
		if (c == '\0' || n + 1 >= dst_size)
			return false;
		dst[n++] = c;
	}
	dst[n] = '\0';
	return true;
}

static enum err_code
bad(struct err *reterr, const char *what)
{
	return err_set(reterr, ERR_INPUT, "database_url: %s", what);
}

static enum err_code
parse_sqlite(struct str rest, struct db_url *u, struct err *reterr)
{
	/* After "sqlite:" come two slashes, an empty host and the path behind a third one. */
	if (!str_starts(rest, STR("///")))
		return bad(reterr, "write sqlite:///PATH, or sqlite:////PATH for an absolute path");
	u->kind = DB_SQLITE;
	rest = str_from(rest, 3);
	if (str_chr(rest, '?') != SIZE_MAX)
		return bad(reterr, "sqlite takes no options after '?'");
	if (!str_copy(u->path, sizeof(u->path), rest))
		return bad(reterr, "the path is too long");
	if (u->path[0] == '\0' || str_eq(rest, STR(":memory:")))
		return bad(reterr, "sqlite needs a file: several processes share the database");
	return ERR_OK;
}

static bool
parse_bool(struct str v, bool *ret)
{
	if (str_eq_nocase(v, STR("1")) || str_eq_nocase(v, STR("true")) ||
	    str_eq_nocase(v, STR("required"))) {
		*ret = true;
		return true;
	}
	if (str_eq_nocase(v, STR("0")) || str_eq_nocase(v, STR("false")) ||
	    str_eq_nocase(v, STR("disabled"))) {
		*ret = false;
		return true;
	}
	return false;
}

static enum err_code
parse_option(struct str key, struct str value, struct db_url *u, struct err *reterr)
{
	if (str_eq(key, STR("socket")) || str_eq(key, STR("unix_socket")))
		return decode(value, u->socket, sizeof(u->socket)) && u->socket[0] == '/'
			   ? ERR_OK
			   : bad(reterr, "socket is not an absolute path of under 108 characters");
	if (str_eq(key, STR("ssl")))
		return parse_bool(value, &u->tls) ? ERR_OK : bad(reterr, "ssl is 1 or 0");
	if (str_eq(key, STR("ssl_verify")))
		return parse_bool(value, &u->tls_verify) ? ERR_OK
							 : bad(reterr, "ssl_verify is 1 or 0");
	if (str_eq(key, STR("ssl_ca"))) {
		if (!decode(value, u->tls_ca, sizeof(u->tls_ca)) || u->tls_ca[0] == '\0')
			return bad(reterr, "ssl_ca is not a path");
		u->tls = u->tls_verify = true;
		return ERR_OK;
	}
	if (str_eq(key, STR("charset")))
		return str_eq_nocase(value, STR("utf8mb4")) ? ERR_OK
							    : bad(reterr, "charset is utf8mb4");
	return bad(reterr, "unknown option after '?' (known: socket, ssl, ssl_verify, ssl_ca)");
}

static enum err_code
parse_options(struct str query, struct db_url *u, struct err *reterr)
{
	struct str piece;
	while (str_split(&query, '&', &piece)) {
		if (piece.len == 0)
			continue;
		size_t eq = str_chr(piece, '=');
		if (eq == SIZE_MAX)
			return bad(reterr, "an option after '?' has no value");
		enum err_code rc =
		    parse_option(str_sub(piece, 0, eq), str_from(piece, eq + 1), u, reterr);
		if (rc != ERR_OK)
			return rc;
	}
	if (u->tls_verify && !u->tls)
		return bad(reterr, "ssl_verify without ssl");
	return ERR_OK;
}

/* host, host:port, [v6], [v6]:port */
static enum err_code
parse_host(struct str hostport, struct db_url *u, struct err *reterr)
{
	struct str host = hostport, port = STR_NULL;
	if (str_starts(hostport, STR("["))) {
		size_t end = str_chr(hostport, ']');
		if (end == SIZE_MAX)
			return bad(reterr, "the host's '[' is not closed");
		host = str_sub(hostport, 1, end - 1);
		struct str after = str_from(hostport, end + 1);
		if (after.len > 0) {
			if (after.ptr[0] != ':')
				return bad(reterr, "a port is expected after ']'");
			port = str_from(after, 1);
		}
	} else {
		size_t colon = str_chr(hostport, ':');
		if (colon != SIZE_MAX) {
			host = str_sub(hostport, 0, colon);
			port = str_from(hostport, colon + 1);
		}
	}
	uint64_t number = MYSQL_PORT;
	if (port.ptr != NULL && (!str_u64(port, &number) || number == 0 || number > 65535))
		return bad(reterr, "the port is not a number from 1 to 65535");
	u->port = (uint16_t)number;
	/* The client library would take "localhost" for the Unix socket. */
	if (host.len == 0 || str_eq_nocase(host, STR("localhost")))
		host = STR("127.0.0.1");
	return decode(host, u->host, sizeof(u->host)) ? ERR_OK
						      : bad(reterr, "the host is malformed");
}

static enum err_code
parse_mysql(struct str rest, struct db_url *u, struct err *reterr)
{
	if (!str_starts(rest, STR("//")))
		return bad(reterr, "write mysql://user:password@host:3306/database");
	u->kind = DB_MYSQL;
	rest = str_from(rest, 2);
	size_t question = str_chr(rest, '?');
	struct str query = question == SIZE_MAX ? STR_NULL : str_from(rest, question + 1);
	rest = str_sub(rest, 0, question);
	size_t slash = str_chr(rest, '/');
	if (slash == SIZE_MAX || slash + 1 == rest.len)
		return bad(reterr, "the database's name is missing after the host");
	if (!decode(str_from(rest, slash + 1), u->database, sizeof(u->database)) ||
	    str_chr(str_c(u->database), '/') != SIZE_MAX)
		return bad(reterr, "the database's name is malformed");
	struct str authority = str_sub(rest, 0, slash);
	/* The last '@': a password may hold one that nobody escaped. */
	size_t at = str_rchr(authority, '@');
	struct str cred = at == SIZE_MAX ? STR("") : str_sub(authority, 0, at);
	struct str hostport = at == SIZE_MAX ? authority : str_from(authority, at + 1);
	size_t colon = str_chr(cred, ':');
	struct str password = colon == SIZE_MAX ? STR("") : str_from(cred, colon + 1);
	if (!decode(str_sub(cred, 0, colon), u->user, sizeof(u->user)))
		return bad(reterr, "the user's name is malformed or too long");
	if (!decode(password, u->password, sizeof(u->password)))
		return bad(reterr, "the password is malformed or too long (write % as %25)");
	enum err_code rc = parse_host(hostport, u, reterr);
	return rc != ERR_OK ? rc : parse_options(query, u, reterr);
}

enum err_code
db_url_parse(struct str url, struct db_url *ret, struct err *reterr)
{
	struct db_url u = {.port = MYSQL_PORT};
	enum err_code rc;
	size_t colon = str_chr(url, ':');
	struct str scheme = str_sub(url, 0, colon == SIZE_MAX ? 0 : colon);
	struct str rest = colon == SIZE_MAX ? STR("") : str_from(url, colon + 1);
	/* "mysql+pymysql", "sqlite+aiosqlite": the driver's name means nothing here. */
	size_t plus = str_chr(scheme, '+');
	if (plus != SIZE_MAX)
		scheme = str_sub(scheme, 0, plus);
	if (str_eq_nocase(scheme, STR("sqlite")))
		rc = parse_sqlite(rest, &u, reterr);
	else if (str_eq_nocase(scheme, STR("mysql")) || str_eq_nocase(scheme, STR("mariadb")))
		rc = parse_mysql(rest, &u, reterr);
	else if (str_eq_nocase(scheme, STR("postgresql")) || str_eq_nocase(scheme, STR("postgres")))
		rc = err_set(reterr, ERR_UNSUPPORTED,
		    "database_url: PostgreSQL is not supported; use sqlite:///PATH or "
		    "mysql://user:password@host:3306/database (MySQL 8+, MariaDB 10.6+)");
	else
		rc =
		    bad(reterr, "write sqlite:///PATH or mysql://user:password@host:3306/database");
	if (rc == ERR_OK)
		*ret = u;
	mem_wipe(&u, sizeof(u));
	return rc;
}

void
db_url_done(struct db_url *url)
{
	mem_wipe(url, sizeof(*url));
}
