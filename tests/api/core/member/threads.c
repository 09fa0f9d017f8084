/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that the coordinator starts: how they are set up, and what the ways
 * in which they can end mean.
 */
#include "../../../support/api_util.h"

#include <signal.h>
#include <sys/syscall.h>

struct seen {
	evc_id *id;
	evc_id id_inside;
	evc_coord *c_inside;
	sigset_t mask;
	char name[16];
	size_t stack;
};

static evc_status
look_around(evc_coord *c, void *arg)
{
	struct seen *s = arg;
	pthread_attr_t attr;

	s->c_inside = c;
	s->id_inside = *s->id;
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	t_own_name(s->name);
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &s->stack);
	pthread_attr_destroy(&attr);
	return 0;
}

START_TEST(a_started_thread_is_set_up_as_promised)
{
	static const int must_be_blocked[] = { SIGHUP,  SIGINT,   SIGQUIT,
					       SIGABRT, SIGUSR1,  SIGUSR2,
					       SIGPIPE, SIGALRM,  SIGTERM,
					       SIGCHLD, SIGWINCH, SIGIO,
					       SIGPROF, SIGTRAP,  SIGSYS };
	evc_coord *c = new_coord(NULL);
	struct seen s = { 0 };
	evc_id id = 0;
	sigset_t before, now;
	size_t i;
	int sig;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	s.id = &id;
	OK(evc_thread_start(c, "a-name-longer-than-15", look_around, &s, NULL,
			    &id));
	OK(evc_join(c, NULL, NULL));
	ck_assert_ptr_eq(s.c_inside, c);
	ck_assert_uint_ne(id, 0);
	ck_assert_uint_eq(s.id_inside, id);
	ck_assert_str_eq(s.name, "a-name-longer-t");
	for (i = 0; i < sizeof(must_be_blocked) / sizeof(int); i++)
		ck_assert_msg(sigismember(&s.mask, must_be_blocked[i]),
			      "signal %d is open", must_be_blocked[i]);
	ck_assert(sigismember(&s.mask, SIGRTMIN + 1));
	ck_assert(!sigismember(&s.mask, SIGSEGV));
	ck_assert(!sigismember(&s.mask, SIGBUS));
	ck_assert(!sigismember(&s.mask, SIGFPE));
	ck_assert(!sigismember(&s.mask, SIGILL));
	ck_assert_uint_ge(s.stack, 200 * 1024);
	/* and the starter's own mask is as it was */
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (sig = 1; sig < 32; sig++)
		ck_assert_int_eq(sigismember(&now, sig),
				 sigismember(&before, sig));
	OK(evc_free(c));
}
END_TEST

static evc_status
use_stack(evc_coord *c, void *arg)
{
	size_t i, n = *(size_t *)arg;
	volatile char *room = __builtin_alloca(n);

	(void)c;
	for (i = 0; i < n; i += 512)
		room[i] = 1;
	return 0;
}

START_TEST(the_stack_is_as_large_as_asked)
{
	evc_member_opts opts = { .stack = 2 << 20 };
	size_t large = 1536 << 10, usual = 64 << 10;
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "large", use_stack, &large, &opts, NULL));
	OK(evc_thread_start(c, "usual", use_stack, &usual, NULL, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_clean_result_ends_that_thread_alone)
{
	evc_status clean[] = { 0, EVC_OUT_OF_RANGE };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct joiner j;
	evc_member_info info;
	evc_id id[2] = { 0 };
	int i;

	OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
	join_begin(&j, c, 0, 0);
	for (i = 0; i < 2; i++)
		OK(evc_thread_start(c, "ends", return_at_once, &clean[i], NULL,
				    &id[i]));
	for (i = 0; i < 2; i++) /* the join takes them in */
		UNTIL(evc_member_get(c, id[i], &info) == -EVC_NOT_FOUND);
	ck_assert(!evc_should_stop(c));
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 3);
	ck_assert_uint_eq(j.v.n_errors, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(any_other_result_is_an_error_and_stops)
{
	static const struct {
		evc_status result, recorded;
	} cases[] = { { EVC_DATA_LOSS, EVC_DATA_LOSS },
		      { EVC_CANCELLED, EVC_CANCELLED },
		      { 200, 200 },
		      { -EVC_INTERNAL, EVC_INTERNAL },
		      { 1000, EVC_UNKNOWN } };
	evc_coord *c = new_coord(NULL);
	evc_status result;
	evc_verdict v;
	evc_id id = 0;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		result = cases[i].result;
		OK(evc_thread_start(c, "other", obey, NULL, NULL, NULL));
		OK(evc_thread_start(c, "fails", return_at_once, &result, NULL,
				    &id));
		ck_assert_int_eq(evc_join(c, NULL, &v), cases[i].recorded);
		ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_uint_eq(v.n_errors, 1);
		ck_assert_str_eq(v.error.who, "fails");
		ck_assert_uint_eq(v.error.by, id);
		if (result == 1000)
			HAS(v.error.text, "1000");
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(after_the_stop_CANCELLED_is_obedience_and_errors_are_errors)
{
	evc_status cancelled = EVC_CANCELLED, error = EVC_ABORTED;
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "a", obey_with, &cancelled, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	OK(evc_raise_requested(c, NULL));
	OK(evc_clear_stop(c));
	OK(evc_thread_start(c, "a", obey_with, &cancelled, NULL, NULL));
	OK(evc_thread_start(c, "b", obey_with, &error, NULL, NULL));
	OK(evc_request_stop(c, 0, "clean"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "b");
	ck_assert_str_eq(v.stop.text, "clean");
	OK(evc_free(c));
}
END_TEST

START_TEST(with_END_STOPS_every_end_is_a_stop)
{
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	evc_status results[] = { 0, EVC_OUT_OF_RANGE, EVC_INTERNAL };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	evc_id id = 0;
	int i;

	for (i = 0; i < 3; i++) {
		OK(evc_thread_start(c, "other", obey, NULL, NULL, NULL));
		OK(evc_thread_start(c, "vital", return_at_once, &results[i],
				    &opts, &id));
		ck_assert_int_eq(evc_join(c, NULL, &v),
				 i == 2 ? EVC_INTERNAL : 0);
		ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_str_eq(v.stop.who, "vital");
		ck_assert_uint_eq(v.stop.by, id);
		ck_assert_uint_eq(v.n_ended, 2);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

static evc_status
exit_thread(evc_coord *c, void *arg)
{
	(void)c;
	pthread_exit(arg);
}

static evc_status
cancel_self(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return 0;
}

/* Ended without a result, and before the stop: ABORTED. */
static void
ends_aborted(evc_fn *fn, unsigned flags)
{
	evc_member_opts opts = { .flags = flags };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "other", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "gone", fn, NULL, &opts, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "gone");
	ck_assert_str_ne(v.error.text, "");
	ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_uint_eq(v.n_errors, 1);
	OK(evc_free(c));
}

START_TEST(pthread_exit_is_an_end_without_a_result)
{
	ends_aborted(exit_thread, 0);
}
END_TEST

START_TEST(cancellation_is_an_end_without_a_result)
{
	ends_aborted(cancel_self, 0);
}
END_TEST

START_TEST(a_raw_exit_is_seen_at_once_when_WATCHED)
{
	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	ends_aborted(exit_by_syscall, EVC_WATCHED);
}
END_TEST

START_TEST(a_raw_exit_is_seen_after_the_stop)
{
	evc_coord *c;
	evc_join_opts opts = { .grace = INFINITY };
	evc_verdict v;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "gone", exit_by_syscall, NULL, NULL, NULL));
	OK(evc_thread_start(c, "other", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	/* Nobody knows when it went. */
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_ABORTED);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

static evc_status
obey_and_exit(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	pthread_exit(arg);
}

START_TEST(pthread_exit_after_the_stop_is_no_error)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "exits", obey_and_exit, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(LATE_lets_a_thread_start_after_the_stop)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_verdict v;
	evc_id id = 77;

	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED, evc_thread_start(c, "no", stay, &g, NULL, &id));
	ck_assert_uint_eq(id, 77);
	atomic_store(&g.open, 1);
	OK(evc_thread_start(c, "yes", stay, &g, &late, &id));
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(g.in, 1);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

static evc_status
start_another(evc_coord *c, void *arg)
{
	return evc_thread_start(c, "child", count_hook, arg, NULL, NULL);
}

START_TEST(a_member_may_start_members)
{
	evc_coord *c = new_coord(NULL);
	atomic_int count = 0;
	evc_verdict v;
	int i;

	for (i = 0; i < 20; i++)
		OK(evc_thread_start(c, "parent", start_another, &count, NULL,
				    NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(count, 20);
	ck_assert_uint_eq(v.n_ended, 40);
	OK(evc_free(c));
}
END_TEST

static void *
end_not_joined(void *arg)
{
	const evc_member_opts o = { .flags = EVC_NOT_JOINED };
	evc_id id = 0;

	if (evc_register_thread(arg, "own", pthread_self(), &o, &id) < 0)
		return NULL;
	return (void *)(uintptr_t)id;
}

static evc_status
say_tid(evc_coord *c, void *arg)
{
	(void)c;
	atomic_store((atomic_int *)arg, own_tid());
	return 0;
}

static void *
say_own_tid(void *arg)
{
	say_tid(NULL, arg);
	return NULL;
}

static void
until_ended(const atomic_int *tid)
{
	UNTIL(atomic_load(tid) != 0 &&
	      syscall(SYS_tgkill, getpid(), atomic_load(tid), 0) != 0);
}

/* A server that starts a thread for each connection, and joins at its end. */
START_TEST(the_next_start_joins_threads_that_have_ended)
{
	static const unsigned flags[] = { 0, EVC_WATCHED, EVC_OWN_SCOPE };
	atomic_int tid[4] = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_member_info info;
	evc_id id[3];
	evc_verdict v;
	unsigned i;

	for (i = 0; i < 3; i++) {
		const evc_member_opts o = { .flags = flags[i] };

		OK(evc_thread_start(c, "connection", say_tid, &tid[i], &o,
				    &id[i]));
	}
	for (i = 0; i < 3; i++)
		until_ended(&tid[i]);
	OK(evc_thread_start(c, "next", say_tid, &tid[3], NULL, NULL));
	for (i = 0; i < 3; i++)
		REFUSED(EVC_NOT_FOUND, evc_member_get(c, id[i], &info));
	/* Their results are still there. */
	OK(evc_member_wait(c, id[0], 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 4);
	OK(evc_free(c));
}
END_TEST

/* Its pthread_t is still good for a list of a join. */
START_TEST(no_start_joins_a_registered_thread)
{
	evc_coord *c = new_coord(NULL);
	atomic_int tid = 0;
	evc_id id, again;
	pthread_t t;
	const evc_join_opts o = { .threads = &t, .n_threads = 1 };

	OK(pthread_create(&t, NULL, say_own_tid, &tid));
	OK(evc_register_thread(c, "own", t, NULL, &id));
	until_ended(&tid);
	OK(evc_thread_start(c, "next", return_at_once, NULL, NULL, NULL));
	OK(evc_register_thread(c, "own", t, NULL, &again));
	ck_assert_uint_eq(id, again);
	OK(evc_join(c, &o, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_next_registration_forgets_threads_that_were_not_joined)
{
	evc_coord *c = new_coord(NULL);
	evc_member_info info;
	void *id, *next;
	pthread_t t;

	OK(pthread_create(&t, NULL, end_not_joined, c));
	OK(pthread_join(t, &id));
	ck_assert_ptr_nonnull(id);
	OK(pthread_create(&t, NULL, end_not_joined, c));
	OK(pthread_join(t, &next));
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, (uintptr_t)id, &info));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(L3_no_thread_and_no_descriptor_is_left)
{
	int threads = t_count_threads(), fds = t_count_fds(), i;
	evc_member_opts opts = { .flags = EVC_WATCHED };
	evc_coord *c = new_coord(NULL);

	for (i = 0; i < 100; i++)
		OK(evc_thread_start(c, "ends", return_at_once, NULL,
				    i % 2 ? &opts : NULL, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

API_MAIN("threads", a_started_thread_is_set_up_as_promised,
	 the_stack_is_as_large_as_asked, a_clean_result_ends_that_thread_alone,
	 any_other_result_is_an_error_and_stops,
	 after_the_stop_CANCELLED_is_obedience_and_errors_are_errors,
	 with_END_STOPS_every_end_is_a_stop,
	 pthread_exit_is_an_end_without_a_result,
	 cancellation_is_an_end_without_a_result,
	 a_raw_exit_is_seen_at_once_when_WATCHED,
	 a_raw_exit_is_seen_after_the_stop,
	 pthread_exit_after_the_stop_is_no_error,
	 LATE_lets_a_thread_start_after_the_stop, a_member_may_start_members,
	 the_next_start_joins_threads_that_have_ended,
	 no_start_joins_a_registered_thread,
	 the_next_registration_forgets_threads_that_were_not_joined,
	 L3_no_thread_and_no_descriptor_is_left)
