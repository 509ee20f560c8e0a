/* tool_setting.h - the deployment's tool settings that the API shows and changes
 *
 * Process: worker. Pure. What the builder folds into the snapshot is in builder/policy.c, by the
 * same names.
 */
#ifndef OTARI_WORKER_API_TOOL_SETTING_H
#define OTARI_WORKER_API_TOOL_SETTING_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "ipc/snapshot.h"
#include "storage/sql/store_setting.h"

struct tool_setting {
	const char *key, *service, *type, *description;
	const char *const *options; /* ends with NULL; NULL: any text */
	bool is_file_only;          /* it needs a process of its own: otari.conf starts that */
};

extern const struct tool_setting tool_settings[]; /* ends with a NULL key */
#define TOOL_SETTINGS_MAX 8u

const struct tool_setting *tool_setting_find(const char *key); /* NULL: unknown */
/* The value in force; STR_NULL: none. Points into the snapshot or is static. */
struct str tool_setting_value(const struct snapshot *s, const struct tool_setting *t);
/* A member of a PATCH: a text, or null or blank to clear. ERR_INPUT: the rule that v breaks. */
MUST_CHECK enum err_code tool_setting_read(struct arena *a, const struct tool_setting *t,
    const json_t *v, struct store_setting *ret, struct err *reterr);

#endif
