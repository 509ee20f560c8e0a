#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void *
mem_alloc(size_t n)
{
	return mem_array(1, n);
}

void *
mem_array(size_t count, size_t size)
{
	void *p = calloc(count != 0 ? count : 1, size != 0 ? size : 1);
	CHECK(p != NULL);
	return p;
}

void *
mem_grow(void *p, size_t count, size_t size)
{
	size_t total;
	CHECK(!__builtin_mul_overflow(count, size, &total));
	void *q = realloc(p, total != 0 ? total : 1);
	CHECK(q != NULL);
	return q;
}

char *
mem_strndup(const char *s, size_t n)
{
	char *p = mem_alloc(n + 1);
	if (n > 0)
		memcpy(p, s, n);
	return p;
}

char *
mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

void
mem_free(void *p)
{
	free(p);
}

void
mem_wipe(void *p, size_t n)
{
	if (p != NULL)
		explicit_bzero(p, n);
}
