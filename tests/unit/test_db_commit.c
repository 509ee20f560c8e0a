/* The one moment when nobody knows: the connection breaks while COMMIT is under way. A proxy
 * between client and server passes COMMIT on, and then lets nothing come back. */
#include <sys/socket.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "storage/sql/store_usage.h"
#include "tests/unit/dbfix.h"

struct proxy {
	int listener, port, server_port;
	atomic_int cuts; /* COMMITs still to be cut */
	bool deliver;    /* the server gets the COMMIT that is cut */
	pthread_t thread;
};

static int
connect_to(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static bool
copy(struct proxy *p, int from, int to, bool is_client)
{
	char bytes[16384];
	ssize_t n = read(from, bytes, sizeof(bytes));
	if (n <= 0)
		return false;
	bool cut = is_client && p->cuts > 0 &&
		   str_find(str_n(bytes, (size_t)n), STR("COMMIT")) != SIZE_MAX;
	if (!cut)
		return write(to, bytes, (size_t)n) == n;
	p->cuts--;
	if (p->deliver) {
		(void)!write(to, bytes, (size_t)n);
		(void)!read(to, bytes, sizeof(bytes)); /* done there, not said here */
	}
	return false;
}

static void *
serve(void *arg)
{
	struct proxy *p = arg;
	for (;;) {
		int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0)
			return NULL;
		int server = connect_to(p->server_port);
		struct pollfd fds[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
		bool go_on = true;
		while (go_on && poll(fds, 2, -1) > 0) {
			if (fds[0].revents != 0)
				go_on = copy(p, client, server, true);
			if (go_on && fds[1].revents != 0)
				go_on = copy(p, server, client, false);
		}
		(void)close(client);
		(void)close(server);
	}
}

static void
proxy_start(struct proxy *p, int server_port, bool deliver)
{
	*p = (struct proxy){.server_port = server_port, .deliver = deliver};
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(p->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(p->listener, 4), 0);
	cr_assert_eq(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
	p->port = ntohs(a.sin_port);
	cr_assert_eq(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void
proxy_stop(struct proxy *p)
{
	(void)shutdown(p->listener, SHUT_RDWR);
	(void)pthread_join(p->thread, NULL);
	(void)close(p->listener);
}

static enum err_code
add_row(struct db *db, void *arg, struct err *reterr)
{
	return db_exec(db, "INSERT INTO w (n) VALUES (?)", DB_ARGS(DB_I64(*(int *)arg)), reterr);
}

static enum err_code
count_rows(struct db *db, void *arg, struct err *reterr)
{
	return db_query_i64(db, "SELECT COUNT(*) FROM w", DB_NO_ARGS, arg, reterr);
}

static void
check(struct dbfix *f, bool deliver, int64_t want_rows)
{
	struct proxy p;
	struct err err = {0};
	struct db *db = NULL;
	char url[128];
	int n = 1;
	int64_t rows = -1;
	proxy_start(&p, f->port, deliver);
	(void)snprintf(url, sizeof(url), "mysql://otari:s%%40cret@127.0.0.1:%d/otari", p.port);
	cr_assert_eq(db_open(str_c(url), DB_OPEN_NOW, &db, &err), ERR_OK, "%s", err.msg);
	p.cuts = 1;
	cr_assert_eq(db_unit(db, DB_WRITE, add_row, &n, &err), ERR_UNCERTAIN, "%s", err.msg);
	cr_assert_eq(db_unit(f->db, DB_READ, count_rows, &rows, &err), ERR_OK);
	cr_assert_eq(rows, want_rows, "not tried again: it might have been twice");
	cr_assert_eq(db_unit(db, DB_READ, count_rows, &rows, &err), ERR_OK, "it connects again");
	/* What may be repeated is. */
	struct usage u = {.request_id = deliver ? STR("r1") : STR("r2"), .user_id = STR("u")};
	struct store_usage_total t;
	p.cuts = 1;
	cr_assert_eq(store_usage_insert(db, &u, 1, NULL, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(store_usage_total(f->db, STR("u"), 0, 1, &t, &err), ERR_OK);
	cr_assert_eq(t.requests, deliver ? 1 : 2);
	/* A cut at the end of a read is not the caller's business. */
	p.cuts = 1;
	cr_assert_eq(db_unit(db, DB_READ, count_rows, &rows, &err), ERR_OK, "%s", err.msg);
	p.cuts = 99;
	cr_assert_eq(store_usage_insert(db, &u, 1, NULL, &err), ERR_UNCERTAIN);
	db_close(&db);
	proxy_stop(&p);
}

Test(db, says_so_when_the_end_of_commit_is_unknown, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct err err = {0};
	dbfix_open(&f, DB_MYSQL);
	cr_assert_eq(db_begin(f.db, DB_WRITE, &err), ERR_OK);
	cr_assert_eq(db_script(f.db, STR("CREATE TABLE w (n INT) ENGINE=InnoDB;\n"), &err), ERR_OK);
	cr_assert_eq(db_commit(f.db, &err), ERR_OK);
	check(&f, true, 1);
	check(&f, false, 1);
	dbfix_close(&f);
}
