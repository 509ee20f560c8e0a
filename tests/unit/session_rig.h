/* session_rig.h - plays spawner and otari-init to a local backend, byte by byte
 *
 * The peer's end of the control socket and of both output pipes are in the test's hands: what a
 * session may say, and everything it may not.
 */
#ifndef OTARI_TESTS_UNIT_SESSION_RIG_H
#define OTARI_TESTS_UNIT_SESSION_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "ipc/frames.h"
#include "ipc/lease.h"
#include "worker/code/session.h"

struct session_rig {
	struct event_base *base;
	struct code_backend *backend;
	int spawner;       /* our end */
	int ctl, out, err; /* init's ends; -1: none */
	uint64_t lease_id;
};

void session_rig_init(struct session_rig *r);
void session_rig_done(struct session_rig *r); /* sessions and opens closed before */
void session_rig_turn(struct session_rig *r); /* until nothing more is ready */
/* Reads the request and answers with fresh descriptors. */
void session_rig_lend(struct session_rig *r);
void session_rig_answer(struct session_rig *r, enum lease_status status, const char *text);
/* Another spawner takes the place; what was is still spawner's other end, returned. */
int session_rig_replace(struct session_rig *r);
bool session_rig_released(struct session_rig *r); /* a RELEASE was sent */
void session_rig_send(struct session_rig *r, uint8_t type, const void *payload, size_t n);
void session_rig_result(struct session_rig *r, uint32_t flags, int32_t code);
void session_rig_file(struct session_rig *r, const char *path, const char *bytes);
void session_rig_end(struct session_rig *r, uint32_t sent, uint32_t omitted);
void session_rig_drop(struct session_rig *r); /* init and its pipes are gone */

#endif
