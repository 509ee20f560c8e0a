#include "worker/dialect/mapping.h"

#include "base/err.h"

/* --- stop reasons --- */

struct word_reason {
	const char *word;
	enum finish_reason reason;
};

/* The first four are the wire's own; the rest is what compatible servers answer instead. */
static const struct word_reason chat_words[] = {
    {"stop", FINISH_STOP},
    {"length", FINISH_LENGTH},
    {"tool_calls", FINISH_TOOL},
    {"content_filter", FINISH_CONTENT_FILTER},
    {"function_call", FINISH_TOOL},
    {"eos", FINISH_STOP},
    {"eos_token", FINISH_STOP},
    {"end_turn", FINISH_STOP},
    {"completed", FINISH_STOP},
    {"STOP", FINISH_STOP},
    {"stop_sequence", FINISH_STOP},
    {"max_tokens", FINISH_LENGTH},
    {"MAX_TOKENS", FINISH_LENGTH},
    {"model_length", FINISH_LENGTH},
    {"tool_use", FINISH_TOOL},
    {"tool_call", FINISH_TOOL},
    {"refusal", FINISH_REFUSAL},
    {"SAFETY", FINISH_CONTENT_FILTER},
};

static const struct word_reason messages_words[] = {
    {"end_turn", FINISH_STOP},
    {"max_tokens", FINISH_LENGTH},
    {"tool_use", FINISH_TOOL},
    {"stop_sequence", FINISH_STOP_SEQUENCE},
    {"refusal", FINISH_REFUSAL},
    {"pause_turn", FINISH_PAUSE},
    {"model_context_window_exceeded", FINISH_CONTEXT},
};

/* Reasons of an incomplete answer. */
static const struct word_reason responses_words[] = {
    {"max_output_tokens", FINISH_LENGTH},
    {"max_tokens", FINISH_LENGTH},
    {"length", FINISH_LENGTH},
    {"content_filter", FINISH_CONTENT_FILTER},
};

/* FINISH_OTHER has no word: the writer of the same wire repeats the one it was given. */
static const struct {
	const char *chat, *messages;
	const char *responses; /* why it is incomplete; NULL: it is complete */
} finish_words[] = {
    [FINISH_STOP] = {"stop", "end_turn", NULL},
    [FINISH_LENGTH] = {"length", "max_tokens", "max_output_tokens"},
    [FINISH_TOOL] = {"tool_calls", "tool_use", NULL},
    [FINISH_STOP_SEQUENCE] = {"stop", "stop_sequence", NULL},
    [FINISH_REFUSAL] = {"content_filter", "refusal", NULL},
    [FINISH_CONTENT_FILTER] = {"content_filter", "refusal", "content_filter"},
    [FINISH_PAUSE] = {"stop", "pause_turn", "max_output_tokens"},
    [FINISH_CONTEXT] = {"length", "model_context_window_exceeded", "max_output_tokens"},
    [FINISH_OTHER] = {"stop", "end_turn", NULL},
};

static enum finish_reason
find_reason(const struct word_reason *t, size_t n, struct str word)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(word, str_c(t[i].word)))
			return t[i].reason;
	return FINISH_OTHER;
}

enum finish_reason
finish_of_chat(struct str word)
{
	return find_reason(chat_words, ARRAY_LEN(chat_words), word);
}

enum finish_reason
finish_of_messages(struct str word)
{
	return find_reason(messages_words, ARRAY_LEN(messages_words), word);
}

enum finish_reason
finish_of_responses(struct str word)
{
	return find_reason(responses_words, ARRAY_LEN(responses_words), word);
}

const char *
finish_to_responses(enum finish_reason r)
{
	return finish_words[r].responses;
}

const char *
finish_to_chat(enum finish_reason r)
{
	return finish_words[r].chat;
}

const char *
finish_to_messages(enum finish_reason r)
{
	return finish_words[r].messages;
}

/* --- errors --- */

/* `upstream` is the type that clients of the Python gateway find in `detail`. */
static const struct {
	int status;
	const char *messages, *openai, *upstream;
} error_types[] = {
    {400, "invalid_request_error", "invalid_request_error", "invalid_request_error"},
    {401, "authentication_error", "invalid_request_error", "authentication_error"},
    {402, "billing_error", "insufficient_quota", "invalid_request_error"},
    {403, "permission_error", "invalid_request_error", "permission_error"},
    {404, "not_found_error", "invalid_request_error", "not_found_error"},
    {409, "conflict_error", "invalid_request_error", "api_error"},
    {413, "request_too_large", "invalid_request_error", "api_error"},
    {422, "invalid_request_error", "invalid_request_error", "invalid_request_error"},
    {429, "rate_limit_error", "rate_limit_error", "rate_limit_error"},
    {500, "api_error", "server_error", "api_error"},
    {504, "timeout_error", "server_error", "api_error"},
    {529, "overloaded_error", "server_error", "api_error"},
    {503, "overloaded_error", "server_error", "api_error"},
    {408, "timeout_error", "invalid_request_error", "api_error"},
};

static size_t
error_row(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(error_types); i++)
		if (error_types[i].status == status)
			return i;
	return error_row(status >= 400 && status < 500 ? 400 : 500);
}

const char *
error_type_for(enum wire w, int status)
{
	size_t i = error_row(status);
	return w == WIRE_MESSAGES ? error_types[i].messages : error_types[i].openai;
}

const char *
error_type_upstream(int status)
{
	return error_types[error_row(status)].upstream;
}

int
error_status_of(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(error_types); i++)
		if (str_eq(type, str_c(error_types[i].messages)))
			return error_types[i].status;
	if (str_eq(type, STR("rate_limit_exceeded")) || str_eq(type, STR("insufficient_quota")))
		return 429;
	return str_eq(type, STR("server_error")) ? 500 : 0;
}

/* Codes of failed Responses answers; all others are the provider's own trouble. */
static const struct {
	const char *code;
	int status;
} response_codes[] = {
    {"context_length_exceeded", 400},
    {"invalid_prompt", 400},
    {"bio_policy", 400},
    {"cyber_policy", 400},
    {"content_policy_violation", 400},
    {"invalid_image", 400},
    {"invalid_image_format", 400},
    {"invalid_base64_image", 400},
    {"invalid_image_url", 400},
    {"image_too_large", 400},
    {"image_too_small", 400},
    {"image_parse_error", 400},
    {"image_content_policy_violation", 400},
    {"unsupported_image_media_type", 400},
    {"empty_image_file", 400},
    {"failed_to_download_image", 400},
    {"image_file_not_found", 400},
    {"model_not_found", 404},
    {"rate_limit_exceeded", 429},
    {"insufficient_quota", 429},
};

int
responses_error_status(struct str code)
{
	for (size_t i = 0; i < ARRAY_LEN(response_codes); i++)
		if (str_eq(code, str_c(response_codes[i].code)))
			return response_codes[i].status;
	return error_status_of(code);
}

/* --- reasoning effort --- */

static const struct {
	const char *word;
	int64_t below_budget; /* budgets under this many tokens mean this effort */
	const char *common;
} efforts[] = {
    {"none", 0, "none"},
    {"minimal", 0, "minimal"},
    {"low", 2048, "low"},
    {"medium", 8192, "medium"},
    {"high", 24576, "high"},
    {"xhigh", INT64_MAX, "high"},
    {"max", INT64_MAX, "high"},
};

struct str
effort_of_budget(int64_t budget)
{
	for (size_t i = 0; i < ARRAY_LEN(efforts); i++)
		if (budget < efforts[i].below_budget)
			return str_c(efforts[i].word);
	return STR("high");
}

bool
effort_known(struct str effort)
{
	for (size_t i = 0; i < ARRAY_LEN(efforts); i++)
		if (str_eq(effort, str_c(efforts[i].word)))
			return true;
	return false;
}

struct str
effort_common(struct str effort)
{
	for (size_t i = 0; i < ARRAY_LEN(efforts); i++)
		if (str_eq(effort, str_c(efforts[i].word)))
			return str_c(efforts[i].common);
	return effort;
}

/* --- tools --- */

bool
type_declares_code(struct str type)
{
	return str_eq(type, STR("otari_code_execution")) || str_eq(type, STR("code_execution")) ||
	       str_eq(type, STR("code_interpreter")) || str_starts(type, STR("code_execution_"));
}

static const struct client_tool client_tools[] = {
    {"bash_", "bash", "Runs a command in a persistent bash session.",
	"{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"},"
	"\"restart\":{\"type\":\"boolean\"}}}"},
    {"text_editor_20250728", "str_replace_based_edit_tool", "Views, creates and edits text files.",
	"{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\",\"enum\":[\"view\","
	"\"create\",\"str_replace\",\"insert\"]},\"path\":{\"type\":\"string\"},"
	"\"file_text\":{\"type\":\"string\"},\"old_str\":{\"type\":\"string\"},"
	"\"new_str\":{\"type\":\"string\"},\"insert_line\":{\"type\":\"integer\"},"
	"\"insert_text\":{\"type\":\"string\"},"
	"\"view_range\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
	"\"required\":[\"command\",\"path\"]}"},
    {"memory_", "memory", "Keeps notes in files below /memories.",
	"{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\",\"enum\":[\"view\","
	"\"create\",\"str_replace\",\"insert\",\"delete\",\"rename\"]},"
	"\"path\":{\"type\":\"string\"},\"file_text\":{\"type\":\"string\"},"
	"\"old_str\":{\"type\":\"string\"},\"new_str\":{\"type\":\"string\"},"
	"\"insert_line\":{\"type\":\"integer\"},\"insert_text\":{\"type\":\"string\"},"
	"\"old_path\":{\"type\":\"string\"},\"new_path\":{\"type\":\"string\"},"
	"\"view_range\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
	"\"required\":[\"command\"]}"},
};

const struct client_tool *
client_tool_of(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(client_tools); i++)
		if (str_starts(type, str_c(client_tools[i].type_prefix)))
			return &client_tools[i];
	return NULL;
}

/* --- top-level members --- */

struct member {
	const char *key;
	enum member_use use;
};

static const struct member gateway_members[] = {
    {"max_tool_iterations", MEMBER_GATEWAY},
    {"tools_header", MEMBER_GATEWAY},
    {"guardrails", MEMBER_GATEWAY},
    {"mcp_server_ids", MEMBER_GATEWAY},
    {"session_label", MEMBER_GATEWAY},
};

static const struct member chat_members[] = {
    {"model", MEMBER_MAPPED},
    {"messages", MEMBER_MAPPED},
    {"stream", MEMBER_MAPPED},
    {"stream_options", MEMBER_MAPPED},
    {"max_tokens", MEMBER_MAPPED},
    {"max_completion_tokens", MEMBER_MAPPED},
    {"temperature", MEMBER_MAPPED},
    {"top_p", MEMBER_MAPPED},
    {"n", MEMBER_MAPPED},
    {"stop", MEMBER_MAPPED},
    {"tools", MEMBER_MAPPED},
    {"tool_choice", MEMBER_MAPPED},
    {"functions", MEMBER_MAPPED},
    {"function_call", MEMBER_MAPPED},
    {"parallel_tool_calls", MEMBER_MAPPED},
    {"response_format", MEMBER_MAPPED},
    {"reasoning_effort", MEMBER_MAPPED},
    {"verbosity", MEMBER_MAPPED},
    {"user", MEMBER_MAPPED},
    {"service_tier", MEMBER_HINT},
    {"store", MEMBER_HINT},
    {"metadata", MEMBER_HINT},
    {"prompt_cache_key", MEMBER_HINT},
    {"prompt_cache_options", MEMBER_HINT},
    {"prompt_cache_retention", MEMBER_HINT},
    {"safety_identifier", MEMBER_HINT},
};

static const struct member messages_members[] = {
    {"model", MEMBER_MAPPED},
    {"messages", MEMBER_MAPPED},
    {"system", MEMBER_MAPPED},
    {"stream", MEMBER_MAPPED},
    {"max_tokens", MEMBER_MAPPED},
    {"temperature", MEMBER_MAPPED},
    {"top_p", MEMBER_MAPPED},
    {"stop_sequences", MEMBER_MAPPED},
    {"tools", MEMBER_MAPPED},
    {"tool_choice", MEMBER_MAPPED},
    {"thinking", MEMBER_MAPPED},
    {"output_config", MEMBER_MAPPED},
    {"output_format", MEMBER_MAPPED},
    {"metadata", MEMBER_MAPPED},
    {"container", MEMBER_MAPPED}, /* kept by the turn, not by the provider */
    {"service_tier", MEMBER_HINT},
    {"cache_control", MEMBER_HINT},
    {"diagnostics", MEMBER_HINT},
};

static const struct member responses_members[] = {
    {"model", MEMBER_MAPPED},
    {"input", MEMBER_MAPPED},
    {"instructions", MEMBER_MAPPED},
    {"stream", MEMBER_MAPPED},
    {"stream_options", MEMBER_MAPPED},
    {"max_output_tokens", MEMBER_MAPPED},
    {"temperature", MEMBER_MAPPED},
    {"top_p", MEMBER_MAPPED},
    {"tools", MEMBER_MAPPED},
    {"tool_choice", MEMBER_MAPPED},
    {"parallel_tool_calls", MEMBER_MAPPED},
    {"text", MEMBER_MAPPED},
    {"reasoning", MEMBER_MAPPED},
    {"include", MEMBER_MAPPED},
    {"user", MEMBER_MAPPED},
    {"safety_identifier", MEMBER_MAPPED},
    {"previous_response_id", MEMBER_MAPPED},
    {"store", MEMBER_MAPPED},
    {"background", MEMBER_MAPPED}, /* true is refused */
    {"service_tier", MEMBER_HINT},
    {"metadata", MEMBER_HINT},
    {"prompt_cache_key", MEMBER_HINT},
    {"prompt_cache_options", MEMBER_HINT},
    {"prompt_cache_retention", MEMBER_HINT},
};

/* Clients that spell out what holds anyway ask for nothing. */
static const struct {
	enum wire wire;
	const char *key, *value;
} defaults[] = {
    {WIRE_CHAT, "logprobs", "false"},
    {WIRE_CHAT, "frequency_penalty", "0"},
    {WIRE_CHAT, "presence_penalty", "0"},
    {WIRE_RESPONSES, "truncation", "\"disabled\""},
    {WIRE_RESPONSES, "top_logprobs", "0"},
};

bool
member_is_default(enum wire w, struct str key, struct str raw)
{
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		if (defaults[i].wire == w && str_eq(key, str_c(defaults[i].key)) &&
		    str_eq(raw, str_c(defaults[i].value)))
			return true;
	return str_eq(raw, STR("null"));
}

/* MEMBER_GATEWAY is the same on all wires. */
static const struct {
	const struct member *list;
	size_t count;
} members[] = {
    [WIRE_CHAT] = {chat_members, ARRAY_LEN(chat_members)},
    [WIRE_MESSAGES] = {messages_members, ARRAY_LEN(messages_members)},
    [WIRE_RESPONSES] = {responses_members, ARRAY_LEN(responses_members)},
};

static enum member_use
find_member(const struct member *t, size_t n, struct str key)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(key, str_c(t[i].key)))
			return t[i].use;
	return MEMBER_UNKNOWN;
}

enum member_use
member_use(enum wire w, struct str key)
{
	enum member_use use = find_member(gateway_members, ARRAY_LEN(gateway_members), key);
	return use != MEMBER_UNKNOWN ? use : find_member(members[w].list, members[w].count, key);
}

const char *
member_at(enum wire w, size_t i, enum member_use *ret_use)
{
	const struct member *m = NULL;
	if (i < members[w].count)
		m = &members[w].list[i];
	else if (i - members[w].count < ARRAY_LEN(gateway_members))
		m = &gateway_members[i - members[w].count];
	if (m == NULL)
		return NULL;
	*ret_use = m->use;
	return m->key;
}
