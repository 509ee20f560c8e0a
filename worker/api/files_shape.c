#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "worker/api/files.h"
#include "worker/http/mime.h"

#define MIME_MAX_BYTES 255u

bool
files_id_ok(struct str id)
{
	if (id.len == 0 || id.len > FILES_ID_MAX_BYTES)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];
		bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			  (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' || c == ':';
		if (!ok)
			return false;
	}
	return true;
}

static void
write_openai(struct jw *w, const struct store_file *f)
{
	jw_kstr(w, "id", f->id);
	jw_kcstr(w, "object", "file");
	jw_ki64(w, "bytes", f->bytes);
	jw_ki64(w, "created_at", f->created_at_ms / 1000);
	if (f->expires_at_ms > 0)
		jw_ki64(w, "expires_at", f->expires_at_ms / 1000);
	else
		jw_knull(w, "expires_at");
	jw_kstr(w, "filename", f->filename);
	jw_kstr(w, "purpose", f->purpose);
	jw_kcstr(w, "status", "processed"); /* SDK helpers poll until they read it */
}

static void
write_anthropic(struct jw *w, const struct store_file *f)
{
	char text[CLOCK_RFC3339_SIZE];
	jw_kstr(w, "id", f->id);
	jw_kcstr(w, "type", "file");
	jw_kstr(w, "filename", f->filename);
	jw_kstr(w, "mime_type", f->mime_type);
	jw_ki64(w, "size_bytes", f->bytes);
	clock_rfc3339(f->created_at_ms / 1000, text);
	jw_kcstr(w, "created_at", text);
	jw_kbool(w, "downloadable", true);
	if (f->expires_at_ms > 0) {
		clock_rfc3339(f->expires_at_ms / 1000, text);
		jw_kcstr(w, "expires_at", text);
	} else {
		jw_knull(w, "expires_at");
	}
}

void
files_write(struct jw *w, enum wire wire, const struct store_file *f)
{
	jw_object(w);
	if (wire == WIRE_MESSAGES)
		write_anthropic(w, f);
	else
		write_openai(w, f);
	jw_end_object(w);
}

void
files_write_deleted(struct jw *w, enum wire wire, struct str id)
{
	jw_object(w);
	jw_kstr(w, "id", id);
	if (wire == WIRE_MESSAGES) {
		jw_kcstr(w, "type", "file_deleted");
	} else {
		jw_kcstr(w, "object", "file");
		jw_kbool(w, "deleted", true);
	}
	jw_end_object(w);
}

void
files_write_page(struct jw *w, enum wire wire, const struct files_page *p)
{
	jw_object(w);
	if (wire != WIRE_MESSAGES)
		jw_kcstr(w, "object", "list");
	jw_key(w, "data");
	jw_array(w);
	for (size_t i = 0; i < p->count; i++)
		files_write(w, wire, &p->files[i]);
	jw_end_array(w);
	jw_kbool(w, "has_more", p->has_more);
	if (p->count == 0) {
		jw_knull(w, "first_id");
		jw_knull(w, "last_id");
	} else {
		jw_kstr(w, "first_id", p->files[0].id);
		jw_kstr(w, "last_id", p->files[p->count - 1].id);
	}
	if (wire == WIRE_MESSAGES) {
		if (p->next_page.ptr == NULL)
			jw_knull(w, "next_page");
		else
			jw_kstr(w, "next_page", p->next_page);
	}
	jw_end_object(w);
}

/* --- uploads ----------------------------------------------------------------------------- */

static bool
is_windows_path(struct str s)
{
	if (str_starts(s, STR("\\\\")))
		return true;
	return s.len > 2 && s.ptr[1] == ':' && s.ptr[2] == '\\' &&
	       ((s.ptr[0] >= 'A' && s.ptr[0] <= 'Z') || (s.ptr[0] >= 'a' && s.ptr[0] <= 'z'));
}

static bool
has_control(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < 0x20 || c == 0x7f)
			return true;
	}
	return false;
}

bool
files_name_clean(struct arena *a, struct str name, struct str *ret)
{
	*ret = STR("");
	if (has_control(name) || name.len > LIMIT_FILENAME_BYTES)
		return false;
	size_t cut = is_windows_path(name) ? str_rchr(name, '\\') : str_rchr(name, '/');
	if (cut != SIZE_MAX)
		name = str_from(name, cut + 1);
	if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
		return true;
	if (utf8_valid(name)) {
		*ret = arena_str(a, name);
		return true;
	}
	struct buf mended = BUF_INIT(LIMIT_FILENAME_BYTES * 4);
	utf8_mend(name, &mended);
	*ret = arena_str(a, utf8_cut(buf_str(&mended), LIMIT_FILENAME_BYTES));
	buf_done(&mended);
	return true;
}

bool
files_mime_ok(struct str s)
{
	if (s.len == 0 || s.len > MIME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e)
			return false;
	}
	size_t slash = str_chr(s, '/');
	return slash != SIZE_MAX && slash > 0 && slash + 1 < s.len;
}

struct str
files_mime(struct arena *a, struct str declared, struct str filename)
{
	declared = str_trim(declared);
	size_t semicolon = str_chr(declared, ';');
	struct str bare =
	    str_trim(semicolon == SIZE_MAX ? declared : str_sub(declared, 0, semicolon));
	if (!files_mime_ok(declared) || str_eq_nocase(bare, STR("application/octet-stream")))
		return mime_of_name(filename);
	return arena_str(a, declared);
}
