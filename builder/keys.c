#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "builder/build.h"
#include "ipc/snapshot_build.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_user.h"

/* A delta is worth its while as long as it is small beside the base. */
#define DELTA_ALWAYS     256u
#define DELTA_SHARE      4u /* of the base: a quarter */
#define DELTA_BASE_AGE_S 86400u
#define MODELS_MAX       1000u

struct keys_image {
	struct snap_build *snap;
	struct snap_key *keys;
	size_t count, cap;
	bool is_delta;
	struct map *blocked;   /* ids of blocked users */
	bool has_changed_user; /* delta: since the base */
	int64_t since;
	uint64_t false_rows; /* with a hash or list that cannot be read */
	struct map *seen;    /* delta: hashes already taken */
};

void
keys_image_free(struct keys_image **ip)
{
	struct keys_image *im = *ip;
	*ip = NULL;
	if (im == NULL)
		return;
	snap_build_free(&im->snap);
	map_free(&im->blocked);
	map_free(&im->seen);
	mem_free(im->keys);
	mem_free(im);
}

static struct keys_image *
image_new(const struct build *b, bool is_delta)
{
	struct keys_image *im = MEM_NEW(struct keys_image);
	im->snap = snap_build_new(SNAP_KEYS, b->req.generation);
	im->blocked = map_new();
	im->seen = map_new();
	im->is_delta = is_delta;
	im->since = is_delta ? (int64_t)b->req.keys_since : 0;
	return im;
}

static struct snap_key *
add_entry(struct keys_image *im)
{
	if (im->count == im->cap) {
		im->cap = im->cap != 0 ? im->cap * 2 : 64;
		im->keys = mem_grow(im->keys, im->cap, sizeof(*im->keys));
	}
	struct snap_key *k = &im->keys[im->count++];
	memset(k, 0, sizeof(*k));
	k->reject_user_mismatch = -1;
	return k;
}

/* NULL: every model. A list that cannot be read allows none. */
static struct snap_table
models_of(struct keys_image *im, struct str json)
{
	struct snap_model models[MODELS_MAX];
	uint32_t n = 0;
	if (json.ptr == NULL)
		return (struct snap_table){0, 0};
	json_t *list = json_loadb(json.ptr, json.len, 0, NULL), *item;
	size_t i;
	if (!json_is_array(list))
		im->false_rows++;
	json_array_foreach(list, i, item) {
		if (json_is_string(item) && json_string_length(item) > 0 &&
		    json_string_length(item) <= 512 && n < MODELS_MAX)
			models[n++].id = snap_build_str(
			    im->snap, str_n(json_string_value(item), json_string_length(item)));
	}
	json_decref(list);
	return SNAP_TABLE(im->snap, models, n);
}

/* What a reader of the snapshot accepts. */
static bool
is_id(struct str s)
{
	return s.ptr != NULL && s.len > 0 && s.len <= 1024;
}

static void
take_key(struct keys_image *im, const struct store_key *row)
{
	unsigned char hash[SHA256_BYTES];
	if (!hex_decode(row->hash_hex, hash, SHA256_BYTES) || !is_id(row->id) ||
	    !is_id(row->user_id) || !is_id(row->workspace_id)) {
		im->false_rows++;
		return;
	}
	if (!im->is_delta && !row->is_active)
		return;
	if (im->is_delta) {
		if (map_get(im->seen, row->hash_hex) != NULL)
			return;
		map_put(im->seen, row->hash_hex, im);
	}
	struct snap_key *k = add_entry(im);
	memcpy(k->hash, hash, SHA256_BYTES);
	k->id = snap_build_str_unique(im->snap, row->id);
	k->user_id = snap_build_str(im->snap, row->user_id);
	k->workspace_id = snap_build_str(im->snap, row->workspace_id);
	k->expires_s = row->expires_at_s > 0 ? row->expires_at_s : 0;
	k->is_active = row->is_active;
	k->user_blocked = map_get(im->blocked, row->user_id) != NULL;
	k->allowed_models = models_of(im, row->allowed_models_json);
}

static enum err_code
on_key(const struct store_key *row, void *arg, struct err *reterr)
{
	(void)reterr;
	take_key(arg, row);
	return ERR_OK;
}

static enum err_code
on_gone(struct str hash_hex, void *arg, struct err *reterr)
{
	struct keys_image *im = arg;
	unsigned char hash[SHA256_BYTES];
	(void)reterr;
	if (!hex_decode(hash_hex, hash, SHA256_BYTES)) {
		im->false_rows++;
		return ERR_OK;
	}
	if (map_get(im->seen, hash_hex) != NULL)
		return ERR_OK; /* made again since */
	map_put(im->seen, hash_hex, im);
	memcpy(add_entry(im)->hash, hash, SHA256_BYTES);
	return ERR_OK;
}

static enum err_code
on_user(const struct store_user *row, void *arg, struct err *reterr)
{
	struct keys_image *im = arg;
	(void)reterr;
	if (row->blocked)
		map_put(im->blocked, row->id, im);
	if (im->is_delta && row->changed_gen > im->since)
		im->has_changed_user = true;
	return ERR_OK;
}

static enum err_code
read_all(struct build *b, struct keys_image *im, struct err *reterr)
{
	enum err_code rc = store_user_scan(b->db, 0, on_user, im, reterr);
	if (rc != ERR_OK)
		return rc;
	if (!im->is_delta)
		return store_key_scan(b->db, 0, on_key, im, reterr);
	rc = store_key_scan(b->db, im->since, on_key, im, reterr);
	/* A delta holds the keys of changed users too: whether a user is blocked is in the key. */
	if (rc == ERR_OK && im->has_changed_user)
		rc = store_key_scan_users(b->db, im->since, on_key, im, reterr);
	if (rc == ERR_OK)
		rc = store_key_scan_gone(b->db, im->since, on_gone, im, reterr);
	return rc;
}

static bool
wants_delta(const struct build *b)
{
	const struct build_request *q = &b->req;
	return q->keys_base != 0 && q->keys_since != 0 && !q->reload && !q->first &&
	       q->keys_base_age_s < DELTA_BASE_AGE_S;
}

static bool
is_too_large(const struct build *b, const struct keys_image *im)
{
	return im->count > DELTA_ALWAYS && im->count > b->req.keys_base_count / DELTA_SHARE;
}

enum err_code
keys_read(struct build *b, struct keys_image **ret, struct err *reterr)
{
	struct keys_image *im = image_new(b, wants_delta(b));
	enum err_code rc = read_all(b, im, reterr);
	if (rc == ERR_OK && im->is_delta && is_too_large(b, im)) {
		keys_image_free(&im);
		im = image_new(b, false);
		rc = read_all(b, im, reterr);
	}
	if (rc != ERR_OK)
		keys_image_free(&im);
	*ret = im;
	return rc;
}

enum err_code
keys_make(struct build *b, struct keys_image **ip, int *ret_fd, struct err *reterr)
{
	struct keys_image *im = *ip;
	if (im->false_rows > 0)
		conf_warning(&b->report, 0, "the database has %llu keys that cannot be read",
		    (unsigned long long)im->false_rows);
	if (im->count > UINT32_MAX)
		return err_set(reterr, ERR_TOOLARGE, "too many keys");
	struct snap_keys root = {.keys = SNAP_TABLE(im->snap, im->keys, (uint32_t)im->count),
	    .is_delta = im->is_delta,
	    .base_generation = im->is_delta ? b->req.keys_base : 0};
	b->result.keys_is_delta = im->is_delta;
	b->result.keys_count = im->count;
	enum err_code rc = snap_build_end_keys(&im->snap, &root, ret_fd, reterr);
	keys_image_free(ip);
	return rc;
}
