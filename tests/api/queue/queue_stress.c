/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues at random against a model: each item that was pushed is handed out
 * exactly once, in the order of its producer, whatever stops, cancels, ends of
 * input, reopenings and short times come between.
 */
#include "../../support/queue_util.h"

#include <sched.h>

/* ---- the model ---- */

#define PRODUCERS 4
#define EACH 200000

/* An item: its producer, and its number there, from 1. */
static void *
make_item(int producer, int n)
{
	return (void *)((uintptr_t)producer << 24 | (unsigned)n);
}

static atomic_uchar out[PRODUCERS][EACH + 1]; /* how often */
static atomic_int wrong_order, twice;

/* What one consumer has seen last of each producer. */
struct order {
	int last[PRODUCERS];
};

static void
came_out(struct order *o, void *item)
{
	int p = (int)((uintptr_t)item >> 24), n = (uintptr_t)item & 0xffffff;

	if (atomic_fetch_add(&out[p][n], 1) != 0)
		atomic_store(&twice, n);
	if (n <= o->last[p])
		atomic_store(&wrong_order, n);
	o->last[p] = n;
}

static void
model_begins(void)
{
	int p;

	for (p = 0; p < PRODUCERS; p++)
		memset((void *)out[p], 0, sizeof(out[p]));
}

/* Of this producer the first n came out, and no others. */
static void
model_ends(int producer, int n)
{
	int i, bad = 0;

	ck_assert_int_eq(atomic_load(&twice), 0);
	ck_assert_int_eq(atomic_load(&wrong_order), 0);
	for (i = 1; i <= EACH && bad == 0; i++)
		if (atomic_load(&out[producer][i]) != (i <= n))
			bad = i;
	ck_assert_msg(bad == 0,
		      "item %d of producer %d of %d came out %d times", bad,
		      producer, n, atomic_load(&out[producer][bad]));
}

/* ---- threads against everything ---- */

struct world {
	evc_coord *c;
	evc_queue *q;
	atomic_bool over;
	atomic_int wrong; /* a status that nobody may get */
};

struct hand {
	struct world *w;
	int number, pushed;
	uint64_t seed;
	struct order order;
};

static double
some_time(uint64_t *seed)
{
	static const double times[] = { 0, 0.00001, 0.0002, 0.002, INFINITY };

	return times[queue_pick(seed, 5)];
}

static void
check_status(struct world *w, evc_status st)
{
	if (st != 0 && st != -EVC_CANCELLED && st != -EVC_OUT_OF_RANGE &&
	    st != -EVC_DEADLINE_EXCEEDED)
		atomic_store(&w->wrong, st);
}

static void *
producer(void *arg)
{
	struct hand *h = arg;
	struct world *w = h->w;
	evc_status st;

	while (!atomic_load(&w->over) && h->pushed < EACH) {
		st = evc_queue_push(w->q, make_item(h->number, h->pushed + 1),
				    some_time(&h->seed));
		check_status(w, st);
		h->pushed += st == 0;
		if (st == -EVC_CANCELLED || st == -EVC_OUT_OF_RANGE)
			sched_yield();
	}
	return NULL;
}

static void *
consumer(void *arg)
{
	struct hand *h = arg;
	struct world *w = h->w;
	evc_status st;
	void *item;

	while (!atomic_load(&w->over)) {
		if (queue_pick(&h->seed, 50) == 0) {
			if (evc_queue_try_pop(w->q, &item) == 0)
				came_out(&h->order, item);
			continue;
		}
		st = evc_queue_pop(w->q, &item, some_time(&h->seed));
		check_status(w, st);
		if (st == 0)
			came_out(&h->order, item);
		else if (st != -EVC_DEADLINE_EXCEEDED)
			sched_yield();
	}
	return NULL;
}

/* What comes between. */
static void
disturb(struct world *w, uint64_t *seed)
{
	evc_queue_info i;

	switch (queue_pick(seed, 8)) {
	case 0:
		OK(evc_queue_close(w->q));
		break;
	case 1:
		OK(evc_queue_cancel(w->q));
		break;
	case 2:
		OK(evc_request_stop(w->c, 0, "stop"));
		break;
	case 3:
		check_status(w, evc_queue_drain(w->q, 0.0005));
		break;
	default:
		i = info_of(w->q);
		ck_assert_uint_le(i.n, i.capacity);
		break;
	}
	t_sleep(queue_pick(seed, 3) == 0 ? 0.001 : 0);
	OK(evc_clear_stop(w->c));
	OK(evc_queue_reopen(w->q));
	t_sleep(queue_pick(seed, 500) / 1e6);
}

static void
live(uint64_t seed, double seconds)
{
	static struct hand in[PRODUCERS], from[4];
	struct world w = { .over = false };
	struct t_crowd producers, consumers;
	int n_in = 1 + (int)queue_pick(&seed, PRODUCERS);
	int n_from = 1 + (int)queue_pick(&seed, 4), i;
	double end = t_now() + seconds;
	struct order rest = { { 0 } };
	void *item;

	model_begins();
	w.c = new_coord(NULL);
	w.q = new_queue(w.c, 1 + queue_pick(&seed, queue_pick(&seed, 2) ? 4 : 200),
			queue_pick(&seed, 2) ? EVC_QUEUE_DRAIN : 0);
	for (i = 0; i < n_in; i++)
		in[i] = (struct hand){ .w = &w, .number = i,
				       .seed = seed + 1 + (unsigned)i };
	for (i = 0; i < n_from; i++)
		from[i] = (struct hand){ .w = &w, .number = i,
					 .seed = seed + 11 + (unsigned)i };
	crowd_begin(&producers, (size_t)n_in, producer, in, sizeof(in[0]));
	crowd_begin(&consumers, (size_t)n_from, consumer, from,
		    sizeof(from[0]));
	while (t_now() < end)
		disturb(&w, &seed);
	/* All that wait for ever have somebody to wait for, until now. */
	atomic_store(&w.over, true);
	OK(evc_queue_cancel(w.q));
	crowd_end(&producers);
	crowd_end(&consumers);
	while (evc_queue_try_pop(w.q, &item) == 0)
		came_out(&rest, item);
	ck_assert_int_eq(atomic_load(&w.wrong), 0);
	for (i = 0; i < n_in; i++)
		model_ends(i, in[i].pushed);
	drop_queue(w.c, w.q);
}

START_TEST(queue_loses_and_doubles_nothing)
{
	uint64_t seed = queue_seed();
	int i;

	for (i = 0; i < 8; i++)
		live(seed + 100 * (unsigned)i, 0.25);
}
END_TEST

/* ---- nobody is forgotten ---- */

#define MANY 2000

static void *
push_all(void *arg)
{
	struct hand *h = arg;
	evc_status st = 0;

	while (st == 0 && h->pushed < MANY) {
		st = evc_queue_push(h->w->q,
				    make_item(h->number, h->pushed + 1),
				    INFINITY);
		h->pushed += st == 0;
	}
	return NULL;
}

static void *
pop_all(void *arg)
{
	struct hand *h = arg;
	evc_status st;
	void *item;

	while ((st = evc_queue_pop(h->w->q, &item, INFINITY)) == 0)
		came_out(&h->order, item);
	if (st != -EVC_OUT_OF_RANGE)
		atomic_store(&h->w->wrong, st);
	return NULL;
}

/* All wait without a limit: a wake-up that is lost hangs, and the end of input
   is the end for all, with nothing left. */
START_TEST(queue_forgets_nobody)
{
	static struct hand in[PRODUCERS], from[4];
	uint64_t seed = queue_seed();
	struct world w = { .over = false };
	struct t_crowd producers, consumers;
	int round, n_in, n_from, i;
	void *item;

	for (round = 0; round < 12; round++) {
		model_begins();
		w.c = new_coord(NULL);
		w.q = new_queue(w.c, 1 + queue_pick(&seed, 3), 0);
		n_in = 1 + (int)queue_pick(&seed, PRODUCERS);
		n_from = 1 + (int)queue_pick(&seed, 4);
		for (i = 0; i < n_from; i++)
			from[i] = (struct hand){ .w = &w };
		for (i = 0; i < n_in; i++)
			in[i] = (struct hand){ .w = &w, .number = i };
		crowd_begin(&consumers, (size_t)n_from, pop_all, from,
			    sizeof(from[0]));
		crowd_begin(&producers, (size_t)n_in, push_all, in,
			    sizeof(in[0]));
		if (round & 1)
			crowd_end(&producers);
		/* Or in the middle of it. */
		OK(evc_queue_close(w.q));
		crowd_end(&producers);
		crowd_end(&consumers);
		ck_assert_int_eq(atomic_load(&w.wrong), 0);
		REFUSED(EVC_NOT_FOUND, evc_queue_try_pop(w.q, &item));
		for (i = 0; i < n_in; i++)
			model_ends(i, in[i].pushed);
		if (round & 1)
			ck_assert_int_eq(in[0].pushed, MANY);
		drop_queue(w.c, w.q);
	}
}
END_TEST

/* ---- feeders, watches, members ---- */

#define WATCHES 2

struct farm {
	evc_queue *q;
	int each;     /* items of a feeder */
	int fails_at; /* of number 0; 0: never */
	int given[PRODUCERS];
	atomic_int n_dropped;
	struct order by_watch[WATCHES], by_thread[4];
	atomic_int ended;
	atomic_int number; /* threads that pop number themselves */
};

struct eye {
	struct farm *f;
	int number;
};

static evc_status
grow(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct farm *f = arg;
	int n = ++f->given[number];

	(void)q;
	if (number == 0 && n == f->fails_at) {
		f->given[number]--;
		return EVC_DATA_LOSS;
	}
	if (n > f->each) {
		f->given[number]--;
		return EVC_OUT_OF_RANGE;
	}
	*ret_item = make_item((int)number, n);
	return 0;
}

static void
rot(void *item, void *arg)
{
	struct farm *f = arg;
	/* Each feeder loses its last one at most. */
	struct order any = { { 0 } };

	came_out(&any, item);
	atomic_fetch_add(&f->n_dropped, 1);
}

static void
eat(evc_queue *q, void *item, evc_status why, void *arg)
{
	struct eye *e = arg;

	(void)q;
	(void)why;
	if (item != NULL)
		came_out(&e->f->by_watch[e->number], item);
	else
		atomic_fetch_add(&e->f->ended, 1);
}

static evc_status
eat_all(evc_coord *c, void *arg)
{
	struct farm *f = arg;
	int number = atomic_fetch_add(&f->number, 1);
	evc_status st;
	void *item;

	(void)c;
	while ((st = evc_queue_pop(f->q, &item, INFINITY)) == 0)
		came_out(&f->by_thread[number], item);
	atomic_fetch_add(&f->ended, 1);
	return st == -EVC_CANCELLED ? 0 : st;
}

static void
season(uint64_t seed)
{
	int n_feeders = 1 + (int)queue_pick(&seed, PRODUCERS);
	int n_threads = (int)queue_pick(&seed, 4), n_watches = 0, i;
	unsigned end = queue_pick(&seed, 4);
	evc_coord *c = new_coord(NULL);
	evc_feed_opts o = { .dropped = rot };
	struct order rest = { { 0 } };
	struct eye eye[WATCHES];
	evc_reactor *r = NULL;
	struct farm f = { .each = 1 + (int)queue_pick(&seed, 400) };
	void *item;

	model_begins();
	f.q = new_queue(c, 1 + queue_pick(&seed, 20),
			queue_pick(&seed, 2) ? EVC_QUEUE_DRAIN : 0);
	if (end == 3)
		f.fails_at = 1 + (int)queue_pick(&seed, (unsigned)f.each);
	n_watches = n_threads == 0 ? WATCHES : (int)queue_pick(&seed, WATCHES + 1);
	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &r));
	for (i = 0; i < n_watches; i++) {
		eye[i] = (struct eye){ &f, i };
		OK(evc_queue_watch(f.q, r, eat, &eye[i],
				   queue_pick(&seed, 2) ? EVC_BACKGROUND : 0, NULL));
	}
	for (i = 0; i < n_threads; i++)
		OK(evc_thread_start(c, "eats", eat_all, &f, NULL, NULL));
	OK(evc_queue_feed(f.q, NULL, (unsigned)n_feeders, grow, &f, &o));
	t_sleep(queue_pick(&seed, 1000) / 1e6);
	if (end == 1)
		OK(evc_queue_cancel(f.q));
	if (end == 2)
		OK(evc_request_stop(c, 0, "stop"));
	/* In each way of these, all hear of it. */
	UNTIL(atomic_load(&f.ended) == n_watches + n_threads);
	OK(evc_request_stop(c, 0, "stop"));
	ck_assert_int_eq(evc_join(c, NULL, NULL),
			 end == 3 ? EVC_DATA_LOSS : 0);
	for (i = 0; evc_queue_try_pop(f.q, &item) == 0; i++)
		came_out(&rest, item);
	/* The end of input leaves nothing. */
	if (end == 0)
		ck_assert_int_eq(i + atomic_load(&f.n_dropped), 0);
	ck_assert_int_le(atomic_load(&f.n_dropped), n_feeders);
	for (i = 0; i < n_feeders; i++)
		model_ends(i, f.given[i]);
	drop_queue(c, f.q);
}

START_TEST(queue_of_feeders_watches_and_members)
{
	uint64_t seed = queue_seed();
	int i;

	for (i = 0; i < 40; i++)
		season(seed + 1000 * (unsigned)i);
}
END_TEST

API_MAIN("queue_stress", queue_loses_and_doubles_nothing, queue_forgets_nobody,
	 queue_of_feeders_watches_and_members)
