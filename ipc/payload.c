#include "ipc/payload.h"

#include "ipc/codec.h"

void
hello_encode(struct buf *out, const struct hello *v)
{
	codec_put_u32(out, v->role);
	codec_put_u32(out, v->number);
	codec_put_u32(out, v->pid);
	codec_put_str(out, v->build_id);
}

enum err_code
hello_decode(struct str in, struct hello *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	struct hello v = {0};
	v.role = codec_get_u32(&r);
	v.number = codec_get_u32(&r);
	v.pid = codec_get_u32(&r);
	v.build_id = codec_get_str(&r);
	enum err_code rc = codec_end(&r, "hello", reterr);
	if (rc == ERR_OK)
		*ret = v;
	return rc;
}

void
snapshot_note_encode(struct buf *out, const struct snapshot_note *v)
{
	codec_put_u64(out, v->generation);
	codec_put_bool(out, v->is_delta);
	codec_put_bool(out, v->is_last);
}

enum err_code
snapshot_note_decode(struct str in, struct snapshot_note *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	struct snapshot_note v = {0};
	v.generation = codec_get_u64(&r);
	v.is_delta = codec_get_bool(&r);
	v.is_last = codec_get_bool(&r);
	enum err_code rc = codec_end(&r, "snapshot note", reterr);
	if (rc == ERR_OK)
		*ret = v;
	return rc;
}

void
ack_encode(struct buf *out, const struct ack *v)
{
	codec_put_u64(out, v->generation);
}

enum err_code
ack_decode(struct str in, struct ack *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	struct ack v = {codec_get_u64(&r)};
	enum err_code rc = codec_end(&r, "acknowledgement", reterr);
	if (rc == ERR_OK)
		*ret = v;
	return rc;
}

void
publish_ask_encode(struct buf *out, const struct publish_ask *v)
{
	codec_put_u32(out, v->what);
	codec_put_u64(out, v->db_policy);
	codec_put_u64(out, v->db_keys);
}

enum err_code
publish_ask_decode(struct str in, struct publish_ask *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	struct publish_ask v = {0};
	v.what = codec_get_u32(&r);
	v.db_policy = codec_get_u64(&r);
	v.db_keys = codec_get_u64(&r);
	enum err_code rc = codec_end(&r, "publication", reterr);
	if (rc == ERR_OK && (v.what == 0 || (v.what & ~(uint32_t)SEG_BOTH) != 0))
		rc = err_set(reterr, ERR_PROTO, "publication: a value is out of range");
	if (rc == ERR_OK)
		*ret = v;
	return rc;
}

static void
put_verdict(struct buf *out, bool ok, struct str text)
{
	codec_put_bool(out, ok);
	codec_put_str(out, str_sub(text, 0, PUBLISHED_TEXT_MAX));
}

static enum err_code
get_verdict(struct str in, const char *what, bool *ret_ok, struct str *ret_text, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	bool ok = codec_get_bool(&r);
	struct str text = codec_get_str(&r);
	enum err_code rc = codec_end(&r, what, reterr);
	if (rc != ERR_OK)
		return rc;
	*ret_ok = ok;
	*ret_text = text;
	return ERR_OK;
}

void
published_encode(struct buf *out, const struct published *v)
{
	put_verdict(out, v->in_force, v->error);
}

enum err_code
published_decode(struct str in, struct published *ret, struct err *reterr)
{
	return get_verdict(in, "publication result", &ret->in_force, &ret->error, reterr);
}

void
tried_encode(struct buf *out, const struct tried *v)
{
	put_verdict(out, v->ok, v->text);
}

enum err_code
tried_decode(struct str in, struct tried *ret, struct err *reterr)
{
	return get_verdict(in, "trial", &ret->ok, &ret->text, reterr);
}

void
listen_note_encode(struct buf *out, const struct listen_note *v)
{
	codec_put_u32(out, v->listener);
	codec_put_bool(out, v->is_admin);
	codec_put_bool(out, v->is_tls);
	codec_put_bool(out, v->is_serve);
}

enum err_code
listen_note_decode(struct str in, struct listen_note *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(in);
	struct listen_note v = {0};
	v.listener = codec_get_u32(&r);
	v.is_admin = codec_get_bool(&r);
	v.is_tls = codec_get_bool(&r);
	v.is_serve = codec_get_bool(&r);
	enum err_code rc = codec_end(&r, "listener", reterr);
	if (rc == ERR_OK)
		*ret = v;
	return rc;
}
