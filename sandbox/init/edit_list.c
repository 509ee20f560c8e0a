/* edit_list.c - a folder as the text editor shows it: two levels, sorted, "size<TAB>path" a line
 *
 * Hidden names and node_modules are left out; folders end in '/' and show "-" for a size; no link
 * is followed. At most LISTED_MAX lines and one that counts the rest.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/collect/select.h"
#include "sandbox/edit/edit.h"
#include "sandbox/init/init.h"

#define LISTED_MAX 1000u
#define NAMES_MAX  (LISTED_MAX * 512u)

struct entry {
	struct str path; /* relative to the folder */
	uint64_t size;
	bool is_dir;
};

static struct entry entries[LISTED_MAX];
static char names[NAMES_MAX];
static size_t entry_count, names_len, more;

static void
add(struct str parent, struct str name, const struct stat *st)
{
	size_t n = parent.len + (parent.len > 0) + name.len;
	if (entry_count == LISTED_MAX || n > NAMES_MAX - names_len) {
		more++;
		return;
	}
	char *p = names + names_len;
	if (parent.len > 0) {
		memcpy(p, parent.ptr, parent.len);
		p[parent.len] = '/';
	}
	memcpy(p + n - name.len, name.ptr, name.len);
	names_len += n;
	entries[entry_count++] =
	    (struct entry){str_n(p, n), (uint64_t)st->st_size, S_ISDIR(st->st_mode)};
}

/* Takes fd. */
static void
list(int fd, struct str parent, bool is_top)
{
	DIR *d = fdopendir(fd);
	if (d == NULL) {
		close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		struct stat st;
		if (e->d_name[0] == '.' || strcmp(e->d_name, "node_modules") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		size_t at = entry_count;
		add(parent, str_n(e->d_name, strnlen(e->d_name, sizeof(e->d_name))), &st);
		if (!is_top || !S_ISDIR(st.st_mode) || entry_count == at)
			continue;
		int sub =
		    openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			list(sub, entries[at].path, false);
	}
	closedir(d);
}

static int
entry_cmp(const void *a, const void *b)
{
	return collect_path_cmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

struct out {
	char *p;
	size_t len, room;
	uint32_t lines;
};

/* Cut at the room. A name that is no plain text loses the bytes that are to blame. */
static void
put(struct out *o, struct str s)
{
	bool is_text = edit_is_text(s);
	for (size_t i = 0; i < s.len && o->len < o->room; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		o->p[o->len++] = c == 0x7f || c < 0x20 || (c >= 0x80 && !is_text) ? '?' : (char)c;
	}
}

static void
put_number(struct out *o, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);
	do
		digits[--n] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	put(o, str_n(digits + n, sizeof(digits) - n));
}

static void
end_line(struct out *o)
{
	if (o->len < o->room)
		o->p[o->len++] = '\n';
	o->lines++;
}

static void
put_entry(struct out *o, struct str folder, const struct entry *e)
{
	if (e->is_dir)
		put(o, STR("-"));
	else
		put_number(o, e->size);
	if (o->len < o->room)
		o->p[o->len++] = '\t';
	put(o, STR(INIT_WORK "/"));
	put(o, folder);
	if (folder.len > 0 && e->path.len > 0)
		put(o, STR("/"));
	put(o, e->path);
	if (e->is_dir && folder.len + e->path.len > 0)
		put(o, STR("/"));
	end_line(o);
}

size_t
edit_list(int fd, struct str folder, char *dst, size_t room, uint32_t *ret_lines)
{
	struct out o = {dst, 0, room, 0};
	const struct entry itself = {.is_dir = true};
	entry_count = names_len = more = 0;
	list(fd, STR(""), true);
	qsort(entries, entry_count, sizeof(entries[0]), entry_cmp);
	put_entry(&o, folder, &itself);
	for (size_t i = 0; i < entry_count; i++)
		put_entry(&o, folder, &entries[i]);
	if (more > 0) {
		put(&o, STR("["));
		put_number(&o, more);
		put(&o, STR(" more]"));
		end_line(&o);
	}
	*ret_lines = o.lines;
	return o.len;
}
