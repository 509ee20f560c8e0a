/* The route tables of both listeners. */
#include "worker/api/completion.h"
#include "worker/api/handlers.h"
#include "worker/api/route.h"

static void
chat_create(struct request *req)
{
	completion_start(req, WIRE_CHAT);
}

static void
messages_create(struct request *req)
{
	completion_start(req, WIRE_MESSAGES);
}

static void
responses_create(struct request *req)
{
	completion_start(req, WIRE_RESPONSES);
}

static void
messages_count_tokens(struct request *req)
{
	request_error(req, 501, NULL, STR("Counting tokens is not built yet"));
}

#define R(method, path, access, flags, handle)                                                     \
	{                                                                                          \
		HTTP_##method, path, access, flags, handle, "/v1" path                             \
	}

const struct route route_public[] = {
    R(GET, "/health", ACCESS_OPEN, 0, health_public),
    R(POST, "/chat/completions", ACCESS_CALLER, ROUTE_OPENAI, chat_create),
    R(POST, "/messages", ACCESS_CALLER, ROUTE_MESSAGES, messages_create),
    R(POST, "/messages/count_tokens", ACCESS_CALLER, ROUTE_MESSAGES, messages_count_tokens),
    R(POST, "/responses", ACCESS_CALLER, ROUTE_OPENAI, responses_create),
    R(GET, "/responses/{id}", ACCESS_CALLER, ROUTE_OPENAI, responses_show),
    R(DELETE, "/responses/{id}", ACCESS_CALLER, ROUTE_OPENAI, responses_delete),
    R(GET, "/responses/{id}/input_items", ACCESS_CALLER, ROUTE_OPENAI, responses_show_items),
    R(POST, "/responses/{id}/cancel", ACCESS_CALLER, ROUTE_OPENAI, responses_cancel),
    R(GET, "/models", ACCESS_CALLER, 0, models_show_all),
    R(GET, "/models/{id*}", ACCESS_CALLER, 0, models_show),
    R(GET, "/tools", ACCESS_CALLER, 0, tools_show_all),
    R(POST, "/files", ACCESS_CALLER, ROUTE_FILES, files_upload),
    R(GET, "/files", ACCESS_CALLER, ROUTE_FILES, files_show_all),
    R(GET, "/files/{id}", ACCESS_CALLER, ROUTE_FILES, files_show),
    R(DELETE, "/files/{id}", ACCESS_CALLER, ROUTE_FILES, files_delete),
    R(GET, "/files/{id}/content", ACCESS_CALLER, ROUTE_FILES, files_content),
    R(POST, "/keys", ACCESS_MASTER, 0, keys_create),
    R(GET, "/keys", ACCESS_MASTER, 0, keys_show_all),
    R(GET, "/keys/{id}", ACCESS_MASTER, 0, keys_show),
    R(DELETE, "/keys/{id}", ACCESS_MASTER, 0, keys_delete),
    R(POST, "/users", ACCESS_MASTER, 0, users_create),
    R(GET, "/users", ACCESS_MASTER, 0, users_show_all),
    R(POST, "/workspaces", ACCESS_MASTER, 0, workspaces_create),
    R(GET, "/workspaces", ACCESS_MASTER, 0, workspaces_show_all),
    R(GET, "/workspaces/{id}", ACCESS_MASTER, 0, workspaces_show),
    R(PATCH, "/workspaces/{id}", ACCESS_MASTER, 0, workspaces_rename),
    R(DELETE, "/workspaces/{id}", ACCESS_MASTER, 0, workspaces_delete),
    R(GET, "/workspaces/{id}/code-execution-policy", ACCESS_MASTER, 0, policy_show),
    R(PUT, "/workspaces/{id}/code-execution-policy", ACCESS_MASTER, 0, policy_put),
    R(DELETE, "/workspaces/{id}/code-execution-policy", ACCESS_MASTER, 0, policy_delete),
    R(GET, "/tool-settings", ACCESS_MASTER, 0, tool_settings_show),
    R(PATCH, "/tool-settings", ACCESS_MASTER, 0, tool_settings_change),
    R(POST, "/tool-settings/{id}/test", ACCESS_MASTER, 0, tool_settings_test),
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};

/* For load balancers, which know no prefix. */
const struct route route_root[] = {
    {HTTP_GET, "/health", ACCESS_OPEN, 0, health_public, "/health"},
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};

const struct route route_admin[] = {
    {HTTP_GET, "/health", ACCESS_OPEN, 0, health_details, "/health"},
    {HTTP_GET, "/metrics", ACCESS_OPEN, 0, metrics_show, "/metrics"},
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};
