/* admin_body.h - members of an administrative JSON body, checked
 *
 * Process: worker, loop thread. Jansson reads these bodies: duplicate members, bad UTF-8 and NUL
 * are refused. Results are in the request's arena. A reader that returns false has answered the
 * request.
 */
#ifndef OTARI_WORKER_API_ADMIN_BODY_H
#define OTARI_WORKER_API_ADMIN_BODY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/request.h"

#define ADMIN_TEXT_MAX_BYTES     255u
#define ADMIN_METADATA_MAX_BYTES (16u * 1024u)

/* The route's {id} as a UUID in lower case; else 404 with this text. */
bool admin_path_uuid(struct request *req, const char *missing, struct str *ret);
/* The body's object, released with the arena; an empty body is {}. NULL: answered with 400. */
json_t *admin_body_parse(struct request *req, struct str body);
/* Absent and null alike give STR_NULL. No control characters, 1 to ADMIN_TEXT_MAX_BYTES. */
bool admin_body_text(struct request *req, json_t *o, const char *key, struct str *ret);
bool admin_body_bool(struct request *req, json_t *o, const char *key, bool *ret);
/* RFC 3339 text or epoch seconds; 0: absent or null. */
bool admin_body_time(struct request *req, json_t *o, const char *key, int64_t *ret_s);
/* Array of texts as compact JSON; STR_NULL: absent or null. */
bool admin_body_text_array(struct request *req, json_t *o, const char *key, struct str *ret_json);
/* Object as compact JSON; STR_NULL: absent or null. */
bool admin_body_object(struct request *req, json_t *o, const char *key, struct str *ret_json);
/* Refuses (400) a member that is there with anything but null and false: not built. */
bool admin_body_unbuilt(struct request *req, json_t *o, const char *key);

#endif
