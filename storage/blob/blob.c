#include "storage/blob/blob.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "storage/blob/blob_ops.h"

static bool
is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

bool
blob_key_valid(struct str key)
{
	if (key.len == 0 || key.len >= BLOB_KEY_SIZE)
		return false;
	unsigned segments = 1;
	bool at_start = true;
	for (size_t i = 0; i < key.len; i++) {
		char c = key.ptr[i];
		if (c == '/') {
			if (at_start || ++segments > 2)
				return false;
			at_start = true;
			continue;
		}
		if (!is_key_char(c) || (at_start && c == '.'))
			return false;
		at_start = false;
	}
	return !at_start;
}

void
blob_key(struct str id, char dst[BLOB_KEY_SIZE])
{
	struct str rest = str_starts(id, STR("file-")) ? str_from(id, 5) : STR("");
	if (rest.len >= 2 && id.len <= 128 && str_chr(id, '/') == SIZE_MAX && rest.ptr[0] != '.' &&
	    blob_key_valid(id)) {
		(void)snprintf(dst, BLOB_KEY_SIZE, "%.2s/%.*s", rest.ptr, STR_FMT(id));
		return;
	}
	unsigned char digest[SHA256_BYTES];
	char hex[SHA256_HEX + 1];
	sha256_of(id, digest);
	hex_encode(digest, sizeof(digest), hex);
	(void)snprintf(dst, BLOB_KEY_SIZE, "%.2s/%s", hex, hex);
}

static enum err_code
check_key(struct str key, struct err *reterr)
{
	return blob_key_valid(key) ? ERR_OK : err_set(reterr, ERR_INPUT, "blob: unfit key");
}

void
blob_close(struct blob_store **s)
{
	if (*s != NULL)
		(*s)->ops->close(*s);
	*s = NULL;
}

enum err_code
blob_put_begin(struct blob_store *s, struct str key, struct blob_put **ret, struct err *reterr)
{
	enum err_code rc = check_key(key, reterr);
	return rc != ERR_OK ? rc : s->ops->put_begin(s, key, ret, reterr);
}

enum err_code
blob_put_write(struct blob_put *p, struct str bytes, struct err *reterr)
{
	return p->store->ops->put_write(p, bytes, reterr);
}

enum err_code
blob_put_commit(struct blob_put **pp, struct err *reterr)
{
	struct blob_put *p = *pp;
	*pp = NULL;
	return p->store->ops->put_commit(p, reterr);
}

void
blob_put_abort(struct blob_put **pp)
{
	struct blob_put *p = *pp;
	*pp = NULL;
	if (p != NULL)
		p->store->ops->put_abort(p);
}

enum err_code
blob_get_open(struct blob_store *s, struct str key, uint64_t offset, uint64_t length,
    struct blob_get **ret, struct err *reterr)
{
	enum err_code rc = check_key(key, reterr);
	return rc != ERR_OK ? rc : s->ops->get_open(s, key, offset, length, ret, reterr);
}

enum err_code
blob_get_read(struct blob_get *g, void *dst, size_t n, size_t *ret_got, struct err *reterr)
{
	return g->store->ops->get_read(g, dst, n, ret_got, reterr);
}

void
blob_get_close(struct blob_get **g)
{
	if (*g != NULL)
		(*g)->store->ops->get_close(*g);
	*g = NULL;
}

enum err_code
blob_open_fd(
    struct blob_store *s, struct str key, int *ret_fd, uint64_t *ret_bytes, struct err *reterr)
{
	enum err_code rc = check_key(key, reterr);
	if (rc == ERR_OK && s->ops->open_fd == NULL)
		rc = err_set(reterr, ERR_UNSUPPORTED, "blob: the bytes are not on this host");
	return rc != ERR_OK ? rc : s->ops->open_fd(s, key, ret_fd, ret_bytes, reterr);
}

enum err_code
blob_stat(struct blob_store *s, struct str key, struct blob_info *ret, struct err *reterr)
{
	enum err_code rc = check_key(key, reterr);
	return rc != ERR_OK ? rc : s->ops->stat(s, key, ret, reterr);
}

enum err_code
blob_delete(struct blob_store *s, struct str key, struct err *reterr)
{
	enum err_code rc = check_key(key, reterr);
	return rc != ERR_OK ? rc : s->ops->remove(s, key, reterr);
}

enum err_code
blob_list(struct blob_store *s, blob_list_fn *fn, void *arg, struct err *reterr)
{
	return s->ops->list(s, fn, arg, reterr);
}

enum err_code
blob_clean(struct blob_store *s, int64_t older_than_s, uint64_t *ret_n, struct err *reterr)
{
	return s->ops->clean(s, older_than_s, ret_n, reterr);
}
