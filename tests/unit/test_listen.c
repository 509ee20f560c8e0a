#include <sys/socket.h>

#include <errno.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "master/listen.h"

Test(listen, port_zero_is_chosen_once_and_joined, .timeout = 10)
{
	uint16_t port = 0;
	int a, b, on = 0;
	socklen_t len = sizeof(on);
	cr_assert_eq(listen_open(STR("127.0.0.1"), &port, true, &a, NULL), ERR_OK);
	cr_assert_neq(port, 0);
	uint16_t same = port;
	cr_assert_eq(listen_open(STR("127.0.0.1"), &same, false, &b, NULL), ERR_OK);
	cr_assert_eq(same, port);
	cr_assert_eq(getsockopt(a, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	cr_assert_neq(on, 0);
	struct err e;
	int c;
	cr_assert_eq(listen_open(STR("127.0.0.1"), &same, true, &c, &e), ERR_IO,
	    "a second server of the same user must not join");
	cr_assert_eq(e.sys_errno, EADDRINUSE);
	close(a);
	close(b);
}

Test(listen, addresses)
{
	static const struct {
		const char *text, *host;
		int port; /* -1: refused */
	} rows[] = {
	    {"127.0.0.1:9000", "127.0.0.1", 9000},
	    {"[::1]:0", "::1", 0},
	    {"0.0.0.0:65535", "0.0.0.0", 65535},
	    {"0.0.0.0:65536", "", -1},
	    {"127.0.0.1", "", -1},
	    {"127.0.0.1:", "", -1},
	    {"127.0.0.1:80x", "", -1},
	    {"", "", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str host = STR_NULL;
		uint16_t port = 0;
		enum err_code rc = listen_split(str_c(rows[i].text), &host, &port, NULL);
		cr_expect_eq(rc, rows[i].port < 0 ? ERR_INPUT : ERR_OK, "%s", rows[i].text);
		if (rc == ERR_OK)
			cr_expect(port == rows[i].port && str_eq(host, str_c(rows[i].host)), "%s",
			    rows[i].text);
	}
	uint16_t port = 0;
	int fd;
	cr_assert_eq(listen_open(STR("localhost"), &port, true, &fd, NULL), ERR_INPUT);
	cr_assert_eq(listen_open(STR("::1"), &port, true, &fd, NULL), ERR_OK);
	close(fd);
}
