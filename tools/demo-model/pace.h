/* pace.h - answers an evhttp request with pieces, one after the other, as a model service does
 *
 * Process: the demo model and the tests' fake provider; their one loop.
 * Owns:    the request once started; a pace frees itself when its answer has ended or the peer has
 *          gone.
 * Limits:  a piece is sent when the one before it has left the output buffer, so that a peer which
 *          does not read costs one piece.
 */
#ifndef OTARI_TOOLS_DEMO_MODEL_PACE_H
#define OTARI_TOOLS_DEMO_MODEL_PACE_H

#include "base/buf.h"

struct evhttp_request;
struct pace;

enum pace_end {
	PACE_END,    /* an orderly end */
	PACE_CUT,    /* the connection is closed in the middle of the body */
	PACE_STALL,  /* nothing more comes, the connection stays open */
	PACE_REPEAT, /* the last piece again, for ever */
};

/* Takes the request. delay_ms: between pieces; 0: as fast as the peer reads. */
struct pace *pace_new(struct evhttp_request *req, unsigned delay_ms);
void pace_add(struct pace *p, struct str piece); /* copies */
/* "event: NAME\n" (NULL: left out), then "data: …\n\n". */
void pace_add_event(struct pace *p, const char *event, struct str data);
/* Drops the second half of the pieces, at least one: an answer that breaks off. */
void pace_halve(struct pace *p);
/* Waits behind the first half of the pieces until pace_go. */
void pace_gate(struct pace *p);
/* Lets the answer go on that waits at its gate, or the next that comes to one. */
void pace_go(void);
/* Adds all pieces to dst and frees the pace; the request is untouched. */
void pace_take(struct pace *p, struct buf *dst);
/* Sends nothing, ever; the request is freed when the peer goes. */
void pace_hang(struct pace *p);
/* Sends the head, with content_type unless the request has one set; the pieces follow. */
void pace_run(struct pace *p, int status, const char *content_type, enum pace_end end);

#endif
