/* code_record.h - one finished execution, for the caller's own vocabulary; the kinds by name
 *
 * Process: worker. Pure data, in the request's arena. The names are the providers' own: of the
 * server_tool_use block and of what a policy lists.
 */
#ifndef OTARI_WORKER_DIALECT_CODE_RECORD_H
#define OTARI_WORKER_DIALECT_CODE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum code_tool { CODE_TOOL_PYTHON, CODE_TOOL_BASH, CODE_TOOL_EDITOR, CODE_TOOL_COUNT };

/* "code_execution", "bash_code_execution", "text_editor_code_execution". */
struct str code_tool_name(enum code_tool t);
bool code_tool_of(struct str name, enum code_tool *ret);

enum edit_answer { EDIT_ANSWER_VIEW, EDIT_ANSWER_CREATE, EDIT_ANSWER_REPLACE };

/* What the editor did. A view's text and the diff of a replacement are the record's `out`. */
struct edit_record {
	enum edit_answer answer;
	bool is_update;                              /* create: it took the place of a file */
	bool is_directory;                           /* view: a list, which has no line numbers */
	bool is_cut;                                 /* replace: the diff is not whole */
	int32_t first_line, line_count, total_lines; /* view */
	int32_t old_start, old_lines, new_start, new_lines; /* replace, as a diff's hunk */
};

/* ids are minted by turn/mint.c. */
struct code_record {
	struct str id;           /* "otari_srvtoolu_…" / "otari_ci_…" */
	struct str container_id; /* "otari_cntr_…" */
	enum code_tool tool;
	struct str input_raw;     /* JSON object: what the tool was called with */
	struct str code;          /* Python, bash: the program, valid UTF-8 */
	bool ran;                 /* false: never answered, error_code says why */
	struct str error_code;    /* "unavailable", "execution_time_exceeded", … */
	struct str error_message; /* the editor's; empty: none */
	struct str out, err;      /* valid UTF-8, bounded */
	int32_t return_code;
	struct edit_record edit;
	struct str *file_ids; /* stored files, in order */
	struct str *file_names;
	size_t file_count;
};

#endif
