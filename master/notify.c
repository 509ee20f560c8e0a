#include "master/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <stddef.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "master/environment.h"

void
notify_manager(const char *text)
{
	const char *path = environment_notify_socket();
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    !str_copy(a.sun_path, sizeof(a.sun_path), str_c(path)))
		return;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, len) < 0)
		log_warn("the service manager cannot be told; we go on");
	fd_close(&fd);
}
