/* tool_input.h - what the model called one of our tools with, read strictly
 *
 * Process: worker. Pure; in the arena. Arguments are bytes of a model's choice: what is cut or has
 * not the members of its kind is never run.
 */
#ifndef OTARI_WORKER_TURN_TOOL_INPUT_H
#define OTARI_WORKER_TURN_TOOL_INPUT_H

#include "base/arena.h"
#include "worker/code/session.h"
#include "worker/dialect/code_record.h"

struct tool_input {
	enum code_tool tool;
	struct str raw;        /* the object as the model wrote it, "{}" when it is none */
	struct str code;       /* Python, bash */
	struct code_edit edit; /* editor */
	struct str wrong;      /* not empty: nothing may run, for the model to read */
};

void tool_input_read(
    struct arena *a, enum code_tool tool, struct str arguments, struct tool_input *ret);

#endif
