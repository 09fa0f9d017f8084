/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop that is destroyed under its cluster: nothing breaks, nothing hangs, and
 * nothing is left.  Threads go on without it; the other engines are down.
 */
#include "functions.h"

/* A function runs, and another one waits behind it. */
static evc_remote *ran, *waited;

static void
begin_one(int i)
{
	begin_on_loop(i, 1, NULL);
	TURN_UNTIL(numbers().n_up == 1);
	ran = SCHEDULE("nap", "[d]", 1000.0);
	waited = SCHEDULE("add", "[ii]", 1, 2);
	TURN_UNTIL(info_of(ran).state == EVC_REMOTE_RUNNING);
}

static void
destroy_loop(void)
{
	ev_loop_destroy(on.loop);
	on.loop = NULL;
	redis_leaves_keys();
}

static void
drop(void)
{
	evc_remote_free(ran);
	evc_remote_free(waited);
}

/* As a program does that has noticed nothing: the fixture closes and joins. */
START_TEST(while_a_function_runs)
{
	begin_one(_i);
	destroy_loop();
	if (can(DIES)) {
		IS(join(), EVC_UNAVAILABLE);
		HAS(evc_last_error(), "the loop of the cluster was destroyed");
		IS(code_of(ran), EVC_CANCELLED);
		IS(code_of(waited), EVC_CANCELLED);
	} else {
		IS(evc_cluster_join(on.cl, 0), -EVC_DEADLINE_EXCEEDED);
	}
	drop();
}
END_TEST

START_TEST(while_it_is_idle)
{
	begin_on_loop(_i, 2, NULL);
	TURN_UNTIL(numbers().n_up == 2);
	destroy_loop();
	if (can(DIES)) {
		IS(join(), EVC_UNAVAILABLE);
	} else {
		IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
		OK(join());
	}
}
END_TEST

START_TEST(before_it_has_turned)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = n_table };

	choose(_i, 1);
	on.loop = ev_loop_new(EVFLAG_AUTO);
	ck_assert_ptr_nonnull(on.loop);
	OK(evc_new(on.loop, NULL, &on.c));
	OK(evc_cluster_open(on.c, address(), &config, &on.cl));
	destroy_loop();
}
END_TEST

START_TEST(when_it_was_closed)
{
	begin_one(_i);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	destroy_loop();
	drop();
}
END_TEST

START_TEST(when_the_stop_was_asked_for)
{
	begin_one(_i);
	OK(evc_request_stop(on.c, 0, "the test"));
	destroy_loop();
	drop();
}
END_TEST

/* Somewhere between the close and the end of it all. */
START_TEST(when_it_has_turned_a_little)
{
	int most, i, k;

	choose(_i, 1);
	most = can(FINDS) ? 4 : 10;
	for (i = 0; i < most; i++) {
		evc_verdict v;

		on.address[0] = '\0';
		begin_on_loop(_i, 1, NULL);
		TURN_UNTIL(numbers().n_up == 1);
		evc_cluster_close(on.cl);
		on.cl = NULL;
		for (k = 0; k < i; k++) {
			ev_run(on.loop, EVRUN_NOWAIT);
			t_sleep(0.001);
		}
		destroy_loop();
		OK(evc_join(on.c, NULL, &v));
		ck_assert_uint_eq(v.n_stragglers, 0);
		OK(evc_free(on.c));
		on.c = NULL;
	}
}
END_TEST

static atomic_int n_answers;

static void
on_joined(evc_cluster *cl, evc_status st, void *arg)
{
	(void)cl;
	(void)arg;
	ck_assert_int_ne(st, 0);
	atomic_fetch_add(&n_answers, 1);
}

static void
on_fetched(evc_cluster *cl, evc_status st, const evc_value *v, void *arg)
{
	(void)v;
	on_joined(cl, st, arg);
}

/* Whoever waits on the loop is called all the same. */
START_TEST(with_answers_that_are_due_there)
{
	evc_join_opts budget = { .grace = T_LIMIT,
				 .flags = EVC_JOIN_STOP_FIRST };
	evc_value v = { NULL, 0 };
	evc_verdict verdict;

	atomic_store(&n_answers, 0);
	begin_one(_i);
	OK(evc_pack(&v, "r", ran));
	OK(evc_cluster_join_start(on.cl, on_joined, NULL));
	OK(evc_fetch_start(on.cl, &v, on_fetched, NULL));
	evc_value_free(&v);
	destroy_loop();
	drop();
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &budget, &verdict));
	ck_assert_uint_eq(verdict.n_stragglers, 0);
	IS(atomic_load(&n_answers), 2);
}
END_TEST

/* The program's handle is dropped after all of that. */
START_TEST(and_closed_after_the_join)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_verdict v;

	begin_one(_i);
	destroy_loop();
	OK(evc_request_stop(on.c, 0, "the test"));
	OK(evc_join(on.c, &budget, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	drop();
}
END_TEST

/* Variables that are in this process are saved without the loop. */
START_TEST(with_a_checkpoint)
{
	char path[] = "/tmp/evcoord-loop-gone-XXXXXX";
	evc_cluster_config config = { .checkpoint = path,
				      .checkpoint_every = INFINITY };
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_verdict v;
	int i, st;

	choose(_i, 1);
	for (i = 0; i < 4; i++) {
		close(mkstemp(path));
		OK(remove(path));
		on.address[0] = '\0';
		begin_on_loop(_i, 1, &config);
		TURN_UNTIL(numbers().n_up == 1);
		if (!can(FINDS))
			OK(evc_variable_add(on.cl, "n", 1, NULL));
		if (i == 1)
			OK(evc_request_stop(on.c, 0, "the test"));
		if (i == 2)
			evc_cluster_close(on.cl);
		if (i == 3) {
			OK(evc_request_stop(on.c, 0, "the test"));
			ev_run(on.loop, EVRUN_NOWAIT);
		}
		destroy_loop();
		if (i != 2)
			evc_cluster_close(on.cl);
		on.cl = NULL;
		OK(evc_request_stop(on.c, 0, "the test"));
		st = evc_join(on.c, &budget, &v);
		ck_assert_uint_eq(v.n_stragglers, 0);
		OK(evc_free(on.c));
		on.c = NULL;
		if (can(FINDS))
			ck_assert(st == 0 || st == EVC_UNAVAILABLE);
		else
			OK(st);
		if (!can(FINDS))
			OK(remove(path));
		strcpy(path + sizeof(path) - 7, "XXXXXX");
	}
}
END_TEST

static const evc_function functions[] = { COMMON_FUNCTIONS };

CONFORMANCE_MAIN("loop_gone", functions, ROW(while_a_function_runs),
		 ROW(while_it_is_idle), ROW(before_it_has_turned),
		 ROW(when_it_was_closed), ROW(when_it_has_turned_a_little),
		 ROW(when_the_stop_was_asked_for),
		 ROW(with_answers_that_are_due_there),
		 ROW(and_closed_after_the_join), ROW(with_a_checkpoint))
