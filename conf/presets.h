/* presets.h - what is known of public services that serve models
 *
 * Process: any. Constant. The address includes the version; the wire's path (/chat/completions,
 * /messages, /responses) is appended to it.
 */
#ifndef OTARI_CONF_PRESETS_H
#define OTARI_CONF_PRESETS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "ipc/snapshot.h"

struct conf_preset {
	const char *type;
	const char *api_base;
	enum snap_wire wire;
	const char *key_variable;   /* NULL: a local server that needs no key */
	const char *other_variable; /* read when the first is not set; NULL */
};

const struct conf_preset *conf_presets(size_t *ret_count);
const struct conf_preset *conf_preset_find(struct str type); /* any case; NULL: unknown */

#endif
