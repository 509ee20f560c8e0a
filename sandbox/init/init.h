/* init.h - otari-init, pid 1 of a session
 *
 * Process: otari-init. Starts behind every wall (sandbox/jail made them, then exec'd it), so it has
 * no more rights than the code it runs: it is only unkillable (pid 1) and unreadable (not
 * dumpable). Found open: 0 /dev/null, 1 and 2 the output pipes of the session, 3 the control
 * socket, 4 the request socket of an interpreter that a zygote will fork into the session, if any,
 * 5 the events of the session's memory cgroup, to read, if it has one, 7 a pipe whose end says that
 * init runs. SIGUSR1 from outside: the
 * session was over its memory.
 * Arguments: the interpreter's path, and "zygote" when 4 is open. Rule: libc and pure files only;
 * static storage, no heap. Any broken promise of the worker or the end of the control socket ends
 * the session: the kernel then kills all that is in it.
 */
#ifndef OTARI_SANDBOX_INIT_INIT_H
#define OTARI_SANDBOX_INIT_INIT_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ipc/frames.h"

#define INIT_CTL     3
#define INIT_REQUEST 4
#define INIT_MEMORY  5
#define INIT_STATUS  7
#define INIT_WORK    "/work"
#define INIT_OUTPUTS INIT_WORK "/outputs"

/* All that the environment of an interpreter or a shell is; threads: of the numeric libraries, a
 * string. */
#define INIT_ENVIRONMENT(threads)                                                                  \
	"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" INIT_WORK, "USER=sandbox", "LANG=C.UTF-8",    \
	    "TZ=UTC", "TMPDIR=/tmp", "OUTPUT_DIR=" INIT_OUTPUTS, "XDG_CACHE_HOME=/tmp/.cache",     \
	    "XDG_CONFIG_HOME=/tmp/.config", "MPLBACKEND=Agg", "MPLCONFIGDIR=/tmp/.matplotlib",     \
	    "PYTHONIOENCODING=utf-8:backslashreplace", "PYTHONUTF8=1",                             \
	    "PYTHONDONTWRITEBYTECODE=1", "OPENBLAS_NUM_THREADS=" threads,                          \
	    "OMP_NUM_THREADS=" threads

/* --- ctl.c: frames in and out ------------------------------------------------------------------
 */
/* Blocking; leaves the process when the worker is gone. */
void ctl_send(uint8_t type, const void *payload, size_t n);
/* Reads what is there; then hands out whole frames one by one. */
void ctl_fill(void);
bool ctl_next(struct frame_head *head, struct str *payload); /* payload: until the next call */
_Noreturn void init_leave(int code);

/* --- spawn.c: a process of the session
 * ---------------------------------------------------------- */
#define SPAWN_FDS 2
struct spawn {
	const char *const *paths, *const *argv; /* the first path that is there */
	int fds[SPAWN_FDS];                     /* become 3 and 4 */
	unsigned fd_count;
};
pid_t spawn(const struct spawn *s); /* it has exec'd; -1: errno, also of the exec */

/* --- python.c: the interpreter ------------------------------------------------------------------
 */
struct python {
	pid_t pid;       /* 0: none */
	int fd;          /* its request socket; -1: none */
	bool is_warming; /* it has started */
	bool is_ready;
	bool has_exited;
	int wait_status; /* when has_exited */
};
extern struct python python;
int python_start(const char *path); /* 0 or errno; it is ready when python_read() says so */
void python_expect(void);           /* one comes from outside, on INIT_REQUEST */
enum python_event { PYTHON_NOTHING, PYTHON_READY, PYTHON_DONE, PYTHON_GONE };
enum python_event python_read(int32_t *ret_code);
bool python_send(struct str bytes, size_t *sent); /* non-blocking, from *sent on; false: gone */
void python_forget(void);
void reap(void); /* all dead children */
int64_t now_ms(void);

/* --- program.c, convert.c: the one program of a call ---------------------------------------------
 */
struct program {
	pid_t pid;       /* 0: none */
	int feed;        /* what it is fed goes in here; -1: it is in */
	struct str rest; /* of it */
	bool has_exited;
	int wait_status; /* when has_exited */
};
extern struct program the_program;
/* feed (ptr NULL: none) is borrowed until program_forget(). 0 or errno, ENOENT: not installed. */
int program_start(const char *const *paths, const char *const *argv, struct str feed);
int program_start_shell(const char *command, size_t n); /* NUL after its n bytes */
int convert_start(struct str source);                   /* struct frame_convert */
void program_write(void);                               /* non-blocking */
void program_interrupt(void);
void program_forget(void);

/* --- kill.c ------------------------------------------------------------------------------------
 */
/* Stops everything, kills all but the interpreter (which stays stopped). False when something would
 * not die: then the interpreter was killed too. */
bool kill_leftovers(void);
/* After that: was the interpreter killed, though it may not have ended yet? Or would it not stop?
 */
bool interpreter_is_gone(void);
bool interpreter_is_stopped(void);
void wake_interpreter(void);
bool interpreter_woke(void); /* by itself, since it was stopped */
void kill_all(void);         /* everything but this process; waits until it is gone */

/* --- run.c: one call -----------------------------------------------------------------------------
 */
void run_begin(const struct frame_run *r);
void run_data(struct str bytes);
void run_kill(void);
void run_python_event(void);
void run_tick(void);        /* deadlines; also after reap() */
bool run_wants_write(void); /* source left to send to the interpreter */
int run_timeout_ms(void);   /* for poll: -1 none */
bool run_is_idle(void);
extern const char *python_path;

/* --- path.c ------------------------------------------------------------------------------------
 */
/* The folder of a file of the workspace (frame_path_ok), O_PATH, owned by the caller, and the last
 * component of the name; no link is followed. make: folders that are missing. -1: errno. */
int open_parent(struct str path, bool make, char name[256]);

/* --- edit.c, edit_list.c: the text editor ------------------------------------------------------
 */
/* Answers all but the result; the return code. source: struct frame_edit. */
int edit_run(struct str source);
/* Takes fd, the folder (relative to the workspace) that is listed; the length. */
size_t edit_list(int fd, struct str folder, char *dst, size_t room, uint32_t *ret_lines);

/* --- memory.c: who ended for want of memory
 * ------------------------------------------------------ */
void memory_open(void);
void memory_start(void); /* a call begins */
bool memory_was_met(void);

/* --- put.c: files in -----------------------------------------------------------------------------
 */
void put_begin(const struct frame_file *f);
void put_data(struct str bytes);
void put_end(void);
bool put_is_open(void);

/* --- produce.c: files out
 * --------------------------------------------------------------------------- */
void produce_snapshot(void);
void produce_send(uint32_t max_files, uint64_t max_bytes);
/* Every regular file of the workspace; no link is followed. */
struct stat;
void walk_work(void (*on_file)(struct str path, const struct stat *st));
int open_made(struct str path);         /* -1: gone, a link, or not readable (errno) */
void send_bytes(int fd, uint64_t left); /* as FILE_DATA, then FILE_END */

/* --- list.c: the workspace from outside, between two calls -------------------------------------
 */
void list_send(void);
void get_send(struct str path);

/* --- selftest.c
 * ------------------------------------------------------------------------------------- */
void selftest_run(void);
void selftest_rows(void); /* here and now, as FRAME_CHECK on INIT_CTL */

#endif
