/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Feeders: a function on n threads that fills a queue, up to its end, an error
 * or a stop.
 */
#include "../../support/queue_util.h"

#include <limits.h>

enum { MOST = 8 };

/* What the feeders do, and what came of it. */
struct source {
	int items;         /* each feeder gives so many, 1 to items */
	evc_status then;   /* what it ends with */
	evc_status wrong;  /* what number 0 ends with instead */
	bool quietly;      /* it sets no item every other time */
	bool exits;        /* number 0 ends by pthread_exit */
	bool with_last;    /* the last item comes with the end */
	atomic_int calls, given[MOST], together, open;
	atomic_int dropped, sum_dropped, unblocked;
	atomic_int named;  /* feeders whose thread has the right name */
	const char *name;  /* NULL: "feeder" */
};

static void
look_at_name(struct source *s, unsigned number)
{
	char want[16], is[16] = "";

	snprintf(want, sizeof(want), "%s/%u",
		 s->name != NULL ? s->name : "feeder", number);
	t_own_name(is);
	if (strcmp(want, is) == 0)
		atomic_fetch_add(&s->named, 1);
}

static evc_status
feed(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct source *s = arg;
	int n = atomic_load(&s->given[number]), last = s->items;

	(void)q;
	if (n == 0)
		look_at_name(s, number);
	/* *ret_item is NULL at each call. */
	if (*ret_item != NULL)
		return EVC_INTERNAL;
	if ((atomic_fetch_add(&s->calls, 1) & 1) && s->quietly)
		return 0;
	if (n == last && number == 0 && s->exits)
		pthread_exit(NULL);
	if (n == last)
		return number == 0 && s->wrong != 0 ? s->wrong : s->then;
	*ret_item = ITEM(n + 1);
	atomic_store(&s->given[number], n + 1);
	return s->with_last && n + 1 == last ? s->then : 0;
}

static void
dropped(void *item, void *arg)
{
	struct source *s = arg;

	atomic_fetch_add(&s->dropped, 1);
	atomic_fetch_add(&s->sum_dropped, (int)NUMBER(item));
}

static const evc_feed_opts with_dropped = { .dropped = dropped };

/* Everything that comes, until the end: the sum, and what the end was. */
static evc_status
pop_all(evc_queue *q, int *sum, int *n)
{
	evc_status st;
	void *item;

	*sum = *n = 0;
	while ((st = evc_queue_pop(q, &item, INFINITY)) == 0) {
		*sum += (int)NUMBER(item);
		++*n;
	}
	return st;
}

/* ---- the end ---- */

/* "the last one that ends so closes the queue" */
START_TEST(feed_ends_with_the_end_of_input)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 200, .then = EVC_OUT_OF_RANGE,
			    .name = "things" };
	evc_verdict v;
	int n, sum;

	OK(evc_queue_feed(q, NULL, 4, feed, &s, &with_dropped));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_OUT_OF_RANGE);
	ck_assert_int_eq(n, 800);
	ck_assert_int_eq(sum, 4 * 200 * 201 / 2);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(atomic_load(&s.dropped), 0);
	/* "threads named NAME/0, NAME/1 ..." */
	ck_assert_int_eq(atomic_load(&s.named), 4);
	ck_assert(info_of(q).closed && !info_of(q).cancelled);
	drop_queue(c, q);
}
END_TEST

/* "(NULL: nothing this time)" */
START_TEST(feed_pushes_nothing_where_nothing_is_set)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 50,
			    .then = EVC_OUT_OF_RANGE,
			    .quietly = true };
	int n, sum;

	OK(evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_OUT_OF_RANGE);
	ck_assert_int_eq(n, 50);
	ck_assert_int_gt(atomic_load(&s.calls), 90);
	OK(evc_join(c, NULL, NULL));
	drop_queue(c, q);
}
END_TEST

/* What it sets beside its last code is pushed, too. */
START_TEST(feed_pushes_what_comes_with_the_end)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	/* As a feeder that hands on what a pop said. */
	struct source s = { .items = 5,
			    .then = -EVC_OUT_OF_RANGE,
			    .with_last = true };
	evc_verdict v;
	int n, sum;

	OK(evc_queue_feed(q, "feeder", 2, feed, &s, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_OUT_OF_RANGE);
	ck_assert_int_eq(n, 10);
	ck_assert_int_eq(sum, 30);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	drop_queue(c, q);
}
END_TEST

/* The clean codes are the coordinator's. */
START_TEST(feed_ends_with_the_clean_codes_of_its_coordinator)
{
	static const evc_status clean[] = { 42 };
	evc_config cfg = { .clean = clean, .n_clean = 1 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 5, .then = 42 };
	struct source t = { .items = 5, .then = EVC_OUT_OF_RANGE };
	evc_verdict v;
	int n, sum;

	OK(evc_queue_feed(q, "feeder", 2, feed, &s, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_OUT_OF_RANGE);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_clear_stop(c));
	OK(evc_queue_reopen(q));
	/* Here this one is an error. */
	OK(evc_queue_feed(q, "feeder", 1, feed, &t, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_CANCELLED);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_OUT_OF_RANGE);
	drop_queue(c, q);
}
END_TEST

/* "name (NULL: the queue's)", cut where it leaves no room for the number */
START_TEST(feed_without_a_name_has_the_queues)
{
	static const char longest[] =
		"0123456789012345678901234567890123456789abcdefg";
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0), *other;
	struct source s = { .items = 1, .then = EVC_OUT_OF_RANGE,
			    .name = "things" };
	struct source t = { .items = 1, .then = EVC_OUT_OF_RANGE };

	OK(evc_queue_new(c, longest, 3, NULL, &other));
	OK(evc_queue_feed(q, NULL, 2, feed, &s, NULL));
	OK(evc_queue_feed(other, NULL, 1, feed, &t, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.named), 2);
	ck_assert_int_eq(atomic_load(&t.given[0]), 1);
	take_now(other, 1, 1);
	OK(evc_queue_free(other));
	drop_queue(c, q);
}
END_TEST

/* Several calls feed one queue: the last feeder of all closes it. */
START_TEST(feed_may_be_called_again)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 5, .then = EVC_OUT_OF_RANGE };
	struct source t = { .items = 50, .then = EVC_OUT_OF_RANGE };
	int n, sum;

	/* The first ones cannot end before the others are there. */
	OK(evc_queue_feed(q, "feeder", 2, feed, &s, NULL));
	OK(evc_queue_feed(q, "feeder", 2, feed, &t, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_OUT_OF_RANGE);
	ck_assert_int_eq(n, 110);
	OK(evc_join(c, NULL, NULL));
	drop_queue(c, q);
}
END_TEST

/* ---- errors ---- */

/* "any other code is an error: it stops the coordinator, and the queue is
   cancelled with it" */
START_TEST(feed_stops_all_with_an_error)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, EVC_QUEUE_DRAIN);
	struct source s = { .items = 1000000,
			    .then = EVC_OUT_OF_RANGE };
	struct source bad = { .wrong = EVC_DATA_LOSS };
	struct qcall w;
	evc_verdict v;

	OK(evc_queue_feed(q, "good", 2, feed, &s, &with_dropped));
	qcall_begin(&w, q, BY_DRAIN, NULL, INFINITY);
	OK(evc_queue_feed(q, "bad", 1, feed, &bad, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.who, "bad/0");
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert(info_of(q).cancelled);
	ck_assert(!info_of(q).closed);
	qcall_end(&w);
	/* Both feeders were in their push, or on the way to it. */
	ck_assert_int_le(atomic_load(&s.dropped), 2);
	ck_assert_uint_eq((size_t)(atomic_load(&s.given[0]) +
				   atomic_load(&s.given[1]) -
				   atomic_load(&s.dropped)),
			  info_of(q).n_pushed);
	drop_queue(c, q);
}
END_TEST

/* The end of the only feeder, with an error, is never the end of input. */
START_TEST(feed_with_an_error_does_not_end_the_input)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .wrong = EVC_DATA_LOSS };
	int i, n, sum;

	for (i = 0; i < 50; i++) {
		OK(evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
		ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_CANCELLED);
		ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
		OK(evc_clear_stop(c));
		OK(evc_queue_reopen(q));
	}
	drop_queue(c, q);
}
END_TEST

/* Two that fail at the same time. */
static evc_status
fail_together(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct source *s = arg;

	(void)q;
	(void)ret_item;
	atomic_fetch_add(&s->together, 1);
	while (atomic_load(&s->together) < 2)
		t_sleep(0.001);
	return number == 0 ? EVC_DATA_LOSS : EVC_INTERNAL;
}

/* "Each error is kept (evc_reason_get)." */
START_TEST(feed_keeps_both_errors)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 0 };
	unsigned i, seen = 0;
	evc_verdict v;
	evc_reason r;

	OK(evc_queue_feed(q, "feeder", 2, fail_together, &s, NULL));
	ck_assert_int_gt(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_errors, 2);
	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		seen |= (r.code == EVC_DATA_LOSS) |
			(unsigned)(r.code == EVC_INTERNAL) << 1;
	ck_assert_uint_eq(seen, 3);
	drop_queue(c, q);
}
END_TEST

/* A negative code is its positive, one that is none is EVC_UNKNOWN. */
START_TEST(feed_takes_whatever_is_returned)
{
	static const evc_status wrong[][2] = {
		{ -EVC_DATA_LOSS, EVC_DATA_LOSS },
		{ 255, 255 },
		{ 256, EVC_UNKNOWN },
		{ -300, EVC_UNKNOWN },
		{ INT_MIN, EVC_UNKNOWN },
	};
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct source s = { .wrong = wrong[i][0] };

		OK(evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
		ck_assert_int_eq(evc_join(c, NULL, NULL), wrong[i][1]);
		OK(evc_clear_stop(c));
		OK(evc_queue_reopen(q));
	}
	drop_queue(c, q);
}
END_TEST

/* A feeder that ends its thread in the function has failed. */
START_TEST(feed_counts_a_thread_that_exits_as_failed)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 1, .exits = true };
	int n, sum;

	OK(evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
	ck_assert_int_eq(pop_all(q, &sum, &n), -EVC_CANCELLED);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	OK(evc_clear_stop(c));
	OK(evc_queue_reopen(q));
	drop_queue(c, q);
}
END_TEST

/* ---- a stop ---- */

/* "a feeder that is blocked in its push ends, and what it could not push is
   handed to dropped" */
START_TEST(feed_ends_at_a_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 1000000, .then = EVC_OUT_OF_RANGE };
	evc_verdict v;
	void *item;
	int n;

	OK(evc_queue_feed(q, "feeder", 2, feed, &s, &with_dropped));
	UNTIL(info_of(q).n_pushing == 2);
	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(atomic_load(&s.dropped), 2);
	/* Each item once: in it, or dropped. */
	for (n = 0; evc_queue_try_pop(q, &item) == 0;)
		n += (int)NUMBER(item);
	n += atomic_load(&s.sum_dropped);
	ck_assert_int_eq(n, atomic_load(&s.given[0]) *
					    (atomic_load(&s.given[0]) + 1) / 2 +
				    atomic_load(&s.given[1]) *
					    (atomic_load(&s.given[1]) + 1) / 2);
	/* It was no end of input. */
	ck_assert(!info_of(q).closed && !info_of(q).cancelled);
	drop_queue(c, q);
}
END_TEST

/* "(NULL: to nobody)"; so it is at a cancel and a close, which stop nobody. */
START_TEST(feed_ends_with_its_queue)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	evc_verdict v;
	int way;

	for (way = 0; way < 2; way++) {
		struct source s = { .items = 1000000,
				    .then = EVC_OUT_OF_RANGE };

		OK(evc_queue_feed(q, "feeder", 2, feed, &s,
				  way == 0 ? NULL : &with_dropped));
		UNTIL(info_of(q).n_pushing == 2);
		OK(way == 0 ? evc_queue_cancel(q) : evc_queue_close(q));
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert(!evc_should_stop(c));
		ck_assert_int_eq(atomic_load(&s.dropped), way == 0 ? 0 : 2);
		OK(evc_clear_stop(c));
		OK(evc_queue_reopen(q));
		while (info_of(q).n > 0)
			OK(evc_queue_try_pop(q, &(void *){ NULL }));
	}
	drop_queue(c, q);
}
END_TEST

static evc_status
wait_until_open(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	struct source *s = arg;

	(void)q;
	(void)number;
	(void)ret_item;
	atomic_fetch_add(&s->calls, 1);
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	return 0;
}

static void
open_it(void *arg)
{
	struct source *s = arg;

	atomic_store(&s->open, 1);
	atomic_fetch_add(&s->unblocked, 1);
}

/* opts.member.unblock gets the function's arg. */
START_TEST(feed_is_unblocked_at_a_stop)
{
	evc_feed_opts o = { .member = { .unblock = open_it } };
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 1 };

	OK(evc_queue_feed(q, "feeder", 2, wait_until_open, &s, &o));
	UNTIL(atomic_load(&s.calls) == 2);
	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_gt(atomic_load(&s.unblocked), 0);
	drop_queue(c, q);
}
END_TEST

/* ---- wrong use ---- */

START_TEST(feed_keeps_its_queue)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 1 };

	OK(evc_queue_feed(q, "feeder", 1, wait_until_open, &s, NULL));
	/* A feeder that finds its queue closed does not call its function. */
	UNTIL(atomic_load(&s.calls) == 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
	HAS(evc_last_error(), "fed");
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_reopen(q));
	OK(evc_queue_close(q));
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_reopen(q));
	atomic_store(&s.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_queue_reopen(q));
	drop_queue(c, q);
}
END_TEST

START_TEST(feed_refuses_what_is_wrong)
{
	static const evc_feed_opts wrong[] = {
		{ .member = { .flags = EVC_PAUSED } },
		{ .member = { .reserved_ = { 1 } } },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
	};
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	struct source s = { .items = 0 };
	size_t i;

	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_feed(NULL, "feeder", 1, feed, &s, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_feed(q, "feeder", 0, feed, &s, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_feed(q, "feeder", 1u << 30, feed, &s, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_feed(q, "feeder", 1, NULL, &s, NULL));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_queue_feed(q, "feeder", 1, feed, &s, &wrong[i]));
		HAS(evc_last_error(), i == 0 ? "loopers" : "reserved");
	}
	OK(evc_queue_close(q));
	REFUSED(EVC_OUT_OF_RANGE,
		evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
	OK(evc_queue_cancel(q));
	REFUSED(EVC_CANCELLED,
		evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
	OK(evc_queue_reopen(q));
	OK(evc_request_stop(c, 0, "stop"));
	REFUSED(EVC_CANCELLED,
		evc_queue_feed(q, "feeder", 1, feed, &s, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&s.calls), 0);
	drop_queue(c, q);
}
END_TEST

API_MAIN("queue_feed", feed_ends_with_the_end_of_input,
	 feed_pushes_nothing_where_nothing_is_set,
	 feed_pushes_what_comes_with_the_end,
	 feed_ends_with_the_clean_codes_of_its_coordinator,
	 feed_without_a_name_has_the_queues, feed_may_be_called_again,
	 feed_stops_all_with_an_error,
	 feed_with_an_error_does_not_end_the_input, feed_keeps_both_errors,
	 feed_takes_whatever_is_returned,
	 feed_counts_a_thread_that_exits_as_failed, feed_ends_at_a_stop,
	 feed_ends_with_its_queue, feed_is_unblocked_at_a_stop,
	 feed_keeps_its_queue, feed_refuses_what_is_wrong)
