#include "sweeper/sweeper.h"

#include <errno.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "ipc/payload.h"
#include "ipc/role.h"
#include "ipc/secrets.h"
#include "ipc/snapshot.h"
#include "sweeper/sweep_thread.h"

#define FLUSH_MS 1000

struct sweeper {
	struct role_env env;
	struct sweep_thread *work;
	struct event *on_wake;
	int wake[2];
	struct snapshot *policy;
	struct secrets *secrets;
	bool is_draining, is_orphan;
};

/* Both are needed: the password is not in the snapshot. */
static void
use_settings(struct sweeper *s)
{
	if (s->policy == NULL || s->secrets == NULL)
		return;
	const struct snap_settings *c = &snapshot_policy(s->policy)->settings;
	struct sweep_settings w = {
	    .database_url = secrets_get(s->secrets, STR("database_url")),
	    .state_dir = snapshot_str(s->policy, c->state_dir),
	    .files_backend = snapshot_str(s->policy, c->files_backend),
	    .files_local_dir = snapshot_str(s->policy, c->files_local_dir),
	    .files_sweep_interval_s = c->files_enabled ? c->files_sweep_interval_s : 0,
	};
	sweep_thread_set(s->work, &w);
}

static void
take_policy(struct sweeper *s, struct msg *m)
{
	struct snapshot_note note;
	struct snapshot *fresh = NULL;
	struct err err = {0};
	enum err_code rc = snapshot_note_decode(m->payload, &note, &err);
	if (rc == ERR_OK)
		rc = snapshot_map(msg_take_fd(m, 0), SNAP_POLICY, &fresh, &err);
	if (rc != ERR_OK) {
		log_error("a snapshot is not usable; the old one stays", LOG_ERR(&err));
		return;
	}
	snapshot_put(&s->policy);
	s->policy = fresh;
	use_settings(s);
	struct buf b = BUF_INIT(64);
	ack_encode(&b, &(struct ack){note.generation});
	chan_send(s->env.ctl, MSG_ACK, 0, buf_str(&b), NULL, 0);
	buf_done(&b);
}

static void
take_secrets(struct sweeper *s, struct msg *m)
{
	struct secrets *fresh = NULL;
	struct err err = {0};
	if (secrets_map(msg_take_fd(m, 0), &fresh, &err) != ERR_OK) {
		log_error("secrets are not usable; the old ones stay", LOG_ERR(&err));
		return;
	}
	secrets_free(&s->secrets);
	s->secrets = fresh;
	use_settings(s);
}

static void
on_msg(struct chan *c, struct msg *m, void *arg)
{
	(void)c;
	struct sweeper *s = arg;
	if (m == NULL) { /* nobody to work for; the spools stay for the next start */
		s->is_orphan = true;
		(void)event_base_loopbreak(s->env.base);
	} else if (m->type == MSG_POLICY) {
		take_policy(s, m);
	} else if (m->type == MSG_SECRETS) {
		take_secrets(s, m);
	} else if (m->type == MSG_DRAIN && !s->is_draining) {
		s->is_draining = true;
		role_draining(&s->env);
		sweep_thread_finish(s->work);
	}
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct sweeper *s = arg;
	char bytes[64];
	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
	struct store_generation g;
	bool has_ended = false;
	if (sweep_thread_take(s->work, &g, &has_ended)) {
		struct buf b = BUF_INIT(64);
		publish_ask_encode(
		    &b, &(struct publish_ask){SEG_BOTH, (uint64_t)g.policy, (uint64_t)g.keys});
		chan_send(s->env.ctl, MSG_PUBLISH, 0, buf_str(&b), NULL, 0);
		buf_done(&b);
	}
	if (has_ended)
		(void)event_base_loopbreak(s->env.base);
}

static enum err_code
start(struct sweeper *s, struct err *reterr)
{
	if (!fd_pipe(s->wake, true))
		return err_set(reterr, ERR_IO, "pipe");
	s->on_wake = event_new(s->env.base, s->wake[0], EV_READ | EV_PERSIST, on_wake, s);
	if (s->on_wake == NULL || event_add(s->on_wake, NULL) != 0)
		return err_set(reterr, ERR_INTERNAL, "events");
	return sweep_thread_start(s->env.board, s->env.slot, s->wake[1], &s->work, reterr);
}

int
sweeper_main(int argc, char **argv)
{
	struct sweeper s = {.wake = {-1, -1}};
	struct err err = {0};
	enum err_code rc = role_start(argc, argv, on_msg, &s, &s.env, &err);
	if (rc == ERR_OK)
		rc = start(&s, &err);
	if (rc == ERR_OK) {
		role_ready(&s.env);
		(void)event_base_dispatch(s.env.base);
	} else {
		log_error("the sweeper cannot start", LOG_ERR(&err));
	}
	if (s.is_orphan) /* without waiting for what the thread is doing: all of it is repeatable */
		_exit(1);
	sweep_thread_stop(&s.work);
	if (s.on_wake != NULL)
		event_free(s.on_wake);
	if (rc == ERR_OK)
		(void)!chan_flush(s.env.ctl, FLUSH_MS, NULL);
	fd_close(&s.wake[0]);
	fd_close(&s.wake[1]);
	secrets_free(&s.secrets);
	snapshot_put(&s.policy);
	if (s.env.base != NULL)
		role_done(&s.env);
	return rc == ERR_OK ? 0 : 1;
}
