#include "worker/turn/mint.h"

#include "base/id.h"

static struct str
mint(struct arena *a, const char *prefix)
{
	char id[ID_SIZE];
	id_make(prefix, id);
	return arena_str(a, str_c(id));
}

struct str
mint_execution_id(struct arena *a, enum wire wire)
{
	return mint(a, wire == WIRE_RESPONSES ? "otari_ci_" : "otari_srvtoolu_");
}

struct str
mint_container_id(struct arena *a)
{
	return mint(a, "otari_cntr_");
}

struct str
mint_file_id(struct arena *a)
{
	return mint(a, "file-");
}
