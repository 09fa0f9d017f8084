/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that were given up: their worker may look at them for as long as it
 * likes, and what it says about them in the end changes nothing.
 */
#include "../support/hand_engine.h"

enum { LARGE = 5000 };

static evc_coord *c;
static evc_cluster *cl;
static char bytes[LARGE];

static void
open_it(const char *uri, double grace)
{
	evc_cluster_config k = { HAND_CONFIG, .grace = grace };

	memset(bytes, 'x', sizeof(bytes));
	c = new_coord(NULL);
	cl = open_with(c, uri, &k);
	hand_up(0);
}

static unsigned
state_of(const evc_remote *r)
{
	evc_remote_info i;

	OK(evc_remote_get(r, &i));
	return i.state;
}

/* At rest each function that was accepted is in one place. */
static void
numbers_add_up(void)
{
	evc_cluster_info i;

	OK(evc_cluster_get(cl, &i));
	ck_assert_uint_eq(i.n_scheduled, i.n_done + i.n_failed +
						 i.n_cancelled + i.n_queued +
						 i.n_running);
}

/* One that is done, with a large result, and one that has it among its
   arguments, which worker 0 has taken; nobody else has the first. */
static evc_remote *
take_one_with_an_input(evc_engine_task *t)
{
	evc_remote *first = schedule(cl, "f"), *r = NULL;
	evc_value v;

	ck_assert_uint_eq(hand_take(0, t, 1), 1);
	OK(evc_pack(&v, "B", bytes, (size_t)LARGE));
	hand_finish(0, t, 0, &v);
	evc_value_free(&v);
	OK(evc_schedule_pack(cl, "f", NULL, &r, "[r]", first));
	evc_remote_free(first);
	ck_assert_uint_eq(hand_take(0, t, 1), 1);
	ck_assert_uint_eq(t->n_inputs, 1);
	return r;
}

START_TEST(its_inputs_stay_until_the_worker_is_done)
{
	const void *data;
	evc_engine_task t;
	evc_remote *r;
	size_t n;

	open_it("hand://1", EVC_NO_GRACE);
	r = take_one_with_an_input(&t);
	OK(evc_remote_cancel(r));
	UNTIL(state_of(r) == EVC_REMOTE_DONE);
	ck_assert_int_eq(evc_remote_fetch(r, 0, NULL), EVC_UNAVAILABLE);
	/* It has not come so far as to look at them. */
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	OK(evc_unpack(&t.inputs[0].value, "B", &data, &n));
	ck_assert_uint_eq(n, LARGE);
	ck_assert_mem_eq(data, bytes, LARGE);
	evc_remote_free(r);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	hand_finish(0, &t, 0, NULL);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 1);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	numbers_add_up();
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(its_inputs_stay_until_the_worker_is_gone)
{
	evc_engine_task t;
	evc_remote *r;

	open_it("hand://1", EVC_NO_GRACE);
	r = take_one_with_an_input(&t);
	OK(evc_remote_cancel(r));
	UNTIL(state_of(r) == EVC_REMOTE_DONE);
	evc_remote_free(r);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 0);
	hand.sink->gone(hand.core, 0, "it has ended",
			       EVC_ENGINE_DIED_RUNNING);
	ck_assert_int_eq(atomic_load(&hand.n_forgotten), 1);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	numbers_add_up();
	hand_end_cluster(cl, c);
}
END_TEST

/* What stands behind it in its worker is cancelled with it when it is to stop
   as well, or goes to another worker. */
START_TEST(what_was_taken_behind_it)
{
	evc_remote *r[3];
	evc_engine_task t[3], again;
	int i;

	open_it("hand://2", EVC_NO_GRACE);
	for (i = 0; i < 3; i++)
		r[i] = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, t, 3), 3);
	OK(evc_remote_cancel(r[1]));
	OK(evc_remote_cancel(r[0]));
	UNTIL(state_of(r[0]) == EVC_REMOTE_DONE &&
	      state_of(r[1]) == EVC_REMOTE_DONE);
	ck_assert_int_eq(evc_remote_fetch(r[0], 0, NULL), EVC_UNAVAILABLE);
	ck_assert_int_eq(evc_remote_fetch(r[1], 0, NULL), EVC_CANCELLED);
	/* The first was an error, which asks the third to stop. */
	UNTIL(state_of(r[2]) == EVC_REMOTE_DONE);
	ck_assert_int_eq(evc_remote_fetch(r[2], 0, NULL), EVC_CANCELLED);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	OK(evc_cluster_join(cl, T_LIMIT));
	/* It takes nothing until it has said something about all. */
	evc_remote_free(schedule(cl, "g"));
	ck_assert_uint_eq(hand_take(0, &again, 1), 0);
	hand_finish(0, &t[0], EVC_DATA_LOSS, NULL);
	hand_give_back(0, &t[1]);
	ck_assert_uint_eq(hand_take(0, &again, 1), 0);
	hand_give_back(0, &t[2]);
	ck_assert_uint_eq(hand_take(0, &again, 1), 1);
	hand_finish(0, &again, 0, NULL);
	OK(evc_cluster_join(cl, T_LIMIT));
	numbers_add_up();
	for (i = 0; i < 3; i++)
		evc_remote_free(r[i]);
	hand_end_cluster(cl, c);
}
END_TEST

/* At the stop: one hangs, and one that was behind it is lost by the stop. */
START_TEST(by_the_stop)
{
	evc_engine_task t[2];
	evc_remote *r[2];

	open_it("hand://1", 0.05);
	r[0] = schedule(cl, "f");
	r[1] = schedule(cl, "g");
	ck_assert_uint_eq(hand_take(0, t, 2), 2);
	OK(evc_request_stop(c, 0, "the test"));
	UNTIL(state_of(r[1]) == EVC_REMOTE_DONE);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), -EVC_CANCELLED);
	OK(evc_cluster_join(cl, T_LIMIT));
	numbers_add_up();
	hand_finish(0, &t[0], 0, NULL);
	hand_give_back(0, &t[1]);
	evc_remote_free(r[0]);
	evc_remote_free(r[1]);
	hand_end_cluster(cl, c);
}
END_TEST

API_MAIN("given_up", its_inputs_stay_until_the_worker_is_done,
	 its_inputs_stay_until_the_worker_is_gone, what_was_taken_behind_it,
	 by_the_stop)
