/* limits.h - every fixed maximum of the program, with its unit in the name
 *
 * What an operator may change is a key in conf/; these are the ceilings of our own data structures.
 */
#ifndef OTARI_BASE_LIMITS_H
#define OTARI_BASE_LIMITS_H

#define LIMIT_HTTP_HEAD_BYTES       (32u * 1024u) /* request line and headers */
#define LIMIT_HTTP_HEADERS          100u
#define LIMIT_HTTP_TARGET_BYTES     8192u
#define LIMIT_HTTP_READ_BYTES       (64u * 1024u) /* read watermark of a connection */
#define LIMIT_HTTP_OUT_BYTES        (256u * 1024u) /* unsent reply bytes before a producer is paused */
#define LIMIT_JSON_DEPTH            128u
#define LIMIT_JSON_TOKENS           (2u * 1024u * 1024u)
#define LIMIT_SSE_EVENT_BYTES       (16u * 1024u * 1024u)
#define LIMIT_UPSTREAM_ERROR_BYTES  (64u * 1024u)
#define LIMIT_UPSTREAM_WHOLE_BYTES  (64u * 1024u * 1024u)
#define LIMIT_ARENA_REQUEST_BYTES   (256u * 1024u * 1024u)
#define LIMIT_ADMIN_BODY_BYTES      (256u * 1024u)
#define LIMIT_MULTIPART_HEAD_BYTES  8192u
#define LIMIT_MULTIPART_PARTS       64u
#define LIMIT_MULTIPART_FIELD_BYTES 65536u
#define LIMIT_MSG_BYTES             (64u * 1024u) /* one message between two of our processes */
#define LIMIT_WORKERS               256u
#define LIMIT_LISTENERS             16u
#define LIMIT_CONF_BYTES            (1024u * 1024u)
#define LIMIT_SNAPSHOT_BYTES        (1024u * 1024u * 1024u)
#define LIMIT_SPOOL_RECORD_BYTES    4096u
#define LIMIT_FILENAME_BYTES        512u
#define LIMIT_TOOL_ROUNDS           25u
#define LIMIT_TOOL_RUNS             256u /* of code in one request, all rounds together */

#endif
