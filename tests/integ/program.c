#include "tests/integ/program.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

void
program_path(const char *name, char dst[1200])
{
	if (name[0] == '/') {
		(void)snprintf(dst, 1200, "%s", name);
		return;
	}
	ssize_t n = readlink("/proc/self/exe", dst, 1000);
	cr_assert(n > 0);
	dst[n] = '\0';
	(void)snprintf(strrchr(dst, '/') + 1, 150, "%s", name);
}

int
program_run(const char *name, const char *const *argv, char *out, size_t size)
{
	char path[1200];
	int p[2], status = -1;
	size_t n = 0;
	program_path(name, path);
	cr_assert(fd_pipe(p, false));
	pid_t pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		(void)dup2(p[1], 1);
		(void)dup2(p[1], 2);
		execv(path, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(p[1]);
	for (ssize_t k; n + 1 < size && (k = read(p[0], out + n, size - 1 - n)) > 0;)
		n += (size_t)k;
	out[n] = '\0';
	close(p[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
program_otarictl(struct server *s, const char *command, char *out, size_t size)
{
	const char *const argv[] = {"otarictl", "-c", s->conf_path, "--json", command, NULL};
	return program_run("otarictl", argv, out, size);
}

void
server_show_log(struct server *s)
{
	enum { LINES = 40 };
	struct buf log = BUF_INIT(64u << 20);
	char path[PATH_MAX];
	size_t from, lines = 0;
	(void)snprintf(path, sizeof(path), "%s/log", s->dir);
	FILE *f = fopen(path, "r");
	for (int c; f != NULL && (c = getc(f)) != EOF;)
		buf_addc(&log, (char)c);
	if (f != NULL)
		(void)fclose(f);
	for (from = log.len; from > 0 && lines <= LINES; from--)
		lines += log.ptr[from - 1] == '\n';
	fprintf(stderr, "%.*s\n", (int)(log.len - from), log.len > 0 ? log.ptr + from : "");
	buf_done(&log);
}

void
must_answer(struct server *s, const char *when)
{
	struct reply r;
	server_ask(s, "POST", "/v1/chat/completions", HELLO, NULL, &r);
	cr_expect_eq(r.status, 200, "%s: %ld (curl %d): %.*s", when, r.status, r.curl_code,
	    STR_FMT(buf_str(&r.body)));
	reply_done(&r);
}

int
wait_daemon_end(struct server *s, int64_t limit_ms)
{
	int status = 0;
	int64_t end = clock_mono_ms() + limit_ms;
	while (waitpid(s->pid, &status, WNOHANG) != s->pid) {
		cr_assert(clock_mono_ms() < end, "the daemon does not end");
		pause_short();
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void
forget_server(struct server *s)
{
	pid_t pids[8];
	char out[512];
	const char *const argv[] = {"rm", "-rf", s->dir, NULL};
	cr_expect_eq(server_pids(s, "otari:", pids, 8), 0, "processes are left");
	kill(s->fake_pid, SIGTERM);
	waitpid(s->fake_pid, NULL, 0);
	cr_expect_eq(program_run("/bin/rm", argv, out, sizeof(out)), 0, "%s", out);
	mem_free(s);
}

int64_t
server_generation(struct server *s, bool *ret_settled)
{
	char out[32768];
	cr_assert_eq(program_otarictl(s, "status", out, sizeof(out)), 0, "%s", out);
	json_t *root = json_loads(out, 0, NULL);
	int64_t g = at_int(root, "generation");
	*ret_settled = json_is_true(at_json(root, "is_settled"));
	json_decref(root);
	return g;
}

int
server_connect(struct server *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

int
server_hold_request(struct server *s)
{
	char text[512];
	int fd = server_connect(s);
	int n = snprintf(text, sizeof(text),
	    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	    s->key);
	cr_assert_eq(write(fd, text, (size_t)n), n);
	pause_short();
	return fd;
}
