#include "worker/turn/carry.h"

#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/utf8.h"
#include "worker/dialect/fold.h"
#include "worker/dialect/minted.h"
#include "worker/turn/mint.h"

/* --- noting --------------------------------------------------------------------------------------
 */
void
carry_add_run(struct carry *c, struct arena *a, const struct code_record *rec, struct str result)
{
	struct carry_run *run = ARENA_NEW(a, struct carry_run);
	if (run == NULL)
		return;
	*run = (struct carry_run){
	    .before = c->last,
	    .id = rec->id,
	    .tool = rec->tool,
	    .what = rec->tool == CODE_TOOL_EDITOR ? rec->input_raw : rec->code,
	    .result = result,
	};
	c->last = run;
}

struct str
carry_add_call(struct carry *c, struct arena *a, enum wire client, struct str id)
{
	bool is_fit = mint_is_unique(id) && !id_is_minted(id);
	struct str shown = is_fit ? id : mint_call_id(a, client);
	if (c != NULL && c->call_id.ptr == NULL)
		c->call_id = arena_str(a, shown);
	return shown;
}

/* --- the kept text: {"runs":[{"id":"…","text":"…"},…]} -------------------------------------------
 */
static struct str
run_json(struct arena *a, const struct carry_run *run)
{
	struct buf text = BUF_INIT(CARRY_CODE_MAX_BYTES * 4 + CARRY_RESULT_MAX_BYTES + 1024u);
	struct buf json = BUF_INIT(STORE_TOOL_RESULT_MAX_BYTES);
	struct jw w;
	fold_heading(&text, run->tool, run->what.len > CARRY_CODE_MAX_BYTES ? STR("") : run->what);
	buf_addc(&text, '\n');
	buf_add(&text, utf8_cut(run->result, CARRY_RESULT_MAX_BYTES));
	if (run->result.len > CARRY_RESULT_MAX_BYTES)
		buf_printf(&text, "\n[cut here; %zu bytes in all]", run->result.len);
	jw_init(&w, &json);
	jw_object(&w);
	jw_kstr(&w, "id", run->id);
	jw_kstr(&w, "text", buf_str(&text));
	jw_end_object(&w);
	struct str s = json.overflowed || text.overflowed ? STR("") : arena_str(a, buf_str(&json));
	buf_done(&text);
	buf_done(&json);
	return s;
}

struct written {
	struct written *next;
	struct str json;
};

struct str
carry_text(const struct carry *c, struct arena *a)
{
	struct written *first = NULL;
	size_t bytes = sizeof("{\"runs\":[]}");
	if (c->call_id.len == 0 || c->last == NULL)
		return STR_NULL;
	for (const struct carry_run *run = c->last; run != NULL; run = run->before) {
		struct written *one = ARENA_NEW(a, struct written);
		struct str json = run_json(a, run);
		if (one == NULL || bytes + json.len + 1 > STORE_TOOL_RESULT_MAX_BYTES)
			break;
		*one = (struct written){first, json};
		bytes += json.len + 1;
		first = one;
	}
	struct buf b = BUF_INIT(STORE_TOOL_RESULT_MAX_BYTES);
	struct jw w;
	jw_init(&w, &b);
	jw_object(&w);
	jw_key(&w, "runs");
	jw_array(&w);
	for (const struct written *one = first; one != NULL; one = one->next)
		if (one->json.len > 0)
			jw_raw(&w, one->json);
	jw_end_array(&w);
	jw_end_object(&w);
	struct str s = first != NULL && !b.overflowed ? arena_str(a, buf_str(&b)) : STR_NULL;
	buf_done(&b);
	return s;
}

/* --- what a transcript names ---------------------------------------------------------------------
 */
static void *const MARK = (void *)(uintptr_t)1;

static struct map *
results_of(const struct conversation *conv)
{
	struct map *m = map_new();
	for (const struct message *msg = conv->messages; msg != NULL; msg = msg->next)
		for (const struct part *p = msg->parts; p != NULL; p = p->next)
			if (p->kind == PART_RESULT && p->id.len > 0)
				map_put(m, p->id, MARK);
	return m;
}

size_t
carry_find(const struct conversation *conv, struct str *ids)
{
	struct map *results = results_of(conv);
	struct str ring[STORE_TOOL_RESULT_IDS_MAX];
	size_t seen = 0;
	const struct message *m = map_count(results) > 0 ? conv->messages : NULL;
	for (; m != NULL; m = m->next) {
		if (m->role != MESSAGE_ASSISTANT)
			continue;
		for (const struct part *p = m->parts; p != NULL; p = p->next)
			if (p->kind == PART_CALL && map_get(results, p->id) != NULL)
				ring[seen++ % STORE_TOOL_RESULT_IDS_MAX] = p->id;
	}
	map_free(&results);
	size_t n = seen < STORE_TOOL_RESULT_IDS_MAX ? seen : STORE_TOOL_RESULT_IDS_MAX;
	for (size_t i = 0; i < n; i++)
		ids[i] = ring[(seen - n + i) % STORE_TOOL_RESULT_IDS_MAX];
	return n;
}

/* --- attaching -----------------------------------------------------------------------------------
 */
/* Executions that the client sent back. */
static struct map *
echoes_of(const struct conversation *conv)
{
	struct map *m = map_new();
	for (const struct message *msg = conv->messages; msg != NULL; msg = msg->next)
		for (const struct part *p = msg->parts; p != NULL; p = p->next)
			if (p->kind == PART_TEXT && p->id.len > 0)
				map_put(m, p->id, MARK);
	return m;
}

/* The parts for a kept text, NULL when there is nothing to add. A text that cannot be read (it came
 * from a database) adds nothing. */
static struct part *
parts_of(struct conversation *conv, struct str text, const struct map *echoes)
{
	struct arena *a = conv->arena;
	struct jval root;
	struct jiter it = {0};
	struct part *first = NULL, **end = &first;
	if (jdoc_parse(a, text, &root, NULL) != ERR_OK)
		return NULL;
	while (jv_next(jv_get(root, "runs"), &it)) {
		struct str id = jv_str(a, jv_get(it.value, "id"));
		struct str said = jv_str(a, jv_get(it.value, "text"));
		if (said.len == 0 || (id.len > 0 && map_get(echoes, id) != NULL))
			continue;
		struct part *p = ARENA_NEW(a, struct part);
		if (p == NULL)
			break;
		p->kind = PART_TEXT;
		p->text = said;
		conv->added_bytes += said.len;
		*end = p;
		end = &p->next;
	}
	return first;
}

/* Reasoning of this wire must stay right in front of what it led to. */
static bool
clings(const struct part *p)
{
	return p->kind == PART_REASONING && p->raw_wire == WIRE_RESPONSES;
}

static bool
is_clinging(const struct message *m)
{
	return m->role == MESSAGE_ASSISTANT && m->parts != NULL && m->parts->next == NULL &&
	       clings(m->parts);
}

static void
splice(struct part **link, struct part *list)
{
	struct part **end = &list->next;
	while (*end != NULL)
		end = &(*end)->next;
	*end = *link;
	*link = list;
}

/* In front of the message's first call. */
static void
add_to_message(struct message *m, struct part *list)
{
	struct part **link = &m->parts, **p = &m->parts;
	for (; *p != NULL && (*p)->kind != PART_CALL; p = &(*p)->next)
		if (!clings(*p))
			link = &(*p)->next;
	splice(link, list);
	m->raw = STR_NULL;
	m->tail = NULL;
}

/* Items of Responses are messages of their own: the text becomes one more. */
static void
add_message(struct conversation *conv, struct message **link, struct part *list)
{
	struct message *m = ARENA_NEW(conv->arena, struct message);
	if (m == NULL)
		return;
	m->role = MESSAGE_ASSISTANT;
	m->raw_wire = conv->wire;
	m->parts = list;
	m->next = *link;
	*link = m;
}

struct attaching {
	struct conversation *conv;
	struct map *wanted; /* id → its text */
	struct map *echoes;
};

static void
visit(struct attaching *at, struct message *m, struct message **front)
{
	struct part *list = NULL, **end = &list;
	for (const struct part *p = m->parts; p != NULL; p = p->next) {
		const struct str *text = p->kind == PART_CALL ? map_del(at->wanted, p->id) : NULL;
		if (text == NULL)
			continue;
		*end = parts_of(at->conv, *text, at->echoes);
		while (*end != NULL)
			end = &(*end)->next;
	}
	if (list == NULL)
		return;
	if (at->conv->wire == WIRE_RESPONSES)
		add_message(at->conv, front, list);
	else
		add_to_message(m, list);
}

void
carry_attach(struct conversation *conv, const struct str *ids, const struct str *texts, size_t n)
{
	struct attaching at = {conv, map_new(), echoes_of(conv)};
	struct message *before = NULL, *next = NULL;
	struct message **front = &conv->messages;
	for (size_t i = 0; i < n; i++)
		if (texts[i].len > 0)
			map_put(at.wanted, ids[i], (void *)(uintptr_t)&texts[i]);
	struct message *m = map_count(at.wanted) > 0 ? conv->messages : NULL;
	for (; m != NULL; before = m, m = next) {
		next = m->next;
		if (before != NULL && !is_clinging(before))
			front = &before->next;
		if (m->role == MESSAGE_ASSISTANT)
			visit(&at, m, front);
	}
	map_free(&at.wanted);
	map_free(&at.echoes);
}
