/* otari.conf's YAML: nodes with lines; bombs, duplicates and oddities refused. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conf/yaml.h"

TestSuite(yaml, .timeout = 20);

Test(yaml, gives_nodes_with_their_lines)
{
	struct arena *a = arena_new(1 << 20);
	struct conf_node *root;
	uint32_t line;
	struct err e = {0};
	struct str text = STR("# comment\n"
			      "one: 1\n"
			      "\n"
			      "two:\n"
			      "  - a\n"
			      "  - 'b'\n"
			      "  - ~\n"
			      "three: {x: \"y z\", e: }\n"
			      "four: |\n"
			      "  text\n");
	cr_assert_eq(conf_yaml_parse(a, text, &root, &line, &e), ERR_OK, "%s", e.msg);
	cr_assert_eq(root->count, 4);
	const struct conf_node *one = conf_node_get(root, "one");
	cr_assert(one->type == NODE_SCALAR && one->line == 2 && one->key_line == 2);
	cr_assert(str_eq(one->text, STR("1")) && !one->quoted);
	const struct conf_node *two = conf_node_get(root, "two");
	cr_assert(two->type == NODE_LIST && two->count == 3 && two->key_line == 4);
	cr_assert(two->first->line == 5 && two->first->next->quoted);
	cr_assert(two->last->type == NODE_NULL && two->last->line == 7);
	const struct conf_node *three = conf_node_get(root, "three");
	cr_assert(str_eq(conf_node_get(three, "x")->text, STR("y z")));
	cr_assert_eq(conf_node_get(three, "e")->type, NODE_NULL);
	cr_assert(str_eq(conf_node_get(root, "four")->text, STR("text\n")));
	cr_assert_null(conf_node_get(root, "five"));
	cr_assert_null(conf_node_get(one, "x"));
	arena_free(&a);
}

Test(yaml, takes_aliases_as_copies)
{
	struct arena *a = arena_new(1 << 20);
	struct conf_node *root;
	uint32_t line;
	struct str text = STR("a: &x {k: 1, l: [2, 3]}\nb: *x\nc: [*x, *x]\n");
	cr_assert_eq(conf_yaml_parse(a, text, &root, &line, NULL), ERR_OK);
	const struct conf_node *b = conf_node_get(root, "b"), *c = conf_node_get(root, "c");
	cr_assert(str_eq(conf_node_get(b, "k")->text, STR("1")) && b->key_line == 2);
	cr_assert_eq(conf_node_get(conf_node_get(root, "a"), "l")->count, 2);
	cr_assert(c->count == 2 && conf_node_get(c->last, "l")->count == 2);
	arena_free(&a);
}

Test(yaml, takes_nothing_for_an_empty_map)
{
	static const char *const rows[] = {
	    "", "\n\n", "# only a comment\n", "---\n", "~\n", "---\n...\n"};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(65536);
		struct conf_node *root;
		uint32_t line;
		cr_assert_eq(
		    conf_yaml_parse(a, str_c(rows[i]), &root, &line, NULL), ERR_OK, "%zu", i);
		cr_assert(root->type == NODE_MAP && root->count == 0, "%zu", i);
		arena_free(&a);
	}
}

static const struct {
	const char *text, *says;
	uint32_t line;
} REFUSED[] = {
    {"a: 1\nb: 2\na: 3\n", "'a' occurs twice", 3},
    {"x: {k: 1, k: 2}\n", "'k' occurs twice", 1},
    {"a: [\n", "", 2},
    {"a: b: c\n", "must be in quotes", 1},
    {"sandbox_url: local:\n", "must be in quotes", 1},
    {"a: 1\n\tb: 2\n", "", 2},
    {"a: *nobody\n", "stands for nothing", 1},
    {"a: &a [*a]\n", "stands for nothing", 1},
    {"a: 1\n---\nb: 2\n", "more than one document", 2},
    {"? [a, b]\n: 1\n", "a key must be a plain text", 1},
    {"<<: {a: 1}\n", "merge keys", 1},
    {"a: !!python/object:os.system x\n", "is not supported", 1},
    {"a: !!int \"5\"\n", "is not supported", 1},
    {"a: \"x\\0y\"\n", "NUL", 1},
    {"a: \xff\xfe\n", "", 1},
    {": 1\n", "", 1},
    {"~: 1\n", "a key is missing", 1},
    {"a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "nested deeper", 1},
    {"a: &a [[[[[[[[1]]]]]]]]\nb: [[[[[[[[[*a]]]]]]]]]\n", "nested deeper", 2},
};

Test(yaml, refuses_what_is_odd)
{
	for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
		struct arena *a = arena_new(1 << 20);
		struct conf_node *root;
		struct err e = {0};
		uint32_t line;
		cr_assert_eq(conf_yaml_parse(a, str_c(REFUSED[i].text), &root, &line, &e),
		    ERR_INPUT, "row %zu", i);
		cr_assert(strstr(e.msg, REFUSED[i].says) != NULL, "row %zu: %s", i, e.msg);
		cr_assert_eq(line, REFUSED[i].line, "row %zu: line %u: %s", i, line, e.msg);
		arena_free(&a);
	}
}

Test(yaml, defuses_alias_bombs)
{
	struct buf b = BUF_INIT(65536);
	buf_add(&b, STR("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"));
	for (int i = 1; i < 12; i++)
		buf_printf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
		    i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	struct arena *a = arena_new(64u << 20);
	struct conf_node *root;
	uint32_t line;
	struct err e = {0};
	cr_assert_eq(conf_yaml_parse(a, buf_str(&b), &root, &line, &e), ERR_INPUT);
	cr_assert(strstr(e.msg, "more than 100000 values") != NULL, "%s", e.msg);
	arena_free(&a);
	buf_done(&b);
}

Test(yaml, bounds_size_and_depth)
{
	size_t n = LIMIT_CONF_BYTES + 1;
	char *big = mem_alloc(n);
	struct arena *a = arena_new(64u << 20);
	struct conf_node *root;
	uint32_t line;
	memset(big, '#', n);
	cr_assert_eq(conf_yaml_parse(a, str_n(big, n), &root, &line, NULL), ERR_INPUT);
	memset(big, '[', n);
	cr_assert_eq(conf_yaml_parse(a, str_n(big, n - 1), &root, &line, NULL), ERR_INPUT);
	memset(big, '{', n);
	cr_assert_eq(conf_yaml_parse(a, str_n(big, n - 1), &root, &line, NULL), ERR_INPUT);
	mem_free(big);
	arena_free(&a);
}
