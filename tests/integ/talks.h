/* talks.h - requests that declare code, in every dialect, and what the provider saw of them */
#ifndef OTARI_TESTS_INTEG_TALKS_H
#define OTARI_TESTS_INTEG_TALKS_H

#include "tests/integ/harness.h"

#define MESSAGES "/v1/messages"
#define ANSWERS  "/v1/responses"
#define CHAT     "/v1/chat/completions"

#define DATED                                                                                      \
	"{\"type\":\"code_execution_20250522\",\"name\":\"code_execution\"}" /* Python alone */
#define INTERP "{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}"
#define OURS   "{\"type\":\"otari_code_execution\"}"
#define BARE   "{\"type\":\"code_execution\"}"

#define SAYS(text) "{\"role\":\"user\",\"content\":\"" text "\"}"

/* A whole request. talk: messages or items, comma-separated; more: further members, each with a
 * comma in front. Free with mem_free. */
char *talk_body(const char *path, const char *model, const char *tools, bool stream,
    const char *talk, const char *more);
void talk_ask(struct server *s, const char *path, const char *model, const char *tools, bool stream,
    const char *talk, const char *more, struct reply *r);
/* The same, whole; the answer as JSON, owned by the caller. It must be a 200. */
json_t *talk_json(struct server *s, const char *path, const char *model, const char *tools,
    const char *talk, const char *more);

/* The body of the provider's last request, or of the one `back` before it. Free with mem_free. */
char *provider_saw(struct server *s, int back);
json_int_t provider_count(struct server *s); /* requests since the start */
/* What the provider answers next, in turn: a JSON document or a stream's bytes. */
void provider_answers(struct server *s, const char *text, bool is_stream);

size_t occurrences(const char *in, const char *what);
/* Types of the members of a list, "a b c". */
struct types {
	char s[512];
};
struct types types_of(const json_t *list);
/* The first member of that type, or NULL. */
const json_t *of_type(const json_t *list, const char *type);

#define HAS(r, text)   cr_expect(strstr((r).body.ptr, text) != NULL, "%s\n%s", text, (r).body.ptr)
#define LACKS(r, text) cr_expect(strstr((r).body.ptr, text) == NULL, "%s\n%s", text, (r).body.ptr)

#endif
