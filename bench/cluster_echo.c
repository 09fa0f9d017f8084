/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of workers that are processes: forked ones that send back what they
 * get, over the same kind of socketpairs.  As many frames as there are go by
 * one call, and nobody looks into them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

#define ROOM 65536

static void
write_all(int fd, const char *data, size_t n)
{
	ssize_t put;

	while (n > 0) {
		put = send(fd, data, n, MSG_NOSIGNAL);
		if (put < 0)
			bench_must_sys(errno, "send of frames");
		data += put;
		n -= (size_t)put;
	}
}

static _Noreturn void
echo(int fd)
{
	static char room[ROOM];
	ssize_t got;

	while ((got = read(fd, room, sizeof(room))) > 0)
		write_all(fd, room, (size_t)got);
	_exit(0);
}

void
bench_echo_start(struct bench_echo *e, unsigned n, int cpu)
{
	unsigned i, k;
	int fd[2];

	e->n = n;
	for (i = 0; i < n; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
			bench_must_sys(errno, "socketpair");
		e->pid[i] = fork();
		if (e->pid[i] < 0)
			bench_must_sys(errno, "fork");
		if (e->pid[i] == 0) {
			for (k = 0; k < i; k++)
				close(e->fd[k]);
			close(fd[0]);
			if (cpu >= 0)
				bench_pin(cpu, cpu);
			echo(fd[1]);
		}
		close(fd[1]);
		e->fd[i] = fd[0];
	}
}

/* What is on its way to and from one of them. */
struct lane {
	int fd;
	unsigned to_send, to_come; /* frames */
	size_t part;               /* bytes of one that is not whole yet */
};

static void
lane_send(struct lane *l, unsigned most)
{
	static char room[ROOM];
	unsigned n = l->to_send < most ? l->to_send : most;

	if (n == 0)
		return;
	write_all(l->fd, room, (size_t)n * BENCH_FRAME);
	l->to_send -= n;
}

static void
lane_come(struct lane *l)
{
	static char room[ROOM];
	ssize_t got = read(l->fd, room, sizeof(room));
	unsigned n;

	if (got <= 0)
		bench_must_sys(got < 0 ? errno : EPIPE, "read of frames");
	l->part += (size_t)got;
	n = (unsigned)(l->part / BENCH_FRAME);
	l->part %= BENCH_FRAME;
	l->to_come -= n;
	lane_send(l, n);
}

double
bench_echo_work(struct bench_echo *e, unsigned frames, unsigned window)
{
	struct epoll_event ev[4] = { { 0 } };
	struct lane lanes[4];
	unsigned i, open = e->n;
	int k, n, ep = epoll_create1(EPOLL_CLOEXEC);
	uint64_t t0;

	if (ep < 0)
		bench_must_sys(errno, "epoll_create1");
	for (i = 0; i < e->n; i++) {
		lanes[i] = (struct lane){
			.fd = e->fd[i],
			.to_send = frames / e->n,
			.to_come = frames / e->n,
		};
		ev[0].events = EPOLLIN;
		ev[0].data.u32 = i;
		if (epoll_ctl(ep, EPOLL_CTL_ADD, e->fd[i], &ev[0]) != 0)
			bench_must_sys(errno, "epoll_ctl");
	}
	t0 = bench_now();
	for (i = 0; i < e->n; i++)
		lane_send(&lanes[i], window / e->n);
	while (open > 0) {
		n = epoll_wait(ep, ev, 4, -1);
		if (n < 0)
			bench_must_sys(errno, "epoll_wait");
		for (k = 0; k < n; k++) {
			lane_come(&lanes[ev[k].data.u32]);
			open -= lanes[ev[k].data.u32].to_come == 0;
		}
	}
	t0 = bench_now() - t0;
	close(ep);
	return (double)t0 / 1e9;
}

void
bench_echo_ping(struct bench_echo *e)
{
	char frame[BENCH_FRAME] = { 0 };
	size_t have = 0;
	ssize_t got;

	write_all(e->fd[0], frame, sizeof(frame));
	while (have < sizeof(frame)) {
		got = read(e->fd[0], frame, sizeof(frame) - have);
		if (got <= 0)
			bench_must_sys(got < 0 ? errno : EPIPE,
				       "read of a frame");
		have += (size_t)got;
	}
}

double
bench_echo_cpu_time(const struct bench_echo *e)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < e->n; i++)
		sum += bench_cpu_time(e->pid[i]);
	return sum;
}

void
bench_echo_end(struct bench_echo *e)
{
	unsigned i;

	for (i = 0; i < e->n; i++)
		close(e->fd[i]);
	for (i = 0; i < e->n; i++) {
		while (waitpid(e->pid[i], NULL, 0) < 0)
			if (errno != EINTR)
				bench_must_sys(errno, "waitpid");
	}
}
