/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last close of a cluster that has ended already: nobody else has it then,
 * but for what was asked of a loop that is not its own.
 */
#include "../support/hand_engine.h"

#include <malloc.h>

static evc_coord *c;
static evc_cluster *cl;
static struct ev_loop *loop;
static int n_fetched, n_joined, n_told;

static void
on_worker(evc_cluster *of, const evc_cluster_worker_info *w, void *arg)
{
	(void)of;
	(void)w;
	(void)arg;
	n_told++;
}

/* Stopped from outside, and over; the program has its handle still. */
static void
open_and_end_it(void)
{
	evc_cluster_config k = { HAND_CONFIG, .worker = on_worker };

	n_fetched = n_joined = n_told = 0;
	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord(loop);
	cl = open_with(c, "hand://1", &k);
	hand_up(0);
	OK(evc_request_stop(c, 0, "the test"));
	UNTIL((ev_run(loop, EVRUN_NOWAIT), atomic_load(&hand.left)));
	hand_end();
	UNTIL((ev_run(loop, EVRUN_NOWAIT), atomic_load(&hand.closes) == 1));
	ck_assert_int_eq(n_told, 2);
}

static void
free_it(void)
{
	OK(evc_run(c, NULL, &(evc_verdict){ 0 }));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	ck_assert_int_eq(n_told, 2);
}

static void
on_fetched(evc_cluster *of, evc_status st, const evc_value *v, void *arg)
{
	(void)v;
	OK(st);
	n_fetched++;
	if (arg != NULL)
		evc_cluster_close(of);
}

static void
on_joined(evc_cluster *of, evc_status st, void *arg)
{
	OK(st);
	n_joined++;
	if (arg != NULL)
		evc_cluster_close(of);
}

/* The loop comes to what it was asked for when the cluster is gone. */
START_TEST(with_a_fetch_that_the_loop_has_not_come_to)
{
	open_and_end_it();
	OK(evc_fetch_start(cl, NULL, on_fetched, NULL));
	evc_cluster_close(cl);
	UNTIL((ev_run(loop, EVRUN_NOWAIT), n_fetched == 1));
	free_it();
	ck_assert_int_eq(n_fetched, 1);
}
END_TEST

START_TEST(with_a_join_that_the_loop_has_not_come_to)
{
	open_and_end_it();
	OK(evc_cluster_join_start(cl, on_joined, NULL));
	evc_cluster_close(cl);
	UNTIL((ev_run(loop, EVRUN_NOWAIT), n_joined == 1));
	free_it();
	ck_assert_int_eq(n_joined, 1);
}
END_TEST

/* Whoever was called goes on in what it has freed. */
START_TEST(in_the_answer_of_a_fetch)
{
	open_and_end_it();
	OK(evc_fetch_start(cl, NULL, on_fetched, cl));
	OK(evc_fetch_start(cl, NULL, on_fetched, NULL));
	OK(evc_cluster_join_start(cl, on_joined, NULL));
	UNTIL((ev_run(loop, EVRUN_NOWAIT), n_fetched == 2 && n_joined == 1));
	free_it();
}
END_TEST

START_TEST(in_the_answer_of_a_join)
{
	open_and_end_it();
	OK(evc_cluster_join_start(cl, on_joined, cl));
	OK(evc_cluster_join_start(cl, on_joined, NULL));
	UNTIL((ev_run(loop, EVRUN_NOWAIT), n_joined == 2));
	free_it();
}
END_TEST

/* The loop is asked, and then there is none. */
START_TEST(with_a_loop_that_never_turns_again)
{
	open_and_end_it();
	OK(evc_fetch_start(cl, NULL, on_fetched, NULL));
	evc_cluster_close(cl);
	OK(evc_run(c, NULL, &(evc_verdict){ 0 }));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	ck_assert_int_eq(n_fetched, 1);
}
END_TEST

/* The helper thread has the coordinator, which the cluster keeps until its
   close. */
START_TEST(with_a_coordinator_that_was_abandoned)
{
	evc_cluster_info i;
	double until;

	open_and_end_it();
	OK(evc_run(c, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_abandon(c));
	/* Without the cluster it would be freed within that. */
	until = t_now() + 0.2;
	while (t_now() < until)
		OK(evc_cluster_get(cl, &i));
	OK(evc_cluster_close(cl));
	ev_loop_destroy(loop);
	ck_assert_int_eq(n_told, 2);
}
END_TEST

/* Memory of large blocks; 0: not known here. */
static size_t
large_blocks(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
	return mallinfo2().hblkhd;
#else
	return 0;
#endif
}

/* A remote is there until it is dropped, whatever is gone; and nothing else is
   there for its sake that is large. */
START_TEST(a_remote_that_is_left)
{
	static double zeros[4 << 20];
	evc_elements e = { .doubles = zeros, .n = 4 << 20 };
	size_t before = large_blocks();
	evc_remote_info i;
	evc_remote *r;

	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord(loop);
	cl = open_with(c, "hand://1", &(evc_cluster_config){ HAND_CONFIG });
	r = schedule(cl, "f");
	OK(evc_vector_set(cl, "v", &e));
	evc_cluster_close(cl);
	UNTIL((ev_run(loop, EVRUN_NOWAIT), atomic_load(&hand.left)));
	hand_end();
	OK(evc_request_stop(c, 0, "the test"));
	n_told = 2;
	free_it();
	ck_assert_uint_lt(large_blocks(), before + sizeof(zeros));
	OK(evc_remote_get(r, &i));
	ck_assert_uint_eq(i.state, EVC_REMOTE_DONE);
	REFUSED(EVC_NOT_FOUND, evc_remote_cancel(r));
	ck_assert_int_eq(evc_remote_fetch(r, 0, NULL), EVC_CANCELLED);
	evc_remote_free(r);
}
END_TEST

API_MAIN("closed", with_a_fetch_that_the_loop_has_not_come_to,
	 with_a_join_that_the_loop_has_not_come_to, in_the_answer_of_a_fetch,
	 in_the_answer_of_a_join, with_a_loop_that_never_turns_again,
	 with_a_coordinator_that_was_abandoned, a_remote_that_is_left)
