#include "worker/turn/attach_plan.h"

#include "base/json.h"
#include "base/json_write.h"

#define ID_SHOWN_BYTES 80u
#define ID_MAX_BYTES   (6u * 256u) /* of a provider's, as JSON */

static struct attachment *
find(const struct attach_plan *plan, struct str file_id)
{
	for (struct attachment *t = plan->first; t != NULL; t = t->next)
		if (str_eq(t->file_id, file_id))
			return t;
	return NULL;
}

/* NULL: one more than a request may name is there already; looking among thousands would take
 * quadratic time. */
static struct attachment *
reference(struct arena *a, struct attach_plan *plan, struct str file_id)
{
	struct attachment **end = &plan->first;
	for (; *end != NULL; end = &(*end)->next)
		if (str_eq((*end)->file_id, file_id))
			return *end;
	struct attachment *t =
	    plan->count <= ATTACH_FILES_MAX ? ARENA_NEW(a, struct attachment) : NULL;
	if (t == NULL)
		return NULL;
	/* a pool thread reads it, when the client and the body it sent may be gone */
	t->file_id = arena_str(a, file_id);
	*end = t;
	plan->count++;
	return t;
}

static bool
names_a_file(const struct part *p)
{
	if (p->kind == PART_UPLOAD)
		return p->media.file_id.len > 0;
	return (p->kind == PART_IMAGE || p->kind == PART_DOCUMENT || p->kind == PART_AUDIO) &&
	       p->media.source == MEDIA_FILE_ID && p->media.file_id.len > 0;
}

static void
collect_parts(struct arena *a, struct attach_plan *plan, const struct part *p)
{
	for (; p != NULL; p = p->next) {
		if (p->kind == PART_RESULT)
			collect_parts(a, plan, p->content);
		if (!names_a_file(p))
			continue;
		struct attachment *t = reference(a, plan, p->media.file_id);
		if (t == NULL)
			return;
		bool is_upload = p->kind == PART_UPLOAD;
		t->for_sandbox = plan->where == ATTACH_SANDBOX;
		if (is_upload && plan->where == ATTACH_SANDBOX)
			t->is_input = true;
		else if (is_upload && plan->where == ATTACH_PROVIDER)
			t->for_provider = true;
		else
			t->for_model = true;
	}
}

/* Of declarations that the provider runs. */
static void
collect_tools(const struct conversation *conv, struct attach_plan *plan)
{
	for (const struct tool *tool = conv->tools; tool != NULL; tool = tool->next)
		for (size_t i = 0; tool->kind == TOOL_CODE && i < tool->container_file_count; i++) {
			struct attachment *t =
			    reference(conv->arena, plan, tool->container_files[i]);
			if (t != NULL)
				t->for_provider = true;
		}
}

enum err_code
attach_collect(struct conversation *conv, enum attach_where where, const struct tool *claimed,
    struct attach_plan *ret, struct err *reterr)
{
	struct attach_plan plan = {.where = where};
	bool to_sandbox = where == ATTACH_SANDBOX;
	for (const struct message *m = conv->messages; m != NULL; m = m->next)
		collect_parts(conv->arena, &plan, m->parts);
	for (size_t i = 0; claimed != NULL && to_sandbox && i < claimed->container_file_count;
	     i++) {
		struct attachment *t = reference(conv->arena, &plan, claimed->container_files[i]);
		if (t != NULL)
			t->for_sandbox = t->is_input = true;
	}
	if (where == ATTACH_PROVIDER)
		collect_tools(conv, &plan);
	if (plan.count > ATTACH_FILES_MAX)
		return err_set(reterr, ERR_INPUT, "the request refers to more than %u files",
		    ATTACH_FILES_MAX);
	*ret = plan;
	return ERR_OK;
}

enum err_code
attach_check(const struct attach_plan *plan, struct err *reterr)
{
	for (const struct attachment *t = plan->first; t != NULL; t = t->next)
		if (t->is_input && !t->is_found)
			return err_set(reterr, ERR_INPUT,
			    "File %.*s was given for the code and is not there",
			    (int)(t->file_id.len < ID_SHOWN_BYTES ? t->file_id.len
								  : ID_SHOWN_BYTES),
			    t->file_id.ptr);
	return ERR_OK;
}

struct str
attach_last_segment(struct str filename)
{
	for (size_t i = filename.len; i > 0; i--)
		if (filename.ptr[i - 1] == '/' || filename.ptr[i - 1] == '\\') {
			filename = str_from(filename, i);
			break;
		}
	if (filename.len == 0 || str_eq(filename, STR(".")) || str_eq(filename, STR("..")) ||
	    filename.len > 240 || str_chr(filename, '\0') != SIZE_MAX)
		return STR("file");
	return filename;
}

static bool
name_is_taken(const struct attach_plan *plan, const struct attachment *until, struct str name)
{
	for (const struct attachment *t = plan->first; t != until; t = t->next)
		if (t->is_found && (t->for_sandbox || t->for_provider) && str_eq(t->name, name))
			return true;
	return false;
}

void
attach_name(struct arena *a, struct attach_plan *plan)
{
	for (struct attachment *t = plan->first; t != NULL; t = t->next) {
		if (!t->is_found)
			continue;
		struct str base = attach_last_segment(t->filename);
		size_t dot = str_rchr(base, '.');
		if (dot == SIZE_MAX || dot == 0)
			dot = base.len;
		t->name = base;
		for (unsigned n = 2; name_is_taken(plan, t, t->name) && n <= ATTACH_FILES_MAX + 1;
		     n++)
			t->name = arena_printf(
			    a, "%.*s-%u%.*s", (int)dot, base.ptr, n, STR_FMT(str_from(base, dot)));
	}
}

bool
attach_is_text(struct str mime)
{
	static const struct str names[] = {
	    STR_INIT("application/json"),
	    STR_INIT("application/xml"),
	    STR_INIT("application/x-ndjson"),
	    STR_INIT("application/yaml"),
	    STR_INIT("application/javascript"),
	    STR_INIT("application/sql"),
	};
	mime = str_trim(str_sub(mime, 0, str_chr(mime, ';')));
	if (str_starts_nocase(mime, STR("text/")))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(mime, names[i]))
			return true;
	return false;
}

struct str
attach_text(struct arena *a, struct str name, struct str content)
{
	return arena_printf(
	    a, "[Attached file: %.*s]\n%.*s\n[End of file]", STR_FMT(name), STR_FMT(content));
}

struct rewriting {
	struct arena *arena;
	const struct attach_plan *plan;
};

static bool
rewrite_part(void *arg, struct part *p)
{
	const struct rewriting *r = arg;
	struct arena *a = r->arena;
	const struct attach_plan *plan = r->plan;
	const struct attachment *t = names_a_file(p) ? find(plan, p->media.file_id) : NULL;
	if (t == NULL || !t->is_found)
		return false;
	if (p->kind == PART_UPLOAD && plan->where == ATTACH_PROVIDER) {
		p->media.file_id = t->lent_id;
		p->raw = STR_NULL;
	} else if (p->kind == PART_UPLOAD && plan->where == ATTACH_SANDBOX) {
		part_become_text(
		    p, arena_printf(a,
			   "[The file %.*s is available in the working directory of the code "
			   "execution tool.]",
			   STR_FMT(t->name)));
	} else if (t->is_text) {
		part_become_text(p, attach_text(a, t->name, t->content));
	} else {
		/* OpenAI's clients also send pictures as files; others want to be told. */
		bool image = str_starts_nocase(t->mime_type, STR("image/"));
		if (p->kind == PART_UPLOAD || (p->kind == PART_DOCUMENT && image))
			p->kind = image ? PART_IMAGE : PART_DOCUMENT;
		p->raw = STR_NULL;
		p->media.source = MEDIA_BASE64;
		p->media.data = t->content;
		p->media.media_type = t->mime_type;
		p->media.filename = t->name;
		p->media.file_id = STR_NULL;
	}
	return true;
}

/* The declaration as it was sent, but for the names of our files. */
static struct str
renamed_files(struct arena *a, const struct attach_plan *plan, struct jval v, unsigned depth)
{
	static const char *const path[] = {"container", "file_ids"};
	struct jiter it = {0};
	struct buf b = BUF_INIT(jv_raw(v).len + ATTACH_FILES_MAX * ID_MAX_BYTES);
	struct jw w;
	jw_init(&w, &b);
	if (depth == ARRAY_LEN(path)) {
		jw_array(&w);
		while (jv_next(v, &it)) {
			const struct attachment *t = find(plan, jv_str(a, it.value));
			if (t != NULL && t->lent_id.len > 0)
				jw_str(&w, t->lent_id);
			else
				jw_raw(&w, jv_raw(it.value));
		}
		jw_end_array(&w);
	} else {
		jw_object(&w);
		while (jv_next(v, &it)) {
			enum jtype wanted = depth == 0 ? JT_OBJECT : JT_ARRAY;
			bool is_on_path = jv_str_is(it.key, path[depth]) && jv_is(it.value, wanted);
			jw_key_str(&w, jv_str(a, it.key));
			jw_raw(&w, is_on_path ? renamed_files(a, plan, it.value, depth + 1)
					      : jv_raw(it.value));
		}
		jw_end_object(&w);
	}
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
rewrite_tools(struct conversation *conv, const struct attach_plan *plan)
{
	struct jval root;
	for (struct tool *t = conv->tools; t != NULL; t = t->next)
		if (t->kind == TOOL_CODE && t->container_file_count > 0 && t->raw.ptr != NULL &&
		    jdoc_parse(conv->arena, t->raw, &root, NULL) == ERR_OK)
			t->raw = renamed_files(conv->arena, plan, root, 0);
}

void
attach_rewrite(struct conversation *conv, const struct attach_plan *plan)
{
	if (plan->count == 0)
		return;
	if (plan->where == ATTACH_PROVIDER)
		rewrite_tools(conv, plan);
	struct rewriting r = {conv->arena, plan};
	conversation_rewrite(conv, rewrite_part, &r);
}
