/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for one member: a started thread, a runner or a child process, long
 * ended or still running, and the places where such a wait is refused.
 */
#include "../../support/child_util.h"

static evc_status
returns_arg(evc_coord *c, void *arg)
{
	(void)c;
	return *(int *)arg;
}

static evc_status
leaves(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	pthread_exit(NULL);
}

/* A thread that waits for a member. */
struct sleeper {
	evc_coord *c;
	evc_id id;
	double timeout;
	atomic_int tid, done;
	evc_status st, result;
	pthread_t thread;
};

static evc_status
wait_now(evc_coord *c, void *arg)
{
	struct sleeper *w = arg;

	w->result = -1;
	atomic_store(&w->tid, own_tid());
	w->st = evc_member_wait(c, w->id, w->timeout, &w->result);
	atomic_store(&w->done, 1);
	return 0;
}

static void *
sleeper_main(void *arg)
{
	wait_now(((struct sleeper *)arg)->c, arg);
	return NULL;
}

static void
sleeper_begin(struct sleeper *w, evc_coord *c, evc_id id, double timeout)
{
	memset(w, 0, sizeof(*w));
	w->c = c;
	w->id = id;
	w->timeout = timeout;
	OK(pthread_create(&w->thread, NULL, sleeper_main, w));
	UNTIL(atomic_load(&w->tid));
	until_asleep(w->tid);
	ck_assert(!atomic_load(&w->done));
}

/* Stop and join c, which has members that obey, and free it. */
static void
end_coord(evc_coord *c)
{
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(a_wait_gives_the_result_of_a_thread_that_still_runs)
{
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);
	struct sleeper w;
	evc_id id, other;

	OK(evc_thread_start(c, "other", obey, NULL, NULL, &other));
	OK(evc_thread_start(c, "one", stay, &g, NULL, &id));
	sleeper_begin(&w, c, id, INFINITY);
	atomic_store(&g.open, 1);
	OK(pthread_join(w.thread, NULL));
	OK(w.st);
	ck_assert_int_eq(w.result, 0);
	/* The rest goes on, and the end was noticed without a join. */
	ck_assert(!evc_should_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, id, NULL));
	OK(evc_member_get(c, other, NULL));
	end_coord(c);
}
END_TEST

START_TEST(the_result_of_a_member_that_ended_long_ago_is_kept_for_one_wait)
{
	int codes[] = { 0, EVC_OUT_OF_RANGE, -EVC_NOT_FOUND, 77, 300 };
	const evc_config cfg = { .clean = (const evc_status[]){
					 EVC_OUT_OF_RANGE, EVC_NOT_FOUND, 77,
					 EVC_UNKNOWN },
				 .n_clean = 4 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_status result;
	evc_id id[5];
	unsigned i;

	for (i = 0; i < 5; i++)
		OK(evc_thread_start(c, "one", returns_arg, &codes[i], NULL,
				    &id[i]));
	OK(evc_join(c, NULL, NULL));
	for (i = 5; i-- > 0;) {
		OK(evc_member_wait(c, id[i], 0, &result));
		ck_assert_int_eq(result, i == 2 ? EVC_NOT_FOUND :
					 i == 4 ? EVC_UNKNOWN : codes[i]);
		REFUSED(EVC_NOT_FOUND, evc_member_wait(c, id[i], 0, &result));
		HAS(evc_last_error(), "no result any more");
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(a_thread_that_ends_without_a_result_is_aborted)
{
	evc_coord *c = new_coord(NULL);
	evc_status result;
	evc_id id;

	OK(evc_thread_start(c, "leaves", leaves, NULL, NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_member_wait(c, id, INFINITY, &result));
	ck_assert_int_eq(result, EVC_ABORTED);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static evc_status
raw_exit(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	syscall(SYS_exit, 0);
	return 0;
}

START_TEST(a_wait_notices_a_raw_exit)
{
	evc_status result;
	evc_coord *c;
	evc_id id;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "raw", raw_exit, NULL, NULL, &id));
	OK(evc_member_wait(c, id, INFINITY, &result));
	ck_assert_int_eq(result, EVC_ABORTED);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_first_wait_gets_the_result_and_the_second_is_refused)
{
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);
	struct sleeper first, second, third;
	evc_id id;

	OK(evc_thread_start(c, "one", stay, &g, NULL, &id));
	sleeper_begin(&first, c, id, 0.2);
	sleeper_begin(&second, c, id, INFINITY);
	sleeper_begin(&third, c, id, INFINITY);
	/* The first gives up, so one of the others is the first now. */
	OK(pthread_join(first.thread, NULL));
	ck_assert_int_eq(first.st, -EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(first.result, -1);
	atomic_store(&g.open, 1);
	OK(pthread_join(second.thread, NULL));
	OK(pthread_join(third.thread, NULL));
	ck_assert_int_eq(second.st + third.st, -EVC_NOT_FOUND);
	ck_assert_int_eq(second.result + third.result, -1);
	REFUSED(EVC_NOT_FOUND, evc_member_wait(c, id, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_clear_drops_the_results)
{
	int zero = 0;
	evc_coord *c = new_coord(NULL);
	evc_id id;

	OK(evc_thread_start(c, "one", returns_arg, &zero, NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_member_wait(c, id, INFINITY, NULL));
	OK(evc_free(c));
}
END_TEST

#define MANY 10000

START_TEST(ten_thousand_members_are_waited_for)
{
	int code = EVC_OUT_OF_RANGE, i;
	evc_coord *c = new_coord(NULL);
	static evc_id id[MANY];
	evc_status result;

	for (i = 0; i < MANY; i++) {
		while (evc_thread_start(c, "one", returns_arg, &code,
					&(evc_member_opts){ .stack = T_SMALL_STACK },
					&id[i]) < 0)
			t_sleep(0.001);
		/* Each hundredth is waited for at once, the rest later. */
		if (i % 100 == 0)
			OK(evc_member_wait(c, id[i], INFINITY, NULL));
	}
	OK(evc_join(c, NULL, NULL));
	for (i = MANY; i-- > 0;)
		if (i % 100 != 0) {
			OK(evc_member_wait(c, id[i], INFINITY, &result));
			ck_assert_int_eq(result, EVC_OUT_OF_RANGE);
		}
	OK(evc_free(c));
}
END_TEST

#define MOST 16384

START_TEST(so_many_results_are_kept_and_no_more)
{
	const evc_runner_ops ops = { .is_running = machine_runs };
	evc_coord *c = new_coord(NULL);
	static evc_id id[MOST + 1];
	struct machine m = { 0 };
	int i;

	atomic_store(&m.runs, 1);
	for (i = 0; i <= MOST; i++) {
		OK(evc_runner_add(c, "one", &ops, &m, NULL, &id[i]));
		OK(evc_runner_done(c, id[i], 0));
	}
	REFUSED(EVC_NOT_FOUND, evc_member_wait(c, id[0], 0, NULL));
	for (i = 1; i <= MOST; i++)
		OK(evc_member_wait(c, id[i], 0, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_wait_ends_after_its_timeout)
{
	evc_coord *c = new_coord(NULL);
	double start = t_now();
	evc_status result = -1;
	evc_id id;

	OK(evc_thread_start(c, "one", obey, NULL, NULL, &id));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_member_wait(c, id, 0.05, &result));
	ck_assert(t_now() >= start + 0.05);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_member_wait(c, id, 0, &result));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_member_wait(c, id, -1, &result));
	ck_assert_int_eq(result, -1);
	end_coord(c);
}
END_TEST

START_TEST(a_wait_ends_with_the_budget_of_the_stop)
{
	const evc_config cfg = { .grace = 0.3 };
	struct guest g = { 0 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct sleeper w;
	evc_id id;

	OK(evc_thread_start(c, "stuck", stay, &g, NULL, &id));
	sleeper_begin(&w, c, id, INFINITY);
	OK(evc_request_stop(c, 0, NULL));
	OK(pthread_join(w.thread, NULL));
	ck_assert_int_eq(w.st, -EVC_DEADLINE_EXCEEDED);
	/* A wait that begins then is over at once, but an end is told. */
	REFUSED(EVC_DEADLINE_EXCEEDED,
		evc_member_wait(c, id, INFINITY, NULL));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_member_wait(c, id, INFINITY, NULL));
	OK(evc_free(c));
}
END_TEST

/* Phase 1 holds the waiter, phase 2 the thread that it waits for. */
struct other {
	struct sleeper w;
	evc_coord *c;
};

static evc_status
wait_in_other(evc_coord *c, void *arg)
{
	struct other *o = arg;

	(void)c;
	return wait_now(o->c, &o->w);
}

START_TEST(a_phase_goes_on_while_its_member_waits_for_a_later_one)
{
	const evc_scope_opts first = { .phase = 1 }, second = { .phase = 2 };
	const evc_join_opts opts = { .grace = INFINITY,
				     .flags = EVC_JOIN_STOP_FIRST };
	evc_coord *c = new_coord(NULL), *one, *two;
	struct other o = { .w.timeout = INFINITY };

	OK(evc_scope_new(c, "one", &first, &one));
	OK(evc_scope_new(c, "two", &second, &two));
	OK(evc_scope_ready(one));
	OK(evc_scope_ready(two));
	OK(evc_thread_start(two, "obeys", obey, NULL, NULL, &o.w.id));
	o.c = two;
	OK(evc_thread_start(one, "waits", wait_in_other, &o, NULL, NULL));
	UNTIL(atomic_load(&o.w.tid));
	until_asleep(o.w.tid);
	/* A stop before the join would be told to both phases at once. */
	OK(evc_join(c, &opts, NULL));
	OK(o.w.st);
	FREE_ALL(two, one, c);
}
END_TEST

START_TEST(a_wait_drives_a_runner_and_gives_its_result)
{
	struct setting s;
	struct machine m;
	struct sleeper w;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		m.result = EVC_OUT_OF_RANGE;
		atomic_store(&m.runs, 1);
		machine_add(s.c, "machine", &m, s.far, 0);
		memset(&w, 0, sizeof(w));
		w.c = s.c;
		w.id = m.id;
		w.timeout = INFINITY;
		OK(pthread_create(&w.thread, NULL, sleeper_main, &w));
		TURN_UNTIL(&s, atomic_load(&m.asked) > 2);
		ck_assert(!atomic_load(&w.done));
		atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, atomic_load(&w.done));
		OK(pthread_join(w.thread, NULL));
		OK(w.st);
		ck_assert_int_eq(w.result, EVC_OUT_OF_RANGE);
		machine_was_joined(&m, 0);
		end_setting(&s);
	}
}
END_TEST

START_TEST(the_result_of_evc_runner_done_is_the_one_that_is_given)
{
	evc_coord *c = new_coord(NULL);
	struct machine m = { 0 };
	evc_status result;

	atomic_store(&m.runs, 1);
	atomic_store(&m.done, 1);
	machine_add(c, "machine", &m, NULL, 0);
	OK(evc_runner_done(c, m.id, EVC_OUT_OF_RANGE));
	OK(evc_member_wait(c, m.id, INFINITY, &result));
	ck_assert_int_eq(result, EVC_OUT_OF_RANGE);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_removed_runner_has_no_result)
{
	evc_coord *c = new_coord(NULL);
	struct machine m = { 0 };
	struct sleeper w;

	atomic_store(&m.runs, 1);
	machine_add(c, "machine", &m, NULL, 0);
	memset(&w, 0, sizeof(w));
	w.c = c;
	w.id = m.id;
	w.timeout = INFINITY;
	OK(pthread_create(&w.thread, NULL, sleeper_main, &w));
	UNTIL(atomic_load(&m.asked) > 2);
	OK(evc_member_remove(c, m.id));
	OK(pthread_join(w.thread, NULL));
	ck_assert_int_eq(w.st, -EVC_NOT_FOUND);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_wait_gives_the_end_of_a_child_process)
{
	const evc_member_opts may_fail = { .flags = EVC_MAY_FAIL };
	evc_coord *c = new_coord(NULL);
	evc_status result;
	evc_id id;
	int i;

	for (i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(i);
		ck_assert_int_gt(pid, 0);
		OK(evc_child_add(c, NULL, pid, &may_fail, &id));
		OK(evc_member_wait(c, id, INFINITY, &result));
		ck_assert_int_eq(result, i == 0 ? 0 : EVC_ABORTED);
	}
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- refusals ---- */

static evc_status
looper_runs(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

START_TEST(wrong_members_are_refused)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	struct guest g = { 0 };
	evc_id id[5];
	pthread_t t;
	int i;

	OK(evc_hold_begin(c, "hold", NULL, &id[0]));
	OK(evc_on_stop(c, "hook", looper_runs, NULL, NULL, &id[1]));
	OK(evc_looper_start(c, "on-loop", 1, looper_runs, NULL, NULL, &id[2]));
	OK(evc_looper_start(c, "on-thread", 1, looper_runs, NULL, &own, &id[3]));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "registered", t, NULL, &id[4]));
	for (i = 0; i < 5; i++) {
		REFUSED(EVC_FAILED_PRECONDITION,
			evc_member_wait(c, id[i], INFINITY, NULL));
		HAS(evc_last_error(), "no started thread");
	}
	REFUSED(EVC_NOT_FOUND, evc_member_wait(c, 0, INFINITY, NULL));
	REFUSED(EVC_NOT_FOUND, evc_member_wait(c, 12345, INFINITY, NULL));
	HAS(evc_last_error(), "12345");
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_wait(c, id[0], NAN, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_wait(NULL, 1, 0, NULL));
	atomic_store(&g.open, 1);
	OK(evc_hold_end(c, id[0]));
	end_coord(c);
	ev_loop_destroy(loop);
}
END_TEST

static evc_status
wait_for_self(evc_coord *c, void *arg)
{
	evc_id *id = arg;

	return evc_member_wait(c, *id, INFINITY, NULL) ==
				       -EVC_FAILED_PRECONDITION ?
		       0 :
		       EVC_INTERNAL;
}

struct on_loop {
	evc_coord *c;
	evc_id thread, runner;
	evc_status in_callback, at_once;
};

static evc_status
wait_on_loop(evc_coord *c, void *arg)
{
	struct on_loop *o = arg;

	o->in_callback = evc_member_wait(c, o->thread, 1, NULL);
	o->at_once = evc_member_wait(c, o->thread, 0, NULL);
	return EVC_OUT_OF_RANGE;
}

static bool
waits_inside(void *arg)
{
	struct on_loop *o = arg;

	o->in_callback = evc_member_wait(o->c, o->runner, 0, NULL);
	return false;
}

START_TEST(a_wait_that_could_not_end_is_refused)
{
	const evc_runner_ops inside = { .is_running = waits_inside };
	const evc_config no_home = { .flags = EVC_NO_HOME };
	const evc_scope_opts opts = { .config = no_home };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop), *s;
	struct machine m = { 0 };
	struct on_loop o = { .c = c };
	static evc_id self;
	evc_status result;

	/* its own thread */
	OK(evc_thread_start(c, "self", wait_for_self, &self, NULL, &self));
	OK(evc_member_wait(c, self, INFINITY, &result));
	ck_assert_int_eq(result, 0);
	/* the thread of the loop that drives the runner */
	atomic_store(&m.runs, 1);
	machine_add(c, "machine", &m, NULL, 0);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_member_wait(c, m.id, 1, NULL));
	HAS(evc_last_error(), "machine needs the loop");
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_member_wait(c, m.id, 0, NULL));
	OK(evc_member_remove(c, m.id));
	/* a callback on a loop */
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, &o.thread));
	OK(evc_looper_start(c, "looper", 0.001, wait_on_loop, &o, NULL, NULL));
	while (o.at_once == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(o.in_callback, -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(o.at_once, -EVC_DEADLINE_EXCEEDED);
	/* a function of the runner */
	OK(evc_scope_new(c, "scope", &opts, &s));
	o.c = s;
	OK(evc_runner_add(s, "inside", &inside, &o, NULL, &o.runner));
	OK(evc_member_wait(s, o.runner, INFINITY, NULL));
	ck_assert_int_eq(o.in_callback, -EVC_FAILED_PRECONDITION);
	/* the helper thread */
	o.in_callback = o.at_once = 0;
	OK(evc_thread_start(s, "obeys", obey, NULL, NULL, &o.thread));
	OK(evc_on_stop(s, "hook", wait_on_loop, &o, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_scope_ready(s));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(o.in_callback, -EVC_FAILED_PRECONDITION);
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("member_wait", a_wait_gives_the_result_of_a_thread_that_still_runs,
	 the_result_of_a_member_that_ended_long_ago_is_kept_for_one_wait,
	 a_thread_that_ends_without_a_result_is_aborted,
	 a_wait_notices_a_raw_exit,
	 the_first_wait_gets_the_result_and_the_second_is_refused,
	 a_clear_drops_the_results, ten_thousand_members_are_waited_for,
	 so_many_results_are_kept_and_no_more, a_wait_ends_after_its_timeout,
	 a_wait_ends_with_the_budget_of_the_stop,
	 a_phase_goes_on_while_its_member_waits_for_a_later_one,
	 a_wait_drives_a_runner_and_gives_its_result,
	 the_result_of_evc_runner_done_is_the_one_that_is_given,
	 a_removed_runner_has_no_result,
	 a_wait_gives_the_end_of_a_child_process, wrong_members_are_refused,
	 a_wait_that_could_not_end_is_refused)
