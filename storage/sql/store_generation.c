#include "storage/sql/store_generation.h"

static const char SQL_BUMP[] = "UPDATE config_generation SET generation = generation + ?,"
			       " keys_generation = keys_generation + ? WHERE id = 1";
static const char SQL_READ[] =
    "SELECT generation, keys_generation FROM config_generation WHERE id = 1";

static enum err_code
read_row(struct db *db, void *arg, struct err *reterr)
{
	struct store_generation *ret = arg;
	struct db_rows *rows;
	enum err_code rc = db_query(db, SQL_READ, DB_NO_ARGS, &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row = false;
	rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_INTERNAL, "database: the generation row is missing");
	if (rc == ERR_OK)
		*ret = (struct store_generation){db_col_i64(rows, 0), db_col_i64(rows, 1)};
	db_rows_end(&rows);
	return rc;
}

enum err_code
store_generation_bump(
    struct db *db, enum store_segment segments, struct store_generation *ret, struct err *reterr)
{
	enum err_code rc = db_exec(db, SQL_BUMP,
	    DB_ARGS(DB_I64((segments & STORE_SEG_POLICY) != 0),
		DB_I64((segments & STORE_SEG_KEYS) != 0)),
	    reterr);
	if (rc != ERR_OK || ret == NULL)
		return rc;
	return read_row(db, ret, reterr);
}

enum err_code
store_generation_read(struct db *db, struct store_generation *ret, struct err *reterr)
{
	return db_unit(db, DB_READ, read_row, ret, reterr);
}
