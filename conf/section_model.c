/* aliases, routing, models' prices, budgets */
#include <stdio.h>

#include "conf/load.h"
#include "conf/validate.h"

#define ALIASES_MAX 10000u
#define PRICES_MAX  10000u

void
load_aliases(struct loader *ld, const struct conf_node *n)
{
	if (n->type == NODE_NULL || !expect_node(ld, n, NODE_MAP, "aliases"))
		return;
	if (n->count > ALIASES_MAX) {
		conf_error(ld->r, n->key_line, "aliases: more than %u", ALIASES_MAX);
		return;
	}
	struct conf *c = ld->c;
	c->aliases = ARENA_NEW_ARRAY(ld->a, struct conf_alias, n->count);
	if (c->aliases == NULL)
		return;
	CONF_EACH(child, n)
	{
		struct err e;
		struct str target;
		char what[128];
		(void)snprintf(what, sizeof(what), "aliases.%.*s", STR_FMT(conf_shown(child->key)));
		if (validate_name(child->key, 256, &e) != ERR_OK) {
			conf_error(ld->r, child->key_line, "%s: %s", what, e.msg);
			continue;
		}
		if (!value_text(ld, child, what, &target))
			continue;
		c->aliases[c->alias_count++] =
		    (struct conf_alias){child->key, str_trim(target), child->line};
	}
}

void
load_routing(struct loader *ld, const struct conf_node *n)
{
	static const struct member MEMBERS[] = {
	    {"default_provider", MT_STR, offsetof(struct conf, default_provider), 0, 0}};
	ld->c->routing_line = n->key_line;
	(void)load_members(ld, n, "routing", MEMBERS, ARRAY_LEN(MEMBERS), ld->c);
}

void
load_pricing(struct loader *ld, const struct conf_node *n)
{
	static const struct member MEMBERS[] = {
	    {"input_price_per_million", MT_PRICE, offsetof(struct conf_price, input_per_million), 0,
		0},
	    {"output_price_per_million", MT_PRICE, offsetof(struct conf_price, output_per_million),
		0, 0},
	};
	if (n->type == NODE_NULL || !expect_node(ld, n, NODE_MAP, "pricing"))
		return;
	if (n->count > PRICES_MAX) {
		conf_error(ld->r, n->key_line, "pricing: more than %u", PRICES_MAX);
		return;
	}
	struct conf *c = ld->c;
	c->prices = ARENA_NEW_ARRAY(ld->a, struct conf_price, n->count);
	if (c->prices == NULL)
		return;
	CONF_EACH(child, n)
	{
		struct err e;
		struct str provider, model;
		char what[160];
		(void)snprintf(what, sizeof(what), "pricing.%.*s", STR_FMT(conf_shown(child->key)));
		struct conf_price price = {.model = child->key, .line = child->key_line};
		if (validate_selector(child->key, &provider, &model, &e) != ERR_OK)
			conf_error(ld->r, child->key_line, "%s: %s", what, e.msg);
		else if (load_members(ld, child, what, MEMBERS, ARRAY_LEN(MEMBERS), &price))
			c->prices[c->price_count++] = price;
	}
	if (c->price_count > 0)
		conf_warning(ld->r, n->key_line, "pricing: kept, but costs are not counted yet");
}

/* A spending limit that is read and not kept would be worse than none. */
void
load_budgets(struct loader *ld, const struct conf_node *n)
{
	if (n->type != NODE_NULL && n->count > 0)
		conf_error(ld->r, n->key_line,
		    "budgets: not built yet, so no spending limit would be kept; remove them");
}
