/* secrets.h - one sealed memfd of named secrets per audience; the master forwards it and never maps
 * it
 *
 * Names: "provider/<instance>", "database_url", "blob/…", "tls_key". Values are length-counted
 * bytes. The reader keeps the mapping; values point into it. Read-only, not dumped (MADV_DONTDUMP).
 */
#ifndef OTARI_IPC_SECRETS_H
#define OTARI_IPC_SECRETS_H

#include "base/err.h"
#include "base/str.h"

struct secrets;
struct secrets_builder;

struct secrets_builder *secrets_builder_new(void);
void secrets_builder_add(struct secrets_builder *b, struct str name, struct str value);
/* Returns a sealed memfd, owned by the caller; frees the builder and wipes its memory. */
MUST_CHECK enum err_code secrets_builder_end(
    struct secrets_builder **b, int *ret_fd, struct err *reterr);

MUST_CHECK enum err_code secrets_map(
    int fd, struct secrets **ret, struct err *reterr); /* takes fd */
void secrets_free(struct secrets **s);
struct str secrets_get(const struct secrets *s, struct str name); /* STR_NULL: none */

#endif
