#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup.h"

#define TEXT_BYTES 4096

bool
cgroup_bounds(const struct cgroup *c, enum cgroup_controller k)
{
	return (c->controllers & CGROUP_BIT(k)) != 0;
}

size_t
cgroup_join_fds(const struct cgroup *c, uint32_t slot, int ret[CGROUP_TREES])
{
	if (slot >= c->slot_count)
		return 0;
	memcpy(ret, c->slots[slot].join, sizeof(c->slots[slot].join));
	return c->trees;
}

int
cgroup_events_fd(const struct cgroup *c, uint32_t slot)
{
	return slot < c->slot_count ? c->slots[slot].events : -1;
}

static struct str
read_again(int fd, char text[TEXT_BYTES])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, TEXT_BYTES, 0);
	return str_n(text, n < 0 ? 0 : (size_t)n);
}

uint64_t
cgroup_slot_usage(const struct cgroup *c, uint32_t slot)
{
	char text[TEXT_BYTES];
	uint64_t bytes;
	if (slot >= c->slot_count)
		return 0;
	struct str s = str_trim(read_again(c->slots[slot].usage, text));
	return str_u64(s, &bytes) ? bytes : UINT64_MAX;
}

bool
cgroup_slot_is_lost(const struct cgroup *c, uint32_t slot)
{
	char c1;
	return slot < c->slot_count && c->slots[slot].usage >= 0 &&
	       pread(c->slots[slot].usage, &c1, 1, 0) < 0 && errno == ENODEV;
}

bool
cgroup_slot_is_clean(const struct cgroup *c, uint32_t slot)
{
	char text[TEXT_BYTES];
	if (c->trees == 0)
		return true;
	if (slot >= c->slot_count)
		return false;
	if (cgroup_slot_usage(c, slot) <= CGROUP_OLD_BYTES)
		return true;
	/* Files that the last session was the first to read are counted to it until they go. */
	return cgroup_private_bytes(read_again(c->slots[slot].stat, text)) <= CGROUP_OLD_BYTES;
}

uint64_t
cgroup_slot_kills(struct cgroup *c, uint32_t slot)
{
	char text[TEXT_BYTES];
	uint64_t all;
	if (slot >= c->slot_count ||
	    !cgroup_value(read_again(c->slots[slot].events, text), STR("oom_kill"), &all))
		return 0;
	uint64_t more = all - c->slots[slot].kills;
	c->slots[slot].kills = all;
	return more;
}

void
cgroup_drop_locks(struct cgroup *c)
{
	for (size_t i = 0; i < c->trees; i++)
		fd_close(&c->lock[i]);
}

void
cgroup_free(struct cgroup *c)
{
	for (uint32_t i = 0; i < c->slot_count; i++) {
		struct cgroup_slot *s = &c->slots[i];
		for (size_t k = 0; k < CGROUP_TREES; k++)
			fd_close(&s->join[k]);
		fd_close(&s->events);
		fd_close(&s->usage);
		fd_close(&s->stat);
	}
	cgroup_drop_locks(c);
	mem_free(c->slots);
	c->slots = NULL;
	c->slot_count = 0;
	c->trees = 0;
	c->version = c->controllers = 0;
}
