/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node, with a coordinator that is played by hand: what it is given, what
 * it tells, what it keeps in keys.  How its lives end: node_end.c.
 */
#include "support/redis_hand_coord.h"

#include "support/redis_node_functions.h"

/* ---- the first words ---- */

START_TEST(registers)
{
	struct frame_note note;
	struct hand h;
	char host[128], boot[64], lease[64], runs[2000], key[300];
	unsigned long long space, start;
	const char **names;
	unsigned n, i;
	int pid;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	/* As it is told. */
	for (i = 0; i < h.n_heard; i++)
		if (h.heard[i].type == FRAME_NODE)
			OK(evc__frame_get_note(&h.heard[i].f, &note));
	ck_assert_int_eq(sscanf(note.text, "%127s %d %63s %llu %llu", host,
				&pid, boot, &space, &start),
			 5);
	ck_assert_int_eq(pid, h.pid);
	ck_assert_uint_gt(space, 0);
	ck_assert_uint_gt(start, 0);
	for (i = 0; i < h.n_heard; i++)
		if (h.heard[i].type == FRAME_HELLO) {
			OK(evc__frame_get_hello(&h.heard[i].f, &names, &n));
			ck_assert_uint_eq(n, N_NODE_FUNCTIONS);
			ck_assert_str_eq(names[0], "twice");
			free(names);
		}
	ck_assert_int_ne(h.pids[0], h.pids[1]);
	/* As it stands there. */
	snprintf(key, sizeof(key), "GET {" HAND_NS "}:lease:%s", h.node);
	rs_text(&h.s, lease, sizeof(lease), key);
	ck_assert_str_eq(lease, "1 1");
	/* Written with a renewal. */
	snprintf(key, sizeof(key), "HGET {" HAND_NS "}:1:runs %s", h.node);
	do
		rs_text(&h.s, runs, sizeof(runs), key);
	while (strstr(runs, "\n21 ") == NULL || strstr(runs, " idle") == NULL);
	ck_assert_str_ne(runs, "");
	ck_assert(strncmp(runs, "20 ", 3) == 0);
	hand_end(&h);
}
END_TEST

/* A coordinator says something to each node that it knows. */
START_TEST(registers_anew_without_a_word)
{
	double until = t_now() + 2 * T_LIMIT;
	struct hand h;

	hand_start(&h, 1000, 1);
	/* Of its second session. */
	while (rs_keys(&h.s, "{" HAND_NS "}:1:beat:*.2", false) == 0) {
		ck_assert(t_now() < until);
		t_sleep(0.1);
	}
	hand_end(&h);
}
END_TEST

START_TEST(runs)
{
	struct hand h;
	unsigned i;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	hand_run(&h, 0, 1, "twice", 21);
	ck_assert_int_eq(hand_number(&h, 1), 42);
	/* Many in one entry, for both. */
	for (i = 2; i < 502; i++)
		hand_put(&h, i % 2, i, "twice", 0, (int)i);
	hand_feed(&h);
	for (i = 2; i < 502; i++)
		ck_assert_int_eq(hand_number(&h, i), 2 * (int)i);
	/* One that fails. */
	hand_run(&h, 1, 10000, "fails", 7);
	{
		struct frame_result r = hand_result(&h, 10000);

		ck_assert_int_eq(r.r.code, 7);
		ck_assert_str_eq(r.r.text, "as it was told to");
		ck_assert_uint_eq(r.r.kind, EVC_FAILED_FUNCTION);
	}
	hand_end(&h);
}
END_TEST

/* As number `to` behind what it was told when it had registered, and perhaps it was
   number `first` before. */
static void
feed_as(struct hand *h, unsigned to, unsigned first)
{
	const char *fmt = "XADD {" HAND_NS "}:%u:to:%s.%llu %u-1 d %b o %u";
	char plain[80];

	snprintf(plain, sizeof(plain), "%.*s",
		 (int)(strlen(fmt) - (first == 0 ? strlen(" o %u") : 0)), fmt);
	hand_put(h, 0, to, "twice", 0, (int)to);
	rs_do(&h->s, plain, h->gen, h->node, (unsigned long long)h->inc, to + 1,
	      bytes_at(&h->out), h->out.n, first + 1);
	bytes_take(&h->out, h->out.n);
}

/* It has run, or has waited for too long and comes back. */
static void
answers(struct hand *h, uint64_t n)
{
	struct frame_result r = hand_result(h, n);

	if (r.r.took >= 0)
		ck_assert_int_eq(hand_number_in(&r), 2 * (int64_t)n);
}

START_TEST(hears_once_what_is_sent_again)
{
	struct hand h;
	unsigned i;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	feed_as(&h, 1, 0);
	feed_as(&h, 5, 0);  /* 2, 3 and 4 were refused */
	feed_as(&h, 6, 1);  /* had been heard */
	feed_as(&h, 7, 3);
	feed_as(&h, 8, 3);  /* now it has */
	feed_as(&h, 10, 2);
	feed_as(&h, 11, 4);
	feed_as(&h, 12, 7); /* the same as 3 */
	feed_as(&h, 13, 9);
	feed_as(&h, 14, 0);
	for (i = 1; i <= 14; i++)
		if (strchr("\2\3\4\6\10\11\14", (int)i) == NULL)
			answers(&h, i);
	for (i = 0; i < (unsigned)h.n_heard; i++)
		ck_assert(h.heard[i].type != FRAME_RESULT ||
			  h.heard[i].used);
	/* More of them than anybody remembers: then this life is over. */
	for (i = 0; i <= 70; i++)
		feed_as(&h, 20 + i * 2, 0);
	answers(&h, 160);
	feed_as(&h, 200, 19);
	hand_await_node(&h, 1);
	ck_assert_uint_eq(h.inc, 2);
	hand_end(&h);
}
END_TEST

START_TEST(gives_back_what_waits)
{
	struct frame_result r;
	struct hand h;
	unsigned i, back = 0;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	hand_put(&h, 0, 1, "naps", 0, 300);
	for (i = 2; i < 10; i++)
		hand_put(&h, 0, i, "twice", 0, (int)i);
	hand_feed(&h);
	for (i = 2; i < 10; i++) {
		r = hand_result(&h, i);
		back += r.r.took < 0;
	}
	ck_assert_uint_eq(back, 8);
	r = hand_result(&h, 1);
	ck_assert_int_eq(r.r.code, 0);
	ck_assert(r.r.took > 0.25);
	hand_end(&h);
}
END_TEST

/* ---- orders ---- */

START_TEST(cancels)
{
	struct frame_result r;
	struct hand h;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	hand_put(&h, 0, 1, "waits", 0, 0);
	hand_put(&h, 0, 2, "twice", 0, 1);
	hand_put(&h, 1, 3, "waits", 0, 0);
	hand_feed(&h);
	/* The one that waits comes back by itself. */
	ck_assert(hand_result(&h, 2).r.took < 0);
	hand_slot(&h, 1);
	hand_say_number(&h, FRAME_CANCEL_ONE, 3);
	r = hand_result(&h, 3);
	ck_assert_int_eq(r.r.code, EVC_CANCELLED);
	hand_say_number(&h, FRAME_CANCEL, 3);
	ck_assert_int_eq(hand_result(&h, 1).r.code, EVC_CANCELLED);
	/* One of these that comes late, and does not begin. */
	hand_put(&h, 1, 2, "waits", 0, 0);
	hand_feed(&h);
	ck_assert(hand_result(&h, 2).r.took < 0);
	/* What comes later runs. */
	hand_run(&h, 0, 4, "twice", 4);
	ck_assert_int_eq(hand_number(&h, 4), 8);
	hand_end(&h);
}
END_TEST

/* A chunk that was refused comes behind later ones: nothing before what a worker
   has given back begins any more, so it is not left there. */
START_TEST(hears_some_late)
{
	struct hand h;
	uint64_t n;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	/* Short ones: then a worker has some beforehand. */
	for (n = 1; n <= 100; n++)
		hand_put(&h, 0, n, "twice", 0, 1);
	hand_feed(&h);
	for (n = 1; n <= 100; n++)
		(void)hand_result(&h, n);
	hand_put(&h, 0, 101, "naps", 0, 1500);
	hand_feed(&h);
	/* It begins meanwhile: else it would be given back, too. */
	t_sleep(0.5);
	hand_put(&h, 0, 110, "twice", 0, 1);
	hand_feed(&h);
	/* It has waited for too long. */
	ck_assert(hand_result(&h, 110).r.took < 0);
	OK(hand_result(&h, 101).r.code);
	hand_run(&h, 0, 105, "twice", 1);
	ck_assert(hand_result(&h, 105).r.took < 0);
	hand_run(&h, 0, 111, "twice", 4);
	ck_assert_int_eq(hand_number(&h, 111), 8);
	hand_end(&h);
}
END_TEST

START_TEST(kills_and_deadlines)
{
	evc_engine_task t = { .n = 2, .id = 2, .function = "naps",
			      .attempt = 1, .deadline = 0.05 };
	struct frame_note note;
	struct heard *x;
	struct hand h;
	uint64_t n;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	hand_run(&h, 0, 1, "naps", 60000);
	hand_slot(&h, 0);
	hand_say(&h, FRAME_KILL);
	x = hand_await(&h, FRAME_FENCED);
	ck_assert_uint_eq(x->life, 1);
	OK(evc__frame_get_note(&x->f, &note));
	HAS(note.text, "killed");
	x = hand_await(&h, FRAME_GONE);
	ck_assert_uint_eq(x->life, 1);
	x = hand_await(&h, FRAME_UP);
	ck_assert_uint_eq(x->life, 2);
	/* What is meant for the former life is dropped. */
	h.lives[0] = 1;
	hand_run(&h, 0, 77, "twice", 1);
	h.lives[0] = 2;
	OK(evc_pack(&t.args, "[i]", 60000));
	hand_put_task(&h, 0, &t);
	hand_feed(&h);
	evc_value_free(&t.args);
	x = hand_await(&h, FRAME_OVERDUE);
	OK(evc__frame_get_number(&x->f, &n));
	ck_assert_uint_eq(n, 2);
	hand_await(&h, FRAME_GONE);
	x = hand_await(&h, FRAME_UP);
	ck_assert_uint_eq(x->life, 3);
	hand_run(&h, 0, 3, "twice", 3);
	ck_assert_int_eq(hand_number(&h, 3), 6);
	hand_end(&h);
}
END_TEST

START_TEST(builds)
{
	evc_engine_def d = { .id = 5, .kind = EVC_DEF_VALUE, .name = "v",
			     .function = "twice" };
	struct frame_built built;
	struct heard *x;
	struct hand h;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	OK(evc_pack(&d.args, "[i]", 8));
	hand_put(&h, 0, 1, "twice", 0, 1);
	OK(evc__frame_put_def(&h.out, HAND_FRAME, &d));
	hand_put(&h, 0, 2, "twice", 0, 2);
	hand_feed(&h);
	ck_assert_int_eq(hand_number(&h, 1), 2);
	x = hand_await(&h, FRAME_BUILT);
	OK(evc__frame_get_built(&x->f, &built));
	ck_assert_uint_eq(built.id, 5);
	ck_assert_int_eq(built.code, 0);
	ck_assert_int_eq(hand_number(&h, 2), 4);
	hand_slot(&h, 0);
	evc_value_free(&d.args);
	d = (evc_engine_def){ .id = 5, .kind = EVC_DEF_DROP };
	OK(evc__frame_put_def(&h.out, HAND_FRAME, &d));
	hand_feed(&h);
	hand_run(&h, 0, 100, "twice", 3);
	ck_assert_int_eq(hand_number(&h, 100), 6);
	hand_end(&h);
}
END_TEST

/* Its line for people. */
START_TEST(says_what_a_worker_builds)
{
	evc_engine_def d = { .id = 5, .kind = EVC_DEF_VALUE, .name = "v",
			     .function = "naps" };
	char lines[400], key[300];
	struct hand h;

	hand_start(&h, 10000, 1);
	hand_await_node(&h, 1);
	OK(evc_pack(&d.args, "[i]", 5000));
	hand_slot(&h, 0);
	OK(evc__frame_put_def(&h.out, HAND_FRAME, &d));
	hand_feed(&h);
	snprintf(key, sizeof(key), "HGET {" HAND_NS "}:1:runs %s", h.node);
	do
		rs_text(&h.s, lines, sizeof(lines), key);
	while (strstr(lines, " builds v 0 ") == NULL);
	evc_value_free(&d.args);
	hand_end(&h);
}
END_TEST

/* ---- values by key ---- */

/* "look" of the remote with that id. */
static void
look(struct hand *h, uint64_t n, uint64_t id)
{
	evc_engine_input in = { .id = id };
	evc_engine_task t = { .n = n, .id = n + 1000, .function = "size",
			      .attempt = 1, .inputs = &in, .n_inputs = 1 };
	unsigned char args[16] = { 0x91, 0xc7, 12, 0x45, 0, 0, 0, 1 };
	unsigned i;

	for (i = 0; i < 8; i++)
		args[15 - i] = (unsigned char)(id >> 8 * i);
	t.args = (evc_value){ args, sizeof(args) };
	hand_put_task(h, 0, &t);
	hand_feed(h);
}

/* Results travel in their frames; inputs have keys. */
START_TEST(values_have_keys)
{
	struct frame_result r;
	evc_value v = { 0 };
	struct hand h;
	uint64_t id;
	unsigned i;
	char *bytes = malloc(1 << 20);

	ck_assert_ptr_nonnull(bytes);
	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	/* A result. */
	hand_run(&h, 0, 1, "big", 300000);
	r = hand_result(&h, 1);
	ck_assert_int_eq(r.r.code, 0);
	ck_assert(r.kept);
	ck_assert_uint_eq(r.r.value.size, 300005);
	OK(evc_value_copy(&v, &r.r.value));
	ck_assert_int_eq(rs_keys(&h.s, "{" HAND_NS "}:1:v:*", false), 0);
	/* The result is an input, which was kept here, and again without
	   that. */
	look(&h, 2, 1001);
	ck_assert_int_eq(hand_number(&h, 2), 300000);
	rs_do(&h.s, "SET {" HAND_NS "}:1:v:1001 %b", v.data, v.size);
	evc_value_free(&v);
	hand_say_number(&h, FRAME_FORGET, 1001);
	look(&h, 3, 1001);
	ck_assert_int_eq(hand_number(&h, 3), 300000);
	/* One of somebody else's. */
	memset(bytes, 1, 1 << 20);
	OK(evc_pack(&v, "B", bytes, (size_t)1 << 20));
	rs_do(&h.s, "SET {" HAND_NS "}:1:v:9 %b", v.data, v.size);
	evc_value_free(&v);
	look(&h, 4, 9);
	ck_assert_int_eq(hand_number(&h, 4), 1 << 20);
	/* One that is not there, and garbage: the coordinator is told, and has
	   the function again. */
	rs_do(&h.s, "SET {" HAND_NS "}:1:v:11 %b", "\xc1", (size_t)1);
	rs_do(&h.s, "SADD {" HAND_NS "}:1:v:12 a");
	for (i = 0; i < 3; i++) {
		look(&h, 5 + 2 * i, 10 + i);
		OK(evc__frame_get_number(&hand_await(&h, FRAME_FORGET)->f,
					 &id));
		ck_assert_uint_eq(id, 10 + i);
		ck_assert(hand_result(&h, 5 + 2 * i).r.took < 0);
		rs_do(&h.s, "SET {" HAND_NS "}:1:v:%u %b", 10 + i, "\xc4\0",
		      (size_t)2);
		look(&h, 6 + 2 * i, 10 + i);
		ck_assert_int_eq(hand_number(&h, 6 + 2 * i), 0);
	}
	free(bytes);
	hand_end(&h);
}
END_TEST

/* ---- variables ---- */

START_TEST(variables)
{
	struct hand h;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	hand_run(&h, 0, 1, "count", 5);
	ck_assert_int_eq(hand_number(&h, 1), 5);
	hand_run(&h, 1, 2, "count", 6);
	ck_assert_int_eq(hand_number(&h, 2), 11);
	hand_run(&h, 0, 3, "variables", 0);
	ck_assert_int_eq(hand_number(&h, 3), 0);
	hand_end(&h);
}
END_TEST

START_TEST(transactions)
{
	struct frame_result r;
	struct hand h;
	unsigned i;

	hand_start(&h, 5000, 2);
	hand_await_node(&h, 2);
	for (i = 1; i <= 100; i++) {
		hand_put(&h, i % 2, 2 * i, "adds", EVC_TRANSACTIONAL, (int)i);
		hand_put(&h, i % 2, 2 * i + 1, "twice", 0, (int)i);
	}
	hand_feed(&h);
	for (i = 1; i <= 100; i++) {
		ck_assert_int_eq(hand_number(&h, 2 * i), (int)i);
		ck_assert_int_eq(hand_number(&h, 2 * i + 1), 2 * (int)i);
	}
	ck_assert_int_eq(rs_number(&h.s, "HGET {" HAND_NS "}:count finished"),
			 100);
	hand_run(&h, 0, 10000, "count", 0);
	ck_assert_int_eq(hand_number(&h, 10000), 5050);
	/* One that cannot be made has none, and has failed; the others
	   count. */
	rs_do(&h.s, "HSET {" HAND_NS "}:var sum %b", "\xa1x", (size_t)2);
	hand_put(&h, 0, 20000, "adds", EVC_TRANSACTIONAL, 1);
	hand_put(&h, 1, 20001, "sets", EVC_TRANSACTIONAL, 7);
	hand_feed(&h);
	r = hand_result(&h, 20000);
	ck_assert_int_eq(r.r.code, EVC_INVALID_ARGUMENT);
	HAS(r.r.text, "no number");
	ck_assert_int_eq(hand_result(&h, 20001).r.code, 0);
	ck_assert_int_eq(rs_number(&h.s, "HGET {" HAND_NS "}:count finished"),
			 101);
	/* Without any they do as well. */
	rs_do(&h.s, "DEL {" HAND_NS "}:var");
	rs_do(&h.s, "SADD {" HAND_NS "}:var garbage");
	hand_put(&h, 0, 30000, "adds", EVC_TRANSACTIONAL, 1);
	hand_feed(&h);
	r = hand_result(&h, 30000);
	ck_assert_int_eq(r.r.code, EVC_DATA_LOSS);
	HAS(r.r.text, "GARBAGE");
	hand_run(&h, 0, 30001, "twice", 1);
	ck_assert_int_eq(hand_number(&h, 30001), 2);
	hand_end(&h);
}
END_TEST

/* ---- the server refuses ---- */

START_TEST(results_wait_for_memory)
{
	struct hand h;
	unsigned i;

	hand_start(&h, 5000, 1);
	hand_await_node(&h, 1);
	for (i = 1; i <= 5; i++)
		hand_put(&h, 0, i, i < 5 ? "twice" : "naps", 0, 1);
	hand_feed(&h);
	for (i = 1; i <= 5; i++)
		hand_result(&h, i);
	/* It has what to do before there is none. */
	hand_put(&h, 0, 10, "naps", 0, 200);
	hand_feed(&h);
	rs_do(&h.s, "CONFIG SET maxmemory 1");
	t_sleep(0.6);
	rs_do(&h.s, "CONFIG SET maxmemory 0");
	ck_assert_int_eq(hand_result(&h, 10).r.code, 0);
	hand_run(&h, 0, 11, "twice", 1);
	ck_assert_int_eq(hand_number(&h, 11), 2);
	ck_assert_uint_eq(h.inc, 1);
	hand_end(&h);
}
END_TEST

START_TEST(scripts_are_flushed)
{
	struct hand h;

	hand_start(&h, 400, 1);
	hand_await_node(&h, 1);
	rs_do(&h.s, "SCRIPT FLUSH");
	hand_put(&h, 0, 1, "adds", EVC_TRANSACTIONAL, 1);
	hand_feed(&h);
	ck_assert_int_eq(hand_number(&h, 1), 1);
	t_sleep(0.8);
	hand_run(&h, 0, 2, "twice", 1);
	ck_assert_int_eq(hand_number(&h, 2), 2);
	ck_assert_uint_eq(h.inc, 1);
	hand_end(&h);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { registers,
				       registers_anew_without_a_word,
				       runs,
				       hears_once_what_is_sent_again,
				       gives_back_what_waits,
				       cancels,
				       hears_some_late,
				       kills_and_deadlines,
				       builds,
				       says_what_a_worker_builds,
				       values_have_keys,
				       variables,
				       transactions,
				       results_wait_for_memory,
				       scripts_are_flushed };

	if (evc_worker_is())
		return evc_worker_main(node_functions, N_NODE_FUNCTIONS,
				       NULL) != 0;
	if (node_is())
		return node_main(node_functions, N_NODE_FUNCTIONS, NULL);
	if (rs_is_missing("node"))
		return 77;
	return api_run("node", NULL, NULL, tests,
		       sizeof(tests) / sizeof(tests[0]));
}
