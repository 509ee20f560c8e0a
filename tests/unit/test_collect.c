#include <stdio.h>

#include <criterion/criterion.h>

#include "sandbox/collect/select.h"

TestSuite(collect, .timeout = 10);

Test(collect, an_omitted_file_uses_up_nothing)
{
	struct collect_budget b = {2, 100};
	cr_assert_eq(collect_admit(&b, 101), FRAME_OMIT_BYTES);
	cr_assert_eq(collect_admit(&b, UINT64_MAX), FRAME_OMIT_BYTES);
	cr_assert_eq(collect_admit(&b, 60), FRAME_OMIT_END_);
	cr_assert_eq(collect_admit(&b, 41), FRAME_OMIT_BYTES);
	cr_assert_eq(collect_admit(&b, 40), FRAME_OMIT_END_);
	cr_assert_eq(collect_admit(&b, 0), FRAME_OMIT_COUNT);
}

static bool
file(struct collect_check *c, const char *path, uint64_t size)
{
	struct frame_file f = {size, str_c(path)};
	return collect_check_file(c, &f);
}

static bool
file_end(struct collect_check *c, uint32_t whole)
{
	struct frame_file_end f = {whole};
	return collect_check_file_end(c, &f);
}

static bool
omitted(struct collect_check *c, const char *path)
{
	struct frame_omitted f = {1, FRAME_OMIT_COUNT, str_c(path)};
	return collect_check_omitted(c, &f);
}

static bool
end(struct collect_check *c, uint32_t sent, uint32_t count)
{
	struct frame_end f = {sent, count, 0};
	return collect_check_end(c, &f);
}

Test(collect, an_honest_sender_passes)
{
	struct collect_check c;
	collect_check_init(&c, 20, 100);
	cr_assert(file(&c, "a", 10) && collect_check_data(&c, 4) && collect_check_data(&c, 6) &&
		  file_end(&c, 1));
	cr_assert(file(&c, "b", 0) && file_end(&c, 1));
	cr_assert(file(&c, "c", 5) && collect_check_data(&c, 2) && file_end(&c, 0), "cut short");
	cr_assert(omitted(&c, "a2") && omitted(&c, "z"));
	cr_assert(end(&c, 3, 7));
}

Test(collect, a_lying_sender_is_caught)
{
	struct collect_check c;
	collect_check_init(&c, 2, 100);
	cr_assert(!file(&c, "a", 101), "over the bytes");
	cr_assert(file(&c, "b", 10));
	cr_assert(!file(&c, "c", 1), "a file in a file");
	cr_assert(!omitted(&c, "x") && !end(&c, 1, 0), "an end in a file");
	cr_assert(!collect_check_data(&c, 11), "more than announced");
	cr_assert(collect_check_data(&c, 9) && !file_end(&c, 1), "whole, but short");
	cr_assert(collect_check_data(&c, 1) && !collect_check_data(&c, 1) && file_end(&c, 1));
	cr_assert(!collect_check_data(&c, 1) && !file_end(&c, 1), "bytes outside of a file");
	cr_assert(!file(&c, "b", 1) && !file(&c, "a", 1), "paths do not descend");
	cr_assert(!file(&c, "ba", 91), "over the bytes left");
	cr_assert(file(&c, "bb", 90) && collect_check_data(&c, 90) && file_end(&c, 1));
	cr_assert(!file(&c, "z", 0), "over the count");
	cr_assert(omitted(&c, "a") && !omitted(&c, "a"), "twice");
	cr_assert(!file(&c, "zz", 0), "a file after the omitted ones");
	cr_assert(!end(&c, 1, 1) && !end(&c, 2, 0), "wrong counts");
	cr_assert(end(&c, 2, 1) && !end(&c, 2, 1) && !file(&c, "zzz", 0), "after the end");
	collect_check_init(&c, 2, 100);
	char name[8];
	for (unsigned i = 0; i <= COLLECT_LISTED_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%05u", i);
		cr_assert_eq(omitted(&c, name), i < COLLECT_LISTED_MAX, "%u", i);
	}
}
