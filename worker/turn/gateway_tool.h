/* gateway_tool.h - the tool that the model is shown in place of the declaration, and what is said
 * about it
 *
 * Process: worker. Pure: changes the conversation, in its arena.
 */
#ifndef OTARI_WORKER_TURN_GATEWAY_TOOL_H
#define OTARI_WORKER_TURN_GATEWAY_TOOL_H

#include "worker/dialect/conversation.h"

#define GATEWAY_TOOL_DESCRIPTION                                                                   \
	"Runs Python in a sandboxed interpreter and returns its stdout, stderr and the files "     \
	"that it made. Variables, imports and files are kept between calls of the same request."
#define GATEWAY_TOOL_SCHEMA                                                                        \
	"{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\",\"description\":"      \
	"\"The Python code to run.\"}},\"required\":[\"code\"]}"

struct gateway_hints {
	struct str header;  /* request's tools_header, else the deployment's, else empty */
	struct str purpose; /* declaration's, else workspace's, else deployment's, else empty */
};

/* Appends the function tool under a name that collides with none of the client's own tools,
 * retargets a forced tool_choice that named the declaration, and puts the hint into the system
 * text. Returns the name. */
struct str gateway_tool_install(
    struct conversation *conv, const struct tool *claimed, const struct gateway_hints *hints);
/* The code of a call: `arguments` must be a JSON object with a string member "code"; else STR_NULL.
 */
struct str gateway_tool_code(struct arena *a, struct str arguments);

#endif
