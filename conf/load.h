/* load.h - the parts of the loader, for each other only: values, sections, checks
 *
 * Every function reports what is wrong and goes on where it can, so that one run shows all errors.
 */
#ifndef OTARI_CONF_LOAD_H
#define OTARI_CONF_LOAD_H

#include "conf/conf.h"
#include "conf/yaml.h"

struct loader {
	struct arena *a;
	struct conf *c;
	struct conf_report *r;
	const struct conf_source *src;
};

/* value.c: one key of the table from text (line, or REPORT_ENVIRON); from a node. what names the
 * key in errors. */
void value_from_text(
    struct loader *ld, const struct conf_key *k, struct str text, uint32_t line, const char *what);
void value_from_node(struct loader *ld, const struct conf_key *k, const struct conf_node *n);
/* The scalar's text with variables put in; false after an error was reported. */
bool value_text(struct loader *ld, const struct conf_node *n, const char *what, struct str *ret);
bool value_list(
    struct loader *ld, const struct conf_node *n, const char *what, struct conf_list *ret);
bool value_pairs(
    struct loader *ld, const struct conf_node *n, const char *what, struct conf_pairs *ret);
bool value_bool(struct str text, bool *ret);
/* Whole number; with a size suffix (KiB, MiB, GiB) where is_bytes. */
bool value_uint(struct str text, bool is_bytes, uint64_t *ret);

/* member.c: the members of one map of a section, by a table. */
enum member_type {
	MT_STR,  /* struct str; blank: STR_NULL */
	MT_BOOL, /* bool */
	MT_TRI,  /* int: 0, 1; left alone when not written */
	MT_AUTO, /* int: auto is -1, or 0, 1; left alone when not written */
	MT_U32,  /* uint32_t in min..max */
	MT_LIST, /* struct conf_list */
	MT_PAIRS,
	MT_NODE,  /* const struct conf_node * */
	MT_PRICE, /* double, 0 or more */
};
struct member {
	const char *name;
	enum member_type type;
	size_t off;
	uint32_t min, max;
};
/* what: "providers.openai". false when anything was wrong. */
bool load_members(struct loader *ld, const struct conf_node *map, const char *what,
    const struct member *members, size_t n, void *base);
/* Reports unless n is of this type. */
bool expect_node(
    struct loader *ld, const struct conf_node *n, enum conf_node_type type, const char *what);

/* section_*.c; n is never NULL. */
void load_providers(struct loader *ld, const struct conf_node *n);
void load_environ_providers(struct loader *ld); /* after load_providers, also without it */
void load_aliases(struct loader *ld, const struct conf_node *n);
void load_routing(struct loader *ld, const struct conf_node *n);
void load_workspaces(struct loader *ld, const struct conf_node *n);
void load_users(struct loader *ld, const struct conf_node *n);
void load_keys(struct loader *ld, const struct conf_node *n);
void load_pricing(struct loader *ld, const struct conf_node *n);
void load_budgets(struct loader *ld, const struct conf_node *n);

/* check.c */
/* Line for an error about a key's value, wherever it came from. */
uint32_t line_of(struct loader *ld, const char *key);
/* A credential that is written as such or read from a file: one of them, and sendable. */
void check_secret_key(
    struct loader *ld, const char *name, struct str key, const char *file_name, struct str file);
void check_sandbox(struct loader *ld); /* check_sandbox.c */
void resolve_paths(struct loader *ld);
struct str conf_control_path(struct loader *ld); /* of state_dir and control_socket alone */
void check_conf(struct loader *ld);

#endif
