/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine that keeps the variables: what the program's calls ask of it, who
 * waits for what, and that nobody waits for ever.
 */
#include "../support/hand_engine.h"

#include <math.h>

static evc_coord *c;
static evc_cluster *cl;

static void
begin(struct ev_loop *home)
{
	evc_cluster_config k = { KEEPING_HAND_CONFIG };

	c = new_coord(home);
	cl = open_with(c, "hand://2", &k);
}

/* ---- a call on a thread of its own, as it waits ---- */

struct call {
	pthread_t thread;
	enum { ADD, SET, GET, COMPARE_SET, EACH, FINISHED } what;
	evc_value value, expected;
	bool expects;
	double now;
	evc_value got;
	char text[200];      /* of evc_last_error, or what EACH saw */
	uint64_t finished;
	evc_status st;
	atomic_int returned;
};

static bool
see(const char *name, const evc_value *v, void *arg)
{
	struct call *k = arg;
	size_t n = strlen(k->text);
	char is[40];

	evc_value_print(v, is, sizeof(is));
	snprintf(k->text + n, sizeof(k->text) - n, "%s=%s ", name, is);
	return true;
}

static void *
call_main(void *arg)
{
	struct call *k = arg;

	switch (k->what) {
	case ADD:
		k->st = evc_variable_add(cl, "v", 2.5, &k->now);
		break;
	case SET:
		k->st = evc_variable_set(cl, "v", &k->value);
		break;
	case GET:
		k->st = evc_variable_get(cl, "v", &k->got);
		break;
	case COMPARE_SET:
		k->st = evc_variable_compare_set(
			cl, "v", k->expects ? &k->expected : NULL, &k->value);
		break;
	case EACH:
		k->st = evc_variable_each(cl, see, k);
		break;
	case FINISHED:
		k->finished = evc_cluster_finished(cl);
	}
	if (k->st < 0)
		snprintf(k->text, sizeof(k->text), "%s", evc_last_error());
	atomic_store(&k->returned, 1);
	return NULL;
}

/* It has asked. */
static evc_engine_question *
call_begin(struct call *k)
{
	int n = atomic_load(&hand_asked.n_asked);

	OK(pthread_create(&k->thread, NULL, call_main, k));
	UNTIL(atomic_load(&hand_asked.n_asked) == n + 1);
	ck_assert_int_eq(atomic_load(&k->returned), 0);
	return hand_question();
}

static void
call_end(struct call *k)
{
	OK(pthread_join(k->thread, NULL));
}

static void
call_answer(struct call *k, const evc_engine_answer *a)
{
	hand_answer(a);
	call_end(k);
}

#define CALL(...) (&(struct call){ __VA_ARGS__ })

/* ---- what is asked, and what comes back ---- */

START_TEST(each_call_is_a_question)
{
	const evc_engine_answer fine = { .now = 7.5 };
	evc_value one = { 0 }, two = { 0 }, nil = { 0 };
	evc_engine_question *q;
	evc_engine_answer a;
	struct call *k;

	begin(NULL);
	OK(evc_pack(&one, "i", 1));
	OK(evc_pack(&two, "s", "two"));
	OK(evc_pack(&nil, "n"));
	q = call_begin(k = CALL(.what = ADD));
	ck_assert_uint_eq(q->update.op, EVC_VARIABLE_ADD);
	ck_assert_str_eq(q->update.name, "v");
	ck_assert(q->update.by == 2.5);
	call_answer(k, &fine);
	OK(k->st);
	ck_assert(k->now == 7.5);

	q = call_begin(k = CALL(.what = SET, .value = two));
	ck_assert_uint_eq(q->update.op, EVC_VARIABLE_SET);
	IS_VALUE(&q->update.value, "\"two\"");
	call_answer(k, &fine);
	OK(k->st);
	/* of two spellings of nil the shorter one goes on */
	q = call_begin(k = CALL(.what = SET, .value = nil));
	ck_assert_uint_eq(q->update.value.size, 0);
	call_answer(k, &fine);
	OK(k->st);

	q = call_begin(k = CALL(.what = GET));
	ck_assert_uint_eq(q->update.op, EVC_VARIABLE_GET);
	a = (evc_engine_answer){ .value = two };
	call_answer(k, &a);
	OK(k->st);
	IS_VALUE(&k->got, "\"two\"");
	evc_value_free(&k->got);

	q = call_begin(k = CALL(.what = COMPARE_SET, .value = two));
	ck_assert_uint_eq(q->update.op, EVC_VARIABLE_COMPARE_SET);
	ck_assert_uint_eq(q->update.expected.size, 0);
	call_answer(k, &fine);
	OK(k->st);
	q = call_begin(k = CALL(.what = COMPARE_SET, .value = nil,
				.expected = one, .expects = true));
	IS_VALUE(&q->update.expected, "1");
	ck_assert_uint_eq(q->update.value.size, 0);
	a = (evc_engine_answer){ .status = -EVC_ABORTED,
				 .text = "it is another one" };
	call_answer(k, &a);
	ck_assert_int_eq(k->st, -EVC_ABORTED);
	ck_assert_str_eq(k->text, "it is another one");
	evc_value_free(&one);
	evc_value_free(&two);
	evc_value_free(&nil);
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(answers_that_are_errors)
{
	static const unsigned char garbage[] = { 0xc1 };
	evc_engine_entry entries[] = {
		{ "fine", { "\x01", 1 } }, { "bad", { garbage, 1 } },
	};
	evc_engine_answer a = { .status = -EVC_NOT_FOUND };
	struct call *k;

	begin(NULL);
	/* a text there is always */
	(void)call_begin(k = CALL(.what = GET));
	call_answer(k, &a);
	ck_assert_int_eq(k->st, -EVC_NOT_FOUND);
	ck_assert_uint_eq(k->got.size, 0);
	ck_assert_str_ne(k->text, "");
	/* and a code below 0 */
	(void)call_begin(k = CALL(.what = ADD));
	a = (evc_engine_answer){ .status = EVC_UNAVAILABLE, .text = "off" };
	call_answer(k, &a);
	ck_assert_int_eq(k->st, -EVC_UNAVAILABLE);
	/* what is no value is nobody's */
	(void)call_begin(k = CALL(.what = GET));
	a = (evc_engine_answer){ .value = { garbage, 1 } };
	call_answer(k, &a);
	ck_assert_int_eq(k->st, -EVC_DATA_LOSS);
	ck_assert_uint_eq(k->got.size, 0);
	(void)call_begin(k = CALL(.what = EACH));
	a = (evc_engine_answer){ .entries = entries, .n_entries = 2 };
	call_answer(k, &a);
	ck_assert_int_eq(k->st, -EVC_DATA_LOSS);
	HAS(k->text, "damaged");
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(what_is_wrong_is_not_asked)
{
	char name[300];
	evc_value v = { 0 }, none = { 0 }, bad = { "\xc1", 1 }, with_ref = { 0 };
	evc_remote *r;

	begin(NULL);
	OK(evc_pack(&v, "i", 1));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	r = schedule(cl, "f");
	OK(evc_pack(&with_ref, "[r]", r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, NULL, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, name, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "v", NAN, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "v", INFINITY, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, name, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, "v", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, "v", &bad));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, "v", &with_ref));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_get(cl, name, &none));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_get(cl, "v", NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(cl, "v", &bad, &v));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(cl, "v", NULL, &with_ref));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_each(cl, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_save(cl, NULL));
	ck_assert_int_eq(atomic_load(&hand_asked.n_asked), 0);
	/* and functions have to ask the engine, not the cluster */
	REFUSED(EVC_FAILED_PRECONDITION,
		hand.sink->variable(hand.core, 0,
				    &(evc_engine_update){
					    .op = EVC_VARIABLE_ADD,
					    .name = "v" },
				    NULL, NULL));
	evc_value_free(&with_ref);
	evc_value_free(&v);
	evc_remote_free(r);
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(all_of_them_in_the_order_of_their_names)
{
	evc_engine_entry entries[] = {
		{ "z", { "\x01", 1 } },
		{ "a", { "\xc3", 1 } },
		{ "gone", { NULL, 0 } },
	};
	evc_engine_answer a = { .entries = entries, .n_entries = 3 };
	evc_engine_question *q;
	struct call *k;

	begin(NULL);
	q = call_begin(k = CALL(.what = EACH));
	ck_assert_uint_eq(q->update.op, EVC_VARIABLE_ALL);
	call_answer(k, &a);
	OK(k->st);
	ck_assert_str_eq(k->text, "a=true z=1 ");
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(answers_may_come_late_and_all_at_once)
{
	enum { N = 8 };
	evc_engine_answer a = { .now = 1 };
	struct call k[N];
	int i;

	begin(NULL);
	memset(k, 0, sizeof(k));
	for (i = 0; i < N; i++)
		(void)call_begin(&k[i]);
	/* until then nobody has come back, and other calls work */
	OK(evc_cluster_join(cl, T_LIMIT));
	for (i = 0; i < N; i++)
		ck_assert_int_eq(atomic_load(&k[i].returned), 0);
	for (i = 0; i < N; i++)
		hand_answer(&a);
	for (i = 0; i < N; i++) {
		call_end(&k[i]);
		OK(k[i].st);
	}
	hand_end_cluster(cl, c);
}
END_TEST

/* ---- the loop ---- */

START_TEST(on_the_loop_they_are_refused)
{
	struct ev_loop *home = ev_loop_new(0);
	evc_value v = { 0 };

	begin(home);
	OK(evc_pack(&v, "i", 1));
	REFUSED(EVC_FAILED_PRECONDITION, evc_variable_add(cl, "v", 1, NULL));
	HAS(evc_last_error(), "loop");
	REFUSED(EVC_FAILED_PRECONDITION, evc_variable_set(cl, "v", &v));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_variable_compare_set(cl, "v", NULL, &v));
	evc_value_free(&v);
	REFUSED(EVC_FAILED_PRECONDITION, evc_variable_get(cl, "v", &v));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_variable_each(cl, see, CALL(.what = EACH)));
	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_save(cl, "/tmp/never"));
	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_restore(cl, "/tmp/never"));
	ck_assert_uint_eq(evc_cluster_finished(cl), 0);
	ck_assert_int_eq(atomic_load(&hand_asked.n_asked), 0);
	evc_cluster_close(cl);
	OK(evc_request_stop(c, 0, "the test is over"));
	hand_end();
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	OK(evc_free(c));
	ev_loop_destroy(home);
}
END_TEST

/* ---- how many have finished ---- */

/* Scheduled, run, and in: with updates that the engine has made. */
static void
run_one(bool transactional)
{
	evc_schedule_opts o = { .flags = transactional ? EVC_TRANSACTIONAL :
							 0 };
	evc_engine_update u = { .op = EVC_VARIABLE_ADD, .name = "v", .by = 1 };
	evc_engine_task t;
	evc_engine_result r = { .updates = &u, .n_updates = transactional };
	evc_remote *remote;

	OK(evc_schedule(cl, "f", NULL, NULL, &o, &remote));
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	ck_assert_uint_eq(t.flags, o.flags);
	r.n = t.n;
	hand.sink->finished(hand.core, 0, &r, 1);
	OK(evc_remote_fetch(remote, T_LIMIT, NULL));
	evc_remote_free(remote);
}

/* The engine says so many. */
static uint64_t
finished(uint64_t of_engine)
{
	evc_engine_answer a = { .finished = of_engine };
	struct call *k;

	(void)call_begin(k = CALL(.what = FINISHED));
	call_answer(k, &a);
	return k->finished;
}

START_TEST(finished_is_what_both_sides_have_counted)
{
	begin(NULL);
	hand_up(0);
	/* it knew of some before */
	ck_assert_uint_eq(finished(100), 100);
	run_one(false);
	run_one(true);
	run_one(false);
	ck_assert_uint_eq(finished(101), 103);
	/* one that has not come in yet */
	ck_assert_uint_eq(finished(102), 104);
	run_one(true);
	ck_assert_uint_eq(finished(102), 104);
	OK(evc_cluster_join(cl, T_LIMIT));
	/* What an engine has made is not made again here. */
	REFUSED(EVC_FAILED_PRECONDITION,
		hand.sink->variable(hand.core, 0,
				    &(evc_engine_update){
					    .op = EVC_VARIABLE_GET,
					    .name = "v" },
				    NULL, &(evc_value){ 0 }));
	/* Afterwards it is what was known last. */
	run_one(true);
	run_one(false);
	OK(evc_request_stop(evc_cluster_scope(cl), 0, "it alone"));
	UNTIL(atomic_load(&hand.left));
	ck_assert_uint_eq(evc_cluster_finished(cl), 106);
	hand_end_cluster(cl, c);
}
END_TEST

/* ---- the end ---- */

START_TEST(who_waits_at_the_end_is_told)
{
	struct call k[3];
	evc_value v;
	int i;

	begin(NULL);
	memset(k, 0, sizeof(k));
	for (i = 0; i < 3; i++) {
		k[i].what = i == 0 ? GET : i == 1 ? EACH : FINISHED;
		(void)call_begin(&k[i]);
	}
	OK(evc_request_stop(c, 0, "the test is over"));
	hand_end();
	for (i = 0; i < 3; i++)
		call_end(&k[i]);
	ck_assert_int_eq(k[0].st, -EVC_CANCELLED);
	ck_assert_str_eq(k[0].text, "the engine leaves");
	ck_assert_int_eq(k[1].st, -EVC_CANCELLED);
	/* nobody asks an engine that has left */
	REFUSED(EVC_CANCELLED, evc_variable_get(cl, "v", &v));
	REFUSED(EVC_CANCELLED, evc_variable_add(cl, "v", 1, NULL));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	REFUSED(EVC_CANCELLED, evc_variable_add(cl, "v", 1, NULL));
	ck_assert_uint_eq(evc_cluster_finished(cl), 0);
	evc_cluster_close(cl);
	OK(evc_free(c));
}
END_TEST

START_TEST(it_does_not_leave_while_somebody_asks)
{
	evc_engine_answer fine = { 0 };
	struct call k = { .what = ADD }, late = { .what = ADD };
	char text[2000];

	begin(NULL);
	atomic_store(&hand_asked.hold, 1);
	OK(pthread_create(&k.thread, NULL, call_main, &k));
	UNTIL(atomic_load(&hand_asked.hold) == 2);
	OK(evc_request_stop(evc_cluster_scope(cl), 0, "it alone"));
	UNTIL(({
		evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
		strstr(text, "workers are ending") != NULL;
	}));
	/* others are refused already, or it might never leave */
	call_main(&late);
	ck_assert_int_eq(late.st, -EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&hand.left), 0);
	atomic_store(&hand_asked.hold, 0);
	UNTIL(hand_question() != NULL);
	UNTIL(atomic_load(&hand.left));
	/* what was asked in time has its answer */
	hand_answer(&fine);
	call_end(&k);
	OK(k.st);
	hand_end_cluster(cl, c);
}
END_TEST

API_MAIN("engine_variables", each_call_is_a_question, answers_that_are_errors,
	 what_is_wrong_is_not_asked, all_of_them_in_the_order_of_their_names,
	 answers_may_come_late_and_all_at_once, on_the_loop_they_are_refused,
	 finished_is_what_both_sides_have_counted, who_waits_at_the_end_is_told,
	 it_does_not_leave_while_somebody_asks)
