/* zygote_image.c - the bytes that a zygote is made of, carried in this program */
#include <string.h>

#include "sandbox/spawner/zygote.h"

#define EMBED(name, path)                                                                          \
	__asm__(".section .rodata\n"                                                               \
		".global " name "\n" name ":\n"                                                    \
		".incbin \"" path "\"\n"                                                           \
		".global " name "_end\n" name "_end:\n"                                            \
		".byte 0\n"                                                                        \
		".previous\n")

EMBED("zygote_image_library", OTARI_ZYGOTE_SO);
EMBED("zygote_image_program", "sandbox/zygote/zygote.py");
EMBED("zygote_image_driver", "sandbox/init/driver.py");
extern const char zygote_image_library[], zygote_image_library_end[];
extern const char zygote_image_program[], zygote_image_program_end[];
extern const char zygote_image_driver[], zygote_image_driver_end[];

struct str
zygote_library(void)
{
	return str_n(
	    zygote_image_library, (size_t)(zygote_image_library_end - zygote_image_library));
}

struct str
zygote_program(void)
{
	return str_n(
	    zygote_image_program, (size_t)(zygote_image_program_end - zygote_image_program));
}

struct str
zygote_driver(void)
{
	return str_n(zygote_image_driver, (size_t)(zygote_image_driver_end - zygote_image_driver));
}
