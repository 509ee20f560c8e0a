/* A sandbox on another host over TLS, with a certificate that only this deployment trusts. */
#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/integ/program.h"
#include "tests/integ/talks.h"

TestSuite(lent_tls, .timeout = 240);

#define TOKEN "0123456789abcdef-token"

struct pem {
	char cert[64], key[64];
};

static FILE *
fresh(char path[64], const char *name)
{
	(void)snprintf(path, 64, "/tmp/otari-lent-%s-XXXXXX", name);
	int fd = mkstemp(path);
	cr_assert(fd >= 0 && fchmod(fd, 0644) == 0);
	FILE *f = fdopen(fd, "w");
	cr_assert(f != NULL);
	return f;
}

static struct pem
make_pem(void)
{
	struct pem p;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
	    (const unsigned char *)"sandbox", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	cr_assert(san != NULL && X509_add_ext(cert, san, -1) == 1);
	cr_assert(X509_sign(cert, key, EVP_sha256()) > 0);
	FILE *f = fresh(p.cert, "cert");
	cr_assert(PEM_write_X509(f, cert) == 1 && fclose(f) == 0);
	f = fresh(p.key, "key");
	cr_assert(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(f) == 0);
	X509_EXTENSION_free(san);
	X509_free(cert);
	EVP_PKEY_free(key);
	return p;
}

Test(lent_tls, the_certificate_must_be_one_that_is_trusted)
{
	static char host_conf[512], url[64], trust[256];
	struct pem pem = make_pem();
	struct reply r;

	/* Where there is no sandbox this skips the test. */
	struct server *host = start_with_sandbox();
	server_stop(&host);
	(void)snprintf(host_conf, sizeof(host_conf),
	    "sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN
	    "\ntls_cert: %s\ntls_key: %s\n",
	    pem.cert, pem.key);
	/* Its public listener speaks TLS as well, which this harness does not. */
	host = server_start(
	    &(struct server_opts){.sandbox = "local:", .conf = host_conf, .tokenless = true});
	cr_assert(host->serve_port > 0);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", host->serve_port);
	for (int trusted = 0; trusted < 2; trusted++) {
		(void)snprintf(trust, sizeof(trust), "sandbox_token: " TOKEN "\n%s%s\n",
		    trusted ? "sandbox_ca_file: " : "", trusted ? pem.cert : "");
		struct server *s = server_start(
		    &(struct server_opts){.sandbox = url, .conf = trust, .beside = host});
		if (!trusted)
			server_expect(s, "no code session");
		talk_ask(s, MESSAGES, "fake:tool", DATED, false, SAYS("run: print(6 * 7)"), "", &r);
		cr_expect_eq(r.status, trusted ? 200 : 502, "%ld %s", r.status, r.body.ptr);
		if (trusted)
			HAS(r, "\"stdout\":\"42\\n\"");
		reply_done(&r);
		/* The check of the operator uses what the workers use. */
		char out[4096];
		const char *const argv[] = {
		    "otarictl", "-c", s->conf_path, "sandbox", "check", NULL};
		int code = program_run("otarictl", argv, out, sizeof(out));
		cr_expect_eq(code, trusted ? 0 : 1, "%s", out);
		cr_expect(strstr(out, trusted ? "code ran in" : "certificate") != NULL, "%s", out);
		server_stop(&s);
	}
	server_stop(&host);
	(void)unlink(pem.cert);
	(void)unlink(pem.key);
}
