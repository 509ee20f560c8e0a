/* program.h - runs the programs beside the daemon to their end; shared by the tests of the master
 */
#ifndef OTARI_TESTS_INTEG_PROGRAM_H
#define OTARI_TESTS_INTEG_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "tests/integ/harness.h"

#define HELLO STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}")

/* name: beside this program, or an absolute path. */
void program_path(const char *name, char dst[1200]);
/* Both output streams go to out, NUL-terminated.
 * Returns the exit code, or 128 + signal. */
int program_run(const char *name, const char *const *argv, char *out, size_t size);
/* otarictl --json for this server. */
int program_otarictl(struct server *s, const char *command, char *out, size_t size);
/* One plain chat request must be answered with 200; when: for the message. */
void must_answer(struct server *s, const char *when);
/* The daemon must end by itself; its exit code, -1 when a signal ended it. */
int wait_daemon_end(struct server *s, int64_t limit_ms);
/* In place of server_stop, for a daemon that has ended already. */
void forget_server(struct server *s);
/* Generation in force; *ret_settled: on every worker. */
int64_t server_generation(struct server *s, bool *ret_settled);
/* A connection to the public listener. */
int server_connect(struct server *s);
/* A socket with a request whose body never comes: it keeps its worker from being drained. */
int server_hold_request(struct server *s);

#endif
