/* Snapshot images: what the builder makes is what workers read; anything else is refused. */
#include <sys/mman.h>

#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/mem.h"
#include "ipc/snapshot.h"
#include "ipc/snapshot_build.h"
#include "ipc/snapshot_image.h"

TestSuite(snapshot, .timeout = 20);

static int
make_policy(void)
{
	struct snap_build *b = snap_build_new(SNAP_POLICY, 42);
	struct snap_policy root = {0};
	unsigned char digest[SHA256_BYTES] = {1, 2, 3};
	root.settings.state_dir = snap_build_str(b, STR("/var/lib/otari"));
	root.settings.master_key_sha256 = snap_build_str(b, str_n(digest, sizeof(digest)));
	root.settings.require_pricing = 2;
	root.settings.max_body_bytes = 33554432;
	struct snap_header_pair headers[] = {
	    {snap_build_str(b, STR("x-a")), snap_build_str(b, STR(""))},
	    {snap_build_str(b, STR("x-b")), snap_build_str(b, STR("two"))}};
	struct snap_provider providers[3] = {0};
	static const char *const names[] = {"openai", "anthropic", "mistral"};
	for (size_t i = 0; i < 3; i++) {
		providers[i].name = snap_build_str(b, str_c(names[i]));
		providers[i].provider_type = snap_build_str(b, str_c(names[i]));
		providers[i].api_base = snap_build_str(b, STR("https://example.invalid/v1"));
		providers[i].native_code_execution = -1;
		providers[i].wire = (uint32_t)i;
	}
	providers[0].headers = SNAP_TABLE(b, headers, 2);
	root.providers = SNAP_TABLE(b, providers, 3);
	struct snap_alias aliases[] = {
	    {snap_build_str(b, STR("fast")), snap_build_str(b, STR("openai:small"))},
	    {snap_build_str(b, STR("big")), snap_build_str(b, STR("anthropic:large"))}};
	root.aliases = SNAP_TABLE(b, aliases, 2);
	struct snap_workspace ws[2] = {0};
	ws[0].id = snap_build_str(b, STR("w2"));
	ws[1].id = snap_build_str(b, STR("w1"));
	ws[1].name = snap_build_str(b, STR("first"));
	ws[1].executor = EXECUTOR_OTARI;
	ws[1].tools_set = 1;
	ws[1].tools_mask = 5;
	root.workspaces = SNAP_TABLE(b, ws, 2);
	struct snap_model models[] = {{snap_build_str(b, STR("openai:small"))}};
	root.models = SNAP_TABLE(b, models, 1);
	root.session_images = SNAP_TABLE(b, models, 1);
	struct snap_declared declared[] = {
	    {snap_build_str(b, STR("setting/tools_header")), snap_build_str(b, STR("x.conf:2"))},
	    {snap_build_str(b, STR("policy/w1")), snap_build_str(b, STR("x.conf:9"))}};
	root.declared = SNAP_TABLE(b, declared, 2);
	root.default_provider = snap_build_str(b, STR("mistral"));
	int fd = -1;
	struct err e = {0};
	cr_assert_eq(snap_build_end_policy(&b, &root, &fd, &e), ERR_OK, "%s", e.msg);
	return fd;
}

static int
make_keys(uint32_t count)
{
	struct snap_build *b = snap_build_new(SNAP_KEYS, 7);
	struct snap_key *keys = MEM_NEW_ARRAY(struct snap_key, count);
	for (uint32_t i = 0; i < count; i++) {
		sha256_of(str_n(&i, sizeof(i)), keys[i].hash);
		keys[i].id = snap_build_str(b, STR("id"));
		keys[i].user_id = snap_build_str(b, STR("default"));
		keys[i].workspace_id = snap_build_str(b, STR("w1"));
		keys[i].expires_s = i;
		keys[i].is_active = 1;
		keys[i].reject_user_mismatch = -1;
		struct snap_model m = {snap_build_str(b, STR("openai:small"))};
		if (i % 3 == 1)
			keys[i].allowed_models = SNAP_TABLE(b, &m, 1);
		if (i % 3 == 2)
			keys[i].allowed_models = SNAP_TABLE(b, &m, 0);
	}
	struct snap_keys root = {.keys = SNAP_TABLE(b, keys, count)};
	mem_free(keys);
	int fd = -1;
	struct err e = {0};
	cr_assert_eq(snap_build_end_keys(&b, &root, &fd, &e), ERR_OK, "%s", e.msg);
	return fd;
}

Test(snapshot, policy_goes_round)
{
	struct snapshot *s;
	struct err e = {0};
	cr_assert_eq(snapshot_map(make_policy(), SNAP_POLICY, &s, &e), ERR_OK, "%s", e.msg);
	cr_assert_eq(snapshot_generation(s), 42);
	const struct snap_policy *p = snapshot_policy(s);
	cr_assert(str_eq(snapshot_str(s, p->settings.state_dir), STR("/var/lib/otari")));
	cr_assert_null(snapshot_str(s, p->settings.sandbox_url).ptr);
	cr_assert_eq(p->settings.max_body_bytes, 33554432);
	const struct snap_provider *o = snapshot_provider(s, STR("openai"));
	cr_assert(o != NULL && o->wire == SNAP_WIRE_CHAT && o->headers.count == 2);
	const struct snap_header_pair *h = SNAP_AT(s, o->headers, struct snap_header_pair, 0);
	cr_assert(snapshot_str(s, h->value).ptr != NULL && snapshot_str(s, h->value).len == 0);
	cr_assert_not_null(snapshot_provider(s, STR("anthropic")));
	cr_assert_not_null(snapshot_provider(s, STR("mistral")));
	cr_assert_null(snapshot_provider(s, STR("open")));
	cr_assert_null(snapshot_provider(s, STR("")));
	const struct snap_alias *al = snapshot_alias(s, STR("big"));
	cr_assert(al != NULL && str_eq(snapshot_str(s, al->target), STR("anthropic:large")));
	const struct snap_workspace *w = snapshot_workspace(s, STR("w1"));
	cr_assert(w != NULL && w->executor == EXECUTOR_OTARI && w->tools_mask == 5);
	cr_assert_null(snapshot_workspace(s, STR("w3")));
	cr_assert(str_eq(snapshot_declared(s, STR("policy/w1")), STR("x.conf:9")));
	cr_assert_null(snapshot_declared(s, STR("policy/w2")).ptr);
	cr_assert(snapshot_has_image(s, STR("openai:small")) && !snapshot_has_image(s, STR("")));
	snapshot_put(&s);
	cr_assert_null(s);
}

Test(snapshot, keys_are_found_by_hash)
{
	struct snapshot *s;
	struct err e = {0};
	cr_assert_eq(snapshot_map(make_keys(1000), SNAP_KEYS, &s, &e), ERR_OK, "%s", e.msg);
	unsigned char hash[SHA256_BYTES];
	for (uint32_t i = 0; i < 1000; i++) {
		sha256_of(str_n(&i, sizeof(i)), hash);
		const struct snap_key *k = snapshot_key(s, hash);
		cr_assert(k != NULL && k->expires_s == (int64_t)i, "key %u", i);
		cr_assert_eq(k->allowed_models.off != 0, i % 3 != 0, "key %u", i);
		cr_assert_eq(k->allowed_models.count, i % 3 == 1 ? 1 : 0, "key %u", i);
	}
	sha256_of(STR("nobody"), hash);
	cr_assert_null(snapshot_key(s, hash));
	snapshot_put(&s);
	cr_assert_eq(snapshot_map(make_keys(0), SNAP_KEYS, &s, &e), ERR_OK, "%s", e.msg);
	cr_assert_null(snapshot_key(s, hash));
	snapshot_put(&s);
}

Test(snapshot, is_unmapped_by_the_last_put)
{
	struct snapshot *s;
	int before = fd_count_open();
	cr_assert_eq(snapshot_map(make_policy(), SNAP_POLICY, &s, NULL), ERR_OK);
	cr_assert_eq(snapshot_alive(), 1);
	struct snapshot *again = snapshot_get(s);
	snapshot_put(&s);
	cr_assert_eq(snapshot_alive(), 1);
	cr_assert_eq(snapshot_generation(again), 42);
	snapshot_put(&again);
	cr_assert_eq(snapshot_alive(), 0);
	cr_assert_eq(fd_count_open(), before);
	snapshot_put(&s);
}

Test(snapshot, builder_refuses_duplicates)
{
	struct snap_build *b = snap_build_new(SNAP_POLICY, 1);
	struct snap_alias aliases[] = {{snap_build_str(b, STR("x")), snap_build_str(b, STR("a:b"))},
	    {snap_build_str_unique(b, STR("x")), snap_build_str(b, STR("a:c"))}};
	struct snap_policy root = {.aliases = SNAP_TABLE(b, aliases, 2)};
	int fd = -1;
	struct err e = {0};
	cr_assert_eq(snap_build_end_policy(&b, &root, &fd, &e), ERR_CONFLICT);
	cr_assert(strstr(e.msg, "alias 'x'") != NULL, "%s", e.msg);
	cr_assert_null(b);
	b = snap_build_new(SNAP_KEYS, 1);
	struct snap_key keys[2] = {0};
	struct snap_keys kroot = {.keys = SNAP_TABLE(b, keys, 2)};
	cr_assert_eq(snap_build_end_keys(&b, &kroot, &fd, &e), ERR_CONFLICT);
	cr_assert_eq(fd, -1);
}

Test(snapshot, builder_shares_equal_strings)
{
	struct snap_build *b = snap_build_new(SNAP_POLICY, 1);
	struct snap_str one = snap_build_str(b, STR("same")), two = snap_build_str(b, STR("same"));
	cr_assert_eq(one.off, two.off);
	cr_assert_eq(snap_build_str(b, STR_NULL).off, 0);
	cr_assert_neq(snap_build_str(b, STR("")).off, 0);
	snap_build_free(&b);
	snap_build_free(&b);
}

/* --- hostile images -------------------------------------------------------------------------- */

struct image {
	char *bytes;
	size_t size;
};

static struct image
load(int fd)
{
	struct image im;
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(fd_read_all(fd, 1 << 24, &im.bytes, &im.size, NULL), ERR_OK);
	fd_close(&fd);
	return im;
}

static enum err_code
try_map(const char *bytes, size_t size, enum snap_kind kind, bool seal)
{
	int fd = fd_memfd("test");
	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, str_n(bytes, size), NULL), ERR_OK);
	if (seal)
		cr_assert(fd_seal(fd));
	struct snapshot *s = NULL;
	enum err_code rc = snapshot_map(fd, kind, &s, NULL);
	snapshot_put(&s);
	return rc;
}

Test(snapshot, refuses_wrong_frames)
{
	struct image im = load(make_policy());
	cr_assert_eq(try_map(im.bytes, im.size, SNAP_POLICY, true), ERR_OK);
	cr_assert_eq(try_map(im.bytes, im.size, SNAP_POLICY, false), ERR_PROTO, "not sealed");
	cr_assert_eq(try_map(im.bytes, im.size, SNAP_KEYS, true), ERR_PROTO, "other kind");
	cr_assert_eq(try_map(im.bytes, im.size - 1, SNAP_POLICY, true), ERR_PROTO, "cut");
	cr_assert_eq(
	    try_map(im.bytes, 16, SNAP_POLICY, true), ERR_PROTO, "only a part of the head");
	cr_assert_eq(try_map(im.bytes, 0, SNAP_POLICY, true), ERR_PROTO, "empty");
	struct snap_image *h = (void *)im.bytes;
	h->layout++;
	cr_assert_eq(try_map(im.bytes, im.size, SNAP_POLICY, true), ERR_PROTO, "other layout");
	h->layout--;
	h->magic++;
	cr_assert_eq(try_map(im.bytes, im.size, SNAP_POLICY, true), ERR_PROTO, "other magic");
	mem_free(im.bytes);
	int fds[2];
	cr_assert(fd_pipe(fds, false));
	struct snapshot *s;
	cr_assert_eq(snapshot_map(fds[0], SNAP_POLICY, &s, NULL), ERR_PROTO, "a pipe");
	fd_close(&fds[1]);
	cr_assert_eq(snapshot_alive(), 0);
}

Test(snapshot, refuses_false_references)
{
	struct image im = load(make_policy());
	char *copy = mem_alloc(im.size);
	struct snap_policy *p = (void *)(copy + sizeof(struct snap_image));
	for (int i = 0; i < 23; i++) {
		memcpy(copy, im.bytes, im.size);
		struct snap_provider *pr = (void *)(copy + p->providers.off);
		struct snap_workspace *w = (void *)(copy + p->workspaces.off);
		switch (i) {
		case 0:
			p->settings.state_dir.off = (uint32_t)im.size;
			break;
		case 1:
			p->settings.state_dir.len = UINT32_MAX;
			break;
		case 2:
			p->settings.state_dir.off = 8;
			break;
		case 3:
			p->settings.state_dir.off = 0;
			break;
		case 4:
			p->settings.master_key_sha256.len = 31;
			break;
		case 5:
			p->settings.require_pricing = 3;
			break;
		case 6:
			p->settings.code_execution_executor = 4;
			break;
		case 7:
			p->providers.count = UINT32_MAX;
			break;
		case 8:
			p->providers.off++;
			break;
		case 9:
			p->providers.off = 0;
			break;
		case 10:
			pr[0].wire = 3;
			break;
		case 11:
			pr[0].native_code_execution = -2;
			break;
		case 12:
			pr[0].headers.count = 1u << 30;
			break;
		case 13:
			pr[0].api_base = (struct snap_str){0, 0};
			break;
		case 14:
			pr[0].name = pr[1].name;
			break;
		case 15:
			w[0].tools_mask = 8;
			break;
		case 16:
			w[0].max_iterations = -1;
			break;
		case 17: {
			struct snap_workspace t = w[0];
			w[0] = w[1];
			w[1] = t;
			break;
		}
		case 18:
			p->default_provider = p->settings.state_dir;
			break;
		case 19:
			p->aliases.count++;
			break;
		case 20:
			p->models.off = UINT32_MAX - 7;
			break;
		case 21:
			pr[1].native_documents = 2;
			break;
		default:
			p->settings.state_dir.len--;
			break; /* no NUL behind it */
		}
		cr_assert_eq(try_map(copy, im.size, SNAP_POLICY, true), ERR_PROTO, "row %d", i);
	}
	mem_free(copy);
	mem_free(im.bytes);
}

Test(snapshot, refuses_false_keys)
{
	struct image im = load(make_keys(4));
	char *copy = mem_alloc(im.size);
	struct snap_keys *r = (void *)(copy + sizeof(struct snap_image));
	for (int i = 0; i < 9; i++) {
		memcpy(copy, im.bytes, im.size);
		struct snap_key *k = (void *)(copy + r->keys.off);
		switch (i) {
		case 0:
			k[0].is_active = 2;
			break;
		case 1:
			memcpy(k[0].hash, k[1].hash, SHA256_BYTES);
			break;
		case 2:
			k[0].expires_s = -1;
			break;
		case 3:
			k[1].user_id = (struct snap_str){0, 0};
			break;
		case 4:
			k[2].reject_user_mismatch = 2;
			break;
		case 5:
			r->base_generation = 1;
			break;
		case 6:
			k[0].allowed_models = r->keys;
			break;
		case 7:
			r->is_delta = 2;
			break;
		default:
			r->keys.count = (uint32_t)(im.size / sizeof(*k)) + 1;
			break;
		}
		cr_assert_eq(try_map(copy, im.size, SNAP_KEYS, true), ERR_PROTO, "row %d", i);
	}
	mem_free(copy);
	mem_free(im.bytes);
}

/* Every word of the image in turn is replaced; a reader must refuse it or be able to read it all.
 */
Test(snapshot, survives_any_changed_word)
{
	static const uint32_t values[] = {0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF};
	for (int which = 0; which < 2; which++) {
		struct image im = load(which == 0 ? make_policy() : make_keys(3));
		for (size_t at = 0; at + 4 <= im.size; at += 4) {
			uint32_t old;
			memcpy(&old, im.bytes + at, 4);
			for (size_t v = 0; v < ARRAY_LEN(values); v++) {
				memcpy(im.bytes + at, &values[v], 4);
				enum err_code rc = try_map(
				    im.bytes, im.size, which == 0 ? SNAP_POLICY : SNAP_KEYS, true);
				cr_assert(rc == ERR_OK || rc == ERR_PROTO);
			}
			memcpy(im.bytes + at, &old, 4);
		}
		mem_free(im.bytes);
	}
}
