/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A little HTTP server with stop code of its own, which evc-shake shakes:
 *	shaken MODE PORT
 * With the mode "good" it stops well at any moment; each other mode has one
 * fault of the kind that real programs have, see `faults` below.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 100000 /* bytes of a reply */
#define QUIET 20    /* milliseconds without a connection: none is under way */

enum fault {
	GOOD,
	HANG,   /* the set-up forgets a stop that came during it */
	SLEEP,  /* the stop is looked for, and then comes before the sleep */
	LOSE,   /* the handler leaves in the middle of a reply */
	CLOSE,  /* each connection is closed without a reply */
	LEAVE,  /* the handler does not know the child of the set-up yet */
	ZOMBIE, /* a child that has ended is not waited for */
	FILES,  /* the handler leaves, and a file stays */
	CRASH,  /* the handler touches what the set-up has not made yet */
	STATUS, /* a stop is told as an error */
	NEVER,  /* SIGTERM is ignored */
	FAULTS
};

static const char *const faults[] = {
	"good", "hang", "sleep", "lose", "close", "leave", "zombie", "files",
	"crash", "status", "never"
};

static enum fault fault;
static volatile sig_atomic_t stop;
static volatile pid_t child;
static char *volatile made;
static int wake[2]; /* the handler -> the poll of a good program */

static void
on_term(int signo)
{
	(void)signo;
	stop = 1;
	if (fault == LOSE || fault == FILES)
		_exit(0);
	if (fault == LEAVE) {
		if (child > 0)
			kill(child, SIGKILL);
		_exit(0);
	}
	if (fault == CRASH)
		*made = 1;
	if (fault == GOOD && write(wake[1], "", 1) != 1)
		_exit(9);
}

static _Noreturn void
fail(const char *what)
{
	perror(what);
	exit(9);
}

static int
listening(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	a.sin_port = htons((uint16_t)atoi(port));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    listen(fd, 100) != 0)
		fail("listen");
	return fd;
}

/* New connections are no longer begun: their clients try again, and later they
   are refused.  So the queue becomes empty. */
static void
refuse_more(int fd)
{
	/* Byte 13 of a TCP header has the flags, SYN is 2. */
	struct sock_filter no_syn[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog prog = { 4, no_syn };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		fail("filter");
}

static void
send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return;
		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		}
	}
}

static void
answer(int fd)
{
	static char body[SIZE];
	char in[4096], head[200];
	ssize_t n;

	do {
		n = recv(fd, in, sizeof(in), 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0 && fault != CLOSE) {
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n"
			 "Content-Length: %d\r\nConnection: close\r\n\r\n",
			 SIZE);
		send_all(fd, head, strlen(head));
		send_all(fd, body, sizeof(body));
	}
	close(fd);
}

/* Serve whoever waits; -1: nobody. */
static int
serve(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		answer(fd);
	return fd;
}

/* A child that sleeps, or ends at once; it is ready when this returns. */
static pid_t
make_child(bool ends)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready) != 0 || (pid = fork()) < 0)
		fail("fork");
	if (pid == 0) {
		if (write(ready[1], "", 1) != 1)
			_exit(9);
		while (!ends)
			pause();
		_exit(0);
	}
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void
set_up(void)
{
	struct sigaction act = { .sa_handler = on_term };
	char path[300];
	int fd;

	if (fault == NEVER)
		act.sa_handler = SIG_IGN;
	if (pipe(wake) != 0)
		fail("pipe");
	sigaction(SIGTERM, &act, NULL);
	if (fault == LEAVE || fault == ZOMBIE)
		child = make_child(fault == ZOMBIE);
	if (fault == FILES) {
		snprintf(path, sizeof(path), "%s/shaken.XXXXXX",
			 getenv("TMPDIR"));
		fd = mkstemp(path);
		if (fd < 0)
			fail("mkstemp");
		close(fd);
	}
	made = malloc(1);
}

int
main(int argc, char **argv)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int listener;

	while (argc == 3 && fault < FAULTS && strcmp(argv[1], faults[fault]))
		fault++;
	if (argc != 3 || fault == FAULTS)
		return 2;
	set_up();
	p[0].fd = listener = listening(argv[2]);
	p[1].fd = wake[0];
	if (fault == HANG)
		stop = 0;
	while (!stop)
		if (serve(listener) < 0) {
			if (fault == SLEEP)
				poll(p, 1, -1);
			else if (fault == GOOD)
				poll(p, 2, -1);
			else
				poll(p, 1, 10);
		}
	refuse_more(listener);
	while (serve(listener) >= 0 || poll(p, 1, QUIET) > 0)
		;
	close(listener);
	if (fault == LEAVE) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return fault == STATUS ? 3 : 0;
}
