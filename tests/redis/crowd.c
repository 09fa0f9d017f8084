/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More workers than one node can have: their functions and orders reach them,
 * places come free and are taken again, and a cluster is full at 100,000.
 */
#include "support/redis_coord_util.h"

#define WHOLE 1024 /* workers of a node, at most */
#define FULL 100000

static evc_remote *
add_on(const char *worker)
{
	evc_schedule_opts o = { .worker = worker };
	evc_remote *r = NULL;

	OK(evc_schedule_pack(on.cl, "add", &o, &r, "[ii]", 1, 2));
	return r;
}

/* A node with all its workers, of which the last is up. */
static struct hand_node *
whole_node(const char *name)
{
	struct hand_node *h = hn_new(&on.s, "t", name, WHOLE);

	hn_register(h, LONG_MS);
	hn_up(h, WHOLE - 1, 1);
	return h;
}

START_TEST(workers_of_the_second_thousand)
{
	struct hand_node *a, *b, *d;
	evc_cluster_worker_info i;
	const struct hand_task *t;
	evc_remote *r;
	unsigned slot;

	on.lease = 60;
	begin();
	a = whole_node("a");
	UNTIL(n_up() == 1);
	b = hn_begin(&on.s, "t", "b", 10, LONG_MS);
	UNTIL(n_up() == 11);
	r = add_on("worker 1030");
	t = hn_task(b);
	ck_assert_uint_eq(t->slot, 1030 - WHOLE);
	hn_result(b, t, t->a + t->b);
	hn_send(b);
	ck_assert_int_eq(sum_of(r), 3);
	/* A function for one of them is cancelled alone; then it hangs, and its
	   worker is killed. */
	r = add_on("worker 1033");
	slot = hn_task(b)->slot;
	OK(evc_remote_cancel(r));
	UNTIL((hn_read(b, 20), b->cancelled_one > 0 && b->n_kills > 0));
	hn_slot(b, slot, 1);
	hn_note(b, FRAME_GONE, 1, "it was killed");
	hn_send(b);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_CANCELLED);
	evc_remote_free(r);
	/* The places of a come free, and the lowest are taken first. */
	ck_assert(hn_leave(a));
	hn_free(a);
	UNTIL(n_up() == 9);
	d = hn_begin(&on.s, "t", "d", 3, LONG_MS);
	UNTIL(n_up() == 12);
	OK(evc_cluster_worker_get(on.cl, 2, &i));
	ck_assert_uint_eq(i.state, EVC_WORKER_UP);
	ck_assert_int_lt(evc_cluster_worker_get(on.cl, WHOLE + 10, &i), 0);
	r = add_on("worker 2");
	t = hn_task(d);
	ck_assert_uint_eq(t->slot, 2);
	hn_result(d, t, t->a + t->b);
	hn_send(d);
	ck_assert_int_eq(sum_of(r), 3);
	ck_assert(hn_leave(d));
	hn_free(d);
	end_with(b);
}
END_TEST

/* Whichever it is, a free worker has the function. */
START_TEST(one_free_worker_among_many)
{
	struct hand_node *a, *b;
	evc_remote *r[2];

	on.lease = 60;
	begin();
	a = whole_node("a");
	b = whole_node("b");
	UNTIL(n_up() == 2);
	r[0] = schedule_add(on.cl, 1, 2);
	r[1] = schedule_add(on.cl, 1, 2);
	hn_await(a, 1);
	hn_await(b, 1);
	hn_answer(a);
	hn_answer(b);
	ck_assert_int_eq(sum_of(r[0]), 3);
	ck_assert_int_eq(sum_of(r[1]), 3);
	ck_assert(hn_leave(a));
	hn_free(a);
	end_with(b);
}
END_TEST

START_TEST(no_more_than_a_hundred_thousand)
{
	struct hand_node *h[FULL / WHOLE + 1];
	unsigned i, n = FULL / WHOLE;
	char name[16];

	on.lease = 60;
	begin();
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		h[i] = whole_node(name);
	}
	UNTIL(n_up() == n);
	h[n] = hn_new(&on.s, "t", "late", WHOLE);
	hn_register(h[n], LONG_MS);
	UNTIL(!hn_renew(h[n], LONG_MS));
	HAS(all_said(), "a cluster has 100000 workers at most");
	hn_free(h[n]);
	/* Fewer fit. */
	h[n] = hn_begin(&on.s, "t", "few", FULL % WHOLE, LONG_MS);
	UNTIL(n_up() == n + FULL % WHOLE);
	for (i = 0; i < n; i++) {
		ck_assert(hn_leave(h[i]));
		hn_free(h[i]);
	}
	end_with(h[n]);
}
END_TEST

RS_MAIN("redis/crowd", workers_of_the_second_thousand,
	one_free_worker_among_many, no_more_than_a_hundred_thousand)
