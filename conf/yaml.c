#include "conf/yaml.h"

#include <yaml.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"

#define STR_TAG "tag:yaml.org,2002:str"

/* One open collection. */
struct frame {
	struct conf_node *node;
	struct map *keys; /* of a map: those seen; its values are the nodes */
	struct str key;   /* waiting for its value */
	uint32_t key_line;
	struct str anchor; /* registered when the node is complete: no node holds itself */
};

struct parser {
	struct arena *a;
	struct frame frames[CONF_DEPTH_MAX];
	uint32_t depth, nodes, line;
	struct conf_node *root;
	struct map *anchors; /* name → struct conf_node */
	unsigned documents;
};

/* --- making nodes ---------------------------------------------------------------------------- */

static enum err_code
new_node(struct parser *p, enum conf_node_type type, struct conf_node **ret, struct err *reterr)
{
	if (++p->nodes > CONF_NODES_MAX)
		return err_set(reterr, ERR_INPUT, "more than %u values", CONF_NODES_MAX);
	struct conf_node *n = ARENA_NEW(p->a, struct conf_node);
	if (n == NULL)
		return err_set(reterr, ERR_INPUT, "too large");
	n->type = type;
	n->line = p->line;
	*ret = n;
	return ERR_OK;
}

static void
append(struct conf_node *parent, struct conf_node *child)
{
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

static enum err_code
copy_tree(
    struct parser *p, const struct conf_node *from, struct conf_node **ret, struct err *reterr)
{
	struct conf_node *n;
	enum err_code rc = new_node(p, from->type, &n, reterr);
	if (rc != ERR_OK)
		return rc;
	n->line = from->line;
	n->key_line = from->key_line;
	n->key = from->key;
	n->quoted = from->quoted;
	n->text = from->text;
	CONF_EACH(child, from)
	{
		struct conf_node *c;
		rc = copy_tree(p, child, &c, reterr);
		if (rc != ERR_OK)
			return rc;
		append(n, c);
	}
	*ret = n;
	return ERR_OK;
}

/* Depth of what an alias stands for, so that the limit holds for the whole tree. */
static uint32_t
tree_depth(const struct conf_node *n)
{
	uint32_t deepest = 0;
	CONF_EACH(child, n)
	{
		uint32_t d = tree_depth(child);
		deepest = d > deepest ? d : deepest;
	}
	return deepest + (n->type == NODE_LIST || n->type == NODE_MAP ? 1 : 0);
}

/* --- placing nodes --------------------------------------------------------------------------- */

static enum err_code
take_key(struct frame *f, struct conf_node *n, struct err *reterr)
{
	if (n->type != NODE_SCALAR)
		return err_set(reterr, ERR_INPUT, "a key must be a plain text");
	if (str_eq(n->text, STR("<<")) && !n->quoted)
		return err_set(reterr, ERR_INPUT, "merge keys (<<) are not supported");
	if (map_get(f->keys, n->text) != NULL)
		return err_set(reterr, ERR_INPUT, "'%.*s' occurs twice", STR_FMT(n->text));
	map_put(f->keys, n->text, n);
	f->key = n->text;
	f->key_line = n->line;
	return ERR_OK;
}

/* Puts a complete scalar, or a collection that was just opened, where it belongs. */
static enum err_code
place(struct parser *p, struct conf_node *n, struct err *reterr)
{
	if (p->depth == 0) {
		p->root = n;
		return ERR_OK;
	}
	struct frame *f = &p->frames[p->depth - 1];
	if (f->node->type == NODE_MAP && f->key.ptr == NULL) {
		if (n->type == NODE_NULL)
			return err_set(reterr, ERR_INPUT, "a key is missing");
		return take_key(f, n, reterr);
	}
	if (f->node->type == NODE_MAP) {
		n->key = f->key;
		n->key_line = f->key_line;
		f->key = STR_NULL;
	}
	append(f->node, n);
	return ERR_OK;
}

static enum err_code
check_tag(const yaml_char_t *tag, struct err *reterr)
{
	struct str t = str_c((const char *)tag);
	if (t.ptr == NULL || str_eq(t, STR("!")) || str_eq(t, STR(STR_TAG)))
		return ERR_OK;
	return err_set(reterr, ERR_INPUT, "the tag %.*s is not supported", STR_FMT(t));
}

static void
remember(struct parser *p, struct str anchor, struct conf_node *n)
{
	if (anchor.ptr != NULL)
		map_put(p->anchors, anchor, n);
}

static struct str
anchor_name(struct parser *p, const yaml_char_t *anchor)
{
	return anchor != NULL ? arena_str(p->a, str_c((const char *)anchor)) : STR_NULL;
}

/* --- events ---------------------------------------------------------------------------------- */

static bool
is_null_text(struct str s)
{
	return s.len == 0 || str_eq(s, STR("~")) || str_eq(s, STR("null")) ||
	       str_eq(s, STR("Null")) || str_eq(s, STR("NULL"));
}

static enum err_code
on_scalar(struct parser *p, const yaml_event_t *ev, struct err *reterr)
{
	struct conf_node *n;
	enum err_code rc = check_tag(ev->data.scalar.tag, reterr);
	if (rc == ERR_OK)
		rc = new_node(p, NODE_SCALAR, &n, reterr);
	if (rc != ERR_OK)
		return rc;
	struct str text = str_n(ev->data.scalar.value, ev->data.scalar.length);
	if (str_chr(text, '\0') != SIZE_MAX)
		return err_set(reterr, ERR_INPUT, "a NUL character in a text");
	n->text = arena_str(p->a, text);
	n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || ev->data.scalar.tag != NULL;
	if (!n->quoted && is_null_text(text))
		n->type = NODE_NULL;
	rc = place(p, n, reterr);
	if (rc == ERR_OK)
		remember(p, anchor_name(p, ev->data.scalar.anchor), n);
	return rc;
}

static enum err_code
on_start(struct parser *p, enum conf_node_type type, const yaml_char_t *anchor,
    const yaml_char_t *tag, struct err *reterr)
{
	struct conf_node *n;
	enum err_code rc = check_tag(tag, reterr);
	if (rc == ERR_OK && p->depth == CONF_DEPTH_MAX)
		rc = err_set(reterr, ERR_INPUT, "nested deeper than %u", CONF_DEPTH_MAX);
	if (rc == ERR_OK)
		rc = new_node(p, type, &n, reterr);
	if (rc == ERR_OK)
		rc = place(p, n, reterr);
	if (rc != ERR_OK)
		return rc;
	p->frames[p->depth++] = (struct frame){.node = n,
	    .keys = type == NODE_MAP ? map_new() : NULL,
	    .anchor = anchor_name(p, anchor)};
	return ERR_OK;
}

static enum err_code
on_end(struct parser *p)
{
	CHECK(p->depth > 0);
	struct frame *f = &p->frames[--p->depth];
	map_free(&f->keys);
	remember(p, f->anchor, f->node);
	return ERR_OK;
}

static enum err_code
on_alias(struct parser *p, const yaml_event_t *ev, struct err *reterr)
{
	struct str name = str_c((const char *)ev->data.alias.anchor);
	const struct conf_node *known = map_get(p->anchors, name);
	if (known == NULL)
		return err_set(reterr, ERR_INPUT, "*%.*s stands for nothing known", STR_FMT(name));
	if (p->depth + tree_depth(known) > CONF_DEPTH_MAX)
		return err_set(reterr, ERR_INPUT, "nested deeper than %u", CONF_DEPTH_MAX);
	struct conf_node *n;
	enum err_code rc = copy_tree(p, known, &n, reterr);
	if (rc != ERR_OK)
		return rc;
	n->key = STR_NULL;
	n->key_line = 0;
	return place(p, n, reterr);
}

static enum err_code
on_event(struct parser *p, const yaml_event_t *ev, struct err *reterr)
{
	p->line = (uint32_t)ev->start_mark.line + 1;
	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++p->documents > 1)
			return err_set(reterr, ERR_INPUT, "more than one document");
		return ERR_OK;
	case YAML_SCALAR_EVENT:
		return on_scalar(p, ev, reterr);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(p, NODE_LIST, ev->data.sequence_start.anchor,
		    ev->data.sequence_start.tag, reterr);
	case YAML_MAPPING_START_EVENT:
		return on_start(
		    p, NODE_MAP, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, reterr);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(p);
	case YAML_ALIAS_EVENT:
		return on_alias(p, ev, reterr);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return ERR_OK;
	}
	return ERR_OK;
}

static enum err_code
syntax_error(struct parser *p, const yaml_parser_t *y, struct err *reterr)
{
	p->line = (uint32_t)y->problem_mark.line + 1;
	if (y->problem != NULL && str_starts(str_c(y->problem), STR("mapping values are not")))
		return err_set(reterr, ERR_INPUT,
		    "a value that ends with ':' or holds ': ' must be in quotes");
	return err_set(reterr, ERR_INPUT, "%s%s%s", y->problem != NULL ? y->problem : "not YAML",
	    y->context != NULL ? " " : "", y->context != NULL ? y->context : "");
}

static enum err_code
parse_events(struct parser *p, yaml_parser_t *y, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	for (bool end = false; rc == ERR_OK && !end;) {
		yaml_event_t ev;
		if (yaml_parser_parse(y, &ev) == 0)
			return syntax_error(p, y, reterr);
		rc = on_event(p, &ev, reterr);
		end = ev.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	return rc;
}

enum err_code
conf_yaml_parse(struct arena *a, struct str text, struct conf_node **ret, uint32_t *ret_line,
    struct err *reterr)
{
	*ret_line = 0;
	if (text.ptr == NULL)
		text = STR("");
	if (text.len > LIMIT_CONF_BYTES)
		return err_set(reterr, ERR_INPUT, "larger than %u bytes", LIMIT_CONF_BYTES);
	struct parser p = {.a = a, .line = 1};
	yaml_parser_t y;
	if (yaml_parser_initialize(&y) == 0)
		return err_set(reterr, ERR_INPUT, "too large");
	p.anchors = map_new();
	yaml_parser_set_input_string(&y, (const unsigned char *)text.ptr, text.len);
	enum err_code rc = parse_events(&p, &y, reterr);
	yaml_parser_delete(&y);
	while (p.depth > 0)
		map_free(&p.frames[--p.depth].keys);
	map_free(&p.anchors);
	if (rc == ERR_OK && (p.root == NULL || p.root->type == NODE_NULL)) {
		if (p.root == NULL)
			p.root = ARENA_NEW(a, struct conf_node);
		if (p.root != NULL)
			p.root->type = NODE_MAP;
	}
	if (rc == ERR_OK && arena_overflowed(a))
		rc = err_set(reterr, ERR_INPUT, "too large");
	if (rc == ERR_OK)
		*ret = p.root;
	else
		*ret_line = p.line;
	return rc;
}

const struct conf_node *
conf_node_get(const struct conf_node *n, const char *key)
{
	if (n == NULL || n->type != NODE_MAP)
		return NULL;
	CONF_EACH(child, n)
	{
		if (str_eq(child->key, str_c(key)))
			return child;
	}
	return NULL;
}

static uint64_t
mix(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3u;
	return (h ^ s.len) * 0x100000001b3u;
}

uint64_t
conf_node_digest(const struct conf_node *n)
{
	uint64_t h = mix(0xcbf29ce484222325u + n->type, n->text);
	CONF_EACH(child, n)
	{
		h = mix(h, child->key);
		h = (h ^ conf_node_digest(child)) * 0x100000001b3u;
	}
	return h;
}

const char *
conf_node_kind(const struct conf_node *n)
{
	switch (n->type) {
	case NODE_NULL:
		return "nothing";
	case NODE_SCALAR:
		return "a single value";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a map";
	}
	return "something else";
}
