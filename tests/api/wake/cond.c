/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions that hear the stop; what evc_cond_wait has in common with the
 * other waits stands in waits.c.
 */
#include "../../support/wait_util.h"

#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static evc_cond *
new_cond(evc_coord *c)
{
	evc_cond *cond = NULL;

	OK(evc_cond_new(c, &cond));
	ck_assert_ptr_nonnull(cond);
	return cond;
}

/* ---- threads that wait on one condition ---- */

#define CROWD 6

struct sleeper {
	struct sleepers *all;
	atomic_int tid;
	evc_status status;
};

struct sleepers {
	evc_cond *cond;
	struct t_crowd crowd;
	struct sleeper one[CROWD];
	atomic_int back;
};

static void *
sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, own_tid());
	pthread_mutex_lock(&mutex);
	s->status = evc_cond_wait(s->all->cond, &mutex, NULL, NULL, INFINITY);
	pthread_mutex_unlock(&mutex);
	atomic_fetch_add(&s->all->back, 1);
	return NULL;
}

/* n threads call fn, and sleep there. */
static void
sleepers_begin(struct sleepers *all, evc_cond *cond, size_t n,
	       void *(*fn)(void *arg))
{
	size_t i;

	memset(all, 0, sizeof(*all));
	all->cond = cond;
	for (i = 0; i < n; i++)
		all->one[i].all = all;
	crowd_begin(&all->crowd, n, fn, all->one, sizeof(all->one[0]));
	for (i = 0; i < n; i++) {
		UNTIL(atomic_load(&all->one[i].tid) != 0);
		until_asleep(atomic_load(&all->one[i].tid));
	}
}

/* How many have returned that. */
static int
sleepers_end(struct sleepers *all, evc_status st)
{
	int i, n = 0;

	UNTIL(atomic_load(&all->back) == CROWD);
	crowd_end(&all->crowd);
	for (i = 0; i < CROWD; i++)
		n += all->one[i].status == st;
	return n;
}

START_TEST(a_signal_wakes_one_and_a_broadcast_all)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = new_cond(c);
	struct sleepers all;
	int i;

	sleepers_begin(&all, cond, CROWD, sleeper_main);
	for (i = 1; i <= 3; i++) {
		evc_cond_signal(cond);
		UNTIL(atomic_load(&all.back) >= i);
		t_sleep(0.02);
		ck_assert_int_eq(atomic_load(&all.back), i);
	}
	evc_cond_broadcast(cond);
	ck_assert_int_eq(sleepers_end(&all, 0), CROWD);
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

static evc_cond *of_handler;

static void
signal_handler(int sig)
{
	if (sig == SIGUSR1)
		evc_cond_signal(of_handler);
	else
		evc_cond_broadcast(of_handler);
}

START_TEST(a_signal_handler_may_wake_them)
{
	struct sigaction sa = { .sa_handler = signal_handler };
	evc_coord *c = new_coord(NULL);
	struct sleepers all;

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	of_handler = new_cond(c);
	sleepers_begin(&all, of_handler, CROWD, sleeper_main);
	raise(SIGUSR1);
	UNTIL(atomic_load(&all.back) == 1);
	raise(SIGUSR2);
	ck_assert_int_eq(sleepers_end(&all, 0), CROWD);
	OK(evc_cond_free(of_handler));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_stop_wakes_all)
{
	evc_coord *c = new_coord(NULL), *s = NULL;
	evc_cond *cond;
	struct sleepers all;
	int in_scope;

	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	for (in_scope = 0; in_scope < 2; in_scope++) {
		cond = new_cond(in_scope ? s : c);
		sleepers_begin(&all, cond, CROWD, sleeper_main);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(sleepers_end(&all, -EVC_CANCELLED), CROWD);
		OK(evc_cond_free(cond));
		OK(evc_clear_stop(c));
	}
	FREE_ALL(s, c);
}
END_TEST

/* ---- is_true and the mutex ---- */

struct fact {
	bool value;
	int asked, unlocked; /* how often; how often without the mutex */
};

static bool
fact_holds(void *arg)
{
	struct fact *f = arg;

	f->asked++;
	f->unlocked += pthread_mutex_trylock(&mutex) != EBUSY;
	return f->value;
}

START_TEST(the_mutex_is_held_while_it_asks_and_when_it_returns)
{
	static const double times[] = { 0, -1, 0.02 };
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = new_cond(c);
	struct fact f = { .value = true };
	size_t i;

	pthread_mutex_lock(&mutex);
	for (i = 0; i < 3; i++) {
		f.value = true;
		OK(evc_cond_wait(cond, &mutex, fact_holds, &f, times[i]));
		f.value = false;
		ck_assert_int_eq(
			evc_cond_wait(cond, &mutex, fact_holds, &f, times[i]),
			-EVC_DEADLINE_EXCEEDED);
		ck_assert_int_eq(pthread_mutex_trylock(&mutex), EBUSY);
		/* Nobody has rung. */
		ck_assert_int_eq(
			evc_cond_wait(cond, &mutex, NULL, NULL, times[i]),
			-EVC_DEADLINE_EXCEEDED);
	}
	ck_assert_int_ge(f.asked, 6);
	OK(evc_request_stop(c, 0, NULL));
	/* A stop wins. */
	f.value = true;
	for (i = 0; i < 3; i++)
		STOPPED(evc_cond_wait(cond, &mutex, fact_holds, &f, times[i]));
	ck_assert_int_eq(pthread_mutex_trylock(&mutex), EBUSY);
	ck_assert_int_eq(f.unlocked, 0);
	pthread_mutex_unlock(&mutex);
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

/* What nobody waits for is not remembered. */
START_TEST(a_signal_to_nobody_is_lost)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = new_cond(c);

	evc_cond_signal(cond);
	evc_cond_broadcast(cond);
	pthread_mutex_lock(&mutex);
	ck_assert_int_eq(evc_cond_wait(cond, &mutex, NULL, NULL, 0.01),
			 -EVC_DEADLINE_EXCEEDED);
	pthread_mutex_unlock(&mutex);
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

/* ---- a queue ---- */

#define PRODUCERS 4
#define CONSUMERS 4
#define ITEMS 2000 /* of each producer */
#define ROOM 16

static struct queue {
	evc_coord *c;
	evc_cond *not_empty, *not_full;
	int item[ROOM], n;
	long taken, sum; /* mutex */
	atomic_int cancelled, other;
} q;

static bool
has_item(void *arg)
{
	return ((struct queue *)arg)->n > 0;
}

static bool
has_room(void *arg)
{
	return ((struct queue *)arg)->n < ROOM;
}

static evc_status
produce(evc_coord *c, void *arg)
{
	int i;

	(void)c;
	for (i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&mutex);
		if (evc_cond_wait(q.not_full, &mutex, has_room, &q, INFINITY) <
		    0) {
			pthread_mutex_unlock(&mutex);
			return EVC_INTERNAL;
		}
		q.item[q.n++] = i;
		/* With the mutex and without it, by turns. */
		if (i & 1)
			evc_cond_signal(q.not_empty);
		pthread_mutex_unlock(&mutex);
		if (!(i & 1))
			evc_cond_signal(q.not_empty);
	}
	(void)arg;
	return 0;
}

static evc_status
consume(evc_coord *c, void *arg)
{
	evc_status st;

	(void)c;
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&mutex);
		st = evc_cond_wait(q.not_empty, &mutex, has_item, &q, INFINITY);
		if (st == 0) {
			q.sum += q.item[--q.n];
			q.taken++;
			evc_cond_signal(q.not_full);
		}
		pthread_mutex_unlock(&mutex);
		if (st < 0)
			break;
	}
	atomic_fetch_add(st == -EVC_CANCELLED ? &q.cancelled : &q.other, 1);
	return st;
}

static bool
all_taken(void *arg)
{
	long taken;

	(void)arg;
	pthread_mutex_lock(&mutex);
	taken = q.taken;
	pthread_mutex_unlock(&mutex);
	return taken == (long)PRODUCERS * ITEMS;
}

/* Signals alone, so one that is lost leaves somebody asleep. */
START_TEST(a_queue_with_several_at_each_end)
{
	evc_verdict v;
	int i;

	memset(&q, 0, sizeof(q));
	q.c = new_coord(NULL);
	q.not_empty = new_cond(q.c);
	q.not_full = new_cond(q.c);
	for (i = 0; i < CONSUMERS; i++)
		OK(evc_thread_start(q.c, "eats", consume, NULL, NULL, NULL));
	for (i = 0; i < PRODUCERS; i++)
		OK(evc_thread_start(q.c, "bakes", produce, NULL, NULL, NULL));
	ck_assert_msg(t_until(all_taken, NULL, 3 * T_LIMIT),
		      "a wake-up was lost: %ld of %d", q.taken,
		      PRODUCERS * ITEMS);
	OK(evc_request_stop(q.c, 0, NULL));
	OK(evc_join(q.c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, PRODUCERS + CONSUMERS);
	ck_assert_int_eq(q.sum, (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2);
	ck_assert_int_eq(atomic_load(&q.cancelled), CONSUMERS);
	OK(evc_cond_free(q.not_empty));
	OK(evc_cond_free(q.not_full));
	OK(evc_free(q.c));
}
END_TEST

/* ---- life ---- */

START_TEST(it_is_not_freed_while_somebody_waits)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = new_cond(c);
	struct sleepers all;

	sleepers_begin(&all, cond, CROWD, sleeper_main);
	REFUSED(EVC_FAILED_PRECONDITION, evc_cond_free(cond));
	evc_cond_broadcast(cond);
	ck_assert_int_eq(sleepers_end(&all, 0), CROWD);
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

START_TEST(evc_free_is_refused_while_there_is_one)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = new_cond(c), *other = new_cond(c);
	int stopped;

	for (stopped = 0; stopped < 2; stopped++) {
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
		HAS(evc_last_error(), "condition");
		OK(evc_request_stop(c, 0, NULL));
	}
	OK(evc_cond_free(other));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

START_TEST(NULL_is_refused_or_nobody)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = NULL;

	REFUSED(EVC_INVALID_ARGUMENT, evc_cond_new(NULL, &cond));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cond_new(c, NULL));
	ck_assert_ptr_null(cond);
	OK(evc_cond_free(NULL));
	evc_cond_signal(NULL);
	evc_cond_broadcast(NULL);
	cond = new_cond(c);
	REFUSED(EVC_INVALID_ARGUMENT, evc_cond_wait(cond, NULL, NULL, NULL, 0));
	OK(evc_cond_free(cond));
	OK(evc_free(c));
}
END_TEST

/* One whose waiter frees it as soon as it is woken, while the one who woke it,
   without the mutex, has perhaps not returned. */
static void *
wait_and_free(void *arg)
{
	struct sleeper *s = arg;

	sleeper_main(s);
	if (s->status == 0)
		s->status = evc_cond_free(s->all->cond);
	return NULL;
}

START_TEST(who_was_woken_may_free_it)
{
	evc_coord *c = new_coord(NULL);
	struct sleepers all;
	int i;

	for (i = 0; i < 50; i++) {
		sleepers_begin(&all, new_cond(c), 1, wait_and_free);
		if (i & 1)
			evc_cond_signal(all.cond);
		else
			evc_cond_broadcast(all.cond);
		crowd_end(&all.crowd);
		OK(all.one[0].status);
	}
	OK(evc_free(c));
}
END_TEST

API_MAIN("cond", a_signal_wakes_one_and_a_broadcast_all,
	 a_signal_handler_may_wake_them, a_stop_wakes_all,
	 the_mutex_is_held_while_it_asks_and_when_it_returns,
	 a_signal_to_nobody_is_lost, a_queue_with_several_at_each_end,
	 it_is_not_freed_while_somebody_waits,
	 evc_free_is_refused_while_there_is_one, NULL_is_refused_or_nobody,
	 who_was_woken_may_free_it)
