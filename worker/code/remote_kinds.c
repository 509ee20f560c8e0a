/* Which tools a remote sandbox runs. Version 1 of the protocol lists none; one of ours says it when
 * a session is made, and another one when it refuses: 400 or 422 to a tool that it does not know.
 * The same statuses are a wrong input's, which the model wrote: so a refusal counts only when an
 * input that nobody could refuse is refused as well, or a caller could take a tool away from all
 * others. */
#include "base/clock.h"
#include "worker/code/remote.h"

/* Then it is tried again: somebody may have installed another one. */
#define REFUSED_MS 600000

uint32_t
remote_kinds(const struct code_backend *port)
{
	const struct remote_backend *b = (const struct remote_backend *)port;
	uint32_t kinds = b->kinds_said != 0 ? b->kinds_said : CODE_KINDS_ALL;
	for (uint32_t k = CODE_BASH; k <= CODE_EDITOR; k++)
		if (clock_mono_ms() < b->refused_until_ms[k])
			kinds &= ~(1u << k);
	return kinds;
}

bool
remote_kinds_is_open(const struct remote_backend *b, enum code_kind kind)
{
	return kind != CODE_PYTHON && b->kinds_said == 0 &&
	       (remote_kinds(&b->port) & 1u << kind) != 0;
}

void
remote_kinds_learn(struct remote_backend *b, enum code_kind kind, bool runs)
{
	if (kind == CODE_BASH || kind == CODE_EDITOR)
		b->refused_until_ms[kind] = runs ? 0 : clock_mono_ms() + REFUSED_MS;
}
