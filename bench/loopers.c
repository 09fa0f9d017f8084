/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many loopers on one loop, at 1 s, spread over the second, against as many
 * bare ev_timers: what the process spends on a tick, how late a tick comes,
 * and the bytes of a looper.
 *
 * Both sides have a loop of their own and share one thread on one cpu; in turns
 * each runs for half a second, in which every other one ticks.  A side that
 * comes back finds its ticks overdue; they are run in a warm-up that is not
 * counted.  Loopers keep their place in the second over that; the bare timers,
 * which lose it, are put back at the same places.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define SECOND UINT64_C(1000000000)
#define WARM_UP 0.15 /* seconds */
#define WINDOW 0.5
#define ROUNDS 7

struct side {
	struct ev_loop *loop;
	unsigned n;
	bool counting;
	uint64_t cpu_ns;      /* when the counting began */
	unsigned ticks;
	double *late;         /* us; of the window that is being run: n */
	ev_timer window;      /* begins, then ends the counting */
};

static struct side ours, bare;
/* When each one is due for the first time; both sides have the same. */
static uint64_t *due;
static ev_timer *timers;

static uint64_t
process_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* What each tick does: a look at the clock, and one note. */
static inline void
tick(struct side *s, const uint64_t *first)
{
	if (!s->counting)
		return;
	if (s->ticks < s->n)
		s->late[s->ticks] =
			(double)((bench_now() - *first) % SECOND) / 1e3;
	s->ticks++;
}

static evc_status
run(evc_coord *c, void *arg)
{
	(void)c;
	tick(&ours, arg);
	return 0;
}

static void
bare_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	tick(&bare, w->data);
}

static void
window_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct side *s = w->data;

	(void)revents;
	if (!s->counting) {
		s->counting = true;
		s->cpu_ns = process_cpu();
		return;
	}
	s->cpu_ns = process_cpu() - s->cpu_ns;
	s->counting = false;
	ev_timer_stop(loop, w);
	ev_break(loop, EVBREAK_ALL);
}

/* Nanoseconds of cpu for each tick. */
static double
run_window(struct side *s, double *late)
{
	s->ticks = 0;
	s->late = late;
	ev_now_update(s->loop);
	ev_timer_init(&s->window, window_cb, WARM_UP, WINDOW);
	s->window.data = s;
	ev_timer_start(s->loop, &s->window);
	ev_run(s->loop, 0);
	if (s->ticks < s->n / 4)
		bench_must(-EVC_INTERNAL, "half of the ticks did not come");
	return (double)s->cpu_ns / s->ticks;
}

/* Start them when they are due for the first time, over a second.  Returns the
   bytes that all but the first took; that one pays for what all share. */
static uint64_t
start_ours(evc_coord *c)
{
	const unsigned n = ours.n;
	uint64_t begin = bench_now(), heap = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		while (bench_now() < begin + i * SECOND / n)
			bench_sleep(50e-6);
		due[i] = bench_now();
		bench_must(evc_looper_start(c, "bench", 1.0, run, &due[i],
					    NULL, NULL),
			   "evc_looper_start");
		if (i == 0)
			heap = bench_heap_bytes();
	}
	return bench_heap_bytes() - heap;
}

static uint64_t
start_bare(void)
{
	uint64_t now, heap = 0;
	unsigned i;

	/* What ev_timer_start counts from is the loop's time: not held up
	   between that and ours. */
	do {
		now = bench_now();
		ev_now_update(bare.loop);
	} while (bench_now() - now > 2000);
	for (i = 0; i < bare.n; i++) {
		uint64_t wait = SECOND - (now - due[i]) % SECOND;

		ev_timer_stop(bare.loop, &timers[i]);
		ev_timer_init(&timers[i], bare_cb, (double)wait / 1e9, 1.);
		timers[i].data = &due[i];
		ev_timer_start(bare.loop, &timers[i]);
		if (i == 0)
			heap = bench_heap_bytes();
	}
	return bench_heap_bytes() - heap;
}

static void
end(evc_coord *c, struct ev_loop *loop)
{
	(void)evc_request_stop(c, 0, "over");
	bench_must(evc_run(c, NULL, NULL), "evc_run");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
}

/* Loopers of one name share it; how many bytes when each has its own? */
static double
bytes_with_names(unsigned n)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	uint64_t heap = 0;
	evc_coord *c;
	char name[32];
	unsigned i;

	bench_must(evc_new(loop, NULL, &c), "evc_new");
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "bench-%u", i);
		bench_must(evc_looper_start(c, name, 1.0, run, &due[i], NULL,
					    NULL),
			   "evc_looper_start");
		if (i == 0)
			heap = bench_heap_bytes();
	}
	heap = bench_heap_bytes() - heap;
	end(c, loop);
	return (double)heap / (n - 1);
}

static void
show_bytes(unsigned n, uint64_t of_ours, uint64_t of_bare)
{
	const double each = (double)of_ours / (n - 1);
	char metric[64];

	snprintf(metric, sizeof(metric), "looper-%u-bytes", n);
	if (!bench_alloc_counted()) {
		bench_skip(metric, "no malloc of our own here");
		return;
	}
	bench_count(metric, BENCH_OURS, each, "bytes-each");
	bench_count(metric, "raw/bare-ev_timer",
		    (double)of_bare / (n - 1) + sizeof(ev_timer),
		    "bytes-each");
	bench_goal(metric, "each", each, "bytes", 160);
	snprintf(metric, sizeof(metric), "looper-%u-bytes-own-name", n);
	bench_count(metric, BENCH_OURS, bytes_with_names(n), "bytes-each");
}

/* Both sides in turns.  Each late has room for n in each round; returns how many
   there are in each, packed. */
static unsigned
run_rounds(double *late[2], double cpu_ns[2][ROUNDS])
{
	const unsigned n = ours.n;
	unsigned fewest = n, r, k, at;

	for (r = 0; r < ROUNDS; r++) {
		for (k = 0; k < 2; k++) {
			struct side *s = (r + k) % 2 ? &bare : &ours;

			at = s == &bare;
			if (at)
				(void)start_bare();
			cpu_ns[at][r] = run_window(s, late[at] + r * n);
			if (s->ticks < fewest)
				fewest = s->ticks;
		}
	}
	for (k = 0; k < 2; k++)
		for (r = 1; r < ROUNDS; r++)
			memmove(late[k] + r * fewest, late[k] + r * n,
				fewest * sizeof(*late[k]));
	return fewest;
}

static void
measure(unsigned n)
{
	double cpu_ns[2][ROUNDS], *late[2];
	const struct bench_taken cost[] = {
		{ BENCH_OURS, cpu_ns[0], 0 },
		{ "raw/bare-ev_timer", cpu_ns[1], 1.2 },
	};
	struct bench_taken delay[] = {
		{ BENCH_OURS, NULL, 0 },
		{ "raw/bare-ev_timer", NULL, 1.1 },
	};
	uint64_t heap_ours, heap_bare;
	unsigned per_round;
	char metric[64];
	evc_coord *c;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	due = bench_array(n, sizeof(*due));
	timers = bench_array(n, sizeof(*timers));
	delay[0].figures = late[0] = bench_array(ROUNDS * n, sizeof(**late));
	delay[1].figures = late[1] = bench_array(ROUNDS * n, sizeof(**late));
	ours.n = bare.n = n;
	ours.loop = ev_loop_new(EVFLAG_AUTO);
	bare.loop = ev_loop_new(EVFLAG_AUTO);
	bench_must(evc_new(ours.loop, NULL, &c), "evc_new");

	heap_ours = start_ours(c);
	heap_bare = start_bare();
	per_round = run_rounds(late, cpu_ns);
	snprintf(metric, sizeof(metric), "looper-%u-cpu-a-tick", n);
	bench_compare_taken(metric, "ns", cost, 2, ROUNDS, 1,
			    BENCH_COST);
	snprintf(metric, sizeof(metric), "looper-%u-late", n);
	bench_compare_taken(metric, "us", delay, 2, ROUNDS, per_round,
			    BENCH_TAIL);
	show_bytes(n, heap_ours, heap_bare);

	end(c, ours.loop);
	ev_loop_destroy(bare.loop);
	free(due);
	free(timers);
	free(late[0]);
	free(late[1]);
}

void
bench_loopers(void)
{
	measure(1000);
}

void
bench_loopers_many(void)
{
	measure(100000);
}
