/* responses.h - the parts of the Responses dialect; assembled in responses_out.c, see dialect.h */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_H
#define OTARI_WORKER_DIALECT_RESPONSES_H

#include "worker/dialect/dialect.h"

/* Refuses what only a store could resolve (item_reference): the store puts stored items in their
 * place before this reader sees the body. */
enum err_code responses_decode(struct arena *a, struct str body, struct jval root,
    struct conversation **ret, struct err *reterr);
enum err_code responses_encode(struct conversation *conv, const struct encode_options *opt,
    struct buf *out, struct err *reterr);

struct events *responses_events_new(struct arena *a, turn_on_event *on_event, void *arg);
enum err_code responses_events_sse(
    struct events *e, struct str name, struct str data, struct err *reterr);
enum err_code responses_events_whole(struct events *e, struct str body, struct err *reterr);
enum err_code responses_events_end(struct events *e, struct err *reterr);

struct reply *responses_reply_new(
    struct arena *a, const struct reply_options *opt, struct buf *out);
void responses_reply_event(struct reply *r, const struct turn_event *ev);
void responses_reply_code_begin(struct reply *r, const struct code_record *rec);
void responses_reply_code_input(struct reply *r, struct str json, struct str text);
void responses_reply_code_run(struct reply *r, const struct code_record *rec);
void responses_reply_code(struct reply *r, const struct code_record *rec);
void responses_reply_ping(struct reply *r);

#endif
