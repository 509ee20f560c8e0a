/* arguments.h - a call's arguments between "text as the model wrote it" and "a JSON object"; and
 * blocks whose input came in pieces. Pure; results in the arena.
 */
#ifndef OTARI_WORKER_DIALECT_ARGUMENTS_H
#define OTARI_WORKER_DIALECT_ARGUMENTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* Blank or null → {}; an object → itself, byte for byte; anything else → {"_raw": text}: Messages
 * takes nothing but an object there. */
struct str arguments_object(struct arena *a, struct str text);
/* Blank or null → {}; anything else as it is: Chat takes any text. */
struct str arguments_text(struct str text);
/* A custom tool takes free text: {"input": text}, and back (the text itself when it is no such
 * object). */
struct str arguments_of_text(struct arena *a, struct str input);
struct str arguments_input(struct arena *a, struct str arguments);
bool arguments_blank(struct str text);
/* Without the white space in front; what is at the end may belong to a string that goes on. */
struct str arguments_begin(struct str text);
/* An opaque block as it was started, with `input` replaced by what came in pieces (if any came). */
struct str block_with_input(struct arena *a, struct str block_raw, struct str input);

#endif
