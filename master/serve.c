#include "master/serve.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "master/dispatch.h"
#include "master/listen.h"
#include "master/master.h"

static struct str
wanted(const struct master *m)
{
	return m->conf.sandbox.serve.ptr != NULL ? m->conf.sandbox.serve : STR("");
}

static struct str
current(const struct master *m)
{
	return m->serve_address != NULL ? str_c(m->serve_address) : STR("");
}

static enum err_code
open_at(struct master *m, struct str address, uint16_t *ret_port, int *ret_fd, struct err *reterr)
{
	struct str host;
	enum err_code rc = listen_split(address, &host, ret_port, reterr);
	/* Nobody else is probed for where the port is ours: 127.0.0.1:1 becomes 0.0.0.0:1. */
	bool is_ours = m->serve_fd >= 0 && *ret_port == m->serve_port;
	if (rc == ERR_OK)
		rc = listen_open(host, ret_port, !is_ours, ret_fd, reterr);
	if (rc != ERR_OK)
		err_prefix(reterr, "sandbox_serve: ");
	return rc;
}

void
serve_close(struct master *m)
{
	fd_close(&m->serve_fd);
	mem_free(m->serve_address);
	m->serve_address = NULL;
	m->serve_port = 0;
}

static enum err_code
move(struct master *m, struct err *reterr)
{
	struct str address = wanted(m);
	uint16_t port = 0;
	int fd = -1;
	enum err_code rc = ERR_OK;
	if (address.len > 0)
		rc = open_at(m, address, &port, &fd, reterr);
	if (rc != ERR_OK)
		return rc;
	serve_close(m);
	if (fd < 0)
		return ERR_OK;
	m->serve_fd = fd;
	m->serve_port = port;
	m->serve_address = mem_strndup(address.ptr, address.len);
	return ERR_OK;
}

enum err_code
serve_open(struct master *m, struct err *reterr)
{
	return move(m, reterr);
}

void
serve_change(struct master *m)
{
	const struct seat *s = &m->workers[0];
	struct err e;
	if (str_eq(wanted(m), current(m)))
		return;
	if (move(m, &e) != ERR_OK) {
		log_error("the sandbox is still lent where it was", LOG_ERR(&e));
		return;
	}
	if (s->child != NULL)
		dispatch_send_serve(s->child, m->serve_fd);
	if (s->next != NULL)
		dispatch_send_serve(s->next, m->serve_fd);
	if (m->serve_fd < 0)
		log_notice("the sandbox is not lent any more");
	serve_tell(m);
}

void
serve_tell(const struct master *m)
{
	if (m->serve_fd >= 0)
		log_notice("lending the sandbox", LOG_C("address", m->serve_address),
		    LOG_INT("serve_port", m->serve_port));
}
