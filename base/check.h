/* check.h - assertions that stay on in production; they mean "programming error" and abort
 *
 * Input from clients, providers, databases, sandboxes or files is never asserted.
 */
#ifndef OTARI_BASE_CHECK_H
#define OTARI_BASE_CHECK_H

_Noreturn void check_fail(const char *expr, const char *file, int line);

#define CHECK(e)                                                                                   \
	do {                                                                                       \
		if (__builtin_expect(!(e), 0))                                                     \
			check_fail(#e, __FILE__, __LINE__);                                        \
	} while (0)
#define CHECK_MAGIC(p, m) CHECK((p) != NULL && (p)->magic == (m))
#define UNREACHABLE(why)  check_fail("unreachable: " why, __FILE__, __LINE__)

#endif
