/* select.h - which produced files travel, and whether the other side keeps to it
 *
 * Process: otari-init (select), worker (check). Pure, no heap: otari-init compiles it by itself.
 * Rule:    files in ascending path order (bytewise); each is sent if the count and the bytes left
 *          allow, else omitted with the reason; an omitted one uses up nothing.
 */
#ifndef OTARI_SANDBOX_COLLECT_SELECT_H
#define OTARI_SANDBOX_COLLECT_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ipc/frames.h"

/* FRAME_OMIT_END_: send it (and count it in); else the reason to omit it. */
struct collect_budget {
	uint32_t files_left;
	uint64_t bytes_left;
};
enum frame_omit collect_admit(struct collect_budget *b, uint64_t size);

/* The receiver's copy of the same rule, against an init that lies. */
struct collect_check {
	struct collect_budget budget;
	enum { COLLECT_BETWEEN, COLLECT_IN_FILE, COLLECT_ENDED } state;
	uint64_t file_left;
	uint32_t sent, listed;
	bool has_last, in_omitted;
	uint16_t last_len;
	char last[FRAME_PATH_MAX];
};
void collect_check_init(struct collect_check *c, uint32_t max_files, uint64_t max_bytes);
/* False: not allowed here; the session is to be dropped. One call per frame. */
bool collect_check_file(struct collect_check *c, const struct frame_file *f);
bool collect_check_data(struct collect_check *c, size_t n);
bool collect_check_file_end(struct collect_check *c, const struct frame_file_end *f);
bool collect_check_omitted(struct collect_check *c, const struct frame_omitted *f);
bool collect_check_end(struct collect_check *c, const struct frame_end *f);

/* OMITTED frames of one call; the END frame counts all. */
#define COLLECT_LISTED_MAX 256u

int collect_path_cmp(struct str a, struct str b);

#endif
