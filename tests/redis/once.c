/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Never two at a time, and nothing twice: what the coordinator makes of leases that
 * somebody has deleted, of orders that come before what they are about, and of
 * events that nobody can have sent.  The nodes are the test's to play.
 */
#include "support/redis_coord_util.h"

/* ---- leases that go before their time ---- */

/* a has just been told that its lease is a whole one, and then it is not there
   any more: what it runs may run until then. */
static void
a_lease_that_goes(const char *by)
{
	struct hand_node *a, *b;
	struct hand_task t;
	evc_remote *r;
	double told;

	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	t = *hn_task(a);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 2);
	told = t_now();
	ck_assert(hn_renew(a, LEASE_MS));
	rs_do(&on.s, by);
	/* What it has said by now counts, what it says later does not. */
	ck_assert_uint_eq(hn_task(b)->attempt, 2);
	ck_assert_msg(t_now() - told >= LEASE, "%.3f s after its renewal",
		      t_now() - told);
	/* It would have noticed when it renews it. */
	ck_assert(!hn_renew(a, LEASE_MS));
	hn_result(a, &t, 77);
	hn_send(a);
	b->first = 0;
	hn_answer(b);
	ck_assert_int_eq(sum_of(r), 3);
	hn_free(a);
	end_with(b);
}

START_TEST(a_lease_is_deleted)
{
	a_lease_that_goes("DEL {t}:lease:a");
}
END_TEST

/* The server's clock has jumped. */
START_TEST(a_lease_ends_too_early)
{
	a_lease_that_goes("PEXPIRE {t}:lease:a 1");
}
END_TEST

/* It was fenced, and it was not heard of that. */
START_TEST(a_lease_is_renewed_until_the_last)
{
	struct hand_node *a, *b;
	evc_remote *r;
	double told = 0;
	int i;

	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	for (i = 0; i < 10; i++) {
		told = t_now();
		ck_assert(hn_renew(a, LEASE_MS));
		hn_read(b, 50);
	}
	ck_assert_uint_eq(b->n, 0);
	(void)hn_task(b);
	/* By itself, so it was over a lease later; and at once. */
	ck_assert(t_now() - told >= LEASE);
	printf("once: %.3f s after the last renewal of a lease of %.1f s\n",
	       t_now() - told, LEASE);
	b->first = 0;
	hn_answer(b);
	ck_assert_int_eq(sum_of(r), 3);
	hn_free(a);
	end_with(b);
}
END_TEST

/* ---- orders that come too early ---- */

/* The answers are held, and then the connection goes: the function was refused,
   and the order that cancels it was taken.  So that comes first, and again. */
START_TEST(cancelled_before_it_comes)
{
	struct proxy p;
	struct hand_node *h;
	struct hand_task t;
	evc_value none;
	evc_remote *r;
	int i;

	p = begin_with_proxy(0);
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	/* Its answer comes behind those to all entries before. */
	REFUSED(EVC_NOT_FOUND, evc_variable_get(on.cl, "none", &none));
	proxy_set(&p, PROXY_DEAF);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	i = rs_refused(&on.s);
	r = schedule_add(on.cl, 1, 2);
	UNTIL(rs_refused(&on.s) > i);
	rs_do(&on.s, "CONFIG SET maxmemory 0");
	evc_remote_cancel(r);
	UNTIL((hn_read(h, 10), h->cancelled_one != 0));
	ck_assert_uint_eq(h->n, 0);
	proxy_cut(&p);
	proxy_set(&p, PROXY_PASS);
	t = *hn_task(h);
	ck_assert_uint_eq(t.n, h->cancelled_one);
	UNTIL((hn_read(h, 10), h->tasks[0].cancelled));
	hn_give_back(h, &t);
	hn_send(h);
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT), 0);
	evc_remote_free(r);
	end_with_proxy(h, &p);
}
END_TEST

/* ---- events that nobody can have sent ---- */

/* What a life says that is over counts no more, whatever it was. */
START_TEST(two_lives_of_one_node)
{
	struct hand_node *h;
	struct hand_task t, u;
	uint64_t inc;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	t = *hn_task(h);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	u = *hn_task(h);
	ck_assert_uint_eq(u.attempt, 2);
	/* As its former life, to which neither lease nor function belong. */
	inc = h->inc--;
	ck_assert(!hn_renew(h, LONG_MS));
	ck_assert(!hn_leave(h));
	hn_result(h, &t, 77);
	hn_send_as(h, 2);
	bytes_take(&h->out, h->out.n);
	h->inc = inc;
	h->seq = 1;
	hn_result(h, &u, 3);
	hn_send(h);
	ck_assert_int_eq(sum_of(r), 3);
	ck_assert_int_eq(n_said("garbage", NULL, NULL), 0);
	end_with(h);
}
END_TEST

/* An entry without anything in it takes no number away from the node. */
START_TEST(an_empty_event)
{
	struct hand_node *h;
	struct hand_task t;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	t = *hn_task(h);
	hn_send_as(h, h->seq + 1);
	hn_result(h, &t, 3);
	hn_send(h);
	ck_assert_int_eq(sum_of(r), 3);
	SAYS("an entry of a is dropped", NULL, NULL);
	ck_assert_int_eq(n_said("is fenced", NULL, NULL), 0);
	end_with(h);
}
END_TEST

/* In the name of another node: far ahead, so that all which that one says would
   be old.  It costs it this life, and no function hangs. */
START_TEST(a_number_far_ahead)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	hn_slot(h, 0, 1);
	hn_send_as(h, UINT64_MAX - 1);
	bytes_take(&h->out, h->out.n);
	SAYS("node a is fenced", "garbage", NULL);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	runs_again_on(h, r);
	end_with(h);
}
END_TEST

/* Somebody deletes an entry, and a result was in it.  That shows by the numbers
   when so many come behind it that the node must have been answered. */
START_TEST(an_entry_that_is_lost)
{
	struct hand_node *h;
	struct hand_task t;
	evc_remote *r, *next;
	int i;

	begin();
	h = hn_begin(&on.s, "t", "a", 2, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	h->seq++;
	next = schedule_add(on.cl, 3, 4);
	t = *hn_task(h);
	for (i = 2; i < UNANSWERED; i++) {
		hn_slot(h, 0, 1);
		hn_send(h);
	}
	hn_result(h, &t, 7);
	hn_send(h);
	ck_assert_int_eq(sum_of(next), 7);
	ck_assert_int_eq(n_said("is fenced", NULL, NULL), 0);
	hn_slot(h, 0, 1);
	hn_send(h);
	SAYS("node a is fenced", "an entry of it was lost", NULL);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	runs_again_on(h, r);
	end_with(h);
}
END_TEST

/* Entries cannot be read, so the mark of a fence is not read.  Marks are left
   again, but they do not fill the server. */
START_TEST(marks_that_nobody_reads)
{
	static const char count[] =
		"return redis.call('XLEN', redis.call('KEYS', '*:ev')[1])";
	struct hand_node *h;
	int64_t n;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	rs_do(&on.s, "ACL SETUSER default -xread");
	SAYS("entries of nodes cannot be read", NULL, NULL);
	n = rs_number(&on.s, "EVAL %s 0", count);
	rs_do(&on.s, "DEL {t}:lease:a");
	/* Without a limit there would be thousands. */
	UNTIL(rs_number(&on.s, "EVAL %s 0", count) >= n + 3);
	t_sleep(LEASE);
	ck_assert_int_lt(rs_number(&on.s, "EVAL %s 0", count), n + 3 + 10);
	rs_do(&on.s, "ACL SETUSER default +xread");
	SAYS("node a is fenced", NULL, NULL);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	UNTIL(n_up() == 1);
	end_with(h);
}
END_TEST

/* Numbers of workers and of their lives have 32 bits each. */
START_TEST(the_greatest_numbers)
{
	struct hand_node *h, *bad;
	evc_remote *r;

	begin();
	h = hn_new(&on.s, "t", "a", 0xffff);
	hn_register(h, LONG_MS);
	SAYS("node a is fenced", "garbage", "workers");
	h->n_slots = 3;
	hn_register(h, LONG_MS);
	hn_up(h, 2, UINT32_MAX);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	ck_assert_uint_eq(h->tasks[0].slot, 2);
	ck_assert_uint_eq(h->tasks[0].life, UINT32_MAX);
	h->first = 0;
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	bad = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	hn_slot(bad, UINT32_MAX, UINT32_MAX);
	hn_note(bad, FRAME_UP, UINT64_MAX, "far pid 1");
	hn_send(bad);
	SAYS("node b is fenced", "garbage", "does not have");
	hn_free(bad);
	end_with(h);
}
END_TEST

/* ---- what the server does not take ---- */

/* It closes the connection of who says it: the others go on. */
START_TEST(larger_than_the_server_takes)
{
	size_t n = (size_t)3 << 20;
	char *bytes = calloc(1, n);
	evc_remote *r, *big;
	evc_remote_info info;
	struct hand_node *h;

	rs_start(&on.s);
	rs_do(&on.s, "CONFIG SET proto-max-bulk-len 1mb");
	rs_unlink(&on.s);
	open_at("");
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	OK(evc_schedule_pack(on.cl, "look", NULL, &big, "[B]", bytes, n));
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT),
			 EVC_RESOURCE_EXHAUSTED);
	OK(evc_remote_get(big, &info));
	HAS(info.text, "bulk length");
	evc_remote_free(big);
	r = schedule_add(on.cl, 1, 2);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	free(bytes);
	end_with(h);
}
END_TEST

RS_MAIN("redis/once", a_lease_is_deleted, a_lease_ends_too_early,
	a_lease_is_renewed_until_the_last, cancelled_before_it_comes,
	two_lives_of_one_node, an_empty_event, a_number_far_ahead,
	an_entry_that_is_lost, marks_that_nobody_reads, the_greatest_numbers,
	larger_than_the_server_takes)
