/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks: told once, on their loop, in the order of their begin, in slices;
 * whatever an on_stop ends or frees; late ones; wrong use; destroyed loops.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <malloc.h>

/* A task that notes when it was told, and may do something then. */
struct item {
	evc_task task; /* first: the task is the item */
	int number, told;
	void (*then)(struct item *);
};

static int n_told, last_told;
static bool in_order;
static pthread_t told_on;

static void
note(evc_task *t, void *arg)
{
	struct item *it = (struct item *)t;

	(void)arg;
	n_told++;
	in_order = in_order && it->number > last_told;
	last_told = it->number;
	told_on = pthread_self();
	it->told++;
	if (it->then != NULL)
		it->then(it);
}

static const evc_task_class noted = { .name = "noted", .on_stop = note };
static const evc_task_class silent = { .name = "silent" };
static const evc_task_class late = {
	.name = "late",
	.on_stop = note,
	.flags = EVC_AFTER_STOP,
};

static struct ev_loop *loop;
static evc_coord *coord;

static void
setup(void)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	coord = new_coord(loop);
	n_told = 0;
	last_told = -1;
	in_order = true;
}

static void
teardown(void)
{
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}

static void
begin(struct item *it, int number, void (*then)(struct item *))
{
	memset(it, 0, sizeof(*it));
	it->number = number;
	it->then = then;
	OK(evc_task_begin(evc_home(coord), &it->task, &noted));
}

static void
end_self(struct item *it)
{
	evc_task_end(&it->task);
}

START_TEST(each_is_told_once_in_order_on_its_loop)
{
	struct item it[10];
	int i;

	setup();
	for (i = 0; i < 10; i++)
		begin(&it[i], i, NULL);
	ck_assert_int_eq(n_told, 0);
	OK(evc_request_stop(coord, 0, NULL));
	ck_assert_int_eq(n_told, 0); /* never in the thread that asks */
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 10);
	ck_assert(in_order);
	ck_assert(pthread_equal(told_on, pthread_self()));
	OK(evc_request_stop(coord, EVC_OUT_OF_RANGE, "again"));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 10);
	for (i = 0; i < 10; i++)
		evc_task_end(&it[i].task);
	teardown();
}
END_TEST

static struct item *heap[8];

static void
free_it(struct item *it)
{
	heap[it->number] = NULL;
	evc_task_end(&it->task);
	memset(it, 0x5a, sizeof(*it));
	free(it);
}

/* Ends itself and those beside it, told already or not. */
static void
free_neighbours(struct item *it)
{
	int i, n = it->number;

	for (i = n - 1; i <= n + 2; i++)
		if (i >= 0 && i < 8 && heap[i] != NULL)
			free_it(heap[i]);
}

START_TEST(an_on_stop_may_end_and_free_any_of_its_loop)
{
	int i;

	setup();
	for (i = 0; i < 8; i++) {
		heap[i] = malloc(sizeof(*heap[i]));
		begin(heap[i], i, i == 3 ? free_neighbours : NULL);
	}
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	/* 2 was told before it went, 4 and 5 never were */
	ck_assert_int_eq(n_told, 6);
	ck_assert(in_order);
	for (i = 0; i < 8; i++)
		ck_assert((heap[i] == NULL) == (i >= 2 && i <= 5));
	for (i = 0; i < 8; i++)
		if (heap[i] != NULL)
			free_it(heap[i]);
	OK(evc_join(coord, NULL, NULL));
	teardown();
}
END_TEST

static void
end_all(struct item *it)
{
	int i;

	(void)it;
	for (i = 0; i < 8; i++)
		if (heap[i] != NULL)
			free_it(heap[i]);
}

START_TEST(the_first_may_end_them_all)
{
	int i;

	setup();
	for (i = 0; i < 8; i++) {
		heap[i] = malloc(sizeof(*heap[i]));
		begin(heap[i], i, end_all);
	}
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_run(coord, NULL, NULL));
	ck_assert_int_eq(n_told, 1);
	teardown();
}
END_TEST

START_TEST(a_join_waits_for_the_last_task)
{
	struct item it[3];
	evc_join_opts opts = { .grace = 0.02 };
	evc_verdict v;
	int i;

	setup();
	for (i = 0; i < 3; i++)
		begin(&it[i], i, i < 2 ? end_self : NULL);
	OK(evc_request_stop(coord, 0, NULL));
	ck_assert_int_eq(evc_run(coord, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(n_told, 3);
	ck_assert_uint_ge(v.n_stragglers, 1);
	HAS(v.error.text, "noted");
	evc_task_end(&it[2].task);
	OK(evc_run(coord, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 0); /* tasks are not counted */
	teardown();
}
END_TEST

static struct item newcomers[2];
static evc_status newcomers_status[2];

static void
begin_more(struct item *it)
{
	evc_reactor *home = evc_home(coord);

	newcomers_status[0] = evc_task_begin(home, &newcomers[0].task, &noted);
	newcomers_status[1] = evc_task_begin(home, &newcomers[1].task, &late);
	evc_task_end(&it->task);
}

START_TEST(after_the_stop_only_a_LATE_class_begins_and_is_never_told)
{
	struct item it, after = { .number = 50 };

	setup();
	memset(newcomers, 0, sizeof(newcomers));
	begin(&it, 0, begin_more);
	OK(evc_request_stop(coord, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_task_begin(evc_home(coord), &after.task, &noted));
	OK(evc_task_begin(evc_home(coord), &after.task, &late));
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(newcomers_status[0], -EVC_CANCELLED);
	ck_assert_int_eq(newcomers_status[1], 0);
	ck_assert_int_eq(n_told, 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(coord));
	evc_task_end(&newcomers[0].task); /* never began: nothing */
	evc_task_end(&newcomers[1].task);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(coord));
	evc_task_end(&after.task);
	OK(evc_run(coord, NULL, NULL));
	teardown();
}
END_TEST

START_TEST(a_LATE_task_begun_before_the_stop_is_told)
{
	struct item it = { .number = 5 };

	setup();
	OK(evc_task_begin(evc_home(coord), &it.task, &late));
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(it.told, 1);
	evc_task_end(&it.task);
	teardown();
}
END_TEST

START_TEST(without_an_on_stop_the_owner_asks)
{
	evc_task t = { 0 };

	setup();
	OK(evc_task_begin(evc_home(coord), &t, &silent));
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert(evc_should_stop(coord));
	evc_task_end(&t);
	OK(evc_run(coord, NULL, NULL));
	teardown();
}
END_TEST

static void
on_turn(struct ev_loop *l, ev_io *w, int revents)
{
	int *turns = w->data;

	(void)l;
	(void)revents;
	if (n_told > 0 && n_told < 100000)
		(*turns)++;
}

START_TEST(a_hundred_thousand_are_told_in_slices)
{
	enum { N = 100000 };
	struct item *it;
	int fd[2], i, turns = 0;
	ev_io io;

	setup();
	it = calloc(N, sizeof(*it));
	ck_assert_ptr_nonnull(it);
	/* another watcher, of the lowest priority and always ready */
	OK(pipe(fd));
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	ev_io_init(&io, on_turn, fd[0], EV_READ);
	ev_set_priority(&io, EV_MINPRI);
	io.data = &turns;
	for (i = 0; i < N; i++) {
		it[i].number = i;
		it[i].then = end_self;
		OK(evc_task_begin(evc_home(coord), &it[i].task, &noted));
	}
	ev_io_start(loop, &io);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_run(coord, NULL, NULL));
	ck_assert_int_eq(n_told, N);
	ck_assert(in_order);
	ck_assert_int_ge(turns, 5);
	for (i = 0; i < N; i++)
		ck_assert_int_eq(it[i].told, 1);
	ev_io_stop(loop, &io);
	close(fd[0]);
	close(fd[1]);
	free(it);
	teardown();
}
END_TEST

START_TEST(zeroed_and_ended_tasks_end_again_and_may_begin_again)
{
	struct item it = { .number = 1 };
	int i;

	setup();
	evc_task_end(&it.task);
	for (i = 0; i < 3; i++) {
		OK(evc_task_begin(evc_home(coord), &it.task, &noted));
		REFUSED(EVC_ALREADY_EXISTS,
			evc_task_begin(evc_home(coord), &it.task, &noted));
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(coord));
		evc_task_end(&it.task);
		evc_task_end(&it.task);
	}
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 0);
	teardown();
}
END_TEST

START_TEST(the_next_round_tells_again)
{
	struct item it;
	int i;

	setup();
	for (i = 1; i <= 5; i++) {
		begin(&it, 100 * i, end_self);
		OK(evc_request_stop(coord, 0, NULL));
		OK(evc_run(coord, NULL, NULL));
		ck_assert_int_eq(n_told, i);
		OK(evc_clear_stop(coord));
	}
	teardown();
}
END_TEST

static void *
begin_elsewhere(void *arg)
{
	evc_task t = { 0 };

	*(evc_status *)arg = evc_task_begin(evc_home(coord), &t, &silent);
	return NULL;
}

START_TEST(tasks_begin_on_their_loops_thread_only)
{
	evc_status st = 77;
	evc_task t = { 0 };
	pthread_t other;

	setup();
	REFUSED(EVC_FAILED_PRECONDITION, evc_task_begin(NULL, &t, &silent));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_task_begin(evc_home(coord), NULL, &silent));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_task_begin(evc_home(coord), &t, NULL));
	OK(pthread_create(&other, NULL, begin_elsewhere, &st));
	pthread_join(other, NULL);
	ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
	evc_task_end(&t);
	teardown();
}
END_TEST

START_TEST(beginning_and_ending_allocates_nothing)
{
	static evc_task t[1000];
	struct mallinfo2 a, b;
	int i;

	setup();
	ck_assert_uint_eq(sizeof(evc_task), sizeof(void *) == 8 ? 64 : 40);
	memset(t, 0, sizeof(t));
	a = mallinfo2();
	for (i = 0; i < 1000; i++)
		if (evc_task_begin(evc_home(coord), &t[i], &silent) != 0)
			ck_abort();
	b = mallinfo2();
	ck_assert_uint_eq(a.uordblks, b.uordblks);
	ck_assert_uint_eq(a.hblkhd, b.hblkhd);
	for (i = 0; i < 1000; i++)
		evc_task_end(&t[i]);
	teardown();
}
END_TEST

START_TEST(tasks_of_a_destroyed_loop_have_ended)
{
	struct item it[3];
	evc_verdict v;
	int i;

	setup();
	for (i = 0; i < 3; i++)
		begin(&it[i], i, NULL);
	ev_loop_destroy(loop);
	for (i = 0; i < 3; i++)
		evc_task_end(&it[i].task);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_join(coord, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(n_told, 0);
	OK(evc_free(coord));
}
END_TEST

API_MAIN("tasks", each_is_told_once_in_order_on_its_loop,
	 an_on_stop_may_end_and_free_any_of_its_loop,
	 the_first_may_end_them_all, a_join_waits_for_the_last_task,
	 after_the_stop_only_a_LATE_class_begins_and_is_never_told,
	 a_LATE_task_begun_before_the_stop_is_told,
	 without_an_on_stop_the_owner_asks,
	 a_hundred_thousand_are_told_in_slices,
	 zeroed_and_ended_tasks_end_again_and_may_begin_again,
	 the_next_round_tells_again, tasks_begin_on_their_loops_thread_only,
	 beginning_and_ending_allocates_nothing,
	 tasks_of_a_destroyed_loop_have_ended)
