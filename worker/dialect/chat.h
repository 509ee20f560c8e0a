/* chat.h - the parts of the Chat dialect; assembled in chat_out.c, see dialect.h */
#ifndef OTARI_WORKER_DIALECT_CHAT_H
#define OTARI_WORKER_DIALECT_CHAT_H

#include "worker/dialect/dialect.h"

enum err_code chat_decode(struct arena *a, struct str body, struct jval root,
    struct conversation **ret, struct err *reterr);
enum err_code chat_encode(struct conversation *conv, const struct encode_options *opt,
    struct buf *out, struct err *reterr);
struct events *chat_events_new(struct arena *a, turn_on_event *on_event, void *arg);
enum err_code chat_events_sse(
    struct events *e, struct str name, struct str data, struct err *reterr);
enum err_code chat_events_whole(struct events *e, struct str body, struct err *reterr);
enum err_code chat_events_end(struct events *e, struct err *reterr);
struct reply *chat_reply_new(struct arena *a, const struct reply_options *opt, struct buf *out);
void chat_reply_event(struct reply *r, const struct turn_event *ev);
void chat_reply_code_begin(struct reply *r, const struct code_record *rec);
void chat_reply_code_input(struct reply *r, struct str json, struct str text);
void chat_reply_code_run(struct reply *r, const struct code_record *rec);
void chat_reply_code(struct reply *r, const struct code_record *rec);
void chat_reply_ping(struct reply *r);

#endif
