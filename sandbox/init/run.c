#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "sandbox/init/init.h"

/* After SIGINT at the time limit the code may still print its traceback. */
#define GRACE_MS 500
/* Of a fresh interpreter, on a busy host. */
#define START_MS 20000

enum stage { IDLE, TAKING, STARTING, RUNNING, INTERRUPTED };

static struct {
	enum stage stage;
	struct frame_run ask;
	char source[4 + FRAME_SOURCE_MAX]; /* length, text: as the interpreter reads it */
	size_t len, sent;
	int64_t started_ms, deadline_ms;
} run;

const char *python_path;

bool
run_is_idle(void)
{
	return run.stage == IDLE;
}

bool
run_wants_write(void)
{
	return run.stage == RUNNING && run.sent < run.len;
}

int
run_timeout_ms(void)
{
	if (run.stage < STARTING)
		return -1;
	int64_t left = run.deadline_ms - now_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
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
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_result r = {flags, code, (uint32_t)(now_ms() - run.started_ms)};
	ctl_send(FRAME_RESULT, p, frame_result_put(p, &r));
	produce_send(run.ask.max_files, run.ask.max_bytes);
	run.stage = IDLE;
	if (python.pid == 0) /* the next call finds one */
		(void)python_start(python_path);
}

static void
died(void)
{
	/* The request socket may close a moment before the process is a zombie. */
	if (!python.has_exited)
		kill_all();
	reap();
	int code = 255;
	if (python.has_exited && WIFEXITED(python.wait_status))
		code = WEXITSTATUS(python.wait_status);
	else if (python.has_exited && WIFSIGNALED(python.wait_status))
		code = 128 + WTERMSIG(python.wait_status);
	finish(FRAME_RESULT_DIED, code);
}

static void
launch(void)
{
	run.stage = RUNNING;
	run.started_ms = now_ms();
	run.deadline_ms = run.started_ms + run.ask.timeout_ms;
	(void)kill(python.pid, SIGCONT);
	if (!python_send(str_n(run.source, run.len), &run.sent))
		died();
}

static void
start(void)
{
	(void)mkdir(INIT_OUTPUTS, 0755); /* the code may have removed it */
	produce_snapshot();
	run.started_ms = now_ms();
	if (run.ask.kind != FRAME_KIND_PYTHON) {
		finish(0, 126);
		return;
	}
	reap();
	if (python.has_exited) {
		kill_all();
		python_forget();
	}
	if (python.pid == 0 && python_start(python_path) != 0) {
		finish(FRAME_RESULT_DIED, 127);
		return;
	}
	if (python.is_ready) {
		launch();
		return;
	}
	run.stage = STARTING;
	run.deadline_ms = run.started_ms + START_MS;
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
	if (run.stage >= STARTING) {
		finish(FRAME_RESULT_DIED, 137);
	}
}

void
run_python_event(void)
{
	int32_t code = 0;
	switch (python_read(&code)) {
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
		if (run.stage >= STARTING) {
			died();
		} else {
			kill_all();
			python_forget();
		}
		break;
	}
}

void
run_tick(void)
{
	if (run_wants_write() && !python_send(str_n(run.source, run.len), &run.sent)) {
		died();
		return;
	}
	if (run.stage >= STARTING && python.has_exited) {
		/* What it said before it died comes first. */
		if (run.stage == INTERRUPTED)
			finish(FRAME_RESULT_TIMED_OUT | FRAME_RESULT_DIED, 124);
		else
			died();
		return;
	}
	if (run.stage < STARTING || now_ms() < run.deadline_ms)
		return;
	if (run.stage == RUNNING) {
		run.stage = INTERRUPTED;
		run.deadline_ms = now_ms() + GRACE_MS;
		(void)kill(python.pid, SIGINT);
		(void)kill(python.pid, SIGCONT);
		return;
	}
	finish(FRAME_RESULT_TIMED_OUT | FRAME_RESULT_DIED, 124);
}
