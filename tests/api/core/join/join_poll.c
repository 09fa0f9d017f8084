/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join in steps as the program of another main loop makes it: in poll(), with
 * the descriptor and without, for every kind of member, and beside joins of
 * other kinds.
 */
#include "../../../support/child_util.h"

#define N_WAYS 2 /* without evc_join_fd, and with it */

/*
 * The loop of such a program.  More turns than any join needs are a loop that
 * does not sleep; a sleep that nothing ends is a hang.
 */
#define MOST_TURNS 20000

static evc_status
poll_join(evc_coord *c, const evc_join_opts *opts, bool with_fd, evc_verdict *v)
{
	double until = t_now() + T_LIMIT, wait, left;
	struct pollfd p = { .fd = -1, .events = POLLIN };
	evc_status st;
	int turns = 0;

	if (with_fd) {
		p.fd = evc_join_fd(c);
		ck_assert_int_ge(p.fd, 0);
	}
	for (;;) {
		wait = NAN;
		st = evc_join_step(c, opts, &wait, v);
		if (st != EVC_PENDING)
			return st;
		ck_assert_double_ge(wait, 0);
		if (!with_fd)
			ck_assert_double_le(wait, 0.025);
		left = until - t_now();
		ck_assert_msg(left > 0, "the join hangs");
		ck_assert_int_lt(turns++, MOST_TURNS);
		if (wait < left)
			left = wait;
		poll(&p, 1, (int)ceil(left * 1e3));
	}
}

static void *
stop_soon(void *arg)
{
	t_sleep(0.02);
	evc_request_stop(arg, 0, "soon");
	return NULL;
}

START_TEST(threads_holds_and_registered_threads)
{
	int way, threads = t_count_threads(), fds = t_count_fds();
	struct waiter w;
	evc_coord *c;
	evc_verdict v;
	pthread_t stopper;
	int i;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		for (i = 0; i < 3; i++)
			OK(evc_thread_start(c, "obeys", obey, NULL, NULL,
					    NULL));
		waiter_begin(&w, c, INFINITY);
		OK(evc_register_thread(c, "registered", w.thread, NULL, NULL));
		OK(pthread_create(&stopper, NULL, stop_soon, c));
		OK(poll_join(c, NULL, way, &v));
		ck_assert_uint_eq(v.n_ended, 4);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_str_eq(v.stop.text, "soon");
		OK(pthread_join(stopper, NULL));
		OK(evc_free(c));
	}
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

static void *
end_later(void *arg)
{
	struct guest *g = arg;

	t_sleep(0.02);
	atomic_store(&g->open, 1);
	return NULL;
}

/* Nobody asks for a stop: the end of the last one is heard. */
START_TEST(without_a_stop_the_last_end_is_heard)
{
	struct guest g;
	evc_coord *c;
	evc_verdict v;
	pthread_t t[2], opener;
	evc_join_opts opts = { .threads = t, .n_threads = 2 };
	int way, i;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		memset(&g, 0, sizeof(g));
		for (i = 0; i < 2; i++) /* a list, taken by the first step */
			OK(pthread_create(&t[i], NULL, stay_thread, &g));
		OK(pthread_create(&opener, NULL, end_later, &g));
		OK(poll_join(c, &opts, way, &v));
		ck_assert_uint_eq(v.n_ended, 2);
		ck_assert(!evc_should_stop(c));
		OK(pthread_join(opener, NULL));
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(runners_are_asked_told_and_joined_by_the_steps)
{
	struct machine m, blocks;
	struct guest g;
	evc_coord *c;
	evc_verdict v;
	pthread_t opener;
	int way;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		memset(&m, 0, sizeof(m));
		memset(&blocks, 0, sizeof(blocks));
		memset(&g, 0, sizeof(g));
		m.ends_at_stop = blocks.ends_at_stop = true;
		blocks.inside = &g; /* which must not block a step */
		atomic_store(&m.runs, 1);
		atomic_store(&blocks.runs, 1);
		machine_add(c, "machine", &m, NULL, 0);
		machine_add(c, "blocks", &blocks, NULL, 0);
		OK(evc_request_stop(c, 0, NULL));
		OK(pthread_create(&opener, NULL, end_later, &g));
		OK(poll_join(c, NULL, way, &v));
		ck_assert_uint_eq(v.n_ended, 2);
		ck_assert_int_eq(m.asked_tid, own_tid());
		ck_assert_int_eq(m.stop_tid, own_tid());
		ck_assert_int_ne(m.join_tid, own_tid());
		machine_was_joined(&m, 1);
		machine_was_joined(&blocks, 1);
		OK(pthread_join(opener, NULL));
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(children_get_their_signals_from_the_steps)
{
	evc_join_opts opts = { .grace = 0.2 };
	struct setting s;
	struct kid good, deaf, fails;
	evc_verdict v;
	int way;

	for (way = 0; way < N_WAYS; way++) {
		begin_setting(&s, BY_JOINER, NULL);
		good = kid_born(TERM_DEFAULT, 0, 0);
		deaf = kid_born(TERM_IGNORED, 0, 0);
		fails = kid_born(TERM_DEFAULT, 3, 0);
		kid_add(&s, "good", &good, 0, 0);
		kid_add(&s, "deaf", &deaf, 0, 0);
		kid_add(&s, "fails", &fails, 0, 0);
		kid_let_go(&fails); /* which is the stop */
		ck_assert_int_eq(poll_join(s.c, &opts, way, &v), EVC_ABORTED);
		ck_assert_str_eq(v.error.who, "fails");
		ck_assert_str_eq(v.stop.who, "fails");
		UNTIL(kid_has_ended(&deaf));
		ck_assert_int_eq(poll_join(s.c, &opts, way, &v), EVC_ABORTED);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_uint_eq(v.n_errors, 2);
		kid_was_reaped(&good);
		kid_was_reaped(&deaf);
		kid_was_reaped(&fails);
		end_setting(&s);
	}
}
END_TEST

static evc_status
begin_task(evc_reactor *r, void *arg)
{
	static const evc_task_class cls = {
		.name = "conn",
		.on_stop = end_told_task,
	};

	return evc_task_begin(r, arg, &cls);
}

START_TEST(loops_of_other_threads_and_hooks_on_the_helper)
{
	atomic_int hooks;
	evc_task task;
	evc_coord *c;
	evc_verdict v;
	pthread_t t;
	int way;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		atomic_store(&hooks, 0);
		memset(&task, 0, sizeof(task));
		OK(evc_reactor_start(c, "loop", begin_task, &task, NULL, NULL));
		OK(evc_on_stop(c, "hook", count_hook, &hooks, NULL, NULL));
		OK(pthread_create(&t, NULL, stop_soon, c));
		OK(poll_join(c, NULL, way, &v));
		ck_assert_uint_eq(v.n_ended, 1);
		ck_assert_int_eq(hooks, 1);
		OK(pthread_join(t, NULL));
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(who_is_late_is_named_after_the_grace)
{
	evc_join_opts opts = { .grace = 0.2 };
	evc_coord *c;
	evc_verdict v;
	evc_id hold;
	double took;
	int way;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		hold = 0;
		OK(evc_hold_begin(c, "late-one", NULL, &hold));
		OK(evc_request_stop(c, 0, NULL));
		took = -t_now();
		ck_assert_int_eq(poll_join(c, &opts, way, &v),
				 EVC_DEADLINE_EXCEEDED);
		took += t_now();
		ck_assert_double_lt(took, T_LIMIT / 2);
		ck_assert_double_ge(v.took, 0.2);
		ck_assert_uint_eq(v.n_stragglers, 1);
		HAS(v.error.text, "late-one");
		OK(evc_hold_end(c, hold));
		OK(poll_join(c, NULL, way, &v));
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(a_signal_makes_the_descriptor_readable)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_signals_start(c, NULL));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	ck_assert_int_eq(evc_join_step(c, NULL, NULL, NULL), EVC_PENDING);
	OK(kill(getpid(), SIGTERM));
	OK(poll_join(c, NULL, true, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

static void
keep_verdict(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	*(evc_verdict *)arg = *v;
}

/* A blocking join, a join in a loop, and one in steps: one verdict. */
START_TEST(J4_beside_other_joins_the_verdict_is_the_same)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_verdict steps, evented;
	struct guest g;
	struct joiner j;
	evc_coord *c;
	evc_reactor *r;
	evc_join_opts opts = { 0 };
	int way;

	for (way = 0; way < N_WAYS; way++) {
		c = new_coord(NULL);
		memset(&g, 0, sizeof(g));
		memset(&evented, 0, sizeof(evented));
		evented.code = 77;
		OK(evc_reactor_attach(c, "loop", loop, &r));
		OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
		join_begin(&j, c, 0, 0);
		opts.reactor = r;
		OK(evc_join_start(c, keep_verdict, &evented, &opts));
		ck_assert_int_eq(evc_join_step(c, NULL, NULL, NULL),
				 EVC_PENDING);
		evc_fail(c, EVC_UNAVAILABLE, 0, "no upstream");
		ck_assert(!atomic_load(&j.returned));
		atomic_store(&g.open, 1);
		/* whoever is first closes the round, and answers all */
		ck_assert_int_eq(poll_join(c, NULL, way, &steps),
				 EVC_UNAVAILABLE);
		ck_assert_int_eq(join_end(&j), EVC_UNAVAILABLE);
		ev_run(loop, 0);
		ck_assert_int_eq(evented.code, EVC_UNAVAILABLE);
		ck_assert_double_eq(j.v.took, steps.took);
		ck_assert_double_eq(evented.took, steps.took);
		ck_assert_uint_eq(j.v.n_ended, 1);
		ck_assert_uint_eq(steps.n_ended, 1);
		ck_assert_str_eq(steps.error.text, "no upstream");
		ck_assert_str_eq(j.v.error.text, "no upstream");
		OK(evc_reactor_detach(r));
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

struct stepper {
	evc_coord *c;
	evc_status status;
	evc_verdict v;
};

static void *
step_once(void *arg)
{
	struct stepper *s = arg;

	s->status = evc_join_step(s->c, NULL, NULL, &s->v);
	return NULL;
}

START_TEST(steps_may_come_from_one_thread_after_the_other)
{
	evc_coord *c = new_coord(NULL);
	struct stepper s = { .c = c };
	evc_id hold = 0;
	pthread_t t;
	int i;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	for (i = 0; i < 6; i++) {
		if (i == 2)
			OK(evc_request_stop(c, 0, NULL));
		if (i == 5)
			OK(evc_hold_end(c, hold));
		s.status = 77;
		OK(pthread_create(&t, NULL, step_once, &s));
		OK(pthread_join(t, NULL));
		ck_assert_int_eq(s.status, i == 5 ? 0 : EVC_PENDING);
	}
	ck_assert_uint_eq(s.v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

static evc_status
join_by_steps(evc_coord *c, void *arg)
{
	struct stepper *s = arg;
	double until = t_now() + T_LIMIT;

	do {
		s->status = evc_join_step(c, NULL, NULL, &s->v);
		t_sleep(0.001);
	} while (s->status == EVC_PENDING && t_now() < until);
	return 0;
}

START_TEST(J5_a_member_that_joins_by_steps_leaves_itself_out)
{
	evc_coord *c = new_coord(NULL);
	struct stepper s = { .c = c, .status = 77 };
	evc_verdict v;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "steps", join_by_steps, &s, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	OK(s.status);
	ck_assert_uint_eq(s.v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

static bool
step_inside(void *arg)
{
	struct stepper *s = arg;

	s->status = evc_join_step(s->c, NULL, NULL, &s->v);
	return false;
}

START_TEST(a_step_inside_a_step_is_refused)
{
	static const evc_runner_ops ops = { .is_running = step_inside };
	evc_coord *c = new_coord(NULL);
	struct stepper s = { .c = c, .status = 77, .v.code = 77 };
	evc_verdict v;

	OK(evc_runner_add(c, "steps", &ops, &s, NULL, NULL));
	OK(poll_join(c, NULL, false, &v));
	ck_assert_int_eq(s.status, -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(s.v.code, 77);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

API_MAIN("join_poll", threads_holds_and_registered_threads,
	 without_a_stop_the_last_end_is_heard,
	 runners_are_asked_told_and_joined_by_the_steps,
	 children_get_their_signals_from_the_steps,
	 loops_of_other_threads_and_hooks_on_the_helper,
	 who_is_late_is_named_after_the_grace,
	 a_signal_makes_the_descriptor_readable,
	 J4_beside_other_joins_the_verdict_is_the_same,
	 steps_may_come_from_one_thread_after_the_other,
	 J5_a_member_that_joins_by_steps_leaves_itself_out,
	 a_step_inside_a_step_is_refused)
