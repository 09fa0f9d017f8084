/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster over Redis with a network between: transactions of one addition
 * by functions that do nothing else, on 1, 2 and 4 nodes.  All connections go
 * through a process that keeps each byte for 0, 1, 2 or 4 ms, in both
 * directions.  Mixed: every other function is a plain one that does nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_redis.h"

#define DELAYS 4
#define SIZES 3
#define NODES_MOST 4
#define WORKERS 2 /* of each node */
#define ROUNDS 3
#define WARM 4000
#define SAMPLE_SECONDS 0.5

static const unsigned delays[DELAYS] = { 0, 1, 2, 4 }; /* ms, each way */
static const unsigned sizes[SIZES] = { 1, 2, NODES_MOST };

/* ---- the process between ---- */

#define PAIRS 32
#define PIECE ((size_t)64 << 10)

/* Bytes that came together. */
struct piece {
	struct piece *next;
	uint64_t due;
	size_t n, sent;
	char bytes[];
};

struct way {
	int from, to;
	struct piece *first, **end;
};

struct between {
	int door, port;
	uint64_t delay_ns;
	unsigned n; /* ways, two for each connection */
	struct way ways[2 * PAIRS];
};

static void
quick(int fd)
{
	const int yes = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0)
		bench_must_sys(errno, "TCP_NODELAY");
}

static struct sockaddr_in
here(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)port);
	return at;
}

static void
add_pair(struct between *b)
{
	struct sockaddr_in at = here(b->port);
	int there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int near = accept(b->door, NULL, NULL);
	unsigned i;

	if (near < 0 || there < 0 || b->n + 2 > 2 * PAIRS ||
	    connect(there, (struct sockaddr *)&at, sizeof(at)) != 0)
		bench_must_sys(errno, "a connection through the delay");
	quick(near);
	quick(there);
	b->ways[b->n++] = (struct way){ .from = near, .to = there };
	b->ways[b->n++] = (struct way){ .from = there, .to = near };
	for (i = b->n - 2; i < b->n; i++)
		b->ways[i].end = &b->ways[i].first;
}

/* The end of a stream is passed on at once: nobody measures it. */
static void
take(const struct between *b, struct way *w)
{
	struct piece *p = malloc(sizeof(*p) + PIECE);
	ssize_t n;

	if (!p)
		bench_must_sys(ENOMEM, "malloc");
	n = recv(w->from, p->bytes, PIECE, MSG_DONTWAIT);
	if (n <= 0) {
		free(p);
		if (n < 0 && errno == EAGAIN)
			return;
		shutdown(w->to, SHUT_WR);
		w->from = -1;
		return;
	}
	p = realloc(p, sizeof(*p) + (size_t)n);
	p->next = NULL;
	p->due = bench_now() + b->delay_ns;
	p->n = (size_t)n;
	p->sent = 0;
	*w->end = p;
	w->end = &p->next;
}

static void
pass_on(struct way *w, uint64_t now)
{
	struct piece *p;
	ssize_t n;

	while ((p = w->first) != NULL && p->due <= now) {
		n = send(w->to, p->bytes + p->sent, p->n - p->sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		p->sent += n < 0 ? p->n - p->sent : (size_t)n;
		if (p->sent < p->n)
			return;
		w->first = p->next;
		if (!w->first)
			w->end = &w->first;
		free(p);
	}
}

static _Noreturn void
stand_between(struct between *b)
{
	struct pollfd fds[1 + 2 * PAIRS] = {
		{ .fd = b->door, .events = POLLIN },
	};
	struct timespec left;
	uint64_t now, next;
	unsigned i;

	for (;;) {
		now = bench_now();
		next = now + 1000000000;
		for (i = 0; i < b->n; i++) {
			struct way *w = &b->ways[i];

			pass_on(w, now);
			fds[1 + i] = (struct pollfd){ .fd = w->from,
						      .events = POLLIN };
			/* One that is full is tried again soon. */
			if (w->first && w->first->due <= now)
				next = now + 100000;
			else if (w->first && w->first->due < next)
				next = w->first->due;
		}
		left.tv_sec = (time_t)((next - now) / 1000000000);
		left.tv_nsec = (long)((next - now) % 1000000000);
		(void)ppoll(fds, 1 + b->n, &left, NULL);
		for (i = 0; i < b->n; i++)
			if (fds[1 + i].revents)
				take(b, &b->ways[i]);
		if (fds[0].revents)
			add_pair(b);
	}
}

/* Start that process: *ret is the server as it is seen through it. */
static void
far_start(const struct bench_server *s, unsigned ms, struct bench_server *ret)
{
	struct between b = { .port = s->port,
			     .delay_ns = (uint64_t)ms * 1000000 };
	struct sockaddr_in at = here(0);
	socklen_t n = sizeof(at);
	pid_t parent = getpid();

	b.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (b.door < 0 || bind(b.door, (struct sockaddr *)&at, n) != 0 ||
	    listen(b.door, PAIRS) != 0 ||
	    getsockname(b.door, (struct sockaddr *)&at, &n) != 0)
		bench_must_sys(errno, "a free port");
	*ret = *s;
	ret->port = ntohs(at.sin_port);
	ret->pid = fork();
	if (ret->pid < 0)
		bench_must_sys(errno, "fork");
	if (ret->pid > 0) {
		close(b.door);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A delay is exact to some 10 us, not to the usual 50. */
	prctl(PR_SET_TIMERSLACK, 1000);
	if (getppid() != parent)
		_exit(1);
	stand_between(&b);
}

static void
far_end(const struct bench_server *far)
{
	kill(far->pid, SIGKILL);
	while (waitpid(far->pid, NULL, 0) < 0)
		if (errno != EINTR)
			bench_must_sys(errno, "waitpid");
}

/* ---- a point ---- */

struct point {
	struct bench_cluster ours;
	const struct bench_server *server;
	pid_t nodes[NODES_MOST];
	unsigned n_nodes, n; /* n: functions of a sample */
	bool mixed; /* every other function is plain, and does nothing */
};

/* Seconds. */
static double
add_up(const struct point *p, unsigned n)
{
	const evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	uint64_t t0 = bench_now();
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < n && st == 0; i++)
		st = p->mixed && i % 2 == 0 ?
			     evc_schedule(p->ours.cluster, NOTHING, NULL, NULL,
					  NULL, NULL) :
			     evc_schedule_pack(p->ours.cluster, ADDS, &txn,
					       NULL, "[i]", 1);
	if (st == 0)
		st = evc_cluster_join(p->ours.cluster, INFINITY);
	bench_must(st > 0 ? -st : st, "a transaction");
	return (double)(bench_now() - t0) / 1e9;
}

/* Thousand a second. */
static double
sample(void *arg)
{
	const struct point *p = arg;

	return p->n / add_up(p, p->n) / 1e3;
}

static void
cpu_times(struct point *p, const char *metric)
{
	const char *unit = "us-a-function";
	double here = -bench_cpu_time(0), nodes = 0, there, server;
	unsigned i;

	for (i = 0; i < p->n_nodes; i++)
		nodes -= bench_cpu_time(p->nodes[i]);
	there = -bench_cluster_cpu_time(&p->ours);
	server = -bench_cpu_time(p->server->pid);
	(void)sample(p);
	here += bench_cpu_time(0);
	for (i = 0; i < p->n_nodes; i++)
		nodes += bench_cpu_time(p->nodes[i]);
	there += bench_cluster_cpu_time(&p->ours);
	server += bench_cpu_time(p->server->pid);
	bench_count(metric, BENCH_OURS "/coordinator", here / p->n * 1e6,
		    unit);
	bench_count(metric, BENCH_OURS "/nodes", nodes / p->n * 1e6, unit);
	bench_count(metric, BENCH_OURS "/workers", there / p->n * 1e6, unit);
	bench_count(metric, BENCH_OURS "/server", server / p->n * 1e6, unit);
}

static void
measure(const struct bench_server *s, const struct bench_server *far,
	unsigned ms, unsigned n_nodes)
{
	struct point p = { .server = s, .n_nodes = n_nodes };
	const struct bench_side sides[] = { { BENCH_OURS, sample, &p, 0 } };
	char metric[48], ns[16];
	unsigned i;

	snprintf(metric, sizeof(metric), "redis-far-%ums-%u-nodes", ms,
		 n_nodes);
	snprintf(ns, sizeof(ns), "far%u", n_nodes);
	for (i = 0; i < n_nodes; i++)
		p.nodes[i] = bench_node_start(far, ns, WORKERS);
	bench_server_open(far, ns, &p.ours, NULL);
	bench_cluster_until_up(&p.ours, n_nodes * WORKERS);
	(void)add_up(&p, WARM);
	p.n = (unsigned)(WARM / add_up(&p, WARM) * SAMPLE_SECONDS) + WARM;
	bench_compare_rates(metric, "k/s", sides, 1, ROUNDS);
	if (n_nodes == NODES_MOST) {
		p.mixed = true;
		strcat(metric, "-mixed");
		bench_compare_rates(metric, "k/s", sides, 1, ROUNDS);
		p.mixed = false;
		strcpy(strrchr(metric, '-'), "-cpu");
		cpu_times(&p, metric);
	}
	bench_cluster_close(&p.ours);
	for (i = 0; i < n_nodes; i++)
		bench_node_end(p.nodes[i]);
}

void
bench_redis_far(void)
{
	struct bench_server s, far;
	unsigned i, k;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&s, "redis-far"))
		return;
	for (i = 0; i < DELAYS; i++) {
		far_start(&s, delays[i], &far);
		for (k = 0; k < SIZES; k++)
			measure(&s, &far, delays[i], sizes[k]);
		far_end(&far);
	}
	bench_server_end(&s);
}
