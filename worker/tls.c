#include "worker/tls.h"

#include <limits.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "ipc/secrets.h"

static enum err_code
tls_error(struct err *reterr, const char *what)
{
	char text[160] = "";
	ERR_error_string_n(ERR_get_error(), text, sizeof(text));
	ERR_clear_error();
	return err_set(reterr, ERR_INPUT, "%s: %s", what, text);
}

/* The first certificate is ours, the others lead to the root. */
static enum err_code
use_chain(SSL_CTX *ctx, struct str pem, struct err *reterr)
{
	BIO *in = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	X509 *cert = in != NULL ? PEM_read_bio_X509_AUX(in, NULL, NULL, NULL) : NULL;
	bool ok = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;
	X509_free(cert);
	while (ok && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
		ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
		if (!ok)
			X509_free(cert);
	}
	BIO_free(in);
	if (!ok)
		return tls_error(reterr, "tls_cert");
	ERR_clear_error(); /* the end of the file is no error */
	return ERR_OK;
}

static enum err_code
use_key(SSL_CTX *ctx, struct str pem, struct err *reterr)
{
	BIO *in = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	EVP_PKEY *key = in != NULL ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;
	bool ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1 &&
		  SSL_CTX_check_private_key(ctx) == 1;
	EVP_PKEY_free(key);
	BIO_free(in);
	return ok ? ERR_OK : tls_error(reterr, "tls_key");
}

static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char http11[] = "\x08http/1.1";
	(void)ssl, (void)arg;
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_len, http11, sizeof(http11) - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

enum err_code
tls_load(const struct secrets *s, struct ssl_ctx_st **ret, struct err *reterr)
{
	struct str cert = secrets_get(s, STR("tls_cert")), key = secrets_get(s, STR("tls_key"));
	if (cert.ptr == NULL && key.ptr == NULL) {
		*ret = NULL;
		return ERR_OK;
	}
	if (cert.len == 0 || key.len == 0 || cert.len > INT_MAX || key.len > INT_MAX)
		return err_set(reterr, ERR_INPUT, "tls_cert and tls_key are needed together");
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (ctx == NULL)
		return tls_error(reterr, "TLS");
	enum err_code rc = use_chain(ctx, cert, reterr);
	if (rc == ERR_OK)
		rc = use_key(ctx, key, reterr);
	if (rc != ERR_OK) {
		SSL_CTX_free(ctx);
		return rc;
	}
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	*ret = ctx;
	return ERR_OK;
}

void
tls_free(struct ssl_ctx_st **ctx)
{
	SSL_CTX_free(*ctx);
	*ctx = NULL;
}
