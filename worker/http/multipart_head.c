#include "worker/http/multipart_head.h"

#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "worker/http/uri.h"

#define HEADERS_MAX 32u
/* A byte that is not UTF-8 becomes the three of U+FFFD. */
#define MENDED_MAX(n) ((n)*3)

static bool
is_token_char(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static void
skip_space(struct str *s)
{
	while (s->len > 0 && (s->ptr[0] == ' ' || s->ptr[0] == '\t'))
		*s = str_from(*s, 1);
}

static struct str
take_token(struct str *s)
{
	size_t n = 0;
	while (n < s->len && is_token_char(s->ptr[n]))
		n++;
	struct str token = str_sub(*s, 0, n);
	*s = str_from(*s, n);
	return token;
}

/* The inside of a quoted string, escapes as they are. */
static bool
take_quoted(struct str *s, struct str *ret)
{
	for (size_t i = 1; i < s->len; i++) {
		if (s->ptr[i] == '\\' && i + 1 < s->len &&
		    (s->ptr[i + 1] == '"' || s->ptr[i + 1] == '\\')) {
			i++;
		} else if (s->ptr[i] == '"') {
			*ret = str_sub(*s, 1, i - 1);
			*s = str_from(*s, i + 1);
			return true;
		}
	}
	return false;
}

struct param {
	struct str name, value;
	bool is_quoted;
};

/* Cuts the next "; name=value" off. 1: there is one, 0: the end, -1: malformed. */
static int
take_param(struct str *rest, struct param *ret)
{
	skip_space(rest);
	if (rest->len == 0)
		return 0;
	if (rest->ptr[0] != ';')
		return -1;
	*rest = str_from(*rest, 1);
	skip_space(rest);
	if (rest->len == 0)
		return 0;
	ret->name = take_token(rest);
	if (ret->name.len == 0 || !str_starts(*rest, STR("=")))
		return -1;
	*rest = str_from(*rest, 1);
	ret->is_quoted = str_starts(*rest, STR("\""));
	if (ret->is_quoted)
		return take_quoted(rest, &ret->value) ? 1 : -1;
	/* Not only a token: boundaries and names are often sent bare that ought to be quoted. */
	size_t n = 0;
	while (n < rest->len && strchr("; \t\"", rest->ptr[n]) == NULL)
		n++;
	ret->value = str_sub(*rest, 0, n);
	*rest = str_from(*rest, n);
	return n > 0 ? 1 : -1;
}

static bool
is_boundary(struct str s)
{
	if (s.len == 0 || s.len > MULTIPART_BOUNDARY_MAX || s.ptr[s.len - 1] == ' ')
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || strchr("'()+_,-./:=? ", c) == NULL))
			return false;
	}
	return true;
}

enum err_code
multipart_read_boundary(struct str content_type, struct buf *dst, struct err *reterr)
{
	struct str rest = str_trim(content_type), type = str_sub(rest, 0, str_chr(rest, ';'));
	struct str boundary = STR_NULL;
	struct param p;
	int rc;
	if (!str_eq_nocase(str_trim(type), STR("multipart/form-data")))
		return err_set(reterr, ERR_UNSUPPORTED, "content type is not multipart/form-data");
	rest = str_from(rest, type.len);
	while ((rc = take_param(&rest, &p)) > 0) {
		if (!str_eq_nocase(p.name, STR("boundary")))
			continue;
		if (boundary.ptr != NULL)
			return err_set(reterr, ERR_INPUT, "more than one multipart boundary");
		boundary = p.value;
	}
	if (rc < 0)
		return err_set(reterr, ERR_INPUT, "malformed content type");
	if (!is_boundary(boundary))
		return err_set(reterr, ERR_INPUT, "missing or invalid multipart boundary");
	buf_add(dst, boundary);
	return ERR_OK;
}

/* A quoted value with its escapes undone: \" and \\ as in HTTP, %22 as browsers write a quote. A
 * backslash before anything else is one (old Windows paths). */
static void
unescape(const struct param *p, struct buf *dst)
{
	for (size_t i = 0; i < p->value.len; i++) {
		struct str at = str_from(p->value, i);
		if (p->is_quoted && at.len > 1 && at.ptr[0] == '\\' &&
		    (at.ptr[1] == '"' || at.ptr[1] == '\\')) {
			buf_addc(dst, at.ptr[1]);
			i++;
		} else if (p->is_quoted && str_starts(at, STR("%22"))) {
			buf_addc(dst, '"');
			i += 2;
		} else {
			buf_addc(dst, at.ptr[0]);
		}
	}
}

/* RFC 8187: UTF-8'language'percent-encoded */
static bool
decode_extended(struct str value, struct buf *dst)
{
	struct str charset, language, decoded;
	if (!str_split(&value, '\'', &charset) || !str_split(&value, '\'', &language) ||
	    value.ptr == NULL || !str_eq_nocase(charset, STR("utf-8")))
		return false;
	struct arena *a = arena_new(65536);
	bool ok = uri_decode(a, value, &decoded);
	if (ok)
		buf_add(dst, decoded);
	arena_free(&a);
	return ok;
}

static bool
has_control(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
			return true;
	return false;
}

/* Mends raw into store and gives the span there. */
static struct str
keep(struct buf *store, struct str raw)
{
	size_t from = store->len;
	utf8_mend(raw, store);
	return str_from(buf_str(store), from);
}

static struct str
last_component(struct str path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.ptr[i - 1] == '/' || path.ptr[i - 1] == '\\')
			return str_from(path, i);
	return path;
}

struct disposition { /* raw parameters; ptr NULL when absent */
	struct param name, filename, extended;
};

static enum err_code
split_disposition(struct str value, struct disposition *d, struct err *reterr)
{
	struct param p;
	int rc;
	struct str type = take_token(&value);
	if (!str_eq_nocase(type, STR("form-data")))
		return err_set(reterr, ERR_INPUT, "part is not form-data");
	while ((rc = take_param(&value, &p)) > 0) {
		struct param *dst = str_eq_nocase(p.name, STR("name"))        ? &d->name
				    : str_eq_nocase(p.name, STR("filename"))  ? &d->filename
				    : str_eq_nocase(p.name, STR("filename*")) ? &d->extended
									      : NULL;
		if (dst == NULL)
			continue;
		if (dst->name.ptr != NULL)
			return err_set(reterr, ERR_INPUT, "repeated parameter in a part's header");
		*dst = p;
	}
	if (rc < 0)
		return err_set(reterr, ERR_INPUT, "malformed Content-Disposition");
	if (d->name.name.ptr == NULL)
		return err_set(reterr, ERR_INPUT, "part without a name");
	return ERR_OK;
}

static enum err_code
read_disposition(
    struct str value, struct buf *store, struct multipart_part *part, struct err *reterr)
{
	struct disposition d = {0};
	enum err_code rc = split_disposition(value, &d, reterr);
	if (rc != ERR_OK)
		return rc;
	struct buf raw = BUF_INIT(65536);
	unescape(&d.name, &raw);
	bool ok = !has_control(buf_str(&raw));
	part->name = keep(store, buf_str(&raw));
	part->has_filename = d.filename.name.ptr != NULL || d.extended.name.ptr != NULL;
	buf_clear(&raw);
	/* The extended form is the exact one; a plain one beside it is for those who cannot read
	 * it. */
	if (d.extended.name.ptr != NULL)
		ok = ok && decode_extended(d.extended.value, &raw);
	else if (d.filename.name.ptr != NULL)
		unescape(&d.filename, &raw);
	ok = ok && !has_control(buf_str(&raw));
	part->filename = keep(store, last_component(buf_str(&raw)));
	buf_done(&raw);
	return ok ? ERR_OK : err_set(reterr, ERR_INPUT, "invalid name or filename of a part");
}

static enum err_code
check_encoding(struct str value, struct err *reterr)
{
	if (str_eq_nocase(value, STR("binary")) || str_eq_nocase(value, STR("8bit")) ||
	    str_eq_nocase(value, STR("7bit")))
		return ERR_OK;
	return err_set(reterr, ERR_INPUT, "encoded parts are not supported");
}

/* Cuts a line off and checks its bytes. */
static enum err_code
take_line(struct str *head, struct str *ret_name, struct str *ret_value, struct err *reterr)
{
	size_t end = str_find(*head, STR("\r\n"));
	struct str line = str_sub(*head, 0, end);
	*head = str_from(*head, end == SIZE_MAX ? head->len : end + 2);
	for (size_t i = 0; i < line.len; i++)
		if (((unsigned char)line.ptr[i] < ' ' && line.ptr[i] != '\t') ||
		    line.ptr[i] == 0x7f)
			return err_set(reterr, ERR_INPUT, "control character in a part's header");
	*ret_name = take_token(&line);
	if (ret_name->len == 0 || !str_starts(line, STR(":")))
		return err_set(reterr, ERR_INPUT, "malformed header of a part");
	*ret_value = str_trim(str_from(line, 1));
	return ERR_OK;
}

enum err_code
multipart_read_head(
    struct str head, struct buf *store, struct multipart_part *ret, struct err *reterr)
{
	bool has_disposition = false;
	unsigned count = 0;
	*ret = (struct multipart_part){STR(""), STR(""), STR_NULL, false};
	if (buf_reserve(store, MENDED_MAX(head.len) + head.len) == NULL)
		return err_set(reterr, ERR_TOOLARGE, "header of a part too large");
	while (head.len > 0) {
		struct str name, value;
		enum err_code rc = take_line(&head, &name, &value, reterr);
		if (rc == ERR_OK && ++count > HEADERS_MAX)
			rc = err_set(reterr, ERR_TOOLARGE, "too many headers in a part");
		if (rc == ERR_OK && str_eq_nocase(name, STR("content-disposition"))) {
			rc = has_disposition
				 ? err_set(reterr, ERR_INPUT, "two Content-Dispositions in a part")
				 : read_disposition(value, store, ret, reterr);
			has_disposition = true;
		} else if (rc == ERR_OK && str_eq_nocase(name, STR("content-type"))) {
			ret->content_type = keep(store, value);
		} else if (rc == ERR_OK && str_eq_nocase(name, STR("content-transfer-encoding"))) {
			rc = check_encoding(value, reterr);
		}
		if (rc != ERR_OK)
			return rc;
	}
	if (!has_disposition)
		return err_set(reterr, ERR_INPUT, "part without Content-Disposition");
	return ERR_OK;
}
