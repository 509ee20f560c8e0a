#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void
check_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "otari: CHECK failed: %s at %s:%d\n", expr, file, line);
	fflush(stderr);
	abort();
}
