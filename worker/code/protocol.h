/* protocol.h - the code-execution protocol, version 1: its words, and its answers read
 *
 * Process: worker; pure. Used by the client of a remote sandbox (remote*.c) and by the server that
 *          lends this host's (worker/api/sandbox*.c).
 * Rule:    what the other side sends is hostile. Members that nobody knows are ignored, odd values
 *          are absorbed where they decide nothing, and what is missing or of the wrong kind is a
 *          contract violation: ERR_PROTO, with a text that names the place and never the value.
 * Limits:  below. Spans point into the text that was read, or into the arena.
 */
#ifndef OTARI_WORKER_CODE_PROTOCOL_H
#define OTARI_WORKER_CODE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "worker/code/session.h"

#define PROTOCOL_VERSION           1
#define PROTOCOL_ID_MAX            128u /* session id, bytes */
#define PROTOCOL_PATH_MAX          1024u
#define PROTOCOL_LISTED_MAX        8192u /* files of one listing; more is no listing */
#define PROTOCOL_NAMED_MAX         1024u /* files named in one result block; the rest is not read */
#define PROTOCOL_SESSION_MAX_BYTES (64u << 10)
#define PROTOCOL_LISTING_MAX_BYTES (8u << 20)
#define PROTOCOL_RETRY_AFTER_MAX_S 3600u

/* "code_execution", … */
struct str protocol_tool(enum code_kind kind);

/* --- requests -------------------------------------------------------------------------------- */
/* {} or {"image": …} */
void protocol_write_create(struct str image, struct buf *dst);
/* input_raw: a JSON object. */
void protocol_write_exec(
    enum code_kind kind, struct str input_raw, uint32_t timeout_ms, struct buf *dst);
/* {"code": …} or {"command": …} */
void protocol_write_program(enum code_kind kind, struct str program, struct buf *dst);
void protocol_write_edit(const struct code_edit *e, struct buf *dst);

/* --- answers --------------------------------------------------------------------------------- */
/* {"session_id": …}: printable ASCII, so that it can be a path segment once it is encoded.
 * "tools": ["code_execution", …]: *ret_kinds, 1 << enum code_kind, Python among them; 0: not said.
 */
MUST_CHECK enum err_code protocol_read_session(
    struct arena *a, struct str body, struct str *ret_id, uint32_t *ret_kinds, struct err *reterr);

struct protocol_result {
	struct str out, err;           /* as sent; valid UTF-8 */
	uint64_t out_total, err_total; /* of what was written there, at least what was sent */
	int32_t return_code;
	bool timed_out;    /* it says so as an error code */
	struct str *files; /* as named in the block, in order, without doubles next to each other */
	size_t file_count;
	uint32_t exec_ms; /* 0: not said */
	bool has_edit;
	struct code_edit_result edit;
};
/* {"result_block": {"content": {…}}} of any block type. kind: what was asked. */
MUST_CHECK enum err_code protocol_read_result(struct arena *a, enum code_kind kind, struct str body,
    struct protocol_result *ret, struct err *reterr);

struct protocol_file {
	struct str path;     /* as listed: what to ask for */
	struct str name;     /* a plain relative path (code_name_ok) */
	uint64_t size;       /* UINT64_MAX: not said */
	struct str modified; /* as written, to be compared only */
};
/* {"files": [{"path", "size_bytes", "modified_at"}]}. Entries that are no files with a usable path
 * are left out. */
MUST_CHECK enum err_code protocol_read_listing(struct arena *a, struct str body,
    struct protocol_file **ret, size_t *ret_count, struct err *reterr);
/* The name to show of a path, without a leading "./" or "/". False: none that could be a file's. */
bool protocol_name(struct str path, struct str *ret_name);
/* --- protocol_edit.c: the text editor's, an extension of the protocol
 * ------------------------------ */
void protocol_read_edit(struct arena *a, struct jval content, struct protocol_result *r);
const char *protocol_edit_error(enum code_edit_error e); /* its error_code */

/* null is nothing; what is no string is shown as it was written, so that a structured stderr still
 * says that something failed. */
struct str protocol_text(struct arena *a, struct jval v);
int32_t protocol_count(struct jval v); /* 0: nothing that could be one */

/* --- protocol_serve.c: the server's half -------------------------------------------------------
 */
#define PROTOCOL_TIMEOUT_DEFAULT_S 30u
#define PROTOCOL_TIMEOUT_MAX_S     600u
#define PROTOCOL_TIME_SIZE         64

struct jw;
void protocol_write_tools(struct jw *w); /* the member "tools" of a server that has them all */

struct protocol_exec {
	enum code_kind kind;
	struct str program; /* python, bash */
	struct code_edit edit;
	uint32_t timeout_ms;
	struct str tool_use_id; /* as sent, or empty */
};
/* ERR_UNSUPPORTED: an unknown tool; ERR_INPUT names the member. */
MUST_CHECK enum err_code protocol_read_exec(
    struct arena *a, struct str body, struct protocol_exec *ret, struct err *reterr);
/* A path as a client may say it; *ret_name is relative to the working directory. False: it leads
 * out, or is none. */
bool protocol_read_path(struct str path, struct str *ret_name);
/* The answer to an exec: all files that were made are only named (r->omitted). */
void protocol_write_result(
    const struct protocol_exec *x, const struct code_result *r, struct buf *dst);
void protocol_write_time(uint64_t ns, char dst[PROTOCOL_TIME_SIZE]); /* RFC 3339, UTC */
/* Whole seconds, 1 to PROTOCOL_RETRY_AFTER_MAX_S; else 0. */
uint32_t protocol_retry_after_s(struct str header);

#endif
