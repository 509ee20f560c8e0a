/* main.c - the program otari: options, or the role that the master starts it in
 *
 * otari [-c FILE] [-f] [-t] [-V]
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/version.h"
#include "builder/builder.h"
#include "conf/conf.h"
#include "ipc/control_client.h"
#include "ipc/role.h"
#include "master/master.h"
#include "sandbox/spawner/spawner.h"
#include "sweeper/sweeper.h"
#include "worker/worker.h"

#define CONF_DEFAULT    "/etc/otari/otari.conf"
#define RUNNING_WAIT_MS 2000

static int
usage(FILE *out)
{
	(void)fprintf(out, "usage: otari [-c FILE] [-f] [-t] [-V]\n"
			   "  -c FILE  configuration (default " CONF_DEFAULT ")\n"
			   "  -f       stay in the foreground, log to standard error\n"
			   "  -t       check the configuration and say what is wrong\n"
			   "  -V       print the version\n");
	return 2;
}

static int
spawner(int argc, char **argv)
{
	role_set_title(argc, argv, 0, "otari: spawner");
	return spawner_main(argc, argv);
}

/* Started by the master as `otari --role NAME …`; see ipc/role.h. */
static int
run_role(int argc, char **argv)
{
	static const struct {
		enum role role;
		int (*run)(int argc, char **argv);
	} roles[] = {
	    {ROLE_SPAWNER, spawner},
	    {ROLE_BUILDER, builder_main},
	    {ROLE_WORKER, worker_main},
	    {ROLE_SWEEPER, sweeper_main},
	};
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (str_eq(str_c(argv[2]), str_c(role_name(roles[i].role))))
			return roles[i].run(argc, argv);
	return usage(stderr);
}

/* The daemon changes no directory, but a relative name would still mislead in messages. */
static bool
make_absolute(const char *path, char dst[PATH_MAX])
{
	char cwd[PATH_MAX];
	if (path[0] == '/')
		return str_copy(dst, PATH_MAX, str_c(path));
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return false;
	int n = snprintf(dst, PATH_MAX, "%s/%s", cwd, path);
	return n > 0 && n < PATH_MAX;
}

/* For -t: the configuration of the service that runs, if it tells us. */
static int
running_conf(const char *control_socket)
{
	char answer[1024];
	size_t len;
	int fd = -1;
	if (control_ask(control_socket, "conf", RUNNING_WAIT_MS, answer, sizeof(answer), &len, &fd,
		NULL) != ERR_OK)
		return -1;
	return fd;
}

int
main(int argc, char **argv)
{
	static char path[PATH_MAX];
	const char *conf = CONF_DEFAULT;
	bool is_test = false;
	struct master_options o = {0};
	if (argc > 2 && str_eq(str_c(argv[1]), STR("--role")))
		return run_role(argc, argv);
	for (int c; (c = getopt(argc, argv, "c:ftVh")) != -1;) {
		switch (c) {
		case 'c':
			conf = optarg;
			break;
		case 'f':
			o.foreground = true;
			break;
		case 't':
			is_test = true;
			break;
		case 'V':
			(void)printf("otari %s\n", OTARI_VERSION);
			return 0;
		case 'h':
			(void)usage(stdout);
			return 0;
		default:
			return usage(stderr);
		}
	}
	if (optind != argc)
		return usage(stderr);
	if (is_test)
		return conf_test(conf, environ, running_conf, STDOUT_FILENO);
	if (!make_absolute(conf, path)) {
		(void)fprintf(stderr, "otari: %s: path too long\n", conf);
		return 1;
	}
	/* A missing standard descriptor would be taken by a socket or a log. */
	int fd;
	do
		fd = fd_open("/dev/null", O_RDWR, 0);
	while (fd >= 0 && fd <= STDERR_FILENO);
	/* Whatever else the caller had open is none of ours. */
	(void)fd_close_from(STDERR_FILENO + 1);
	o.conf_path = path;
	o.argc = argc;
	o.argv = argv;
	return master_run(&o);
}
