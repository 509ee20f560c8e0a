#include "sandbox/spawner/slots.h"

#include "base/check.h"
#include "base/mem.h"

void
slots_init(struct slots *s, uint32_t count)
{
	*s = (struct slots){.count = count, .free_count = count};
	s->at = mem_array(count, sizeof(s->at[0]));
	s->free = MEM_NEW_ARRAY(uint32_t, count);
	for (uint32_t i = 0; i < count; i++)
		s->free[i] = i;
}

bool
slots_take(struct slots *s, uint32_t *ret)
{
	if (s->free_count == 0)
		return false;
	*ret = s->free[s->first];
	s->first = (s->first + 1) % s->count;
	s->free_count--;
	return true;
}

void
slots_give(struct slots *s, uint32_t slot)
{
	CHECK(slot < s->count && s->free_count < s->count);
	s->at[slot] = NULL;
	s->free[(s->first + s->free_count) % s->count] = slot;
	s->free_count++;
}

void
slots_done(struct slots *s)
{
	mem_free(s->at);
	mem_free(s->free);
	*s = (struct slots){0};
}
