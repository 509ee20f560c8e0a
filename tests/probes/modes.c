/* modes.c - the hosts that the probes play: with and without each wall that is not required */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "sandbox/jail/jail.h"
#include "tests/probes/probe.h"

struct probe_mode probe_mode = {.name = "best"};

/* Every pair of {ids, cgroup, Landlock, zygote} is in it, but a plain user with a cgroup, which
 * takes somebody who delegates one. Last the namespaces by themselves, whose only task is what they
 * are for: the host, its secrets, its processes and its network stay out of reach. */
static const char *const matrix[] = {"best", "cold+no-landlock", "no-cgroup+no-landlock", "plain",
    "plain+cold+no-landlock", "no-seccomp", "no-landlock+no-seccomp"};

static bool
apply(struct probe_mode *m, struct str word)
{
	if (str_eq(word, STR("plain")))
		m->is_plain = true;
	else if (str_eq(word, STR("one-id")))
		m->is_one_id = true;
	else if (str_eq(word, STR("cold")))
		m->is_cold = true;
	else if (str_eq(word, STR("no-cgroup")))
		m->is_no_cgroup = true;
	else if (str_eq(word, STR("no-landlock")))
		m->without |= JAIL_WITHOUT_LANDLOCK;
	else if (str_eq(word, STR("no-seccomp")))
		m->without |= JAIL_WITHOUT_SECCOMP;
	else if (!str_eq(word, STR("best")))
		return false;
	return true;
}

static bool
parse(struct str text, struct probe_mode *ret)
{
	struct str word;
	*ret = (struct probe_mode){0};
	if (!str_copy(ret->name, sizeof(ret->name), text))
		return false;
	while (str_split(&text, '+', &word))
		if (!apply(ret, word))
			return false;
	return true;
}

size_t
probe_modes(struct probe_mode ret[PROBE_MODES_MAX])
{
	const char *asked = getenv("PROBES_MODE");
	size_t n = 0;
	if (asked != NULL) {
		struct str list = str_c(asked), one;
		while (str_split(&list, ',', &one))
			if (n == PROBE_MODES_MAX || !parse(one, &ret[n++])) {
				(void)fprintf(stderr, "no such mode: %.*s\n", STR_FMT(one));
				return 0;
			}
		return n;
	}
	bool is_single = getenv("PROBES_RUN") != NULL ||
			 (getenv("PROBES") != NULL && strcmp(getenv("PROBES"), "measure") == 0);
	for (size_t i = 0; i < (is_single ? 1 : ARRAY_LEN(matrix)); i++)
		if (!parse(str_c(matrix[i]), &ret[n]))
			return 0;
		else if (geteuid() == 0 || ret[n].is_plain || i == 0)
			n++;
	if (geteuid() != 0)
		(void)printf("SKIPPED modes with a range of ids (not root)\n");
	return n;
}

void
probe_settings(struct sandbox_settings *ret)
{
	sandbox_settings_default(ret);
	ret->log_json = 0;
	if (geteuid() == 0 && !probe_mode.is_plain && !probe_mode.is_one_id)
		ret->uid_base = 0x20000000;
	if (getenv("PROBES_ROOTFS") != NULL)
		(void)str_copy(ret->rootfs, sizeof(ret->rootfs), str_c(getenv("PROBES_ROOTFS")));
	ret->no_cgroup = probe_mode.is_no_cgroup;
	if (probe_mode.is_cold)
		(void)str_copy(ret->preload, sizeof(ret->preload), STR(LEASE_NO_ZYGOTE));
}
