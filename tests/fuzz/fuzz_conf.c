/* otari.conf of a stranger, and an environment behind its first NUL: loads or is refused with a
 * text, and what loads can be shown and packed. */
#include <stdlib.h>

#include "base/check.h"
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
use(const struct conf *c)
{
	struct buf dump = BUF_INIT(64u << 20), packed = BUF_INIT(LIMIT_CONF_BYTES);
	struct master_conf m, again;
	struct arena *a = arena_new(LIMIT_CONF_BYTES * 4u);
	conf_dump(c, &dump);
	conf_master(c, &m);
	master_conf_encode(&m, &packed);
	if (!packed.overflowed) {
		CHECK(master_conf_decode(a, buf_str(&packed), &again, NULL) == ERR_OK);
		CHECK(str_eq(again.state_dir, m.state_dir) && again.workers == m.workers);
	}
	arena_free(&a);
	buf_done(&packed);
	buf_done(&dump);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = str_n(data, size);
	size_t nul = str_chr(all, '\0');
	struct conf_source src = {.file = "otari.conf",
	    .text = str_sub(all, 0, nul),
	    .environ = nul != SIZE_MAX ? str_from(all, nul + 1) : STR(""),
	    .cwd = STR("/srv")};
	struct conf_report report;
	struct conf *c;
	struct err e;
	conf_report_init(&report, src.file);
	if (conf_load(&src, &report, &c, &e) == ERR_OK) {
		CHECK(report.error_count == 0);
		use(c);
		conf_free(&c);
	} else {
		CHECK(report.error_count > 0 && report.errors.len > 0 && e.msg[0] != '\0');
	}
	conf_report_done(&report);
	return 0;
}
