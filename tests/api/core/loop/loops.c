/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many loops on threads of their own, made by evc_reactor_start: told there,
 * joined by one blocking join.  Loops that do not turn stand in loops_late.c.
 */
#include "../../../support/far_util.h"
#include "../../../support/runner_util.h"

#include <signal.h>
#include <sys/resource.h>

struct shard {
	evc_task task; /* first: the task is the shard */
	evc_coord *c;
	evc_reactor *r, *given; /* what set-up got, what the call returned */
	evc_status begun, result;
	atomic_int setups, hooks, tasks;
	atomic_int setup_tid, hook_tid, task_tid;
	bool stops, breaks;
	evc_id looper;
	char name[16];
	sigset_t mask;
	ev_timer timer;
};

static void
task_told(evc_task *t, void *arg)
{
	struct shard *s = (struct shard *)t;

	(void)arg;
	atomic_store(&s->task_tid, own_tid());
	atomic_fetch_add(&s->tasks, 1);
	evc_task_end(t);
}

static const evc_task_class shard_task = {
	.name = "conn",
	.on_stop = task_told,
};

static evc_status
note_hook(evc_coord *c, void *arg)
{
	struct shard *s = arg;

	(void)c;
	atomic_store(&s->hook_tid, own_tid());
	atomic_fetch_add(&s->hooks, 1);
	return 0;
}

static evc_status
set_up(evc_reactor *r, void *arg)
{
	struct shard *s = arg;

	s->r = r;
	atomic_store(&s->setup_tid, own_tid());
	t_own_name(s->name);
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	s->begun = evc_task_begin(r, &s->task, &shard_task);
	if (s->breaks) {
		ev_timer_init(&s->timer, break_all, 0.02, 0);
		ev_timer_start(evc_reactor_loop(r), &s->timer);
	}
	if (s->stops)
		evc_request_stop(s->c, 0, "in set-up");
	atomic_fetch_add(&s->setups, 1);
	return s->result;
}

static void
start(evc_coord *c, struct shard *s, const evc_member_opts *opts)
{
	s->c = c;
	OK(evc_reactor_start(c, "a-shard", set_up, s, opts, &s->given));
	/* it has returned by now */
	ck_assert_int_eq(s->setups, 1);
	/* NULL, when a stop came and the loop has ended by now */
	ck_assert(s->given == s->r || (s->given == NULL && s->stops));
	OK(s->begun);
}

static void
hook_on(evc_coord *c, struct shard *s)
{
	evc_member_opts opts = { .reactor = s->given };

	OK(evc_on_stop(c, "hook", note_hook, s, &opts, NULL));
}

static void
was_told(struct shard *s)
{
	ck_assert_int_ne(s->setup_tid, own_tid());
	ck_assert_int_eq(s->tasks, 1);
	ck_assert_int_eq(s->task_tid, s->setup_tid);
}

START_TEST(each_is_told_on_its_own_thread_and_one_join_is_for_all)
{
	enum { N = 4 };
	int threads = t_count_threads(), fds = t_count_fds(), i, k;
	evc_coord *c = new_coord(NULL);
	struct shard s[N];
	struct guest g = { 0 };
	struct joiner j;

	memset(s, 0, sizeof(s));
	for (i = 0; i < N; i++) {
		start(c, &s[i], NULL);
		hook_on(c, &s[i]);
		ck_assert_ptr_eq(evc_reactor_coord(s[i].given), c);
		ck_assert_ptr_nonnull(evc_reactor_loop(s[i].given));
	}
	OK(evc_thread_start(c, "blocking", stay, &g, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	join_begin(&j, c, 0, 0);
	ck_assert(!evc_should_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < N; i++)
		UNTIL(atomic_load(&s[i].tasks) == 1);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, N + 1);
	ck_assert_uint_eq(j.v.n_errors, 0);
	for (i = 0; i < N; i++) {
		was_told(&s[i]);
		ck_assert_int_eq(s[i].hooks, 1);
		ck_assert_int_eq(s[i].hook_tid, s[i].setup_tid);
		for (k = 0; k < i; k++)
			ck_assert_int_ne(s[i].setup_tid, s[k].setup_tid);
	}
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

START_TEST(its_thread_is_a_started_thread_with_the_name)
{
	evc_member_opts opts = { .stack = 1 << 20, .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c };
	struct joiner j;
	char text[4096];

	start(c, &s, &opts);
	ck_assert_str_eq(s.name, "a-shard");
	ck_assert(sigismember(&s.mask, SIGTERM));
	ck_assert(sigismember(&s.mask, SIGUSR1));
	ck_assert(!sigismember(&s.mask, SIGSEGV));
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, "thread \"a-shard\"");
	HAS(text, "conn");
	join_begin(&j, c, 0, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 1);
	was_told(&s);
	OK(evc_free(c));
}
END_TEST

START_TEST(without_a_set_up_it_runs_all_the_same)
{
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c };
	evc_verdict v;

	OK(evc_reactor_start(c, "bare", NULL, NULL, NULL, &s.given));
	ck_assert_ptr_nonnull(s.given);
	hook_on(c, &s);
	OK(evc_reactor_start(c, "bare", NULL, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(s.hooks, 1);
	ck_assert_int_ne(s.hook_tid, own_tid());
	OK(evc_free(c));
}
END_TEST

static evc_status
only_return(evc_reactor *r, void *arg)
{
	(void)r;
	return *(evc_status *)arg;
}

START_TEST(what_set_up_returns_is_the_threads_result)
{
	static const struct {
		evc_status result, code, verdict;
		unsigned flags;
	} cases[] = { { EVC_DATA_LOSS, EVC_DATA_LOSS, EVC_DATA_LOSS, 0 },
		      { -EVC_DATA_LOSS, EVC_DATA_LOSS, EVC_DATA_LOSS, 0 },
		      { 200, 200, 200, 0 },
		      { 1000, EVC_UNKNOWN, EVC_UNKNOWN, 0 },
		      { EVC_OUT_OF_RANGE, EVC_OUT_OF_RANGE, 0, 0 },
		      { EVC_OUT_OF_RANGE, EVC_OUT_OF_RANGE, 0,
			EVC_END_STOPS } };
	int threads = t_count_threads(), fds = t_count_fds();
	evc_coord *c;
	evc_reactor *r;
	evc_status result;
	evc_verdict v;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		evc_member_opts opts = { .flags = cases[i].flags };

		c = new_coord(NULL);
		r = (evc_reactor *)&result;
		result = cases[i].result;
		REFUSED(cases[i].code,
			evc_reactor_start(c, "fails", only_return, &result,
					  &opts, &r));
		ck_assert_ptr_eq(r, (evc_reactor *)&result);
		ck_assert_int_eq(evc_join(c, NULL, &v), cases[i].verdict);
		ck_assert_int_eq(evc_should_stop(c),
				 cases[i].verdict != 0 || opts.flags != 0);
		ck_assert_uint_eq(v.n_ended, 1);
		ck_assert_uint_eq(v.n_errors, cases[i].verdict != 0);
		if (cases[i].verdict != 0) {
			ck_assert_str_eq(v.error.who, "fails");
			ck_assert_uint_eq(v.error.kind, EVC_BY_MEMBER_END);
		}
		OK(evc_free(c));
	}
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

/* What it has begun on the loop is no reason to run it. */
START_TEST(a_set_up_that_fails_half_way_leaves_nothing)
{
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c, .result = EVC_UNAVAILABLE };
	evc_verdict v;

	REFUSED(EVC_UNAVAILABLE,
		evc_reactor_start(c, "half", set_up, &s, NULL, &s.given));
	ck_assert_ptr_null(s.given);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_UNAVAILABLE);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(s.tasks, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(after_the_stop_it_is_refused_unless_LATE)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c };
	evc_reactor *r = NULL;
	evc_verdict v;

	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_reactor_start(c, "no", set_up, &s, NULL, &r));
	ck_assert_ptr_null(r);
	ck_assert_int_eq(s.setups, 0);
	/* a loop that is told at once; what may not begin does not */
	OK(evc_reactor_start(c, "yes", set_up, &s, &late, &r));
	ck_assert_int_eq(s.setups, 1);
	ck_assert_int_eq(s.begun, -EVC_CANCELLED);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_stop_in_its_set_up_is_heard)
{
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c, .stops = true };
	evc_verdict v;

	start(c, &s, NULL);
	OK(evc_join(c, NULL, &v));
	ck_assert_str_eq(v.stop.text, "in set-up");
	ck_assert_uint_eq(v.n_ended, 1);
	was_told(&s);
	OK(evc_free(c));
}
END_TEST

START_TEST(an_ev_break_there_is_a_request)
{
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c, .breaks = true }, other = { .c = c };
	evc_verdict v;

	start(c, &other, NULL);
	start(c, &s, NULL);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_LOOP_BROKEN);
	ck_assert_int_eq(v.stop.tid, s.setup_tid);
	was_told(&s);
	was_told(&other);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_next_round_starts_anew)
{
	evc_coord *c = new_coord(NULL);
	struct shard s[2];
	evc_verdict v;
	int i, round;

	for (round = 1; round <= 5; round++) {
		memset(s, 0, sizeof(s));
		for (i = 0; i < 2; i++)
			start(c, &s[i], NULL);
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.round, (unsigned)round);
		ck_assert_uint_eq(v.n_ended, 2);
		was_told(&s[0]);
		was_told(&s[1]);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

static evc_status
start_from_member(evc_coord *c, void *arg)
{
	struct shard *s = arg;

	return evc_reactor_start(c, "inner", set_up, s, NULL, &s->given);
}

START_TEST(a_member_may_start_one)
{
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c };
	evc_verdict v;

	OK(evc_thread_start(c, "maker", start_from_member, &s, NULL, NULL));
	UNTIL(atomic_load(&s.setups) == 1);
	/* the maker has to be back before it may be refused */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	was_told(&s);
	OK(evc_free(c));
}
END_TEST

START_TEST(hooks_loopers_and_runners_may_be_put_there_by_others)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts opts = { 0 };
	struct machine m = { .ends_at_stop = true };
	struct shard s = { .c = c };
	atomic_int looper_tid = 0;
	evc_verdict v;

	start(c, &s, NULL);
	opts.reactor = s.given;
	hook_on(c, &s);
	atomic_store(&m.runs, 1);
	machine_add(c, "machine", &m, s.given, 0);
	OK(evc_looper_start(c, "looper", 0.001, note_tid, &looper_tid, &opts,
			    NULL));
	UNTIL(atomic_load(&looper_tid) != 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_int_eq(looper_tid, s.setup_tid);
	ck_assert_int_eq(m.stop_tid, s.setup_tid);
	ck_assert_int_eq(m.join_tid, s.setup_tid);
	ck_assert_int_eq(s.hook_tid, s.setup_tid);
	machine_was_joined(&m, 1);
	was_told(&s);
	OK(evc_free(c));
}
END_TEST

START_TEST(without_descriptors_it_is_refused_and_nothing_is_left)
{
	int threads = t_count_threads(), fds = t_count_fds();
	evc_coord *c = new_coord(NULL);
	struct shard s = { .c = c };
	struct rlimit old, none;
	evc_reactor *r = NULL;
	evc_verdict v;
	evc_status st = 77;
	rlim_t room;
	int first;

	getrlimit(RLIMIT_NOFILE, &old);
	first = dup(0); /* the first that is free */
	close(first);
	for (room = 0; room < 10; room++) {
		none = old;
		none.rlim_cur = (rlim_t)first + room;
		s.setups = 0;
		setrlimit(RLIMIT_NOFILE, &none);
		st = evc_reactor_start(c, "no-fd", set_up, &s, NULL, &r);
		setrlimit(RLIMIT_NOFILE, &old);
		ck_assert(st == 0 || st == -EVC_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(s.setups, st == 0);
		ck_assert(st != 0 || room > 0);
		if (st == 0)
			break;
		ck_assert_ptr_null(r);
		ck_assert(!evc_should_stop(c));
	}
	OK(st); /* at last there was room enough */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

API_MAIN("loops", each_is_told_on_its_own_thread_and_one_join_is_for_all,
	 its_thread_is_a_started_thread_with_the_name,
	 without_a_set_up_it_runs_all_the_same,
	 what_set_up_returns_is_the_threads_result,
	 a_set_up_that_fails_half_way_leaves_nothing,
	 after_the_stop_it_is_refused_unless_LATE,
	 a_stop_in_its_set_up_is_heard, an_ev_break_there_is_a_request,
	 the_next_round_starts_anew, a_member_may_start_one,
	 hooks_loopers_and_runners_may_be_put_there_by_others,
	 without_descriptors_it_is_refused_and_nothing_is_left)
