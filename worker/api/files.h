/* files.h - what the file routes share
 *
 * Process: worker, loop thread.
 * Shape:   a request with an anthropic-version header reads Anthropic's objects, any other
 * OpenAI's; the same file can be read in both. `wire` of the request says which. Sight:   a file
 * belongs to a user and a workspace, and a key sees those of its own only; anything else is 404.
 * The master key names a user and sees all workspaces of that user.
 */
#ifndef OTARI_WORKER_API_FILES_H
#define OTARI_WORKER_API_FILES_H

#include "base/json_write.h"
#include "storage/sql/store_file.h"
#include "worker/request.h"

#define FILES_ID_MAX_BYTES 128u

/* user and workspace as the request gave them, or STR_NULL. False: answered. */
bool files_scope(
    struct request *req, struct str user, struct str workspace, struct store_file_scope *ret);
/* The same with the user of the query string. */
bool files_scope_of_query(struct request *req, struct store_file_scope *ret);
/* Pure: could this be a file's id at all? */
bool files_id_ok(struct str id);
/* Takes req->path_id; false: answered with 404. */
bool files_id_of_path(struct request *req, struct str *ret);
/* ERR_NOTFOUND becomes the 404 of a file; the rest as request_fail. */
void files_refuse(struct request *req, struct str id, const struct err *err);

/* --- shapes; pure ------------------------------------------------------------------------ */
void files_write(struct jw *w, enum wire wire, const struct store_file *f);
void files_write_deleted(struct jw *w, enum wire wire, struct str id);
struct files_page {
	const struct store_file *files;
	size_t count;
	bool has_more;
	struct str next_page; /* Anthropic's token, or STR_NULL */
};
void files_write_page(struct jw *w, enum wire wire, const struct files_page *p);

/* --- what an upload says about itself; pure ---------------------------------------------- */
/* Last path component of a client's name, mended to UTF-8, in the arena. Empty: it gave none worth
 * keeping. False: control characters or too long. */
bool files_name_clean(struct arena *a, struct str name, struct str *ret);
/* The declared type when it says something and fits a header, else by the name's ending. */
struct str files_mime(struct arena *a, struct str declared, struct str filename);
/* True when s can stand in a Content-Type header. */
bool files_mime_ok(struct str s);

#endif
