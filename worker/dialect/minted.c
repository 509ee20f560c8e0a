#include "worker/dialect/minted.h"

#include "worker/dialect/fold.h"
#include "worker/dialect/read.h"

bool
id_is_minted(struct str id)
{
	return str_starts(id, STR("otari_"));
}

static void
call_becomes_text(struct arena *a, struct part *p)
{
	enum code_tool kind;
	struct buf b = BUF_INIT(64u << 20);
	if (code_tool_of(p->name, &kind))
		fold_call(a, &b, kind, p->arguments);
	else
		buf_printf(&b, "[the tool %.*s was used]", STR_FMT(p->name));
	*p = (struct part){.kind = PART_TEXT, .next = p->next, .text = arena_str(a, buf_str(&b))};
	buf_done(&b);
}

/* Its content follows, so that a picture stays one. The id tells that the client has sent what the
 * execution gave. */
static void
result_becomes_text(struct part *p)
{
	struct part **end = &p->content;
	struct str title = p->is_error ? STR("[error of what was executed]")
				       : STR("[result of what was executed]");
	while (*end != NULL)
		end = &(*end)->next;
	*end = p->next;
	*p = (struct part){.kind = PART_TEXT, .next = p->content, .id = p->id, .text = title};
}

void
minted_become_text(struct conversation *c)
{
	for (struct message *m = c->messages; m != NULL; m = m->next) {
		for (struct part *p = m->parts; p != NULL; p = p->next) {
			if ((p->kind != PART_CALL && p->kind != PART_RESULT) ||
			    !id_is_minted(p->id))
				continue;
			if (p->kind == PART_CALL)
				call_becomes_text(c->arena, p);
			else
				result_becomes_text(p);
			m->raw = STR_NULL;
			m->tail = NULL;
		}
	}
}

struct str
minted_container(struct arena *a, struct jval container)
{
	if (id_is_minted(jv_str(a, container)))
		return STR_NULL;
	if (!id_is_minted(jv_str(a, jv_get(container, "id"))))
		return jv_raw(container);
	struct str rest = raw_without(a, container, "id");
	return rest.len > 2 ? rest : STR_NULL;
}
