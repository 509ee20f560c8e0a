/* result_text.h - what the model reads of an execution
 *
 * Process: worker. Pure. Bounded, valid UTF-8, no control character; a cut stream says its original
 * size.
 */
#ifndef OTARI_WORKER_TURN_RESULT_TEXT_H
#define OTARI_WORKER_TURN_RESULT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "worker/code/session.h"
#include "worker/dialect/code_record.h"

#define RESULT_STREAM_MAX_BYTES (256u * 1024u)                   /* of stdout and of stderr each */
#define RESULT_CLEAN_MAX_BYTES  (RESULT_STREAM_MAX_BYTES + 512u) /* with what we add to it */
#define RESULT_NAME_BYTES       256u                             /* of a file's name */
#define RESULT_FILES_BYTES      (64u * 1024u) /* of all of them; the rest is counted */
#define RESULT_TEXT_MAX_BYTES   (2u * RESULT_CLEAN_MAX_BYTES + RESULT_FILES_BYTES + 8192u)

struct result_file {
	struct str name;
	struct str file_id; /* empty: not stored */
};

struct result_text {
	struct str failure;  /* not empty: the call itself failed; nothing else is read */
	struct str out, err; /* cleaned with result_clean */
	int32_t return_code;
	const struct result_file *files;
	size_t file_count;
	const struct edit_record *edit; /* NULL: not the editor's, whose text or diff is `out` */
	struct str path;                /* that it worked on */
};

/* Appends the text, at most RESULT_TEXT_MAX_BYTES: sections stdout:, stderr:, return_code:, files:,
 * each only if there is something, and "[tool error] " in front when result_is_error. The editor's:
 * what was done, then the text or the diff as it is, since line numbers in it would end up in the
 * next old_str. */
void result_text_write(const struct result_text *r, struct buf *out);
/* The call failed, the code returned non-zero, or there is stderr and no stdout. */
bool result_is_error(const struct result_text *r);
/* Valid UTF-8 without terminal escapes and control characters, cut on a character at
 * RESULT_STREAM_MAX_BYTES; total is what the code wrote; note: lines of ours, at most 256 bytes,
 * which are never cut off. At most RESULT_CLEAN_MAX_BYTES are appended. True: it was cut. */
bool result_clean(struct str bytes, uint64_t total, struct str note, struct buf *out);
/* Appends valid UTF-8 without terminal escapes; other control characters, which strict services
 * refuse, become U+FFFD. */
void result_plain(struct str s, struct buf *out);

/* Appends what the model is told of an edit that was refused and gives the error code that the
 * caller is shown. path is the model's own. */
struct str result_edit_refusal(enum code_edit_error e, struct str path, struct buf *out);

#endif
