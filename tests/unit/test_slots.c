#include <criterion/criterion.h>

#include "sandbox/spawner/slots.h"

Test(slots, each_number_is_out_once_and_the_last_one_back_is_the_last_to_go_out_again)
{
	struct slots s;
	uint32_t got[4], again;
	slots_init(&s, 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert(slots_take(&s, &got[i]));
		for (uint32_t k = 0; k < i; k++)
			cr_assert_neq(got[i], got[k]);
	}
	cr_expect_not(slots_take(&s, &again), "a fifth of four");
	slots_give(&s, got[2]);
	slots_give(&s, got[0]);
	cr_assert(slots_take(&s, &again));
	cr_expect_eq(again, got[2]);
	slots_give(&s, got[2]);
	cr_assert(slots_take(&s, &again));
	cr_expect_eq(again, got[0]);
	for (int i = 0; i < 100; i++) { /* around the ring */
		slots_give(&s, again);
		cr_assert(slots_take(&s, &again));
		cr_assert(again == got[0] || again == got[2]);
	}
	slots_done(&s);
}
