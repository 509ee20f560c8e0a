/* fd.h - descriptors: always close-on-exec; who may block is said by name
 *
 * Raw socket/pipe/open/accept/dup are banned elsewhere (tools/lint). -1 with errno on failure.
 */
#ifndef OTARI_BASE_FD_H
#define OTARI_BASE_FD_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

void fd_close(int *fd);                                /* closes when >= 0 and sets -1 */
int fd_open(const char *path, int flags, mode_t mode); /* adds O_CLOEXEC|O_NOCTTY */
int fd_openat(int dir, const char *path, int flags, mode_t mode);
bool fd_pipe(int ret[2], bool nonblock);
bool fd_socketpair_seqpacket(int ret[2], bool nonblock);
bool fd_socketpair_stream(int ret[2], bool nonblock);
int fd_memfd(const char *name); /* sealable */
bool fd_seal(int fd);           /* no more writing, growing, shrinking, sealing */
bool fd_is_sealed(int fd);
int fd_dup(int fd); /* close-on-exec copy */
/* Makes target a copy of fd, in one step when target was open. */
bool fd_dup_to(int fd, int target, bool cloexec);
bool fd_set_nonblock(int fd, bool on);
bool fd_set_cloexec(int fd, bool on);
bool fd_close_from(int first); /* every fd >= first; false when neither way works */
int fd_count_open(void);       /* of this process; for leak checks */
/* Whole transfers on blocking fds; EINTR is retried. */
MUST_CHECK enum err_code fd_write_all(int fd, struct str bytes, struct err *reterr);
/* Up to max bytes until EOF; ERR_TOOLARGE beyond. dst from mem_alloc, NUL after it. */
MUST_CHECK enum err_code fd_read_all(
    int fd, size_t max, char **ret_bytes, size_t *ret_len, struct err *reterr);
MUST_CHECK enum err_code fd_read_file(
    const char *path, size_t max, char **ret_bytes, size_t *ret_len, struct err *reterr);
/* One datagram with up to FD_PASS_MAX descriptors. Returns bytes, or -1 with errno (EAGAIN when it
 * would block). On receive every fd is close-on-exec and owned by the caller; *nfds is in/out: room
 * / count. A message or descriptor list that was cut gives -1 with EMSGSIZE and closes what
 * arrived. */
#define FD_PASS_MAX 16
ssize_t fd_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds);
ssize_t fd_recv_msg(int sock, void *p, size_t n, int *fds, size_t *nfds);

#endif
