/* admin.h - what the tests do with the master key; a status that is not the wanted one fails the
 * test
 */
#ifndef OTARI_TESTS_INTEG_ADMIN_H
#define OTARI_TESTS_INTEG_ADMIN_H

#include "tests/integ/harness.h"

#define DEFAULT_WORKSPACE "00000000-0000-4000-8000-000000000001"
#define EVERY_WORKER      8 /* so many requests that every worker answers one */

struct text {
	char s[200];
};

/* The answer's body, {} when it has none; body NULL: no body. Owned by the caller. */
json_t *admin(
    struct server *s, const char *method, const char *path, const char *body, long status);
void admin_must(
    struct server *s, const char *method, const char *path, const char *body, long status);
/* A refusal whose text holds says, and too unless that is NULL. */
void admin_refused(struct server *s, const char *method, const char *path, const char *body,
    long status, const char *says, const char *too);
/* A member of an answer, which is given up. */
struct text admin_kept(json_t *root, const char *member);
struct text policy_path(const char *workspace);
/* Of the default workspace. */
void put_policy(struct server *s, const char *body);

#endif
