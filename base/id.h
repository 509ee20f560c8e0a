/* id.h - random identifiers, from the kernel's generator. Any thread. */
#ifndef OTARI_BASE_ID_H
#define OTARI_BASE_ID_H

#include <stddef.h>

/* n random bytes; aborts if the kernel has none. */
void id_random(void *dst, size_t n);
#define ID_SIZE 64 /* enough for every prefix of ours + 32 hex digits + NUL */
/* prefix followed by 32 lower-case hex digits. */
void id_make(const char *prefix, char dst[ID_SIZE]);
#define ID_UUID_SIZE 37
/* UUID version 4 (RFC 9562 §5.4), lower case. */
void id_make_uuid(char dst[ID_UUID_SIZE]);
/* prefix + url-safe base64 of 48 random bytes (64 characters): API keys. dst holds
 * strlen(prefix)+65. */
void id_make_token(const char *prefix, char *dst, size_t dst_size);

#endif
