#include <string.h>

#include "base/err.h"
#include "sandbox/cgroup/cgroup.h"

/* Fields of a line of mountinfo (proc(5)): id parent major:minor root mount-point options
 * [tag…] - type source super-options */
struct mount_line {
	struct str root, point, options, type, super;
};

static bool
parse_mount(struct str line, struct mount_line *ret)
{
	struct str f[6], rest = line, piece;
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		if (!str_split(&rest, ' ', &f[i]))
			return false;
	do
		if (!str_split(&rest, ' ', &piece))
			return false;
	while (!str_eq(piece, STR("-")));
	struct str source;
	ret->root = f[3];
	ret->point = f[4];
	ret->options = f[5];
	return str_split(&rest, ' ', &ret->type) && str_split(&rest, ' ', &source) &&
	       str_split(&rest, ' ', &ret->super);
}

static bool
has_word(struct str list, char sep, struct str word)
{
	for (struct str piece; str_split(&list, sep, &piece);)
		if (str_eq(piece, word))
			return true;
	return false;
}

/* The path of this process in the hierarchy that has the controller; of v2 when it is "". */
static bool
own_path(struct str self, struct str controller, struct str *ret)
{
	for (struct str line; str_split(&self, '\n', &line);) {
		struct str id, names;
		if (!str_split(&line, ':', &id) || !str_split(&line, ':', &names))
			continue;
		bool is_it = controller.len == 0 ? str_eq(id, STR("0")) && names.len == 0
						 : has_word(names, ',', controller);
		if (is_it && line.ptr != NULL) {
			*ret = line;
			return true;
		}
	}
	return false;
}

/* Appends with the kernel's \ooo taken back. */
static bool
append(char *dst, size_t room, struct str s, bool is_escaped)
{
	size_t at = strlen(dst); /* of ours */
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (is_escaped && c == '\\') {
			unsigned v = 0;
			if (s.len - i < 4)
				return false;
			for (size_t k = 1; k < 4; k++) {
				if (s.ptr[i + k] < '0' || s.ptr[i + k] > '7')
					return false;
				v = v * 8 + (unsigned)(s.ptr[i + k] - '0');
			}
			c = (char)v;
			i += 3;
		}
		if (at + 1 >= room || c == '\0')
			return false;
		dst[at++] = c;
	}
	dst[at] = '\0';
	return true;
}

/* What of path lies below root, which both are named from the same place; false: nothing. */
static bool
below(struct str path, struct str root, struct str *ret)
{
	/* A cgroup that is outside of our cgroup namespace is named by "/..". */
	if (str_find(path, STR("/..")) != SIZE_MAX || str_find(root, STR("/..")) != SIZE_MAX)
		return false;
	if (str_eq(root, STR("/"))) {
		*ret = str_eq(path, STR("/")) ? STR("") : path;
		return true;
	}
	if (!str_starts(path, root))
		return false;
	*ret = str_from(path, root.len);
	return ret->len == 0 || ret->ptr[0] == '/';
}

static void
take(const struct mount_line *m, struct str path, struct cgroup_place *ret)
{
	struct cgroup_place p = {.is_read_only = has_word(m->options, ',', STR("ro")) ||
						 has_word(m->super, ',', STR("ro"))};
	struct str rest;
	/* The same hierarchy may be mounted more than once: one to write to is better. */
	if (ret->own[0] != '\0' && (p.is_read_only || !ret->is_read_only))
		return;
	if (!below(path, m->root, &rest) || !append(p.own, sizeof(p.own), m->point, true))
		return;
	p.mount_len = strlen(p.own); /* of ours */
	if (append(p.own, sizeof(p.own), rest, false))
		*ret = p;
}

void
cgroup_find_places(struct str mountinfo, struct str self, struct cgroup_places *ret)
{
	static const char *const names[CGROUP_CONTROLLERS] = {
	    [CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids", [CGROUP_CPU] = "cpu"};
	memset(ret, 0, sizeof(*ret));
	for (struct str line; str_split(&mountinfo, '\n', &line);) {
		struct mount_line m;
		struct str path;
		if (!parse_mount(line, &m))
			continue;
		if (str_eq(m.type, STR("cgroup2")) && own_path(self, STR(""), &path))
			take(&m, path, &ret->v2);
		if (!str_eq(m.type, STR("cgroup")))
			continue;
		for (size_t k = 0; k < CGROUP_CONTROLLERS; k++)
			if (has_word(m.super, ',', str_c(names[k])) &&
			    own_path(self, str_c(names[k]), &path))
				take(&m, path, &ret->v1[k]);
	}
}
