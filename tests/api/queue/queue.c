/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues: what goes in and out, in which order, and who waits how long.
 */
#include "../../support/queue_util.h"

#include <sys/wait.h>

/* ---- making and freeing ---- */

START_TEST(queue_is_made_and_freed)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = NULL;

	OK(evc_queue_new(c, NULL, 3, NULL, &q));
	ck_assert_ptr_nonnull(q);
	OK(evc_queue_free(q));
	OK(evc_queue_free(NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(queue_new_refuses_what_is_wrong)
{
	static const evc_queue_opts wrong[] = {
		{ .flags = 1u << 20 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
		{ .flags = EVC_QUEUE_DRAIN, .reserved_ = { 0, 1 } },
	};
	evc_coord *c = new_coord(NULL);
	evc_queue *q = NULL;
	char name[49];
	void *item;
	size_t i;

	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_new(NULL, "q", 1, NULL, &q));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_new(c, "q", 0, NULL, &q));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_queue_new(c, "q", ((size_t)1 << 30) + 1, NULL, &q));
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_queue_new(c, "q", 1, &wrong[i], &q));
		HAS(evc_last_error(), i == 0 ? "flags" : "reserved");
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_new(c, "q", 1, NULL, NULL));
	memset(name, 'n', sizeof(name) - 1);
	name[48] = '\0';
	ck_assert_ptr_null(q);
	OK(evc_queue_new(c, name, 1, NULL, &q));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "nnnn...");
	OK(evc_queue_free(q));
	OK(evc_free(c));
}
END_TEST

/* "name and opts are copied." */
START_TEST(queue_copies_its_name)
{
	evc_coord *c = new_coord(NULL);
	char name[] = "letters";
	evc_queue *q;
	void *item;

	OK(evc_queue_new(c, name, 1, NULL, &q));
	memset(name, 'x', sizeof(name) - 1);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "letters");
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_without_a_name_has_one)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q;
	void *item;

	OK(evc_queue_new(c, NULL, 1, NULL, &q));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	HAS(evc_last_error(), "queue queue");
	drop_queue(c, q);
}
END_TEST

/* "gives it back by evc_queue_free before c is freed" */
START_TEST(queue_keeps_its_coordinator)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);

	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	ck_assert_ptr_nonnull(strstr(evc_last_error(), "queues"));
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_free_is_refused_with_items)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 2, 0);

	push_now(q, 1, 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
	HAS(evc_last_error(), "items");
	take_now(q, 1, 1);
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_free_is_refused_while_threads_wait)
{
	static const char *const hint[] = { "items", "threads", "items" };
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w;
	int what;

	for (what = 0; what < N_CALLS; what++) {
		if (what != BY_POP)
			push_now(q, 1, 1);
		qcall_wait(&w, q, what, ITEM(2));
		REFUSED(EVC_FAILED_PRECONDITION, evc_queue_free(q));
		HAS(evc_last_error(), hint[what]);
		OK(evc_queue_cancel(q));
		QCALL_REFUSED(&w, EVC_CANCELLED);
		OK(evc_queue_reopen(q));
		if (what != BY_POP)
			take_now(q, 1, 1);
	}
	drop_queue(c, q);
}
END_TEST

/* ---- in and out ---- */

START_TEST(queue_is_first_in_first_out)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 5, 0);
	int i;

	/* Through many laps, and at every place of the ring. */
	for (i = 0; i < 40; i++) {
		push_now(q, 10 * i + 1, 10 * i + 3);
		pop_now(q, 10 * i + 1, 10 * i + 2);
		push_now(q, 10 * i + 4, 10 * i + 7);
		pop_now(q, 10 * i + 3, 10 * i + 7);
	}
	drop_queue(c, q);
}
END_TEST

/* Exactly so many, whatever number that is. */
START_TEST(queue_holds_as_many_as_it_says)
{
	static const int capacity[] = { 1, 2, 3, 4, 5, 7, 8, 100, 1000, 1024 };
	evc_coord *c = new_coord(NULL);
	evc_queue *q;
	unsigned i;
	int lap, n;

	for (i = 0; i < sizeof(capacity) / sizeof(capacity[0]); i++) {
		n = capacity[i];
		q = new_queue(c, (size_t)n, 0);
		for (lap = 0; lap < 3; lap++) {
			push_now(q, 1, n);
			REFUSED(EVC_DEADLINE_EXCEEDED,
				evc_queue_push(q, ITEM(n + 1), 0));
			ck_assert_uint_eq(info_of(q).n, (size_t)n);
			pop_now(q, 1, 1);
			push_now(q, n + 1, n + 1);
			REFUSED(EVC_DEADLINE_EXCEEDED,
				evc_queue_push(q, ITEM(n + 2), 0));
			pop_now(q, 2, n + 1);
		}
		OK(evc_queue_free(q));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(queue_info_counts)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 3, 0);
	evc_queue_info i = info_of(q);
	int lap;

	ck_assert_uint_eq(i.capacity, 3);
	ck_assert_uint_eq(i.n, 0);
	for (lap = 0; lap < 7; lap++) {
		push_now(q, 1, 2);
		pop_now(q, 1, 2);
	}
	push_now(q, 1, 2);
	i = info_of(q);
	ck_assert_uint_eq(i.n, 2);
	ck_assert_uint_eq(i.n_pushed, 16);
	ck_assert_uint_eq(i.n_popped, 14);
	ck_assert_uint_eq(i.n_pushing, 0);
	ck_assert_uint_eq(i.n_popping, 0);
	ck_assert(!i.closed && !i.cancelled);
	OK(evc_queue_close(q));
	ck_assert(info_of(q).closed && !info_of(q).cancelled);
	OK(evc_queue_cancel(q));
	ck_assert(info_of(q).closed && info_of(q).cancelled);
	/* The flags are no part of the numbers. */
	ck_assert_uint_eq(info_of(q).n, 2);
	ck_assert_uint_eq(info_of(q).n_pushed, 16);
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_info_counts_threads)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w[2];

	qcall_wait(&w[0], q, BY_POP, NULL);
	qcall_wait(&w[1], q, BY_POP, NULL);
	ck_assert_uint_eq(info_of(q).n_popping, 2);
	ck_assert_uint_eq(info_of(q).n_pushing, 0);
	push_now(q, 1, 1);
	OK(evc_queue_push(q, ITEM(2), INFINITY));
	OK(qcall_end(&w[0]));
	OK(qcall_end(&w[1]));
	push_now(q, 1, 1);
	qcall_wait(&w[0], q, BY_PUSH, ITEM(2));
	ck_assert_uint_eq(info_of(q).n_popping, 0);
	ck_assert_uint_eq(info_of(q).n_pushing, 1);
	pop_now(q, 1, 1);
	OK(qcall_end(&w[0]));
	drop_queue(c, q);
}
END_TEST

/* "Take the oldest item out whatever the state" */
START_TEST(queue_take_works_in_every_state)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, 0);
	void *item = ITEM(77);

	push_now(q, 1, 4);
	take_now(q, 1, 1);
	OK(evc_queue_close(q));
	take_now(q, 2, 2);
	OK(evc_queue_cancel(q));
	take_now(q, 3, 3);
	OK(evc_request_stop(c, 0, "stop"));
	take_now(q, 4, 4);
	REFUSED(EVC_NOT_FOUND, evc_queue_try_pop(q, &item));
	ck_assert_int_eq(NUMBER(item), 77);
	drop_queue(c, q);
}
END_TEST

/* ---- waiting ---- */

/* "waiting for room timeout seconds at most (<= 0: do not wait)" */
START_TEST(queue_push_waits_for_room)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w;
	double start;

	push_now(q, 1, 1);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_push(q, ITEM(2), 0));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_push(q, ITEM(2), -INFINITY));
	start = t_now();
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_push(q, ITEM(2), 0.05));
	ck_assert_double_ge(t_now() - start, 0.05);
	qcall_wait(&w, q, BY_PUSH, ITEM(2));
	pop_now(q, 1, 1);
	OK(qcall_end(&w));
	pop_now(q, 2, 2);
	drop_queue(c, q);
}
END_TEST

/* "*ret_item is the caller's after 0, else untouched" */
START_TEST(queue_pop_waits_for_an_item)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	void *item = ITEM(77);
	struct qcall w;
	double start;

	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, -1));
	start = t_now();
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_pop(q, &item, 0.05));
	ck_assert_double_ge(t_now() - start, 0.05);
	ck_assert_int_eq(NUMBER(item), 77);
	qcall_wait(&w, q, BY_POP, NULL);
	push_now(q, 1, 1);
	OK(qcall_end(&w));
	ck_assert_int_eq(NUMBER(w.item), 1);
	drop_queue(c, q);
}
END_TEST

/* By the coordinator's clock, as all waits. */
START_TEST(queue_waits_by_the_clock_of_its_coordinator)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w;

	qcall_begin(&w, q, BY_POP, NULL, 3600);
	qcall_sleeps(&w);
	scripted_advance(3601);
	/* Whoever comes and goes makes it look. */
	push_now(q, 1, 1);
	OK(qcall_end(&w));
	drop_queue(c, q);
}
END_TEST

/* Each item wakes one; all that wait get theirs. */
START_TEST(queue_wakes_all_that_there_are_items_for)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 8, 0);
	struct qcall w[8];
	int i, sum = 0;

	for (i = 0; i < 8; i++)
		qcall_begin(&w[i], q, BY_POP, NULL, INFINITY);
	UNTIL(info_of(q).n_popping == 8);
	push_now(q, 1, 8);
	for (i = 0; i < 8; i++) {
		OK(qcall_end(&w[i]));
		sum += (int)NUMBER(w[i].item);
	}
	ck_assert_int_eq(sum, 36);
	push_now(q, 1, 8);
	for (i = 0; i < 8; i++)
		qcall_begin(&w[i], q, BY_PUSH, ITEM(10), INFINITY);
	UNTIL(info_of(q).n_pushing == 8);
	pop_now(q, 1, 8);
	for (i = 0; i < 8; i++)
		OK(qcall_end(&w[i]));
	ck_assert_uint_eq(info_of(q).n, 8);
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_of_one_hands_over_one_by_one)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w;
	int i;

	for (i = 1; i <= 200; i++) {
		qcall_begin(&w, q, BY_PUSH, ITEM(i), INFINITY);
		qcall_end(&w);
		ck_assert_uint_eq(info_of(q).n, 1);
		pop_now(q, i, i);
	}
	drop_queue(c, q);
}
END_TEST

/* ---- until it is empty ---- */

START_TEST(queue_drain_waits_until_it_is_empty)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 4, 0);
	struct qcall w[2];

	OK(evc_queue_drain(q, 0));
	push_now(q, 1, 3);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_drain(q, 0));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_queue_drain(q, 0.01));
	qcall_wait(&w[0], q, BY_DRAIN, NULL);
	qcall_wait(&w[1], q, BY_DRAIN, NULL);
	pop_now(q, 1, 2);
	t_sleep(0.05);
	ck_assert(!atomic_load(&w[0].done) && !atomic_load(&w[1].done));
	pop_now(q, 3, 3);
	OK(qcall_end(&w[0]));
	OK(qcall_end(&w[1]));
	push_now(q, 1, 1);
	qcall_wait(&w[0], q, BY_DRAIN, NULL);
	take_now(q, 1, 1);
	OK(qcall_end(&w[0]));
	drop_queue(c, q);
}
END_TEST

/* Beside pushes that wait for room. */
START_TEST(queue_drain_and_pushes_wait_side_by_side)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall p, d;

	push_now(q, 1, 1);
	qcall_wait(&d, q, BY_DRAIN, NULL);
	qcall_wait(&p, q, BY_PUSH, ITEM(2));
	pop_now(q, 1, 1);
	OK(qcall_end(&p));
	pop_now(q, 2, 2);
	OK(qcall_end(&d));
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_drain_ends_at_a_stop_or_cancel)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	struct qcall w;

	push_now(q, 1, 1);
	qcall_wait(&w, q, BY_DRAIN, NULL);
	OK(evc_queue_cancel(q));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	REFUSED(EVC_CANCELLED, evc_queue_drain(q, INFINITY));
	OK(evc_queue_reopen(q));
	qcall_wait(&w, q, BY_DRAIN, NULL);
	OK(evc_request_stop(c, 0, "stop"));
	QCALL_REFUSED(&w, EVC_CANCELLED);
	REFUSED(EVC_CANCELLED, evc_queue_drain(q, INFINITY));
	/* Empty is empty. */
	take_now(q, 1, 1);
	OK(evc_queue_drain(q, 0));
	drop_queue(c, q);
}
END_TEST

/* ---- wrong use ---- */

START_TEST(queue_calls_refuse_what_is_wrong)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 1, 0);
	evc_queue_info i;
	void *item = NULL;

	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_push(NULL, ITEM(1), 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_push(q, NULL, 0));
	HAS(evc_last_error(), "item");
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_push(q, ITEM(1), NAN));
	HAS(evc_last_error(), "NaN");
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_pop(NULL, &item, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_pop(q, NULL, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_pop(q, &item, NAN));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_try_pop(NULL, &item));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_try_pop(q, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_drain(NULL, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_drain(q, NAN));
	HAS(evc_last_error(), "NaN");
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_close(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_cancel(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_reopen(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_get(NULL, &i));
	REFUSED(EVC_INVALID_ARGUMENT, evc_queue_get(q, NULL));
	ck_assert_uint_eq(info_of(q).n, 0);
	drop_queue(c, q);
}
END_TEST

START_TEST(queue_belongs_to_the_process_that_made_it)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = new_queue(c, 2, 0);
	evc_queue_info i;
	int status;
	void *item;
	pid_t pid;

	push_now(q, 1, 1);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		CHILD_REFUSED(evc_queue_push(q, ITEM(2), 0));
		CHILD(strstr(evc_last_error(), "fork") != NULL);
		CHILD_REFUSED(evc_queue_push(q, ITEM(2), INFINITY));
		CHILD_REFUSED(evc_queue_pop(q, &item, INFINITY));
		CHILD_REFUSED(evc_queue_try_pop(q, &item));
		CHILD_REFUSED(evc_queue_drain(q, INFINITY));
		CHILD_REFUSED(evc_queue_close(q));
		CHILD_REFUSED(evc_queue_cancel(q));
		CHILD_REFUSED(evc_queue_reopen(q));
		CHILD_REFUSED(evc_queue_get(q, &i));
		CHILD_REFUSED(evc_queue_watch(q, NULL, NULL, NULL, 0, NULL));
		CHILD_REFUSED(evc_queue_unwatch(q, 1));
		CHILD_REFUSED(evc_queue_feed(q, NULL, 1, NULL, NULL, NULL));
		CHILD_REFUSED(evc_queue_free(q));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	pop_now(q, 1, 1);
	drop_queue(c, q);
}
END_TEST

API_MAIN("queue", queue_is_made_and_freed, queue_new_refuses_what_is_wrong,
	 queue_copies_its_name, queue_without_a_name_has_one,
	 queue_keeps_its_coordinator, queue_free_is_refused_with_items,
	 queue_free_is_refused_while_threads_wait, queue_is_first_in_first_out,
	 queue_holds_as_many_as_it_says, queue_info_counts,
	 queue_info_counts_threads, queue_take_works_in_every_state,
	 queue_push_waits_for_room, queue_pop_waits_for_an_item,
	 queue_waits_by_the_clock_of_its_coordinator,
	 queue_wakes_all_that_there_are_items_for,
	 queue_of_one_hands_over_one_by_one,
	 queue_drain_waits_until_it_is_empty,
	 queue_drain_and_pushes_wait_side_by_side,
	 queue_drain_ends_at_a_stop_or_cancel, queue_calls_refuse_what_is_wrong,
	 queue_belongs_to_the_process_that_made_it)
