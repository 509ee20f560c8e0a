/* events.h - what the readers of answers share: emission in the order that turn_event.h demands
 *
 * Process: worker. In the arena of the round, but for a scratch arena that is renewed as events
 * pass. A reader keeps its own state behind struct events, which must come first in it.
 */
#ifndef OTARI_WORKER_DIALECT_EVENTS_H
#define OTARI_WORKER_DIALECT_EVENTS_H

#include "base/buf.h"
#include "base/json.h"
#include "worker/dialect/turn_event.h"

struct events {
	struct arena *arena; /* of the answer */
	struct arena *scratch;
	turn_on_event *on_event;
	void *arg;
	enum wire wire;
	bool started;         /* START went out */
	bool open;            /* a block is open */
	bool finished;        /* FINISH and USAGE went out */
	bool over;            /* END or ERROR went out, or the consumer said stop */
	enum block_kind kind; /* of the open block */
	uint32_t choice;
	struct str id, model;
	struct token_usage usage;
	struct buf usage_raw; /* of the latest report */
};

void events_init(struct events *e, struct arena *a, enum wire wire, turn_on_event *fn, void *arg);
/* Parses one payload into the scratch arena. */
MUST_CHECK enum err_code events_parse(
    struct events *e, struct str text, struct jval *ret, struct err *reterr);
/* The first of them sends START, with the id, model and usage known so far. */
void events_block_start(struct events *e, const struct turn_event *block);
void events_delta(struct events *e, enum delta_field field, struct str text, struct str raw);
void events_annotation(struct events *e, struct str raw);
void events_block_stop(struct events *e); /* nothing when none is open */
void events_finish(struct events *e, const struct turn_event *finish);
/* A later report of token counts replaces what it names. */
void events_count(struct events *e, struct token_usage later);
void events_usage(struct events *e);
void events_end(struct events *e); /* once; what comes later is ignored */
void events_ping(struct events *e);
/* Closes the open block and sends ERROR; nothing comes after it. status 0: chosen from type. */
void events_error(struct events *e, int status, struct str type, struct str message);
/* An error object in any of the forms that providers send, or false when v holds none:
 * {"error":{…}}, {"error":"text"}, [{"error":…}], {"object":"error","message":…}, {"detail":…}. */
bool events_error_object(struct events *e, struct jval v);

#endif
