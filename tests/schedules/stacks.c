/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by signal: each order in which question and answer can miss each
 * other.
 */
#include "../support/seam.h"
#include "../support/stack_util.h"

/* The handler of A is held before it may answer; whoever asked gives up; then B
   is asked, then A is let go, which must not touch B's answer. */
static void
late(const char *op, int nth)
{
	struct victim a = { 0 }, b = { 0 };
	struct taken t;
	int h;

	install();
	victim_start(&a, victim_naps);
	victim_start(&b, victim_naps);
	h = seam_hold(op, "on_ask", nth);
	t = take(a.tid, SHORT);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "it did not answer in time");
	ck_assert(seam_await(h));
	t = take(b.tid, LONG);
	ck_assert_str_eq(t.why, "");
	ck_assert_uint_gt(t.n, 0);
	seam_release(h);
	/* It is back at its work, and can be asked again. */
	t = take(a.tid, LONG);
	ck_assert_str_eq(t.why, "");
	ck_assert_uint_gt(t.n, 0);
	seam_reset();
	victim_end(&a);
	victim_end(&b);
}

START_TEST(late_before_it_has_read_the_question)
{
	late("load", 1);
}
END_TEST

START_TEST(late_before_it_has_read_who_is_asked)
{
	late("load", 2);
}
END_TEST

START_TEST(late_with_the_answer_ready)
{
	late("cas", 1);
}
END_TEST

START_TEST(late_in_the_middle_of_the_answer)
{
	struct victim a = { 0 }, b = { 0 };
	struct taken t;
	int h;

	install();
	victim_start(&a, victim_naps);
	victim_start(&b, victim_naps);
	h = seam_hold("store", "on_ask", 1);
	t = take(a.tid, SHORT);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "it did not answer in time");
	ck_assert(seam_is_held(h));
	/* The mailbox is not free, and B is not asked. */
	t = take(b.tid, SHORT);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_str_eq(t.why, "another thread is still answering");
	seam_release(h);
	t = take(b.tid, LONG);
	ck_assert_str_eq(t.why, "");
	ck_assert_uint_gt(t.n, 0);
	seam_reset();
	victim_end(&a);
	victim_end(&b);
}
END_TEST

struct asking {
	pthread_t t;
	int tid;
	uint64_t ns;
	struct taken taken;
	atomic_bool over;
};

static void *
asks_one(void *arg)
{
	struct asking *k = arg;

	k->taken = take(k->tid, k->ns);
	atomic_store(&k->over, true);
	return NULL;
}

/* A's answer to the first question is ready when the second one stands there,
   which B has not read yet: it is B's to answer. */
START_TEST(late_when_the_next_question_is_open)
{
	struct victim a = { 0 }, b = { 0 };
	struct asking k = { .ns = LONG };
	unsigned long turns;
	struct taken t;
	int first, second;

	install();
	victim_start(&a, victim_naps);
	victim_start(&b, victim_naps);
	first = seam_hold("cas", "on_ask", 1);
	t = take(a.tid, SHORT);
	ck_assert_uint_eq(t.n, 0);
	ck_assert(seam_await(first));
	second = seam_hold("load", "on_ask", 1);
	k.tid = b.tid;
	pthread_create(&k.t, NULL, asks_one, &k);
	ck_assert(seam_await(second));
	turns = atomic_load(&a.turns);
	seam_release(first);
	UNTIL(atomic_load(&a.turns) > turns);
	t_sleep(0.05);
	ck_assert(!atomic_load(&k.over));
	seam_release(second);
	pthread_join(k.t, NULL);
	ck_assert_str_eq(k.taken.why, "");
	ck_assert_uint_gt(k.taken.n, 0);
	seam_reset();
	victim_end(&a);
	victim_end(&b);
}
END_TEST

/* The asker gives up at the very moment when the answer begins: it waits for
   that. */
START_TEST(an_answer_that_begins_when_the_asker_gives_up)
{
	struct victim v = { 0 };
	struct asking k = { .ns = SHORT };
	int answer, give_up;

	install();
	victim_start(&v, victim_naps);
	k.tid = v.tid;
	answer = seam_hold("cas", "on_ask", 1);
	give_up = seam_hold("cas", "take_question_back", 1);
	ck_assert_int_eq(pthread_create(&k.t, NULL, asks_one, &k), 0);
	ck_assert(seam_await(answer));
	ck_assert(seam_await(give_up));
	seam_release(answer);
	t_sleep(0.05);
	seam_release(give_up);
	pthread_join(k.t, NULL);
	ck_assert_str_eq(k.taken.why, "");
	ck_assert_uint_gt(k.taken.n, 0);
	seam_reset();
	victim_end(&v);
}
END_TEST

struct asker {
	pthread_t t;
	struct victim *v;
	const char *start, *stop;
	unsigned n, wrong;
};

static void *
asks_often(void *arg)
{
	struct asker *a = arg;
	unsigned i;

	for (i = 0; i < 200; i++) {
		struct taken t = take(a->v->tid, LONG);

		a->n += t.n > 0;
		a->wrong += t.n > 0 && !stands_in(&t, a->start, a->stop);
	}
	return NULL;
}

START_TEST(two_askers_get_what_each_asked_for)
{
	struct victim one = { 0 }, two = { 0 };
	struct asker a = { .v = &one,
			   .start = __start_evc_spins,
			   .stop = __stop_evc_spins },
		     b = { .v = &two,
			   .start = __start_evc_whirls,
			   .stop = __stop_evc_whirls };

	if (t_under_tsan())
		T_SKIP(BY_TSAN);
	if (t_under_valgrind())
		T_SKIP(BY_VALGRIND);
	install();
	victim_start(&one, spins);
	victim_start(&two, whirls);
	UNTIL(atomic_load(&one.turns) > 0 && atomic_load(&two.turns) > 0);
	pthread_create(&a.t, NULL, asks_often, &a);
	pthread_create(&b.t, NULL, asks_often, &b);
	pthread_join(a.t, NULL);
	pthread_join(b.t, NULL);
	ck_assert_uint_eq(a.n, 200);
	ck_assert_uint_eq(b.n, 200);
	ck_assert_uint_eq(a.wrong + b.wrong, 0);
	victim_end(&one);
	victim_end(&two);
}
END_TEST

/* ---- fork ---- */

/* The parent's asker has the lock and waits for an answer; a child begins
   anew. */
START_TEST(in_a_fork_child)
{
	struct victim v = { 0 }, w = { 0 };
	struct asking k = { .ns = LONG };
	struct taken t;
	int h, pid, status = -1;

	if (t_under_tsan())
		T_SKIP("it allows no threads in a fork child of threads");
	install();
	victim_start(&v, victim_naps);
	k.tid = v.tid;
	h = seam_hold("store", "on_ask", 1);
	pthread_create(&k.t, NULL, asks_one, &k);
	ck_assert(seam_await(h));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* The one that is held is the parent's. */
		alarm(60);
		victim_start(&w, victim_naps);
		t = take(w.tid, LONG);
		CHILD(t.n > 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	seam_release(h);
	pthread_join(k.t, NULL);
	ck_assert_uint_gt(k.taken.n, 0);
	seam_reset();
	victim_end(&v);
}
END_TEST

API_MAIN("stacks", late_before_it_has_read_the_question,
	 late_before_it_has_read_who_is_asked, late_with_the_answer_ready,
	 late_in_the_middle_of_the_answer,
	 late_when_the_next_question_is_open,
	 an_answer_that_begins_when_the_asker_gives_up,
	 two_askers_get_what_each_asked_for, in_a_fork_child)
