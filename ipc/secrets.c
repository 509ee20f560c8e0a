#include "ipc/secrets.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ipc/codec.h"

/* Image: magic (8 bytes), count (u32), then name and value of each (codec strings). */
#define MAGIC             0x54455243455353FDu
#define SECRETS_BYTES_MAX (4u * 1024u * 1024u)
#define SECRETS_COUNT_MAX 4096u
#define HEAD_BYTES        12u
#define ENTRY_MIN_BYTES   8u

struct entry {
	struct str name, value; /* builder: owned copies; reader: into the mapping */
};

struct secrets_builder {
	struct entry *entries;
	size_t count, cap;
};

struct secrets {
	void *image;
	size_t size;
	struct entry *entries;
	uint32_t count;
};

/* --- building -------------------------------------------------------------------------------- */

struct secrets_builder *
secrets_builder_new(void)
{
	return MEM_NEW(struct secrets_builder);
}

void
secrets_builder_add(struct secrets_builder *b, struct str name, struct str value)
{
	if (b->count == b->cap) {
		b->cap = b->cap != 0 ? b->cap * 2 : 16;
		b->entries = mem_grow(b->entries, b->cap, sizeof(*b->entries));
	}
	struct entry *e = &b->entries[b->count++];
	e->name = str_n(mem_strndup(name.ptr, name.len), name.len);
	e->value = str_n(mem_strndup(value.ptr, value.len), value.len);
}

static void
forget(struct str s)
{
	char *p = (char *)(uintptr_t)s.ptr;
	mem_wipe(p, s.len);
	mem_free(p);
}

static void
builder_free(struct secrets_builder **bp)
{
	struct secrets_builder *b = *bp;
	*bp = NULL;
	for (size_t i = 0; i < b->count; i++) {
		forget(b->entries[i].name);
		forget(b->entries[i].value);
	}
	mem_free(b->entries);
	mem_free(b);
}

static void
write_image(const struct secrets_builder *b, void *image, size_t size)
{
	/* The buffer never grows past what it has, so that no copy is left in freed memory. */
	struct buf dst = {image, 0, size + 1, size, false};
	codec_put_u64(&dst, MAGIC);
	codec_put_u32(&dst, (uint32_t)b->count);
	for (size_t i = 0; i < b->count; i++) {
		codec_put_str(&dst, b->entries[i].name);
		codec_put_str(&dst, b->entries[i].value);
	}
	CHECK(!dst.overflowed && dst.len == size);
}

static enum err_code
fill(const struct secrets_builder *b, int fd, size_t size, struct err *reterr)
{
	/* One byte more in the mapping: a struct buf ends its contents with a NUL. The file's last
	 * page is padded, so this byte is there. */
	size_t mapped = size + 1;
	if (ftruncate(fd, (off_t)mapped) != 0)
		return err_set(reterr, ERR_IO, "secrets: ftruncate");
	void *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_set(reterr, ERR_IO, "secrets: mmap");
	write_image(b, p, size);
	CHECK(munmap(p, mapped) == 0);
	if (!fd_seal(fd))
		return err_set(reterr, ERR_IO, "secrets: seal");
	return ERR_OK;
}

enum err_code
secrets_builder_end(struct secrets_builder **bp, int *ret_fd, struct err *reterr)
{
	struct secrets_builder *b = *bp;
	size_t size = HEAD_BYTES;
	for (size_t i = 0; i < b->count; i++)
		size += ENTRY_MIN_BYTES + b->entries[i].name.len + b->entries[i].value.len;
	enum err_code rc = ERR_OK;
	int fd = -1;
	if (b->count > SECRETS_COUNT_MAX || size > SECRETS_BYTES_MAX)
		rc = err_set(reterr, ERR_TOOLARGE, "secrets: %zu of %zu bytes are over %u of %u",
		    b->count, size, SECRETS_COUNT_MAX, SECRETS_BYTES_MAX);
	else if ((fd = fd_memfd("otari-secrets")) < 0)
		rc = err_set(reterr, ERR_IO, "secrets: memfd_create");
	else
		rc = fill(b, fd, size, reterr);
	builder_free(bp);
	if (rc == ERR_OK)
		*ret_fd = fd;
	else
		fd_close(&fd);
	return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static enum err_code
read_image(struct secrets *s, struct err *reterr)
{
	struct codec_reader r = codec_reader(str_n(s->image, s->size - 1));
	if (codec_get_u64(&r) != MAGIC)
		return err_set(reterr, ERR_PROTO, "secrets: not one of ours");
	s->count = codec_get_count(&r, ENTRY_MIN_BYTES);
	if (s->count > SECRETS_COUNT_MAX)
		return err_set(reterr, ERR_PROTO, "secrets: %u entries", s->count);
	s->entries = MEM_NEW_ARRAY(struct entry, s->count);
	for (uint32_t i = 0; i < s->count; i++) {
		s->entries[i].name = codec_get_str(&r);
		s->entries[i].value = codec_get_str(&r);
		if (s->entries[i].name.ptr == NULL || s->entries[i].value.ptr == NULL)
			r.failed = true;
	}
	return codec_end(&r, "secrets", reterr);
}

enum err_code
secrets_map(int fd, struct secrets **ret, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	void *p = MAP_FAILED;
	struct stat st;
	if (!fd_is_sealed(fd) || fstat(fd, &st) != 0)
		rc = err_set(reterr, ERR_PROTO, "secrets: not a sealed memfd");
	else if (st.st_size < (off_t)HEAD_BYTES + 1 || st.st_size > (off_t)SECRETS_BYTES_MAX + 1)
		rc = err_set(
		    reterr, ERR_PROTO, "secrets: size of %lld bytes", (long long)st.st_size);
	else if ((p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED)
		rc = err_set(reterr, ERR_IO, "secrets: mmap");
	fd_close(&fd);
	if (rc != ERR_OK)
		return rc;
	(void)madvise(p, (size_t)st.st_size, MADV_DONTDUMP);
	struct secrets *s = MEM_NEW(struct secrets);
	s->image = p;
	s->size = (size_t)st.st_size;
	rc = read_image(s, reterr);
	if (rc == ERR_OK)
		*ret = s;
	else
		secrets_free(&s);
	return rc;
}

void
secrets_free(struct secrets **sp)
{
	struct secrets *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	CHECK(munmap(s->image, s->size) == 0);
	mem_free(s->entries);
	mem_free(s);
}

struct str
secrets_get(const struct secrets *s, struct str name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (str_eq(s->entries[i].name, name))
			return s->entries[i].value;
	return STR_NULL;
}
