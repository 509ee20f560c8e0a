/* arena.h - memory of one request (or one build, one sweep), freed at once
 *
 * Process: any. Not thread-safe; may move between threads while nobody else uses it.
 * Owns:    all it hands out; nothing in it is freed singly.
 * Limits:  the cap given at creation. Over it arena_alloc returns NULL and the arena stays
 * "overflowed"; str and buf helpers accept NULL, so test arena_overflowed() once before answering.
 */
#ifndef OTARI_BASE_ARENA_H
#define OTARI_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct arena;

struct arena *arena_new(size_t cap_bytes); /* returns owned; free with arena_free */
/* Forgets everything handed out (deferred calls run), keeps a block for the next use: for scratch
 * arenas. */
void arena_reset(struct arena *a);
void arena_free(struct arena **a); /* NULL allowed; runs the deferred calls in reverse */
/* Zeroed, aligned to 16. NULL once over the cap. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_array(struct arena *a, size_t count, size_t size);
#define ARENA_NEW(a, type)          ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_NEW_ARRAY(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))
/* Copies; the result is followed by a NUL that is not counted. Empty on overflow. */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
/* NUL-terminated copy ("" on overflow). Only for bytes known to hold no NUL. */
const char *arena_cstr(struct arena *a, struct str s);
/* Runs fn(ptr) when the arena is freed: say it in the line after acquiring what is not arena
 * memory. */
void arena_defer(struct arena *a, void (*fn)(void *), void *ptr);
bool arena_overflowed(const struct arena *a);
size_t arena_used(const struct arena *a);

#endif
