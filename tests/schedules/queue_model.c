/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of input against a model: 1 to 8 threads and up to two watches wait on
 * a queue of 1, 2, 7 or 4096 places, and it is closed, and opened again or not,
 * at each step of a push and at each step of a pop; then the same at random.
 *
 * The model is one number, how many pushes were in time for the close.  Those
 * items come out once each; whoever waited when it was closed and got none of
 * them hears of the end, and nobody of these gets what was pushed afterwards.
 */
#include "schedules.h"

#include <sched.h>

#include "../support/queue_util.h"
#include "queue/queue.h"

#define POPS 8
#define WATCHES 2
#define ITEMS_MOST 256
#define LATER 200 /* the first item of a new round */

static const size_t capacities[] = { 1, 2, 7, 4096 };

static evc_coord *coord;
static evc_queue *q;

/* ---- who waits ---- */

struct eye {
	int n[ITEMS_MOST]; /* how often it got each item */
	atomic_int ends;
	evc_status why;
};

static struct qcall pop[POPS];
static struct eye eye[WATCHES];
static int n_pops, n_eyes;

static void
on_item(evc_queue *from, void *item, evc_status why, void *arg)
{
	struct eye *e = arg;

	(void)from;
	if (item != NULL) {
		e->n[NUMBER(item)]++;
	} else {
		e->why = why;
		atomic_fetch_add(&e->ends, 1);
	}
}

static bool
all_wait(int pops)
{
	bool all;

	/* Who is held may have it. */
	if (pthread_mutex_trylock(&q->lock) != 0)
		return false;
	all = q->side[ITEMS].n_idle == (unsigned)pops &&
	      q->n_armed == (unsigned)n_eyes;
	sync_unlock(&q->lock);
	return all;
}

static void
begin(size_t capacity, int pops, int eyes)
{
	evc_reactor *r = NULL;
	int i;

	coord = new_coord(NULL);
	if (eyes > 0)
		OK(evc_reactor_start(coord, "loop", NULL, NULL, NULL, &r));
	q = new_queue(coord, capacity, 0);
	n_pops = pops;
	n_eyes = eyes;
	memset(eye, 0, sizeof(eye));
	for (i = 0; i < eyes; i++)
		OK(evc_queue_watch(q, r, on_item, &eye[i], 0, NULL));
	for (i = 0; i < pops; i++)
		qcall_begin(&pop[i], q, BY_POP, NULL, INFINITY);
	UNTIL(all_wait(pops));
}

static void
end(void)
{
	if (n_eyes > 0) {
		OK(evc_request_stop(coord, 0, NULL));
		OK(evc_join(coord, NULL, NULL));
	}
	drop_queue(coord, q);
}

/* ---- a call that is held at one of its steps ---- */

struct stepped {
	pthread_t thread;
	void *(*main)(void *); /* what it does */
	void *arg;
	int step;
	atomic_int hold; /* 1 + the hold */
	atomic_int tid, done;
};

static void *
stepped_main(void *arg)
{
	struct stepped *s = arg;

	atomic_store(&s->hold, 1 + seam_hold_mine(NULL, NULL, s->step));
	atomic_store(&s->tid, own_tid());
	s->main(s->arg);
	atomic_store(&s->done, 1);
	return NULL;
}

static bool
is_held(struct stepped *s)
{
	int h = atomic_load(&s->hold);

	return h != 0 && seam_is_held(h - 1);
}

/* It stands there, or is through, or waits before it. */
static void
stepped_begin(struct stepped *s, void *(*fn)(void *), void *arg, int step)
{
	*s = (struct stepped){ .main = fn, .arg = arg, .step = step };
	OK(pthread_create(&s->thread, NULL, stepped_main, s));
}

static void
stepped_end(struct stepped *s)
{
	seam_release(atomic_load(&s->hold) - 1);
	UNTIL(atomic_load(&s->done));
	OK(pthread_join(s->thread, NULL));
}

/* ---- what comes meanwhile ---- */

struct closer {
	pthread_t thread;
	bool pushes, reopens; /* before it, and after it */
	int in_time;          /* so many were pushed when it was closed */
	int n_next;           /* of the new round */
	atomic_int tid, done;
};



static void *
closer_main(void *arg)
{
	struct closer *k = arg;

	atomic_store(&k->tid, own_tid());
	if (k->pushes)
		(void)!evc_queue_push(q, ITEM(1), 0);
	(void)evc_queue_close(q);
	k->in_time = (int)info_of(q).n_pushed;
	if (k->reopens) {
		(void)evc_queue_reopen(q);
		k->n_next = evc_queue_push(q, ITEM(LATER), 0) == 0;
	}
	atomic_store(&k->done, 1);
	return NULL;
}

/* It may need the lock that the one who is held has. */
static void
closer_run(struct closer *k, struct stepped *s)
{
	OK(pthread_create(&k->thread, NULL, closer_main, k));
	UNTIL(atomic_load(&k->tid) != 0);
	UNTIL(atomic_load(&k->done) ||
	      (is_held(s) && waits_for_mutex(atomic_load(&k->tid))));
}

static void
closer_end(struct closer *k)
{
	UNTIL(atomic_load(&k->done));
	OK(pthread_join(k->thread, NULL));
}

/* ---- the model ---- */

static bool
all_ended(void)
{
	int i, n = 0;

	for (i = 0; i < n_pops; i++)
		n += atomic_load(&pop[i].done);
	for (i = 0; i < n_eyes; i++)
		n += atomic_load(&eye[i].ends);
	return n == n_pops + n_eyes;
}

static int
got_by_pops(int *n, int *ret_ends)
{
	int i, got = 0;

	for (i = 0; i < n_pops; i++) {
		OK(pthread_join(pop[i].thread, NULL));
		if (pop[i].st == 0) {
			n[NUMBER(pop[i].item)]++;
			got++;
			continue;
		}
		ck_assert_int_eq(pop[i].st, -EVC_OUT_OF_RANGE);
		++*ret_ends;
	}
	return got;
}

static int
got_by_eyes(int *n, int *ret_ends)
{
	int i, k, got = 0;

	for (i = 0; i < n_eyes; i++) {
		ck_assert_int_eq(atomic_load(&eye[i].ends), 1);
		ck_assert_int_eq(eye[i].why, EVC_OUT_OF_RANGE);
		++*ret_ends;
		for (k = 0; k < ITEMS_MOST; k++) {
			n[k] += eye[i].n[k];
			got += eye[i].n[k];
		}
	}
	return got;
}

/* What the model says: in_time were pushed before the close, n_pushed in all;
   one more, which is no waiter, has got got_other (0: nothing). */
static void
check(int in_time, int n_pushed, int got_other)
{
	int i, n[ITEMS_MOST] = { 0 }, ends = 0, got, left = 0;
	double limit = t_now() + T_LIMIT;
	void *item;

	while (!all_ended()) {
		ck_assert_msg(t_now() < limit,
			      "of %d threads and %d watches some never heard "
			      "of the end; capacity %zu, %d in time",
			      n_pops, n_eyes, info_of(q).capacity, in_time);
		t_sleep(0.0001);
	}
	got = got_by_pops(n, &ends) + got_by_eyes(n, &ends);
	for (i = LATER; i < ITEMS_MOST; i++)
		ck_assert_msg(n[i] == 0, "item %d is of the new round", i);
	if (got_other != 0)
		n[got_other]++;
	if (got_other != 0 && got_other < LATER)
		got++;
	ck_assert_int_le(got, in_time);
	/* They come out in their order: who was told of the end has seen the
	   last one go. */
	if (ends > 0)
		ck_assert_int_eq(got, in_time);
	while (evc_queue_try_pop(q, &item) == 0) {
		n[NUMBER(item)]++;
		left++;
	}
	ck_assert_int_eq(got + (got_other >= LATER) + left, n_pushed);
	for (i = 0; i < ITEMS_MOST; i++)
		ck_assert_msg(n[i] <= 1, "item %d came out %d times", i, n[i]);
}

/* ---- at each step of a push ---- */

static void *
do_push(void *st)
{
	*(evc_status *)st = evc_queue_push(q, ITEM(1), 0);
	return NULL;
}

/* false: it has not so many steps. */
static bool
push_step(size_t capacity, int pops, int eyes, int step, bool reopens)
{
	struct closer k = { .reopens = reopens };
	evc_status st = -1;
	struct stepped s;
	bool held;

	seam_reset();
	begin(capacity, pops, eyes);
	stepped_begin(&s, do_push, &st, step);
	UNTIL(is_held(&s) || atomic_load(&s.done));
	held = is_held(&s);
	closer_run(&k, &s);
	stepped_end(&s);
	closer_end(&k);
	check(k.in_time, (st == 0) + k.n_next, 0);
	end();
	return held;
}

START_TEST(queue_model_closed_at_each_step_of_a_push)
{
	int pops, eyes, step, way;
	size_t i;

	for (i = 0; i < N_OF(capacities); i++)
		for (pops = 1; pops <= POPS; pops += pops < 3 ? 1 : 5)
			for (eyes = 0; eyes <= WATCHES; eyes++)
				for (way = 0; way < 2; way++)
					for (step = 1;
					     push_step(capacities[i], pops,
						       eyes, step, way);
					     step++)
						;
}
END_TEST

/* ---- at each step of a pop ---- */

static void *
do_pop(void *arg)
{
	struct qcall *w = arg;

	w->st = qcall_now(w);
	return NULL;
}

/* One more, which is no waiter yet, or is one already, stands at that step when
   the item comes, and then the end. */
static bool
pop_step(size_t capacity, int pops, int eyes, int step, bool reopens)
{
	struct closer k = { .pushes = true, .reopens = reopens };
	struct qcall w = { .what = BY_POP, .timeout = INFINITY };
	struct stepped s;
	bool held;

	seam_reset();
	begin(capacity, pops, eyes);
	w.q = q;
	stepped_begin(&s, do_pop, &w, step);
	UNTIL(is_held(&s) || all_wait(pops + 1));
	closer_run(&k, &s);
	/* With a new round it may wait for that, or have come too late. */
	UNTIL(is_held(&s) || k.reopens || atomic_load(&s.done));
	held = is_held(&s);
	seam_release(atomic_load(&s.hold) - 1);
	closer_end(&k);
	OK(evc_queue_close(q));
	stepped_end(&s);
	ck_assert(w.st == 0 || w.st == -EVC_OUT_OF_RANGE);
	check(k.in_time, 1 + k.n_next, w.st == 0 ? (int)NUMBER(w.item) : 0);
	end();
	return held;
}

/* Its looks before the sleep are one like the other. */
START_TEST(queue_model_closed_at_each_step_of_a_pop)
{
	int pops, step, way;
	size_t i;

	for (i = 0; i < N_OF(capacities); i++)
		for (pops = 0; pops <= 2; pops++)
			for (way = 0; way < 2; way++)
				for (step = 1;
				     pop_step(capacities[i], pops, pops & 1,
					      step, way) ||
				     step < 200;
				     step += step < 10 || step > 180 ? 1 : 17)
					;
}
END_TEST

/* ---- at random ---- */

#define PUSHERS 3
#define EACH 20

static struct pusher {
	uint64_t seed;
	int first, pushed;
} pusher[PUSHERS];

static void
dawdle(uint64_t *seed)
{
	unsigned n = queue_pick(seed, 4) * queue_pick(seed, 60);

	while (n-- > 0)
		sched_yield();
}

static void *
push_some(void *arg)
{
	struct pusher *p = arg;
	int i, most = (int)queue_pick(&p->seed, EACH);
	evc_status st = 0;

	for (i = 0; i < most && st == 0; i++) {
		dawdle(&p->seed);
		st = evc_queue_push(q, ITEM(p->first + i), INFINITY);
		p->pushed += st == 0;
	}
	return NULL;
}

/* One round: all wait, some push, and somewhere in between it is closed, and
   opened again at once for what comes next. */
static void
at_random(uint64_t seed)
{
	int i, n_pushers = (int)queue_pick(&seed, PUSHERS + 1), n = 0;
	struct closer k = { .reopens = false };
	struct t_crowd pushers;
	size_t capacity = capacities[queue_pick(&seed, N_OF(capacities))];
	int pops = 1 + (int)queue_pick(&seed, POPS);
	bool again;

	begin(capacity, pops, (int)queue_pick(&seed, WATCHES + 1));
	again = queue_pick(&seed, 2);
	for (i = 0; i < n_pushers; i++)
		pusher[i] = (struct pusher){ .seed = seed + (unsigned)i,
					     .first = 1 + i * EACH };
	crowd_begin(&pushers, (size_t)n_pushers, push_some, pusher,
		    sizeof(pusher[0]));
	k.reopens = again;
	dawdle(&seed);
	(void)closer_main(&k);
	/* Those that push in the new round wait for room that nobody makes. */
	UNTIL(all_ended());
	OK(evc_queue_close(q));
	crowd_end(&pushers);
	for (i = 0; i < n_pushers; i++)
		n += pusher[i].pushed;
	check(k.in_time, n + k.n_next, 0);
	end();
}

START_TEST(queue_model_at_random)
{
	uint64_t seed = queue_seed();
	int i;

	for (i = 0; i < 400; i++)
		at_random(seed + 1000 * (unsigned)i);
}
END_TEST

SCHEDULES_MAIN("the end of input against a model",
	       queue_model_closed_at_each_step_of_a_push,
	       queue_model_closed_at_each_step_of_a_pop,
	       queue_model_at_random)
