/* gateway_tool.h - the tools that the model is shown in place of the declaration, and what is said
 * about them
 *
 * Process: worker. Pure: changes the conversation, in its arena.
 */
#ifndef OTARI_WORKER_TURN_GATEWAY_TOOL_H
#define OTARI_WORKER_TURN_GATEWAY_TOOL_H

#include "worker/dialect/code_record.h"
#include "worker/dialect/conversation.h"

struct gateway_hints {
	struct str header;  /* request's tools_header, else the deployment's, else empty */
	struct str purpose; /* declaration's, else workspace's, else deployment's, else empty; said
			     * of the first tool */
};

/* What each kind is called in this conversation; STR_NULL: it is not shown. */
struct gateway_tools {
	struct str names[CODE_TOOL_COUNT];
};

/* Appends a function tool for each kind in `kinds` (enum tool_mask) under a name that collides with
 * none of the client's own tools, points a forced tool_choice that named the declaration at the
 * first of them, and puts a line for each into the system text. */
void gateway_tool_install(struct conversation *conv, const struct tool *claimed, uint32_t kinds,
    const struct gateway_hints *hints, struct gateway_tools *ret);
/* Our tool was called: a choice that forces it, or any tool where there are only ours, has had its
 * way, and would make the model call for ever. provider: whose wire the next round is in. */
void gateway_tool_release_choice(
    struct conversation *conv, const struct gateway_tools *g, enum wire provider);
/* Is `name` one of ours? */
bool gateway_tool_of(const struct gateway_tools *g, struct str name, enum code_tool *ret);
/* What the model is told a tool does, and the JSON schema of its arguments. */
struct str gateway_tool_description(enum code_tool t);
struct str gateway_tool_schema(enum code_tool t);

#endif
