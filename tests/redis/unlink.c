/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the coordinator makes for a node it deletes when the node is over, however
 * connections and generations go: each of these ends with a look at what is left.
 */
#include "engine/kept.h"

#include "support/redis_coord_util.h"

/* The node is over while nothing can be deleted. */
START_TEST(over_while_there_is_no_connection)
{
	struct hand_node *a, *b;
	struct proxy p;
	evc_remote *r;

	on.lease = 4;
	p = begin_with_proxy(0);
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	rs_do(&on.s, "DEL {t}:lease:a");
	SAYS("node a is fenced", NULL, NULL);
	proxy_set(&p, PROXY_REFUSE);
	SAYS("session 1 of node a has ended", NULL, NULL);
	proxy_set(&p, PROXY_PASS);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(b, r);
	hn_free(a);
	end_with_proxy(b, &p);
}
END_TEST

/* The server is started anew, with its data, and there is another node. */
static struct hand_node *
restart_without(struct hand_node *a)
{
	struct hand_node *b;

	rs_kill(&on.s);
	rs_start(&on.s);
	UNTIL(rs_number(&on.s, "GET {t}:gen") > (long long)a->g);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 1);
	hn_free(a);
	return b;
}

/* A value that a node has is forgotten when the node is of a former generation. */
START_TEST(forgotten_by_a_node_of_a_former_generation)
{
	static char bytes[KEEP_LEAST];
	struct frame_result res = { .r = { .took = 1e-6 }, .kept = true };
	struct hand_node *a, *b;
	evc_remote *r;
	evc_value v;

	begin_durable();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule(on.cl, "look");
	OK(evc_pack(&res.r.value, "B", bytes, sizeof(bytes)));
	res.r.n = hn_task(a)->n;
	hn_slot(a, 0, 1);
	OK(evc__frame_put_result(&a->out, HN_MOST, &res));
	hn_send(a);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	ck_assert_uint_eq(v.size, res.r.value.size);
	evc_value_free(&res.r.value);
	b = restart_without(a);
	evc_remote_free(r);
	end_with(b);
}
END_TEST

/* A node of a former generation has a function, whose input has a key. */
START_TEST(a_result_of_a_former_generation)
{
	static char bytes[VALUE_LEAST];
	struct frame_result res = { .r = { .took = 1e-6 } };
	struct hand_node *a, *b;
	struct hand_task t;
	evc_remote *r, *used;

	begin_durable();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule(on.cl, "look");
	OK(evc_pack(&res.r.value, "B", bytes, sizeof(bytes)));
	res.r.n = hn_task(a)->n;
	hn_slot(a, 0, 1);
	OK(evc__frame_put_result(&a->out, HN_MOST, &res));
	hn_send(a);
	evc_value_free(&res.r.value);
	OK(evc_schedule_pack(on.cl, "look", NULL, &used, "[r]", r));
	ck_assert(hn_task(a)->by_key);
	UNTIL(rs_keys(&on.s, "{t}:*:v:*", false) == 1);
	b = restart_without(a);
	t = *hn_task(b);
	hn_result(b, &t, 5);
	hn_send(b);
	ck_assert_int_eq(sum_of(used), 5);
	evc_remote_free(r);
	end_with(b);
}
END_TEST

API_MAIN("redis: unlink", over_while_there_is_no_connection,
	 forgotten_by_a_node_of_a_former_generation,
	 a_result_of_a_former_generation)
