#include "worker/api/sandbox_serve_budget.h"

#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"

#define CLIENT_SIZE 80

struct serve_account {
	uint32_t refs, calls;
	uint64_t bytes;
	char client[CLIENT_SIZE]; /* its key among the clients; "": a session's */
};

struct serve_budget {
	struct map *clients; /* struct serve_account, those that hold something */
	uint64_t bytes;
};

struct serve_budget *
serve_budget_new(void)
{
	struct serve_budget *b = MEM_NEW(struct serve_budget);
	b->clients = map_new();
	return b;
}

void
serve_budget_free(struct serve_budget **bp)
{
	struct serve_budget *b = *bp;
	*bp = NULL;
	if (b == NULL)
		return;
	CHECK(b->bytes == 0 && map_count(b->clients) == 0);
	map_free(&b->clients);
	mem_free(b);
}

uint64_t
serve_budget_bytes(const struct serve_budget *b)
{
	return b->bytes;
}

struct serve_account *
serve_account_new(void)
{
	struct serve_account *a = MEM_NEW(struct serve_account);
	a->refs = 1;
	return a;
}

void
serve_account_put(struct serve_account **ap)
{
	struct serve_account *a = *ap;
	*ap = NULL;
	if (a != NULL && --a->refs == 0)
		mem_free(a);
}

bool
serve_account_is_idle(const struct serve_account *a)
{
	return a->calls == 0;
}

/* Its address without the port; of an IPv6 address the half that one customer has. */
static void
name_client(struct str peer, char dst[CLIENT_SIZE])
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;
	size_t colon = str_rchr(peer, ':');
	struct str host = colon != SIZE_MAX ? str_sub(peer, 0, colon) : peer;
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_sub(host, 1, host.len - 2);
	if (str_copy(text, sizeof(text), host) && inet_pton(AF_INET6, text, &a) == 1 &&
	    !IN6_IS_ADDR_V4MAPPED(&a)) {
		memset(a.s6_addr + 8, 0, 8);
		(void)inet_ntop(AF_INET6, &a, text, sizeof(text));
		(void)snprintf(dst, CLIENT_SIZE, "%s/64", text);
	} else {
		(void)snprintf(
		    dst, CLIENT_SIZE, "%.*s", STR_FMT(str_sub(host, 0, CLIENT_SIZE - 1)));
	}
}

static struct serve_account *
client_of(struct serve_budget *b, struct str peer)
{
	char name[CLIENT_SIZE];
	name_client(peer, name);
	struct serve_account *a = map_get(b->clients, str_c(name));
	if (a != NULL) {
		a->refs++;
		return a;
	}
	a = serve_account_new();
	memcpy(a->client, name, sizeof(name));
	map_put(b->clients, str_c(name), a);
	return a;
}

static void
leave_client(struct serve_budget *b, struct serve_account **ap)
{
	struct serve_account *a = *ap;
	if (a->refs == 1)
		(void)map_del(b->clients, str_c(a->client));
	serve_account_put(ap);
}

enum serve_verdict
serve_claim_begin(struct serve_budget *b, struct str peer, struct serve_account *session,
    uint32_t client_calls, struct serve_claim *ret)
{
	*ret = (struct serve_claim){0};
	if (session->calls >= SERVE_SESSION_MAX_CALLS)
		return SERVE_SESSION_FULL;
	struct serve_account *client = client_of(b, peer);
	if (client->calls >= client_calls) {
		leave_client(b, &client);
		return SERVE_CLIENT_FULL;
	}
	client->calls++;
	session->calls++;
	session->refs++;
	*ret = (struct serve_claim){.budget = b, .client = client, .session = session};
	return SERVE_ADMITTED;
}

enum serve_verdict
serve_claim_add(struct serve_claim *c, uint64_t bytes)
{
	c->bytes += bytes;
	c->session->bytes += bytes;
	c->client->bytes += bytes;
	c->budget->bytes += bytes;
	if (c->session->bytes > SERVE_SESSION_MAX_BYTES)
		return SERVE_SESSION_FULL;
	if (c->client->bytes > SERVE_CLIENT_MAX_BYTES)
		return SERVE_CLIENT_FULL;
	return c->budget->bytes > SERVE_BODIES_MAX_BYTES ? SERVE_FULL : SERVE_ADMITTED;
}

void
serve_claim_end(struct serve_claim *c)
{
	if (c->budget == NULL)
		return;
	c->budget->bytes -= c->bytes;
	c->client->bytes -= c->bytes;
	c->client->calls--;
	c->session->bytes -= c->bytes;
	c->session->calls--;
	leave_client(c->budget, &c->client);
	serve_account_put(&c->session);
	*c = (struct serve_claim){0};
}
