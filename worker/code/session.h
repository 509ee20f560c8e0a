/* session.h - the port to code execution: one session = one sandbox with its files and interpreter
 *
 * Process: worker, on its event loop; not thread-safe.
 * Rule:    no callback runs before the call that started it has returned; none runs after the
 *          session was closed (or the open cancelled). Everything may be called inside callbacks.
 * Owns:    a session owns its descriptors; code_session_close() ends everything that runs in it.
 * Behind:  `local` (the spawner of this host, local.c), `remote` (another host, remote.c); each
 *          fills struct code_backend_ops (backend.h).
 * Limits:  struct code_config; produced files 20 / 64 MiB a call by default, checked inside the
 *          sandbox and again here. All bytes that come out are hostile: bounded, never interpreted.
 */
#ifndef OTARI_WORKER_CODE_SESSION_H
#define OTARI_WORKER_CODE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct event_base;
struct code_backend;
struct code_session;
struct code_open; /* an open that has not answered yet */

enum code_kind { CODE_PYTHON, CODE_BASH, CODE_EDITOR, CODE_CONVERT };
#define CODE_KINDS_ALL 7u /* 1 << kind: python, bash, editor */

/* Text of a document, by a fixed set of programs. */
enum code_extractor {
	CODE_EXTRACT_PDF,
	CODE_EXTRACT_DOC, /* Word up to 2003 */
	CODE_EXTRACT_DOCX,
	CODE_EXTRACT_PPTX,
	CODE_EXTRACT_XLSX,
	CODE_EXTRACT_ODF, /* OpenDocument: text, tables, slides */
	CODE_EXTRACT_HTML,
};
/* By media type; false: none. */
bool code_extractor_of(struct str media_type, enum code_extractor *ret);
/* By the extension of a file's name. */
bool code_extractor_of_name(struct str filename, enum code_extractor *ret);

/* What the text editor is asked. Paths: relative to the working directory, or absolute and below it
 * or below /mnt/data; every name is resolved inside the sandbox. */
enum code_edit_command { CODE_EDIT_VIEW, CODE_EDIT_CREATE, CODE_EDIT_STR_REPLACE };
struct code_edit {
	enum code_edit_command command;
	struct str path;
	struct str old;  /* str_replace: must occur exactly once */
	struct str text; /* create: the whole file; str_replace: what takes its place */
	int32_t first_line, last_line; /* view: from 1; last -1: to the end; 0, 0: all of it */
};

#define CODE_SOURCE_MAX    (4u << 20) /* longest program of one call, bytes */
#define CODE_EDIT_PATH_MAX 4096u
#define CODE_EDIT_TEXT_MAX (CODE_SOURCE_MAX - 8192) /* old and text of one edit together */

struct code_config {
	uint32_t timeout_ms;   /* of a call, when code_session_exec() gets 0 */
	uint32_t queue_ms;     /* wait for a free session, when code_session_open() gets 0 */
	uint32_t max_files;    /* produced files of one call */
	uint64_t max_bytes;    /* … and their bytes together */
	uint32_t output_bytes; /* kept of each of stdout and stderr; the rest is counted */
	uint32_t files_ms; /* for all the files of one call, from another host; 0: ten minutes */
};

/* --- backend --------------------------------------------------------------------------------- */
/* Takes spawner_fd, a non-blocking or blocking SEQPACKET socket to the spawner (-1: none yet, see
 * code_backend_attach). cfg is copied. */
MUST_CHECK enum err_code code_backend_new_local(struct event_base *base, int spawner_fd,
    const struct code_config *cfg, struct code_backend **ret, struct err *reterr);
/* A sandbox elsewhere, by the code-execution protocol. client is borrowed; r is copied. */
struct code_remote {
	struct str url;     /* http(s)://host[:port][/path] */
	struct str token;   /* of the Authorization header; empty: none */
	struct str ca_file; /* path; empty: the system's certificates */
};
struct http_client;
struct code_backend *code_backend_new_remote(struct event_base *base, struct http_client *client,
    const struct code_remote *r, const struct code_config *cfg);
/* Every session and open must be closed before. NULL allowed. */
void code_backend_free(struct code_backend **b);
/* The spawner was replaced: takes the new socket (-1: none will follow, and who waits is told so).
 * What runs goes on with the old spawner, and dies with it. */
void code_backend_attach(struct code_backend *b, int spawner_fd);
void code_backend_set_config(struct code_backend *b, const struct code_config *cfg);
/* False when code must be refused (503), with the layer, the errno and the fix in *ret_why_not
 * (borrowed until the next loop turn). True also while the spawner still tests itself: an open then
 * waits. */
bool code_backend_ready(const struct code_backend *b, struct str *ret_why_not);
/* A session is to be opened before the model is asked, so that its failure can be an HTTP error. */
bool code_backend_opens_early(const struct code_backend *b);
/* 1 << enum code_kind: what it runs, as far as is known. Python always. */
uint32_t code_backend_kinds(const struct code_backend *b);
/* Seconds to name to a client after ERR_BUSY; inside on_open. */
uint32_t code_backend_retry_after_s(const struct code_backend *b);
/* Its sessions read documents, code_session_convert(). */
bool code_backend_converts(const struct code_backend *b);
/* No session, and nothing left to do for an earlier one. */
bool code_backend_is_idle(const struct code_backend *b);
/* Sessions of this worker, for gauges. */
size_t code_backend_open_count(const struct code_backend *b);

/* --- opening --------------------------------------------------------------------------------- */
/* Exactly once, unless cancelled. s is owned by the receiver; NULL with e set:
 * ERR_BUSY (at capacity for queue_ms: 503 + Retry-After), ERR_UNSUPPORTED (refused by the
 * self-test, or no spawner: 503 with e->msg), ERR_UPSTREAM, ERR_TIMEOUT, ERR_PROTO (a remote one
 * cannot be reached, or broke the protocol: 502), ERR_INTERNAL. */
typedef void code_on_open(struct code_session *s, const struct err *e, void *arg);
/* workspace: who it is for, at most 64 bytes (limits per workspace; copied). Returns owned; the
 * handle is gone once on_open has run. */
struct code_open *code_session_open(struct code_backend *b, struct str workspace, uint32_t queue_ms,
    code_on_open *on_open, void *arg);
/* The same with a session image, where the sandbox has images; empty: its own. */
struct code_open *code_session_open_image(struct code_backend *b, struct str workspace,
    struct str image, uint32_t queue_ms, code_on_open *on_open, void *arg);
void code_open_cancel(struct code_open **o); /* NULL allowed; on_open is not called */

/* --- files in -------------------------------------------------------------------------------- */
/* e is NULL when the file is there whole. ERR_INPUT (name), ERR_TOOLARGE (workspace full), ERR_IO.
 * The session stays usable unless it broke (then exec says so). */
typedef void code_on_put(const struct err *e, void *arg);
/* Puts one file into the working directory, over an older one of that name. name: path without
 * leading slash, "." or ".." (code_name_ok). Takes fd (regular file or memfd), read from offset 0.
 * Several puts and execs queue in call order. */
void code_session_put(struct code_session *s, struct str name, uint64_t size, int fd,
    code_on_put *on_done, void *arg);
/* The same with bytes pushed by the caller: begin; then data while it returns true - after false
 * wait for on_room; then end. Nothing may be queued on the session between begin and end. */
void code_session_put_begin(struct code_session *s, struct str name, uint64_t size,
    void (*on_room)(void *arg), code_on_put *on_done, void *arg);
bool code_session_put_data(struct code_session *s, struct str bytes);
void code_session_put_end(struct code_session *s);
bool code_name_ok(struct str name);

/* --- files as they are ----------------------------------------------------------------------- */
struct code_listed {
	struct str path;           /* code_name_ok */
	uint64_t size, changed_ns; /* changed_ns: UTC epoch, ns; the code cannot choose it */
};
/* Every file of the working directory and below, in no order; borrowed until return. is_all: false
 * when there were too many. e: the session broke, or the backend cannot tell (ERR_UNSUPPORTED). */
typedef void code_on_list(
    const struct err *e, const struct code_listed *files, size_t count, bool is_all, void *arg);
void code_session_list(struct code_session *s, code_on_list *on_list, void *arg);
struct code_get_ops {
	void (*begin)(void *arg, uint64_t size); /* before data and a good end */
	void (*data)(void *arg, struct str bytes);
	/* Exactly once, last. NULL: whole. ERR_NOTFOUND, ERR_INPUT (path), or what broke it. */
	void (*done)(void *arg, const struct err *e);
};
/* One of them; pause and resume hold its bytes back. path is copied, ops borrowed. */
void code_session_get(
    struct code_session *s, struct str path, const struct code_get_ops *ops, void *arg);

/* --- running --------------------------------------------------------------------------------- */
enum code_omit { CODE_OMIT_COUNT, CODE_OMIT_BYTES, CODE_OMIT_UNREADABLE };

struct code_omitted {
	struct str path;
	uint64_t size;
	enum code_omit reason;
};

enum code_edit_error {
	CODE_EDIT_OK,
	CODE_EDIT_NOT_FOUND, /* no such file */
	CODE_EDIT_INVALID,   /* path outside, no such lines, a directory to be written */
	CODE_EDIT_NO_MATCH,
	CODE_EDIT_MANY_MATCHES,
	CODE_EDIT_NOT_TEXT,
	CODE_EDIT_TOO_LARGE, /* the file, or what would come out */
	CODE_EDIT_FAILED,    /* disk full, … */
};

/* Lines count from 1. The text of a view and the diff of a str_replace (lines that start with "-",
 * "+" or " ") are in code_result.out. */
struct code_edit_result {
	enum code_edit_error error;
	bool is_update;                                     /* create: there was such a file */
	bool is_directory;                                  /* view: out lists it */
	int32_t first_line, line_count, total_lines;        /* view */
	int32_t old_start, old_lines, new_start, new_lines; /* str_replace, as a diff's hunk */
};

struct code_result {              /* borrowed until return */
	const struct err *failed; /* the session broke: close it; the rest is what arrived */
	bool timed_out;           /* over the time limit */
	bool flooded;             /* ended: too much output */
	bool out_of_memory;       /* a process at least was ended for want of it */
	bool died; /* the interpreter is gone (exit, crash, kill): variables are lost, files kept; a
		    * fresh one serves the next call. err ends with a line that says so. */
	int32_t return_code; /* 0; 1 uncaught exception; N of sys.exit(N); 128+signal; 124 timed out
			      */
	/* Raw bytes, not checked for UTF-8, at most output_bytes each (and lines of ours at the end
	 * of err when timed_out, died, …). total counts all that was written. */
	struct str out, err;
	size_t err_note_bytes; /* of err: those lines, as far as they can be told apart */
	uint64_t out_total, err_total;
	const struct code_omitted *omitted; /* over a limit, by path; not all when many */
	size_t omitted_count;
	uint32_t omitted_total; /* all of them */
	uint32_t exec_ms;
	const struct code_edit_result *edit; /* of code_session_edit(), when it ran; else NULL */
};

/* Produced files come one after the other, then done. size: as announced, UINT64_MAX when it was
 * not; file_end says whether the file is whole, whatever was announced. Paths are
 * relative to the working directory, bytes of the sandbox's choice (never NUL, "", ".", ".." as a
 * component); never use them as paths of this host. */
struct code_run_ops {
	/* NULL: no files are wanted; they are all in omitted. */
	bool (*file_begin)(void *arg, struct str path, uint64_t size); /* false: skip its bytes */
	void (*file_data)(void *arg, struct str bytes);                /* bytes borrowed */
	void (*file_end)(void *arg, bool whole);              /* false: cut short, forget it */
	void (*done)(void *arg, const struct code_result *r); /* exactly once, last */
};

/* input and ops are: copied / borrowed until done. timeout_ms 0: the config's. At most
 * CODE_SOURCE_MAX bytes, else failed is ERR_TOOLARGE in done; the session stays usable then. */
void code_session_exec(struct code_session *s, enum code_kind kind, struct str input,
    uint32_t timeout_ms, const struct code_run_ops *ops, void *arg);
/* The same for the text editor; e is copied. */
void code_session_edit(struct code_session *s, const struct code_edit *e, uint32_t timeout_ms,
    const struct code_run_ops *ops, void *arg);
/* Text of a document that was put under that name: out, UTF-8 as far as its program keeps to it.
 * return_code 127: this host has no program for it; another one but 0: err says what is wrong with
 * the document. `local` sessions only. */
void code_session_convert(struct code_session *s, enum code_extractor extractor, struct str name,
    uint32_t timeout_ms, const struct code_run_ops *ops, void *arg);
/* Back-pressure for produced files: no file callback while paused. */
void code_session_pause(struct code_session *s);
void code_session_resume(struct code_session *s);
bool code_session_is_broken(const struct code_session *s);
/* Any time, also while something runs: kills it. NULL allowed. */
void code_session_close(struct code_session **s);

/* --- outliving a request (not built: ERR_UNSUPPORTED) ------------------------------------------
 */
MUST_CHECK enum err_code code_session_park(
    struct code_session **s, char token[64], struct err *reterr);
MUST_CHECK enum err_code code_session_resume_parked(
    struct code_backend *b, struct str token, struct code_session **ret, struct err *reterr);
MUST_CHECK enum err_code code_session_checkpoint(
    struct code_session *s, int dst_fd, struct err *reterr);
MUST_CHECK enum err_code code_session_restore(
    struct code_session *s, int src_fd, struct err *reterr);

#endif
