/* fold.h - executions in a transcript, as text that any model can read
 *
 * Process: worker; pure. A client sends back the blocks that we showed it (ids "otari_srvtoolu_…").
 * No provider knows those ids, so the pair becomes one text block with code, output and the ids of
 * the produced files. The same text stands for a provider's own pair when the conversation moves to
 * a model of another wire. One folder follows one conversation, in order: it remembers the code of
 * a call until its result comes.
 */
#ifndef OTARI_WORKER_DIALECT_FOLD_H
#define OTARI_WORKER_DIALECT_FOLD_H

#include "base/buf.h"
#include "base/json.h"
#include "worker/dialect/code_record.h"

#define FOLD_PENDING_MAX 64u

struct fold_call {
	struct fold_call *next;
	struct str id, code;
	enum code_tool kind;
};

struct fold {
	struct arena *arena;
	struct fold_call *calls; /* latest first */
};

enum fold_action {
	FOLD_KEEP,   /* not an execution */
	FOLD_REMOVE, /* its text comes with the result */
	FOLD_TEXT,   /* *ret_text stands for it */
};

/* minted_only: leave the provider's own pairs alone. */
enum fold_action fold_block(
    struct fold *f, struct jval block, bool minted_only, struct str *ret_text);
/* How every such text begins: that a tool of this kind was used, and for what (code, or the input
 * of the editor; empty: unknown). */
void fold_heading(struct buf *b, enum code_tool kind, struct str what);
/* The same for a call with these arguments, as the model wrote them. */
void fold_call(struct arena *a, struct buf *b, enum code_tool kind, struct str arguments);
/* The text that stands for a code_interpreter_call item of Responses. */
struct str fold_code_item(struct arena *a, struct jval item);

#endif
