/* frames.h - what a worker and a session's init say to each other over the control socket
 *
 * Process: worker (worker/code), spawner (READY, self-test), otari-init. Pure; needs nothing of
 * base but struct str, because otari-init compiles it by itself.
 * Wire:    SOCK_STREAM; a frame is {u32 payload length, u8 type, 3 zero bytes} little-endian and
 * the payload. Numbers in payloads are little-endian; text fills the rest of the payload. Order:
 * worker: PUT PUT_DATA* PUT_END | RUN RUN_DATA* (source_bytes in all) | LIST | GET | KILL (any
 * time). init:
 * READY once; PUT_DONE per put; per run RESULT, then (FILE FILE_DATA* FILE_END)*, OMITTED*, END; of
 * an edit EDIT_TEXT*, EDITED before RESULT; per list ENTRY* END (sent, omitted, skipped), in no
 * order; per get FILE FILE_DATA* FILE_END, or GET_FAILED. The source of an edit is struct
 * frame_edit, of a conversion struct frame_convert. Files of a run in ascending path order.
 * Limits:  FRAME_MAX a payload. What comes from a session is hostile: decoders refuse, never
 * trust.
 */
#ifndef OTARI_IPC_FRAMES_H
#define OTARI_IPC_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define FRAME_HEAD       8
#define FRAME_MAX        65536u
#define FRAME_PATH_MAX   1024u /* of a produced or put file, bytes */
#define FRAME_DEPTH_MAX  16u
#define FRAME_SOURCE_MAX (4u << 20)
#define FRAME_EDIT_MAX   (1u << 20) /* of what an edit answers; together */
#define FRAME_VERSION    1u

enum frame_type {
	/* worker → init */
	FRAME_PUT = 1,  /* struct frame_file */
	FRAME_PUT_DATA, /* bytes */
	FRAME_PUT_END,  /* nothing */
	FRAME_RUN,      /* struct frame_run */
	FRAME_RUN_DATA, /* bytes of the source */
	FRAME_KILL,     /* nothing: end what runs now; RESULT follows as for a time-out */
	FRAME_SELFTEST, /* nothing: spawner only, before any lease */
	FRAME_LIST,     /* nothing: which files are there */
	FRAME_GET,      /* the path of one of them */
	/* init → worker */
	FRAME_READY,      /* struct frame_ready */
	FRAME_PUT_DONE,   /* struct frame_put_done */
	FRAME_RESULT,     /* struct frame_result */
	FRAME_FILE,       /* struct frame_file */
	FRAME_FILE_DATA,  /* bytes */
	FRAME_FILE_END,   /* struct frame_file_end */
	FRAME_OMITTED,    /* struct frame_omitted */
	FRAME_END,        /* struct frame_end */
	FRAME_CHECK,      /* struct frame_check: one row of the self-test */
	FRAME_CHECK_END,  /* nothing */
	FRAME_EDIT_TEXT,  /* bytes: of a view, or a diff */
	FRAME_EDITED,     /* struct frame_edited */
	FRAME_ENTRY,      /* struct frame_entry */
	FRAME_GET_FAILED, /* struct frame_put_done */
	FRAME_TYPE_END_,
};

struct frame_head {
	uint32_t len;
	uint8_t type;
};

struct frame_file { /* PUT, FILE: u64 size, path */
	uint64_t size;
	struct str path; /* frame_path_ok() */
};
enum frame_kind {
	FRAME_KIND_PYTHON,
	FRAME_KIND_BASH,
	FRAME_KIND_EDITOR,
	FRAME_KIND_CONVERT,
	FRAME_KIND_END_
};
struct frame_run { /* u32 kind, timeout_ms, max_files, source_bytes; u64 max_bytes */
	uint32_t kind, timeout_ms, max_files, source_bytes;
	uint64_t max_bytes;
};
struct frame_ready { /* u32 version, i32 sys_errno of the interpreter's start (0: it waits) */
	uint32_t version;
	int32_t sys_errno;
};
struct frame_put_done {    /* i32 */
	int32_t sys_errno; /* 0: whole */
};
#define FRAME_RESULT_TIMED_OUT 1u
#define FRAME_RESULT_DIED      2u /* the interpreter is gone and will be started afresh */
#define FRAME_RESULT_MEMORY    4u /* at least one process ended for want of memory */
#define FRAME_RESULT_FLAGS     7u
struct frame_result { /* u32 flags, i32 return_code, u32 exec_ms */
	uint32_t flags;
	int32_t return_code;
	uint32_t exec_ms;
};
struct frame_file_end { /* u32 whole: 0 or 1 */
	uint32_t whole;
};
enum frame_omit { FRAME_OMIT_COUNT, FRAME_OMIT_BYTES, FRAME_OMIT_UNREADABLE, FRAME_OMIT_END_ };
struct frame_omitted { /* u64 size, u32 reason, path */
	uint64_t size;
	uint32_t reason; /* enum frame_omit */
	struct str path;
};
struct frame_end { /* u32 sent, omitted (all, also those not listed), skipped (links, devices) */
	uint32_t sent, omitted, skipped;
};
#define FRAME_ENTRIES_MAX 8192u /* of one LIST */
struct frame_entry { /* u64 size, u64 changed_ns (UTC epoch, ns; the code cannot choose it), path */
	uint64_t size, changed_ns;
	struct str path; /* frame_path_ok() */
};
struct frame_check {    /* u32 layer, u32 held, i32 sys_errno, text */
	uint32_t layer; /* enum sandbox_layer of ipc/lease.h */
	uint32_t held;  /* 1: the wall held */
	int32_t sys_errno;
	struct str text; /* what was tried; printable ASCII, at most 80 bytes */
};
enum frame_edit_command {
	FRAME_EDIT_VIEW,
	FRAME_EDIT_CREATE,
	FRAME_EDIT_STR_REPLACE,
	FRAME_EDIT_COMMAND_END_
};
struct frame_edit { /* u32 command, i32 first_line, last_line, u32 path bytes, old bytes; texts */
	uint32_t command;
	int32_t first_line, last_line;
	struct str path, old, text; /* any bytes: a model's */
};
enum frame_edit_error {
	FRAME_EDIT_OK,
	FRAME_EDIT_NOT_FOUND,
	FRAME_EDIT_INVALID,
	FRAME_EDIT_NO_MATCH,
	FRAME_EDIT_MANY_MATCHES,
	FRAME_EDIT_NOT_TEXT,
	FRAME_EDIT_TOO_LARGE,
	FRAME_EDIT_FAILED,
	FRAME_EDIT_ERROR_END_
};
enum frame_extractor {
	FRAME_EXTRACT_PDF,
	FRAME_EXTRACT_DOC,
	FRAME_EXTRACT_DOCX,
	FRAME_EXTRACT_PPTX,
	FRAME_EXTRACT_XLSX,
	FRAME_EXTRACT_ODF,
	FRAME_EXTRACT_HTML,
	FRAME_EXTRACT_END_
};
struct frame_convert { /* u32 extractor, path */
	uint32_t extractor;
	struct str path; /* frame_path_ok() */
};
#define FRAME_EDITED_UPDATE    1u
#define FRAME_EDITED_DIRECTORY 2u
struct frame_edited { /* u32 each, up to INT32_MAX */
	uint32_t error, flags;
	uint32_t first_line, line_count, total_lines;
	uint32_t old_start, old_lines, new_start, new_lines;
};

void frame_head_put(uint8_t dst[FRAME_HEAD], uint8_t type, uint32_t len);
/* False: unknown type, over FRAME_MAX, or non-zero padding. */
bool frame_head_get(const uint8_t src[FRAME_HEAD], struct frame_head *ret);

/* Encoders write into dst (room for FRAME_FIXED_MAX plus the text) and return the payload length;
 * decoders take one whole payload and refuse what is not exactly right. */
#define FRAME_FIXED_MAX 40
size_t frame_file_put(uint8_t *dst, const struct frame_file *f);
bool frame_file_get(struct str p, struct frame_file *ret);
size_t frame_run_put(uint8_t *dst, const struct frame_run *f);
bool frame_run_get(struct str p, struct frame_run *ret);
size_t frame_ready_put(uint8_t *dst, const struct frame_ready *f);
bool frame_ready_get(struct str p, struct frame_ready *ret);
size_t frame_put_done_put(uint8_t *dst, const struct frame_put_done *f);
bool frame_put_done_get(struct str p, struct frame_put_done *ret);
size_t frame_result_put(uint8_t *dst, const struct frame_result *f);
bool frame_result_get(struct str p, struct frame_result *ret);
size_t frame_file_end_put(uint8_t *dst, const struct frame_file_end *f);
bool frame_file_end_get(struct str p, struct frame_file_end *ret);
size_t frame_omitted_put(uint8_t *dst, const struct frame_omitted *f);
bool frame_omitted_get(struct str p, struct frame_omitted *ret);
size_t frame_entry_put(uint8_t *dst, const struct frame_entry *f);
bool frame_entry_get(struct str p, struct frame_entry *ret);
size_t frame_end_put(uint8_t *dst, const struct frame_end *f);
bool frame_end_get(struct str p, struct frame_end *ret);
size_t frame_check_put(uint8_t *dst, const struct frame_check *f);
bool frame_check_get(struct str p, struct frame_check *ret);
/* Of a source, not of a payload; dst: FRAME_FIXED_MAX and the three texts. */
size_t frame_edit_put(uint8_t *dst, const struct frame_edit *f);
bool frame_edit_get(struct str source, struct frame_edit *ret);
size_t frame_convert_put(uint8_t *dst, const struct frame_convert *f);
bool frame_convert_get(struct str source, struct frame_convert *ret);
size_t frame_edited_put(uint8_t *dst, const struct frame_edited *f);
bool frame_edited_get(struct str p, struct frame_edited *ret);

/* A relative path of at most FRAME_DEPTH_MAX components of 1..255 bytes, none "." or "..", no NUL,
 * no empty component, at most FRAME_PATH_MAX bytes. Any other byte is allowed. */
bool frame_path_ok(struct str path);

#endif
