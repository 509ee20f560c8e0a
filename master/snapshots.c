#include "master/snapshots.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ipc/chan.h"
#include "ipc/payload.h"
#include "master/master.h"

enum part { PART_WORKER_SECRETS, PART_SWEEPER_SECRETS, PART_KEYS, PART_DELTA, PART_POLICY, PARTS };

struct snapshots {
	int fd[PARTS]; /* -1: none */
	uint64_t generation;
	uint64_t db_policy, db_keys;
	/* of the keys base */
	uint64_t keys_base, keys_since, keys_count;
	int64_t keys_base_ms;
};

struct snapshots *
snapshots_new(void)
{
	struct snapshots *s = MEM_NEW(struct snapshots);
	for (int i = 0; i < PARTS; i++)
		s->fd[i] = -1;
	return s;
}

void
snapshots_free(struct snapshots **sp)
{
	if (*sp == NULL)
		return;
	for (int i = 0; i < PARTS; i++)
		fd_close(&(*sp)->fd[i]);
	mem_free(*sp);
	*sp = NULL;
}

static bool
part_of(const struct build_result *r, uint32_t kind, enum part *ret)
{
	switch ((enum build_fd)kind) {
	case BUILD_FD_POLICY:
		*ret = PART_POLICY;
		return true;
	case BUILD_FD_KEYS:
		*ret = r->keys_is_delta ? PART_DELTA : PART_KEYS;
		return true;
	case BUILD_FD_WORKER_SECRETS:
		*ret = PART_WORKER_SECRETS;
		return true;
	case BUILD_FD_SWEEPER_SECRETS:
		*ret = PART_SWEEPER_SECRETS;
		return true;
	}
	return false;
}

static void
send_part(struct child *c, enum msg_type type, int fd, struct snapshot_note note)
{
	struct buf b = BUF_INIT(64);
	if (type != MSG_SECRETS)
		snapshot_note_encode(&b, &note);
	chan_send(c->chan, type, 0, buf_str(&b), &fd, 1);
	buf_done(&b);
}

/* Secrets first, so that a policy never names one that the reader lacks; then keys, base before
 * delta; the last message asks for the acknowledgement. parts: mask of 1u << enum part. */
static void
send_parts(const struct snapshots *s, struct child *c, uint32_t parts)
{
	uint32_t mine = c->role == ROLE_WORKER ? 1u << PART_WORKER_SECRETS | 1u << PART_KEYS |
						     1u << PART_DELTA | 1u << PART_POLICY
					       : 1u << PART_SWEEPER_SECRETS | 1u << PART_POLICY;
	int last = -1;
	parts &= mine;
	for (int i = 0; i < PARTS; i++) {
		if (s->fd[i] < 0)
			parts &= ~(1u << i);
		if (i >= PART_KEYS && (parts & 1u << i) != 0)
			last = i;
	}
	static const enum msg_type types[PARTS] = {
	    MSG_SECRETS, MSG_SECRETS, MSG_KEYS, MSG_KEYS, MSG_POLICY};
	for (int i = 0; i < PARTS; i++)
		if ((parts & 1u << i) != 0)
			send_part(c, types[i], s->fd[i],
			    (struct snapshot_note){s->generation, i == PART_DELTA, i == last});
}

enum err_code
snapshots_install(
    struct master *m, const struct build_result *r, struct msg *msg, struct err *reterr)
{
	struct snapshots *s = m->snapshots;
	enum part part;
	uint32_t parts = 0;
	if (r->nfds != msg->nfds)
		return err_set(
		    reterr, ERR_PROTO, "%zu descriptors instead of %u", msg->nfds, r->nfds);
	for (uint32_t i = 0; i < r->nfds; i++)
		if (!part_of(r, r->fds[i], &part) || !fd_is_sealed(msg->fds[i]))
			return err_set(reterr, ERR_PROTO, "descriptor %u is no sealed segment", i);
	for (uint32_t i = 0; i < r->nfds; i++) {
		(void)part_of(r, r->fds[i], &part);
		fd_close(&s->fd[part]);
		s->fd[part] = msg_take_fd(msg, i);
		parts |= 1u << part;
	}
	s->generation = r->generation;
	if ((parts & 1u << PART_POLICY) != 0)
		s->db_policy = r->db_policy;
	if ((parts & (1u << PART_KEYS | 1u << PART_DELTA)) != 0)
		s->db_keys = r->db_keys;
	if ((parts & 1u << PART_KEYS) != 0) {
		fd_close(&s->fd[PART_DELTA]);
		s->keys_base = r->generation;
		s->keys_since = r->db_keys;
		s->keys_count = r->keys_count;
		s->keys_base_ms = clock_mono_ms();
	}
	struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if ((c->role == ROLE_WORKER || c->role == ROLE_SWEEPER) && c->chan != NULL &&
		    child_state_is_wanted(c->state))
			send_parts(s, c, parts);
	return ERR_OK;
}

void
snapshots_send_all(struct master *m, struct child *c)
{
	if (c->chan == NULL)
		return;
	if (c->role == ROLE_WORKER)
		publish_join(&m->publish, c->key);
	send_parts(m->snapshots, c, (1u << PARTS) - 1);
}

void
snapshots_describe(const struct master *m, struct build_request *q)
{
	const struct snapshots *s = m->snapshots;
	q->keys_base = s->fd[PART_KEYS] >= 0 ? s->keys_base : 0;
	q->keys_since = s->keys_since;
	q->keys_base_count = s->keys_count;
	q->keys_base_age_s = (uint64_t)(clock_mono_ms() - s->keys_base_ms) / 1000;
}

uint64_t
snapshots_generation(const struct master *m)
{
	return m->snapshots->generation;
}

uint32_t
snapshots_missing(const struct master *m, uint64_t db_policy, uint64_t db_keys)
{
	const struct snapshots *s = m->snapshots;
	return (db_policy > s->db_policy ? PUBLISH_DO_POLICY : 0u) |
	       (db_keys > s->db_keys ? PUBLISH_DO_KEYS : 0u);
}
