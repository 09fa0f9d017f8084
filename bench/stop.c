/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a running program pays: the stop check in a loop, against the same
 * loop with nothing in it and with a bare atomic load; and a request that
 * nobody waits for, against what it cannot do without, one compare-and-swap
 * and the look at two clocks.
 */
#include <time.h>

#include "bench.h"

#define CHECKS 200000u
#define REQUESTS 2000u

/* The bare word has a line of its own, as the coordinator's has. */
static struct {
	uint64_t word;
	char pad[56];
} bare __attribute__((aligned(64)));

typedef uint64_t check_fn(const void *word);

BENCH_ALIGNED static uint64_t
check_ours(const void *word)
{
	const evc_coord *c = word;
	uint64_t i;

	for (i = 0; i < CHECKS; i++) {
		if (evc_should_stop(c))
			break;
	}
	return i;
}

BENCH_ALIGNED static uint64_t
check_bare(const void *word)
{
	const uint64_t *w = word;
	uint64_t i;

	for (i = 0; i < CHECKS; i++) {
		if (__atomic_load_n(w, __ATOMIC_ACQUIRE) & 1)
			break;
	}
	return i;
}

BENCH_ALIGNED static uint64_t
check_empty(const void *word)
{
	uint64_t i;

	(void)word;
	for (i = 0; i < CHECKS; i++)
		__asm__ volatile("");
	return i;
}

/* What is to be checked, by one thread or by two at the same time. */
struct checker {
	check_fn *fn;
	const void *word;
	struct partner *partner;
};

/* The second thread.  The two meet by spinning: a wake-up would take longer
   than the loop. */
struct partner {
	int cpu;
	bool quit;
	uint32_t order;     /* checker -> partner: run once more */
	uint32_t here;      /* partner -> checker: it spins and is ready */
	uint32_t go;        /* checker -> partner: now */
	uint32_t done;      /* partner -> checker: took is filled */
	struct checker *what;
	double took;
};

static double
timed(const struct checker *k)
{
	uint64_t t0 = bench_now(), ran;

	ran = k->fn(k->word);
	if (ran != CHECKS)
		bench_must(-EVC_INTERNAL, "a stop that nobody asked for");
	return (double)(bench_now() - t0) / CHECKS;
}

static void *
run_partner(void *arg)
{
	struct partner *p = arg;
	uint32_t turn = 0;

	bench_pin(p->cpu, p->cpu);
	for (;;) {
		bench_wait_until(&p->order, ++turn);
		if (p->quit)
			return NULL;
		__atomic_store_n(&p->here, turn, __ATOMIC_RELEASE);
		while (__atomic_load_n(&p->go, __ATOMIC_ACQUIRE) != turn)
			;
		p->took = timed(p->what);
		__atomic_store_n(&p->done, turn, __ATOMIC_RELEASE);
		bench_futex_wake(&p->done, 1);
	}
}

static double
sample_check(void *arg)
{
	struct checker *k = arg;
	struct partner *p = k->partner;
	uint32_t turn;
	double took;

	if (!p)
		return timed(k);
	turn = p->order + 1;
	p->what = k;
	__atomic_store_n(&p->order, turn, __ATOMIC_RELEASE);
	bench_futex_wake(&p->order, 1);
	while (__atomic_load_n(&p->here, __ATOMIC_ACQUIRE) != turn)
		;
	__atomic_store_n(&p->go, turn, __ATOMIC_RELEASE);
	took = timed(k);
	bench_wait_until(&p->done, turn);
	return took > p->took ? took : p->took;
}

void
bench_stop(void)
{
	struct partner p = { 0 };
	struct checker ours = { check_ours, NULL, NULL };
	struct checker load = { check_bare, &bare.word, NULL };
	struct checker empty = { check_empty, NULL, NULL };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_check, &ours, 0 },
		{ "raw/bare-empty-loop", sample_check, &empty, 1.05 },
		{ "raw/bare-load", sample_check, &load, 1.05 },
	};
	evc_coord *c;
	pthread_t t;
	int cpu[2], n;

	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	ours.word = c;
	n = bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	bench_compare("stop-check-1-thread", "ns", sides, 3, 301, 5, NULL);
	if (n < 2) {
		bench_skip("stop-check-2-threads", "one cpu only");
	} else {
		p.cpu = cpu[1];
		ours.partner = load.partner = empty.partner = &p;
		t = bench_thread(run_partner, &p, 0);
		bench_compare("stop-check-2-threads", "ns", sides, 3, 301, 5,
			      NULL);
		p.quit = true;
		__atomic_store_n(&p.order, p.order + 1, __ATOMIC_RELEASE);
		bench_futex_wake(&p.order, 1);
		bench_must_sys(pthread_join(t, NULL), "pthread_join");
	}
	bench_must(evc_free(c), "evc_free");
}

static double
sample_request(void *arg)
{
	evc_coord *c = arg;
	uint64_t t0 = bench_now();
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < REQUESTS && st == 0; i++) {
		(void)evc_request_stop(c, 0, "bench");
		st = evc_clear_stop(c);
	}
	t0 = bench_now() - t0;
	bench_must(st, "evc_clear_stop");
	return (double)t0 / REQUESTS;
}

static double
sample_cas(void *arg)
{
	uint64_t *w = arg, t0 = bench_now();
	struct timespec mono, wall;
	unsigned i;

	for (i = 0; i < REQUESTS; i++) {
		uint64_t seen = __atomic_load_n(w, __ATOMIC_ACQUIRE);

		clock_gettime(CLOCK_MONOTONIC, &mono);
		clock_gettime(CLOCK_REALTIME, &wall);
		__atomic_compare_exchange_n(w, &seen, seen + 2, false,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return (double)(bench_now() - t0) / REQUESTS;
}

void
bench_request(void)
{
	struct bench_side sides[] = {
		{ BENCH_OURS, sample_request, NULL, 0 },
		{ "raw/bare-cas-and-two-clocks", sample_cas, &bare.word, 3 },
	};
	evc_coord *c;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	sides[0].arg = c;
	bench_compare("request-and-clear", "ns", sides, 2, 301, 5, NULL);
	bench_must(evc_free(c), "evc_free");
}
