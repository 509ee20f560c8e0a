/* snapshot_image.h - the bytes of a snapshot, shared by snapshot.c and snapshot_build.c only
 *
 * image = struct snap_image, root (struct snap_policy or struct snap_keys), then tables (aligned to
 * SNAP_ALIGN) and strings (each followed by a NUL that is not counted) in any order.
 * providers, aliases, workspaces and declarations are sorted by name (workspaces by id), keys by
 * hash; no duplicates. Native byte order: an image never leaves the host, and both sides are one
 * binary.
 */
#ifndef OTARI_IPC_SNAPSHOT_IMAGE_H
#define OTARI_IPC_SNAPSHOT_IMAGE_H

#include "ipc/snapshot.h"

#define SNAP_MAGIC 0x4E53415241544F01u
#define SNAP_ALIGN 8u
/* Changes with every change of a record's size, so that a forgotten bump is caught. */
#define SNAP_LAYOUT                                                                                \
	((uint32_t)(sizeof(struct snap_policy) + 131 * sizeof(struct snap_provider) +              \
		    1031 * sizeof(struct snap_workspace) + 8209 * sizeof(struct snap_key) +        \
		    65537 * sizeof(struct snap_keys)))
#define SNAP_NAME_MAX 1024u /* longest name that is looked up */

struct snap_image {
	uint64_t magic;
	uint32_t layout;
	uint32_t kind; /* enum snap_kind */
	uint64_t generation;
	uint64_t total_bytes;
};

#endif
