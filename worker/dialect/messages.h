/* messages.h - the parts of the Messages dialect; assembled in messages_out.c, see dialect.h */
#ifndef OTARI_WORKER_DIALECT_MESSAGES_H
#define OTARI_WORKER_DIALECT_MESSAGES_H

#include "worker/dialect/dialect.h"

enum err_code messages_decode(struct arena *a, struct str body, struct jval root,
    struct conversation **ret, struct err *reterr);
enum err_code messages_encode(struct conversation *conv, const struct encode_options *opt,
    struct buf *out, struct err *reterr);
struct events *messages_events_new(struct arena *a, turn_on_event *on_event, void *arg);
enum err_code messages_events_sse(
    struct events *e, struct str name, struct str data, struct err *reterr);
enum err_code messages_events_whole(struct events *e, struct str body, struct err *reterr);
enum err_code messages_events_end(struct events *e, struct err *reterr);
struct reply *messages_reply_new(struct arena *a, const struct reply_options *opt, struct buf *out);
void messages_reply_event(struct reply *r, const struct turn_event *ev);
void messages_reply_code_begin(struct reply *r, const struct code_record *rec);
void messages_reply_code_input(struct reply *r, struct str json, struct str text);
void messages_reply_code_run(struct reply *r, const struct code_record *rec);
void messages_reply_code(struct reply *r, const struct code_record *rec);
void messages_reply_ping(struct reply *r);

#endif
