#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "conf/env.h"
#include "conf/load.h"

/* The keys that decide where the socket is; whatever else the file says may be wrong. */
static const struct {
	const char *key, *variable;
} WANTED[] = {{"state_dir", "OTARI_STATE_DIR"}, {"control_socket", "OTARI_CONTROL_SOCKET"}};

static void
peek_keys(struct loader *ld, const struct conf_node *root)
{
	for (size_t i = 0; i < ARRAY_LEN(WANTED); i++) {
		const struct conf_key *k = conf_key_find(str_c(WANTED[i].key));
		const struct conf_node *n = conf_node_get(root, WANTED[i].key);
		struct str value = env_get(ld->src->environ, str_c(WANTED[i].variable));
		if (k->dflt != NULL)
			value_from_text(ld, k, str_c(k->dflt), 0, k->name);
		if (value.ptr != NULL)
			value_from_text(ld, k, value, REPORT_ENVIRON, WANTED[i].variable);
		else if (n != NULL)
			value_from_node(ld, k, n);
	}
}

static enum err_code
peek(const struct conf_source *src, struct arena *a, struct conf_report *r, char *dst, size_t size,
    struct err *reterr)
{
	struct loader ld = {a, ARENA_NEW(a, struct conf), r, src};
	struct conf_node *root;
	uint32_t line;
	enum err_code rc = conf_yaml_parse(a, src->text, &root, &line, reterr);
	if (rc != ERR_OK) {
		err_prefix(reterr, "%s:%u: ", src->file, line);
		return rc;
	}
	peek_keys(&ld, root);
	if (r->error_count > 0) {
		if (reterr != NULL)
			*reterr = r->first;
		return ERR_INPUT;
	}
	struct str path = conf_control_path(&ld);
	if (!str_copy(dst, size, path))
		return err_set(reterr, ERR_INPUT, "%s: control_socket: too long", src->file);
	return ERR_OK;
}

enum err_code
conf_find_control(
    const char *path, char *const *environment, char *dst, size_t size, struct err *reterr)
{
	char cwd[4096], *text;
	size_t len;
	struct conf_source src = {.file = path, .as_root = geteuid() == 0};
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return err_set(reterr, ERR_IO, "current directory");
	enum err_code rc = fd_read_file(path, LIMIT_CONF_BYTES, &text, &len, reterr);
	if (rc != ERR_OK)
		return rc;
	struct buf block = BUF_INIT(CONF_ENVIRON_BYTES);
	conf_environ_block(&block, environment);
	src.text = str_n(text, len);
	src.environ = buf_str(&block);
	src.cwd = str_c(cwd);
	struct conf_report r;
	struct arena *a = arena_new(CONF_ARENA_BYTES);
	conf_report_init(&r, path);
	rc = peek(&src, a, &r, dst, size, reterr);
	conf_report_done(&r);
	arena_free(&a);
	mem_wipe(block.ptr, block.len);
	buf_done(&block);
	mem_wipe(text, len);
	mem_free(text);
	return rc;
}
