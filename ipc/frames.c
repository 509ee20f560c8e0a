#include "ipc/frames.h"

#include <string.h>

static void
put32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void
put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t
get32(const char *p)
{
	uint32_t v = 0;
	for (unsigned i = 0; i < 4; i++)
		v |= (uint32_t)(uint8_t)p[i] << (8 * i);
	return v;
}

static uint64_t
get64(const char *p)
{
	return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

void
frame_head_put(uint8_t dst[FRAME_HEAD], uint8_t type, uint32_t len)
{
	put32(dst, len);
	dst[4] = type;
	dst[5] = dst[6] = dst[7] = 0;
}

bool
frame_head_get(const uint8_t src[FRAME_HEAD], struct frame_head *ret)
{
	uint32_t len = (uint32_t)src[0] | (uint32_t)src[1] << 8 | (uint32_t)src[2] << 16 |
		       (uint32_t)src[3] << 24;
	if (len > FRAME_MAX || src[4] == 0 || src[4] >= FRAME_TYPE_END_ || src[5] != 0 ||
	    src[6] != 0 || src[7] != 0)
		return false;
	*ret = (struct frame_head){len, src[4]};
	return true;
}

bool
frame_path_ok(struct str path)
{
	if (path.len == 0 || path.len > FRAME_PATH_MAX)
		return false;
	size_t start = 0, depth = 0;
	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && path.ptr[i] == '\0')
			return false;
		if (i < path.len && path.ptr[i] != '/')
			continue;
		size_t n = i - start;
		const char *c = path.ptr + start;
		if (n == 0 || n > 255 || (n == 1 && c[0] == '.') ||
		    (n == 2 && c[0] == '.' && c[1] == '.') || ++depth > FRAME_DEPTH_MAX)
			return false;
		start = i + 1;
	}
	return true;
}

size_t
frame_file_put(uint8_t *dst, const struct frame_file *f)
{
	put64(dst, f->size);
	memcpy(dst + 8, f->path.ptr, f->path.len);
	return 8 + f->path.len;
}

bool
frame_file_get(struct str p, struct frame_file *ret)
{
	if (p.len < 8)
		return false;
	struct frame_file f = {get64(p.ptr), {p.ptr + 8, p.len - 8}};
	if (!frame_path_ok(f.path))
		return false;
	*ret = f;
	return true;
}

size_t
frame_run_put(uint8_t *dst, const struct frame_run *f)
{
	put32(dst, f->kind);
	put32(dst + 4, f->timeout_ms);
	put32(dst + 8, f->max_files);
	put32(dst + 12, f->source_bytes);
	put64(dst + 16, f->max_bytes);
	return 24;
}

bool
frame_run_get(struct str p, struct frame_run *ret)
{
	if (p.len != 24)
		return false;
	struct frame_run f = {
	    get32(p.ptr), get32(p.ptr + 4), get32(p.ptr + 8), get32(p.ptr + 12), get64(p.ptr + 16)};
	if (f.kind >= FRAME_KIND_END_ || f.timeout_ms == 0 || f.source_bytes > FRAME_SOURCE_MAX)
		return false;
	*ret = f;
	return true;
}

size_t
frame_ready_put(uint8_t *dst, const struct frame_ready *f)
{
	put32(dst, f->version);
	put32(dst + 4, (uint32_t)f->sys_errno);
	return 8;
}

bool
frame_ready_get(struct str p, struct frame_ready *ret)
{
	if (p.len != 8 || get32(p.ptr) != FRAME_VERSION)
		return false;
	*ret = (struct frame_ready){get32(p.ptr), (int32_t)get32(p.ptr + 4)};
	return true;
}

size_t
frame_put_done_put(uint8_t *dst, const struct frame_put_done *f)
{
	put32(dst, (uint32_t)f->sys_errno);
	return 4;
}

bool
frame_put_done_get(struct str p, struct frame_put_done *ret)
{
	if (p.len != 4)
		return false;
	ret->sys_errno = (int32_t)get32(p.ptr);
	return true;
}

size_t
frame_result_put(uint8_t *dst, const struct frame_result *f)
{
	put32(dst, f->flags);
	put32(dst + 4, (uint32_t)f->return_code);
	put32(dst + 8, f->exec_ms);
	return 12;
}

bool
frame_result_get(struct str p, struct frame_result *ret)
{
	if (p.len != 12 || (get32(p.ptr) & ~FRAME_RESULT_FLAGS) != 0)
		return false;
	*ret = (struct frame_result){get32(p.ptr), (int32_t)get32(p.ptr + 4), get32(p.ptr + 8)};
	return true;
}

size_t
frame_file_end_put(uint8_t *dst, const struct frame_file_end *f)
{
	put32(dst, f->whole);
	return 4;
}

bool
frame_file_end_get(struct str p, struct frame_file_end *ret)
{
	if (p.len != 4 || get32(p.ptr) > 1)
		return false;
	ret->whole = get32(p.ptr);
	return true;
}

size_t
frame_omitted_put(uint8_t *dst, const struct frame_omitted *f)
{
	put64(dst, f->size);
	put32(dst + 8, f->reason);
	memcpy(dst + 12, f->path.ptr, f->path.len);
	return 12 + f->path.len;
}

bool
frame_omitted_get(struct str p, struct frame_omitted *ret)
{
	if (p.len < 12 || get32(p.ptr + 8) >= FRAME_OMIT_END_)
		return false;
	struct frame_omitted f = {get64(p.ptr), get32(p.ptr + 8), {p.ptr + 12, p.len - 12}};
	if (!frame_path_ok(f.path))
		return false;
	*ret = f;
	return true;
}

size_t
frame_entry_put(uint8_t *dst, const struct frame_entry *f)
{
	put64(dst, f->size);
	put64(dst + 8, f->changed_ns);
	memcpy(dst + 16, f->path.ptr, f->path.len);
	return 16 + f->path.len;
}

bool
frame_entry_get(struct str p, struct frame_entry *ret)
{
	if (p.len < 16)
		return false;
	struct frame_entry f = {get64(p.ptr), get64(p.ptr + 8), {p.ptr + 16, p.len - 16}};
	if (!frame_path_ok(f.path))
		return false;
	*ret = f;
	return true;
}

size_t
frame_end_put(uint8_t *dst, const struct frame_end *f)
{
	put32(dst, f->sent);
	put32(dst + 4, f->omitted);
	put32(dst + 8, f->skipped);
	return 12;
}

bool
frame_end_get(struct str p, struct frame_end *ret)
{
	if (p.len != 12)
		return false;
	*ret = (struct frame_end){get32(p.ptr), get32(p.ptr + 4), get32(p.ptr + 8)};
	return true;
}

size_t
frame_check_put(uint8_t *dst, const struct frame_check *f)
{
	put32(dst, f->layer);
	put32(dst + 4, f->held);
	put32(dst + 8, (uint32_t)f->sys_errno);
	memcpy(dst + 12, f->text.ptr, f->text.len);
	return 12 + f->text.len;
}

bool
frame_check_get(struct str p, struct frame_check *ret)
{
	if (p.len < 12 || p.len > 12 + 80 || get32(p.ptr + 4) > 1)
		return false;
	for (size_t i = 12; i < p.len; i++)
		if (p.ptr[i] < 0x20 || p.ptr[i] > 0x7e)
			return false;
	*ret = (struct frame_check){
	    get32(p.ptr), get32(p.ptr + 4), (int32_t)get32(p.ptr + 8), {p.ptr + 12, p.len - 12}};
	return true;
}

static size_t
put_text(uint8_t *dst, struct str s)
{
	if (s.len > 0)
		memcpy(dst, s.ptr, s.len);
	return s.len;
}

size_t
frame_edit_put(uint8_t *dst, const struct frame_edit *f)
{
	put32(dst, f->command);
	put32(dst + 4, (uint32_t)f->first_line);
	put32(dst + 8, (uint32_t)f->last_line);
	put32(dst + 12, (uint32_t)f->path.len);
	put32(dst + 16, (uint32_t)f->old.len);
	size_t n = 20;
	n += put_text(dst + n, f->path);
	n += put_text(dst + n, f->old);
	return n + put_text(dst + n, f->text);
}

bool
frame_edit_get(struct str s, struct frame_edit *ret)
{
	if (s.len < 20 || s.len > FRAME_SOURCE_MAX || get32(s.ptr) >= FRAME_EDIT_COMMAND_END_)
		return false;
	uint64_t left = s.len - 20, path = get32(s.ptr + 12), old = get32(s.ptr + 16);
	if (path > left || old > left - path)
		return false;
	const char *p = s.ptr + 20;
	*ret =
	    (struct frame_edit){get32(s.ptr), (int32_t)get32(s.ptr + 4), (int32_t)get32(s.ptr + 8),
		{p, path}, {p + path, old}, {p + path + old, left - path - old}};
	return true;
}

size_t
frame_convert_put(uint8_t *dst, const struct frame_convert *f)
{
	put32(dst, f->extractor);
	return 4 + put_text(dst + 4, f->path);
}

bool
frame_convert_get(struct str s, struct frame_convert *ret)
{
	if (s.len < 4 || get32(s.ptr) >= FRAME_EXTRACT_END_)
		return false;
	*ret = (struct frame_convert){get32(s.ptr), {s.ptr + 4, s.len - 4}};
	return frame_path_ok(ret->path);
}

size_t
frame_edited_put(uint8_t *dst, const struct frame_edited *f)
{
	const uint32_t all[] = {f->error, f->flags, f->first_line, f->line_count, f->total_lines,
	    f->old_start, f->old_lines, f->new_start, f->new_lines};
	for (size_t i = 0; i < 9; i++)
		put32(dst + 4 * i, all[i]);
	return 36;
}

bool
frame_edited_get(struct str p, struct frame_edited *ret)
{
	uint32_t v[9];
	if (p.len != 36)
		return false;
	for (size_t i = 0; i < 9; i++) {
		v[i] = get32(p.ptr + 4 * i);
		if (v[i] > INT32_MAX)
			return false;
	}
	if (v[0] >= FRAME_EDIT_ERROR_END_ ||
	    (v[1] & ~(FRAME_EDITED_UPDATE | FRAME_EDITED_DIRECTORY)) != 0)
		return false;
	*ret = (struct frame_edited){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
	return true;
}
