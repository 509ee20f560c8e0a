/* chat_out.h - what the two halves of the Chat request writer share; private to chat_out*.c */
#ifndef OTARI_WORKER_DIALECT_CHAT_OUT_H
#define OTARI_WORKER_DIALECT_CHAT_OUT_H

#include "base/json_write.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/fold.h"

struct chat_writer {
	struct conversation *conv;
	const struct encode_options *opt;
	struct jw w;
	struct fold fold;
};

/* The elements of "messages". */
void chat_write_messages(struct chat_writer *cw);
/* The text that stands for a part on Chat; STR_NULL when it has a form of its own there (image,
 * audio, file), empty when nothing is to be sent. */
struct str chat_part_text(struct chat_writer *cw, const struct part *p);
void chat_write_part(struct chat_writer *cw, const struct part *p);
/* "data:<type>;base64,<data>" as the value of the key just written. */
void chat_write_data_url(struct jw *w, const struct media *m, const char *default_type);
/* A part is sent as the client sent it. */
static inline bool
chat_has_raw(const struct part *p)
{
	return p->raw.ptr != NULL && p->raw_wire == WIRE_CHAT;
}

#endif
