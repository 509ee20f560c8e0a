#include "ipc/snapshot.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <string.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "ipc/snapshot_image.h"

#define SNAPSHOT_MAGIC 0x534E4150u

struct snapshot {
	uint32_t magic;
	unsigned refs;
	const char *image;
	size_t size;
	uint64_t generation;
	enum snap_kind kind;
	const void *root;
};

static unsigned alive;

/* --- checking an image ----------------------------------------------------------------------- */

struct checker {
	const struct snapshot *s;
	size_t nested_bytes; /* of tables inside records; together no more than the image, so that
			      * overlapping ones cannot make the check itself slow */
	const char *wrong;   /* first thing found wrong; NULL: none */
};

static bool
fail(struct checker *c, const char *what)
{
	if (c->wrong == NULL)
		c->wrong = what;
	return false;
}

static bool
check_str(struct checker *c, struct snap_str ref, bool required, size_t max, const char *what)
{
	if (ref.off == 0)
		return ref.len == 0 && !required ? true : fail(c, what);
	if (ref.off < sizeof(struct snap_image) || ref.len > max || ref.off >= c->s->size ||
	    ref.len >= c->s->size - ref.off || c->s->image[ref.off + ref.len] != '\0')
		return fail(c, what);
	return true;
}

static bool
check_table(struct checker *c, struct snap_table t, size_t record, const char *what)
{
	if (t.off == 0)
		return t.count == 0 ? true : fail(c, what);
	if (t.off < sizeof(struct snap_image) || t.off % SNAP_ALIGN != 0 || t.off > c->s->size ||
	    t.count > (c->s->size - t.off) / record)
		return fail(c, what);
	return true;
}

static bool
check_nested(struct checker *c, struct snap_table t, size_t record, const char *what)
{
	if (!check_table(c, t, record, what))
		return false;
	c->nested_bytes += t.count * record;
	return c->nested_bytes <= c->s->size ? true : fail(c, what);
}

static bool
check_at_most(struct checker *c, int64_t v, int64_t max, const char *what)
{
	return v >= 0 && v <= max ? true : fail(c, what);
}

/* Names in strictly ascending order. */
static bool
check_order(
    struct checker *c, struct snap_str before, struct snap_str now, uint32_t i, const char *what)
{
	if (i > 0 && str_cmp(snapshot_str(c->s, before), snapshot_str(c->s, now)) >= 0)
		return fail(c, what);
	return true;
}

static bool
check_settings(struct checker *c, const struct snap_settings *t)
{
	const struct snap_str texts[] = {t->public_base_url, t->tools_header,
	    t->sandbox_purpose_hint, t->files_backend, t->files_local_dir, t->state_dir,
	    t->sandbox_url, t->sandbox_session_image, t->sandbox_ca_file};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!check_str(c, texts[i], false, SIZE_MAX, "text of the settings"))
			return false;
	const uint32_t flags[] = {t->files_enabled, t->file_understanding_enabled,
	    t->reject_user_mismatch, t->strict_translation, t->files_provider_copy};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (!check_at_most(c, flags[i], 1, "flag of the settings"))
			return false;
	return check_str(c, t->master_key_sha256, false, SHA256_BYTES, "master key digest") &&
	       (t->master_key_sha256.off == 0 || t->master_key_sha256.len == SHA256_BYTES
		       ? true
		       : fail(c, "master key digest")) &&
	       check_at_most(c, t->require_pricing, 2, "require_pricing") &&
	       check_at_most(c, t->code_execution_executor, EXECUTOR_PROVIDER, "executor");
}

static bool
check_provider(struct checker *c, const struct snap_provider *p)
{
	if (!check_str(c, p->name, true, SNAP_NAME_MAX, "provider name") ||
	    !check_str(c, p->provider_type, true, SNAP_NAME_MAX, "provider type") ||
	    !check_str(c, p->api_base, true, SIZE_MAX, "provider address") ||
	    !check_str(c, p->secret, false, SNAP_NAME_MAX, "provider secret name") ||
	    !check_str(c, p->proxy, false, SIZE_MAX, "provider proxy") ||
	    !check_at_most(c, p->wire, SNAP_WIRE_RESPONSES, "provider wire") ||
	    !check_at_most(c, (int64_t)p->native_code_execution + 1, 2, "native_code_execution") ||
	    !check_at_most(c, (int64_t)p->native_documents + 1, 2, "native_documents") ||
	    !check_nested(c, p->headers, sizeof(struct snap_header_pair), "provider headers"))
		return false;
	for (uint32_t i = 0; i < p->headers.count; i++) {
		const struct snap_header_pair *h =
		    SNAP_AT(c->s, p->headers, struct snap_header_pair, i);
		if (!check_str(c, h->name, true, SNAP_NAME_MAX, "header name") ||
		    !check_str(c, h->value, true, SIZE_MAX, "header value"))
			return false;
	}
	return true;
}

static bool
check_workspace(struct checker *c, const struct snap_workspace *w)
{
	return check_str(c, w->id, true, SNAP_NAME_MAX, "workspace id") &&
	       check_str(c, w->name, false, SIZE_MAX, "workspace name") &&
	       check_str(c, w->default_purpose_hint, false, SIZE_MAX, "workspace hint") &&
	       check_str(c, w->image, false, SIZE_MAX, "workspace image") &&
	       check_at_most(c, w->policy_configured, 1, "workspace policy") &&
	       check_at_most(c, w->policy_enabled, 1, "workspace policy") &&
	       check_at_most(c, w->executor, EXECUTOR_PROVIDER, "workspace executor") &&
	       check_at_most(c, w->max_iterations, INT32_MAX, "workspace iterations") &&
	       check_at_most(c, w->exec_timeout_s, INT32_MAX, "workspace time limit") &&
	       check_at_most(c, w->tools_set, 1, "workspace tools") &&
	       check_at_most(c, w->tools_mask, 7, "workspace tools");
}

static bool
check_ids(struct checker *c, struct snap_table t, const char *what)
{
	for (uint32_t i = 0; i < t.count; i++)
		if (!check_str(
			c, SNAP_AT(c->s, t, struct snap_model, i)->id, true, SNAP_NAME_MAX, what))
			return false;
	return true;
}

static bool
check_workspaces(struct checker *c, struct snap_table t)
{
	for (uint32_t i = 0; i < t.count; i++) {
		const struct snap_workspace *now = SNAP_AT(c->s, t, struct snap_workspace, i);
		if (!check_workspace(c, now) ||
		    !check_order(c, now[i > 0 ? -1 : 0].id, now->id, i, "workspace order"))
			return false;
	}
	return true;
}

static bool
check_declared(struct checker *c, struct snap_table t)
{
	for (uint32_t i = 0; i < t.count; i++) {
		const struct snap_declared *now = SNAP_AT(c->s, t, struct snap_declared, i);
		if (!check_str(c, now->what, true, SNAP_NAME_MAX, "declaration") ||
		    !check_str(c, now->where, true, SIZE_MAX, "place of a declaration") ||
		    !check_order(c, now[i > 0 ? -1 : 0].what, now->what, i, "declaration order"))
			return false;
	}
	return true;
}

static bool
check_policy(struct checker *c, const struct snap_policy *p)
{
	if (!check_settings(c, &p->settings) ||
	    !check_table(c, p->providers, sizeof(struct snap_provider), "providers") ||
	    !check_table(c, p->aliases, sizeof(struct snap_alias), "aliases") ||
	    !check_table(c, p->models, sizeof(struct snap_model), "models") ||
	    !check_table(c, p->workspaces, sizeof(struct snap_workspace), "workspaces") ||
	    !check_table(c, p->declared, sizeof(struct snap_declared), "declarations") ||
	    !check_table(c, p->session_images, sizeof(struct snap_model), "session images") ||
	    !check_str(c, p->default_provider, false, SNAP_NAME_MAX, "default provider"))
		return false;
	for (uint32_t i = 0; i < p->providers.count; i++) {
		const struct snap_provider *now =
		    SNAP_AT(c->s, p->providers, struct snap_provider, i);
		if (!check_provider(c, now) ||
		    !check_order(c, now[i > 0 ? -1 : 0].name, now->name, i, "provider order"))
			return false;
	}
	for (uint32_t i = 0; i < p->aliases.count; i++) {
		const struct snap_alias *now = SNAP_AT(c->s, p->aliases, struct snap_alias, i);
		if (!check_str(c, now->name, true, SNAP_NAME_MAX, "alias name") ||
		    !check_str(c, now->target, true, SNAP_NAME_MAX, "alias target") ||
		    !check_order(c, now[i > 0 ? -1 : 0].name, now->name, i, "alias order"))
			return false;
	}
	if (!check_ids(c, p->models, "model id") ||
	    !check_ids(c, p->session_images, "session image") ||
	    !check_workspaces(c, p->workspaces) || !check_declared(c, p->declared))
		return false;
	if (p->default_provider.off != 0 &&
	    snapshot_provider(c->s, snapshot_str(c->s, p->default_provider)) == NULL)
		return fail(c, "default provider");
	return true;
}

static bool
check_key(struct checker *c, const struct snap_key *k)
{
	bool required = k->is_active == 1;
	if (!check_str(c, k->id, required, SNAP_NAME_MAX, "key id") ||
	    !check_str(c, k->user_id, required, SNAP_NAME_MAX, "key's user") ||
	    !check_str(c, k->workspace_id, required, SNAP_NAME_MAX, "key's workspace") ||
	    !check_at_most(c, k->is_active, 1, "key's state") ||
	    !check_at_most(c, k->user_blocked, 1, "key's state") ||
	    !check_at_most(c, k->expires_s, INT64_MAX, "key's expiry") ||
	    !check_at_most(c, (int64_t)k->reject_user_mismatch + 1, 2, "key's settings") ||
	    !check_nested(c, k->allowed_models, sizeof(struct snap_model), "key's models"))
		return false;
	return check_ids(c, k->allowed_models, "key's models");
}

static bool
check_keys(struct checker *c, const struct snap_keys *r)
{
	if (!check_table(c, r->keys, sizeof(struct snap_key), "keys") ||
	    !check_at_most(c, r->is_delta, 1, "kind of keys") ||
	    (r->is_delta == 0 && r->base_generation != 0 && !fail(c, "base generation")))
		return false;
	for (uint32_t i = 0; i < r->keys.count; i++) {
		const struct snap_key *now = SNAP_AT(c->s, r->keys, struct snap_key, i);
		if (!check_key(c, now))
			return false;
		if (i > 0 && memcmp(now[-1].hash, now->hash, SHA256_BYTES) >= 0)
			return fail(c, "key order");
	}
	return true;
}

static size_t
root_size(enum snap_kind kind)
{
	return kind == SNAP_POLICY ? sizeof(struct snap_policy) : sizeof(struct snap_keys);
}

static enum err_code
check_image(struct snapshot *s, struct err *reterr)
{
	const struct snap_image *h = (const void *)s->image;
	if (h->magic != SNAP_MAGIC)
		return err_set(reterr, ERR_PROTO, "snapshot: not one of ours");
	if (h->layout != SNAP_LAYOUT)
		return err_set(reterr, ERR_PROTO, "snapshot: made by another build");
	if (h->kind != (uint32_t)s->kind)
		return err_set(reterr, ERR_PROTO, "snapshot: kind %u, wanted %d", h->kind, s->kind);
	if (h->total_bytes != s->size)
		return err_set(reterr, ERR_PROTO, "snapshot: cut");
	s->generation = h->generation;
	s->root = s->image + sizeof(struct snap_image);
	struct checker c = {.s = s};
	bool ok = s->kind == SNAP_POLICY ? check_policy(&c, s->root) : check_keys(&c, s->root);
	if (!ok)
		return err_set(reterr, ERR_PROTO, "snapshot: malformed %s",
		    c.wrong != NULL ? c.wrong : "image");
	return ERR_OK;
}

/* --- mapping --------------------------------------------------------------------------------- */

enum err_code
snapshot_map(int fd, enum snap_kind kind, struct snapshot **ret, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	void *p = MAP_FAILED;
	struct stat st;
	CHECK(kind == SNAP_POLICY || kind == SNAP_KEYS);
	if (!fd_is_sealed(fd) || fstat(fd, &st) != 0)
		rc = err_set(reterr, ERR_PROTO, "snapshot: not a sealed memfd");
	else if (st.st_size < (off_t)(sizeof(struct snap_image) + root_size(kind)) ||
		 st.st_size > (off_t)LIMIT_SNAPSHOT_BYTES)
		rc = err_set(
		    reterr, ERR_PROTO, "snapshot: size of %lld bytes", (long long)st.st_size);
	else if ((p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED)
		rc = err_set(reterr, ERR_IO, "snapshot: mmap");
	fd_close(&fd);
	if (rc != ERR_OK)
		return rc;
	struct snapshot *s = MEM_NEW(struct snapshot);
	s->magic = SNAPSHOT_MAGIC;
	s->refs = 1;
	s->image = p;
	s->size = (size_t)st.st_size;
	s->kind = kind;
	alive++;
	rc = check_image(s, reterr);
	if (rc != ERR_OK) {
		snapshot_put(&s);
		return rc;
	}
	*ret = s;
	return ERR_OK;
}

struct snapshot *
snapshot_get(struct snapshot *s)
{
	CHECK_MAGIC(s, SNAPSHOT_MAGIC);
	s->refs++;
	return s;
}

void
snapshot_put(struct snapshot **sp)
{
	struct snapshot *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	CHECK_MAGIC(s, SNAPSHOT_MAGIC);
	CHECK(s->refs > 0);
	if (--s->refs > 0)
		return;
	CHECK(munmap((void *)(uintptr_t)s->image, s->size) == 0);
	s->magic = 0;
	mem_free(s);
	alive--;
}

uint64_t
snapshot_generation(const struct snapshot *s)
{
	return s->generation;
}

unsigned
snapshot_alive(void)
{
	return alive;
}

const struct snap_policy *
snapshot_policy(const struct snapshot *s)
{
	CHECK(s->kind == SNAP_POLICY);
	return s->root;
}

const struct snap_keys *
snapshot_keys(const struct snapshot *s)
{
	CHECK(s->kind == SNAP_KEYS);
	return s->root;
}

struct str
snapshot_str(const struct snapshot *s, struct snap_str ref)
{
	return ref.off != 0 ? str_n(s->image + ref.off, ref.len) : STR_NULL;
}

const void *
snapshot_at(const struct snapshot *s, struct snap_table t, uint32_t i, size_t record_size)
{
	CHECK(i < t.count);
	return s->image + t.off + (size_t)i * record_size;
}

/* --- look-ups -------------------------------------------------------------------------------- */

/* Binary search in a table whose records begin with the name they are sorted by. */
static const void *
find_by_name(const struct snapshot *s, struct snap_table t, size_t record, struct str name)
{
	uint32_t lo = 0, hi = t.count;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct snap_str *at = snapshot_at(s, t, mid, record);
		int order = str_cmp(name, snapshot_str(s, *at));
		if (order == 0)
			return at;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}
_Static_assert(offsetof(struct snap_provider, name) == 0, "sorted by its first member");
_Static_assert(offsetof(struct snap_alias, name) == 0, "sorted by its first member");
_Static_assert(offsetof(struct snap_workspace, id) == 0, "sorted by its first member");
_Static_assert(offsetof(struct snap_declared, what) == 0, "sorted by its first member");

const struct snap_provider *
snapshot_provider(const struct snapshot *s, struct str name)
{
	return find_by_name(s, snapshot_policy(s)->providers, sizeof(struct snap_provider), name);
}

const struct snap_alias *
snapshot_alias(const struct snapshot *s, struct str name)
{
	return find_by_name(s, snapshot_policy(s)->aliases, sizeof(struct snap_alias), name);
}

const struct snap_workspace *
snapshot_workspace(const struct snapshot *s, struct str id)
{
	return find_by_name(s, snapshot_policy(s)->workspaces, sizeof(struct snap_workspace), id);
}

const struct snap_key *
snapshot_key(const struct snapshot *s, const unsigned char hash[SHA256_BYTES])
{
	struct snap_table t = snapshot_keys(s)->keys;
	uint32_t lo = 0, hi = t.count;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct snap_key *at = SNAP_AT(s, t, struct snap_key, mid);
		int order = memcmp(hash, at->hash, SHA256_BYTES);
		if (order == 0)
			return at;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

struct str
snapshot_declared(const struct snapshot *s, struct str what)
{
	const struct snap_declared *d =
	    find_by_name(s, snapshot_policy(s)->declared, sizeof(struct snap_declared), what);
	return d != NULL ? snapshot_str(s, d->where) : STR_NULL;
}

bool
snapshot_has_image(const struct snapshot *s, struct str image)
{
	struct snap_table t = snapshot_policy(s)->session_images;
	for (uint32_t i = 0; i < t.count; i++)
		if (str_eq(snapshot_str(s, SNAP_AT(s, t, struct snap_model, i)->id), image))
			return true;
	return false;
}
