/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of QueueRunner, in Python and in C++, retold: rows Q01 to Q15.  What
 * there is an operation of a graph is a function here, on a thread of its own.
 */
#include "../support/queue_util.h"

#include "seeds.h"

static evc_queue *
queue_named(evc_coord *c, const char *name, size_t capacity)
{
	evc_queue *q = NULL;

	OK(evc_queue_new(c, name, capacity, NULL, &q));
	return q;
}

static void
empty_and_free(evc_queue *q)
{
	void *item;

	while (evc_queue_try_pop(q, &item) == 0)
		;
	OK(evc_queue_free(q));
}

static unsigned
n_errors(const evc_coord *c)
{
	evc_reason r;
	unsigned i, n = 0;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		n += r.kind == EVC_BY_ERROR;
	return n;
}

/* An operation that counts up to a limit; each thread has its own. */
struct ups {
	int limit[4];
	atomic_int at[4];
	evc_status wrong[4]; /* it fails so in place of counting */
	atomic_int calls;
};

static evc_status
count_up_to(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct ups *u = arg;

	(void)q;
	atomic_fetch_add(&u->calls, 1);
	if (u->wrong[number] != 0)
		return u->wrong[number];
	if (atomic_load(&u->at[number]) == u->limit[number])
		return EVC_OUT_OF_RANGE;
	*ret_item = ITEM(atomic_fetch_add(&u->at[number], 1) + 1);
	return 0;
}

/* The same with one count for all threads. */
static evc_status
count_together(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct ups *u = arg;
	int n = atomic_load(&u->at[0]);

	(void)q;
	(void)number;
	do {
		if (n == u->limit[0])
			return EVC_OUT_OF_RANGE;
	} while (!atomic_compare_exchange_weak(&u->at[0], &n, n + 1));
	*ret_item = ITEM(n + 1);
	return 0;
}

/* From one queue to another. */
static evc_status
move_on(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	evc_status st = evc_queue_pop(arg, ret_item, INFINITY);

	(void)q;
	(void)number;
	return -st;
}

static evc_status
always_ten(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	(void)q;
	(void)number;
	(void)arg;
	*ret_item = ITEM(10);
	return 0;
}

static void
pop_is(evc_queue *q, int n)
{
	void *item = NULL;

	OK(evc_queue_pop(q, &item, T_LIMIT));
	ck_assert_int_eq(NUMBER(item), n);
}

/* And BasicTest. */
START_TEST(Q01_testBasic)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 10);
	struct ups u = { .limit = { 3 } };

	OK(evc_queue_feed(q, NULL, 1, count_up_to, &u, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_uint_eq(n_errors(c), 0);
	ck_assert_int_eq(u.at[0], 3);
	ck_assert(info_of(q).closed);
	empty_and_free(q);
}
END_TEST

START_TEST(Q02_testTwoOps)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 40);
	struct ups u = { .limit = { 3, 30 } };

	OK(evc_queue_feed(q, NULL, 2, count_up_to, &u, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_uint_eq(n_errors(c), 0);
	ck_assert_int_eq(u.at[0], 3);
	ck_assert_int_eq(u.at[1], 30);
	empty_and_free(q);
}
END_TEST

static evc_status
fail_together(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	pthread_barrier_t *both = arg;

	(void)q;
	(void)ret_item;
	pthread_barrier_wait(both);
	return number == 0 ? EVC_NOT_FOUND : EVC_DATA_LOSS;
}

/* And CatchErrorInJoin. */
START_TEST(Q03_testExceptionsCaptured)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 10);
	pthread_barrier_t both;
	evc_verdict v;
	evc_status st;

	OK(pthread_barrier_init(&both, NULL, 2));
	OK(evc_queue_feed(q, NULL, 2, fail_together, &both, NULL));
	st = evc_join(c, NULL, &v);
	ck_assert_uint_eq(n_errors(c), 2);
	ck_assert_uint_eq(v.n_errors, 2);
	/* The join says the first one. */
	ck_assert_int_eq(st, v.error.code);
	ck_assert(st == EVC_NOT_FOUND || st == EVC_DATA_LOSS);
	ck_assert_int_eq(strncmp(v.error.who, "queue/", 6), 0);
	OK(pthread_barrier_destroy(&both));
	empty_and_free(q);
}
END_TEST

/* And RealEnqueueDequeue. */
START_TEST(Q04_testRealDequeueEnqueue)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q0 = queue_named(c, "q0", 3), *q1 = queue_named(c, "q1", 30);
	void *item;

	OK(evc_queue_feed(q1, NULL, 1, move_on, q0, NULL));
	OK(evc_queue_push(q0, ITEM(10), T_LIMIT));
	OK(evc_queue_push(q0, ITEM(10), T_LIMIT));
	OK(evc_queue_close(q0));
	OK(evc_join(c, NULL, NULL));
	ck_assert_uint_eq(n_errors(c), 0);
	pop_is(q1, 10);
	pop_is(q1, 10);
	ck_assert_int_eq(evc_queue_pop(q1, &item, T_LIMIT), -EVC_OUT_OF_RANGE);
	HAS(evc_last_error(), "closed");
	empty_and_free(q0);
	empty_and_free(q1);
}
END_TEST

/* There the threads are made, and end at once; here none is started. */
START_TEST(Q05_testRespectCoordShouldStop)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 10);
	struct ups u = { .limit = { 3 } };

	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_queue_feed(q, NULL, 1, count_up_to, &u, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_uint_eq(n_errors(c), 0);
	ck_assert_int_eq(u.at[0], 0);
	ck_assert_int_eq(u.calls, 0);
	empty_and_free(q);
}
END_TEST

START_TEST(Q06_testRequestStopOnException)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 10);
	struct ups u = { .wrong = { EVC_NOT_FOUND } };

	OK(evc_queue_feed(q, NULL, 1, count_up_to, &u, NULL));
	ck_assert(evc_wait_for_stop(c, T_LIMIT));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_NOT_FOUND);
	empty_and_free(q);
}
END_TEST

START_TEST(Q07_testGracePeriod)
{
	evc_join_opts opts = { .grace = T_LIMIT };
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 2);
	evc_verdict v;

	OK(evc_queue_feed(q, NULL, 1, always_ten, NULL, NULL));
	pop_is(q, 10);
	/* It is full, and the thread waits. */
	UNTIL(info_of(q).n_pushing == 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &opts, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	empty_and_free(q);
}
END_TEST

/* There a second set is refused while the first runs (later: there is none);
   here it is another set. */
START_TEST(Q08_testNoMultiThreads)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 1);

	OK(evc_queue_feed(q, "first", 1, always_ten, NULL, NULL));
	OK(evc_queue_feed(q, "second", 1, always_ten, NULL, NULL));
	UNTIL(info_of(q).n_pushing == 2);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	empty_and_free(q);
}
END_TEST

/* And twice: an error of the first run is none of the second. */
START_TEST(Q09_testThreads)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 100);
	struct ups u = { .limit = { 3 }, .wrong = { 0, EVC_NOT_FOUND } };
	evc_reason r;
	int round;

	for (round = 0; round < 2; round++) {
		OK(evc_queue_feed(q, NULL, 2, count_up_to, &u, NULL));
		ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_NOT_FOUND);
		ck_assert_uint_eq(n_errors(c), 1);
		OK(evc_reason_get(c, 0, &r));
		ck_assert_str_eq(r.who, "queue/1");
		OK(evc_clear_stop(c));
		OK(evc_queue_reopen(q));
	}
	empty_and_free(q);
}
END_TEST

struct names {
	bool seen;
	const char *name;
};

static bool
look_for(const evc_member_info *m, void *arg)
{
	struct names *n = arg;

	n->seen = n->seen || strcmp(m->name, n->name) == 0;
	return true;
}

START_TEST(Q10_testName)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "scope/queue", 1);
	struct names n = { .name = "scope/queue/0" };

	OK(evc_queue_feed(q, NULL, 1, always_ten, NULL, NULL));
	evc_member_each(c, look_for, &n);
	ck_assert(n.seen);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	empty_and_free(q);
}
END_TEST

/* Codes that are clean for the coordinator end a feeder, and no more. */
START_TEST(Q11_QueueClosedCode)
{
	static const evc_status clean[] = { EVC_OUT_OF_RANGE, EVC_CANCELLED };
	evc_config cfg = { .clean = clean, .n_clean = 2 };
	evc_coord *c = begin(0, &cfg);
	evc_queue *q = queue_named(c, "queue", 20);
	struct ups u = { .limit = { 10 } };

	OK(evc_queue_feed(q, NULL, 2, count_together, &u, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(u.at[0], 10);
	ck_assert_uint_eq(info_of(q).n_pushed, 10);
	ck_assert(info_of(q).closed);
	empty_and_free(q);
}
END_TEST

static void *
join_it(void *arg)
{
	return (void *)(intptr_t)evc_join(arg, NULL, NULL);
}

/* As there, CANCELLED is the result of the function that read from the cancelled
   queue, unless it is a clean code (Q11).  That the queue that is fed was
   cancelled is nobody's error. */
START_TEST(Q12_SessionCloseCancelPendingEnqueue)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q0 = queue_named(c, "q0", 10), *q1 = queue_named(c, "q1", 1);
	void *st = ITEM(77);
	pthread_t t;

	OK(evc_queue_feed(q1, NULL, 1, move_on, q0, NULL));
	OK(evc_queue_push(q0, ITEM(10), T_LIMIT));
	pop_is(q1, 10);
	OK(pthread_create(&t, NULL, join_it, c));
	UNTIL(info_of(q0).n_popping == 1);
	ck_assert(!evc_joined(c));
	OK(evc_queue_cancel(q0));
	OK(pthread_join(t, &st));
	ck_assert_int_eq(NUMBER(st), EVC_CANCELLED);
	OK(evc_clear_stop(c));
	OK(evc_queue_reopen(q1));
	OK(evc_queue_feed(q1, NULL, 1, always_ten, NULL, NULL));
	UNTIL(info_of(q1).n_pushing == 1);
	OK(evc_queue_cancel(q1));
	OK(evc_join(c, NULL, NULL));
	empty_and_free(q0);
	empty_and_free(q1);
}
END_TEST

START_TEST(Q13_EmptyEnqueueOps)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q = queue_named(c, "queue", 10);

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_feed(q, NULL, 0, always_ten, NULL, NULL));
	empty_and_free(q);
}
END_TEST

START_TEST(Q14_TestCoordinatorStop)
{
	evc_coord *c = begin(0, NULL);
	evc_queue *q0 = queue_named(c, "q0", 1), *q1 = queue_named(c, "q1", 3);

	OK(evc_queue_feed(q0, NULL, 1, always_ten, NULL, NULL));
	OK(evc_queue_feed(q1, NULL, 1, move_on, q0, NULL));
	pop_is(q1, 10);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	empty_and_free(q1);
	empty_and_free(q0);
}
END_TEST

static void
note_error(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	if (level == EVC_LOG_ERROR && strstr(line, "queue/0") != NULL)
		++*(atomic_int *)arg;
}

START_TEST(Q15_CallbackCalledOnError)
{
	atomic_int told = 0;
	evc_config cfg = { .log = note_error, .arg = &told };
	evc_coord *c = begin(0, &cfg);
	evc_queue *q = queue_named(c, "queue", 10);
	struct ups u = { .wrong = { EVC_NOT_FOUND } };

	OK(evc_queue_feed(q, NULL, 1, count_up_to, &u, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_NOT_FOUND);
	ck_assert_int_eq(atomic_load(&told), 1);
	empty_and_free(q);
}
END_TEST

API_MAIN_WITH("QueueRunner", count_before, end_and_count, Q01_testBasic,
	      Q02_testTwoOps, Q03_testExceptionsCaptured,
	      Q04_testRealDequeueEnqueue, Q05_testRespectCoordShouldStop,
	      Q06_testRequestStopOnException, Q07_testGracePeriod,
	      Q08_testNoMultiThreads, Q09_testThreads, Q10_testName,
	      Q11_QueueClosedCode, Q12_SessionCloseCancelPendingEnqueue,
	      Q13_EmptyEnqueueOps, Q14_TestCoordinatorStop,
	      Q15_CallbackCalledOnError)
