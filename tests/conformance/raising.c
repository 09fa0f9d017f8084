/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who raises an error, when, and what is true then: join, done and schedule, by
 * threads and on the loop, while something still runs.
 */
#include "functions.h"

/* A has failed, B runs until "b" is let go and heeds no stop. */
static evc_remote *
one_failed_one_insists(int code_of_b)
{
	evc_remote *a, *b;

	b = SCHEDULE("insist", "[si]", "b", code_of_b);
	if (on.loop != NULL)
		TURN_UNTIL(are_in("b", 1));
	else
		UNTIL(are_in("b", 1));
	a = SCHEDULE("fail", "[is]", EVC_DATA_LOSS, "a fails");
	if (on.loop != NULL)
		TURN_UNTIL(info_of(a).state == EVC_REMOTE_DONE);
	IS(code_of(a), EVC_DATA_LOSS);
	evc_remote_free(a);
	return b;
}

START_TEST(done_never_waits_and_says_no_while_something_runs)
{
	evc_status st = 0;
	bool done = true;
	evc_remote *b;
	double until;
	int i;

	begin(_i, 2);
	b = one_failed_one_insists(0);
	for (i = 0; i < 10; i++) {
		done = true;
		OK(evc_cluster_done(on.cl, &done));
		ck_assert(!done);
	}
	let_go("b");
	for (until = t_now() + T_LIMIT; t_now() < until && st == 0;) {
		t_sleep(0.001);
		st = evc_cluster_done(on.cl, &done);
	}
	IS(st, EVC_DATA_LOSS);
	/* It heard of the stop, and made its outcome all the same. */
	IS(take_number(b), 2);
	ck_assert(all_done());
	OK(join());
}
END_TEST

static void *
join_thread(void *arg)
{
	*(evc_status *)arg = evc_cluster_join(on.cl, T_LIMIT);
	return NULL;
}

START_TEST(join_waits_for_what_runs_and_then_raises)
{
	evc_status st[3] = { 77, 77, 77 };
	struct t_crowd k;
	evc_remote *b;
	int i, raised = 0;

	begin(_i, 2);
	b = one_failed_one_insists(0);
	IS(evc_cluster_join(on.cl, 0.05), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "insist");
	HAS(evc_last_error(), info_of(b).worker);
	crowd_begin(&k, 3, join_thread, st, sizeof(st[0]));
	t_sleep(0.02);
	IS(info_of(b).state, EVC_REMOTE_RUNNING);
	let_go("b");
	crowd_end(&k);
	for (i = 0; i < 3; i++) {
		/* One of them has it. */
		ck_assert(st[i] == 0 || st[i] == EVC_DATA_LOSS);
		raised += st[i] != 0;
	}
	IS(raised, 1);
	IS(info_of(b).state, EVC_REMOTE_DONE);
	evc_remote_free(b);
}
END_TEST

/* The first is raised; the others are kept beside it. */
START_TEST(all_errors_are_kept)
{
	evc_remote *b;
	evc_reason e;

	begin(_i, 2);
	b = one_failed_one_insists(200);
	let_go("b");
	IS(join(), EVC_DATA_LOSS);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	IS(e.code, EVC_DATA_LOSS);
	ck_assert_str_eq(e.text, "a fails");
	ck_assert_str_eq(e.func, "fail");
	OK(evc_cluster_error_get(on.cl, 1, &e));
	IS(e.code, 200);
	ck_assert_str_eq(e.text, "insisted on 200");
	ck_assert_str_eq(e.func, "insist");
	ck_assert_str_eq(e.who, info_of(b).worker);
	REFUSED(EVC_NOT_FOUND, evc_cluster_error_get(on.cl, 2, &e));
	/* B failed by itself, and says so. */
	IS(code_of(b), 200);
	ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_FUNCTION);
	evc_remote_free(b);
	OK(join());
	/* What was raised last stays until something else is. */
	OK(evc_cluster_error_get(on.cl, 1, &e));
	DO("fail", "[is]", EVC_ABORTED, "c fails");
	IS(join(), EVC_ABORTED);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_eq(e.text, "c fails");
	IS(evc_cluster_error_get(on.cl, 1, &e), -EVC_NOT_FOUND);
}
END_TEST

struct scheduler {
	pthread_t thread;
	double wait;
	evc_status st;
	evc_remote *r;
	atomic_int over;
};

static void *
schedule_thread(void *arg)
{
	struct scheduler *s = arg;
	evc_schedule_opts o = { .wait = s->wait };

	s->st = evc_schedule_pack(on.cl, "add", &o, &s->r, "[ii]", 1, 1);
	atomic_store(&s->over, 1);
	return NULL;
}

START_TEST(schedule_waits_on_a_thread_and_then_raises)
{
	struct scheduler s = { 0 };
	evc_schedule_opts no = { .wait = -1 }, brief = { .wait = 0.02 };
	evc_remote *b, *r = NULL;

	begin(_i, 2);
	b = one_failed_one_insists(0);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule(on.cl, "who", NULL, NULL, &no, &r));
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule(on.cl, "who", NULL, NULL, &brief, &r));
	OK(pthread_create(&s.thread, NULL, schedule_thread, &s));
	t_sleep(0.02);
	IS(s.over, 0);
	let_go("b");
	OK(pthread_join(s.thread, NULL));
	IS(s.st, EVC_DATA_LOSS);
	ck_assert_ptr_null(s.r);
	ck_assert_ptr_null(r);
	evc_remote_free(b);
	OK(join());
	IS(take_number(SCHEDULE("add", "[ii]", 3, 4)), 7);
}
END_TEST

START_TEST(schedule_on_the_loop_is_told_when_it_may)
{
	int told = 0;
	evc_cluster_config config = { .writable = count_writable,
				      .arg = &told };
	evc_remote *b, *r = NULL;
	bool done;

	begin_on_loop(_i, 2, &config);
	b = one_failed_one_insists(0);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_schedule(on.cl, "who", NULL, NULL, NULL, &r));
	OK(evc_cluster_done(on.cl, &done));
	ck_assert(!done);
	IS(told, 0);
	let_go("b");
	TURN_UNTIL(told == 1);
	IS(evc_schedule(on.cl, "who", NULL, NULL, NULL, &r), EVC_DATA_LOSS);
	ck_assert_ptr_null(r);
	OK(evc_schedule(on.cl, "who", NULL, NULL, NULL, &r));
	TURN_UNTIL(info_of(r).state == EVC_REMOTE_DONE);
	OK(code_of(r));
	IS(told, 1);
	evc_remote_free(r);
	evc_remote_free(b);
}
END_TEST

static void
note_join(evc_cluster *cl, evc_status result, void *arg)
{
	evc_status *st = arg;

	(void)cl;
	/* Twice would be wrong. */
	*st = *st == 77 ? result : -77;
}

START_TEST(an_evented_join_raises_once)
{
	evc_status st[2] = { 77, 77 };
	evc_remote *b;

	begin_on_loop(_i, 2, NULL);
	b = one_failed_one_insists(0);
	OK(evc_cluster_join_start(on.cl, note_join, &st[0]));
	OK(evc_cluster_join_start(on.cl, note_join, &st[1]));
	ev_run(on.loop, EVRUN_NOWAIT);
	IS(st[0], 77);
	let_go("b");
	TURN_UNTIL(st[0] != 77 && st[1] != 77);
	IS(st[0], EVC_DATA_LOSS);
	OK(st[1]);
	evc_remote_free(b);
}
END_TEST

static void
note_fetch(evc_cluster *cl, evc_status result, const evc_value *value,
	   void *arg)
{
	ck_assert_uint_eq(evc_value_type(value), EVC_VALUE_NIL);
	note_join(cl, result, arg);
}

START_TEST(an_evented_fetch_takes_nothing_away)
{
	evc_status st = 77, joined = 77;
	evc_value v;
	evc_remote *a;

	begin_on_loop(_i, 2, NULL);
	a = SCHEDULE("fail", "[is]", EVC_DATA_LOSS, "a fails");
	v = PACKED("[r]", a);
	OK(evc_fetch_start(on.cl, &v, note_fetch, &st));
	TURN_UNTIL(st != 77);
	IS(st, EVC_DATA_LOSS);
	OK(evc_cluster_join_start(on.cl, note_join, &joined));
	TURN_UNTIL(joined != 77);
	IS(joined, EVC_DATA_LOSS);
	evc_value_free(&v);
	evc_remote_free(a);
}
END_TEST

/* The grace for what does not stop: then its worker is killed, or the function
   given up, and the join does not hang. */
START_TEST(what_does_not_stop_holds_up_no_join)
{
	evc_cluster_config config = { .grace = 0.2 };
	evc_remote *b;
	pid_t pid = 0;

	begin_with(_i, 2, &config);
	b = one_failed_one_insists(0);
	if (can(DIES))
		pid = pid_with(b);
	IS(join(), EVC_DATA_LOSS);
	ck_assert_int_ne(code_of(b), 0);
	if (can(DIES)) {
		/* Proven not to run; it would have to begin again. */
		ck_assert(is_dead(pid));
		IS(code_of(b), EVC_CANCELLED);
	} else {
		/* The one exception: it runs still, and is named. */
		IS(code_of(b), EVC_UNAVAILABLE);
		ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_WORKER);
		HAS(info_of(b).text, "it did not return in 0.2 s");
		UNTIL(worker(0).state == EVC_WORKER_HUNG ||
		      worker(1).state == EVC_WORKER_HUNG);
	}
	evc_remote_free(b);
	/* The other one works. */
	IS(take_number(SCHEDULE("add", "[ii]", 3, 4)), 7);
	let_go("b");
	UNTIL(worker(0).state == EVC_WORKER_UP &&
	      worker(1).state == EVC_WORKER_UP);
	OK(join());
}
END_TEST

static const evc_function functions[] = { COMMON_FUNCTIONS };

CONFORMANCE_MAIN("raising", functions,
		 ROW(done_never_waits_and_says_no_while_something_runs),
		 ROW(join_waits_for_what_runs_and_then_raises),
		 ROW(all_errors_are_kept),
		 ROW(schedule_waits_on_a_thread_and_then_raises),
		 ROW(schedule_on_the_loop_is_told_when_it_may),
		 ROW(an_evented_join_raises_once),
		 ROW(an_evented_fetch_takes_nothing_away),
		 ROW(what_does_not_stop_holds_up_no_join))
