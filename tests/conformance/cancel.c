/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ends before its time: one function that is cancelled, and the stop of the
 * coordinator with functions queued and running.
 */
#include "functions.h"

/* Both workers are held in the gate "g". */
static void
both_busy(evc_remote *busy[2])
{
	int i;

	for (i = 0; i < 2; i++)
		busy[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
}

START_TEST(one_that_is_queued_is_cancelled_at_once)
{
	evc_remote *busy[2], *r;
	evc_remote_info i;

	begin(_i, 2);
	both_busy(busy);
	r = SCHEDULE("count", "[sd]", "ran", 1.0);
	OK(evc_remote_cancel(r));
	IS(code_of(r), EVC_CANCELLED);
	i = info_of(r);
	ck_assert_uint_eq(i.kind, EVC_FAILED_CANCEL);
	ck_assert_str_ne(i.text, "");
	REFUSED(EVC_NOT_FOUND, evc_remote_cancel(r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_remote_cancel(NULL));
	IS(code_of(r), EVC_CANCELLED);
	let_go("g");
	/* No error is raised for it. */
	OK(join());
	ck_assert(variable("ran") == 0);
	ck_assert_uint_eq(numbers().n_cancelled, 1);
	IS(take_number(busy[0]) + take_number(busy[1]), 2);
	evc_remote_free(r);
}
END_TEST

START_TEST(one_that_runs_is_asked_to_stop)
{
	evc_remote *r, *other;

	begin(_i, 2);
	r = SCHEDULE("hold", "[s]", "g");
	other = SCHEDULE("hold", "[s]", "other");
	UNTIL(are_in("g", 1) && are_in("other", 1));
	OK(evc_remote_cancel(r));
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	/* The other one has heard nothing. */
	IS(info_of(other).state, EVC_REMOTE_RUNNING);
	IS(evc_cluster_join(on.cl, 0), -EVC_DEADLINE_EXCEEDED);
	let_go("other");
	IS(take_number(other), 1);
	OK(join());
}
END_TEST

/* Its own outcome counts, whatever it is; none is raised. */
START_TEST(what_a_cancelled_one_makes_of_it_counts)
{
	evc_remote *r[2];

	begin(_i, 2);
	r[0] = SCHEDULE("insist", "[si]", "g", 0);
	r[1] = SCHEDULE("insist", "[si]", "g", 200);
	UNTIL(are_in("g", 2));
	OK(evc_remote_cancel(r[0]));
	OK(evc_remote_cancel(r[1]));
	OK(evc_remote_cancel(r[1]));
	IS(info_of(r[0]).state, EVC_REMOTE_RUNNING);
	let_go("g");
	IS(take_number(r[0]), 2);
	IS(code_of(r[1]), 200);
	OK(join());
	evc_remote_free(r[1]);
}
END_TEST

START_TEST(all_that_is_queued_is_cancelled_one_by_one)
{
	enum { N = 300 };
	evc_remote *busy[2], *r[N];
	int i, cancelled = 0;

	begin(_i, 2);
	both_busy(busy);
	for (i = 0; i < N; i++)
		r[i] = SCHEDULE("count", "[sd]", "ran", 1.0);
	for (i = 0; i < N; i += 2)
		OK(evc_remote_cancel(r[i]));
	let_go("g");
	OK(join());
	for (i = 0; i < N; i++) {
		cancelled += code_of(r[i]) == EVC_CANCELLED;
		IS(code_of(r[i]), i % 2 == 0 ? EVC_CANCELLED : 0);
		evc_remote_free(r[i]);
	}
	ck_assert(variable("ran") == N / 2);
	IS(cancelled, N / 2);
	evc_remote_free(busy[0]);
	evc_remote_free(busy[1]);
}
END_TEST

/* ---- the stop ---- */

START_TEST(the_stop_cancels_what_is_queued_and_waits_for_what_runs)
{
	evc_remote *busy[2], *queued[20], *waits;
	int i;

	begin(_i, 2);
	both_busy(busy);
	for (i = 0; i < 20; i++)
		queued[i] = SCHEDULE("count", "[sd]", "ran", 1.0);
	waits = SCHEDULE("add", "[ri]", busy[0], 1);
	evc_request_stop(on.c, 0, "enough");
	for (i = 0; i < 20; i++) {
		IS(code_of(queued[i]), EVC_CANCELLED);
		ck_assert_uint_eq(info_of(queued[i]).kind, EVC_FAILED_CANCEL);
		evc_remote_free(queued[i]);
	}
	/* They heed it; and what they return then is their outcome. */
	for (i = 0; i < 2; i++) {
		IS(code_of(busy[i]), EVC_CANCELLED);
		evc_remote_free(busy[i]);
	}
	IS(code_of(waits), EVC_CANCELLED);
	evc_remote_free(waits);
	REFUSED(EVC_CANCELLED,
		evc_schedule(on.cl, "who", NULL, NULL, NULL, NULL));
}
END_TEST

START_TEST(a_join_hears_that_the_stop_has_cancelled_something)
{
	evc_remote *busy[2];
	bool done;

	begin(_i, 2);
	both_busy(busy);
	DO("add", "[ii]", 1, 1);
	evc_request_stop(on.c, 0, "enough");
	REFUSED(EVC_CANCELLED, evc_cluster_join(on.cl, T_LIMIT));
	/* Said once. */
	OK(evc_cluster_done(on.cl, &done));
	ck_assert(done);
	evc_remote_free(busy[0]);
	evc_remote_free(busy[1]);
}
END_TEST

START_TEST(a_stop_with_nothing_to_do_is_nobodys_error)
{
	begin(_i, 2);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	evc_request_stop(on.c, 0, "enough");
	OK(evc_cluster_join(on.cl, T_LIMIT));
	REFUSED(EVC_CANCELLED,
		evc_schedule(on.cl, "who", NULL, NULL, NULL, NULL));
}
END_TEST

/* Right after the open, in every state that workers have then. */
START_TEST(a_stop_while_workers_start)
{
	evc_remote *r[50];
	int i;

	begin(_i, 4);
	for (i = 0; i < 50; i++)
		r[i] = SCHEDULE("add", "[ii]", i, 1);
	evc_request_stop(on.c, 0, "at once");
	for (i = 0; i < 50; i++) {
		if (code_of(r[i]) == 0)
			IS(number_of(r[i]), i + 1);
		else
			IS(code_of(r[i]), EVC_CANCELLED);
		evc_remote_free(r[i]);
	}
}
END_TEST

/* A close is the stop of the cluster alone; remotes stay readable. */
START_TEST(remotes_outlive_their_cluster)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_remote *done, *busy, *queued[2];
	evc_value v;
	int64_t n;

	begin(_i, 1);
	done = SCHEDULE("add", "[ii]", 1, 2);
	IS(number_of(done), 3);
	busy = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	queued[0] = SCHEDULE("add", "[ii]", 1, 2);
	queued[1] = SCHEDULE("add", "[ri]", queued[0], 2);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	IS(code_of(busy), EVC_CANCELLED);
	IS(code_of(queued[0]), EVC_CANCELLED);
	IS(code_of(queued[1]), EVC_CANCELLED);
	OK(evc_remote_fetch(done, 0, &v));
	OK(evc_unpack(&v, "I", &n));
	IS(n, 3);
	IS(evc_remote_cancel(done), -EVC_NOT_FOUND);
	ck_assert(!evc_should_stop(on.c));
	OK(evc_join(on.c, &budget, NULL));
	/* The memory of it all is kept by them alone. */
	evc_remote_free(busy);
	evc_remote_free(queued[0]);
	evc_remote_free(queued[1]);
	ck_assert_ptr_eq(evc_remote_ref(done), done);
	evc_remote_free(done);
	ck_assert_str_eq(info_of(done).function, "add");
	evc_remote_free(done);
}
END_TEST

/* A coordinator may have several, and go on without one. */
START_TEST(a_cluster_is_closed_and_another_opened)
{
	evc_remote *r = NULL;
	evc_cluster *other;
	int i;

	begin(_i, 1);
	for (i = 0; i < 5; i++) {
		OK(open_another(address_of_another(), NULL, &other));
		OK(evc_schedule_pack(other, "add", NULL, &r, "[ii]", i, 1));
		if (i % 2 == 0)
			IS(number_of(r), i + 1);
		evc_cluster_close(other);
		evc_remote_free(r);
	}
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
}
END_TEST

static const evc_function functions[] = { COMMON_FUNCTIONS };

CONFORMANCE_MAIN("cancel and stop", functions,
		 ROW(one_that_is_queued_is_cancelled_at_once),
		 ROW(one_that_runs_is_asked_to_stop),
		 ROW(what_a_cancelled_one_makes_of_it_counts),
		 ROW(all_that_is_queued_is_cancelled_one_by_one),
		 ROW(the_stop_cancels_what_is_queued_and_waits_for_what_runs),
		 ROW(a_join_hears_that_the_stop_has_cancelled_something),
		 ROW(a_stop_with_nothing_to_do_is_nobodys_error),
		 ROW(a_stop_while_workers_start),
		 ROW(remotes_outlive_their_cluster),
		 ROW(a_cluster_is_closed_and_another_opened))
