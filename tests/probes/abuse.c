#include "tests/probes/probe.h"
void
probes_abuse(struct probe_host *h)
{
	(void)h;
}
