/* keys.h - the one table of configuration keys: names, types, defaults, limits, effects, texts
 *
 * Process: any. Constant. The loader, the dump, the shipped otari.conf and the man page are all
 * made from it.
 */
#ifndef OTARI_CONF_KEYS_H
#define OTARI_CONF_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define CONF_KEYS_MAX 128u

enum conf_type {
	KT_STR,     /* struct str; blank: not set */
	KT_SECRET,  /* struct str, never shown */
	KT_DB_URL,  /* struct str, password hidden */
	KT_URL,     /* struct str, http(s) */
	KT_WRITTEN, /* path that we write, relative to state_dir */
	KT_READ,    /* path that we read, relative to the file's folder */
	KT_LISTEN,  /* struct str, host:port */
	KT_BOOL,    /* bool */
	KT_UINT,    /* uint64_t within min..max; also sizes (64MiB) */
	KT_AUTO,    /* uint64_t; "auto" or none is 0 */
	KT_ENUM,    /* uint64_t, place in `choices` */
	KT_LIST,    /* struct conf_list of texts */
	KT_PAIRS,   /* struct conf_pairs: a map of texts */
	KT_SECTION, /* a map or list with a loader of its own */
};

enum conf_effect {
	EFFECT_SNAPSHOT, /* the next request */
	EFFECT_WORKERS,  /* workers are replaced one by one */
	EFFECT_SPAWNER,  /* a new spawner takes over */
	EFFECT_RESTART,  /* only a restart */
};

struct conf_key {
	const char *group; /* heading, of the first key of a group only */
	const char *name;
	enum conf_type type;
	size_t off;          /* in struct conf */
	const char *dflt;    /* text form; NULL: not set */
	const char *unit;    /* "ms", "bytes", …; NULL */
	uint64_t min, max;   /* KT_UINT, KT_AUTO */
	const char *choices; /* KT_ENUM: "a|b|c", counted from `min` */
	enum conf_effect effect;
	const char *doc; /* one sentence */
};

/* Where a value came from. */
enum conf_from { FROM_DEFAULT, FROM_FILE, FROM_ENVIRON };
struct conf_origin {
	enum conf_from from;
	uint32_t line;   /* FROM_FILE */
	uint64_t digest; /* of a section's text, to tell changes */
};

const struct conf_key *conf_keys(size_t *ret_count);
const struct conf_key *conf_key_find(struct str name); /* NULL: unknown */
size_t conf_key_place(const struct conf_key *k);       /* in the table, and in conf.origins */
const char *conf_effect_name(enum conf_effect e);
/* The known name that name was probably meant to be, or NULL. names ends with NULL. */
const char *conf_nearest(struct str name, const char *const *names);
const char *conf_key_nearest(struct str name);

#endif
