/* db_url.h - reads a database_url
 *
 * Pure. The password stays in the struct: wipe it with db_url_done. No part is ever put in an error
 * text, because a mistyped URL shows its password in unexpected places.
 */
#ifndef OTARI_STORAGE_SQL_DB_URL_H
#define OTARI_STORAGE_SQL_DB_URL_H

#include "storage/sql/db.h"

struct db_url {
	enum db_kind kind;
	char path[1024]; /* SQLite: file, as given; ":memory:" is refused */
	char host[256];  /* MySQL: name or address; "localhost" is 127.0.0.1 (TCP) */
	uint16_t port;
	char user[128];
	char password[256];
	char database[128];
	char socket[108]; /* "": TCP */
	bool tls;
	bool tls_verify;
	char tls_ca[512]; /* "": the system's */
};

/* ERR_INPUT; ERR_UNSUPPORTED for other databases. */
MUST_CHECK enum err_code db_url_parse(struct str url, struct db_url *ret, struct err *reterr);
void db_url_done(struct db_url *url);

#endif
