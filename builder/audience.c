#include "builder/build.h"
#include "ipc/secrets.h"

enum err_code
audience_workers(struct build *b, int *ret_fd, struct err *reterr)
{
	struct secrets_builder *s = secrets_builder_new();
	secrets_builder_add(s, STR("database_url"), b->conf->database_url);
	for (uint32_t i = 0; i < b->conf->provider_count; i++)
		if (b->provider_keys[i].ptr != NULL)
			secrets_builder_add(s,
			    arena_printf(
				b->arena, "provider/%.*s", STR_FMT(b->conf->providers[i].name)),
			    b->provider_keys[i]);
	if (b->sandbox_token.ptr != NULL)
		secrets_builder_add(s, STR("sandbox_token"), b->sandbox_token);
	if (b->sandbox_serve_token.ptr != NULL)
		secrets_builder_add(s, STR("sandbox_serve_token"), b->sandbox_serve_token);
	if (b->tls_key.ptr != NULL) {
		secrets_builder_add(s, STR("tls_cert"), b->tls_cert);
		secrets_builder_add(s, STR("tls_key"), b->tls_key);
	}
	return secrets_builder_end(&s, ret_fd, reterr);
}

enum err_code
audience_sweeper(struct build *b, int *ret_fd, struct err *reterr)
{
	struct secrets_builder *s = secrets_builder_new();
	secrets_builder_add(s, STR("database_url"), b->conf->database_url);
	return secrets_builder_end(&s, ret_fd, reterr);
}
