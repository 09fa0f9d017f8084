/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues at a stop, a cancel, their end of input, and in the next round.
 */
#include "../../support/queue_util.h"

/* ---- a stop ---- */

/* "pushes and pops return -EVC_CANCELLED at once" */
START_TEST(stop_ends_those_who_wait)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *full = new_queue(c, 1, 0), *empty = new_queue(c, 1, 0);
	struct qcall push[3], pop[3];
	int i;

	push_now(full, 1, 1);
	for (i = 0; i < 3; i++) {
		qcall_wait(&push[i], full, BY_PUSH, ITEM(2));
		qcall_wait(&pop[i], empty, BY_POP, NULL);
	}
	OK(evc_request_stop(c, 0, "stop"));
	for (i = 0; i < 3; i++) {
		QCALL_REFUSED(&push[i], EVC_CANCELLED);
		HAS(push[i].why, "stop");
		QCALL_REFUSED(&pop[i], EVC_CANCELLED);
		HAS(pop[i].why, "stop");
	}
	ck_assert_uint_eq(info_of(full).n, 1);
	take_now(full, 1, 1);
	OK(evc_queue_free(full));
	drop_queue(c, empty);
}
END_TEST

START_TEST(stop_bars_those_who_come_later)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 2, 0);
	void *item = ITEM(77);

	push_now(q, 1, 1);
	OK(evc_request_stop(c, 0, "stop"));
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(2), 0));
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(2), INFINITY));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, 0));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	ck_assert_int_eq(NUMBER(item), 77);
	/* "Items are never dropped by the queue" */
	take_now(q, 1, 1);
	drop_queue(c, q);
}
END_TEST

/* "with EVC_QUEUE_DRAIN pops first hand out what is in it" */
START_TEST(stop_of_a_draining_queue_lets_pops_empty_it)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, EVC_QUEUE_DRAIN);
	struct qcall w;
	void *item;

	push_now(q, 1, 4);
	qcall_wait(&w, q, BY_PUSH, ITEM(5));
	OK(evc_request_stop(c, 0, "stop"));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	pop_now(q, 1, 2);
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(5), 0));
	OK(evc_queue_pop(q, &item, INFINITY));
	ck_assert_int_eq(NUMBER(item), 3);
	pop_now(q, 4, 4);
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, 0));
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(5), 0));
	drop_queue(c, q);
}
END_TEST

START_TEST(stop_of_a_draining_queue_ends_pops_of_an_empty_one)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, EVC_QUEUE_DRAIN);
	struct qcall w[2];

	qcall_wait(&w[0], q, BY_POP, NULL);
	qcall_wait(&w[1], q, BY_POP, NULL);
	OK(evc_request_stop(c, 0, "stop"));
	QCALL_REFUSED(&w[0], EVC_CANCELLED);
	QCALL_REFUSED(&w[1], EVC_CANCELLED);
	drop_queue(c, q);
}
END_TEST

/* The stop comes before a cancel, that before the end of input. */
START_TEST(stop_comes_before_cancel_and_close)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 2, EVC_QUEUE_DRAIN);
	void *item;

	OK(evc_queue_close(q));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_push(q, ITEM(1), 0));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_pop(q, &item, 0));
	OK(evc_queue_cancel(q));
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(1), 0));
	HAS(evc_last_error(), "cancelled");
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "cancelled");
	OK(evc_queue_reopen(q));
	OK(evc_queue_close(q));
	OK(evc_request_stop(c, 0, "stop"));
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(1), 0));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "stop");
	drop_queue(c, q);
}
END_TEST

/* The stop is taken back: the queue goes on with what is in it, also one whose
   pops have said that nothing is left. */
START_TEST(stop_that_is_cleared_leaves_a_queue_as_it_was)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q;
	unsigned flags;
	void *item;
	int round;

	for (flags = 0; flags <= EVC_QUEUE_DRAIN; flags += EVC_QUEUE_DRAIN) {
		q = new_queue(c, 2, flags);
		for (round = 0; round < 3; round++) {
			push_now(q, 1, 2);
			OK(evc_request_stop(c, 0, "stop"));
			if (flags & EVC_QUEUE_DRAIN)
				pop_now(q, 1, 2);
			REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, 0));
			OK(evc_clear_stop(c));
			if (!(flags & EVC_QUEUE_DRAIN))
				pop_now(q, 1, 2);
			REFUSED(EVC_DEADLINE_EXCEEDED,
				evc_queue_pop(q, &item, 0));
		}
		OK(evc_queue_free(q));
	}
	OK(evc_free(c));
}
END_TEST

/* Of its coordinator: of the scope it was made in, and all above. */
START_TEST(stop_of_a_scope_is_that_of_its_queues)
{
	evc_coord *c = new_coord(NULL), *scope;
	evc_queue *above, *below;
	struct qcall w;

	OK(evc_scope_new(c, "scope", NULL, &scope));
	OK(evc_scope_ready(scope));
	above = new_queue(c, 1, 0);
	below = new_queue(scope, 1, 0);
	qcall_wait(&w, below, BY_POP, NULL);
	OK(evc_request_stop(scope, 0, "stop"));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	push_now(above, 1, 1);
	pop_now(above, 1, 1);
	OK(evc_clear_stop(scope));
	qcall_wait(&w, below, BY_POP, NULL);
	OK(evc_request_stop(c, 0, "stop"));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	OK(evc_queue_free(below));
	OK(evc_free(scope));
	drop_queue(c, above);
}
END_TEST

/* ---- the end of input ---- */

/* "pushes are refused with -EVC_OUT_OF_RANGE, and pops hand out what is in it,
   then say the same" */
START_TEST(close_lets_pops_empty_it)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	void *item = ITEM(77);

	push_now(q, 1, 2);
	OK(evc_queue_close(q));
	OK(evc_queue_close(q));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_push(q, ITEM(3), 0));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_push(q, ITEM(3), INFINITY));
	pop_now(q, 1, 2);
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_pop(q, &item, INFINITY));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "closed");
	ck_assert_int_eq(NUMBER(item), 77);
	drop_queue(c, q);
}
END_TEST

START_TEST(close_ends_those_who_wait)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *full = new_queue(c, 1, 0), *empty = new_queue(c, 1, 0);
	struct qcall push[2], pop[2];
	int i;

	push_now(full, 1, 1);
	for (i = 0; i < 2; i++) {
		qcall_wait(&push[i], full, BY_PUSH, ITEM(2));
		qcall_wait(&pop[i], empty, BY_POP, NULL);
	}
	OK(evc_queue_close(full));
	OK(evc_queue_close(empty));
	for (i = 0; i < 2; i++) {
		QCALL_REFUSED(&push[i], EVC_OUT_OF_RANGE);
		QCALL_REFUSED(&pop[i], EVC_OUT_OF_RANGE);
	}
	pop_now(full, 1, 1);
	OK(evc_queue_free(full));
	drop_queue(c, empty);
}
END_TEST

static evc_status
pop_until_the_end(evc_coord *c, void *arg)
{
	evc_status st = 0;
	void *item;

	(void)c;
	while (st == 0)
		st = evc_queue_pop(arg, &item, INFINITY);
	return st;
}

/* "OUT_OF_RANGE is a clean code: a worker may return what a pop returned." */
START_TEST(close_is_a_clean_end_for_a_thread)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	evc_verdict v;

	OK(evc_thread_start(c, "pops", pop_until_the_end, q, NULL, NULL));
	push_now(q, 1, 3);
	OK(evc_queue_close(q));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert(!evc_should_stop(c));
	drop_queue(c, q);
}
END_TEST

/* ---- the cancel ---- */

/* "Whoever waits, and comes from now on, gets -EVC_CANCELLED; items stay" */
START_TEST(cancel_ends_this_queue_alone)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0), *other = new_queue(c, 1, 0);
	evc_queue *drains = new_queue(c, 1, EVC_QUEUE_DRAIN);
	struct qcall w;
	void *item;

	push_now(q, 1, 1);
	qcall_wait(&w, q, BY_PUSH, ITEM(2));
	OK(evc_queue_cancel(q));
	OK(evc_queue_cancel(q));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	HAS(w.why, "cancelled");
	REFUSED(EVC_CANCELLED, evc_queue_push(q, ITEM(2), INFINITY));
	REFUSED(EVC_CANCELLED, evc_queue_pop(q, &item, INFINITY));
	take_now(q, 1, 1);
	push_now(other, 1, 1);
	pop_now(other, 1, 1);
	qcall_wait(&w, other, BY_POP, NULL);
	OK(evc_queue_cancel(other));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	ck_assert(!evc_should_stop(c));
	/* At once, whatever it does at a stop. */
	push_now(drains, 1, 1);
	OK(evc_queue_cancel(drains));
	REFUSED(EVC_CANCELLED, evc_queue_pop(drains, &item, INFINITY));
	take_now(drains, 1, 1);
	OK(evc_queue_free(drains));
	OK(evc_queue_free(other));
	drop_queue(c, q);
}
END_TEST

/* ---- another round ---- */

START_TEST(reopen_begins_another_round)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 2, 0);
	void *item;

	push_now(q, 1, 1);
	OK(evc_queue_close(q));
	OK(evc_queue_reopen(q));
	push_now(q, 2, 2);
	pop_now(q, 1, 1);
	OK(evc_queue_cancel(q));
	OK(evc_queue_reopen(q));
	pop_now(q, 2, 2);
	OK(evc_queue_reopen(q)); /* of an open one: nothing changes */
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	OK(evc_queue_close(q));
	REFUSED(EVC_OUT_OF_RANGE, evc_queue_pop(q, &item, 0));
	ck_assert(info_of(q).closed);
	OK(evc_queue_reopen(q));
	ck_assert(!info_of(q).closed && !info_of(q).cancelled);
	drop_queue(c, q);
}
END_TEST

/* Who waited when it was ended hears of it, though it was reopened before that
   thread could get up, and there is something to be had again. */
START_TEST(reopen_does_not_hide_the_end_from_who_waits)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w[4];
	int i, way;

	for (way = 0; way < 20; way++) {
		if (way & 1)
			push_now(q, 1, 1);
		for (i = 0; i < 4; i++)
			qcall_begin(&w[i], q, way & 1 ? BY_PUSH : BY_POP,
				    ITEM(2), INFINITY);
		UNTIL(info_of(q).n_popping + info_of(q).n_pushing == 4);
		OK(way & 2 ? evc_queue_close(q) : evc_queue_cancel(q));
		OK(evc_queue_reopen(q));
		if (way & 4 && way & 1)
			pop_now(q, 1, 1);
		else if (way & 4)
			push_now(q, 1, 1);
		for (i = 0; i < 4; i++)
			QCALL_REFUSED(&w[i], way & 2 ? EVC_OUT_OF_RANGE :
						       EVC_CANCELLED);
		if ((way & 1) != (way >> 2 & 1))
			take_now(q, 1, 1);
	}
	drop_queue(c, q);
}
END_TEST

API_MAIN("queue_end", stop_ends_those_who_wait, stop_bars_those_who_come_later,
	 stop_of_a_draining_queue_lets_pops_empty_it,
	 stop_of_a_draining_queue_ends_pops_of_an_empty_one,
	 stop_comes_before_cancel_and_close,
	 stop_that_is_cleared_leaves_a_queue_as_it_was,
	 stop_of_a_scope_is_that_of_its_queues, close_lets_pops_empty_it,
	 close_ends_those_who_wait, close_is_a_clean_end_for_a_thread,
	 cancel_ends_this_queue_alone, reopen_begins_another_round,
	 reopen_does_not_hide_the_end_from_who_waits)
