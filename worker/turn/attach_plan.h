/* attach_plan.h - which files a request names, what each is called in the sandbox, how the model
 * sees it
 *
 * Process: worker. Pure: conversation in, plan out; then, with the rows and bytes that attach.c
 * fetched, the conversation is rewritten. No file id of ours stays in what goes to a provider.
 * Limits:  ATTACH_FILES_MAX different ids a request.
 */
#ifndef OTARI_WORKER_TURN_ATTACH_PLAN_H
#define OTARI_WORKER_TURN_ATTACH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/dialect/conversation.h"

#define ATTACH_FILES_MAX 100u

struct attachment { /* one different file id, in the order of its first mention */
	struct attachment *next;
	struct str file_id; /* in the arena, whatever the conversation points into */
	bool for_sandbox;   /* seed it */
	bool is_input;      /* it was given for the code and nothing else: none runs without it */
	bool for_model;     /* some part shows it to the model */
	bool for_provider;  /* copy it to the provider, whose code is to have it */
	/* from the files table */
	bool is_found;
	struct str filename, mime_type, storage_ref;
	uint64_t bytes;
	/* made here */
	struct str name;    /* in the working directory, unique */
	struct str content; /* of for_model: base64 or plain text (is_text) */
	bool is_text;
	struct str lent_id; /* of for_provider: what the provider calls its copy */
};

/* Where the code of the request runs. */
enum attach_where { ATTACH_NOWHERE, ATTACH_SANDBOX, ATTACH_PROVIDER };

struct attach_plan {
	struct attachment *first;
	size_t count;
	enum attach_where where;
};

/* Collects the references: container_upload, file sources of documents and images, file parts, and
 * the file_ids of the container of a declaration that is claimed, or that the provider runs.
 * ERR_INPUT over ATTACH_FILES_MAX. */
MUST_CHECK enum err_code attach_collect(struct conversation *conv, enum attach_where where,
    const struct tool *claimed, struct attach_plan *ret, struct err *reterr);
/* ERR_INPUT, naming the id: an input of the code was not found. */
MUST_CHECK enum err_code attach_check(const struct attach_plan *plan, struct err *reterr);
/* Gives each found seed its name: the last path segment of its filename; a second "data.csv"
 * becomes "data-2.csv". */
void attach_name(struct arena *a, struct attach_plan *plan);
/* Rewrites the parts: uploads become a line of text that names the file, shown files become inline
 * data or text. References that were not found stay as they are. */
void attach_rewrite(struct conversation *conv, const struct attach_plan *plan);
/* What the model reads of a file whose content is text. */
struct str attach_text(struct arena *a, struct str name, struct str content);
/* Of a name that may be a path; never empty, never a path, never "." or "..". */
struct str attach_last_segment(struct str filename);
/* Shown to the model as text rather than as an opaque document? By media type. */
bool attach_is_text(struct str mime_type);

#endif
