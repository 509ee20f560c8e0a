#include "master/environment.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define KEPT_MAX 12

static char *kept[KEPT_MAX + 1];
static char *notify_socket;
static size_t spare_bytes;

static bool
is_for_children(struct str entry)
{
	static const char *const names[] = {
	    "TZ=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS="};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_starts(entry, str_c(names[i])))
			return true;
	return false;
}

enum err_code
environment_take(int *ret_fd, struct err *reterr)
{
	size_t n = 0;
	enum err_code rc = ERR_OK;
	int fd = fd_memfd("otari-environ");
	if (fd < 0)
		return err_set(reterr, ERR_IO, "memfd of the environment");
	kept[n++] = mem_strdup("PATH=/usr/local/bin:/usr/bin:/bin");
	kept[n++] = mem_strdup("LC_ALL=C.UTF-8");
	for (char **e = environ; rc == ERR_OK && *e != NULL; e++) {
		struct str entry = str_c(*e);
		if (is_for_children(entry) && n < KEPT_MAX)
			kept[n++] = mem_strdup(*e);
		if (str_starts(entry, STR("NOTIFY_SOCKET=")))
			notify_socket = mem_strdup(*e + strlen("NOTIFY_SOCKET="));
		rc = fd_write_all(fd, str_n(entry.ptr, entry.len + 1), reterr);
	}
	if (rc == ERR_OK && !fd_seal(fd))
		rc = err_set(reterr, ERR_IO, "seal the environment");
	if (rc != ERR_OK) {
		fd_close(&fd);
		return rc;
	}
	char *next = *environ;
	for (char **e = environ; *e != NULL; e++) {
		size_t len = strlen(*e);
		if (*e == next) {
			next += len + 1;
			spare_bytes += len + 1;
		}
		mem_wipe(*e, len);
	}
	environ = kept;
	*ret_fd = fd;
	return ERR_OK;
}

size_t
environment_spare_bytes(void)
{
	return spare_bytes;
}

char *const *
environment_of_children(void)
{
	return kept;
}

const char *
environment_notify_socket(void)
{
	return notify_socket;
}
