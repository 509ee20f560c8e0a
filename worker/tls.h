/* tls.h - the server's certificate, from the secrets segment. Process: worker. */
#ifndef OTARI_WORKER_TLS_H
#define OTARI_WORKER_TLS_H

#include "base/err.h"

struct secrets;
struct ssl_ctx_st;

/* NULL in *ret without "tls_cert" and "tls_key": plain HTTP. TLS 1.2 and later, HTTP/1.1 by ALPN.
 */
MUST_CHECK enum err_code tls_load(
    const struct secrets *s, struct ssl_ctx_st **ret, struct err *reterr);
void tls_free(struct ssl_ctx_st **ctx); /* NULL allowed */

#endif
