#include "ipc/snapshot_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "ipc/snapshot_image.h"

struct snap_build {
	enum snap_kind kind;
	struct buf image;
	struct map *strings; /* text → its offset */
};

static const char zeros[SNAP_ALIGN];

struct snap_build *
snap_build_new(enum snap_kind kind, uint64_t generation)
{
	struct snap_build *b = MEM_NEW(struct snap_build);
	b->kind = kind;
	b->strings = map_new();
	buf_init(&b->image, LIMIT_SNAPSHOT_BYTES);
	struct snap_image head = {
	    .magic = SNAP_MAGIC, .layout = SNAP_LAYOUT, .kind = kind, .generation = generation};
	buf_addn(&b->image, &head, sizeof(head));
	union {
		struct snap_policy policy;
		struct snap_keys keys;
	} root;
	memset(&root, 0, sizeof(root));
	buf_addn(&b->image, &root, kind == SNAP_POLICY ? sizeof(root.policy) : sizeof(root.keys));
	return b;
}

void
snap_build_free(struct snap_build **bp)
{
	struct snap_build *b = *bp;
	*bp = NULL;
	if (b == NULL)
		return;
	map_free(&b->strings);
	buf_done(&b->image);
	mem_free(b);
}

struct snap_str
snap_build_str_unique(struct snap_build *b, struct str s)
{
	if (s.ptr == NULL)
		return (struct snap_str){0, 0};
	size_t off = b->image.len;
	buf_add(&b->image, s);
	buf_addc(&b->image, '\0');
	if (b->image.overflowed)
		return (struct snap_str){0, 0};
	return (struct snap_str){(uint32_t)off, (uint32_t)s.len};
}

struct snap_str
snap_build_str(struct snap_build *b, struct str s)
{
	if (s.ptr == NULL)
		return (struct snap_str){0, 0};
	uintptr_t known = (uintptr_t)map_get(b->strings, s);
	if (known != 0)
		return (struct snap_str){(uint32_t)known, (uint32_t)s.len};
	struct snap_str ref = snap_build_str_unique(b, s);
	if (ref.off != 0)
		map_put(b->strings, s, (void *)(uintptr_t)ref.off);
	return ref;
}

struct snap_table
snap_build_table(struct snap_build *b, const void *records, uint32_t count, size_t record_size)
{
	size_t past = b->image.len % SNAP_ALIGN;
	if (past != 0)
		buf_addn(&b->image, zeros, SNAP_ALIGN - past);
	size_t off = b->image.len, bytes;
	if (__builtin_mul_overflow((size_t)count, record_size, &bytes))
		b->image.overflowed = true;
	else
		buf_addn(&b->image, records, bytes);
	/* An empty table must not point at the end of the image. */
	if (count == 0)
		buf_addn(&b->image, zeros, SNAP_ALIGN);
	if (b->image.overflowed)
		return (struct snap_table){0, 0};
	return (struct snap_table){(uint32_t)off, count};
}

/* --- sorting --------------------------------------------------------------------------------- */

static struct str
name_at(const char *image, const void *record)
{
	const struct snap_str *name = record;
	return str_n(image + name->off, name->len);
}

static int
by_name(const void *a, const void *b, void *image)
{
	return str_cmp(name_at(image, a), name_at(image, b));
}

static int
by_hash(const void *a, const void *b, void *image)
{
	(void)image;
	return memcmp(
	    ((const struct snap_key *)a)->hash, ((const struct snap_key *)b)->hash, SHA256_BYTES);
}

/* Records begin with their name. */
static enum err_code
sort_names(
    struct snap_build *b, struct snap_table t, size_t record, const char *what, struct err *reterr)
{
	if (t.count == 0)
		return ERR_OK;
	char *first = b->image.ptr + t.off;
	qsort_r(first, t.count, record, by_name, b->image.ptr);
	for (uint32_t i = 1; i < t.count; i++) {
		const char *now = first + i * record;
		if (by_name(now - record, now, b->image.ptr) == 0)
			return err_set(reterr, ERR_CONFLICT, "%s '%.*s' occurs twice", what,
			    STR_FMT(str_sub(name_at(b->image.ptr, now), 0, 100)));
	}
	return ERR_OK;
}

static enum err_code
sort_keys(struct snap_build *b, struct snap_table t, struct err *reterr)
{
	if (t.count == 0)
		return ERR_OK;
	char *first = b->image.ptr + t.off;
	qsort_r(first, t.count, sizeof(struct snap_key), by_hash, NULL);
	for (uint32_t i = 1; i < t.count; i++) {
		const char *now = first + i * sizeof(struct snap_key);
		if (by_hash(now - sizeof(struct snap_key), now, NULL) == 0)
			return err_set(reterr, ERR_CONFLICT, "two API keys have the same hash");
	}
	return ERR_OK;
}

/* --- the end --------------------------------------------------------------------------------- */

/* What leaves is what every reader will accept: checked here, where a failure harms nobody. */
static enum err_code
check_result(int fd, enum snap_kind kind, struct err *reterr)
{
	int copy = fd_dup(fd);
	if (copy < 0)
		return err_set(reterr, ERR_IO, "dup");
	struct snapshot *s;
	enum err_code rc = snapshot_map(copy, kind, &s, reterr);
	if (rc == ERR_OK)
		snapshot_put(&s);
	return rc;
}

static enum err_code
finish(struct snap_build *b, const void *root, size_t root_size, int *ret_fd, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	int fd = -1;
	if (b->image.overflowed)
		return err_set(
		    reterr, ERR_TOOLARGE, "snapshot over %u bytes", LIMIT_SNAPSHOT_BYTES);
	struct snap_image *head = (void *)b->image.ptr;
	head->total_bytes = b->image.len;
	memcpy(b->image.ptr + sizeof(*head), root, root_size);
	fd = fd_memfd(b->kind == SNAP_POLICY ? "otari-policy" : "otari-keys");
	if (fd < 0)
		return err_set(reterr, ERR_IO, "memfd_create");
	rc = fd_write_all(fd, buf_str(&b->image), reterr);
	if (rc == ERR_OK && !fd_seal(fd))
		rc = err_set(reterr, ERR_IO, "seal");
	if (rc == ERR_OK)
		rc = check_result(fd, b->kind, reterr);
	if (rc == ERR_OK)
		*ret_fd = fd;
	else
		fd_close(&fd);
	return rc;
}

enum err_code
snap_build_end_policy(
    struct snap_build **bp, const struct snap_policy *root, int *ret_fd, struct err *reterr)
{
	struct snap_build *b = *bp;
	CHECK(b->kind == SNAP_POLICY);
	enum err_code rc = ERR_OK;
	if (!b->image.overflowed) {
		rc = sort_names(
		    b, root->providers, sizeof(struct snap_provider), "provider", reterr);
		if (rc == ERR_OK)
			rc = sort_names(
			    b, root->aliases, sizeof(struct snap_alias), "alias", reterr);
		if (rc == ERR_OK)
			rc = sort_names(b, root->workspaces, sizeof(struct snap_workspace),
			    "workspace", reterr);
		if (rc == ERR_OK)
			rc = sort_names(
			    b, root->declared, sizeof(struct snap_declared), "declaration", reterr);
	}
	if (rc == ERR_OK)
		rc = finish(b, root, sizeof(*root), ret_fd, reterr);
	snap_build_free(bp);
	return rc;
}

enum err_code
snap_build_end_keys(
    struct snap_build **bp, const struct snap_keys *root, int *ret_fd, struct err *reterr)
{
	struct snap_build *b = *bp;
	CHECK(b->kind == SNAP_KEYS);
	enum err_code rc = b->image.overflowed ? ERR_OK : sort_keys(b, root->keys, reterr);
	if (rc == ERR_OK)
		rc = finish(b, root, sizeof(*root), ret_fd, reterr);
	snap_build_free(bp);
	return rc;
}
