#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static char in[2 * (FRAME_HEAD + FRAME_MAX)];
static size_t in_len, in_pos;

void
init_leave(int code)
{
	_exit(code);
}

void
ctl_send(uint8_t type, const void *payload, size_t n)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, type, (uint32_t)n);
	struct iovec iov[2] = {{head, sizeof(head)}, {(void *)(uintptr_t)payload, n}};
	size_t left = sizeof(head) + n;
	while (left > 0) {
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
		ssize_t w = sendmsg(INIT_CTL, &m, MSG_NOSIGNAL);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			init_leave(0);
		left -= (size_t)w;
		for (unsigned i = 0; i < 2; i++) {
			size_t k = (size_t)w < iov[i].iov_len ? (size_t)w : iov[i].iov_len;
			iov[i].iov_base = (char *)iov[i].iov_base + k;
			iov[i].iov_len -= k;
			w -= (ssize_t)k;
		}
	}
}

void
ctl_fill(void)
{
	if (in_pos > 0) {
		memmove(in, in + in_pos, in_len - in_pos);
		in_len -= in_pos;
		in_pos = 0;
	}
	ssize_t n = recv(INIT_CTL, in + in_len, sizeof(in) - in_len, MSG_DONTWAIT);
	if (n > 0) {
		in_len += (size_t)n;
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	init_leave(0); /* the worker is gone */
}

bool
ctl_next(struct frame_head *head, struct str *payload)
{
	if (in_len - in_pos < FRAME_HEAD)
		return false;
	uint8_t raw[FRAME_HEAD];
	memcpy(raw, in + in_pos, FRAME_HEAD);
	if (!frame_head_get(raw, head))
		init_leave(70);
	if (in_len - in_pos < FRAME_HEAD + head->len)
		return false;
	*payload = str_n(in + in_pos + FRAME_HEAD, head->len);
	in_pos += FRAME_HEAD + head->len;
	return true;
}
