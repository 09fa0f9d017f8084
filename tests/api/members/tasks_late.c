/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks that are late: told so once, on their loop, in the order of begin, when
 * the grace of their class is over; whatever an on_late ends, frees or begins.
 * Tasks begun after the stop that are to be told of it.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

struct item {
	evc_task task; /* first */
	int number, told, late;
	double late_at;
	void (*then)(struct item *); /* in on_late, or in on_stop */
};

static struct ev_loop *loop;
static evc_coord *coord;
static int n_told, n_late, last;
static bool in_order;
static pthread_t called_on;

static void
on_stop(evc_task *t, void *arg)
{
	struct item *it = (struct item *)t;

	(void)arg;
	it->told++;
	n_told++;
	if (it->then != NULL)
		it->then(it);
}

static void
note_late(struct item *it)
{
	in_order = in_order && it->number > last;
	last = it->number;
	called_on = pthread_self();
	it->late++;
	it->late_at = t_now();
	n_late++;
}

static void
on_late(evc_task *t, void *arg)
{
	struct item *it = (struct item *)t;

	(void)arg;
	note_late(it);
	if (it->then != NULL)
		it->then(it);
}

static void
end_late(evc_task *t, void *arg)
{
	on_late(t, arg);
	evc_task_end(t);
}

/* Classes with a grace of 0.2 s, of none, of the coordinator's. */
static const evc_task_class slow = {
	.name = "slow", .grace = 0.2, .on_late = end_late
};
static const evc_task_class now = {
	.name = "now", .grace = EVC_NO_GRACE, .on_late = on_late
};
static const evc_task_class inherits = { .name = "inherits",
					 .on_late = end_late };
static const evc_task_class hours = {
	.name = "hours", .grace = 3600, .on_late = on_late
};
static const evc_task_class ends = {
	.name = "ends", .grace = 3600, .on_late = end_late
};
static const evc_task_class never = { .name = "never" };
static const evc_task_class told_after = {
	.name = "told after", .on_stop = on_stop, .flags = EVC_TELL_AFTER_STOP
};
static const evc_task_class after = {
	.name = "after",
	.on_stop = on_stop,
	.flags = EVC_AFTER_STOP,
	.grace = 0.2,
	.on_late = end_late,
};

static void
setup(double grace)
{
	evc_config cfg = { .grace = grace };

	loop = ev_loop_new(EVFLAG_AUTO);
	coord = new_coord_with(loop, &cfg);
	n_told = n_late = 0;
	last = -1;
	in_order = true;
}

static void
teardown(void)
{
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}

static void
begin(struct item *it, int number, const evc_task_class *cls,
      void (*then)(struct item *))
{
	memset(it, 0, sizeof(*it));
	it->number = number;
	it->then = then;
	OK(evc_task_begin(evc_home(coord), &it->task, cls));
}

START_TEST(each_is_told_once_when_its_grace_is_over)
{
	double begun = t_now();
	struct item it[6];
	evc_verdict v;
	int i;

	setup(60);
	for (i = 0; i < 6; i++)
		begin(&it[i], i, i == 3 ? &never : i == 4 ? &hours : &slow,
		      NULL);
	evc_task_end(&it[1].task);
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_late, 0);
	while (n_late < 3 && t_now() < begun + T_LIMIT)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_late, 3);
	ck_assert(in_order);
	ck_assert(pthread_equal(called_on, pthread_self()));
	ck_assert_double_ge(it[0].late_at, begun + 0.2);
	ck_assert_int_eq(it[0].late + it[2].late + it[5].late, 3);
	evc_task_end(&it[3].task);
	evc_task_end(&it[4].task);
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(n_late, 3);
	teardown();
}
END_TEST

/* evc_run waits for the late ones, and for nothing else. */
START_TEST(a_run_ends_when_the_late_ones_are_reset)
{
	double begun = t_now();
	struct item it[2];
	evc_verdict v;

	setup(60);
	begin(&it[0], 0, &slow, NULL);
	begin(&it[1], 1, &slow, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(n_late, 2);
	ck_assert_double_ge(v.took, 0.2);
	ck_assert_double_le(t_now(), begun + 30);
	/* The next round tells again. */
	OK(evc_clear_stop(coord));
	begin(&it[0], 2, &slow, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(it[0].late, 1);
	ck_assert_double_ge(v.took, 0.2);
	teardown();
}
END_TEST

START_TEST(without_a_grace_it_comes_right_after_on_stop)
{
	static const evc_task_class both = { .name = "both",
					     .grace = EVC_NO_GRACE,
					     .on_stop = on_stop,
					     .on_late = on_late };
	struct item it[3];
	int i;

	setup(60);
	for (i = 0; i < 3; i++)
		begin(&it[i], i, &both, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 3);
	ck_assert_int_eq(n_late, 3);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_late, 3);
	for (i = 0; i < 3; i++)
		evc_task_end(&it[i].task);
	teardown();
}
END_TEST

START_TEST(no_grace_is_longer_than_the_coordinators)
{
	static const evc_task_class *const cls[] = { &inherits, &hours };
	double begun = t_now();
	struct item it;

	setup(0.2);
	begin(&it, 0, cls[_i], NULL);
	OK(evc_request_stop(coord, 0, NULL));
	while (n_late == 0 && t_now() < begun + T_LIMIT)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_double_ge(it.late_at, begun + 0.2);
	evc_task_end(&it.task);
	teardown();
}
END_TEST

START_TEST(a_second_signal_makes_them_late)
{
	evc_signals_opts opts = { .stop = { SIGUSR1 }, .short_grace = 60 };
	double begun = t_now();
	struct item it;
	evc_verdict v;

	setup(1000);
	OK(evc_signals_start(coord, &opts));
	begin(&it, 0, &ends, NULL);
	raise(SIGUSR1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_late, 0);
	raise(SIGUSR1);
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(n_late, 1);
	ck_assert_double_le(t_now(), begun + 50);
	teardown();
}
END_TEST

START_TEST(a_second_signal_makes_those_of_scopes_late)
{
	evc_signals_opts opts = { .stop = { SIGUSR1 }, .short_grace = 60 };
	evc_coord *scope, *inner;
	double begun = t_now();
	struct item it[2];

	setup(1000);
	OK(evc_signals_start(coord, &opts));
	OK(evc_scope_new(coord, "scope", NULL, &scope));
	OK(evc_scope_new(scope, "inner", NULL, &inner));
	memset(it, 0, sizeof(it));
	it[1].number = 1;
	OK(evc_task_begin(evc_home(scope), &it[0].task, &ends));
	OK(evc_task_begin(evc_home(inner), &it[1].task, &ends));
	OK(evc_scope_ready(inner));
	OK(evc_scope_ready(scope));
	raise(SIGUSR1);
	ev_run(loop, EVRUN_NOWAIT);
	raise(SIGUSR1);
	OK(evc_run(coord, NULL, NULL));
	ck_assert_int_eq(n_late, 2);
	ck_assert_double_le(t_now(), begun + 50);
	OK(evc_free(inner));
	OK(evc_free(scope));
	teardown();
}
END_TEST

/* ---- what on_late may do ---- */

static struct item *heap[8];

static void
free_it(struct item *it)
{
	heap[it->number] = NULL;
	evc_task_end(&it->task);
	memset(it, 0x5a, sizeof(*it));
	free(it);
}

static void
free_neighbours(struct item *it)
{
	int i, n = it->number;

	for (i = n - 1; i <= n + 2; i++)
		if (i >= 0 && i < 8 && heap[i] != NULL)
			free_it(heap[i]);
}

static void
free_all(struct item *it)
{
	int i;

	(void)it;
	for (i = 0; i < 8; i++)
		if (heap[i] != NULL)
			free_it(heap[i]);
}

static void
run_the_loop(struct item *it)
{
	(void)it;
	ev_run(loop, EVRUN_NOWAIT);
}

static pid_t child;

static void
fork_once(struct item *it)
{
	(void)it;
	if (child == 0)
		child = fork();
}

static struct item more[2];

static void
begin_more(struct item *it)
{
	(void)it;
	begin(&more[0], 100, &told_after, NULL);
	begin(&more[1], 101, &after, NULL);
}

static void (*const ways[])(struct item *) = {
	free_neighbours, free_all, run_the_loop, fork_once, begin_more,
};

START_TEST(whatever_an_on_late_does)
{
	pid_t self = getpid();
	int i, status = 0;
	evc_status st;
	evc_verdict v;

	setup(60);
	child = 0;
	memset(more, 0, sizeof(more));
	for (i = 0; i < 8; i++) {
		heap[i] = malloc(sizeof(*heap[i]));
		begin(heap[i], i, i % 2 == 0 ? &now : &hours,
		      i == 2 ? ways[_i] : NULL);
	}
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	if (getpid() != self)
		_exit(0);
	if (child != 0) {
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	ev_run(loop, EVRUN_NOWAIT);
	/* 0 and 2 were told; 4 and 6, if they were left. */
	ck_assert_int_eq(n_late, ways[_i] == free_neighbours ? 3 :
				 ways[_i] == free_all	     ? 2 :
							       4);
	if (ways[_i] == begin_more) {
		ck_assert_int_eq(more[0].told, 1);
		ck_assert_int_eq(more[1].told, 0);
		evc_task_end(&more[0].task);
	}
	free_all(NULL);
	st = evc_run(coord, NULL, &v);
	ck_assert_int_eq(st, 0);
	if (ways[_i] == begin_more)
		ck_assert_int_eq(more[1].late, 1);
	teardown();
}
END_TEST

/* ---- the loop ---- */

START_TEST(its_timer_keeps_no_loop_running)
{
	struct item it;

	setup(60);
	begin(&it, 0, &hours, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, 0);
	/* A loop of the program's own turns until it is late. */
	evc_task_end(&it.task);
	ev_run(loop, 0);
	begin(&it, 1, &told_after, NULL);
	evc_task_end(&it.task);
	teardown();
}
END_TEST

START_TEST(a_loop_may_be_destroyed_before_they_are_late)
{
	struct item it[3];
	int i;

	setup(60);
	for (i = 0; i < 3; i++)
		begin(&it[i], i, i == 1 ? &now : &hours, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ev_loop_destroy(loop);
	for (i = 0; i < 3; i++)
		evc_task_end(&it[i].task);
	OK(evc_join(coord, NULL, NULL));
	OK(evc_free(coord));
}
END_TEST

#define MANY 20000

START_TEST(thousands_of_two_kinds)
{
	struct item *it = calloc(MANY, sizeof(*it));
	double begun = t_now();
	int i;

	setup(60);
	for (i = 0; i < MANY; i++)
		begin(&it[i], i, i % 2 == 0 ? &slow : &hours, NULL);
	OK(evc_request_stop(coord, 0, NULL));
	while (n_late < MANY / 2 && t_now() < begun + T_LIMIT)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_late, MANY / 2);
	ck_assert(in_order);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(it[i].late, i % 2 == 0);
		evc_task_end(&it[i].task);
	}
	teardown();
	free(it);
}
END_TEST

/* ---- begun after the stop ---- */

START_TEST(one_begun_after_the_stop_is_told_in_the_next_turn)
{
	struct item it[4];
	int i;

	setup(60);
	OK(evc_request_stop(coord, 0, NULL));
	/* Before the loop has heard of the stop, and after it. */
	begin(&it[0], 0, &told_after, NULL);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(it[0].told, 1);
	for (i = 1; i < 4; i++)
		begin(&it[i], i, i == 2 ? &after : &told_after, NULL);
	ck_assert_int_eq(n_told, 1); /* never inside evc_task_begin */
	evc_task_end(&it[1].task);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 2);
	ck_assert_int_eq(it[3].told, 1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 2);
	for (i = 0; i < 4; i++)
		evc_task_end(&it[i].task);
	teardown();
}
END_TEST

static int n_begun;
static struct item chain[10000];

static void
begin_next(struct item *it)
{
	evc_task_end(&it->task);
	if (n_begun < 10000) {
		begin(&chain[n_begun], n_begun, &told_after, begin_next);
		n_begun++;
	}
}

static void
count_turn(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)revents;
	(*(int *)w->data)++;
}

/* Each on_stop begins the next task: other watchers still have their turn. */
START_TEST(a_chain_of_them_leaves_a_turn_to_others)
{
	double begun = t_now();
	int turns = 0;
	ev_timer w;

	setup(60);
	n_begun = 1;
	begin(&chain[0], 0, &told_after, begin_next);
	ev_timer_init(&w, count_turn, 0.0001, 0.0001);
	w.data = &turns;
	ev_timer_start(loop, &w);
	OK(evc_request_stop(coord, 0, NULL));
	while (n_told < 10000 && t_now() < begun + T_LIMIT)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(n_told, 10000);
	ck_assert_int_gt(turns, 0);
	ev_timer_stop(loop, &w);
	teardown();
}
END_TEST

/* ---- the rest ---- */

START_TEST(a_task_knows_its_reactor_its_coordinator_and_its_arg)
{
	evc_task t = { 0 };
	int mine;

	setup(60);
	ck_assert_ptr_null(evc_task_reactor(NULL));
	ck_assert_ptr_null(evc_task_coord(NULL));
	ck_assert_ptr_null(evc_task_reactor(&t));
	ck_assert_ptr_null(evc_task_coord(&t));
	t.arg = &mine;
	OK(evc_task_begin(evc_home(coord), &t, &never));
	ck_assert_ptr_eq(evc_task_reactor(&t), evc_home(coord));
	ck_assert_ptr_eq(evc_task_coord(&t), coord);
	ck_assert_ptr_eq(t.arg, &mine);
	evc_task_end(&t);
	ck_assert_ptr_eq(t.arg, &mine);
	ck_assert_ptr_null(evc_task_reactor(&t));
	ck_assert_uint_le(sizeof(t), 64);
	teardown();
}
END_TEST

START_TEST(a_wrong_class_is_refused)
{
	static const evc_task_class wrong[] = {
		{ .name = "w", .grace = NAN },
		{ .name = "w", .grace = -2 },
		{ .name = "w", .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
		{ .name = "w", .flags = EVC_BACKGROUND },
	};
	evc_task t = { 0 };
	size_t i;

	setup(60);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_task_begin(evc_home(coord), &t, &wrong[i]));
	OK(evc_join(coord, NULL, NULL));
	teardown();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tasks_late");
	TCase *t = tcase_create("tasks_late");

	tcase_add_test(t, each_is_told_once_when_its_grace_is_over);
	tcase_add_test(t, a_run_ends_when_the_late_ones_are_reset);
	tcase_add_test(t, without_a_grace_it_comes_right_after_on_stop);
	tcase_add_loop_test(t, no_grace_is_longer_than_the_coordinators, 0, 2);
	tcase_add_test(t, a_second_signal_makes_them_late);
	tcase_add_test(t, a_second_signal_makes_those_of_scopes_late);
	tcase_add_loop_test(t, whatever_an_on_late_does, 0,
			    sizeof(ways) / sizeof(ways[0]));
	tcase_add_test(t, its_timer_keeps_no_loop_running);
	tcase_add_test(t, a_loop_may_be_destroyed_before_they_are_late);
	tcase_add_test(t, thousands_of_two_kinds);
	tcase_add_test(t, one_begun_after_the_stop_is_told_in_the_next_turn);
	tcase_add_test(t, a_chain_of_them_leaves_a_turn_to_others);
	tcase_add_test(t, a_task_knows_its_reactor_its_coordinator_and_its_arg);
	tcase_add_test(t, a_wrong_class_is_refused);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
