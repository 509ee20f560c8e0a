/* fuzz_messages.c - payloads between the master and its children; the first byte says which */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "ipc/build.h"
#include "ipc/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
decode_small(uint8_t which, struct str in)
{
	struct hello hello;
	struct snapshot_note note;
	struct ack ack;
	struct publish_ask ask;
	struct published published;
	struct listen_note listen;
	struct tried tried;
	struct build_file_answer answer;
	switch (which % 8) {
	case 0:
		(void)(hello_decode(in, &hello, NULL) == ERR_OK);
		break;
	case 1:
		(void)(snapshot_note_decode(in, &note, NULL) == ERR_OK);
		break;
	case 2:
		(void)(ack_decode(in, &ack, NULL) == ERR_OK);
		break;
	case 3:
		if (publish_ask_decode(in, &ask, NULL) == ERR_OK &&
		    (ask.what == 0 || ask.what > SEG_BOTH))
			__builtin_trap();
		break;
	case 4:
		(void)(published_decode(in, &published, NULL) == ERR_OK);
		break;
	case 5:
		(void)(listen_note_decode(in, &listen, NULL) == ERR_OK);
		break;
	case 6:
		(void)(tried_decode(in, &tried, NULL) == ERR_OK);
		break;
	default:
		(void)(build_file_answer_decode(in, &answer, NULL) == ERR_OK);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct build_request request;
	struct build_file file;
	struct build_result result;
	if (size == 0)
		return 0;
	struct str in = str_n(data + 1, size - 1);
	struct arena *a = arena_new(1u << 20);
	switch (data[0] % 4) {
	case 0:
		(void)(build_request_decode(a, in, &request, NULL) == ERR_OK);
		break;
	case 1:
		(void)(build_file_decode(a, in, &file, NULL) == ERR_OK);
		break;
	case 2:
		if (build_result_decode(a, in, &result, NULL) == ERR_OK &&
		    result.nfds > BUILD_FDS_MAX)
			__builtin_trap();
		break;
	default:
		decode_small(data[0] / 4, in);
		break;
	}
	arena_free(&a);
	return 0;
}
