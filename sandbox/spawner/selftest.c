#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sandbox/spawner/broker.h"

void
report_set(struct broker *b, enum sandbox_layer l, enum sandbox_layer_state state, int sys_errno,
    const char *text)
{
	struct sandbox_layer_report *r = &b->report.layer[l];
	r->state = (uint32_t)state;
	r->sys_errno = sys_errno;
	(void)snprintf(r->text, sizeof(r->text), "%s", text);
}

void
report_refuse(struct broker *b, const struct jail_fail *f)
{
	enum sandbox_layer l = f->layer < SB_LAYERS_ ? (enum sandbox_layer)f->layer : SB_LIMITS;
	const char *name = f->sys_errno == 0 ? "0" : strerrorname_np(f->sys_errno);
	report_set(b, l, SB_MISSING, f->sys_errno, f->step);
	if (b->report.refused != 0)
		return; /* the first one is told */
	b->report.refused = 1;
	(void)snprintf(b->report.text, sizeof(b->report.text),
	    "layer=%s errno=%s step=\"%s\" hint=\"%s\"", lease_layer_name(l),
	    name != NULL ? name : "unknown", f->step, lease_layer_hint(l, f->sys_errno));
	log_error("sandbox refused, code tools are off", LOG_C("why", b->report.text));
}

static void
finish(struct broker *b)
{
	if (b->report.refused == 0)
		for (size_t i = 0; i < SB_LAYERS_; i++)
			if (b->report.layer[i].state == SB_UNKNOWN)
				b->report.layer[i].state = SB_ACTIVE;
	if (b->test != NULL)
		session_kill(b->test);
	b->test = NULL;
	b->is_tested = true;
	broker_tested(b);
	if (b->report.refused == 0)
		zygote_start(b);
}

void
selftest_failed(struct broker *b, const struct jail_fail *f)
{
	report_refuse(b, f);
	finish(b);
}

void
selftest_start(struct broker *b)
{
	if (b->jail.has_range)
		report_set(b, SB_UID_RANGE, SB_ACTIVE, 0, "a user id per session");
	else
		report_set(b, SB_UID_RANGE, SB_DEGRADED, 0, "one user id for all sessions");
	bounds_report(b);
	if ((b->jail.without & JAIL_WITHOUT_LANDLOCK) != 0)
		report_set(b, SB_LANDLOCK, SB_DEGRADED, 0, "left out by a test");
	else if (jail_has_landlock())
		report_set(b, SB_LANDLOCK, SB_ACTIVE, 0, "a second wall over paths");
	else
		report_set(b, SB_LANDLOCK, SB_DEGRADED, 0, "not in this kernel");
	if ((b->jail.without & JAIL_WITHOUT_SECCOMP) != 0)
		report_set(b, SB_SECCOMP, SB_DEGRADED, 0, "left out by a test");
	b->test = lend_new_session(b, false);
	if (b->test == NULL) {
		struct jail_fail f = {SB_PID_NS, errno, "clone of a session"};
		selftest_failed(b, &f);
	}
}

void
selftest_ready(struct broker *b, int sys_errno_of_interpreter)
{
	if (sys_errno_of_interpreter != 0) {
		struct jail_fail f = {SB_INTERPRETER, sys_errno_of_interpreter, ""};
		(void)snprintf(f.step, sizeof(f.step), "start of %.30s", b->settings.python);
		selftest_failed(b, &f);
		return;
	}
	if (!bounds_hold(b, b->test)) {
		struct jail_fail f = {SB_MEMORY_CGROUP, 0, "tested: a session is in its cgroup"};
		selftest_failed(b, &f);
		return;
	}
	session_ask_selftest(b->test);
}

bool
selftest_is_left_out(const struct broker *b, uint32_t layer)
{
	return layer == SB_SECCOMP && (b->jail.without & JAIL_WITHOUT_SECCOMP) != 0;
}

void
selftest_frame(struct broker *b, uint8_t type, struct str payload)
{
	struct frame_check c;
	struct jail_fail f = {SB_INTERPRETER, EPROTO, "self-test"};
	if (type == FRAME_CHECK_END && payload.len == 0) {
		finish(b);
		return;
	}
	if (type != FRAME_CHECK || !frame_check_get(payload, &c) || c.layer >= SB_LAYERS_) {
		selftest_failed(b, &f);
		return;
	}
	if (c.held == 1 || selftest_is_left_out(b, c.layer))
		return;
	if (c.layer == SB_UID_RANGE && !b->jail.has_range) {
		/* Only root may give groups up before a user namespace forbids it. */
		report_set(b, SB_UID_RANGE, SB_DEGRADED, 0,
		    "one user id for all sessions, which keeps its supplementary groups");
		return;
	}
	f.layer = c.layer;
	f.sys_errno = c.sys_errno;
	(void)snprintf(f.step, sizeof(f.step), "tested: %.*s",
	    (int)(c.text.len > 36 ? 36 : c.text.len), c.text.ptr);
	report_refuse(b, &f);
}
