/* edit.h - what the text editor does to bytes: paths, ranges of lines, one replacement, its diff
 *
 * Process: otari-init, which compiles it by itself; pure, no heap.
 * Rule:    a line ends after its '\n' or with the file; lines count from 1. Everything is bounded
 *          by the room that the caller gives.
 */
#ifndef OTARI_SANDBOX_EDIT_EDIT_H
#define OTARI_SANDBOX_EDIT_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ipc/frames.h"

/* Makes a path that a model named relative to the working directory: below /work or /mnt/data when
 * absolute; "." and ".." are taken out by the letter (no link is ever followed). *ret is in dst and
 * passes frame_path_ok(), or is empty: the directory itself. False: outside, or no path. */
bool edit_path(struct str path, char dst[FRAME_PATH_MAX], struct str *ret);

/* UTF-8 without NUL. */
bool edit_is_text(struct str s);

struct edit_view {
	struct str text;
	uint32_t first_line, line_count, total_lines;
};
/* first, last: from 1; last -1 or beyond: the end; 0, 0: all. False: no such lines. */
bool edit_view_lines(struct str text, int32_t first, int32_t last, struct edit_view *ret);

/* file with the only occurrence of old replaced by text, into dst. FRAME_EDIT_NO_MATCH (also for an
 * empty old), MANY_MATCHES, or TOO_LARGE for dst. */
enum frame_edit_error edit_replace(
    struct str file, struct str old, struct str text, char *dst, size_t room, size_t *ret_len);

struct edit_hunk { /* as in a unified diff: a side without lines starts at the line before */
	uint32_t old_start, old_lines, new_start, new_lines;
};
/* The one hunk that leads from a to b, three lines of context around it, into dst. All zero and
 * empty when a equals b. False: no room. */
bool edit_diff(
    struct str a, struct str b, char *dst, size_t room, size_t *ret_len, struct edit_hunk *ret);

#endif
