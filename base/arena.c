#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define ARENA_MAGIC 0x6172656eu
#define BLOCK_BYTES 8192u
#define ALIGN       16u

struct block {
	struct block *next;
	size_t size, used;
	_Alignas(ALIGN) unsigned char data[];
};

struct deferred {
	struct deferred *next;
	void (*fn)(void *);
	void *ptr;
};

struct arena {
	uint32_t magic;
	bool overflowed;
	size_t cap, used;
	struct block *blocks;
	struct deferred *deferred;
};

struct arena *
arena_new(size_t cap_bytes)
{
	struct arena *a = MEM_NEW(struct arena);
	a->magic = ARENA_MAGIC;
	a->cap = cap_bytes;
	return a;
}

void
arena_reset(struct arena *a)
{
	CHECK_MAGIC(a, ARENA_MAGIC);
	for (struct deferred *d = a->deferred; d != NULL;) {
		struct deferred *next = d->next;
		d->fn(d->ptr);
		mem_free(d);
		d = next;
	}
	a->deferred = NULL;
	struct block *keep = NULL;
	for (struct block *b = a->blocks; b != NULL;) {
		struct block *next = b->next;
		if (keep == NULL && b->size == BLOCK_BYTES)
			keep = b;
		else
			mem_free(b);
		b = next;
	}
	if (keep != NULL) {
		memset(keep->data, 0, keep->used);
		keep->used = 0;
		keep->next = NULL;
	}
	a->blocks = keep;
	a->used = 0;
	a->overflowed = false;
}

void
arena_free(struct arena **ap)
{
	struct arena *a = *ap;
	if (a == NULL)
		return;
	*ap = NULL;
	arena_reset(a);
	mem_free(a->blocks);
	a->magic = 0;
	mem_free(a);
}

void *
arena_alloc(struct arena *a, size_t n)
{
	CHECK_MAGIC(a, ARENA_MAGIC);
	if (n > a->cap || a->used + n > a->cap) {
		a->overflowed = true;
		return NULL;
	}
	size_t rounded = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (rounded == 0)
		rounded = ALIGN;
	struct block *b = a->blocks;
	if (b == NULL || b->size - b->used < rounded) {
		bool big = rounded > BLOCK_BYTES / 4;
		size_t size = big ? rounded : BLOCK_BYTES;
		struct block *nb = mem_alloc(sizeof(*nb) + size);
		nb->size = size;
		if (big && b != NULL) { /* keep filling the current block */
			nb->next = b->next;
			b->next = nb;
		} else {
			nb->next = b;
			a->blocks = nb;
		}
		b = nb;
	}
	void *p = b->data + b->used;
	b->used += rounded;
	a->used += rounded;
	return p;
}

void *
arena_array(struct arena *a, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total)) {
		a->overflowed = true;
		return NULL;
	}
	return arena_alloc(a, total);
}

struct str
arena_str(struct arena *a, struct str s)
{
	char *p = s.len < SIZE_MAX ? arena_alloc(a, s.len + 1) : NULL;
	if (p == NULL)
		return STR("");
	if (s.len > 0)
		memcpy(p, s.ptr, s.len);
	return (struct str){p, s.len};
}

const char *
arena_cstr(struct arena *a, struct str s)
{
	struct str c = arena_str(a, s);
	return c.ptr;
}

struct str
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	struct str ret = STR("");
	char *p = n >= 0 ? arena_alloc(a, (size_t)n + 1) : NULL;
	if (p != NULL) {
		(void)vsnprintf(p, (size_t)n + 1, fmt, again);
		ret = (struct str){p, (size_t)n};
	}
	va_end(again);
	return ret;
}

void
arena_defer(struct arena *a, void (*fn)(void *), void *ptr)
{
	CHECK_MAGIC(a, ARENA_MAGIC);
	struct deferred *d = MEM_NEW(struct deferred);
	d->fn = fn;
	d->ptr = ptr;
	d->next = a->deferred;
	a->deferred = d;
}

bool
arena_overflowed(const struct arena *a)
{
	return a->overflowed;
}

size_t
arena_used(const struct arena *a)
{
	return a->used;
}
