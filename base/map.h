/* map.h - string-keyed hash map (open addressing, seeded FNV-1a)
 *
 * Keys are copied; values are borrowed pointers. Not thread-safe. Iteration order is not defined.
 */
#ifndef OTARI_BASE_MAP_H
#define OTARI_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct map;

struct map *map_new(void); /* returns owned */
void map_free(struct map **m);
void map_put(struct map *m, struct str key, void *value); /* value non-NULL; replaces */
void *map_get(const struct map *m, struct str key);       /* NULL: absent */
void *map_del(struct map *m, struct str key);             /* the removed value, or NULL */
size_t map_count(const struct map *m);
/* Start with *pos = 0; false at the end. Do not change the map meanwhile. */
bool map_next(const struct map *m, size_t *pos, struct str *ret_key, void **ret_value);

#endif
