/* fuzz_frames - every frame that comes out of a session, in any order, through the checks of the
 * worker. Also every payload of a worker, which init decodes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "ipc/frames.h"
#include "sandbox/collect/select.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
decode(struct collect_check *c, uint8_t type, struct str p)
{
	struct frame_file file;
	struct frame_run run;
	struct frame_ready ready;
	struct frame_put_done put;
	struct frame_result result;
	struct frame_file_end fe;
	struct frame_omitted om;
	struct frame_end end;
	struct frame_check check;
	struct frame_edit edit;
	struct frame_edited edited;
	struct frame_convert convert;
	struct frame_entry entry;
	if (frame_file_get(p, &file))
		CHECK(frame_path_ok(file.path) && file.path.ptr + file.path.len == p.ptr + p.len);
	(void)frame_run_get(p, &run);
	(void)frame_ready_get(p, &ready);
	(void)frame_put_done_get(p, &put);
	(void)frame_result_get(p, &result);
	if (frame_check_get(p, &check))
		CHECK(check.text.len <= p.len);
	if (frame_edit_get(p, &edit))
		CHECK(edit.path.len + edit.old.len + edit.text.len == p.len - 20);
	if (frame_convert_get(p, &convert))
		CHECK(frame_path_ok(convert.path));
	if (frame_edited_get(p, &edited))
		CHECK(edited.error < FRAME_EDIT_ERROR_END_ && edited.total_lines <= INT32_MAX);
	if (frame_entry_get(p, &entry))
		CHECK(frame_path_ok(entry.path) && entry.path.len == p.len - 16);
	uint64_t before = c->budget.bytes_left;
	if (type == FRAME_FILE && frame_file_get(p, &file) && collect_check_file(c, &file))
		CHECK(before - c->budget.bytes_left == file.size);
	if (type == FRAME_FILE_DATA && collect_check_data(c, p.len))
		CHECK(c->state == COLLECT_IN_FILE);
	if (type == FRAME_FILE_END && frame_file_end_get(p, &fe))
		(void)collect_check_file_end(c, &fe);
	if (type == FRAME_OMITTED && frame_omitted_get(p, &om))
		(void)collect_check_omitted(c, &om);
	if (type == FRAME_END && frame_end_get(p, &end))
		(void)collect_check_end(c, &end);
	CHECK(c->sent <= 20 && c->listed <= COLLECT_LISTED_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct collect_check c;
	collect_check_init(&c, 20, 64u << 20);
	while (size >= FRAME_HEAD) {
		struct frame_head h;
		if (!frame_head_get(data, &h) || h.len > size - FRAME_HEAD)
			break;
		CHECK(h.len <= FRAME_MAX && h.type != 0 && h.type < FRAME_TYPE_END_);
		decode(&c, h.type, str_n(data + FRAME_HEAD, h.len));
		data += FRAME_HEAD + h.len;
		size -= FRAME_HEAD + h.len;
	}
	return 0;
}
