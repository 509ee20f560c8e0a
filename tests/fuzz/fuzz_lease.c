/* fuzz_lease - messages between master, spawner and workers */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "ipc/lease.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union lease_msg m;
	struct err e;
	if (lease_decode(str_n(data, size), &m, &e) != ERR_OK)
		return 0;
	CHECK(lease_size(m.type) == size);
	if (m.type == LEASE_MSG_SETTINGS)
		CHECK(strlen(m.settings.settings.python) < LEASE_PATH_MAX);
	if (m.type == LEASE_MSG_LEASE)
		CHECK(strlen(m.request.workspace) <= LEASE_WORKSPACE_MAX);
	if (m.type == LEASE_MSG_STATS) {
		CHECK(strlen(m.stats.zygote_text) < sizeof(m.stats.zygote_text));
		CHECK(strcmp(lease_zygote_name(m.stats.zygote), "unknown") != 0);
	}
	if (m.type == LEASE_MSG_SELFTEST)
		for (size_t i = 0; i < SB_LAYERS_; i++)
			CHECK(strcmp(lease_layer_state_name(m.selftest.layer[i].state),
				  "unknown") != 0);
	return 0;
}
