/* admin.c - the master key's side of the tests */
#include "tests/integ/admin.h"

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

json_t *
admin(struct server *s, const char *method, const char *path, const char *body, long status)
{
	const struct ask_opts o = {.key = s->master_key};
	struct reply r;

	server_ask(s, method, path, str_c(body), &o, &r);
	cr_assert_eq(r.status, status, "%s %s %s: %ld %s", method, path, body != NULL ? body : "",
	    r.status, r.body.ptr);
	json_t *root = r.body.len > 0 ? reply_json(&r) : json_object();
	reply_done(&r);
	return root;
}

void
admin_must(struct server *s, const char *method, const char *path, const char *body, long status)
{
	json_decref(admin(s, method, path, body, status));
}

void
admin_refused(struct server *s, const char *method, const char *path, const char *body, long status,
    const char *says, const char *too)
{
	json_t *root = admin(s, method, path, body, status);

	cr_expect(strstr(at(root, "detail"), says) != NULL &&
		      (too == NULL || strstr(at(root, "detail"), too) != NULL),
	    "%s %s: %s", method, path, at(root, "detail"));
	json_decref(root);
}

struct text
admin_kept(json_t *root, const char *member)
{
	struct text t;

	cr_assert(str_copy(t.s, sizeof(t.s), str_c(at(root, member))) && t.s[0] != '\0');
	json_decref(root);
	return t;
}

struct text
policy_path(const char *workspace)
{
	struct text t;

	(void)snprintf(t.s, sizeof(t.s), "/v1/workspaces/%s/code-execution-policy", workspace);
	return t;
}

void
put_policy(struct server *s, const char *body)
{
	admin_must(s, "PUT", policy_path(DEFAULT_WORKSPACE).s, body, 200);
}
