/* harness.h - one real daemon with the fake provider behind it, for one test
 *
 * Process: the integration tests (Criterion: every test in a process of its own).
 * Owns:    the daemon, the fake provider and a temporary directory; server_stop checks and removes
 *          them. A test that dies leaves no process: all of them get a signal with it.
 * Rules:   nothing waits by sleeping: the daemon is ready when its log says so. A WARN or ERROR
 * line that the test did not announce fails it.
 */
#ifndef OTARI_TESTS_INTEG_HARNESS_H
#define OTARI_TESTS_INTEG_HARNESS_H

#include <sys/types.h>

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct server;

struct server_opts {
	const char *conf;      /* more of otari.conf, or NULL */
	const char *providers; /* more entries below `providers:`, indented by two; or NULL */
	const char
	    *sandbox; /* sandbox_url; "fake:NAME": tests/fake/sandbox.c; NULL: the key is absent */
	const char *database; /* database_url; NULL: SQLite in the directory */
	int workers;          /* 0: 2 */
	bool tokenless;       /* makes no API key */
	pid_t keep;           /* a child of the test's own (a database): none of the daemon's */
	/* Another daemon of the test, which runs on. */
	const struct server *beside;
};

struct server {
	pid_t pid, fake_pid;
	int port, admin_port, fake_port;
	int serve_port; /* where it lends its sandbox; 0: nowhere */
	char dir[256];
	char conf_path[320], log_path[320], db_path[320];
	char master_key[256], key[128];
	struct server_opts opts;
	const char *expected[16]; /* parts of WARN and ERROR lines that may come */
	size_t expected_count;
};

/* Starts both, waits until the daemon listens, makes one API key. Fails the test if it cannot. */
struct server *server_start(const struct server_opts *opts); /* NULL: all defaults */
/* The same with a sandbox that is ready. Where it cannot run the test is skipped, or fails when
 * OTARI_TEST_REQUIRE names the sandbox. */
struct server *start_with_sandbox(void);
struct server *start_sandboxed(const struct server_opts *opts); /* its sandbox key is set here */
/* TERM, then: status 0, nothing left running, no unexpected log line. Removes the directory. */
void server_stop(struct server **s);
/* Lines with this text at WARN or ERROR are all right; text is kept by pointer. */
void server_expect(struct server *s, const char *text);
/* Writes otari.conf again, with more text at its end. */
void server_write_conf(struct server *s, const char *more);
/* Waits until the log holds a line with this text beyond *offset (NULL: from the start), which is
 * moved behind it. False after the test's time limit. */
bool server_wait_log(struct server *s, const char *text, long *offset);
long server_log_end(struct server *s);
/* Pids of the daemon's processes whose title holds this text; how many. */
size_t server_pids(struct server *s, const char *title, pid_t *pids, size_t max);
/* Between two looks at something that is on its way. */
void pause_short(void);
int64_t wait_limit_ms(void); /* for anything that is waited for */
/* Entries of a directory; -1: it cannot be read. */
int count_entries(const char *dir);
/* First column of the first row; 0 when there is none. */
int64_t server_sql(struct server *s, const char *sql);
/* Repeats server_sql until it is at least n. */
bool server_wait_sql(struct server *s, const char *sql, int64_t n);

/* A request and its answer. */
struct reply {
	long status; /* 0: no answer */
	int curl_code;
	struct buf body, head; /* head: all header lines */
	long chunks;           /* how many pieces the body came in */
};

struct ask_opts {
	const char *key;            /* NULL: the server's API key; "": none */
	const char *type;           /* Content-Type; NULL: application/json */
	const char *const *headers; /* NULL-terminated list of whole lines, or NULL */
	bool admin;                 /* to the admin listener */
	bool serve;                 /* to where the sandbox is lent */
	size_t stop_after;          /* hang up after so many bytes of the answer; 0: never */
};

/* The last lines of its log, for whoever reads why a test failed. */
void server_show_log(struct server *s);
/* body NULL: GET, or the method given. Free with reply_done. */
void server_ask(struct server *s, const char *method, const char *path, struct str body,
    const struct ask_opts *opts, struct reply *ret);
void fake_ask(
    struct server *s, const char *method, const char *path, struct str body, struct reply *ret);
void reply_done(struct reply *r);
/* The body as JSON; owned by the caller. Fails the test when it is none. */
json_t *reply_json(const struct reply *r);
/* Value of a header of the answer, or NULL-string; points into r. */
struct str reply_header(const struct reply *r, const char *name);
/* Multipart upload of one file: the given fields and then the file. */
void server_upload(struct server *s, const char *path, const char *filename, const char *mime,
    struct str bytes, const char *purpose, const struct ask_opts *opts, struct reply *ret);

/* json_string_value of a path "a.b.0.c", or "" */
const char *at(const json_t *root, const char *path);
json_int_t at_int(const json_t *root, const char *path); /* -1: none */
const json_t *at_json(const json_t *root, const char *path);

#endif
