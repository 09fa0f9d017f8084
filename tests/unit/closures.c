/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closure queue of a cluster, alone: the rows K01 to K12, each under the
 * name that it has there.  What the queue promises beside them stands in
 * closures_more.c.
 *
 * A row says "put": that is evc__closures_may_put and, where it allows that,
 * evc__closures_put.  The result of an item is kept by its owner, here by this
 * file: the queue tells it what it has cancelled.
 */
#include "unit/closures.h"

/* ---- K01 ---- */

static void
put_get_back_get_finish_wait(struct closures *q)
{
	struct item a = ITEM_INIT;

	OK(put(q, &a));
	IS(done(q), EVC_PENDING);
	ck_assert_ptr_eq(get(q), &a);
	IS(done(q), EVC_PENDING);
	back(q, &a);
	ck_assert_ptr_eq(get(q), &a);
	IS(done(q), EVC_PENDING);
	finish(q, &a);
	OK(done(q));
	OK(wait_for(q));
	ck_assert(is_empty(q));
	ck_assert_int_eq(a.ended, 1);
	ck_assert_int_eq(a.cancelled, 0);
}

START_TEST(K01_testBasic)
{
	struct closures *q = begin(MANY);

	put_get_back_get_finish_wait(q);
	end(q);
}
END_TEST

/* ---- K02 ---- */

struct taker {
	pthread_t thread;
	struct closures *q;
	atomic_int *enough;
	bool puts_back;
};

/* Puts its first item back, runs all others. */
static void *
take_until_enough(void *arg)
{
	struct taker *t = arg;
	struct item *i;
	bool first = t->puts_back;

	while (!atomic_load(t->enough)) {
		i = get(t->q);
		if (i == NULL) {
			t_sleep(0.0002);
		} else if (first) {
			first = false;
			back(t->q, i);
		} else {
			atomic_fetch_add(&i->runs, 1);
			finish(t->q, i);
		}
	}
	return NULL;
}

START_TEST(K02_testProcessAtLeaseOnce)
{
	struct closures *q = begin(MANY);
	struct item items[5];
	atomic_int enough = 0;
	struct taker t = { .q = q, .puts_back = true };
	struct t_crowd k;
	int i;

	t.enough = &enough;
	for (i = 0; i < 5; i++) {
		items[i] = (struct item)ITEM_INIT;
		OK(put(q, &items[i]));
	}
	crowd_begin(&k, 2, take_until_enough, &t, 0);
	for (i = 0; i < 4; i++)
		OK(wait_for(q));
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(atomic_load(&items[i].runs), 1);
	OK(done(q));
	atomic_store(&enough, 1);
	crowd_end(&k);
	end(q);
}
END_TEST

/* ---- K03 ---- */

START_TEST(K03_testNotifyBeforeWait)
{
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT;
	struct taker t = { .q = q };
	atomic_int enough = 0;

	t.enough = &enough;
	OK(put(q, &a));
	OK(pthread_create(&t.thread, NULL, take_until_enough, &t));
	UNTIL(atomic_load(&a.runs) == 1);
	atomic_store(&enough, 1);
	OK(pthread_join(t.thread, NULL));
	/* Nobody will notify any more. */
	OK(wait_for(q));
	end(q);
}
END_TEST

/* Or while who waits stands between its look and its sleep. */
START_TEST(K03_testNotifyBeforeWait_in_between)
{
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT;
	struct waiting w;
	int h;

	OK(put(q, &a));
	ck_assert_ptr_eq(get(q), &a);
	h = seam_hold_others("futex_wait", "evc__await_change", 1);
	wait_begin_at(&w, q);
	ck_assert(seam_await(h));
	finish(q, &a);
	seam_release(h);
	OK(wait_end(&w));
	seam_reset();
	end(q);
}
END_TEST

/* ---- K04 ---- */

START_TEST(K04_testWaitRaiseErrorAfterMarkFailure)
{
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT, b = ITEM_INIT;
	struct waiting w;

	OK(put(q, &a));
	OK(put(q, &b));
	ck_assert_ptr_eq(get(q), &a);
	ck_assert_ptr_eq(get(q), &b);
	wait_begin_asleep(&w, q);
	breaks(q, &b, EVC_DATA_LOSS, "b fails");
	/* One is in flight still. */
	ck_assert(still_sleeps(&w));
	finish(q, &a);
	IS(wait_end(&w), EVC_DATA_LOSS);
	OK(done(q));
	end(q);
}
END_TEST

/* ---- K05, K06, K07: one in flight fails, one is queued behind it ---- */

static void
first_in_flight_second_queued(struct closures *q, struct item *a,
			      struct item *b)
{
	*a = (struct item)ITEM_INIT;
	*b = (struct item)ITEM_INIT;
	OK(put(q, a));
	OK(put(q, b));
	ck_assert_ptr_eq(get(q), a);
	IS(done(q), EVC_PENDING);
	breaks(q, a, EVC_DATA_LOSS, "a fails");
	/* It is "reschedule" by its owner: outcome.c. */
	ck_assert_int_eq(b->cancelled, 1);
	ck_assert_int_eq(a->cancelled, 0);
}

START_TEST(K05_testPutRaiseError)
{
	struct closures *q = begin(MANY);
	struct item a, b, c = ITEM_INIT;

	first_in_flight_second_queued(q, &a, &b);
	IS(put(q, &c), EVC_DATA_LOSS);
	ck_assert_int_eq(c.c.where, CLOSURE_OUT);
	OK(done(q));
	OK(put(q, &c));
	ck_assert_ptr_eq(get(q), &c);
	finish(q, &c);
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(K06_testWaitRaiseError)
{
	struct closures *q = begin(MANY);
	struct item a, b;

	first_in_flight_second_queued(q, &a, &b);
	IS(wait_for(q), EVC_DATA_LOSS);
	OK(wait_for(q));
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(K07_testDoneRaiseError)
{
	struct closures *q = begin(MANY);
	struct item a, b;

	first_in_flight_second_queued(q, &a, &b);
	IS(done(q), EVC_DATA_LOSS);
	OK(done(q));
	end(q);
}
END_TEST

/* ---- K08, K09: another one in flight, which is told to end ---- */

struct two_fly {
	struct item a, b, c;
	uint64_t token;
};

static void
two_fly_and_the_first_fails(struct closures *q, struct two_fly *t)
{
	t->a = t->b = t->c = (struct item)ITEM_INIT;
	OK(put(q, &t->a));
	OK(put(q, &t->b));
	OK(put(q, &t->c));
	ck_assert_ptr_eq(get(q), &t->a);
	ck_assert_ptr_eq(get(q), &t->b);
	t->token = q->cancel_upto;
	ck_assert_uint_lt(t->token, t->a.c.n);
	breaks(q, &t->a, EVC_DATA_LOSS, "a fails");
	ck_assert_int_eq(t->c.cancelled, 1);
	/* The old token is cancelled for all that fly. */
	ck_assert_uint_ge(q->cancel_upto, t->b.c.n);
}

static void
as_it_was_before(struct closures *q, const struct two_fly *t)
{
	ck_assert(is_empty(q));
	ck_assert(!q->failed);
	ck_assert_uint_eq(q->n_errors, 0);
	/* Its own error is none that the queue has made up. */
	ck_assert_int_eq(t->a.cancelled + t->b.cancelled, 0);
	ck_assert_uint_eq(q->n_raised, 2);
	ck_assert_int_eq(q->raised[0].code, EVC_DATA_LOSS);
	ck_assert_str_eq(q->raised[0].text, "a fails");
	ck_assert_int_eq(q->raised[1].code, EVC_CANCELLED);
	ck_assert_str_eq(q->raised[1].text, "b was cancelled");
	/* What is taken from now on has a token of its own. */
	put_get_back_get_finish_wait(q);
	ck_assert_uint_lt(q->cancel_upto, q->last_n);
}

START_TEST(K08_testWaitRaiseErrorAfterCancelClosure)
{
	struct closures *q = begin(MANY);
	struct two_fly t;
	struct waiting w;

	two_fly_and_the_first_fails(q, &t);
	wait_begin_asleep(&w, q);
	ck_assert(still_sleeps(&w));
	breaks(q, &t.b, EVC_CANCELLED, "b was cancelled");
	IS(wait_end(&w), EVC_DATA_LOSS);
	as_it_was_before(q, &t);
	end(q);
}
END_TEST

/* There the item of the put that raises is accepted, and cancelled at once.
   Here a put that raises has accepted nothing: its caller has the error, and no
   item that somebody has to look at. */
START_TEST(K09_testPutRaiseErrorAfterCancelClosure)
{
	struct closures *q = begin(MANY);
	struct item d = ITEM_INIT;
	struct two_fly t;
	struct waiting w;

	two_fly_and_the_first_fails(q, &t);
	put_begin_asleep(&w, q, &d);
	ck_assert(still_sleeps(&w));
	breaks(q, &t.b, EVC_CANCELLED, "b was cancelled");
	IS(wait_end(&w), EVC_DATA_LOSS);
	ck_assert_int_eq(d.c.where, CLOSURE_OUT);
	ck_assert_int_eq(d.cancelled, 0);
	as_it_was_before(q, &t);
	end(q);
}
END_TEST

/* ---- K10 ---- */

START_TEST(K10_testStateIsRestoredAfterJoinIsCalled)
{
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT, b = ITEM_INIT, c = ITEM_INIT;

	OK(put(q, &a));
	ck_assert_ptr_eq(get(q), &a);
	breaks(q, &a, EVC_DATA_LOSS, "a fails");
	IS(put(q, &b), EVC_DATA_LOSS);
	ck_assert(!q->failed);
	ck_assert_uint_eq(q->n_errors, 0);
	OK(put(q, &b));
	OK(put(q, &c));
	ck_assert_uint_eq(q->n_queued, 2);
	finish(q, get(q));
	finish(q, get(q));
	OK(wait_for(q));
	end(q);
}
END_TEST

/* ---- K11 ---- */

#define THREADS 10
#define ACTIONS 20
#define ITEMS (THREADS * ACTIONS / 2)

static void *
back_or_finish(void *arg)
{
	struct closures *q = arg;
	struct item *i;
	int n;

	for (n = 0; n < ACTIONS; n++) {
		/* Never empty for ever: those that others hold come back, or
		   there are enough for all. */
		while ((i = get(q)) == NULL)
			t_sleep(0.0002);
		if (n % 2 == 0) {
			back(q, i);
		} else {
			atomic_fetch_add(&i->runs, 1);
			finish(q, i);
		}
	}
	return NULL;
}

START_TEST(K11_testThreadSafey)
{
	struct closures *q = begin(MANY);
	struct item items[ITEMS];
	struct t_crowd k;
	int i;

	crowd_begin(&k, THREADS, back_or_finish, q, 0);
	for (i = 0; i < ITEMS; i++) {
		items[i] = (struct item)ITEM_INIT;
		OK(put(q, &items[i]));
	}
	OK(wait_for(q));
	OK(done(q));
	for (i = 0; i < ITEMS; i++)
		ck_assert_int_eq(atomic_load(&items[i].runs), 1);
	crowd_end(&k);
	end(q);
}
END_TEST

/* ---- K12 ---- */

/* There wait and done pass over what stands in for one worker alone, which is
   work of the coordinator's own.  Here it is a function that the program has
   scheduled for that worker: it is waited for as any other. */
START_TEST(K12_testPutGetWithTag)
{
	struct closures *q = begin(MANY);
	struct item for_1 = ITEM_INIT, for_2 = ITEM_INIT, any = ITEM_INIT;

	for_1.c.tag = 1;
	for_2.c.tag = 2;
	OK(put(q, &for_1));
	OK(put(q, &for_2));
	OK(put(q, &any));
	ck_assert_ptr_eq(get_for(q, 2), &for_2);
	ck_assert_ptr_eq(get_for(q, 2), &any);
	ck_assert_ptr_null(get_for(q, 2));
	ck_assert_ptr_null(get(q));
	finish(q, &for_2);
	finish(q, &any);
	IS(done(q), EVC_PENDING);
	ck_assert_ptr_eq(get_for(q, 1), &for_1);
	finish(q, &for_1);
	OK(done(q));
	OK(wait_for(q));
	end(q);
}
END_TEST

API_MAIN("K01..K12", K01_testBasic, K02_testProcessAtLeaseOnce,
	 K03_testNotifyBeforeWait, K03_testNotifyBeforeWait_in_between,
	 K04_testWaitRaiseErrorAfterMarkFailure, K05_testPutRaiseError,
	 K06_testWaitRaiseError, K07_testDoneRaiseError,
	 K08_testWaitRaiseErrorAfterCancelClosure,
	 K09_testPutRaiseErrorAfterCancelClosure,
	 K10_testStateIsRestoredAfterJoinIsCalled, K11_testThreadSafey,
	 K12_testPutGetWithTag)
