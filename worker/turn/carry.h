/* carry.h - what our calls gave in a turn that ended with calls of the client's own tools, carried
 * over to the request that brings the results of those
 *
 * Process: worker. Pure; all results in the given arena. carry_store.h keeps and fetches.
 * Why:     the client's transcript holds its own calls alone: always on Chat and for a plain
 *          declaration, and elsewhere when the client drops blocks that it does not know. Without
 *          this the model would not see what its code printed, one line before it goes on from it.
 * Rule:    all executions of the turn are kept under the id of the first call that the client gets.
 *          They come back as the text that also stands for an echoed block (dialect/fold.h), in
 *          front of that call, for as long as the call is in the transcript and the row lives: the
 *          same bytes each time. An execution whose block was echoed is left alone.
 * Ids:     a row is found by the call id alone, so the id must be one of its kind. Ids that a
 *          provider may give again ("call_1", "functions.f:0") are replaced before the client sees
 *          them; what slips through is caught by the table (storage/sql/store_tool_result.h).
 * Limits:  CARRY_CODE_MAX_BYTES and CARRY_RESULT_MAX_BYTES of one execution; the latest that fit in
 *          STORE_TOOL_RESULT_MAX_BYTES; the last STORE_TOOL_RESULT_IDS_MAX calls of a transcript.
 */
#ifndef OTARI_WORKER_TURN_CARRY_H
#define OTARI_WORKER_TURN_CARRY_H

#include <stdbool.h>

#include "storage/sql/store_tool_result.h"
#include "worker/dialect/code_record.h"
#include "worker/dialect/conversation.h"

#define CARRY_CODE_MAX_BYTES   (32u * 1024u)
#define CARRY_RESULT_MAX_BYTES (256u * 1024u)

struct carry_run { /* one execution; borrowed from the request's arena */
	struct carry_run *before;
	enum code_tool tool;
	struct str id, what, result; /* what: the code, or the editor's input */
};

struct carry { /* of one turn; zeroed: nothing yet */
	struct carry_run *last;
	struct str call_id; /* STR_NULL: the client got no call */
};

/* One execution is done; result: what the model was told of it. */
void carry_add_run(
    struct carry *c, struct arena *a, const struct code_record *rec, struct str result);
/* The client gets a call. Returns the id to show it under. c NULL: it is of another choice than the
 * first, with which the transcript does not go on. */
struct str carry_add_call(struct carry *c, struct arena *a, enum wire client, struct str id);
/* The text to keep under c->call_id; STR_NULL: there is nothing to keep. */
struct str carry_text(const struct carry *c, struct arena *a);

/* The ids of the last calls in the transcript that have results; ids holds
 * STORE_TOOL_RESULT_IDS_MAX. Returns how many. */
size_t carry_find(const struct conversation *conv, struct str *ids);
/* Puts kept texts in front of their calls. texts[i] belongs to ids[i]; STR_NULL: none. */
void carry_attach(
    struct conversation *conv, const struct str *ids, const struct str *texts, size_t n);

#endif
