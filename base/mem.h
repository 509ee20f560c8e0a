/* mem.h - heap memory for small things of our own; running out aborts (the master respawns)
 *
 * Sizes that come from a peer never reach these: they use arenas and buffers with a cap.
 */
#ifndef OTARI_BASE_MEM_H
#define OTARI_BASE_MEM_H

#include <stddef.h>

/* All return zeroed (mem_grow: unchanged prefix) memory, never NULL. Free with mem_free. */
void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull));
void *mem_array(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *mem_grow(void *p, size_t count, size_t size) __attribute__((returns_nonnull));
char *mem_strdup(const char *s) __attribute__((returns_nonnull));
char *mem_strndup(const char *s, size_t n) __attribute__((returns_nonnull));
void mem_free(void *p);
/* Overwrites before the memory is given back; for secrets. */
void mem_wipe(void *p, size_t n);

#define MEM_NEW(type)          ((type *)mem_alloc(sizeof(type)))
#define MEM_NEW_ARRAY(type, n) ((type *)mem_array((n), sizeof(type)))

#endif
