/* validate.h - the rules for single values, shared by otari.conf and the administrative API
 *
 * Process: builder, worker. Pure. Texts of errors name the rule, not the place: the caller adds the
 * field's name or file and line. ERR_INPUT always.
 */
#ifndef OTARI_CONF_VALIDATE_H
#define OTARI_CONF_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/snapshot.h"

#define POLICY_HINT_CHARS     2048u /* characters, not bytes */
#define POLICY_ITERATIONS_MAX 25
#define POLICY_EXEC_S_MAX     60
#define POLICY_TOOL_PYTHON    1u /* bits of snap_workspace.tools_mask */
#define POLICY_TOOL_BASH      2u
#define POLICY_TOOL_EDITOR    4u
#define POLICY_TOOLS_ALL      7u

/* auto, otari, provider in any case, white space around allowed. false: anything else, "" too. */
bool validate_executor(struct str s, enum snap_executor *ret);
const char *executor_name(enum snap_executor e); /* NULL for EXECUTOR_UNSET */
/* At most POLICY_HINT_CHARS characters of UTF-8; a blank one becomes STR_NULL. */
MUST_CHECK enum err_code validate_hint(struct str s, struct str *ret, struct err *reterr);
MUST_CHECK enum err_code validate_range(int64_t v, int64_t min, int64_t max, struct err *reterr);
/* One tool name of a policy → its bit. */
MUST_CHECK enum err_code validate_tool(struct str name, uint32_t *ret_bit, struct err *reterr);
const char *tool_name(uint32_t bit);
/* Instance names: letters, digits, - _ . and at most 64 of them. */
MUST_CHECK enum err_code validate_provider_name(struct str s, struct err *reterr);
/* "provider:model": both parts there, at most 512 bytes, no control characters. */
MUST_CHECK enum err_code validate_selector(
    struct str s, struct str *ret_provider, struct str *ret_model, struct err *reterr);
/* User ids, key and workspace names: 1..max bytes of printable UTF-8. */
MUST_CHECK enum err_code validate_name(struct str s, size_t max, struct err *reterr);
/* 8-4-4-4-12 lower-case hex digits. */
bool validate_uuid(struct str s);
/* 64 hex digits, lower case. */
bool validate_sha256_hex(struct str s);
/* http:// or https://, a host, no user, query or fragment. *ret: without trailing slashes. */
MUST_CHECK enum err_code validate_http_url(struct str s, struct str *ret, struct err *reterr);
/* Numeric address and port: 127.0.0.1:80, [::1]:80; localhost is 127.0.0.1. host has
 * VALIDATE_HOST_SIZE bytes. */
#define VALIDATE_HOST_SIZE 64
MUST_CHECK enum err_code validate_host_port(
    struct str s, char *ret_host, uint16_t *ret_port, struct err *reterr);
MUST_CHECK enum err_code validate_host(struct str s, char *ret_host, struct err *reterr);
/* HTTP field name and value (RFC 9110 §5.5); some names are the transport's own and refused. */
MUST_CHECK enum err_code validate_header(struct str name, struct str value, struct err *reterr);
/* "2026-11-30", "2026-11-30T10:00:00Z", with fraction or +hh:mm → UTC epoch seconds. */
MUST_CHECK enum err_code validate_time(struct str s, int64_t *ret_s, struct err *reterr);

#endif
