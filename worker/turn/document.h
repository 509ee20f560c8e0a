/* document.h - what a document is, and which documents a model's service reads by itself
 *
 * Process: worker. Pure.
 */
#ifndef OTARI_WORKER_TURN_DOCUMENT_H
#define OTARI_WORKER_TURN_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "worker/code/session.h"
#include "worker/dialect/conversation.h"

/* A set of formats: each is named by the extractor that reads it; text files need none. */
#define DOCUMENT_BIT(extractor) (1u << (unsigned)(extractor))
#define DOCUMENTS_NONE          0u
#define DOCUMENTS_EXTRACTED     (DOCUMENT_BIT(CODE_EXTRACT_HTML + 1) - 1)
#define DOCUMENT_TEXT           DOCUMENT_BIT(CODE_EXTRACT_HTML + 1)
#define DOCUMENTS_ALL           (DOCUMENTS_EXTRACTED | DOCUMENT_TEXT)

/* By media type, or else by the name's extension, because many clients send everything as
 * application/octet-stream; neither counts unless the bytes start as such a document does. base64:
 * all of it. False: it is none that has an extractor. */
bool document_kind(
    struct str media_type, struct str filename, struct str base64, enum code_extractor *ret);
/* A text file, by its type, or by its name where the type says nothing? Whether it is text the
 * bytes say. */
bool document_is_text(struct str media_type, struct str filename);
/* The formats that the service takes inline on that wire. native: the provider's native_documents:
 * -1 by the table, 0 none, 1 all. */
uint32_t documents_read(struct str provider_type, enum wire wire, int native);

#endif
