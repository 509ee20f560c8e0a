/* Snapshot images of a stranger: refused, or every reference in them can be read. The first byte
 * chooses the kind; the head is made right so that the fuzzer gets at the tables. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fd.h"
#include "ipc/snapshot.h"
#include "ipc/snapshot_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char seen;

static void
read_str(const struct snapshot *s, struct snap_str ref)
{
	struct str t = snapshot_str(s, ref);
	for (size_t i = 0; i < t.len; i++)
		seen ^= (unsigned char)t.ptr[i];
}

static void
read_policy(const struct snapshot *s)
{
	const struct snap_policy *p = snapshot_policy(s);
	for (uint32_t i = 0; i < p->providers.count; i++) {
		const struct snap_provider *pr = SNAP_AT(s, p->providers, struct snap_provider, i);
		CHECK(snapshot_provider(s, snapshot_str(s, pr->name)) == pr);
		for (uint32_t h = 0; h < pr->headers.count; h++)
			read_str(s, SNAP_AT(s, pr->headers, struct snap_header_pair, h)->value);
	}
	for (uint32_t i = 0; i < p->aliases.count; i++) {
		const struct snap_alias *al = SNAP_AT(s, p->aliases, struct snap_alias, i);
		CHECK(snapshot_alias(s, snapshot_str(s, al->name)) == al);
	}
	for (uint32_t i = 0; i < p->workspaces.count; i++)
		read_str(s, SNAP_AT(s, p->workspaces, struct snap_workspace, i)->name);
	for (uint32_t i = 0; i < p->declared.count; i++) {
		const struct snap_declared *d = SNAP_AT(s, p->declared, struct snap_declared, i);
		struct str where = snapshot_declared(s, snapshot_str(s, d->what));
		CHECK(where.ptr == snapshot_str(s, d->where).ptr);
	}
	for (uint32_t i = 0; i < p->session_images.count; i++)
		read_str(s, SNAP_AT(s, p->session_images, struct snap_model, i)->id);
}

static void
read_keys(const struct snapshot *s)
{
	const struct snap_keys *r = snapshot_keys(s);
	for (uint32_t i = 0; i < r->keys.count; i++) {
		const struct snap_key *k = SNAP_AT(s, r->keys, struct snap_key, i);
		CHECK(snapshot_key(s, k->hash) == k);
		read_str(s, k->id);
		for (uint32_t m = 0; m < k->allowed_models.count; m++)
			read_str(s, SNAP_AT(s, k->allowed_models, struct snap_model, m)->id);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 + sizeof(struct snap_image))
		return 0;
	enum snap_kind kind = (data[0] & 1) != 0 ? SNAP_KEYS : SNAP_POLICY;
	struct snap_image head = {SNAP_MAGIC, SNAP_LAYOUT, kind, 1, size - 1};
	int fd = fd_memfd("fuzz");
	if (fd < 0)
		abort();
	if (fd_write_all(fd, str_n(&head, sizeof(head)), NULL) != ERR_OK ||
	    fd_write_all(fd, str_n(data + 1 + sizeof(head), size - 1 - sizeof(head)), NULL) !=
		ERR_OK ||
	    !fd_seal(fd))
		abort();
	struct snapshot *s;
	if (snapshot_map(fd, kind, &s, NULL) != ERR_OK)
		return 0;
	if (kind == SNAP_POLICY)
		read_policy(s);
	else
		read_keys(s);
	snapshot_put(&s);
	return 0;
}
