/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the timeline costs.  Off: two loads and a branch, in a loop, against the
 * same loop with nothing in it; the library's own stand inside of it, so this is
 * a model of them.  On: a hold begun and ended, which is two events, against the
 * same while it is off.  Tasks leave no events: theirs must not cost more.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define NOTES 200000u
#define PAIRS 2000u

/* As the library has it: a coordinator, its tree, the ring. */
struct tree {
	char before[64];
	void *ring;
};
struct coord {
	char before[256];
	struct tree *tree;
};

static uint64_t noted;

__attribute__((noinline, cold)) static void
note(uint64_t what)
{
	noted += what;
}

BENCH_ALIGNED static uint64_t
notes_off(const struct coord *c)
{
	uint64_t i;

	for (i = 0; i < NOTES; i++) {
		if (__builtin_expect(__atomic_load_n(&c->tree->ring,
						     __ATOMIC_RELAXED) != NULL,
				     0))
			note(i);
		/* As anywhere in a program: all is looked at anew. */
		__asm__ volatile("" ::: "memory");
	}
	return i;
}

BENCH_ALIGNED static uint64_t
notes_none(const struct coord *c)
{
	uint64_t i;

	(void)c;
	for (i = 0; i < NOTES; i++)
		__asm__ volatile("" ::: "memory");
	return i;
}

struct noter {
	uint64_t (*fn)(const struct coord *c);
	struct coord *c;
};

static double
sample_notes(void *arg)
{
	struct noter *n = arg;
	uint64_t t0 = bench_now();

	if (n->fn(n->c) != NOTES)
		abort();
	return (double)(bench_now() - t0) / NOTES;
}

/* ---- the library itself ---- */

struct traced {
	evc_coord *c;
	evc_task task, other;
	bool on; /* is it on in this side's turns? */
};

static const evc_task_class cls = { .name = "bench" };

static void
turn(struct traced *k, bool on)
{
	if (on)
		bench_must(evc_trace_start(k->c, 4096), "evc_trace_start");
	else
		bench_must(evc_trace_stop(k->c), "evc_trace_stop");
}

static double
sample_holds(void *arg)
{
	struct traced *k = arg;
	evc_status st = 0;
	uint64_t t0;
	unsigned i;
	evc_id id;

	if (k->on)
		turn(k, true);
	t0 = bench_now();
	for (i = 0; i < PAIRS && st == 0; i++) {
		st = evc_hold_begin(k->c, "bench", NULL, &id);
		if (st == 0)
			st = evc_hold_end(k->c, id);
	}
	t0 = bench_now() - t0;
	if (k->on)
		turn(k, false);
	bench_must(st, "evc_hold_begin");
	return (double)t0 / PAIRS;
}

static double
sample_tasks(void *arg)
{
	struct traced *k = arg;
	evc_reactor *r = evc_home(k->c);
	evc_status st = 0;
	uint64_t t0;
	unsigned i;

	if (k->on)
		turn(k, true);
	t0 = bench_now();
	for (i = 0; i < 10 * PAIRS; i++) {
		st |= evc_task_begin(r, &k->task, &cls);
		evc_task_end(&k->task);
	}
	t0 = bench_now() - t0;
	if (k->on)
		turn(k, false);
	bench_must(st, "evc_task_begin");
	return (double)t0 / (10 * PAIRS);
}

void
bench_trace(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct tree tree = { .ring = NULL };
	struct coord model = { .tree = &tree };
	struct noter off = { notes_off, &model }, none = { notes_none, &model };
	const struct bench_side notes[] = {
		{ "model-off", sample_notes, &off, 0 },
		{ "raw/bare-empty-loop", sample_notes, &none, 0 },
	};
	struct traced with = { .on = true }, without = { .on = false };
	struct bench_side sides[] = {
		{ "on", NULL, &with, 0 },
		{ "off", NULL, &without, 0 },
	};
	struct bench_stats st, bare;
	struct bench_side alone;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	bench_compare("trace-off", "ns", notes, 2, 301, 5, &st);
	alone = notes[1];
	bench_compare("trace-off-loop", "ns", &alone, 1, 301, 5, &bare);
	bench_goal("trace-off", "each",
		   st.p50 > bare.p50 ? st.p50 - bare.p50 : 0, "ns", 1);

	bench_must(evc_new(loop, NULL, &with.c), "evc_new");
	without.c = with.c;
	sides[0].sample = sides[1].sample = sample_holds;
	bench_compare("trace-hold", "ns", sides, 2, 101, 5, &st);
	alone = sides[1];
	bench_compare("trace-hold-off", "ns", &alone, 1, 101, 5, &bare);
	bench_count("trace-on", "each-event",
		    st.p50 > bare.p50 ? (st.p50 - bare.p50) / 2 : 0, "ns");

	/* Another task lives, as in a loop at work. */
	bench_must(evc_task_begin(evc_home(with.c), &with.other, &cls),
		   "evc_task_begin");
	sides[0].sample = sides[1].sample = sample_tasks;
	sides[1].goal = 1.05;
	bench_compare("trace-task", "ns", sides, 2, 301, 5, NULL);
	evc_task_end(&with.other);
	bench_must(evc_free(with.c), "evc_free");
	ev_loop_destroy(loop);
}
