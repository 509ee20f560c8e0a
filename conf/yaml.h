/* yaml.h - a YAML text as a tree of nodes that know their line
 *
 * Process: builder, otari -t, otarictl. Pure.
 * Owns:    nodes and texts live in the arena.
 * Limits:  LIMIT_CONF_BYTES, CONF_DEPTH_MAX, CONF_NODES_MAX (aliases count as what they stand for,
 * so that nested ones cannot blow up). One document; keys are plain texts and occur once; tags
 * other than !!str are refused.
 */
#ifndef OTARI_CONF_YAML_H
#define OTARI_CONF_YAML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define CONF_DEPTH_MAX 16u
#define CONF_NODES_MAX 100000u

enum conf_node_type { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct conf_node {
	enum conf_node_type type;
	uint32_t line;     /* from 1 */
	uint32_t key_line; /* of the key, in a map */
	uint32_t count;    /* children */
	bool quoted;       /* a scalar that was written in quotes or as a block */
	struct str key;    /* in a map */
	struct str text;   /* of a scalar; UTF-8 without NUL */
	struct conf_node *first, *last, *next;
};

/* An empty text gives an empty map. On ERR_INPUT *ret_line is where (0: nowhere special). */
MUST_CHECK enum err_code conf_yaml_parse(struct arena *a, struct str text, struct conf_node **ret,
    uint32_t *ret_line, struct err *reterr);
/* NULL when n is no map or has no such key. */
const struct conf_node *conf_node_get(const struct conf_node *n, const char *key);
/* Same tree, same number; layout and comments do not count. Not against an attacker. */
uint64_t conf_node_digest(const struct conf_node *n);
const char *conf_node_kind(const struct conf_node *n); /* "a list", for error texts */

#define CONF_EACH(child, parent)                                                                   \
	for (const struct conf_node *child = (parent)->first; child != NULL; child = child->next)

#endif
