/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "redis" at its coordinator, with nodes that the test is the hand
 * of.
 */
#include "support/redis_coord_util.h"
#include "support/seam.h"

/* ---- functions ---- */

/* Before the coordinator knows that the namespace is its own. */
START_TEST(a_node_is_quicker_than_an_answer)
{
	struct proxy p = begin_with_proxy(200);
	struct hand_node *h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	redisReply *r;

	UNTIL(n_up() == 1);
	/* What it has said was not trimmed, read or not. */
	r = hn_do(h, "XLEN {t}:%llu:ev", (unsigned long long)h->g);
	ck_assert_int_gt(r->integer, 0);
	freeReplyObject(r);
	atomic_store(&p.shared->delay, 0);
	end_with_proxy(h, &p);
}
END_TEST

START_TEST(functions_go_out_and_results_come_in)
{
	struct hand_node *h;
	evc_remote *r[3];
	int i;

	begin();
	for (i = 0; i < 3; i++)
		r[i] = schedule_add(on.cl, i, 10);
	h = hn_begin(&on.s, "t", "n1", 1, LONG_MS);
	/* One by one, until they prove to be quick. */
	hn_await(h, 1);
	ck_assert_uint_eq(h->n, 1);
	ck_assert_str_eq(h->tasks[0].function, "add");
	ck_assert_uint_eq(h->tasks[0].attempt, 1);
	while (h->n < 3) {
		hn_await(h, 1);
		hn_answer(h);
	}
	hn_answer(h);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(sum_of(r[i]), i + 10);
	end_with(h);
}
END_TEST

enum { MANY = 5000 };

static void *
answer_all(void *arg)
{
	struct hand_node *h = arg;

	while (h->seq < UINT64_MAX && h->n < MANY) {
		hn_read(h, 100);
		hn_answer(h);
	}
	return NULL;
}

START_TEST(many_functions)
{
	struct hand_node *h;
	static evc_remote *r[MANY];
	pthread_t t;
	double from;
	int i;

	begin();
	h = hn_begin(&on.s, "t", "n1", 4, LONG_MS);
	UNTIL(n_up() == 4);
	from = t_now();
	pthread_create(&t, NULL, answer_all, h);
	for (i = 0; i < MANY; i++)
		r[i] = schedule_add(on.cl, i, 1);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(sum_of(r[i]), i + 1);
	printf("%d functions in %.3f s, %u entries\n", MANY, t_now() - from,
	       h->n_entries);
	pthread_join(t, NULL);
	end_with(h);
}
END_TEST

/* ---- nodes that end ---- */

START_TEST(a_lease_that_is_over)
{
	struct hand_node *a, *b;
	evc_remote *r;

	begin();
	a = hn_begin(&on.s, "t", "a", 1, LEASE_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	/* It is not heard of any more. */
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	ck_assert_uint_eq(hn_task(b)->attempt, 2);
	SAYS("node a is fenced", "lease is over", NULL);
	/* What it says now counts no more. */
	hn_result(a, &a->tasks[0], 77);
	hn_send(a);
	b->first = 0;
	hn_answer(b);
	ck_assert_int_eq(sum_of(r), 3);
	hn_free(a);
	end_with(b);
}
END_TEST

START_TEST(it_registers_anew)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 2, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	hn_register(h, LONG_MS);
	hn_up(h, 1, 1);
	runs_again_on(h, r);
	/* The same workers of the cluster. */
	ck_assert_uint_eq(n_up(), 1);
	hn_up(h, 0, 1);
	UNTIL(n_up() == 2);
	end_with(h);
}
END_TEST

START_TEST(a_worker_ends_and_comes_back)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	hn_slot(h, 0, 1);
	hn_note(h, FRAME_FENCED, 0, "worker 0 (pid 1234) hangs");
	hn_note(h, FRAME_GONE, 1, "worker 0 (pid 1234) was killed");
	/* Too late. */
	hn_result(h, &h->tasks[0], 77);
	hn_send(h);
	hn_up(h, 0, 2);
	ck_assert_uint_eq(hn_task(h)->life, 2);
	ck_assert_uint_eq(h->tasks[1].attempt, 2);
	h->first = 1;
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

/* A node of this very machine, as which a process of its own stands there. */
static struct hand_node *
node_here(pid_t *ret_pid)
{
	struct hand_node *h = hn_new(&on.s, "t", "a", 1);
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	hn_is_process(h, pid);
	*ret_pid = pid;
	return h;
}

START_TEST(its_process_ends)
{
	struct hand_node *a, *b;
	evc_remote *r;
	double from;
	pid_t pid;

	if (t_under_valgrind())
		T_SKIP("it knows no pidfd");
	begin();
	a = node_here(&pid);
	hn_register(a, LONG_MS);
	/* A worker that has ended together with it. */
	hn_slot(a, 0, 1);
	hn_note(a, FRAME_UP, 2147483646, "here pid 2147483646");
	hn_send(a);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 2);
	from = t_now();
	kill(pid, SIGKILL);
	(void)hn_task(b);
	/* Not after its lease. */
	ck_assert(t_now() - from < LONG_MS / 2000.0);
	waitpid(pid, NULL, 0);
	b->first = 0;
	hn_answer(b);
	ck_assert_int_eq(sum_of(r), 3);
	hn_free(a);
	end_with(b);
}
END_TEST

/* unseen: of another user, say, where each sees his own alone; else the /proc here
   has other times than that of the node.  That is no end. */
static void
live_unwatched(bool unseen)
{
	struct hand_node *a;
	evc_remote *r;
	pid_t pid;

	begin();
	UNTIL(rs_number(&on.s, "EXISTS {t}:coord") == 1);
	if (unseen)
		ck_assert_int_ge(seam_fail_all("open_read", "evc__proc_file", 1,
					       ENOENT), 0);
	a = node_here(&pid);
	if (!unseen)
		strcat(a->where, "1");
	hn_register(a, LONG_MS);
	hn_slot(a, 0, 1);
	hn_note(a, FRAME_UP, (uint64_t)pid, "here");
	hn_send(a);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	a->first = 0;
	hn_answer(a);
	ck_assert_int_eq(sum_of(r), 3);
	/* Nobody knows whose end the worker has. */
	rs_do(&on.s, "DEL {t}:lease:a");
	SAYS("node a is fenced", "lease is gone", NULL);
	ck_assert_int_eq(n_said("has ended", NULL, NULL), 0);
	seam_reset();
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	evc_cluster_close(on.cl);
	hn_free(a);
	end();
}

START_TEST(its_process_cannot_be_seen)
{
	live_unwatched(true);
}
END_TEST

START_TEST(its_process_has_another_start)
{
	live_unwatched(false);
}
END_TEST

/* ---- values ---- */

enum { LARGE = 100000 };

static void
answer_input(struct hand_node *h, evc_remote *of, int64_t a)
{
	struct hand_task t = *hn_task(h);

	ck_assert(t.by_key);
	hn_result(h, &t, a);
	hn_send(h);
	ck_assert_int_eq(sum_of(of), a);
}

/* A large result, which the node has kept or not, is an input. */
static void
use_large(struct hand_node *h, bool kept)
{
	static char bytes[LARGE + 5];
	struct frame_result res = { .r = { .took = 1e-6 }, .kept = kept };
	evc_remote *r = schedule(on.cl, "look"), *used;
	struct hand_task t = *hn_task(h);
	evc_value v;
	int i;

	/* A value of bytes. */
	bytes[0] = (char)0xc6;
	bytes[2] = (char)(LARGE >> 16);
	bytes[3] = (char)(LARGE >> 8 & 0xff);
	bytes[4] = (char)(LARGE & 0xff);
	res.r.n = t.n;
	res.r.value = (evc_value){ bytes, sizeof(bytes) };
	hn_slot(h, 0, 1);
	OK(evc__frame_put_result(&h->out, HN_MOST, &res));
	hn_send(h);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	ck_assert_uint_eq(v.size, sizeof(bytes));
	/* One key for all functions; none if the node has the value. */
	for (i = 0; i < 2; i++) {
		OK(evc_schedule_pack(on.cl, "look", NULL, &used, "[r]", r));
		answer_input(h, used, 5 + i);
	}
	ck_assert_uint_eq(rs_keys(&on.s, "{t}:*:v:*", false), !kept);
	/* The node has lost the value, and the server its key. */
	OK(evc_schedule_pack(on.cl, "look", NULL, &used, "[r]", r));
	t = *hn_task(h);
	rs_do(&on.s, "DEL {t}:%llu:v:%llu", (unsigned long long)h->g,
	      (unsigned long long)t.input);
	OK(evc__frame_put_number(&h->out, FRAME_FORGET, t.input));
	res.r = (evc_engine_result){ .n = t.n, .code = EVC_CANCELLED,
				     .kind = EVC_FAILED_FUNCTION, .took = -1 };
	res.kept = false;
	hn_slot(h, 0, 1);
	OK(evc__frame_put_result(&h->out, HN_MOST, &res));
	hn_send(h);
	answer_input(h, used, 7);
	ck_assert_uint_eq(rs_keys(&on.s, "{t}:*:v:*", false), 1);
	/* Nobody needs it any more. */
	evc_remote_free(r);
	UNTIL((hn_read(h, 5), h->forgotten == t.input));
	UNTIL(rs_keys(&on.s, "{t}:*:v:*", false) == 0);
}

START_TEST(large_values_have_keys_of_their_own)
{
	struct hand_node *h;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	use_large(h, false);
	use_large(h, true);
	end_with(h);
}
END_TEST

/* ---- what comes and should not ---- */

START_TEST(garbage_is_named_and_dropped)
{
	struct hand_node *h, *bad;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	bad = hn_begin(&on.s, "t", "bad", 1, LONG_MS);
	UNTIL(n_up() == 2);
	rs_do(&on.s, "XADD {t}:%llu:ev * x y", (unsigned long long)h->g);
	rs_do(&on.s, "XADD {t}:%llu:ev * w nobody i 1 s 1 d x",
	      (unsigned long long)h->g);
	rs_do(&on.s, "XADD {t}:%llu:ev * w a i x s 1 d x",
	      (unsigned long long)h->g);
	rs_do(&on.s, "XADD {t}:%llu:ev * w newcomer i 1 s 0 d x",
	      (unsigned long long)h->g);
	SAYS("an entry of nobody is dropped", NULL, NULL);
	SAYS("node newcomer is fenced", "garbage", NULL);
	/* What it cannot have to say. */
	hn_slot(bad, 0, 1);
	OK(evc__frame_put_number(&bad->out, FRAME_OVERDUE, 12345));
	hn_send(bad);
	SAYS("node bad is fenced", "garbage", "deadline");
	r = schedule_add(on.cl, 1, 2);
	while (h->n == h->first) {
		hn_read(h, 50);
		hn_read(bad, 1);
	}
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	/* Its lease was long, and the mark has left it. */
	freeReplyObject(hn_do(bad, "PING"));
	bad->inc++;
	hn_register(bad, LONG_MS);
	ck_assert(hn_leave(bad));
	hn_free(bad);
	end_with(h);
}
END_TEST

START_TEST(a_stack_that_nobody_has_asked_for)
{
	const struct frame_note made_up = { .text = "stack: made up" };
	struct hand_node *h, *bad;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	bad = hn_begin(&on.s, "t", "bad", 1, LONG_MS);
	UNTIL(n_up() == 2);
	hn_slot(bad, 0, 1);
	OK(evc__frame_put_note(&bad->out, FRAME_STACK, &made_up));
	hn_send(bad);
	SAYS("node bad is fenced", "garbage", "nobody has asked");
	freeReplyObject(hn_do(bad, "PING"));
	bad->inc++;
	hn_register(bad, LONG_MS);
	ck_assert(hn_leave(bad));
	hn_free(bad);
	end_with(h);
}
END_TEST

/* What is said twice counts once. */
START_TEST(an_event_that_comes_twice)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	hn_result(h, hn_task(h), 3);
	hn_send_as(h, h->seq + 1);
	hn_send(h);
	ck_assert_int_eq(sum_of(r), 3);
	r = schedule_add(on.cl, 3, 4);
	hn_result(h, hn_task(h), 7);
	hn_send(h);
	ck_assert_int_eq(sum_of(r), 7);
	ck_assert_int_eq(n_said("is fenced", NULL, NULL), 0);
	end_with(h);
}
END_TEST

/* ---- connections, scripts, servers ---- */

START_TEST(connections_are_lost_again_and_again)
{
	struct hand_node *h;
	evc_remote *r[200];
	int i;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	for (i = 0; i < 200; i++) {
		r[i] = schedule_add(on.cl, i, 1);
		if (i % 20 == 0)
			freeReplyObject(hn_do(h, "CLIENT KILL TYPE normal "
						 "SKIPME yes"));
		hn_read(h, 1);
		hn_answer(h);
	}
	while (h->n < 200) {
		hn_read(h, 20);
		hn_answer(h);
	}
	for (i = 0; i < 200; i++)
		ck_assert_int_eq(sum_of(r[i]), i + 1);
	end_with(h);
}
END_TEST

/* A node has registered with it by then. */
START_TEST(what_it_took_unheard_is_its_own)
{
	struct proxy p = begin_with_proxy(200);
	struct hand_node *h;

	/* The answer is on its way. */
	UNTIL(rs_number(&on.s, "EXISTS {t}:gen") == 1);
	proxy_cut(&p);
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	atomic_store(&p.shared->delay, 0);
	UNTIL(n_up() == 1);
	ck_assert_uint_eq((uint64_t)rs_number(&on.s, "GET {t}:gen"), h->g);
	end_with_proxy(h, &p);
}
END_TEST

START_TEST(scripts_are_forgotten)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LEASE_MS);
	UNTIL(n_up() == 1);
	rs_do(&on.s, "SCRIPT FLUSH");
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	SAYS("node a is fenced", "lease is over", NULL);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

START_TEST(a_restart_without_data)
{
	struct hand_node *h;
	evc_remote *r;
	uint64_t g;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	g = h->g;
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	rs_kill(&on.s);
	rs_start(&on.s);
	redisFree(h->c);
	h->c = rs_connect(&on.s);
	hn_register(h, LONG_MS);
	ck_assert_uint_gt(h->g, g);
	hn_up(h, 0, 1);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	SAYS("register anew", NULL, NULL);
	end_with(h);
}
END_TEST

/* It is started anew, and the coordinator does not get on for now. */
static void
restart_durable(void)
{
	/* It knows that it has the namespace. */
	SAYS("coordinator of the namespace t", NULL, NULL);
	UNTIL(rs_number(&on.s, "PEXPIRE {t}:coord 60000") == 1);
	rs_do(&on.s, "DEL {t}:count");
	rs_do(&on.s, "SET {t}:count garbage");
	rs_kill(&on.s);
	rs_start(&on.s);
	SAYS("the counts of the variables", NULL, NULL);
}

START_TEST(a_node_that_comes_while_it_is_restarted)
{
	struct hand_node *h;
	evc_remote *r;
	uint64_t g;

	begin_durable();
	restart_durable();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	g = h->g;
	rs_do(&on.s, "DEL {t}:count");
	UNTIL(rs_number(&on.s, "GET {t}:gen") > (long long)g);
	hn_register(h, LONG_MS);
	hn_up(h, 0, 1);
	r = schedule_add(on.cl, 1, 2);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

/* It is closed all the same. */
START_TEST(a_node_that_comes_when_all_is_lost)
{
	struct hand_node *a, *b;

	begin_durable();
	OK(evc_variable_add(on.cl, "n", 1, NULL));
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	restart_durable();
	rs_do(&on.s, "DEL {t}:count");
	SAYS("variables may be lost", NULL, NULL);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	evc_cluster_close(on.cl);
	hn_free(a);
	hn_free(b);
	end_cluster();
	rs_free(&on.s);
}
END_TEST

/* A node that has a function and is fenced, and whose mark is not read before the
   coordinator may again (+xread). */
static struct hand_node *
fenced_unread(evc_remote **ret)
{
	struct hand_node *h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	char ev[64];
	long long n;

	snprintf(ev, sizeof(ev), "{t}:%llu:ev", (unsigned long long)h->g);
	*ret = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	rs_do(&on.s, "ACL SETUSER default -xread");
	SAYS("entries of nodes cannot be read", NULL, NULL);
	n = rs_number(&on.s, "XLEN %s", ev);
	rs_do(&on.s, "DEL {t}:lease:a");
	UNTIL(rs_number(&on.s, "XLEN %s", ev) > n);
	return h;
}

/* The mark of a fenced node goes with all else before it was read: it is fenced
   again, and nobody waits for ever. */
START_TEST(its_mark_is_gone)
{
	struct hand_node *a, *b;
	evc_remote *r;

	begin();
	a = fenced_unread(&r);
	rs_do(&on.s, "FLUSHALL");
	rs_do(&on.s, "ACL SETUSER default +xread");
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(b, r);
	hn_free(a);
	end_with(b);
}
END_TEST

/* Its mark is nowhere, and there cannot be another one: then its lease tells. */
START_TEST(there_can_be_no_mark)
{
	struct hand_node *a, *b;
	evc_remote *r;
	char ev[64];

	begin();
	a = fenced_unread(&r);
	snprintf(ev, sizeof(ev), "{t}:%llu:ev", (unsigned long long)a->g);
	rs_do(&on.s, "DEL %s", ev);
	rs_do(&on.s, "SET %s garbage", ev);
	rs_do(&on.s, "ACL SETUSER default +xread");
	/* A new generation begins only for a stream that was read as another
	   key, and the fence may be said before. */
	SAYS("entries of nodes cannot be read: WRONGTYPE", NULL, NULL);
	SAYS("node a is fenced", NULL, NULL);
	rs_do(&on.s, "DEL %s", ev);
	UNTIL(rs_number(&on.s, "GET {t}:gen") > (long long)a->g);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(b, r);
	hn_free(a);
	end_with(b);
}
END_TEST

/* The connection was lost, and all that is said of the lock is an error. */
START_TEST(nothing_is_known_of_the_lock)
{
	struct hand_node *a, *b;
	evc_remote *r;

	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(a);
	rs_do(&on.s, "PERSIST {t}:coord");
	rs_do(&on.s, "DEL {t}:count");
	rs_do(&on.s, "SET {t}:count garbage");
	rs_do(&on.s, "CLIENT KILL TYPE normal");
	SAYS("the lock of the namespace t", NULL, NULL);
	rs_do(&on.s, "DEL {t}:lease:a");
	SAYS("node a is fenced", "lease is gone", NULL);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	runs_again_on(b, r);
	rs_do(&on.s, "DEL {t}:count");
	hn_free(a);
	end_with(b);
}
END_TEST

/* It is there, and does not leave: the grace is over, although something else was
   due before. */
START_TEST(a_node_that_does_not_leave)
{
	struct hand_node *a, *b;

	begin();
	a = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	b = hn_begin(&on.s, "t", "b", 1, LONG_MS);
	UNTIL(n_up() == 2);
	rs_do(&on.s, "DEL {t}:lease:b");
	SAYS("node b is fenced", NULL, NULL);
	evc_cluster_close(on.cl);
	SAYS("node a is fenced", "did not leave", NULL);
	hn_free(a);
	hn_free(b);
	end();
}
END_TEST

START_TEST(the_namespace_is_in_use)
{
	struct hand_node *h;
	evc_remote *r;

	rs_start(&on.s);
	rs_do(&on.s, "SET {t}:coord somebody");
	rs_unlink(&on.s);
	open_at("");
	SAYS("the namespace t is in use by somebody", NULL, NULL);
	r = schedule_add(on.cl, 1, 2);
	rs_do(&on.s, "DEL {t}:coord");
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

START_TEST(another_coordinator_takes_it)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	rs_do(&on.s, "SET {t}:coord somebody");
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT), EVC_UNAVAILABLE);
	SAYS("another coordinator", "somebody", NULL);
	evc_remote_free(r);
	hn_free(h);
	end_lost();
}
END_TEST

START_TEST(no_memory_there)
{
	unsigned long long g;
	char state[2000];
	struct hand_node *h;
	evc_remote *r;
	evc_remote_info info;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	r = schedule_add(on.cl, 1, 2);
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT),
			 EVC_RESOURCE_EXHAUSTED);
	OK(evc_remote_get(r, &info));
	HAS(info.text, "OOM");
	evc_remote_free(r);
	/* What evc-cluster reads is not of an earlier time. */
	g = h->g;
	UNTIL(rs_number(&on.s, "EXISTS {t}:%llu:state", g) == 0);
	rs_do(&on.s, "CONFIG SET maxmemory 0");
	UNTIL(rs_number(&on.s, "EXISTS {t}:%llu:state", g) == 1);
	r = schedule_add(on.cl, 3, 4);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 7);
	UNTIL((rs_text(&on.s, state, sizeof(state), "GET {t}:%llu:state", g),
	       strstr(state, "\ndone 2\n") != NULL));
	end_with(h);
}
END_TEST

/* Of a worker whose function does not stop: the close waits for it, and says so
   once. */
START_TEST(no_memory_for_a_kill)
{
	struct hand_node *h;
	evc_remote *r;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	(void)hn_task(h);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	evc_remote_free(r);
	evc_cluster_close(on.cl);
	SAYS("node a is fenced", "was refused for", "OOM");
	ck_assert_int_eq(n_said("redis: orders for node", NULL, NULL), 1);
	ck_assert_int_eq(n_said("worker 0: orders for node", "OOM", NULL), 1);
	hn_free(h);
	/* The function has returned nothing. */
	end_says(EVC_UNAVAILABLE);
}
END_TEST

/* The answers are held, and then the connection goes: what was refused was
   perhaps not, and what stands behind it was taken. */
START_TEST(refused_and_nobody_heard_of_it)
{
	struct proxy p = begin_with_proxy(0);
	struct hand_node *h;
	evc_remote *r[2];
	int i;

	h = hn_begin(&on.s, "t", "a", 2, LONG_MS);
	UNTIL(n_up() == 2);
	proxy_set(&p, PROXY_DEAF);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	i = rs_refused(&on.s);
	r[0] = schedule_add(on.cl, 1, 2);
	UNTIL(rs_refused(&on.s) > i);
	rs_do(&on.s, "CONFIG SET maxmemory 0");
	r[1] = schedule_add(on.cl, 3, 4);
	hn_await(h, 1);
	ck_assert_int_eq(h->tasks[0].a, 3);
	proxy_cut(&p);
	proxy_set(&p, PROXY_PASS);
	hn_await(h, 2);
	/* The second one came again, perhaps more than once, and is the same. */
	UNTIL((hn_read(h, 10), h->n_again >= 2));
	ck_assert_uint_eq(h->n - h->first, 2);
	hn_answer(h);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(sum_of(r[i]), 3 + i * 4);
	end_with_proxy(h, &p);
}
END_TEST

/* One was taken, and is refused when it is sent again: it has not failed. */
START_TEST(taken_and_nobody_heard_of_it)
{
	struct proxy p = begin_with_proxy(0);
	struct hand_node *h;
	evc_remote *r;

	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	proxy_set(&p, PROXY_DEAF);
	r = schedule_add(on.cl, 1, 2);
	hn_await(h, 1);
	rs_do(&on.s, "CONFIG SET maxmemory 1");
	proxy_cut(&p);
	proxy_set(&p, PROXY_PASS);
	SAYS("orders for node a are refused", "OOM", NULL);
	rs_do(&on.s, "CONFIG SET maxmemory 0");
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with_proxy(h, &p);
}
END_TEST

/* ---- variables ---- */

START_TEST(variables)
{
	struct hand_node *h;
	evc_value v, w = { 0 };
	double now = 0;
	int64_t n = 0;

	begin();
	OK(evc_variable_add(on.cl, "n", 2.5, &now));
	ck_assert(now == 2.5);
	OK(evc_variable_add(on.cl, "n", 1.5, &now));
	ck_assert(now == 4);
	OK(evc_variable_get(on.cl, "n", &v));
	OK(evc_unpack(&v, "I", &n));
	ck_assert_int_eq(n, 4);
	OK(evc_pack(&w, "s", "text"));
	REFUSED(EVC_ABORTED, evc_variable_compare_set(on.cl, "n", &w, &w));
	OK(evc_variable_compare_set(on.cl, "n", &v, &w));
	evc_value_free(&v);
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(on.cl, "n", 1, NULL));
	REFUSED(EVC_NOT_FOUND, evc_variable_get(on.cl, "none", &v));
	rs_do(&on.s, "HSET {t}:var bad %b", "\xc1", (size_t)1);
	REFUSED(EVC_DATA_LOSS, evc_variable_get(on.cl, "bad", &v));
	evc_value_free(&w);
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	UNTIL(n_up() == 1);
	end_with(h);
}
END_TEST

/* One that was killed a moment ago has its lock for a lease, and it is asked for
   four times in one: who asks meanwhile is not told that somebody has it. */
START_TEST(variables_after_a_predecessor)
{
	double now = 0;

	rs_start(&on.s);
	rs_do(&on.s, "SET {t}:coord somebody PX %d", LEASE_MS + LEASE_MS / 5);
	rs_unlink(&on.s);
	open_at("");
	OK(evc_variable_add(on.cl, "n", 1, &now));
	ck_assert(now == 1);
	evc_cluster_close(on.cl);
	end();
}
END_TEST

/* ---- stops ---- */

START_TEST(cancelled_functions_come_back)
{
	struct hand_node *h;
	evc_remote *r;
	struct hand_task t;

	begin();
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	r = schedule_add(on.cl, 1, 2);
	t = *hn_task(h);
	evc_remote_cancel(r);
	UNTIL((hn_read(h, 5), h->cancelled_one == t.n));
	hn_give_back(h, &t);
	hn_send(h);
	ck_assert_int_eq(evc_cluster_join(on.cl, T_LIMIT), 0);
	evc_remote_free(r);
	/* And one that comes back by itself goes out again. */
	r = schedule_add(on.cl, 1, 2);
	t = *hn_task(h);
	hn_give_back(h, &t);
	hn_send(h);
	hn_await(h, 1);
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

START_TEST(no_server_at_all)
{
	rs_start(&on.s);
	rs_kill(&on.s);
	open_at("");
	SAYS("no connection", NULL, NULL);
	end_lost();
}
END_TEST

/* Whoever has opened the cluster sees that nothing happens, and is told what to
   start: once, and no more when there is a node. */
START_TEST(no_node_at_all)
{
	const char *told = "no node is registered: start evc-worker(1), or a "
			   "program that calls evc_worker_main(3), for the "
			   "namespace t at 127.0.0.1:";
	char report[2048] = "";
	struct hand_node *h;
	evc_remote *r;

	begin();
	r = schedule_add(on.cl, 1, 2);
	UNTIL((own_report(evc_cluster_scope(on.cl), report, sizeof(report)),
	       strstr(report, told) != NULL));
	SAYS(told, NULL, NULL);
	/* The lock is renewed meanwhile. */
	t_sleep(LEASE);
	ck_assert_int_eq(n_said(told, NULL, NULL), 1);
	h = hn_begin(&on.s, "t", "a", 1, LONG_MS);
	hn_await(h, 1);
	own_report(evc_cluster_scope(on.cl), report, sizeof(report));
	ck_assert_ptr_null(strstr(report, told));
	hn_answer(h);
	ck_assert_int_eq(sum_of(r), 3);
	end_with(h);
}
END_TEST

RS_MAIN("redis/engine", a_node_is_quicker_than_an_answer,
	functions_go_out_and_results_come_in, many_functions,
	a_lease_that_is_over, it_registers_anew, a_worker_ends_and_comes_back,
	its_process_ends, its_process_cannot_be_seen,
	its_process_has_another_start,
	large_values_have_keys_of_their_own,
	garbage_is_named_and_dropped,
	a_stack_that_nobody_has_asked_for, an_event_that_comes_twice,
	connections_are_lost_again_and_again,
	what_it_took_unheard_is_its_own, scripts_are_forgotten,
	a_restart_without_data, a_node_that_comes_while_it_is_restarted,
	a_node_that_comes_when_all_is_lost, its_mark_is_gone,
	there_can_be_no_mark, nothing_is_known_of_the_lock,
	a_node_that_does_not_leave, the_namespace_is_in_use,
	another_coordinator_takes_it, no_memory_there, no_memory_for_a_kill,
	refused_and_nobody_heard_of_it, taken_and_nobody_heard_of_it, variables,
	variables_after_a_predecessor,
	cancelled_functions_come_back, no_server_at_all, no_node_at_all)
