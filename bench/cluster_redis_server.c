/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server for the benchmarks, in a temporary folder, and nodes of it.  All of
 * them end with this process, however that ends.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_redis.h"

#define START_SECONDS 10.

/* A port that nobody has at the moment. */
static int
free_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) != 0)
		bench_must_sys(errno, "a free port");
	close(fd);
	return ntohs(at.sin_port);
}

/* argv[0] is looked for in PATH; what it prints is dropped, for a node's log
   would stand between the figures. */
pid_t
bench_start(char **argv, bool quiet)
{
	pid_t parent = getpid(), pid = fork();
	int null;

	if (pid < 0)
		bench_must_sys(errno, "fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	if (quiet)
		dup2(null, 2);
	execvp(argv[0], argv);
	_exit(127);
}

static bool
is_gone(pid_t pid)
{
	pid_t got = waitpid(pid, NULL, WNOHANG);

	if (got < 0)
		bench_must_sys(errno, "waitpid");
	return got == pid;
}

static redisContext *
connect_to(int port)
{
	const struct timeval patience = { 5, 0 };
	redisContext *c = redisConnectWithTimeout("127.0.0.1", port, patience);

	if (c && c->err) {
		redisFree(c);
		c = NULL;
	}
	return c;
}

static bool
answers(int port)
{
	redisContext *c = connect_to(port);
	redisReply *r = c ? redisCommand(c, "PING") : NULL;
	bool yes = r && r->type == REDIS_REPLY_STATUS;

	if (r)
		freeReplyObject(r);
	if (c)
		redisFree(c);
	return yes;
}

/* false: there is no such program. */
static bool
try_start(struct bench_server *s, const char *program, unsigned clients)
{
	uint64_t until = bench_now() + (uint64_t)(START_SECONDS * 1e9);
	char port[16], socket[96], most[16];
	char *argv[] = {
		(char *)program, (char *)"--port", port,
		(char *)"--bind", (char *)"127.0.0.1",
		(char *)"--save", (char *)"", (char *)"--appendonly",
		(char *)"no", (char *)"--dir", s->folder,
		clients ? (char *)"--unixsocket" : NULL, socket,
		(char *)"--maxclients", most, NULL
	};

	s->port = free_port();
	snprintf(port, sizeof(port), "%d", s->port);
	snprintf(socket, sizeof(socket), "%s/socket", s->folder);
	snprintf(most, sizeof(most), "%u", clients);
	s->pid = bench_start(argv, true);
	while (!answers(s->port)) {
		if (is_gone(s->pid))
			return false;
		if (bench_now() > until)
			bench_must_sys(ETIMEDOUT, program);
		bench_sleep(0.02);
	}
	return true;
}

bool
bench_server_start(struct bench_server *s, const char *metric)
{
	return bench_server_start_for(s, metric, 0);
}

bool
bench_server_start_for(struct bench_server *s, const char *metric,
		       unsigned clients)
{
	static const char *const programs[] = {
		"redis-server", "valkey-server",
	};
	const char *named = getenv("REDIS_SERVER");
	unsigned i;

	snprintf(s->folder, sizeof(s->folder), "/tmp/evcbench.XXXXXX");
	if (!mkdtemp(s->folder))
		bench_must_sys(errno, "mkdtemp");
	if (named && *named && try_start(s, named, clients))
		return true;
	for (i = 0; i < 2; i++) {
		if (try_start(s, programs[i], clients))
			return true;
	}
	rmdir(s->folder);
	bench_skip(metric, "no redis-server (Debian: redis-server)");
	return false;
}

redisContext *
bench_server_connect(const struct bench_server *s)
{
	redisContext *c = connect_to(s->port);

	if (!c)
		bench_must_sys(ECONNREFUSED, "the server");
	return c;
}

static void
end(pid_t pid, int sig)
{
	kill(pid, sig);
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			bench_must_sys(errno, "waitpid");
}

void
bench_server_end(struct bench_server *s)
{
	char socket[96];

	snprintf(socket, sizeof(socket), "%s/socket", s->folder);
	end(s->pid, SIGKILL);
	unlink(socket);
	rmdir(s->folder);
}

/* ---- clusters and nodes ---- */

static void
address(const struct bench_server *s, const char *ns, char *uri, size_t room)
{
	snprintf(uri, room, "redis://127.0.0.1:%d/%s", s->port, ns);
}

void
bench_server_open(const struct bench_server *s, const char *ns,
		  struct bench_cluster *b, struct ev_loop *loop)
{
	char uri[128];

	address(s, ns, uri, sizeof(uri));
	bench_cluster_open(b, uri, NULL, loop);
}

pid_t
bench_node_start(const struct bench_server *s, const char *ns,
		 unsigned n_workers)
{
	char uri[128], n[16];
	char *argv[] = { (char *)"/proc/self/exe", (char *)"--node", uri, n,
			 NULL };

	address(s, ns, uri, sizeof(uri));
	snprintf(n, sizeof(n), "%u", n_workers);
	return bench_start(argv, true);
}

void
bench_node_end(pid_t node)
{
	end(node, SIGTERM);
}

int
bench_node_main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	return bench_cluster_node(argv[0], (unsigned)atoi(argv[1]));
}
