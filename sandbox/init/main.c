#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static bool said_ready;

static void
say_ready(int sys_errno)
{
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_ready r = {FRAME_VERSION, sys_errno};
	ctl_send(FRAME_READY, p, frame_ready_put(p, &r));
	said_ready = true;
}

static void
dispatch(const struct frame_head *h, struct str payload)
{
	struct frame_file file;
	struct frame_run run;
	switch (h->type) {
	case FRAME_PUT:
		if (!frame_file_get(payload, &file))
			init_leave(70);
		put_begin(&file);
		break;
	case FRAME_PUT_DATA:
		put_data(payload);
		break;
	case FRAME_PUT_END:
		put_end();
		break;
	case FRAME_RUN:
		if (!frame_run_get(payload, &run))
			init_leave(70);
		run_begin(&run);
		break;
	case FRAME_RUN_DATA:
		run_data(payload);
		break;
	case FRAME_KILL:
		run_kill();
		break;
	case FRAME_LIST:
		list_send();
		break;
	case FRAME_GET:
		get_send(payload);
		break;
	case FRAME_SELFTEST:
		selftest_run();
		break;
	default:
		init_leave(70);
	}
}

static void
on_python(void)
{
	if (said_ready) {
		run_python_event();
		return;
	}
	int32_t code;
	switch (python_read(&code)) {
	case PYTHON_NOTHING:
		break;
	case PYTHON_READY:
		produce_snapshot();
		if (kill_leftovers()) {
			say_ready(0);
			break;
		}
		python_forget();
		say_ready(ECHILD);
		break;
	case PYTHON_DONE: /* unasked */
	case PYTHON_GONE:
		kill_all();
		python_forget();
		say_ready(ECHILD);
		break;
	}
}

static void
step(int signals)
{
	struct pollfd p[] = {
	    {.fd = INIT_CTL, .events = POLLIN},
	    {.fd = signals, .events = POLLIN},
	    {.fd = python.fd, .events = (short)(POLLIN | (run_wants_write() ? POLLOUT : 0))},
	    {.fd = the_program.feed, .events = POLLOUT},
	};
	if (poll(p, sizeof(p) / sizeof(p[0]), run_timeout_ms()) < 0 && errno != EINTR)
		init_leave(72);
	if (p[2].revents != 0 && python.fd == p[2].fd)
		on_python();
	if (p[1].revents != 0) {
		struct signalfd_siginfo si;
		(void)!read(signals, &si, sizeof(si));
		reap();
	}
	if (p[3].revents != 0 && the_program.feed == p[3].fd)
		program_write();
	run_tick();
	if (p[0].revents != 0) {
		struct frame_head h;
		struct str payload;
		ctl_fill();
		while (ctl_next(&h, &payload))
			dispatch(&h, payload);
	}
}

int
main(int argc, char **argv)
{
	/* No interpreter exists yet: from here on nothing can look into this process. */
	bool is_from_zygote = argc == 3 && strcmp(argv[2], "zygote") == 0;
	if ((argc != 2 && !is_from_zygote) || prctl(PR_SET_DUMPABLE, 0) != 0)
		return 64;
	/* Not by exec: half-way through it nobody can enter our namespaces. */
	(void)close(INIT_STATUS);
	python_path = argv[1];
	umask(022);
	if (chdir(INIT_WORK) != 0 || (mkdir(INIT_OUTPUTS, 0755) != 0 && errno != EEXIST))
		return 73;
	memory_open();
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	int signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return 74;
	if (is_from_zygote) {
		python_expect();
	} else {
		int e = python_start(python_path);
		if (e != 0)
			say_ready(e);
	}
	for (;;)
		step(signals);
}
