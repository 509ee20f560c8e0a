#include "base/map.h"

#include <sys/random.h>

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

struct slot {
	char *key; /* NULL with value NULL: free; NULL key and tomb value: removed */
	size_t len;
	void *value;
};

struct map {
	struct slot *slots;
	size_t cap, used, live; /* cap is a power of two; used counts tombs too */
	uint64_t seed;
};

static char tomb;

static uint64_t
hash(const struct map *m, struct str key)
{
	uint64_t h = 0xcbf29ce484222325u ^ m->seed;
	for (size_t i = 0; i < key.len; i++)
		h = (h ^ (unsigned char)key.ptr[i]) * 0x100000001b3u;
	return h ^ (h >> 29);
}

struct map *
map_new(void)
{
	struct map *m = MEM_NEW(struct map);
	m->cap = 16;
	m->slots = MEM_NEW_ARRAY(struct slot, m->cap);
	if (getrandom(&m->seed, sizeof(m->seed), 0) != (ssize_t)sizeof(m->seed))
		m->seed = (uint64_t)(uintptr_t)m;
	return m;
}

void
map_free(struct map **mp)
{
	struct map *m = *mp;
	if (m == NULL)
		return;
	*mp = NULL;
	for (size_t i = 0; i < m->cap; i++)
		mem_free(m->slots[i].key);
	mem_free(m->slots);
	mem_free(m);
}

static struct slot *
find(const struct map *m, struct str key)
{
	for (size_t i = hash(m, key);; i++) {
		struct slot *s = &m->slots[i & (m->cap - 1)];
		if (s->value == NULL)
			return s;
		if (s->key != NULL && s->len == key.len &&
		    (key.len == 0 || memcmp(s->key, key.ptr, key.len) == 0))
			return s;
	}
}

static void
rehash(struct map *m)
{
	struct slot *old = m->slots;
	size_t old_cap = m->cap;
	m->cap = m->live * 2 >= m->cap ? m->cap * 2 : m->cap;
	m->slots = MEM_NEW_ARRAY(struct slot, m->cap);
	m->used = m->live;
	for (size_t i = 0; i < old_cap; i++) {
		if (old[i].key != NULL)
			*find(m, str_n(old[i].key, old[i].len)) = old[i];
	}
	mem_free(old);
}

void
map_put(struct map *m, struct str key, void *value)
{
	CHECK(value != NULL);
	if (m->used * 4 >= m->cap * 3)
		rehash(m);
	struct slot *s = find(m, key);
	if (s->value == NULL) {
		s->key = mem_strndup(key.ptr, key.len);
		s->len = key.len;
		m->used++;
		m->live++;
	}
	s->value = value;
}

void *
map_get(const struct map *m, struct str key)
{
	return find(m, key)->value;
}

void *
map_del(struct map *m, struct str key)
{
	struct slot *s = find(m, key);
	void *value = s->value;
	if (value != NULL) {
		mem_free(s->key);
		s->key = NULL;
		s->len = 0;
		s->value = &tomb;
		m->live--;
	}
	return value;
}

size_t
map_count(const struct map *m)
{
	return m->live;
}

bool
map_next(const struct map *m, size_t *pos, struct str *ret_key, void **ret_value)
{
	while (*pos < m->cap) {
		const struct slot *s = &m->slots[(*pos)++];
		if (s->key != NULL) {
			*ret_key = str_n(s->key, s->len);
			*ret_value = s->value;
			return true;
		}
	}
	return false;
}
