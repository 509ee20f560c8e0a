#include "conf/dump.h"

#include "base/check.h"
#include "conf/validate.h"

/* A double-quoted YAML scalar. */
static void
put_text(struct buf *dst, struct str s)
{
	buf_addc(dst, '"');
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c == '"' || c == '\\')
			buf_printf(dst, "\\%c", c);
		else if (c == '\n')
			buf_add(dst, STR("\\n"));
		else if (c < 0x20 || c == 0x7F)
			buf_printf(dst, "\\x%02x", c);
		else
			buf_addc(dst, (char)c);
	}
	buf_addc(dst, '"');
}

static void
put_str(struct buf *dst, struct str s)
{
	if (s.ptr == NULL)
		buf_add(dst, STR("null"));
	else
		put_text(dst, s);
}

/* Hides the password between "user:" and "@". */
struct str
conf_database_place(const struct conf *c, struct arena *a)
{
	struct str url = c->database_url;
	size_t scheme = str_find(url, STR("://"));
	if (scheme == SIZE_MAX)
		return STR("***");
	struct str rest = str_from(url, scheme + 3);
	size_t at = str_rchr(rest, '@');
	size_t colon = at == SIZE_MAX ? SIZE_MAX : str_chr(str_sub(rest, 0, at), ':');
	if (colon == SIZE_MAX)
		return url;
	return arena_printf(a, "%.*s***%.*s", STR_FMT(str_sub(url, 0, scheme + 3 + colon + 1)),
	    STR_FMT(str_from(rest, at)));
}

static void
put_list(struct buf *dst, struct conf_list list)
{
	buf_addc(dst, '[');
	for (uint32_t i = 0; i < list.count; i++) {
		if (i > 0)
			buf_add(dst, STR(", "));
		put_text(dst, list.items[i]);
	}
	buf_addc(dst, ']');
}

/* Names only: values of headers and storage options are credentials as often as not. */
static void
put_pairs(struct buf *dst, struct conf_pairs pairs)
{
	buf_addc(dst, '{');
	for (uint32_t i = 0; i < pairs.count; i++) {
		if (i > 0)
			buf_add(dst, STR(", "));
		put_text(dst, pairs.items[i].name);
		buf_add(dst, STR(": \"***\""));
	}
	buf_addc(dst, '}');
}

static void
put_choice(struct buf *dst, const struct conf_key *k, uint64_t v)
{
	struct str rest = str_c(k->choices), one;
	for (uint64_t place = k->min; str_split(&rest, '|', &one); place++)
		if (place == v) {
			buf_add(dst, one);
			return;
		}
	buf_add(dst, STR("null"));
}

void
conf_put_value(struct buf *dst, const struct conf *c, const struct conf_key *k, const void *v)
{
	switch (k->type) {
	case KT_STR:
	case KT_URL:
	case KT_WRITTEN:
	case KT_READ:
	case KT_LISTEN:
		put_str(dst, *(const struct str *)v);
		return;
	case KT_SECRET:
		buf_add(dst, ((const struct str *)v)->ptr != NULL ? STR("\"***\"") : STR("null"));
		return;
	case KT_DB_URL:
		put_text(dst, conf_database_place(c, c->arena));
		return;
	case KT_BOOL:
		buf_add(dst, *(const bool *)v ? STR("true") : STR("false"));
		return;
	case KT_UINT:
		buf_printf(dst, "%llu", (unsigned long long)*(const uint64_t *)v);
		return;
	case KT_AUTO:
		if (*(const uint64_t *)v == 0)
			buf_add(dst, k->dflt != NULL ? STR("auto") : STR("null"));
		else
			buf_printf(dst, "%llu", (unsigned long long)*(const uint64_t *)v);
		return;
	case KT_ENUM:
		put_choice(dst, k, *(const uint64_t *)v);
		return;
	case KT_LIST:
		put_list(dst, *(const struct conf_list *)v);
		return;
	case KT_PAIRS:
		put_pairs(dst, *(const struct conf_pairs *)v);
		return;
	case KT_SECTION:
		break;
	}
	UNREACHABLE("a section has no value");
}

static void
put_origin(struct buf *dst, const struct conf_origin *o)
{
	switch (o->from) {
	case FROM_DEFAULT:
		buf_add(dst, STR("  # default\n"));
		return;
	case FROM_FILE:
		buf_printf(dst, "  # line %u\n", o->line);
		return;
	case FROM_ENVIRON:
		buf_add(dst, STR("  # environment\n"));
		return;
	}
}

static void
put_providers(struct buf *dst, const struct conf *c)
{
	static const char *const wires[] = {"chat", "messages", "responses"};
	if (c->provider_count > 0)
		buf_add(dst, STR("providers:\n"));
	for (uint32_t i = 0; i < c->provider_count; i++) {
		const struct conf_provider *p = &c->providers[i];
		buf_add(dst, STR("  "));
		put_text(dst, p->name);
		buf_add(dst, STR(":"));
		put_origin(dst,
		    &(struct conf_origin){p->line != 0 ? FROM_FILE : FROM_ENVIRON, p->line, 0});
		buf_add(dst, STR("    provider_type: "));
		put_text(dst, p->type);
		buf_add(dst, STR("\n    api_base: "));
		put_text(dst, p->api_base);
		buf_printf(dst, "\n    wire: %s\n", wires[p->wire]);
		if (p->api_key_file.ptr != NULL) {
			buf_add(dst, STR("    api_key_file: "));
			put_text(dst, p->api_key_file);
			buf_addc(dst, '\n');
		}
		if (p->api_key.ptr != NULL)
			buf_printf(dst, "    api_key: \"***\"%s\n",
			    p->key_from_environ ? "  # environment" : "");
		if (p->native_code_execution >= 0)
			buf_printf(dst, "    native_code_execution: %s\n",
			    p->native_code_execution == 1 ? "true" : "false");
		if (p->native_documents >= 0)
			buf_printf(dst, "    native_documents: %s\n",
			    p->native_documents == 1 ? "true" : "false");
		if (p->headers.count > 0) {
			buf_add(dst, STR("    headers: "));
			put_pairs(dst, p->headers);
			buf_addc(dst, '\n');
		}
		if (p->models.count > 0) {
			buf_add(dst, STR("    models: "));
			put_list(dst, p->models);
			buf_addc(dst, '\n');
		}
	}
}

static void
put_policy(struct buf *dst, const struct conf_policy *p)
{
	buf_printf(dst, "    code_execution:\n      enabled: %s\n", p->enabled ? "true" : "false");
	if (executor_name(p->executor) != NULL)
		buf_printf(dst, "      executor: %s\n", executor_name(p->executor));
	if (p->max_iterations != 0)
		buf_printf(dst, "      max_iterations: %u\n", p->max_iterations);
	if (p->exec_timeout_s != 0)
		buf_printf(dst, "      exec_timeout_s: %u\n", p->exec_timeout_s);
	if (p->tools_set) {
		buf_add(dst, STR("      tools: "));
		put_list(dst, p->tools);
		buf_addc(dst, '\n');
	}
}

static void
put_sections(struct buf *dst, const struct conf *c)
{
	put_providers(dst, c);
	if (c->alias_count > 0)
		buf_add(dst, STR("aliases:\n"));
	for (uint32_t i = 0; i < c->alias_count; i++) {
		buf_add(dst, STR("  "));
		put_text(dst, c->aliases[i].name);
		buf_add(dst, STR(": "));
		put_text(dst, c->aliases[i].target);
		put_origin(dst, &(struct conf_origin){FROM_FILE, c->aliases[i].line, 0});
	}
	if (c->default_provider.ptr != NULL) {
		buf_add(dst, STR("routing:\n  default_provider: "));
		put_text(dst, c->default_provider);
		buf_addc(dst, '\n');
	}
	if (c->workspace_count > 0)
		buf_add(dst, STR("workspaces:\n"));
	for (uint32_t i = 0; i < c->workspace_count; i++) {
		buf_add(dst, STR("  "));
		put_text(dst, c->workspaces[i].name);
		buf_add(dst, STR(":"));
		put_origin(dst, &(struct conf_origin){FROM_FILE, c->workspaces[i].line, 0});
		buf_add(dst, STR("    id: "));
		put_text(dst, c->workspaces[i].id);
		buf_addc(dst, '\n');
		if (c->workspaces[i].has_policy)
			put_policy(dst, &c->workspaces[i].policy);
	}
	buf_printf(dst, "# users: %u, keys: %u, prices: %u\n", c->user_count, c->key_count,
	    c->price_count);
}

void
conf_dump(const struct conf *c, struct buf *dst)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	for (size_t i = 0; i < n; i++) {
		if (keys[i].type == KT_SECTION)
			continue;
		buf_printf(dst, "%s: ", keys[i].name);
		conf_put_value(dst, c, &keys[i], (const char *)c + keys[i].off);
		put_origin(dst, &c->origins[i]);
	}
	put_sections(dst, c);
}
