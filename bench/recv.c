/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop of threads that are blocked in recv(2): from the request until the
 * last of them has ended and its join returned, by each way to wake them.
 * Beside it, in turns, what a program by itself can do at best with plain
 * threads on the same sockets: shutdown(2) of each, or a signal to each, then
 * pthread_join of each.  Kicks come a millisecond after the stop, so that who
 * heard it by himself is left in peace: their limit is signals that come as
 * late.  All threads of a turn are new ones, for the end of a thread is part of
 * it.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crowd.h"

#define THREADS 100
#define STACK (64 * 1024)
#define BARE_SIGNAL SIGUSR1

struct sockets {
	struct crowd crowd;
	evc_coord *c;
	int peer[THREADS]; /* the other ends; nothing is ever sent */
	/* How ours are woken. */
	evc_fn *fn;
	evc_member_opts opts;
};

static void
in_recv(struct waiter *w)
{
	char byte;

	if (recv(w->fd, &byte, 1, 0) > 0)
		bench_must(-EVC_INTERNAL, "a byte that nobody has sent");
}

static void
in_wait_fd(struct waiter *w)
{
	if (evc_wait_fd(w->c, w->fd, EVC_READ, INFINITY, NULL) !=
	    -EVC_CANCELLED)
		bench_must(-EVC_INTERNAL, "evc_wait_fd without a stop");
}

static void
shut(void *arg)
{
	struct waiter *w = arg;

	(void)shutdown(w->fd, SHUT_RDWR);
}

static evc_status
ended(evc_coord *c)
{
	return evc_should_stop(c) ? EVC_CANCELLED : EVC_INTERNAL;
}

static evc_status
run_plain(evc_coord *c, void *arg)
{
	crowd_turn(arg, in_recv);
	return ended(c);
}

static evc_status
run_hook(evc_coord *c, void *arg)
{
	evc_id id;

	bench_must(evc_cancel_push(c, shut, arg, 0, &id), "evc_cancel_push");
	crowd_turn(arg, in_recv);
	bench_must(evc_cancel_pop(c, id), "evc_cancel_pop");
	return ended(c);
}

static evc_status
run_wait_fd(evc_coord *c, void *arg)
{
	crowd_turn(arg, in_wait_fd);
	return ended(c);
}

static void *
run_bare(void *arg)
{
	crowd_turn(arg, in_recv);
	return NULL;
}

static void
open_all(struct sockets *s)
{
	int fds[2];
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
			bench_must_sys(errno, "socketpair");
		s->crowd.w[i].fd = fds[0];
		s->peer[i] = fds[1];
	}
	crowd_expect(&s->crowd);
}

static void
close_all(struct sockets *s)
{
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		close(s->crowd.w[i].fd);
		close(s->peer[i]);
	}
}

/* Milliseconds since t0. */
static double
since(uint64_t t0)
{
	return (double)(bench_now() - t0) / 1e6;
}

static double
sample_ours(void *arg)
{
	struct sockets *s = arg;
	struct waiter *w = s->crowd.w;
	evc_status st;
	uint64_t t0;
	double took;
	unsigned i;

	open_all(s);
	for (i = 0; i < THREADS; i++)
		bench_must(evc_thread_start(s->c, "recv", s->fn, &w[i],
					    &s->opts, NULL),
			   "evc_thread_start");
	crowd_gather(&s->crowd);
	t0 = bench_now();
	(void)evc_request_stop(s->c, 0, "bench");
	st = evc_join(s->c, NULL, NULL);
	took = since(t0);
	bench_must(-st, "evc_join");
	bench_must(evc_clear_stop(s->c), "evc_clear_stop");
	close_all(s);
	return took;
}

static double
sample_bare(struct sockets *s, bool by_signal, double after)
{
	struct waiter *w = s->crowd.w;
	uint64_t t0;
	double took;
	unsigned i;

	open_all(s);
	for (i = 0; i < THREADS; i++)
		w[i].thread = bench_thread(run_bare, &w[i], STACK);
	crowd_gather(&s->crowd);
	t0 = bench_now();
	if (after > 0)
		bench_sleep(after);
	for (i = 0; i < THREADS; i++) {
		if (by_signal)
			pthread_kill(w[i].thread, BARE_SIGNAL);
		else
			shut(&w[i]);
	}
	for (i = 0; i < THREADS; i++)
		bench_must_sys(pthread_join(w[i].thread, NULL),
			       "pthread_join");
	took = since(t0);
	close_all(s);
	return took;
}

static double
sample_shutdown(void *arg)
{
	return sample_bare(arg, false, 0);
}

static double
sample_signal(void *arg)
{
	return sample_bare(arg, true, 0);
}

static double
sample_late_signal(void *arg)
{
	return sample_bare(arg, true, 1e-3);
}

static void
no_op(int signo)
{
	(void)signo;
}

static void
measure(const char *metric, evc_fn *fn, unsigned flags,
	void (*unblock)(void *arg), double goal, int cpu, int or_cpu)
{
	struct sockets s = {
		.fn = fn,
		.opts = {
			.stack = STACK,
			.flags = flags,
			.unblock = unblock,
		},
	};
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &s, 0 },
		{ "raw/bare-shutdown-each", sample_shutdown, &s,
		  flags & EVC_KICK ? 0 : goal },
		{ "raw/bare-signal-each", sample_signal, &s, 0 },
		{ "raw/bare-signal-each-1-ms-late", sample_late_signal, &s,
		  goal },
	};
	unsigned n_sides = flags & EVC_KICK ? 4 : 3;
	unsigned i;

	bench_must(evc_new(NULL, NULL, &s.c), "evc_new");
	crowd_make(&s.crowd, THREADS, cpu, or_cpu);
	for (i = 0; i < THREADS; i++)
		s.crowd.w[i].c = s.c;
	bench_compare(metric, "ms", sides, n_sides, 21, 5, NULL);
	crowd_leave(&s.crowd);
	bench_must(evc_free(s.c), "evc_free");
}

void
bench_recv(void)
{
	/* Without SA_RESTART, as the library's own. */
	struct sigaction sa = { .sa_handler = no_op };
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (sigaction(BARE_SIGNAL, &sa, NULL) != 0)
		bench_must_sys(errno, "sigaction");
	measure("recv-100-wait-fd", run_wait_fd, 0, NULL, 1.25, cpu[0],
		cpu[1]);
	measure("recv-100-unblock", run_plain, 0, shut, 1.25, cpu[0], cpu[1]);
	/* A thread that is woken by its hook comes to its pop while the hook
	   still runs, and waits for its return: a switch more for each. */
	measure("recv-100-hook", run_hook, 0, NULL, 1.5, cpu[0], cpu[1]);
	measure("recv-100-kick", run_plain, EVC_KICK, NULL, 1.25, cpu[0],
		cpu[1]);
}
