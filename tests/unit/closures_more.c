/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the closure queue promises beside the rows K01 to K12: the order, what
 * is held, room and its limit, one raise for one error, the errors behind the
 * first, and the stop.
 */
#include "unit/closures.h"

static void
init(struct item *items, int n)
{
	int i;

	for (i = 0; i < n; i++)
		items[i] = (struct item)ITEM_INIT;
}

START_TEST(greater_priorities_come_first_and_equal_ones_in_turn)
{
	static const int8_t of[] = { 0, 7, -8, 0, 7, 3, -8, 3, -1, 0 };
	static const int order[] = { 1, 4, 5, 7, 0, 3, 9, 8, 2, 6 };
	enum { N = sizeof(of) };
	struct closures *q = begin(MANY);
	struct closure *got[N];
	struct item items[N];
	int i;

	init(items, N);
	for (i = 0; i < N; i++) {
		items[i].c.priority = of[i];
		OK(put(q, &items[i]));
	}
	IS(LOCKED(q, evc__closures_take(q, TAG_ANY, got, N)), N);
	for (i = 0; i < N; i++) {
		ck_assert_ptr_eq(ITEM_OF(got[i]), &items[order[i]]);
		ck_assert_uint_eq(got[i]->n, i + 1);
		finish(q, ITEM_OF(got[i]));
	}
	OK(done(q));
	end(q);
}
END_TEST

/* A worker that is to leave gets what is its own alone, and that first. */
START_TEST(who_leaves_gets_its_own_alone)
{
	struct closures *q = begin(MANY);
	struct closure *got[3];
	struct item items[3];

	init(items, 3);
	items[1].c.tag = 2;
	OK(put(q, &items[0]));
	OK(put(q, &items[1]));
	OK(put(q, &items[2]));
	q->leaving = 2;
	IS(LOCKED(q, evc__closures_take(q, 2, got, 3)), 1);
	ck_assert_ptr_eq(ITEM_OF(got[0]), &items[1]);
	ck_assert(!LOCKED(q, evc__closures_has(q, 2)));
	ck_assert(LOCKED(q, evc__closures_has(q, 1)));
	/* It stays after all. */
	q->leaving = 3;
	IS(LOCKED(q, evc__closures_take(q, 2, got + 1, 2)), 2);
	finish(q, &items[0]);
	finish(q, &items[1]);
	finish(q, &items[2]);
	OK(done(q));
	end(q);
}
END_TEST

/* What is one worker's alone comes before what is anybody's, whatever their
   priorities are; and nobody else gets it. */
START_TEST(of_one_priority_work_of_its_own_comes_first)
{
	struct closures *q = begin(MANY);
	struct item items[5];
	struct closure *got[5];
	int i;

	init(items, 5);
	items[0].c.priority = 7;
	items[1].c.tag = 1;
	items[1].c.priority = -8;
	items[2].c.tag = 1;
	items[3].c.tag = 2;
	OK(put(q, &items[4]));
	for (i = 0; i < 4; i++)
		OK(put(q, &items[i]));
	ck_assert(LOCKED(q, evc__closures_has(q, 0)));
	IS(LOCKED(q, evc__closures_take(q, 1, got, 5)), 4);
	ck_assert_ptr_eq(ITEM_OF(got[0]), &items[0]);
	ck_assert_ptr_eq(ITEM_OF(got[1]), &items[2]);
	ck_assert_ptr_eq(ITEM_OF(got[2]), &items[4]);
	ck_assert_ptr_eq(ITEM_OF(got[3]), &items[1]);
	ck_assert(!LOCKED(q, evc__closures_has(q, 0)));
	ck_assert(!LOCKED(q, evc__closures_has(q, 1)));
	ck_assert(LOCKED(q, evc__closures_has(q, 2)));
	/* A line that comes later, and one that was there before. */
	ck_assert(LOCKED(q, evc__closures_tags(q, 40)));
	ck_assert(LOCKED(q, evc__closures_tags(q, 2)));
	ck_assert_ptr_eq(get_for(q, 2), &items[3]);
	for (i = 0; i < 5; i++)
		finish(q, &items[i]);
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(what_comes_back_is_the_next_of_its_priority)
{
	struct closures *q = begin(MANY);
	struct item items[4];
	uint64_t n;
	int i;

	init(items, 4);
	items[3].c.priority = 1;
	for (i = 0; i < 3; i++)
		OK(put(q, &items[i]));
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert_ptr_eq(get(q), &items[1]);
	n = items[1].c.n;
	OK(put(q, &items[3]));
	back(q, &items[1]);
	back(q, &items[0]);
	ck_assert_ptr_eq(get(q), &items[3]);
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert_ptr_eq(get(q), &items[1]);
	ck_assert_ptr_eq(get(q), &items[2]);
	/* An attempt has a number of its own, greater than all before. */
	ck_assert_uint_gt(items[1].c.n, n);
	ck_assert_uint_gt(items[1].c.n, items[0].c.n);
	for (i = 0; i < 4; i++)
		finish(q, &items[i]);
	OK(wait_for(q));
	end(q);
}
END_TEST

START_TEST(what_is_held_is_accepted_and_not_taken)
{
	struct closures *q = begin(2);
	struct item items[3];

	init(items, 3);
	put_held(q, &items[0]);
	ck_assert_ptr_null(get(q));
	IS(done(q), EVC_PENDING);
	OK(put(q, &items[1]));
	/* It takes room. */
	IS(LOCKED(q, evc__closures_may_put(q, 1)), EVC_PENDING);
	LOCKED_DO(q, evc__closures_release(q, &items[0].c));
	ck_assert_ptr_eq(get(q), &items[1]);
	ck_assert_ptr_eq(get(q), &items[0]);
	/* To be tried again, later. */
	LOCKED_DO(q, evc__closures_back(q, &items[1].c, CLOSURE_HELD));
	ck_assert_int_eq(items[1].c.where, CLOSURE_HELD);
	finish(q, &items[0]);
	IS(done(q), EVC_PENDING);
	ck_assert_ptr_null(get(q));
	LOCKED_DO(q, evc__closures_release(q, &items[1].c));
	finish(q, get(q));
	OK(done(q));
	/* Over without having run: by name. */
	put_held(q, &items[2]);
	LOCKED_DO(q, evc__closures_out(q, &items[2].c));
	ck_assert_int_eq(items[2].c.where, CLOSURE_OUT);
	OK(done(q));
	OK(put(q, &items[2]));
	LOCKED_DO(q, evc__closures_out(q, &items[2].c));
	OK(wait_for(q));
	ck_assert_int_eq(items[2].cancelled, 0);
	end(q);
}
END_TEST

START_TEST(an_error_cancels_what_is_held_too)
{
	struct closures *q = begin(MANY);
	struct item items[4];

	init(items, 4);
	put_held(q, &items[0]);
	items[1].c.tag = 1;
	OK(put(q, &items[1]));
	OK(put(q, &items[2]));
	OK(put(q, &items[3]));
	ck_assert_ptr_eq(get(q), &items[2]);
	ck_assert_ptr_eq(get(q), &items[3]);
	breaks(q, &items[2], EVC_ABORTED, "no");
	ck_assert_int_eq(items[0].cancelled, 1);
	ck_assert_int_eq(items[1].cancelled, 1);
	ck_assert(!LOCKED(q, evc__closures_has(q, 1)));
	IS(done(q), EVC_PENDING);
	IS(LOCKED(q, evc__closures_may_put(q, 1)), EVC_PENDING);
	/* It is not queued again, nor tried again. */
	back(q, &items[3]);
	ck_assert_int_eq(items[3].cancelled, 1);
	ck_assert_int_eq(items[3].c.where, CLOSURE_OUT);
	IS(done(q), EVC_ABORTED);
	OK(done(q));
	end(q);
}
END_TEST

/* An error that belongs to nothing that runs: an input, a worker that is none. */
START_TEST(an_error_of_what_was_not_taken)
{
	evc_reason r = { .code = EVC_UNAVAILABLE, .text = "nobody" };
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT, b = ITEM_INIT;
	struct waiting w;

	put_held(q, &a);
	OK(put(q, &b));
	wait_begin_asleep(&w, q);
	LOCKED_DO(q, (evc__closures_out(q, &a.c), evc__closures_note(q, &r),
		      evc__closures_cancel(q)));
	IS(wait_end(&w), EVC_UNAVAILABLE);
	ck_assert_int_eq(a.cancelled, 0);
	ck_assert_int_eq(a.c.where, CLOSURE_OUT);
	ck_assert_int_eq(b.cancelled, 1);
	LOCKED_DO(q, (evc__closures_note(q, &r), evc__closures_cancel(q)));
	IS(put(q, &a), EVC_UNAVAILABLE);
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(nothing_is_raised_while_a_worker_is_in_doubt)
{
	struct closures *q = begin(MANY);
	struct item a = ITEM_INIT;
	struct waiting w;

	OK(put(q, &a));
	ck_assert_ptr_eq(get(q), &a);
	wait_begin_asleep(&w, q);
	LOCKED_DO(q, q->n_unsettled = 1);
	breaks(q, &a, EVC_DATA_LOSS, "no");
	IS(done(q), EVC_PENDING);
	ck_assert(still_sleeps(&w));
	LOCKED_DO(q, (q->n_unsettled = 0, evc__closures_ring(q)));
	IS(wait_end(&w), EVC_DATA_LOSS);
	end(q);
}
END_TEST

START_TEST(room_is_a_limit_and_is_waited_for)
{
	struct closures *q = begin(2);
	struct item items[4];
	struct waiting w;
	int i;

	init(items, 4);
	OK(LOCKED(q, evc__closures_may_put(q, 2)));
	IS(LOCKED(q, evc__closures_may_put(q, 3)), EVC_PENDING);
	OK(put(q, &items[0]));
	OK(LOCKED(q, evc__closures_may_put(q, 1)));
	IS(LOCKED(q, evc__closures_may_put(q, 2)), EVC_PENDING);
	OK(put(q, &items[1]));
	IS(put_until(q, &items[2], 0), EVC_PENDING);
	IS(put_until(q, &items[2], 0.01), EVC_PENDING);
	ck_assert_int_eq(items[2].c.where, CLOSURE_OUT);
	put_begin_asleep(&w, q, &items[2]);
	/* What was taken takes no room any more. */
	ck_assert_ptr_eq(get(q), &items[0]);
	OK(wait_end(&w));
	/* One that comes back does, beyond the limit. */
	back(q, &items[0]);
	IS(put_until(q, &items[3], 0), EVC_PENDING);
	for (i = 0; i < 3; i++)
		finish(q, get(q));
	OK(put(q, &items[3]));
	finish(q, get(q));
	OK(wait_for(q));
	end(q);
}
END_TEST

/* Two that wait and two that put: the error is one's, the others go on as if
   there had been none. */
START_TEST(an_error_is_raised_once_whoever_waits)
{
	struct closures *q = begin(1);
	struct item a = ITEM_INIT, b = ITEM_INIT, more[2];
	struct waiting w[4];
	int i, raised = 0;

	init(more, 2);
	OK(put(q, &a));
	ck_assert_ptr_eq(get(q), &a);
	OK(put(q, &b));
	for (i = 0; i < 4; i++)
		waiting_begin(&w[i], q, i < 2 ? NULL : &more[i - 2]);
	UNTIL(LOCKED(q, q->n_quiet + q->n_roomy) == 4);
	breaks(q, &a, EVC_DATA_LOSS, "no");
	/* Whoever has put something has it run. */
	for (i = 0; i < 4; i++) {
		struct item *it;

		UNTIL(atomic_load(&w[i].over) ||
		      ((it = get(q)) != NULL && (finish(q, it), false)));
		raised += wait_end(&w[i]) == EVC_DATA_LOSS;
		ck_assert(w[i].answer == 0 || w[i].answer == EVC_DATA_LOSS);
	}
	ck_assert_int_eq(raised, 1);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(more[i].cancelled, 0);
	end(q);
}
END_TEST

START_TEST(errors_behind_the_first_are_kept_up_to_32)
{
	enum { N = 40 };
	struct closures *q = begin(MANY);
	struct closure *got[N];
	struct item items[N], z = ITEM_INIT;
	char text[16];
	unsigned i;

	init(items, N);
	for (i = 0; i < N; i++)
		OK(put(q, &items[i]));
	IS(LOCKED(q, evc__closures_take(q, 0, got, N)), N);
	for (i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "error %u", i);
		IS(done(q), EVC_PENDING);
		breaks(q, ITEM_OF(got[i]), (evc_status)(i + 20), text);
	}
	IS(done(q), 20);
	ck_assert_uint_eq(q->n_raised, ERRORS_KEPT);
	for (i = 0; i < ERRORS_KEPT; i++) {
		snprintf(text, sizeof(text), "error %u", i);
		ck_assert_str_eq(q->raised[i].text, text);
		ck_assert_int_eq(q->raised[i].code, (int)i + 20);
	}
	/* They stay until the next one is raised. */
	OK(done(q));
	ck_assert_uint_eq(q->n_raised, ERRORS_KEPT);
	OK(put(q, &z));
	breaks(q, get(q), EVC_ABORTED, "last");
	ck_assert_uint_eq(q->n_raised, ERRORS_KEPT);
	IS(done(q), EVC_ABORTED);
	ck_assert_uint_eq(q->n_raised, 1);
	end(q);
}
END_TEST

START_TEST(the_stop_cancels_all_that_does_not_run)
{
	struct closures *q = begin(MANY);
	struct item items[5];
	struct waiting w;
	int i;

	init(items, 5);
	put_held(q, &items[0]);
	for (i = 1; i < 5; i++)
		OK(put(q, &items[i]));
	ck_assert_ptr_eq(get(q), &items[1]);
	ck_assert_ptr_eq(get(q), &items[2]);
	wait_begin_asleep(&w, q);
	LOCKED_DO(q, evc__closures_stop(q));
	ck_assert(q->stopped);
	ck_assert_uint_ge(q->cancel_upto, items[2].c.n);
	ck_assert_int_eq(items[0].cancelled, 1);
	ck_assert_int_eq(items[3].cancelled, 1);
	ck_assert_int_eq(items[4].cancelled, 1);
	ck_assert_ptr_null(get(q));
	ck_assert(still_sleeps(&w));
	back(q, &items[1]);
	ck_assert_int_eq(items[1].cancelled, 1);
	finish(q, &items[2]);
	OK(wait_end(&w));
	ck_assert_int_eq(items[2].cancelled, 0);
	end(q);
}
END_TEST

/* What is told of a cancelled one may cancel others that waited for it. */
static struct item *follows;

static void
and_the_next(struct closures *q, struct closure *cl)
{
	struct item *next = follows;

	note_cancelled(q, cl);
	follows = NULL;
	if (next != NULL && next->c.where != CLOSURE_OUT) {
		evc__closures_out(q, &next->c);
		next->ended++;
	}
}

START_TEST(cancelled_may_take_out_others)
{
	struct closures *q = begin(MANY);
	struct item items[4];
	int i;

	q->cancelled = and_the_next;
	init(items, 4);
	OK(put(q, &items[0]));
	for (i = 1; i < 4; i++)
		put_held(q, &items[i]);
	ck_assert_ptr_eq(get(q), &items[0]);
	follows = &items[2];
	breaks(q, &items[0], EVC_ABORTED, "no");
	for (i = 1; i < 4; i++)
		ck_assert_int_eq(items[i].cancelled + items[i].ended, 1);
	ck_assert_int_eq(items[2].ended, 1);
	IS(done(q), EVC_ABORTED);
	ck_assert(is_empty(q));
	end(q);
}
END_TEST

/* ---- alone ---- */

static void
back_alone(struct closures *q, struct item *i)
{
	LOCKED_DO(q, evc__closures_back(q, &i->c, CLOSURE_ALONE));
}

static bool
has_news(struct closures *q)
{
	bool news = q->alone_news;

	q->alone_news = false;
	return news;
}

START_TEST(one_runs_alone)
{
	struct closures *q = begin(MANY);
	struct item items[5];
	int i;

	init(items, 5);
	items[4].c.priority = 7;
	for (i = 0; i < 4; i++)
		OK(put(q, &items[i]));
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert_ptr_eq(get(q), &items[1]);
	ck_assert_ptr_eq(get(q), &items[2]);
	ck_assert(!has_news(q));
	/* Two of the three, while the third is taken: nothing is given out. */
	back_alone(q, &items[0]);
	ck_assert(has_news(q));
	back_alone(q, &items[1]);
	OK(put(q, &items[4]));
	ck_assert_ptr_null(get(q));
	IS(done(q), EVC_PENDING);
	(void)has_news(q);
	finish(q, &items[2]);
	ck_assert(has_news(q));
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert(has_news(q));
	ck_assert_ptr_null(get(q));
	/* It may come back as others do, and is one of them then. */
	back(q, &items[0]);
	ck_assert(has_news(q));
	ck_assert_ptr_eq(get(q), &items[1]);
	ck_assert_ptr_null(get(q));
	finish(q, &items[1]);
	ck_assert(has_news(q));
	ck_assert_ptr_eq(get(q), &items[4]);
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert_ptr_eq(get(q), &items[3]);
	ck_assert(!has_news(q));
	finish(q, &items[0]);
	finish(q, &items[3]);
	finish(q, &items[4]);
	ck_assert(!has_news(q));
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(an_owner_without_patience_gives_all_out)
{
	struct closures *q = begin(MANY);
	struct item items[4];
	int i;

	init(items, 4);
	items[0].c.tag = 1;
	for (i = 0; i < 4; i++)
		OK(put(q, &items[i]));
	ck_assert_ptr_eq(get_for(q, 1), &items[0]);
	ck_assert_ptr_eq(get(q), &items[1]);
	back_alone(q, &items[0]);
	ck_assert_ptr_null(get_for(q, 1));
	q->impatient = true;
	/* Not for this worker, which has another one. */
	ck_assert_ptr_eq(get_for(q, 2), &items[2]);
	ck_assert_ptr_eq(get_for(q, 1), &items[0]);
	q->impatient = false;
	ck_assert_ptr_null(get_for(q, 2));
	q->impatient = true;
	ck_assert_ptr_eq(get_for(q, 2), &items[3]);
	for (i = 0; i < 4; i++)
		finish(q, &items[i]);
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(one_that_waits_to_be_alone_can_go)
{
	struct closures *q = begin(MANY);
	struct item items[3];
	int i;

	init(items, 3);
	for (i = 0; i < 3; i++)
		OK(put(q, &items[i]));
	ck_assert_ptr_eq(get(q), &items[0]);
	ck_assert_ptr_eq(get(q), &items[1]);
	/* Cancelled by its owner. */
	back_alone(q, &items[0]);
	(void)has_news(q);
	LOCKED_DO(q, evc__closures_out(q, &items[0].c));
	ck_assert(has_news(q));
	ck_assert_ptr_eq(get(q), &items[2]);
	/* Queued as the others are. */
	back_alone(q, &items[2]);
	LOCKED_DO(q, evc__closures_mix(q));
	ck_assert_ptr_eq(get(q), &items[2]);
	/* Cancelled by the stop. */
	back_alone(q, &items[2]);
	LOCKED_DO(q, evc__closures_stop(q));
	IS(items[2].cancelled, 1);
	back_alone(q, &items[1]);
	IS(items[1].cancelled, 1);
	OK(done(q));
	end(q);
}
END_TEST

START_TEST(without_memory_there_is_no_queue)
{
	struct closures q, *with;
	int nth;

	for (nth = 1; nth <= 2; nth++) {
		seam_fail("alloc", "evc__closures_init", nth, ENOMEM);
		ck_assert(!evc__closures_init(&q, 1, note_cancelled));
		seam_reset();
	}
	with = begin(1);
	for (nth = 1; nth <= 3; nth++) {
		seam_fail("alloc", "evc__closures_tags", nth, ENOMEM);
		ck_assert(!LOCKED(with, evc__closures_tags(with, 100)));
		seam_reset();
	}
	ck_assert(LOCKED(with, evc__closures_tags(with, 100)));
	end(with);
}
END_TEST

API_MAIN("closures", greater_priorities_come_first_and_equal_ones_in_turn,
	 of_one_priority_work_of_its_own_comes_first,
	 who_leaves_gets_its_own_alone,
	 what_comes_back_is_the_next_of_its_priority,
	 what_is_held_is_accepted_and_not_taken,
	 an_error_cancels_what_is_held_too, an_error_of_what_was_not_taken,
	 nothing_is_raised_while_a_worker_is_in_doubt,
	 room_is_a_limit_and_is_waited_for,
	 an_error_is_raised_once_whoever_waits,
	 errors_behind_the_first_are_kept_up_to_32,
	 the_stop_cancels_all_that_does_not_run, cancelled_may_take_out_others,
	 one_runs_alone, an_owner_without_patience_gives_all_out,
	 one_that_waits_to_be_alone_can_go,
	 without_memory_there_is_no_queue)
