/* database_url: any text is read or refused; what was read holds only terminated strings. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "storage/sql/db_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct db_url u;
	struct err err = {0};
	if (db_url_parse(str_n(data, size), &u, &err) != ERR_OK) {
		CHECK(err.msg[0] != '\0');
		return 0;
	}
	CHECK(memchr(u.path, 0, sizeof(u.path)) != NULL);
	CHECK(memchr(u.host, 0, sizeof(u.host)) != NULL);
	CHECK(memchr(u.user, 0, sizeof(u.user)) != NULL);
	CHECK(memchr(u.password, 0, sizeof(u.password)) != NULL);
	CHECK(memchr(u.database, 0, sizeof(u.database)) != NULL);
	CHECK(memchr(u.socket, 0, sizeof(u.socket)) != NULL);
	CHECK((u.kind == DB_SQLITE) == (u.path[0] != '\0') && u.port > 0);
	CHECK(u.kind == DB_SQLITE || (u.database[0] != '\0' && u.host[0] != '\0'));
	return 0;
}
