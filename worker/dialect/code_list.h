/* code_list.h - executions of an answer that has no blocks for them: one extra member
 *
 * Process: worker. Pure. Written by the writers of all wires where native_code is off, and only
 * when something ran: {"id","tool","input","stdout","stderr","return_code","files":[{"file_id",
 * "filename"}],"error_code"}, and "error_message" of an edit that was refused. Clients' types do
 * not know the member and keep or skip it. Limits:  beyond CODE_LIST_FULL_BYTES an execution is
 * listed without its input and texts, and says so ("truncated": true).
 */
#ifndef OTARI_WORKER_DIALECT_CODE_LIST_H
#define OTARI_WORKER_DIALECT_CODE_LIST_H

#include "base/json_write.h"
#include "worker/dialect/code_record.h"

#define CODE_LIST_MEMBER     "otari_code_executions"
#define CODE_LIST_FULL_BYTES (8u << 20)

/* list: values so far, comma-separated. */
void code_list_add(struct buf *list, const struct code_record *rec);
/* The member, unless the list is empty. */
void code_list_write(const struct buf *list, struct jw *w);

#endif
