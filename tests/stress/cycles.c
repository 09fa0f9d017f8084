/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hundred thousand times a cancel hook is pushed, a stop is asked for and the
 * hook is popped, at every distance from each other: after a pop no hook is
 * called, and what it was called with has gone.  And some thousand threads that
 * are kicked out of a read.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "enough.h"

#define N_THREADS 4
#define N_CYCLES  100000
#define N_KICKED  400 /* of each thread */

struct hook {
	atomic_int in, over, calls;
	bool repeat;
};

static atomic_long called, cycles, kicked;

static void
wake(void *arg)
{
	struct hook *h = arg;

	MUST(!atomic_load(&h->over));
	MUST(atomic_fetch_add(&h->in, 1) == 0);
	MUST(atomic_fetch_add(&h->calls, 1) == 0 || h->repeat);
	atomic_fetch_sub(&h->in, 1);
}

static struct hook *
push(evc_coord *c, bool repeat, evc_id *ret_id)
{
	struct hook *h = calloc(1, sizeof *h);

	MUST(h != NULL);
	h->repeat = repeat;
	MUST(evc_cancel_push(c, wake, h, repeat ? EVC_CANCEL_REPEAT : 0,
			     ret_id) == 0);
	return h;
}

static void
give_back(struct hook *h)
{
	MUST(atomic_load(&h->in) == 0);
	atomic_store(&h->over, 1);
	atomic_fetch_add(&called, atomic_load(&h->calls) > 0);
	memset(h, 0xff, sizeof *h);
	free(h);
}

static void
one_cycle(evc_coord *c, unsigned i)
{
	bool nested = i % 4 == 3;
	struct hook *outer, *inner = NULL;
	evc_id id = 0, id2 = 0;
	unsigned k;

	outer = push(c, i % 2, &id);
	if (nested)
		inner = push(c, i % 8 == 3, &id2);
	MUST(evc_request_stop(c, 0, "a cycle") == 0);
	/* Each time a little later. */
	for (k = 0; k < (i % 64) * 20; k++)
		atomic_signal_fence(memory_order_seq_cst);
	if (i % 16 == 0)
		while (atomic_load(&outer->calls) == 0)
			sched_yield();
	if (nested && i % 3 != 0)
		MUST(evc_cancel_pop(c, id2) == 0);
	MUST(evc_cancel_pop(c, id) == 0);
	give_back(outer);
	if (nested) {
		MUST(evc_cancel_pop(c, id2) == -EVC_NOT_FOUND);
		give_back(inner);
	}
	MUST(evc_clear_stop(c) == 0);
	atomic_fetch_add(&cycles, 1);
}

static evc_status
blocked(evc_coord *c, void *arg)
{
	char byte;

	while (!evc_should_stop(c))
		MUST(read(*(int *)arg, &byte, 1) < 0 && errno == EINTR);
	atomic_fetch_add(&kicked, 1);
	return 0;
}

static void
one_kick(evc_coord *c, int *fd, unsigned i)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_join_opts o = { .grace = T_LIMIT };
	evc_verdict v;
	unsigned k;

	MUST(evc_thread_start(c, "blocked", blocked, fd, &kick, NULL) == 0);
	/* Before it looks, between look and call, in the call. */
	for (k = 0; k < (i % 100) * 300; k++)
		atomic_signal_fence(memory_order_seq_cst);
	MUST(evc_request_stop(c, 0, "a kick") == 0);
	MUST(evc_join(c, &o, &v) == 0 && v.n_stragglers == 0);
	MUST(evc_clear_stop(c) == 0);
}

static void *
work(void *arg)
{
	evc_coord *c = NULL;
	unsigned i;

	MUST(evc_new(NULL, NULL, &c) == 0);
	for (i = 0; i < N_CYCLES / N_THREADS; i++)
		one_cycle(c, i);
	for (i = 0; i < N_KICKED; i++)
		one_kick(c, arg, i);
	MUST(evc_free(c) == 0);
	return NULL;
}

int
main(void)
{
	int threads = t_count_threads(), fds = t_count_fds(), nobody[2], i;
	pthread_t t[N_THREADS];

	MUST(pipe(nobody) == 0);
	for (i = 0; i < N_THREADS; i++)
		MUST(pthread_create(&t[i], NULL, work, nobody) == 0);
	for (i = 0; i < N_THREADS; i++)
		MUST(pthread_join(t[i], NULL) == 0);
	close(nobody[0]);
	close(nobody[1]);
	printf("cycles: %ld, hooks called in time: %ld, kicked: %ld\n", cycles,
	       called, kicked);
	MUST(cycles == N_CYCLES);
	MUST(called >= N_CYCLES / 16);
	MUST(kicked == N_THREADS * N_KICKED);
	MUST(t_settle_threads(threads) == threads);
	MUST(t_settle_fds(fds) == fds);
	return 0;
}
