/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Never two at a time, and nothing twice: what the coordinator makes of leases that
 * somebody has deleted, of orders that come before what they are about, and of
 * events that nobody can have sent.  The nodes are the test's to play.
 */
#include "redis/redis.h"

#include <evcoord/redis.h>

#include "support/cluster_util.h"
#include "support/proxy_util.h"
#include "support/redis_hand_node.h"
#include "support/workers_util.h"

#define LEASE 1.0
#define LEASE_MS 1000
#define LONG_MS 60000

static struct {
	struct redis_server s;
	struct census before;
	evc_coord *c;
	evc_cluster *cl;
	char uri[128];
} on;

static void
keep_and_say(int level, const char *line, const evc_reason *r, void *arg)
{
	keep_said(level, line, r, arg);
	if (getenv("EVC_TEST_SAY") != NULL)
		fprintf(stderr, "%s\n", line);
}

static void
begin_with_lease(double lease)
{
	static const evc_engine_ops *engines[1];
	const evc_cluster_config k = { .lease = lease,
				       .grace = 1,
				       .worker_wait = 60,
				       .engines = engines,
				       .n_engines = 1 };
	const evc_config config = { .log = keep_and_say };

	if (on.s.pid == 0)
		rs_start(&on.s);
	engines[0] = evc_redis_engine("redis");
	on.before = census_begin();
	OK(evc_new(NULL, &config, &on.c));
	on.cl = open_with(on.c,
			  rs_uri(&on.s, "t", "", on.uri, sizeof(on.uri)), &k);
}

static void
begin(void)
{
	begin_with_lease(LEASE);
}

/* By a proxy, and nobody is impatient. */
static struct proxy
begin_with_proxy(void)
{
	struct proxy p;
	int port;

	rs_start(&on.s);
	port = on.s.port;
	p = proxy_start((unsigned)port);
	on.s.port = (int)p.port;
	begin_with_lease(20);
	on.s.port = port;
	return p;
}

static int
n_refused(void)
{
	char text[2048];
	const char *at;

	rs_text(&on.s, text, sizeof(text), "INFO errorstats");
	at = strstr(text, "errorstat_OOM:count=");
	return at != NULL ? atoi(strchr(at, '=') + 1) : 0;
}

/* All nodes go, as they do when they are told to; nothing is left but what is
   said to stay. */
static void
end_with(struct hand_node *h)
{
	evc_cluster_close(on.cl);
	UNTIL((hn_read(h, 10), h->n_leaves > 0));
	ck_assert(hn_leave(h));
	hn_free(h);
	end_coord(on.c);
	rs_unlink(&on.s);
	census_end(&on.before);
	ck_assert_uint_eq(rs_keys(&on.s, "*", false),
			  rs_keys(&on.s, "{t}:[vgc][eao][rnu]*", false));
	ck_assert_uint_eq(rs_keys(&on.s, "{t}:coord", true), 0);
	rs_free(&on.s);
}

static int64_t
sum_of(evc_remote *r)
{
	evc_value v;
	int64_t n = -1;
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);

	ck_assert_msg(st == 0, "%d, %s\n%s", st, evc_last_error(), all_said());
	OK(evc_unpack(&v, "I", &n));
	evc_remote_free(r);
	return n;
}

static unsigned
n_up(void)
{
	evc_cluster_info info;

	OK(evc_cluster_get(on.cl, &info));
	return info.n_up;
}

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
	evc_remote *r;
	int i;

	p = begin_with_proxy();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	proxy_set(&p, PROXY_DEAF);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	i = n_refused();
	r = schedule_add(on.cl, 1, 2);
	UNTIL(n_refused() > i);
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
	end_with(h);
	proxy_end(&p);
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
	SAYS("what a has sent is dropped", NULL, NULL);
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
	ck_assert_uint_eq(hn_task(h)->attempt, 2);
	h->first = 0;
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

/* Numbers of workers and of their lives have 32 bits each. */
START_TEST(the_greatest_numbers)
{
	struct hand_node *h, *bad;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 0xffff, LONG_MS);
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
	begin();
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
	the_greatest_numbers, larger_than_the_server_takes)
