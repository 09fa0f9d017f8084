/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins and done: what they wait for, what they raise and how often, where they
 * are refused, and what a join that was too long says.
 */
#include "../support/hand_engine.h"

static void
raised_is(evc_cluster *cl, unsigned index, int code, const char *text)
{
	evc_reason r;

	OK(evc_cluster_error_get(cl, index, &r));
	ck_assert_int_eq(r.code, code);
	HAS(r.text, text);
}

/* ---- on a thread ---- */

START_TEST(with_nothing_to_wait_for)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_reason reason;
	bool done = false;

	OK(evc_cluster_join(cl, 0));
	OK(evc_cluster_join(cl, -1));
	OK(evc_cluster_join(cl, INFINITY));
	OK(evc_cluster_done(cl, &done));
	ck_assert(done);
	REFUSED(EVC_NOT_FOUND, evc_cluster_error_get(cl, 0, &reason));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_join(cl, NAN));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_join(NULL, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_done(cl, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_done(NULL, &done));
	REFUSED(EVC_NOT_FOUND, evc_cluster_error_get(cl, 0, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_error_get(NULL, 0, &reason));
	REFUSED(EVC_INVALID_ARGUMENT, evc_cluster_join_start(cl, NULL, NULL));
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

struct joining {
	pthread_t thread;
	evc_cluster *cl;
	evc_status st;
	atomic_int tid, over;
};

static void *
joining_main(void *arg)
{
	struct joining *j = arg;

	atomic_store(&j->tid, own_tid());
	j->st = evc_cluster_join(j->cl, INFINITY);
	atomic_store(&j->over, 1);
	return NULL;
}

static void
joining_begin(struct joining *j, evc_cluster *cl)
{
	memset(j, 0, sizeof(*j));
	j->cl = cl;
	OK(pthread_create(&j->thread, NULL, joining_main, j));
	UNTIL(atomic_load(&j->tid) != 0);
	until_asleep(atomic_load(&j->tid));
}

static evc_status
joining_end(struct joining *j)
{
	OK(pthread_join(j->thread, NULL));
	return j->st;
}

START_TEST(it_waits_for_all_that_runs)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	struct joining j[3];
	bool done = true;
	int i;

	for (i = 0; i < 5; i++)
		evc_remote_free(schedule(cl, "hold"));
	for (i = 0; i < 3; i++)
		joining_begin(&j[i], cl);
	OK(evc_cluster_done(cl, &done));
	ck_assert(!done);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(j[i].over, 0);
	atomic_store(&f_open, 1);
	for (i = 0; i < 3; i++)
		OK(joining_end(&j[i]));
	ck_assert_int_eq(f_in, 5);
	OK(evc_cluster_done(cl, &done));
	ck_assert(done);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* One error, three joins that wait: one of them raises it. */
START_TEST(an_error_is_raised_once)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r = schedule(cl, "deaf");
	struct joining j[3];
	bool done = true;
	int i, n_raised = 0;

	UNTIL(atomic_load(&f_in) == 1);
	for (i = 0; i < 3; i++)
		joining_begin(&j[i], cl);
	evc_remote_free(schedule(cl, "fail"));
	/* not before what runs is over */
	t_sleep(0.02);
	OK(evc_cluster_done(cl, &done));
	ck_assert(!done);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(j[i].over, 0);
	atomic_store(&f_open, 1);
	for (i = 0; i < 3; i++) {
		evc_status st = joining_end(&j[i]);

		ck_assert(st == 0 || st == EVC_DATA_LOSS);
		n_raised += st != 0;
	}
	ck_assert_int_eq(n_raised, 1);
	raised_is(cl, 0, EVC_DATA_LOSS, "asked to fail");
	OK(evc_cluster_join(cl, 0));
	/* it is as new */
	evc_remote_free(schedule(cl, "add"));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_INVALID_ARGUMENT);
	HAS(evc_last_error(), "two numbers are needed");
	raised_is(cl, 0, EVC_INVALID_ARGUMENT, "two numbers");
	evc_remote_free(r);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(done_raises_too)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://2");
	bool done = true;
	evc_status st;

	evc_remote_free(schedule(cl, "fail"));
	UNTIL((st = evc_cluster_done(cl, &done)) != 0);
	ck_assert_int_eq(st, EVC_DATA_LOSS);
	OK(evc_cluster_done(cl, &done));
	ck_assert(done);
	OK(evc_cluster_join(cl, 0));
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(too_long_it_says_what_runs_where)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	int i;

	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	for (i = 0; i < 17; i++)
		evc_remote_free(schedule_add(cl, i, i));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_cluster_join(cl, 0));
	HAS(evc_last_error(), "hold on worker 0 (tid ");
	HAS(evc_last_error(), " s; ");
	HAS(evc_last_error(), "17 queued");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_cluster_join(cl, 0.01));
	atomic_store(&f_open, 1);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(the_stop_has_cancelled_something)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct joining j;
	bool done;

	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	evc_remote_free(schedule_add(cl, 1, 1));
	joining_begin(&j, cl);
	OK(evc_request_stop(c, 0, "all"));
	ck_assert_int_eq(joining_end(&j), -EVC_CANCELLED);
	/* that is said once */
	OK(evc_cluster_done(cl, &done));
	ck_assert(done);
	OK(evc_cluster_join(cl, INFINITY));
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

/* ---- where it is refused ---- */

static evc_status
join_inside(evc_exec *x, void *arg)
{
	evc_status st = evc_cluster_join(arg, 1);

	return evc_exec_return(x, "i", st);
}

/* ---- names that no worker has ---- */

static void
ended_as(evc_remote *r, int code, unsigned kind, const char *text)
{
	evc_remote_info i;

	OK(evc_remote_get(r, &i));
	ck_assert_uint_eq(i.state, EVC_REMOTE_DONE);
	ck_assert_int_eq(i.code, code);
	ck_assert_uint_eq(i.kind, kind);
	HAS(i.text, text);
	evc_remote_free(r);
}

/* Each ends so, wherever it waits; the first is raised, and what else is queued
   is cancelled. */
START_TEST(names_scheduled_before_they_are_known)
{
	const char *none = "no worker has a function of this name";
	const evc_engine_ops *engine[1];
	evc_schedule_opts own = { .worker = "worker 0", .priority = 3 };
	evc_engine_ops ops = hand_ops;
	evc_coord *c = new_coord(NULL);
	evc_remote *f[2], *x[3], *after;
	evc_cluster *cl;

	ops.open = hand_open_silent;
	engine[0] = &ops;
	cl = open_with(c, "hand://1",
		       &(evc_cluster_config){ .engines = engine,
					      .n_engines = 1 });
	f[0] = schedule(cl, "f");
	x[0] = schedule(cl, "x");
	OK(evc_schedule(cl, "y", NULL, NULL, &own, &x[1]));
	OK(evc_schedule_pack(cl, "z", NULL, &x[2], "[r]", f[0]));
	OK(evc_schedule_pack(cl, "g", NULL, &after, "[r]", x[0]));
	f[1] = schedule(cl, "f");
	hand_names();
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_INVALID_ARGUMENT);
	raised_is(cl, 0, EVC_INVALID_ARGUMENT, none);
	OK(evc_cluster_join(cl, T_LIMIT));
	ended_as(x[0], EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION, none);
	ended_as(x[1], EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION, none);
	ended_as(x[2], EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION, none);
	ended_as(after, EVC_INVALID_ARGUMENT, EVC_FAILED_REMOTE, none);
	ended_as(f[0], EVC_CANCELLED, EVC_FAILED_CANCEL, "reschedule");
	ended_as(f[1], EVC_CANCELLED, EVC_FAILED_CANCEL, "reschedule");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(cl, "x", NULL, NULL, NULL, NULL));
	evc_remote_free(schedule(cl, "f"));
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

START_TEST(not_in_a_function_of_its_own)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	evc_cluster *other = open_threads(c, "threads://1");
	evc_remote *r;
	evc_value v;

	OK(evc_schedule_call(cl, join_inside, cl, NULL, NULL, NULL, &r));
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	IS_VALUE(&v, "-9");
	evc_remote_free(r);
	/* another cluster's is fine */
	OK(evc_schedule_call(cl, join_inside, other, NULL, NULL, NULL, &r));
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	IS_VALUE(&v, "0");
	evc_remote_free(r);
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_cluster_close(other);
	evc_cluster_close(cl);
	end_coord(c);
}
END_TEST

START_TEST(not_on_the_thread_of_its_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct joining j;
	bool done;

	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_join(cl, 0));
	HAS(evc_last_error(), "evc_cluster_join_start");
	OK(evc_cluster_done(cl, &done));
	ev_run(loop, EVRUN_NOWAIT);
	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_join(cl, 0));
	/* another thread may, and the loop need not turn for it */
	evc_remote_free(schedule(cl, "hold"));
	joining_begin(&j, cl);
	atomic_store(&f_open, 1);
	OK(joining_end(&j));
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- on the loop ---- */

struct answers {
	evc_status st[8];
	int n, tid, again;
	evc_cluster *cl;
	bool closes;
};

static void
on_answer(evc_cluster *cl, evc_status st, void *arg)
{
	struct answers *a = arg;

	ck_assert_ptr_eq(cl, a->cl);
	a->st[a->n++] = st;
	a->tid = own_tid();
	if (a->again-- > 0)
		OK(evc_cluster_join_start(cl, on_answer, a));
	if (a->closes)
		evc_cluster_close(cl);
}

static void
start_last(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct answers *a = t->data;

	(void)loop;
	(void)revents;
	OK(evc_cluster_join_start(a->cl, on_answer, a));
}

/* No other watcher keeps the loop running. */
START_TEST(a_plain_run_waits_for_the_answer)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct answers a = { .cl = cl };
	ev_timer t;

	ev_timer_init(&t, start_last, 0.01, 0);
	t.data = &a;
	ev_timer_start(loop, &t);
	ev_run(loop, 0);
	ck_assert_int_eq(a.n, 1);
	OK(a.st[0]);
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(on_the_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://2");
	struct answers a = { .cl = cl };

	OK(evc_cluster_join_start(cl, on_answer, &a));
	/* never inside the call */
	ck_assert_int_eq(a.n, 0);
	ev_run(loop, 0);
	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(a.tid, own_tid());
	OK(a.st[0]);
	/* it waits, and the error goes to the first */
	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_cluster_join_start(cl, on_answer, &a));
	OK(evc_cluster_join_start(cl, on_answer, &a));
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(a.n, 1);
	evc_remote_free(schedule(cl, "fail"));
	ev_run(loop, 0);
	ck_assert_int_eq(a.n, 3);
	ck_assert_int_eq(a.st[1], EVC_DATA_LOSS);
	OK(a.st[2]);
	/* one that begins the next */
	a.again = 3;
	OK(evc_cluster_join_start(cl, on_answer, &a));
	ev_run(loop, 0);
	ck_assert_int_eq(a.n, 7);
	evc_cluster_close(cl);
	end_coord(c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(answered_by_the_stop_and_closed_in_the_answer)
{
	struct census n = census_begin();
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct answers a = { .cl = cl, .closes = true };

	evc_remote_free(schedule(cl, "hold"));
	UNTIL(atomic_load(&f_in) == 1);
	OK(evc_cluster_join_start(cl, on_answer, &a));
	OK(evc_request_stop(c, 0, "all"));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(a.st[0], -EVC_CANCELLED);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	census_end(&n);
}
END_TEST

START_TEST(when_the_loop_is_gone)
{
	struct census n = census_begin();
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = open_threads(c, "threads://1");
	struct answers a = { .cl = cl };
	evc_value v = { NULL, 0 };

	OK(evc_request_stop(c, 0, "all"));
	OK(evc_join(c, NULL, &(evc_verdict){ 0 }));
	/* its own loop has ended with it */
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_cluster_join_start(cl, on_answer, &a));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_fetch_start(cl, &v, (evc_fetch_fn *)abort, NULL));
	OK(evc_cluster_join(cl, 0));
	evc_cluster_close(cl);
	OK(evc_free(c));
	ck_assert_int_eq(a.n, 0);
	census_end(&n);
}
END_TEST

API_MAIN("join", with_nothing_to_wait_for, it_waits_for_all_that_runs,
	 an_error_is_raised_once, done_raises_too,
	 too_long_it_says_what_runs_where, the_stop_has_cancelled_something,
	 names_scheduled_before_they_are_known,
	 not_in_a_function_of_its_own, not_on_the_thread_of_its_loop,
	 a_plain_run_waits_for_the_answer, on_the_loop, answered_by_the_stop_and_closed_in_the_answer,
	 when_the_loop_is_gone)
