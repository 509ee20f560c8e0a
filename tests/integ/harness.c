#include "tests/integ/harness.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

/* A stop that takes longer is shown, for it may take longer still at a worse moment. */
#define SLOW_STOP_MS 4000
#define WAIT_MS      20000 /* for anything, times TEST_SLOWNESS */
#define LOG_MAX      (64u * 1024u * 1024u)
#define LOG_LISTEN   "\"listening\""

int64_t
wait_limit_ms(void)
{
	const char *slow = getenv("TEST_SLOWNESS");
	uint64_t factor = 1;

	(void)str_u64(str_c(slow), &factor);
	return WAIT_MS * (int64_t)(factor > 0 && factor < 100 ? factor : 1);
}

static void
pause_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

void
pause_short(void)
{
	pause_ms(20);
}

static const char *
bin_dir(void)
{
	static char dir[1024];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	cr_assert(n > 0);
	dir[n] = '\0';
	*strrchr(dir, '/') = '\0';
	return dir;
}

/* --- processes ------------------------------------------------------------------------------- */

/* stdout and stderr go to out_path. The child dies with this test. */
static pid_t
spawn(const char *program, const char *const *argv, const char *out_path)
{
	char path[1200];
	pid_t parent = getpid(), pid;

	(void)snprintf(path, sizeof(path), "%s/%s", bin_dir(), program);
	pid = fork();
	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		int fd = open(out_path, O_WRONLY | O_CREAT | O_APPEND, 0644);

		dup2(fd, 1);
		dup2(fd, 2);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		execv(path, (char *const *)(uintptr_t)argv);
		dprintf(2, "cannot run %s: %s\n", path, strerror(errno));
		_exit(127);
	}
	return pid;
}

static bool
read_log(const char *path, char **ret)
{
	size_t len;

	return fd_read_file(path, LOG_MAX, ret, &len, NULL) == ERR_OK;
}

static bool
gone(pid_t pid, int *ret_status)
{
	return waitpid(pid, ret_status, WNOHANG) == pid;
}

static bool
wait_text(const char *path, const char *text, pid_t pid, long *offset)
{
	int64_t end = clock_mono_ms() + wait_limit_ms();
	long from = offset != NULL ? *offset : 0;

	for (;;) {
		char *log = NULL, *hit = NULL;
		bool dead = pid > 0 && kill(pid, 0) != 0;

		if (read_log(path, &log) && strlen(log) >= (size_t)from)
			hit = strstr(log + from, text);
		if (hit != NULL && strchr(hit, '\n') != NULL) {
			if (offset != NULL)
				*offset = strchr(hit, '\n') + 1 - log;
			mem_free(log);
			return true;
		}
		mem_free(log);
		if (dead || clock_mono_ms() > end)
			return false;
		pause_ms(10);
	}
}

bool
server_wait_log(struct server *s, const char *text, long *offset)
{
	return wait_text(s->log_path, text, s->pid, offset);
}

long
server_log_end(struct server *s)
{
	struct stat st;

	return stat(s->log_path, &st) == 0 ? (long)st.st_size : 0;
}

/* The number after key in the last line with text. */
static int
logged_number(const char *path, const char *text, const char *key)
{
	char *log = NULL;
	int number = 0;

	cr_assert(read_log(path, &log));
	for (char *line = strstr(log, text); line != NULL; line = strstr(line + 1, text)) {
		char *start = line, *found;

		while (start > log && start[-1] != '\n')
			start--;
		found = strstr(start, key);
		if (found != NULL)
			number = (int)strtol(found + strlen(key), NULL, 10);
	}
	mem_free(log);
	return number;
}

/* --- start ----------------------------------------------------------------------------------- */

static void
write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	cr_assert(fd >= 0, "%s: %s", path, strerror(errno));
	cr_assert(fd_write_all(fd, str_c(text), NULL) == ERR_OK);
	close(fd);
}

void
server_write_conf(struct server *s, const char *more)
{
	struct buf b = BUF_INIT(1u << 20);
	const struct server_opts *o = &s->opts;

	buf_add(&b, STR("host: 127.0.0.1\nport: 0\nadmin_listen: \"127.0.0.1:0\"\n"));
	buf_printf(&b, "state_dir: %s\nfiles_local_dir: %s/files\n", s->dir, s->dir);
	if (o->database != NULL)
		buf_printf(&b, "database_url: \"%s\"\n", o->database);
	else
		buf_printf(&b, "database_url: \"sqlite:///%s\"\n", s->db_path);
	buf_printf(&b, "master_key: %s\nworkers: %d\nlog_format: json\nlog_level: info\n",
	    s->master_key, o->workers > 0 ? o->workers : 2);
	if (o->sandbox != NULL && strncmp(o->sandbox, "fake:", 5) == 0)
		buf_printf(&b, "sandbox_url: \"http://127.0.0.1:%d/sandbox/%s\"\n", s->fake_port,
		    o->sandbox + 5);
	else if (o->sandbox != NULL)
		buf_printf(&b, "sandbox_url: \"%s\"\n", o->sandbox);
	if (geteuid() == 0)
		buf_printf(&b, "user: %s\n", getpwnam("otari") != NULL ? "otari" : "nobody");
	buf_printf(&b,
	    "providers:\n"
	    "  fake:\n    provider_type: openai\n    wire: chat\n"
	    "    api_base: http://127.0.0.1:%d/v1\n    api_key: fake-chat-key\n    models: [text, "
	    "tool]\n"
	    "  claude:\n    provider_type: anthropic\n    wire: messages\n"
	    "    api_base: http://127.0.0.1:%d/v1\n    api_key: fake-messages-key\n"
	    "  answers:\n    provider_type: openai\n    wire: responses\n"
	    "    api_base: http://127.0.0.1:%d/v1\n    api_key: fake-responses-key\n"
	    "  plain:\n    provider_type: some-server\n    wire: chat\n" /* reads text alone */
	    "    api_base: http://127.0.0.1:%d/v1\n    api_key: fake-chat-key\n",
	    s->fake_port, s->fake_port, s->fake_port, s->fake_port);
	if (o->providers != NULL)
		buf_add(&b, str_c(o->providers));
	if (o->conf != NULL)
		buf_add(&b, str_c(o->conf));
	if (more != NULL)
		buf_add(&b, str_c(more));
	write_file(s->conf_path, b.ptr, 0644);
	buf_done(&b);
}

static void
start_fake(struct server *s)
{
	const char *const argv[] = {"fake-provider", NULL};
	char log[320];

	(void)snprintf(log, sizeof(log), "%s/fake.log", s->dir);
	s->fake_pid = spawn("fake-provider", argv, log);
	cr_assert(wait_text(log, "listening on", s->fake_pid, NULL), "the fake provider is not up");
	s->fake_port = logged_number(log, "listening on", "127.0.0.1:");
}

static void
start_daemon(struct server *s)
{
	const char *const argv[] = {"otari", "-f", "-c", s->conf_path, NULL};
	char *log = NULL;

	s->pid = spawn("otari", argv, s->log_path);
	if (!server_wait_log(s, LOG_LISTEN, NULL)) {
		(void)read_log(s->log_path, &log);
		cr_assert_fail("the daemon does not listen; its log:\n%s", log != NULL ? log : "");
	}
	s->port = logged_number(s->log_path, LOG_LISTEN, "\"port\":");
	s->serve_port = logged_number(s->log_path, "lending the sandbox", "\"serve_port\":");
	s->admin_port = logged_number(s->log_path, LOG_LISTEN, "\"admin_port\":");
	cr_assert(s->port > 0, "the log names no port");
}

static void
make_key(struct server *s)
{
	struct ask_opts o = {.key = s->master_key};
	struct reply r;
	json_t *root;

	server_ask(s, "POST", "/api/v1/keys", STR("{\"key_name\":\"test\"}"), &o, &r);
	cr_assert(r.status == 200, "POST /keys: %ld %s", r.status, r.body.ptr);
	root = reply_json(&r);
	cr_assert(str_copy(s->key, sizeof(s->key), str_c(at(root, "key"))) && s->key[0] != '\0');
	json_decref(root);
	reply_done(&r);
}

struct server *
server_start(const struct server_opts *opts)
{
	struct server *s = MEM_NEW(struct server);
	const char *tmp = getenv("OTARI_TEST_TMP");
	struct passwd *pw = getpwnam("otari");

	/* What the daemon might leave behind becomes our child, where it is seen. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (opts != NULL)
		s->opts = *opts;
	(void)snprintf(s->dir, sizeof(s->dir), "%s/integ.XXXXXX",
	    tmp != NULL && strlen(tmp) < 200 ? tmp : "/tmp");
	cr_assert(mkdtemp(s->dir) != NULL, "%s: %s", s->dir, strerror(errno));
	if (geteuid() == 0) {
		if (pw == NULL)
			pw = getpwnam("nobody");
		cr_assert(pw != NULL && chown(s->dir, pw->pw_uid, pw->pw_gid) == 0);
	}
	cr_assert(chmod(s->dir, 0755) == 0);
	(void)snprintf(s->conf_path, sizeof(s->conf_path), "%s/otari.conf", s->dir);
	(void)snprintf(s->log_path, sizeof(s->log_path), "%s/log", s->dir);
	(void)snprintf(s->db_path, sizeof(s->db_path), "%s/otari.db", s->dir);
	(void)snprintf(s->master_key, sizeof(s->master_key), "master-key-of-a-test-%d", getpid());
	start_fake(s);
	server_write_conf(s, NULL);
	start_daemon(s);
	if (!s->opts.tokenless)
		make_key(s);
	return s;
}

/* --- stop ------------------------------------------------------------------------------------ */

void
server_expect(struct server *s, const char *text)
{
	cr_assert(s->expected_count < ARRAY_LEN(s->expected));
	s->expected[s->expected_count++] = text;
}

static bool
is_expected(const struct server *s, struct str line)
{
	for (size_t i = 0; i < s->expected_count; i++)
		if (str_find(line, str_c(s->expected[i])) != SIZE_MAX)
			return true;
	return false;
}

/* A process that is killed while it writes leaves the beginning of a line, in front of the next
 * one; only where deaths were announced. */
static struct str
without_torn(const struct server *s, struct str line)
{
	for (size_t at = 0; is_expected(s, STR("child ended")) && at != SIZE_MAX;) {
		line = str_from(line, at);
		at = str_find(str_from(line, 1), STR("{\"ts\":\""));
		at += at != SIZE_MAX;
	}
	return line;
}

/* Every line is one JSON object; none is WARN or ERROR but the expected ones. */
static void
check_log(struct server *s)
{
	char *log = NULL;
	struct str rest, line;

	cr_assert(read_log(s->log_path, &log));
	rest = str_c(log);
	while (str_split(&rest, '\n', &line)) {
		json_t *root;
		const char *level;

		/* The second: a leak check that met a thread which was just ending. */
		if (line.len == 0 ||
		    (str_starts(line, STR("==")) &&
			str_find(line, STR("Unable to get registers from thread")) != SIZE_MAX))
			continue;
		line = without_torn(s, line);
		root = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, NULL);
		cr_expect(json_is_object(root), "no log line: %.*s", STR_FMT(line));
		level = at(root, "level");
		if ((strcasecmp(level, "warn") == 0 || strcasecmp(level, "error") == 0) &&
		    !is_expected(s, line))
			cr_expect(false, "unexpected: %.*s", STR_FMT(line));
		json_decref(root);
	}
	mem_free(log);
}

/* Children of this process other than the fake provider, after the daemon has ended. */
static void
check_nothing_left(struct server *s)
{
	int64_t end = clock_mono_ms() + 3000;
	pid_t pids[32];
	size_t n;

	while ((n = server_pids(s, "", pids, ARRAY_LEN(pids))) > 0 && clock_mono_ms() < end) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		pause_ms(20);
	}
	for (size_t i = 0; i < n; i++) {
		char path[64], *title = NULL;
		size_t len;

		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
		if (fd_read_file(path, 65536, &title, &len, NULL) != ERR_OK)
			title = NULL;
		cr_expect(false, "left running: %d %s", (int)pids[i], title != NULL ? title : "");
		mem_free(title);
		kill(pids[i], SIGKILL);
	}
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Who is still there, and what the kernel says it waits for. */
static void
show_processes(struct server *s)
{
	static const char *const files[] = {"cmdline", "stat", "wchan"};
	pid_t pids[64];
	size_t n = server_pids(s, "", pids, ARRAY_LEN(pids));

	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "%d", (int)pids[i]);
		for (size_t k = 0; k < ARRAY_LEN(files); k++) {
			char path[64], *text = NULL;
			size_t len = 0;

			(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pids[i], files[k]);
			if (fd_read_file(path, 65536, &text, &len, NULL) == ERR_OK)
				fprintf(stderr, " | %.60s", text);
			mem_free(text);
		}
		fprintf(stderr, "\n");
	}
}

void
server_stop(struct server **sp)
{
	struct server *s = *sp;
	int64_t from = clock_mono_ms(), end = from + wait_limit_ms();
	int status = -1;
	bool ended;

	kill(s->pid, SIGTERM);
	while (!(ended = gone(s->pid, &status)) && clock_mono_ms() < end)
		pause_ms(10);
	cr_expect(ended, "the daemon does not stop");
	if (clock_mono_ms() - from > SLOW_STOP_MS) {
		fprintf(stderr, "stop: %lld ms, and this is where it waited:\n",
		    (long long)(clock_mono_ms() - from));
		server_show_log(s);
	}
	if (!ended) {
		show_processes(s);
		kill(s->pid, SIGKILL);
	} else
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	kill(s->fake_pid, SIGTERM);
	waitpid(s->fake_pid, NULL, 0);
	check_nothing_left(s);
	check_log(s);
	(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	mem_free(s);
	*sp = NULL;
}

/* --- with a sandbox -------------------------------------------------------------------------- */

struct server *
start_with_sandbox(void)
{
	return start_sandboxed(&(struct server_opts){0});
}

struct server *
start_sandboxed(const struct server_opts *opts)
{
	struct server_opts with = *opts;
	with.sandbox = "local:";
	struct server *s = server_start(&with);
	const char *must = getenv("OTARI_TEST_REQUIRE");
	struct reply r;
	bool ready = false;

	for (int i = 0; i < 400 && !ready; i++) {
		server_ask(s, "GET", "/health", STR_NULL, &(struct ask_opts){.key = ""}, &r);
		ready = strstr(r.body.ptr, "\"sandbox\":\"ready\"") != NULL;
		if (!ready && strstr(r.body.ptr, "\"sandbox\":\"testing\"") == NULL)
			break;
		reply_done(&r);
		if (!ready)
			pause_short();
	}
	if (ready) {
		reply_done(&r);
		return s;
	}
	cr_assert(must == NULL || strstr(must, "sandbox") == NULL, "no sandbox: %s", r.body.ptr);
	reply_done(&r);
	server_expect(s, "sandbox");
	server_stop(&s);
	(void)fprintf(stderr, "SKIPPED sandbox\n"); /* Criterion keeps the reason to itself */
	cr_skip_test("no sandbox");
	return NULL;
}
