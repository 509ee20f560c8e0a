#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "builder/build.h"
#include "conf/validate.h"

static void
want(struct build *b, enum wanted_use use, uint32_t provider, struct build_file file)
{
	b->wanted[b->wanted_count++] =
	    (struct build_wanted){.use = use, .provider = provider, .file = file};
}

void
wanted_list(struct build *b)
{
	const struct conf *c = b->conf;
	b->wanted = ARENA_NEW_ARRAY(b->arena, struct build_wanted, c->provider_count + 5);
	CHECK(b->wanted != NULL);
	for (uint32_t i = 0; i < c->provider_count; i++)
		if (c->providers[i].api_key_file.ptr != NULL)
			want(b, WANT_PROVIDER_KEY, i,
			    (struct build_file){BUILD_FILE_READ, c->providers[i].api_key_file});
	if (c->master_key_file.ptr != NULL)
		want(b, WANT_MASTER_KEY, 0,
		    (struct build_file){BUILD_FILE_READ, c->master_key_file});
	else if (c->master_key.ptr == NULL)
		want(b, WANT_MASTER_KEY, 0,
		    (struct build_file){BUILD_FILE_MASTER_KEY,
			arena_printf(b->arena, "%.*s/master.key", STR_FMT(c->state_dir))});
	if (c->sandbox_token_file.ptr != NULL)
		want(b, WANT_SANDBOX_TOKEN, 0,
		    (struct build_file){BUILD_FILE_READ, c->sandbox_token_file});
	if (c->sandbox_serve_token_file.ptr != NULL)
		want(b, WANT_SERVE_TOKEN, 0,
		    (struct build_file){BUILD_FILE_READ, c->sandbox_serve_token_file});
	if (c->tls_cert.ptr == NULL)
		return;
	want(b, WANT_TLS_CERT, 0, (struct build_file){BUILD_FILE_READ, c->tls_cert});
	want(b, WANT_TLS_KEY, 0, (struct build_file){BUILD_FILE_READ, c->tls_key});
}

/* What to call the setting that named the file, and where it stands. */
static const char *
setting_of(
    const struct build *b, const struct build_wanted *w, char *dst, size_t n, uint32_t *ret_line)
{
	const struct conf *c = b->conf;
	const char *key = w->use == WANT_TLS_CERT          ? "tls_cert"
			  : w->use == WANT_TLS_KEY         ? "tls_key"
			  : w->use == WANT_SANDBOX_TOKEN   ? "sandbox_token_file"
			  : w->use == WANT_SERVE_TOKEN     ? "sandbox_serve_token_file"
			  : c->master_key_file.ptr != NULL ? "master_key_file"
							   : "state_dir";
	if (w->use == WANT_PROVIDER_KEY) {
		*ret_line = c->providers[w->provider].line;
		(void)snprintf(
		    dst, n, "providers.%.*s.api_key_file", STR_FMT(c->providers[w->provider].name));
		return dst;
	}
	const struct conf_origin *o = conf_origin_of(c, key);
	*ret_line = o->from == FROM_ENVIRON ? REPORT_ENVIRON : o->line;
	return key;
}

void
build_give_file(struct build *b, uint32_t i, int fd, int sys_errno)
{
	CHECK(i < b->wanted_count && !b->wanted[i].is_given);
	struct build_wanted *w = &b->wanted[i];
	char name[128], *bytes;
	uint32_t line;
	size_t len;
	struct err e = {0};
	const char *what = setting_of(b, w, name, sizeof(name), &line);
	w->is_given = true;
	if (fd < 0) {
		conf_error(&b->report, line, "%s: %.*s: %s", what, STR_FMT(w->file.path),
		    strerror(sys_errno));
		return;
	}
	enum err_code rc = fd_read_all(fd, BUILD_SECRET_MAX, &bytes, &len, &e);
	fd_close(&fd);
	if (rc != ERR_OK) {
		conf_error(&b->report, line, "%s: %.*s: %s", what, STR_FMT(w->file.path), e.msg);
		return;
	}
	w->text = arena_str(b->arena, str_n(bytes, len));
	mem_wipe(bytes, len);
	mem_free(bytes);
}

/* A key is the first line of its file. */
static struct str
first_line(struct str text)
{
	return str_trim(str_sub(text, 0, str_chr(text, '\n')));
}

static void
use_key(struct build *b, const struct build_wanted *w, struct str *dst)
{
	char name[128];
	uint32_t line;
	struct err e;
	struct str key = first_line(w->text);
	const char *what = setting_of(b, w, name, sizeof(name), &line);
	if (key.len == 0)
		conf_error(&b->report, line, "%s: %.*s: the first line is empty", what,
		    STR_FMT(w->file.path));
	else if (validate_header(STR("authorization"), key, &e) != ERR_OK)
		conf_error(&b->report, line,
		    "%s: %.*s: holds a character that cannot be sent in a header", what,
		    STR_FMT(w->file.path));
	else
		*dst = key;
}

static void
use_pem(struct build *b, const struct build_wanted *w, struct str *dst)
{
	char name[128];
	uint32_t line;
	const char *what = setting_of(b, w, name, sizeof(name), &line);
	if (str_find(w->text, STR("-----BEGIN ")) == SIZE_MAX)
		conf_error(&b->report, line, "%s: %.*s: not PEM", what, STR_FMT(w->file.path));
	else
		*dst = w->text;
}

enum err_code
wanted_use_all(struct build *b, struct err *reterr)
{
	const struct conf *c = b->conf;
	b->provider_keys = ARENA_NEW_ARRAY(b->arena, struct str, c->provider_count);
	CHECK(b->provider_keys != NULL);
	for (uint32_t i = 0; i < c->provider_count; i++)
		b->provider_keys[i] = c->providers[i].api_key;
	b->master_key = c->master_key;
	b->sandbox_token = c->sandbox_token;
	b->sandbox_serve_token = c->sandbox_serve_token;
	for (uint32_t i = 0; i < b->wanted_count; i++) {
		const struct build_wanted *w = &b->wanted[i];
		CHECK(w->is_given);
		if (w->text.ptr == NULL)
			continue; /* already reported */
		switch (w->use) {
		case WANT_PROVIDER_KEY:
			use_key(b, w, &b->provider_keys[w->provider]);
			break;
		case WANT_MASTER_KEY:
			use_key(b, w, &b->master_key);
			break;
		case WANT_SANDBOX_TOKEN:
			use_key(b, w, &b->sandbox_token);
			break;
		case WANT_SERVE_TOKEN:
			use_key(b, w, &b->sandbox_serve_token);
			break;
		case WANT_TLS_CERT:
			use_pem(b, w, &b->tls_cert);
			break;
		case WANT_TLS_KEY:
			use_pem(b, w, &b->tls_key);
			break;
		}
	}
	if (b->report.error_count > 0)
		return err_set(reterr, ERR_INPUT, "%s", b->report.first.msg);
	return ERR_OK;
}
