/* dialectfix.h - what the dialect tests share: bodies in, bodies out, answers in, answers out */
#ifndef OTARI_TESTS_UNIT_DIALECTFIX_H
#define OTARI_TESTS_UNIT_DIALECTFIX_H

#include "base/arena.h"
#include "base/buf.h"
#include "worker/dialect/dialect.h"

/* Decodes; NULL and the text in err on failure. The body must outlive the conversation. */
struct conversation *fix_decode(struct arena *a, enum wire w, struct str body, struct err *err);
/* Decodes as `from`, encodes as `to`; the provider's body, or "error: …". In the arena. */
struct str fix_translate(struct arena *a, enum wire from, enum wire to, struct str body);
/* The same with api.openai.com's own rules. */
struct str fix_translate_native(struct arena *a, enum wire from, enum wire to, struct str body);
/* With all options to choose. */
struct str fix_translate_with(
    struct arena *a, enum wire from, enum wire to, struct str body, struct encode_options opt);
/* Names that the last translation dropped, comma-separated. */
struct str fix_dropped(struct arena *a, const struct conversation *c);

/* One answer from a provider of wire `from` to a client of wire `to`. */
struct fix_answer {
	struct str log;     /* the events, one a line */
	struct str bytes;   /* to the client */
	enum err_code code; /* of the reader */
	bool ended, failed; /* END, ERROR came */
	struct token_usage usage;
	unsigned calls; /* BLOCK_CALL starts */
};
struct fix_way {
	enum wire from, to;
	bool stream_in, stream_out;
	bool include_usage;
	const struct conversation *request;
};
/* in: a whole body, or a stream: SSE frames as they come. step: bytes fed at once (0: all). */
void fix_answer(
    struct arena *a, const struct fix_way *way, struct str in, size_t step, struct fix_answer *ret);
/* SSE frames → the whole answer that a client's accumulator would hold (JSON in the arena);
 * STR_NULL and a failed assertion when the stream breaks a rule of the wire. */
struct str fix_accumulate(struct arena *a, enum wire w, struct str sse);
struct str fix_accumulate_responses(struct arena *a, struct str sse);
/* One line a JSON payload → SSE frames, with event lines for Messages and Responses,
 * [DONE] for Chat. */
struct str fix_frames(struct arena *a, enum wire w, struct str lines);
/* Value equality: numbers by their text, objects without order. */
bool fix_json_eq(struct str a, struct str b);

/* The request, or the test fails. */
struct conversation *fix_must_decode(struct arena *a, enum wire w, const char *body);
/* A provider's body, or "error: …"; is_openai: of OpenAI's own service. */
struct str fix_encode(struct arena *a, enum wire to, struct conversation *c, bool is_openai);

#endif
