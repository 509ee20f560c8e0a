#include "sandbox/collect/select.h"

#include <string.h>

enum frame_omit
collect_admit(struct collect_budget *b, uint64_t size)
{
	if (b->files_left == 0)
		return FRAME_OMIT_COUNT;
	if (size > b->bytes_left)
		return FRAME_OMIT_BYTES;
	b->files_left--;
	b->bytes_left -= size;
	return FRAME_OMIT_END_;
}

int
collect_path_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int rc = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);
	return rc != 0 ? rc : (a.len > b.len) - (a.len < b.len);
}

void
collect_check_init(struct collect_check *c, uint32_t max_files, uint64_t max_bytes)
{
	memset(c, 0, sizeof(*c));
	c->budget = (struct collect_budget){max_files, max_bytes};
}

/* Paths ascend, first over the files, then over the omitted ones; no name comes twice. */
static bool
ascends(struct collect_check *c, struct str path)
{
	if (path.len > sizeof(c->last))
		return false;
	if (c->has_last && collect_path_cmp(path, str_n(c->last, c->last_len)) <= 0)
		return false;
	memcpy(c->last, path.ptr, path.len);
	c->last_len = (uint16_t)path.len;
	c->has_last = true;
	return true;
}

bool
collect_check_file(struct collect_check *c, const struct frame_file *f)
{
	if (c->state != COLLECT_BETWEEN || c->in_omitted || !ascends(c, f->path))
		return false;
	if (collect_admit(&c->budget, f->size) != FRAME_OMIT_END_)
		return false;
	c->state = COLLECT_IN_FILE;
	c->file_left = f->size;
	c->sent++;
	return true;
}

bool
collect_check_data(struct collect_check *c, size_t n)
{
	if (c->state != COLLECT_IN_FILE || n > c->file_left)
		return false;
	c->file_left -= n;
	return true;
}

bool
collect_check_file_end(struct collect_check *c, const struct frame_file_end *f)
{
	if (c->state != COLLECT_IN_FILE || (f->whole == 1 && c->file_left != 0))
		return false;
	c->state = COLLECT_BETWEEN;
	return true;
}

bool
collect_check_omitted(struct collect_check *c, const struct frame_omitted *f)
{
	if (c->state != COLLECT_BETWEEN || c->listed >= COLLECT_LISTED_MAX)
		return false;
	if (!c->in_omitted) {
		c->in_omitted = true;
		c->has_last = false;
	}
	if (!ascends(c, f->path))
		return false;
	c->listed++;
	return true;
}

bool
collect_check_end(struct collect_check *c, const struct frame_end *f)
{
	if (c->state != COLLECT_BETWEEN || f->sent != c->sent || f->omitted < c->listed)
		return false;
	c->state = COLLECT_ENDED;
	return true;
}
