#include "sandbox/cgroup/cgroup.h"

unsigned
cgroup_controllers(struct str text)
{
	unsigned bits = 0;
	text = str_trim(text);
	for (struct str word; str_split(&text, ' ', &word);) {
		if (str_eq(word, STR("memory")))
			bits |= CGROUP_BIT(CGROUP_MEMORY);
		if (str_eq(word, STR("pids")))
			bits |= CGROUP_BIT(CGROUP_PIDS);
		if (str_eq(word, STR("cpu")))
			bits |= CGROUP_BIT(CGROUP_CPU);
	}
	return bits;
}

bool
cgroup_value(struct str text, struct str key, uint64_t *ret)
{
	for (struct str line; str_split(&text, '\n', &line);) {
		struct str name;
		if (str_split(&line, ' ', &name) && str_eq(name, key) && line.ptr != NULL)
			return str_u64(line, ret);
	}
	return false;
}

uint64_t
cgroup_private_bytes(struct str stat)
{
	uint64_t anon = 0, shmem = 0;
	if (!cgroup_value(stat, STR("anon"), &anon) && !cgroup_value(stat, STR("rss"), &anon))
		return UINT64_MAX;
	return cgroup_value(stat, STR("shmem"), &shmem) ? anon + shmem : UINT64_MAX;
}

bool
cgroup_is_our_name(struct str name)
{
	struct str word, pid, number;
	uint64_t v;
	return str_split(&name, '.', &word) && str_eq(word, STR("otari")) &&
	       str_split(&name, '.', &pid) && str_u64(pid, &v) && str_split(&name, '.', &number) &&
	       str_u64(number, &v) && name.ptr == NULL;
}
