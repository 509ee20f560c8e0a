#include "worker/current.h"

#include "ipc/chan.h"
#include "ipc/payload.h"
#include "ipc/secrets.h"
#include "worker/env.h"

static void
acknowledge(struct worker_env *env, uint64_t generation)
{
	struct buf b = BUF_INIT(64);
	ack_encode(&b, &(struct ack){generation});
	chan_send(env->ctl, MSG_ACK, 0, buf_str(&b), NULL, 0);
	buf_done(&b);
}

static void
swap(struct snapshot **place, struct snapshot *fresh)
{
	snapshot_put(place);
	*place = fresh;
}

static enum err_code
use_keys(struct worker_env *env, struct snapshot *fresh, struct err *reterr)
{
	const struct snap_keys *k = snapshot_keys(fresh);
	if (k->is_delta == 0) {
		swap(&env->keys, fresh);
		swap(&env->keys_delta, NULL);
	} else if (env->keys != NULL && k->base_generation == snapshot_generation(env->keys)) {
		swap(&env->keys_delta, fresh);
	} else {
		snapshot_put(&fresh);
		return err_set(reterr, ERR_PROTO, "a delta to keys that are not here");
	}
	env->slot->keys_generation =
	    snapshot_generation(env->keys_delta != NULL ? env->keys_delta : env->keys);
	return ERR_OK;
}

/* Threads, sockets and the TLS context are made once in a process' life. */
static bool
settings_need_successor(const struct snapshot *was, const struct snapshot *is)
{
	const struct snap_settings *a = &snapshot_policy(was)->settings;
	const struct snap_settings *b = &snapshot_policy(is)->settings;
	return a->sql_threads != b->sql_threads || a->io_threads != b->io_threads ||
	       a->http_head_timeout_ms != b->http_head_timeout_ms ||
	       a->http_idle_timeout_ms != b->http_idle_timeout_ms ||
	       a->http_write_stall_ms != b->http_write_stall_ms ||
	       a->max_connections != b->max_connections || a->files_enabled != b->files_enabled ||
	       !str_eq(snapshot_str(was, a->files_backend), snapshot_str(is, b->files_backend)) ||
	       !str_eq(snapshot_str(was, a->files_local_dir), snapshot_str(is, b->files_local_dir));
}

static bool
secrets_need_successor(const struct secrets *was, const struct secrets *is)
{
	static const char *const names[] = {"database_url", "tls_cert", "tls_key"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!str_eq(secrets_get(was, str_c(names[i])), secrets_get(is, str_c(names[i]))))
			return true;
	return false;
}

static enum err_code
take_secrets(struct worker_env *env, struct msg *m, bool *ret_needs_successor, struct err *reterr)
{
	struct secrets *fresh;
	enum err_code rc = secrets_map(msg_take_fd(m, 0), &fresh, reterr);
	if (rc != ERR_OK)
		return rc;
	*ret_needs_successor = env->secrets != NULL && secrets_need_successor(env->secrets, fresh);
	secrets_free(&env->secrets);
	env->secrets = fresh;
	return ERR_OK;
}

enum err_code
current_take(struct worker_env *env, struct msg *m, bool *ret_needs_successor, struct err *reterr)
{
	struct snapshot_note note;
	struct snapshot *fresh = NULL;
	if (m->type == MSG_SECRETS)
		return take_secrets(env, m, ret_needs_successor, reterr);
	enum err_code rc = snapshot_note_decode(m->payload, &note, reterr);
	if (rc != ERR_OK)
		return rc;
	enum snap_kind kind = m->type == MSG_POLICY ? SNAP_POLICY : SNAP_KEYS;
	rc = snapshot_map(msg_take_fd(m, 0), kind, &fresh, reterr);
	if (rc != ERR_OK)
		return rc;
	if (kind == SNAP_KEYS) {
		rc = use_keys(env, fresh, reterr);
	} else {
		*ret_needs_successor =
		    env->policy != NULL && settings_need_successor(env->policy, fresh);
		swap(&env->policy, fresh);
		env->slot->policy_generation = snapshot_generation(fresh);
	}
	if (rc != ERR_OK)
		return rc;
	board_count(env->slot, BC_POLICY_LOADS, 1);
	board_gauge(env->slot, BG_SNAPSHOTS_ALIVE, snapshot_alive());
	if (note.is_last)
		acknowledge(env, note.generation);
	return ERR_OK;
}

bool
current_is_complete(const struct worker_env *env)
{
	return env->policy != NULL && env->keys != NULL && env->secrets != NULL;
}

void
current_drop(struct worker_env *env)
{
	snapshot_put(&env->policy);
	snapshot_put(&env->keys);
	snapshot_put(&env->keys_delta);
	secrets_free(&env->secrets);
}

const struct snap_key *
worker_key(
    const struct worker_env *env, const unsigned char hash[SHA256_BYTES], struct snapshot **ret_in)
{
	const struct snap_key *k =
	    env->keys_delta != NULL ? snapshot_key(env->keys_delta, hash) : NULL;
	struct snapshot *in = env->keys_delta;
	if (k == NULL && env->keys != NULL) {
		in = env->keys;
		k = snapshot_key(in, hash);
	}
	/* An entry without id takes the key away. */
	if (k == NULL || k->id.off == 0)
		return NULL;
	*ret_in = in;
	return k;
}
