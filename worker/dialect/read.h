/* read.h - typed members of a request body; shared by the readers of all wires
 *
 * Pure. A member that is null counts as absent. Errors are ERR_INPUT and start with the member's
 * name, or with a capital letter when they speak of the value itself; callers put the path in front
 * with read_path.
 */
#ifndef OTARI_WORKER_DIALECT_READ_H
#define OTARI_WORKER_DIALECT_READ_H

#include "base/err.h"
#include "base/json.h"
#include "worker/dialect/conversation.h"

enum need { OPTIONAL, REQUIRED };

/* "messages[2]" + "role: …" → "messages[2].role: …"; + "Input should be …" → "messages[2]: …" */
void read_path(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* STR_NULL when absent. Decoded. */
MUST_CHECK enum err_code read_str(struct arena *a, struct jval object, const char *key,
    enum need need, struct str *ret, struct err *reterr);
/* The number as written. */
MUST_CHECK enum err_code read_number(
    struct jval object, const char *key, enum need need, struct str *ret_raw, struct err *reterr);
/* -1 when absent. */
MUST_CHECK enum err_code read_bool(
    struct jval object, const char *key, int *ret, struct err *reterr);
MUST_CHECK enum err_code read_typed(struct jval object, const char *key, enum jtype type,
    enum need need, struct jval *ret, struct err *reterr);
/* A string or an array of strings. */
MUST_CHECK enum err_code read_strings(struct arena *a, struct jval object, const char *key,
    struct str **ret, size_t *ret_count, struct err *reterr);

/* Appends to conv->extra. */
void read_extra(struct conversation *conv, struct jval key, struct jval value);
const struct field *extra_find(const struct conversation *conv, const char *key);
/* ERR_INPUT for a body that is no object, or one of so many members that looking them up costs. */
MUST_CHECK enum err_code read_root(
    struct jval root, const char *const *decisive, struct err *reterr);
/* The members that only the gateway knows; they are never kept. */
MUST_CHECK enum err_code read_gateway_members(
    struct conversation *conv, struct jval root, struct err *reterr);
/* The object without one member, or as it is when it has none. */
struct str raw_without(struct arena *a, struct jval object, const char *key);
/* New tool at the end of conv->tools, with raw, type and purpose_hint filled in. */
MUST_CHECK enum err_code read_tool_start(
    struct conversation *conv, struct jval t, struct tool **ret, struct err *reterr);
/* {"mode","tools"} of a choice of allowed tools: sets the choice's kind, marks the tools that it
 * leaves out. Other wires have no such list: they are shown only the tools that are on it. */
MUST_CHECK enum err_code read_allowed_tools(
    struct conversation *conv, struct jval allowed, struct err *reterr);
/* "data:image/png;base64,…" → BASE64 with type; anything else → URL. */
void read_data_url(struct str url, struct media *m);
/* A file for code, by container.file_ids of the declaration. */
MUST_CHECK enum err_code read_container_files(
    struct arena *a, struct jval t, struct tool *tool, struct err *reterr);

#endif
