#include "worker/api/tool_setting.h"

#include <stddef.h>
#include <string.h>

#include "conf/validate.h"

static const char *const EXECUTORS[] = {"auto", "otari", "provider", NULL};

const struct tool_setting tool_settings[] = {
    {.key = "sandbox_url",
	.service = "sandbox",
	.type = "url",
	.description = "The sandbox that runs code; without one, declarations are forwarded",
	.is_file_only = true},
    {.key = "sandbox_session_image",
	.service = "sandbox",
	.type = "str",
	.description = "Image of a session, where the sandbox has images",
	.is_file_only = true},
    {.key = "sandbox_purpose_hint",
	.service = "sandbox",
	.type = "str",
	.description = "What the model is told to use the sandbox for"},
    {.key = "code_execution_executor",
	.service = "sandbox",
	.type = "str",
	.description = "Who runs a provider's code execution tool; auto: the provider where it has "
		       "one, else the sandbox",
	.options = EXECUTORS},
    {.key = "tools_header",
	.service = "tools",
	.type = "str",
	.description = "The line above the hints about the gateway's tools"},
    {.key = NULL},
};
_Static_assert(sizeof(tool_settings) / sizeof(tool_settings[0]) <= TOOL_SETTINGS_MAX + 1, "");

const struct tool_setting *
tool_setting_find(const char *key)
{
	for (const struct tool_setting *t = tool_settings; t->key != NULL; t++)
		if (strcmp(t->key, key) == 0)
			return t;
	return NULL;
}

struct str
tool_setting_value(const struct snapshot *s, const struct tool_setting *t)
{
	const struct snap_settings *in_force = &snapshot_policy(s)->settings;
	const struct {
		const char *key;
		struct snap_str value;
	} texts[] = {
	    {"sandbox_url", in_force->sandbox_url},
	    {"sandbox_session_image", in_force->sandbox_session_image},
	    {"sandbox_purpose_hint", in_force->sandbox_purpose_hint},
	    {"tools_header", in_force->tools_header},
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (strcmp(t->key, texts[i].key) == 0)
			return snapshot_str(s, texts[i].value);
	return str_c(executor_name((enum snap_executor)in_force->code_execution_executor));
}

enum err_code
tool_setting_read(struct arena *a, const struct tool_setting *t, const json_t *v,
    struct store_setting *ret, struct err *reterr)
{
	enum snap_executor e;
	struct str text;
	*ret = (struct store_setting){.key = str_c(t->key), .value = STR_NULL};
	if (json_is_null(v))
		return ERR_OK;
	if (!json_is_string(v))
		return err_set(reterr, ERR_INPUT, "must be a text or null");
	text = str_n(json_string_value(v), json_string_length(v));
	if (str_trim(text).len == 0)
		return ERR_OK;
	if (t->options == NULL) {
		enum err_code rc = validate_hint(text, &text, reterr);
		if (rc == ERR_OK)
			ret->value = arena_str(a, text);
		return rc;
	}
	if (!validate_executor(text, &e))
		return err_set(reterr, ERR_INPUT, "must be one of auto, otari, provider");
	ret->value = str_c(executor_name(e));
	return ERR_OK;
}
