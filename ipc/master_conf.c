#include "ipc/master_conf.h"

#include "ipc/codec.h"

/* One list of members serves both directions, so that they cannot disagree. */
struct field {
	enum { F_STR, F_U32, F_U64, F_BOOL } type;
	size_t off;
};
#define FIELD(type, st, member)                                                                    \
	{                                                                                          \
		type, offsetof(struct st, member)                                                  \
	}

static const struct field SANDBOX[] = {
    FIELD(F_STR, sandbox_conf, url),
    FIELD(F_STR, sandbox_conf, python),
    FIELD(F_STR, sandbox_conf, rootfs),
    FIELD(F_STR, sandbox_conf, preload),
    FIELD(F_STR, sandbox_conf, serve),
    FIELD(F_U32, sandbox_conf, pool_size),
    FIELD(F_U32, sandbox_conf, pids),
    FIELD(F_U32, sandbox_conf, cpu_percent),
    FIELD(F_U64, sandbox_conf, memory_bytes),
    FIELD(F_U64, sandbox_conf, workspace_bytes),
    FIELD(F_U64, sandbox_conf, file_bytes),
    FIELD(F_U64, sandbox_conf, output_bytes),
    FIELD(F_U32, sandbox_conf, workspace_inodes),
    FIELD(F_U32, sandbox_conf, open_files),
    FIELD(F_U32, sandbox_conf, max_sessions),
    FIELD(F_U32, sandbox_conf, max_sessions_per_workspace),
    FIELD(F_U32, sandbox_conf, queue_ms),
    FIELD(F_U32, sandbox_conf, uid_base),
    FIELD(F_BOOL, sandbox_conf, require_cgroup),
};

static const struct field MASTER[] = {
    FIELD(F_STR, master_conf, host),
    FIELD(F_STR, master_conf, admin_listen),
    FIELD(F_STR, master_conf, user),
    FIELD(F_STR, master_conf, state_dir),
    FIELD(F_STR, master_conf, pid_file),
    FIELD(F_STR, master_conf, control_socket),
    FIELD(F_STR, master_conf, log_file),
    FIELD(F_STR, master_conf, tls_cert),
    FIELD(F_U32, master_conf, port),
    FIELD(F_U32, master_conf, workers),
    FIELD(F_U32, master_conf, log_level),
    FIELD(F_BOOL, master_conf, log_json),
    FIELD(F_U32, master_conf, drain_timeout_ms),
    FIELD(F_U32, master_conf, publish_timeout_ms),
    FIELD(F_U32, master_conf, heartbeat_timeout_ms),
};

static void
put_fields(const void *base, const struct field *f, size_t n, struct buf *dst)
{
	for (size_t i = 0; i < n; i++) {
		const void *p = (const char *)base + f[i].off;
		switch (f[i].type) {
		case F_STR:
			codec_put_str(dst, *(const struct str *)p);
			break;
		case F_U32:
			codec_put_u32(dst, *(const uint32_t *)p);
			break;
		case F_U64:
			codec_put_u64(dst, *(const uint64_t *)p);
			break;
		case F_BOOL:
			codec_put_bool(dst, *(const bool *)p);
			break;
		}
	}
}

static void
get_fields(struct arena *a, struct codec_reader *r, void *base, const struct field *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *p = (char *)base + f[i].off;
		struct str s;
		switch (f[i].type) {
		case F_STR:
			s = codec_get_str(r);
			*(struct str *)p = s.ptr != NULL ? arena_str(a, s) : STR_NULL;
			break;
		case F_U32:
			*(uint32_t *)p = codec_get_u32(r);
			break;
		case F_U64:
			*(uint64_t *)p = codec_get_u64(r);
			break;
		case F_BOOL:
			*(bool *)p = codec_get_bool(r);
			break;
		}
	}
}

void
sandbox_conf_encode(const struct sandbox_conf *c, struct buf *dst)
{
	put_fields(c, SANDBOX, ARRAY_LEN(SANDBOX), dst);
}

enum err_code
sandbox_conf_decode(struct arena *a, struct str bytes, struct sandbox_conf *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct sandbox_conf c = {0};
	get_fields(a, &r, &c, SANDBOX, ARRAY_LEN(SANDBOX));
	enum err_code rc = codec_end(&r, "sandbox settings", reterr);
	if (rc == ERR_OK)
		*ret = c;
	return rc;
}

void
master_conf_encode(const struct master_conf *c, struct buf *dst)
{
	put_fields(c, MASTER, ARRAY_LEN(MASTER), dst);
	put_fields(&c->sandbox, SANDBOX, ARRAY_LEN(SANDBOX), dst);
}

enum err_code
master_conf_decode(struct arena *a, struct str bytes, struct master_conf *ret, struct err *reterr)
{
	struct codec_reader r = codec_reader(bytes);
	struct master_conf c = {0};
	get_fields(a, &r, &c, MASTER, ARRAY_LEN(MASTER));
	get_fields(a, &r, &c.sandbox, SANDBOX, ARRAY_LEN(SANDBOX));
	enum err_code rc = codec_end(&r, "master settings", reterr);
	if (rc != ERR_OK)
		return rc;
	if (c.workers == 0 || c.workers > LIMIT_WORKERS || c.port > 65535 ||
	    c.state_dir.ptr == NULL || c.host.ptr == NULL)
		return err_set(reterr, ERR_PROTO, "master settings: a value is out of range");
	*ret = c;
	return ERR_OK;
}
