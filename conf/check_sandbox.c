/* The keys of code execution: where it runs, and to whom this host lends its sandbox. */
#include <string.h>

#include "conf/load.h"
#include "conf/validate.h"

static bool
is_local(const struct conf *c)
{
	return str_eq(c->sandbox_url, STR("local:"));
}

/* Of an address or of a URL; a name counts as somewhere else. */
static bool
is_loopback(struct str host)
{
	return str_starts(host, STR("127.")) || str_eq(host, STR("::1")) ||
	       str_starts(host, STR("[::1]")) || str_eq(host, STR("localhost")) ||
	       str_starts(host, STR("localhost:")) || str_starts(host, STR("localhost/"));
}

static void
check_url(struct loader *ld)
{
	struct conf *c = ld->c;
	struct err e;
	uint32_t line = line_of(ld, "sandbox_url");
	bool has_token = c->sandbox_token.ptr != NULL || c->sandbox_token_file.ptr != NULL;
	if (str_eq(c->sandbox_url, STR("local")))
		c->sandbox_url = STR("local:");
	if (c->sandbox_url.ptr == NULL || is_local(c)) {
		if (has_token)
			conf_warning(ld->r,
			    line_of(ld, c->sandbox_token.ptr != NULL ? "sandbox_token"
								     : "sandbox_token_file"),
			    "sandbox_token: only a sandbox on another host has one; ignored");
		return;
	}
	if (!str_starts(c->sandbox_url, STR("http://")) &&
	    !str_starts(c->sandbox_url, STR("https://")))
		conf_error(ld->r, line, "sandbox_url: must be local: or http(s)://…, not '%.*s'",
		    STR_FMT(conf_shown(c->sandbox_url)));
	else if (validate_http_url(c->sandbox_url, &c->sandbox_url, &e) != ERR_OK)
		conf_error(ld->r, line, "sandbox_url: %s", e.msg);
	else if (str_starts(c->sandbox_url, STR("http://")) &&
		 !is_loopback(str_from(c->sandbox_url, 7)))
		conf_warning(ld->r, line,
		    "sandbox_url: code, files%s go over the network unencrypted; https:// "
		    "protects them",
		    has_token ? " and the token" : "");
	check_secret_key(
	    ld, "sandbox_token", c->sandbox_token, "sandbox_token_file", c->sandbox_token_file);
}

static void
check_serve(struct loader *ld)
{
	struct conf *c = ld->c;
	uint32_t line = line_of(ld, "sandbox_serve");
	bool has_token =
	    c->sandbox_serve_token.ptr != NULL || c->sandbox_serve_token_file.ptr != NULL;
	check_secret_key(ld, "sandbox_serve_token", c->sandbox_serve_token,
	    "sandbox_serve_token_file", c->sandbox_serve_token_file);
	if (c->sandbox_serve.ptr == NULL)
		return;
	if (!is_local(c))
		conf_error(ld->r, line,
		    "sandbox_serve: only this host's own sandbox can be lent; it needs "
		    "sandbox_url: \"local:\"");
	if (is_loopback(c->sandbox_serve))
		return;
	if (!has_token)
		conf_error(ld->r, line,
		    "sandbox_serve: without sandbox_serve_token anybody who reaches this address "
		    "could run code here");
	if (c->tls_cert.ptr == NULL)
		conf_warning(ld->r, line,
		    "sandbox_serve: code, files and the token go over the network unencrypted; "
		    "tls_cert protects them");
}

static void
check_preload(struct loader *ld)
{
	struct conf *c = ld->c;
	for (uint32_t i = 0; i < c->sandbox_preload.count; i++) {
		struct str m = c->sandbox_preload.items[i];
		bool ok = m.len <= 100;
		for (size_t j = 0; ok && j < m.len; j++) {
			char ch = m.ptr[j];
			ok = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			     (ch >= '0' && ch <= '9') || ch == '_' || ch == '.';
		}
		if (!ok)
			conf_error(ld->r, line_of(ld, "sandbox_preload"),
			    "sandbox_preload: '%.*s' is no module name", STR_FMT(conf_shown(m)));
	}
}

void
check_sandbox(struct loader *ld)
{
	struct conf *c = ld->c;
	struct err e;
	check_url(ld);
	check_serve(ld);
	if (c->sandbox_file_bytes > c->sandbox_workspace_bytes)
		conf_error(ld->r, line_of(ld, "sandbox_file_bytes"),
		    "sandbox_file_bytes: more than sandbox_workspace_bytes");
	if (c->sandbox_python.ptr == NULL || c->sandbox_python.ptr[0] != '/')
		conf_error(ld->r, line_of(ld, "sandbox_python"),
		    "sandbox_python: must be an absolute path");
	if (c->sandbox_session_image.ptr != NULL && str_eq(c->sandbox_url, STR("local:")))
		conf_warning(ld->r, line_of(ld, "sandbox_session_image"),
		    "sandbox_session_image: the local sandbox has no images; ignored");
	if (c->sandbox_purpose_hint.ptr != NULL &&
	    validate_hint(c->sandbox_purpose_hint, &c->sandbox_purpose_hint, &e) != ERR_OK)
		conf_error(
		    ld->r, line_of(ld, "sandbox_purpose_hint"), "sandbox_purpose_hint: %s", e.msg);
	check_preload(ld);
}
