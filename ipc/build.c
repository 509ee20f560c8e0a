#include "ipc/build.h"

#include "ipc/codec.h"

/* Both texts of a result together stay well under LIMIT_MSG_BYTES. */
#define TEXT_MAX 16384u

static struct str
get_str(struct arena *a, struct codec_reader *r)
{
	struct str s = codec_get_str(r);
	return s.ptr != NULL ? arena_str(a, s) : STR_NULL;
}

void
build_request_encode(const struct build_request *r, struct buf *dst)
{
	codec_put_u32(dst, r->what);
	codec_put_u64(dst, r->generation);
	codec_put_str(dst, r->conf_path);
	codec_put_str(dst, r->cwd);
	codec_put_bool(dst, r->as_root);
	codec_put_bool(dst, r->first);
	codec_put_bool(dst, r->reload);
	codec_put_u64(dst, r->keys_base);
	codec_put_u64(dst, r->keys_since);
	codec_put_u64(dst, r->keys_base_count);
	codec_put_u64(dst, r->keys_base_age_s);
	codec_put_str(dst, r->identity);
}

enum err_code
build_request_decode(
    struct arena *a, struct str bytes, struct build_request *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct build_request q = {0};
	q.what = codec_get_u32(&r);
	q.generation = codec_get_u64(&r);
	q.conf_path = get_str(a, &r);
	q.cwd = get_str(a, &r);
	q.as_root = codec_get_bool(&r);
	q.first = codec_get_bool(&r);
	q.reload = codec_get_bool(&r);
	q.keys_base = codec_get_u64(&r);
	q.keys_since = codec_get_u64(&r);
	q.keys_base_count = codec_get_u64(&r);
	q.keys_base_age_s = codec_get_u64(&r);
	q.identity = get_str(a, &r);
	enum err_code rc = codec_end(&r, "build request", reterr);
	if (rc != ERR_OK)
		return rc;
	if ((q.what & ~(uint32_t)(BUILD_CONF | BUILD_POLICY | BUILD_KEYS)) != 0 ||
	    q.conf_path.ptr == NULL || q.cwd.ptr == NULL)
		return err_set(reterr, ERR_PROTO, "build request: a value is out of range");
	*ret = q;
	return ERR_OK;
}

void
build_file_encode(const struct build_file *f, struct buf *dst)
{
	codec_put_u32(dst, f->kind);
	codec_put_str(dst, f->path);
}

enum err_code
build_file_decode(struct arena *a, struct str bytes, struct build_file *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct build_file f = {0};
	f.kind = codec_get_u32(&r);
	f.path = get_str(a, &r);
	enum err_code rc = codec_end(&r, "file request", reterr);
	if (rc != ERR_OK)
		return rc;
	if (f.kind > BUILD_FILE_MASTER_KEY || f.path.ptr == NULL || f.path.len == 0 ||
	    str_chr(f.path, '\0') != SIZE_MAX)
		return err_set(reterr, ERR_PROTO, "file request: a value is out of range");
	*ret = f;
	return ERR_OK;
}

void
build_file_answer_encode(const struct build_file_answer *f, struct buf *dst)
{
	codec_put_u32(dst, f->sys_errno);
}

enum err_code
build_file_answer_decode(struct str bytes, struct build_file_answer *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct build_file_answer f = {codec_get_u32(&r)};
	enum err_code rc = codec_end(&r, "file answer", reterr);
	if (rc == ERR_OK)
		*ret = f;
	return rc;
}

void
build_result_encode(const struct build_result *r, struct buf *dst)
{
	codec_put_bool(dst, r->ok);
	codec_put_bool(dst, r->bad_conf);
	codec_put_str(dst, str_sub(r->failure, 0, TEXT_MAX));
	codec_put_str(dst, str_sub(r->warnings, 0, TEXT_MAX));
	codec_put_u64(dst, r->generation);
	codec_put_u64(dst, r->db_policy);
	codec_put_u64(dst, r->db_keys);
	codec_put_u64(dst, r->keys_count);
	codec_put_bool(dst, r->keys_is_delta);
	codec_put_str(dst, r->identity);
	codec_put_u32(dst, r->nfds);
	for (uint32_t i = 0; i < r->nfds && i < BUILD_FDS_MAX; i++)
		codec_put_u32(dst, r->fds[i]);
	struct buf conf = BUF_INIT(LIMIT_MSG_BYTES);
	if (r->has_conf)
		master_conf_encode(&r->conf, &conf);
	if (conf.overflowed)
		dst->overflowed = true;
	codec_put_str(dst, r->has_conf ? buf_str(&conf) : STR_NULL);
	buf_done(&conf);
}

enum err_code
build_result_decode(struct arena *a, struct str bytes, struct build_result *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct build_result q = {0};
	q.ok = codec_get_bool(&r);
	q.bad_conf = codec_get_bool(&r);
	q.failure = get_str(a, &r);
	q.warnings = get_str(a, &r);
	q.generation = codec_get_u64(&r);
	q.db_policy = codec_get_u64(&r);
	q.db_keys = codec_get_u64(&r);
	q.keys_count = codec_get_u64(&r);
	q.keys_is_delta = codec_get_bool(&r);
	q.identity = get_str(a, &r);
	q.nfds = codec_get_count(&r, 4);
	if (q.nfds > BUILD_FDS_MAX)
		return err_set(reterr, ERR_PROTO, "build result: %u descriptors", q.nfds);
	for (uint32_t i = 0; i < q.nfds; i++)
		q.fds[i] = codec_get_u32(&r);
	struct str conf = codec_get_str(&r);
	enum err_code rc = codec_end(&r, "build result", reterr);
	if (rc == ERR_OK && conf.ptr != NULL) {
		rc = master_conf_decode(a, conf, &q.conf, reterr);
		q.has_conf = true;
	}
	if (rc == ERR_OK && q.ok && !q.has_conf)
		rc = err_set(reterr, ERR_PROTO, "build result: no settings");
	if (rc == ERR_OK)
		*ret = q;
	return rc;
}
