/* fuzz_protocol - what a sandbox elsewhere answers, and what a gateway asks of ours; the first byte
 * says which */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "worker/code/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
session(struct arena *a, struct str in)
{
	struct str id;
	uint32_t kinds;
	struct err e;
	if (protocol_read_session(a, in, &id, &kinds, &e) != ERR_OK)
		return;
	CHECK(kinds <= CODE_KINDS_ALL && (kinds == 0 || (kinds & 1u << CODE_PYTHON) != 0));
	CHECK(id.len > 0 && id.len <= PROTOCOL_ID_MAX && !str_eq(id, STR("..")));
	CHECK(str_chr(id, '\n') == SIZE_MAX && str_chr(id, '\0') == SIZE_MAX);
}

static void
listing(struct arena *a, struct str in)
{
	struct protocol_file *files;
	size_t n;
	struct err e;
	if (protocol_read_listing(a, in, &files, &n, &e) != ERR_OK)
		return;
	CHECK(n <= PROTOCOL_LISTED_MAX);
	for (size_t i = 0; i < n; i++)
		CHECK(code_name_ok(files[i].name) && files[i].path.len <= PROTOCOL_PATH_MAX);
}

static void
result(struct arena *a, enum code_kind kind, struct str in)
{
	struct protocol_result r;
	struct str name;
	struct err e;
	if (protocol_read_result(a, kind, in, &r, &e) != ERR_OK)
		return;
	CHECK(r.file_count <= PROTOCOL_NAMED_MAX && r.has_edit <= (kind == CODE_EDITOR));
	for (size_t i = 0; i < r.file_count; i++)
		CHECK(protocol_name(r.files[i], &name) && code_name_ok(name));
}

static void
exec(struct arena *a, struct str in)
{
	struct protocol_exec x;
	struct err e;
	if (protocol_read_exec(a, in, &x, &e) == ERR_OK)
		CHECK(x.timeout_ms >= 1000 && x.timeout_ms <= PROTOCOL_TIMEOUT_MAX_S * 1000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 100000)
		return 0;
	struct arena *a = arena_new(8u << 20);
	struct str in = str_n(data + 1, size - 1);
	switch (data[0] % 6) {
	case 0:
		session(a, in);
		break;
	case 1:
		listing(a, in);
		break;
	case 2:
		result(a, CODE_PYTHON, in);
		break;
	case 3:
		result(a, CODE_EDITOR, in);
		break;
	case 4:
		exec(a, in);
		break;
	default:
		CHECK(protocol_retry_after_s(in) <= PROTOCOL_RETRY_AFTER_MAX_S);
		break;
	}
	arena_free(&a);
	return 0;
}
