/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops that do not hear the stop: one blocked in a long callback, one whose
 * thread never runs it again, one that was destroyed.  What lives on them is
 * named, and no join takes longer than its grace.
 */
#include "../../../support/runner_util.h"

/* What lives on a loop, and the ways in which it can be made to hang. */
struct place {
	evc_task task; /* first: the task is the place */
	evc_coord *c;
	struct guest blocked; /* the long callback stays here */
	struct guest away;    /* what the thread does instead of its loop */
	struct machine m;
	atomic_int hooks, tasks, loops;
	evc_status begun, ran;
	_Atomic(evc_reactor *) r;
	evc_id hook, looper;
	ev_timer timer;
	bool destroys, runner_only;
};

static void
place_told(evc_task *t, void *arg)
{
	struct place *p = (struct place *)t;

	(void)arg;
	atomic_fetch_add(&p->tasks, 1);
	evc_task_end(t);
}

static const evc_task_class place_task = {
	.name = "conn",
	.on_stop = place_told,
};

static evc_status
place_looper(evc_coord *c, void *arg)
{
	struct place *p = arg;

	(void)c;
	atomic_fetch_add(&p->loops, 1);
	return 0;
}

/* A task, a hook, a looper and a runner. */
static void
furnish(struct place *p, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r };

	p->begun = 0;
	if (!p->runner_only)
		p->begun = evc_task_begin(r, &p->task, &place_task);
	if (p->begun == 0 && !p->runner_only)
		p->begun = evc_on_stop(p->c, "its-hook", count_hook, &p->hooks,
				       &opts, &p->hook);
	if (p->begun == 0 && !p->runner_only)
		p->begun = evc_looper_start(p->c, "its-looper", 0.01,
					    place_looper, p, &opts, &p->looper);
	p->m.ends_at_stop = true;
	atomic_store(&p->m.runs, 1);
	if (p->begun == 0)
		p->begun = evc_runner_add(p->c, "its-runner", &machine_ops,
					  &p->m, &opts, &p->m.id);
}

static void
all_was_told(struct place *p)
{
	ck_assert_int_eq(p->tasks, 1);
	ck_assert_int_eq(p->hooks, 1);
	machine_was_joined(&p->m, 1);
}

/* A join that gives up in time, and says on whom. */
static void
join_gives_up(evc_coord *c, const char *const *names)
{
	evc_join_opts brief = { .grace = 0.2 };
	char text[4096];
	evc_verdict v;
	double took = -t_now();
	int i;

	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	took += t_now();
	ck_assert_double_ge(took, 0.199);
	ck_assert_double_lt(took, T_LIMIT / 2);
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	for (i = 0; names[i] != NULL; i++) {
		HAS(v.error.text, names[i]);
		HAS(text, names[i]);
	}
	ck_assert_uint_ge(v.n_stragglers, (unsigned)i);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
}

static const char *const all_names[] = { "conn", "its-hook", "its-looper",
					 "its-runner", NULL };

/* ---- blocked in a long callback ---- */

static void
block(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct place *p = w->data;

	(void)loop;
	(void)revents;
	stay(NULL, &p->blocked);
}

static evc_status
set_up_blocked(evc_reactor *r, void *arg)
{
	struct place *p = arg;

	furnish(p, r);
	ev_timer_init(&p->timer, block, 0.02, 0);
	p->timer.data = p;
	ev_timer_start(evc_reactor_loop(r), &p->timer);
	return 0;
}

START_TEST(a_loop_blocked_in_a_callback_is_named_and_goes_on_later)
{
	int threads = t_count_threads(), fds = t_count_fds();
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c };
	evc_verdict v;

	OK(evc_reactor_start(c, "blocked-loop", set_up_blocked, &p, NULL,
			     NULL));
	OK(p.begun);
	UNTIL(atomic_load(&p.blocked.in));
	OK(evc_request_stop(c, 0, NULL)); /* does not wait for it */
	join_gives_up(c, all_names);
	ck_assert_int_eq(p.tasks + p.hooks + p.m.stops, 0);
	atomic_store(&p.blocked.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	all_was_told(&p);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(beside_a_blocked_loop_the_others_are_told)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c }, q = { .c = c };
	static const char *const names[] = { "blocked-loop", NULL };
	evc_reactor *r = NULL;

	OK(evc_reactor_start(c, "blocked-loop", set_up_blocked, &p, NULL,
			     NULL));
	UNTIL(atomic_load(&p.blocked.in));
	atomic_store(&q.blocked.open, 1); /* this one's is short */
	OK(evc_reactor_start(c, "good-loop", set_up_blocked, &q, NULL, &r));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&q.tasks) == 1);
	UNTIL(is_gone(c, q.m.id));
	join_gives_up(c, names);
	all_was_told(&q);
	atomic_store(&p.blocked.open, 1);
	OK(evc_join(c, NULL, NULL));
	all_was_told(&p);
	OK(evc_free(c));
}
END_TEST

static evc_status
stay_in_set_up(evc_reactor *r, void *arg)
{
	struct place *p = arg;

	furnish(p, r);
	stay(NULL, &p->blocked);
	return 0;
}

static void *
start_elsewhere(void *arg)
{
	struct place *p = arg;

	p->ran = evc_reactor_start(p->c, "slow-loop", stay_in_set_up, p, NULL,
				   NULL);
	return NULL;
}

START_TEST(a_set_up_that_takes_too_long_is_named)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .ran = 77 };
	static const char *const names[] = { "slow-loop", NULL };
	pthread_t t;

	OK(pthread_create(&t, NULL, start_elsewhere, &p));
	UNTIL(atomic_load(&p.blocked.in));
	OK(evc_request_stop(c, 0, NULL));
	join_gives_up(c, names);
	atomic_store(&p.blocked.open, 1);
	OK(pthread_join(t, NULL));
	OK(p.ran);
	OK(p.begun);
	OK(evc_join(c, NULL, NULL));
	all_was_told(&p);
	OK(evc_free(c));
}
END_TEST

/* ---- never runs again, or is destroyed ---- */

/* A thread that attaches its loop, furnishes it, and does something else. */
static void *
elsewhere_main(void *arg)
{
	struct place *p = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;

	p->begun = evc_reactor_attach(p->c, "lost-loop", loop, &r);
	if (p->begun == 0)
		furnish(p, r);
	if (p->begun == 0)
		ev_run(loop, EVRUN_NOWAIT);
	atomic_store(&p->r, r);
	stay(NULL, &p->away);
	if (p->destroys)
		ev_loop_destroy(loop);
	stay(NULL, &p->blocked);
	if (!p->destroys) {
		p->ran = p->begun == 0 ? evc_reactor_run(r) : p->begun;
		ev_loop_destroy(loop);
	}
	return NULL;
}

START_TEST(a_loop_that_never_runs_again_is_named)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .ran = 77 };
	evc_verdict v;
	pthread_t t;

	OK(pthread_create(&t, NULL, elsewhere_main, &p));
	UNTIL(atomic_load(&p.away.in));
	OK(p.begun);
	OK(evc_request_stop(c, 0, NULL));
	join_gives_up(c, all_names);
	join_gives_up(c, all_names);
	ck_assert_int_eq(p.tasks + p.hooks + p.m.stops, 0);
	/* should it come back, all is in order */
	atomic_store(&p.away.open, 1);
	atomic_store(&p.blocked.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2); /* looper and runner */
	OK(pthread_join(t, NULL));
	OK(p.ran);
	all_was_told(&p);
	OK(evc_free(c));
}
END_TEST

static void
destroy(struct place *p)
{
	atomic_store(&p->away.open, 1);
	UNTIL(atomic_load(&p->blocked.in));
	ck_assert_ptr_null(evc_reactor_loop(atomic_load(&p->r)));
}

/* before: the stop comes only when the loop is gone already. */
static void
destroyed_loop(bool before)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .destroys = true };
	evc_member_opts opts = { 0 };
	evc_verdict v;
	evc_id id = 77;
	pthread_t t;

	OK(pthread_create(&t, NULL, elsewhere_main, &p));
	UNTIL(atomic_load(&p.away.in));
	OK(p.begun);
	if (!before)
		OK(evc_request_stop(c, 0, NULL));
	destroy(&p);
	opts.reactor = atomic_load(&p.r);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_on_stop(c, "h", count_hook, &p.hooks, &opts, &id));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_looper_start(c, "l", 1, place_looper, &p,
				 &(evc_member_opts){ .reactor = opts.reactor,
						     .flags = EVC_AFTER_STOP },
				 &id));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_runner_add(c, "r", &machine_ops, &p.m, &opts, &id));
	ck_assert_uint_eq(id, 77);
	if (before)
		OK(evc_request_stop(c, 0, NULL));
	/* tasks, hooks and loopers have ended with it; the runner is called
	   by whoever joins */
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(p.tasks + p.hooks, 0);
	machine_was_joined(&p.m, 1);
	OK(evc_free(c));
	atomic_store(&p.blocked.open, 1);
	OK(pthread_join(t, NULL));
}

START_TEST(a_loop_that_was_destroyed_holds_up_nobody)
{
	destroyed_loop(true);
	destroyed_loop(false);
}
END_TEST

START_TEST(a_runner_left_behind_by_its_loop_is_still_waited_for)
{
	static const char *const names[] = { "its-runner", NULL };
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .destroys = true };
	evc_verdict v;
	pthread_t t;

	OK(pthread_create(&t, NULL, elsewhere_main, &p));
	UNTIL(atomic_load(&p.away.in));
	OK(p.begun);
	p.m.ends_at_stop = false; /* nothing calls it yet */
	destroy(&p);
	OK(evc_request_stop(c, 0, NULL));
	join_gives_up(c, names);
	atomic_store(&p.m.runs, 0);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	machine_was_joined(&p.m, 1);
	OK(evc_free(c));
	atomic_store(&p.blocked.open, 1);
	OK(pthread_join(t, NULL));
}
END_TEST

/* Nothing else rings there: neither a task that ends nor a stop. */
START_TEST(a_runner_that_is_done_is_joined_when_its_loop_goes)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .destroys = true, .runner_only = true };
	struct joiner j;
	pthread_t t;

	OK(pthread_create(&t, NULL, elsewhere_main, &p));
	UNTIL(atomic_load(&p.away.in));
	OK(p.begun);
	join_begin(&j, c, 0, 0);
	atomic_store(&p.m.done, 1);
	OK(evc_runner_done(c, p.m.id, 0)); /* which its loop does not hear */
	until_asleep(atomic_load(&j.tid));
	ck_assert_int_eq(p.m.joins, 0);
	destroy(&p);
	OK(join_end(&j));
	ck_assert(!evc_should_stop(c));
	machine_was_joined(&p.m, 0);
	OK(evc_free(c));
	atomic_store(&p.blocked.open, 1);
	OK(pthread_join(t, NULL));
}
END_TEST

/* While a join waits: it is told that the loop has gone. */
START_TEST(a_join_that_waits_hears_of_a_destroyed_loop)
{
	evc_coord *c = new_coord(NULL);
	struct place p = { .c = c, .destroys = true };
	struct joiner j;
	pthread_t t;

	OK(pthread_create(&t, NULL, elsewhere_main, &p));
	UNTIL(atomic_load(&p.away.in));
	OK(p.begun);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, INFINITY, 0);
	ck_assert(!atomic_load(&j.returned));
	destroy(&p);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	machine_was_joined(&p.m, 1);
	OK(evc_free(c));
	atomic_store(&p.blocked.open, 1);
	OK(pthread_join(t, NULL));
}
END_TEST

API_MAIN("loops_late", a_loop_blocked_in_a_callback_is_named_and_goes_on_later,
	 beside_a_blocked_loop_the_others_are_told,
	 a_set_up_that_takes_too_long_is_named,
	 a_loop_that_never_runs_again_is_named,
	 a_loop_that_was_destroyed_holds_up_nobody,
	 a_runner_left_behind_by_its_loop_is_still_waited_for,
	 a_runner_that_is_done_is_joined_when_its_loop_goes,
	 a_join_that_waits_hears_of_a_destroyed_loop)
