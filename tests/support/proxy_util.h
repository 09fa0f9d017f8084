/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network that fails when the test says so: a process that listens on a port of
 * 127.0.0.1 and passes bytes on to another port.  It can hold them (a partition:
 * connections stay, nothing passes), hold the answers alone, close everything,
 * be slow, and change what it carries.
 *
 * It is a process and no thread, so that it changes nothing of what a test counts.
 * Where it stands is shared memory: whoever sets it need not wait.
 */
#ifndef TESTS_SUPPORT_PROXY_UTIL_H
#define TESTS_SUPPORT_PROXY_UTIL_H

#include "api_util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum proxy_mode {
	PROXY_PASS,
	PROXY_HOLD,    /* nothing passes, and nobody is told */
	PROXY_DEAF,    /* what comes from the server does not pass */
	PROXY_DRIP,    /* of what comes from the server 20 bytes a second pass */
	PROXY_REFUSE   /* all are closed, and new ones at once */
};

struct proxy_shared {
	atomic_int mode;
	atomic_int cuts;    /* one more: all that are open are closed */
	atomic_int delay;   /* ms, of each piece, each way */
	atomic_int bend;    /* one in so many pieces that come from the server
			       has another byte somewhere; 0: none */
	unsigned seed;      /* what is random; set before */
	atomic_int open;    /* connections there are */
	atomic_int seen;    /* that there were */
	atomic_int heard;   /* the mode that it has gone by */
	atomic_int cut;     /* the cuts that it has made */
};

struct proxy {
	pid_t pid;
	unsigned port;      /* its own */
	struct proxy_shared *shared;
};

/* ---- the process ---- */

enum { PROXY_PAIRS = 128, PROXY_PIECE = 65536 };

struct proxy_way {
	char bytes[PROXY_PIECE];
	size_t at, n;       /* those that wait */
	double ready;       /* when they may pass */
	bool full;          /* the last piece was a whole one */
	bool over;          /* nothing comes any more */
};

struct proxy_pair {
	int fd[2];          /* the client's, the server's */
	struct proxy_way way[2]; /* from that one to the other */
};

struct proxy_run {
	struct proxy_shared *shared;
	int listener;
	unsigned to;
	struct proxy_pair *pairs[PROXY_PAIRS];
	int n;
};

static inline int
proxy_socket(unsigned port, bool listens)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)port);
	if (fd < 0)
		return -1;
	setsockopt(fd, listens ? SOL_SOCKET : IPPROTO_TCP,
		   listens ? SO_REUSEADDR : TCP_NODELAY, &one, sizeof(one));
	if (listens ? bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
			      listen(fd, 64) < 0 :
		      connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline void
proxy_drop(struct proxy_run *p, int i)
{
	close(p->pairs[i]->fd[0]);
	close(p->pairs[i]->fd[1]);
	free(p->pairs[i]);
	p->pairs[i] = p->pairs[--p->n];
	atomic_store(&p->shared->open, p->n);
}

static inline void
proxy_accept(struct proxy_run *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), to, one = 1;
	struct proxy_pair *pair;

	if (fd < 0)
		return;
	to = atomic_load(&p->shared->mode) == PROXY_REFUSE ||
			     p->n == PROXY_PAIRS ?
		     -1 :
		     proxy_socket(p->to, false);
	pair = to < 0 ? NULL : calloc(1, sizeof(*pair));
	if (pair == NULL) {
		close(fd);
		if (to >= 0)
			close(to);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fcntl(to, F_SETFL, O_NONBLOCK);
	pair->fd[0] = fd;
	pair->fd[1] = to;
	p->pairs[p->n++] = pair;
	atomic_store(&p->shared->open, p->n);
	atomic_fetch_add(&p->shared->seen, 1);
}

/* Is this a digit of a length, "$12" or "*3"? */
static inline bool
proxy_is_length(const char *bytes, size_t at)
{
	while (at > 0 && bytes[at] >= '0' && bytes[at] <= '9')
		at--;
	return (bytes[at] == '$' || bytes[at] == '*') &&
	       (at == 0 || bytes[at - 1] == '\n');
}

/* Of a protocol that counts in digits, and ends lines.  No other digit comes in,
   for another number that is one, say a lease of hours, is believed. */
static inline void
proxy_bend(struct proxy_shared *s, struct proxy_way *w)
{
	static const char likely[] = "0123456789-\r\n$*:+";
	size_t at = (size_t)rand_r(&s->seed) % w->n;
	int one_in = atomic_load(&s->bend);
	char c = (char)rand_r(&s->seed);

	if (one_in == 0 || rand_r(&s->seed) % one_in != 0)
		return;
	if (rand_r(&s->seed) % 2 == 0)
		c = likely[(size_t)rand_r(&s->seed) % (sizeof(likely) - 1)];
	if (c < '0' || c > '9' || proxy_is_length(w->bytes, at))
		w->bytes[at] = c;
	else
		w->bytes[at] = 'x';
}

/* One step of one way; false: the pair is over. */
static inline bool
proxy_step(struct proxy_run *p, struct proxy_pair *pair, int from)
{
	struct proxy_way *w = &pair->way[from];
	bool drips;
	ssize_t n;

	if (w->n == 0) {
		n = recv(pair->fd[from], w->bytes, sizeof(w->bytes), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n > 0) {
			/* More was waiting behind one that filled the room: a
			   stream keeps its pace when we come late. */
			w->ready = (w->full ? w->ready : t_now()) +
				   atomic_load(&p->shared->delay) / 1000.0;
			w->at = 0;
			w->n = (size_t)n;
			w->full = w->n == sizeof(w->bytes);
			if (from == 1)
				proxy_bend(p->shared, w);
		}
	}
	if (w->n == 0 || t_now() < w->ready)
		return true;
	drips = from == 1 && atomic_load(&p->shared->mode) == PROXY_DRIP;
	n = send(pair->fd[1 - from], w->bytes + w->at, drips ? 1 : w->n,
		 MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (drips)
		w->ready = t_now() + 0.05;
	w->at += (size_t)n;
	w->n -= (size_t)n;
	return true;
}

static inline void
proxy_turn(struct proxy_run *p)
{
	int mode = atomic_load(&p->shared->mode), i, from;
	int cuts = atomic_load(&p->shared->cuts);
	struct pollfd fds[2 * PROXY_PAIRS + 1];
	struct proxy_way *w;

	fds[0] = (struct pollfd){ .fd = p->listener,
				  .events = mode == PROXY_HOLD ? 0 : POLLIN };
	for (i = 0; i < 2 * p->n; i++)
		fds[1 + i] = (struct pollfd){ .fd = p->pairs[i / 2]->fd[i % 2] };
	for (i = 0; i < 2 * p->n; i++) {
		w = &p->pairs[i / 2]->way[i % 2];
		if (mode == PROXY_HOLD || (mode == PROXY_DEAF && i % 2 == 1))
			fds[1 + i].fd = -1;
		else if (w->n == 0)
			fds[1 + i].events |= POLLIN;
		else if (w->ready <= t_now() && fds[1 + (i ^ 1)].fd >= 0)
			fds[1 + (i ^ 1)].events |= POLLOUT;
	}
	poll(fds, (nfds_t)(2 * p->n + 1), 1);
	for (i = p->n - 1; i >= 0; i--)
		for (from = 0; from < 2; from++) {
			if (mode == PROXY_HOLD ||
			    (mode == PROXY_DEAF && from == 1))
				continue;
			if (mode == PROXY_REFUSE ||
			    !proxy_step(p, p->pairs[i], from)) {
				proxy_drop(p, i);
				break;
			}
		}
	if (cuts != atomic_load(&p->shared->cut)) {
		while (p->n > 0)
			proxy_drop(p, 0);
		atomic_store(&p->shared->cut, cuts);
	}
	if (fds[0].revents != 0)
		proxy_accept(p);
	atomic_store(&p->shared->heard, mode);
}

/* ---- the test's side ---- */

/* Between a port of its own and that one. */
static inline struct proxy
proxy_start(unsigned to)
{
	struct proxy p = { .shared = mmap(NULL, sizeof(*p.shared),
					  PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	pid_t test = getpid();
	struct proxy_run run = { .shared = p.shared, .to = to };

	ck_assert_ptr_ne(p.shared, MAP_FAILED);
	run.listener = proxy_socket(0, true);
	ck_assert_int_ge(run.listener, 0);
	OK(getsockname(run.listener, (struct sockaddr *)&a, &len));
	p.port = ntohs(a.sin_port);
	p.pid = fork();
	ck_assert_int_ge(p.pid, 0);
	if (p.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Nothing else of the test's stays open by this. */
		if (getppid() != test || dup2(run.listener, 3) < 0 ||
		    syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
			_exit(1);
		run.listener = 3;
		for (;;)
			proxy_turn(&run);
	}
	close(run.listener);
	return p;
}

/* When this returns it goes by the new mode. */
static inline void
proxy_set(struct proxy *p, enum proxy_mode mode)
{
	atomic_store(&p->shared->mode, mode);
	UNTIL(atomic_load(&p->shared->heard) == (int)mode);
}

/* All connections end; new ones are fine. */
static inline void
proxy_cut(struct proxy *p)
{
	int cuts = atomic_fetch_add(&p->shared->cuts, 1) + 1;

	UNTIL(atomic_load(&p->shared->cut) >= cuts);
}

static inline void
proxy_end(struct proxy *p)
{
	if (p->pid <= 0)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	munmap(p->shared, sizeof(*p->shared));
	p->pid = 0;
}

#endif
