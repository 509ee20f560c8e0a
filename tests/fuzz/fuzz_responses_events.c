#include "tests/fuzz/dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_events(WIRE_RESPONSES, data, size);
}
