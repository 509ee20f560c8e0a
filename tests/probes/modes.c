/* modes.c - the hosts that the probes play: with and without each wall that is not required
 *
 * Pairwise: whatever two of {ids, cgroup, Landlock, zygote, filter} a host has or lacks, there is a
 * row with just these two. Four rows beside "best" do that for the first four. Each row names the
 * pairs that it alone adds to those above it; probe_modes_cover() says when one is missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "sandbox/jail/jail.h"
#include "tests/probes/probe.h"

struct probe_mode probe_mode = {.name = "best"};

static const char *const matrix[] = {
    /* root's range of ids, cgroup, Landlock, zygote: every pair of these */
    "best",
    /* root with none; none with no Landlock, none cold; no Landlock cold */
    "no-cgroup+no-landlock+cold",
    /* a plain user with a cgroup, with no Landlock, cold; a cgroup with no Landlock, cold */
    "plain+delegated+no-landlock+cold",
    /* a plain user with none, with Landlock; none with Landlock; Landlock cold */
    "plain+no-cgroup+cold",
    /* a plain user with the zygote; none with the zygote; no Landlock with the zygote */
    "plain+no-cgroup+no-landlock",
    /* No filter, the namespaces by themselves, whose only task is what they are for: the host, its
     * secrets, its processes and its network stay out of reach. No filter with all that there is,
     * and with none of it. */
    "no-seccomp",
    "plain+no-cgroup+no-landlock+cold+no-seccomp",
};

static bool
apply(struct probe_mode *m, struct str word)
{
	if (str_eq(word, STR("plain")))
		m->is_plain = true;
	else if (str_eq(word, STR("delegated")))
		m->is_delegated = true;
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

/* --- what the rows cover -----------------------------------------------------------------------
 */
enum { BY_IDS, BY_CGROUP, BY_LANDLOCK, BY_ZYGOTE, BY_FILTER, BY_ };
static const char *const names[BY_][2] = {[BY_IDS] = {"root", "plain"},
    [BY_CGROUP] = {"cgroup", "no cgroup"},
    [BY_LANDLOCK] = {"Landlock", "no Landlock"},
    [BY_ZYGOTE] = {"zygote", "cold"},
    [BY_FILTER] = {"filter", "no filter"}};

static bool
lacks(const struct probe_mode *m, size_t by)
{
	const bool what[BY_] = {[BY_IDS] = m->is_plain,
	    [BY_CGROUP] = m->is_no_cgroup || (m->is_plain && !m->is_delegated),
	    [BY_LANDLOCK] = (m->without & JAIL_WITHOUT_LANDLOCK) != 0,
	    [BY_ZYGOTE] = m->is_cold,
	    [BY_FILTER] = (m->without & JAIL_WITHOUT_SECCOMP) != 0};
	return what[by];
}

static bool
has_pair(const struct probe_mode *rows, size_t n, const size_t by[2], const bool want[2])
{
	for (size_t i = 0; i < n; i++)
		if (lacks(&rows[i], by[0]) == want[0] && lacks(&rows[i], by[1]) == want[1])
			return true;
	return false;
}

bool
probe_rows_cover(
    const struct probe_mode *rows, size_t n, bool with_filter, char *ret_missing, size_t room)
{
	for (size_t a = 0; a < BY_; a++)
		for (size_t b = a + 1; b < (with_filter ? BY_ : BY_FILTER); b++)
			for (unsigned k = 0; k < 4; k++) {
				const size_t by[2] = {a, b};
				const bool want[2] = {(k & 1) != 0, (k & 2) != 0};
				if (has_pair(rows, n, by, want))
					continue;
				(void)snprintf(ret_missing, room, "%s with %s", names[a][want[0]],
				    names[b][want[1]]);
				return false;
			}
	return true;
}

size_t
probe_matrix(struct probe_mode ret[PROBE_MODES_MAX])
{
	_Static_assert(ARRAY_LEN(matrix) <= PROBE_MODES_MAX, "room for all");
	for (size_t i = 0; i < ARRAY_LEN(matrix); i++)
		if (!parse(str_c(matrix[i]), &ret[i]))
			abort();
	return ARRAY_LEN(matrix);
}

/* --- what is to run ----------------------------------------------------------------------------
 */
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
	struct probe_mode all[PROBE_MODES_MAX];
	size_t count = probe_matrix(all);
	bool is_single = getenv("PROBES_RUN") != NULL ||
			 (getenv("PROBES") != NULL && strcmp(getenv("PROBES"), "measure") == 0);
	for (size_t i = 0; i < (is_single ? 1 : count); i++)
		if (geteuid() == 0 || all[i].is_plain || i == 0)
			ret[n++] = all[i];
	if (geteuid() != 0)
		(void)printf("SKIPPED modes with a range of ids (not root)\n");
	return n;
}

bool
probe_is_thorough(void)
{
	bool is_bare = (probe_mode.without & JAIL_WITHOUT_SECCOMP) != 0;
	const char *asked = getenv("PROBES_MODE");
	bool is_alone = asked != NULL && strchr(asked, ',') == NULL && !is_bare;
	return strcmp(probe_mode.name, "best") == 0 || is_alone;
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
