#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>

#include <criterion/criterion.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "sandbox/jail/jail.h"

TestSuite(seccomp, .timeout = 20);

/* A filter is run here as the kernel runs it. */
static uint32_t
evaluate(const struct jail_filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0;
	for (size_t pc = 0; pc < f->count; pc++) {
		const struct sock_filter *i = &f->insns[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			cr_assert(i->k + 4 <= sizeof(*d));
			a = *(const uint32_t *)(const void *)((const char *)d + i->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			cr_assert_fail("instruction %#x", i->code);
		}
	}
	cr_assert_fail("ran off the end");
	return 0;
}

static uint32_t
ask(const struct jail_filter *f, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct seccomp_data d = {
	    .nr = (int)nr, .arch = AUDIT_ARCH_X86_64, .args = {a0, a1, a2, 0x22, 0, 0}};
	return evaluate(f, &d);
}

#define DENY(e) (SECCOMP_RET_ERRNO | (e))

#ifdef __x86_64__
Test(seccomp, the_filter_answers_as_the_policy_says)
{
	static const struct {
		const char *name;
		long nr;
		uint64_t a0, a1, a2;
		uint32_t want;
	} rows[] = {
	    {"read", SYS_read, 0, 0, 0, SECCOMP_RET_ALLOW},
	    {"execve", SYS_execve, 0, 0, 0, SECCOMP_RET_ALLOW},
	    {"futex", SYS_futex, 0, 0, 0, SECCOMP_RET_ALLOW},
	    {"socket", SYS_socket, 2, 1, 0, DENY(EAFNOSUPPORT)},
	    {"connect", SYS_connect, 3, 0, 0, DENY(EPERM)},
	    {"ptrace", SYS_ptrace, 0, 0, 0, DENY(EPERM)},
	    {"io_uring_setup", 425, 0, 0, 0, DENY(ENOSYS)},
	    {"clone3", 435, 0, 0, 0, DENY(ENOSYS)},
	    {"clone of a thread", SYS_clone, 0x3d0f00, 0, 0, SECCOMP_RET_ALLOW},
	    {"clone as fork", SYS_clone, 0x1200011, 0, 0, SECCOMP_RET_ALLOW},
	    {"clone of a user namespace", SYS_clone, CLONE_NEWUSER | 17, 0, 0, DENY(EPERM)},
	    {"with high bits", SYS_clone, 1ull << 32 | CLONE_NEWUSER | 17, 0, 0, DENY(EPERM)},
	    {"of all", SYS_clone, 0x7e020000, 0, 0, DENY(EPERM)},
	    {"socketpair unix", SYS_socketpair, 1, 1, 0, SECCOMP_RET_ALLOW},
	    {"socketpair inet", SYS_socketpair, 2, 1, 0, DENY(ENOSYS)},
	    {"unix in the low half", SYS_socketpair, 5ull << 32 | 1, 1, 0, SECCOMP_RET_ALLOW},
	    {"TCGETS", SYS_ioctl, 0, 0x5401, 0, SECCOMP_RET_ALLOW},
	    {"TIOCSTI", SYS_ioctl, 0, 0x5412, 0, DENY(ENOSYS)},
	    {"TIOCSTI with high bits", SYS_ioctl, 0, 1ull << 32 | 0x5412, 0, DENY(ENOSYS)},
	    {"TIOCLINUX", SYS_ioctl, 0, 0x541c, 0, DENY(ENOSYS)},
	    {"prlimit of itself", SYS_prlimit64, 0, 7, 0, SECCOMP_RET_ALLOW},
	    {"prlimit of init", SYS_prlimit64, 1, 7, 0, DENY(ENOSYS)},
	    {"a lower limit", SYS_prlimit64, 0, 7, 4096, SECCOMP_RET_ALLOW},
	    {"a lower limit, as once", SYS_setrlimit, 7, 4096, 0, SECCOMP_RET_ALLOW},
	    {"limit of core files", SYS_prlimit64, 0, 4, 0, SECCOMP_RET_ALLOW},
	    {"another one", SYS_prlimit64, 0, 4, 4096, DENY(0)},
	    {"with high bits", SYS_prlimit64, 1ull << 32, 1ull << 32 | 4, 4096, DENY(0)},
	    {"another one, as once", SYS_setrlimit, 1ull << 32 | 4, 4096, 0, DENY(0)},
	    {"memory that is given back", SYS_madvise, 0, 4096, 4, SECCOMP_RET_ALLOW},
	    {"pushed out", SYS_madvise, 0, 4096, 21, DENY(EINVAL)},
	    {"with high bits", SYS_madvise, 0, 4096, 1ull << 32 | 21, DENY(EINVAL)},
	    {"merged", SYS_madvise, 0, 4096, 12, DENY(EINVAL)},
	    {"flags", SYS_fcntl, 1, 4, O_NONBLOCK | O_APPEND, SECCOMP_RET_ALLOW},
	    {"packets in a pipe", SYS_fcntl, 1, 4, O_NONBLOCK | O_DIRECT, DENY(ENOSYS)},
	    {"a socket's buffer", SYS_setsockopt, 3, 1, 7, SECCOMP_RET_ALLOW},
	    {"a socket's filter", SYS_setsockopt, 3, 1, 26, DENY(ENOSYS)},
	    {"with high bits", SYS_setsockopt, 3, 1, 1ull << 32 | 26, DENY(ENOSYS)},
	    {"nice", SYS_setpriority, 0, 0, 19, SECCOMP_RET_ALLOW},
	    {"nice of the user", SYS_setpriority, 2, 0, 19, DENY(ENOSYS)},
	    {"nice of init", SYS_setpriority, 0, 1, 19, DENY(ENOSYS)},
	    {"memfd_create", SYS_memfd_create, 0, 0, 0, DENY(ENOSYS)},
	    {"mkfifo", SYS_mknodat, 0, 0, 0010644, SECCOMP_RET_ALLOW},
	    {"mknod block", SYS_mknodat, 0, 0, 0060644, DENY(ENOSYS)},
	    {"mknod char", SYS_mknod, 0, 0020644, 0, DENY(ENOSYS)},
	    {"prctl seccomp", SYS_prctl, 22, 2, 0, DENY(ENOSYS)},
	    {"mmap", SYS_mmap, 0, 4096, 3, SECCOMP_RET_ALLOW},
	    {"F_GETFL", SYS_fcntl, 0, 3, 0, SECCOMP_RET_ALLOW},
	    {"F_DUPFD_CLOEXEC", SYS_fcntl, 0, 1030, 0, SECCOMP_RET_ALLOW},
	    {"F_NOTIFY", SYS_fcntl, 0, 1026, 0, DENY(ENOSYS)},
	    {"F_SETLEASE", SYS_fcntl, 0, 1024, 0, DENY(ENOSYS)},
	    {"inotify_init1", SYS_inotify_init1, 0, 0, 0, DENY(ENOSYS)},
	    {"syncfs", SYS_syncfs, 0, 0, 0, DENY(EPERM)},
	    {"fsync", SYS_fsync, 3, 0, 0, DENY(0)},
	    {"fdatasync", SYS_fdatasync, 3, 0, 0, DENY(0)},
	    {"sync_file_range", SYS_sync_file_range, 3, 0, 0, DENY(0)},
	    {"msync that waits", SYS_msync, 0, 4096, 4, DENY(0)},
	    {"openat", SYS_openat, 0, 0, 0x80000, SECCOMP_RET_ALLOW},
	    {"openat past the host's memory", SYS_openat, 0, 0, 0x84000, DENY(EINVAL)},
	    {"open past the host's memory", SYS_open, 0, 0x4000, 0, DENY(EINVAL)},
	    {"openat2, whose flags nobody sees", SYS_openat2, 0, 0, 0, DENY(ENOSYS)},
	    {"msync as a question", SYS_msync, 0, 4096, 1, SECCOMP_RET_ALLOW},
	    {"setxattr", SYS_setxattr, 0, 0, 0, DENY(ENOTSUP)},
	};
	struct jail_filter f = {0};
	struct err e;
	cr_assert_eq(jail_filter_build(&f, &e), ERR_OK, "%s", e.msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(ask(&f, rows[i].nr, rows[i].a0, rows[i].a1, rows[i].a2), rows[i].want,
		    "%s: %#x", rows[i].name,
		    ask(&f, rows[i].nr, rows[i].a0, rows[i].a1, rows[i].a2));
	struct seccomp_data huge = {
	    .nr = SYS_mmap, .arch = AUDIT_ARCH_X86_64, .args = {0, 2u << 20, 3, 0x40022, ~0ull, 0}};
	cr_assert_eq(evaluate(&f, &huge), DENY(ENOSYS), "huge pages");
	struct seccomp_data advice = {
	    .nr = SYS_fadvise64, .arch = AUDIT_ARCH_X86_64, .args = {3, 0, 0, 4, 0, 0}};
	cr_assert_eq(evaluate(&f, &advice), DENY(0), "what the host has in memory is dropped");
	advice.args[3] = 2;
	cr_assert_eq(evaluate(&f, &advice), SECCOMP_RET_ALLOW, "it will read on");
	jail_filter_done(&f);
}

Test(seccomp, unknown_numbers_and_foreign_architectures_are_closed)
{
	struct jail_filter f = {0};
	struct err e;
	size_t open = 0;
	cr_assert_eq(jail_filter_build(&f, &e), ERR_OK, "%s", e.msg);
	for (long nr = 0; nr < 1024; nr++) {
		uint32_t got = ask(&f, nr, ~0ull, ~0ull, ~0ull);
		bool allowed = got == SECCOMP_RET_ALLOW;
		cr_assert(
		    allowed || (got & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO, "%ld", nr);
		cr_assert(!allowed || nr < 470, "%ld is open", nr);
		open += allowed;
	}
	cr_assert(open > 150 && open < 260, "%zu calls are open", open);
	struct seccomp_data i386 = {.nr = 3, .arch = AUDIT_ARCH_I386};
	cr_assert_eq(evaluate(&f, &i386), SECCOMP_RET_KILL_PROCESS);
	cr_assert_eq(ask(&f, 0x40000000, 0, 0, 0), SECCOMP_RET_KILL_PROCESS, "x32");
	jail_filter_done(&f);
}
#endif
