/* run.c - one call: takes the program, runs it, ends it in time, says what came of it */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* After SIGINT at the time limit the code may still print its traceback. */
#define GRACE_MS 500
/* Until an interpreter must have stopped, on a busy host. */
#define STOP_LOOKS   100
#define STOP_LOOK_MS 50
/* Of a fresh interpreter, on a busy host. */
#define START_MS 20000

enum stage { IDLE, TAKING, STARTING, RUNNING, INTERRUPTED };

static struct {
	enum stage stage;
	struct frame_run ask;
	char source[4 + FRAME_SOURCE_MAX + 1]; /* length, text: as the interpreter reads it; NUL */
	size_t len, sent;
	int64_t started_ms, deadline_ms;
	bool is_python_lost; /* beside what the call is */
	bool owes_note;      /* lost between calls: the next one says so */
	/* After a call: looks that are left until the interpreter must have stopped, and the next.
	 */
	unsigned looks;
	int64_t look_ms;
} run;

const char *python_path;

bool
run_is_idle(void)
{
	return run.stage == IDLE;
}

static bool
is_python_call(void)
{
	return run.ask.kind == FRAME_KIND_PYTHON;
}

bool
run_wants_write(void)
{
	return is_python_call() && run.stage == RUNNING && run.sent < run.len;
}

int
run_timeout_ms(void)
{
	if (run.stage < STARTING && run.looks == 0)
		return -1;
	int64_t left = (run.stage < STARTING ? run.look_ms : run.deadline_ms) - now_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* What keeps the state is gone, and the call does not end with it. */
static void
lose_python(void)
{
	if (!python.has_exited)
		(void)kill(python.pid, SIGKILL);
	python_forget();
	run.is_python_lost = true;
}

static void
finish(uint32_t flags, int32_t code)
{
	if ((flags & FRAME_RESULT_DIED) != 0) {
		kill_all();
		python_forget();
	} else if (!kill_leftovers()) {
		flags |= FRAME_RESULT_DIED;
		python_forget();
	}
	/* An interpreter that has just answered is there; the next call would notice. */
	if (python.has_exited || (!is_python_call() && interpreter_is_gone()))
		lose_python();
	if (run.is_python_lost)
		flags |= FRAME_RESULT_DIED;
	program_forget();
	if (memory_was_met())
		flags |= FRAME_RESULT_MEMORY;
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_result r = {flags, code, (uint32_t)(now_ms() - run.started_ms)};
	ctl_send(FRAME_RESULT, p, frame_result_put(p, &r));
	produce_send(run.ask.max_files, run.ask.max_bytes);
	run.stage = IDLE;
	run.looks = python.pid != 0 ? STOP_LOOKS : 0;
	run.look_ms = now_ms() + STOP_LOOK_MS;
	if (python.pid == 0) /* the next call finds one */
		(void)python_start(python_path);
}

static int
code_of(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : 255;
}

static void
died(void)
{
	/* The request socket may close a moment before the process is a zombie. */
	if (!python.has_exited)
		kill_all();
	reap();
	finish(FRAME_RESULT_DIED, python.has_exited ? code_of(python.wait_status) : 255);
}

static void
run_now(void)
{
	run.stage = RUNNING;
	run.started_ms = now_ms();
	run.deadline_ms = run.started_ms + run.ask.timeout_ms;
}

static void
launch(void)
{
	run_now();
	wake_interpreter();
	if (!python_send(str_n(run.source, run.len), &run.sent))
		died();
}

static void
start_python(void)
{
	if (python.pid == 0 && python_start(python_path) != 0) {
		finish(FRAME_RESULT_DIED, 127);
		return;
	}
	if (python.is_ready) {
		launch();
		return;
	}
	wake_interpreter(); /* another kind of call may have ended while it started */
	run.stage = STARTING;
	run.deadline_ms = run.started_ms + START_MS;
}

static int
start_program(void)
{
	if (run.ask.kind == FRAME_KIND_BASH)
		return program_start_shell(run.source + 4, run.len - 4);
	return convert_start(str_n(run.source + 4, run.len - 4));
}

static void
start_other(void)
{
	run_now();
	int e = start_program();
	if (e == EAGAIN && python.pid != 0) {
		/* Dead children that the stopped interpreter has not taken note of fill the limit.
		 */
		kill_all();
		lose_python();
		e = start_program();
	}
	if (e == 0)
		return;
	static const char shell[] = "the sandbox has neither bash nor sh\n";
	static const char extractor[] = "the sandbox has no program for this\n";
	static const char failed[] = "no program could start\n";
	if (e != ENOENT)
		(void)!write(2, failed, sizeof(failed) - 1);
	else if (run.ask.kind == FRAME_KIND_BASH)
		(void)!write(2, shell, sizeof(shell) - 1);
	else
		(void)!write(2, extractor, sizeof(extractor) - 1);
	finish(0, 127);
}

static void
lose_between_calls(bool has_served)
{
	kill_all();
	python_forget();
	run.owes_note |= has_served;
}

/* Nothing runs between calls. There are many ways to be woken by what one has set up before: a
 * timer, the end of a child, a descriptor. */
static void
keep_stopped(void)
{
	if (interpreter_woke()) {
		run.looks = 0;
		lose_between_calls(true);
		return;
	}
	if (run.looks == 0 || now_ms() < run.look_ms)
		return;
	/* A wake-up that came before the stop was complete leaves no trace. */
	run.looks--;
	run.look_ms = now_ms() + STOP_LOOK_MS;
	if (python.pid == 0 || python.has_exited || interpreter_is_stopped())
		run.looks = 0;
	else if (run.looks == 0)
		lose_between_calls(true);
	else
		(void)kill(python.pid, SIGSTOP);
}

static void
start(void)
{
	static const char note[] =
	    "[the interpreter had ended; its variables are lost, files are kept]\n";
	/* The code may have left the shared output pipes non-blocking, and removed the folder. */
	for (int fd = 1; fd <= 2; fd++)
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	(void)mkdir(INIT_OUTPUTS, 0755);
	produce_snapshot();
	memory_start();
	run.started_ms = now_ms();
	run.is_python_lost = false;
	reap();
	if (python.has_exited)
		lose_between_calls(true);
	if (run.owes_note)
		(void)!write(2, note, sizeof(note) - 1);
	run.owes_note = false;
	run.looks = 0;
	switch (run.ask.kind) {
	case FRAME_KIND_PYTHON:
		start_python();
		break;
	case FRAME_KIND_BASH:
	case FRAME_KIND_CONVERT:
		start_other();
		break;
	default:
		finish(0, edit_run(str_n(run.source + 4, run.len - 4)));
		break;
	}
}

void
run_begin(const struct frame_run *r)
{
	if (run.stage != IDLE)
		init_leave(70);
	run.ask = *r;
	memcpy(run.source, &r->source_bytes, 4);
	run.len = 4;
	run.sent = 0;
	run.source[4 + r->source_bytes] = '\0';
	run.stage = TAKING;
	if (r->source_bytes == 0)
		start();
}

void
run_data(struct str bytes)
{
	if (run.stage != TAKING || bytes.len > 4 + (size_t)run.ask.source_bytes - run.len)
		init_leave(70);
	memcpy(run.source + run.len, bytes.ptr, bytes.len);
	run.len += bytes.len;
	if (run.len == 4 + (size_t)run.ask.source_bytes)
		start();
}

void
run_kill(void)
{
	if (run.stage >= STARTING)
		finish(is_python_call() ? FRAME_RESULT_DIED : 0, 137);
}

void
run_python_event(void)
{
	int32_t code = 0;
	bool has_served = python.is_ready;
	enum python_event event = python_read(&code);
	if (run.stage < STARTING) {
		/* Nobody asked: the code of the last call has left something in the socket, or
		 * closed it; or a fresh one did not come to life. */
		if (event == PYTHON_DONE || event == PYTHON_GONE)
			lose_between_calls(has_served);
		return;
	}
	if (!is_python_call()) {
		if (event == PYTHON_DONE || event == PYTHON_GONE)
			lose_python();
		return;
	}
	switch (event) {
	case PYTHON_NOTHING:
		break;
	case PYTHON_READY:
		if (run.stage == STARTING)
			launch();
		break;
	case PYTHON_DONE:
		if (run.stage == INTERRUPTED)
			finish(FRAME_RESULT_TIMED_OUT, 124);
		else if (run.stage == RUNNING && run.sent == run.len)
			finish(0, code);
		else
			died();
		break;
	case PYTHON_GONE:
		died();
		break;
	}
}

/* True: the call has ended. */
static bool
ended_by_itself(void)
{
	bool is_interrupted = run.stage == INTERRUPTED;
	uint32_t late = is_interrupted ? FRAME_RESULT_TIMED_OUT : 0;
	if (!is_python_call()) {
		if (python.has_exited)
			lose_python();
		if (the_program.has_exited)
			finish(late, is_interrupted ? 124 : code_of(the_program.wait_status));
		return the_program.pid == 0;
	}
	if (!python.has_exited)
		return false;
	if (is_interrupted) /* what it said before it died comes first */
		finish(late | FRAME_RESULT_DIED, 124);
	else
		died();
	return true;
}

void
run_tick(void)
{
	if (run_wants_write() && !python_send(str_n(run.source, run.len), &run.sent)) {
		died();
		return;
	}
	if (run.stage < STARTING)
		keep_stopped();
	if (run.stage < STARTING || ended_by_itself() || now_ms() < run.deadline_ms)
		return;
	if (run.stage == RUNNING) {
		run.stage = INTERRUPTED;
		run.deadline_ms = now_ms() + GRACE_MS;
		if (is_python_call()) {
			(void)kill(python.pid, SIGINT);
			(void)kill(python.pid, SIGCONT);
		} else {
			program_interrupt();
		}
		return;
	}
	finish(FRAME_RESULT_TIMED_OUT | (is_python_call() ? FRAME_RESULT_DIED : 0), 124);
}
