/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of threads that the library makes: the system's default wherever
 * functions of the program run, a smaller one where that was asked for.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <stdatomic.h>

static atomic_size_t seen; /* of the thread that was last looked at */
static struct ev_loop *loop;
static evc_coord *c;
static evc_pool *jobs;
static evc_group *group;

static void
begin(void)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	OK(evc_new(loop, NULL, &c));
}

static void
end(void)
{
	evc_verdict v;

	evc_request_stop(c, EVC_OK, "enough");
	ck_assert_int_ge(evc_join(c, NULL, &v), 0);
	OK(evc_pool_free(jobs));
	if (group != NULL)
		OK(evc_group_free(group));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	jobs = NULL;
	group = NULL;
}

static size_t
default_size(void)
{
	pthread_attr_t a;
	size_t n;

	ck_assert_int_eq(pthread_getattr_default_np(&a), 0);
	pthread_attr_getstacksize(&a, &n);
	pthread_attr_destroy(&a);
	return n;
}

static void
look(void)
{
	pthread_attr_t a;
	void *low;
	size_t n;

	ck_assert_int_eq(pthread_getattr_np(pthread_self(), &a), 0);
	pthread_attr_getstack(&a, &low, &n);
	pthread_attr_destroy(&a);
	atomic_store(&seen, n);
}

static size_t
size_seen(void)
{
	UNTIL(atomic_load(&seen) != 0);
	return atomic_exchange(&seen, 0);
}

static evc_status
fn(evc_coord *of, void *arg)
{
	(void)of;
	(void)arg;
	look();
	return EVC_OUT_OF_RANGE;
}

static int
number(void *arg)
{
	(void)arg;
	look();
	return 0;
}

static void
wake(void *arg)
{
	(void)arg;
	look();
}

static evc_status
set_up(evc_reactor *r, void *arg)
{
	(void)r;
	return fn(NULL, arg) * 0;
}

static evc_status
work(evc_job *job)
{
	return fn(NULL, job->arg) * 0;
}

static evc_status
worker(evc_group *g, unsigned id, void *arg)
{
	(void)g;
	(void)id;
	return fn(NULL, arg);
}

static bool
is_running(void *arg)
{
	(void)arg;
	return false;
}

static evc_status
join(void *arg)
{
	return fn(NULL, arg) * 0;
}

static void
thread(size_t n)
{
	evc_member_opts o = { .stack = n };

	OK(evc_thread_start(c, "t", fn, NULL, &o, NULL));
}

static void
looper(size_t n)
{
	evc_member_opts o = { .stack = n, .flags = EVC_OWN_THREAD };

	OK(evc_looper_start(c, "l", 0.001, fn, NULL, &o, NULL));
}

static void
reactor(size_t n)
{
	evc_member_opts o = { .stack = n };

	OK(evc_reactor_start(c, "r", set_up, NULL, &o, NULL));
}

static void
call(size_t n)
{
	evc_call_opts o = { .stack = n };

	if (n != 0)
		OK(evc_call_detached_with(c, number, NULL, 60, &o, NULL));
	else
		OK(evc_call_detached(c, NULL, number, NULL, NULL, 60, NULL));
}

static void
pool(size_t n)
{
	static evc_job job;
	evc_pool_opts o = { .stack = n };

	job.work = work;
	OK(evc_pool_new(c, "p", &o, &jobs));
	OK(evc_pool_submit(jobs, evc_home(c), &job));
}

static void
workers(size_t n)
{
	evc_group_opts o = { .coord = c, .member.stack = n };

	OK(evc_group_init(NULL, "g", worker, NULL, &o, &group, NULL));
	OK(evc_group_start(group));
}

static const struct {
	const char *name;
	void (*begin)(size_t stack);
} kinds[] = {
	{ "thread", thread },   { "looper", looper },
	{ "reactor", reactor }, { "evc_call_detached", call },
	{ "pool", pool },       { "workers", workers },
};
#define N_KINDS ((int)(sizeof kinds / sizeof *kinds))

START_TEST(no_size_is_the_systems)
{
	begin();
	kinds[_i].begin(0);
	ck_assert_msg(size_seen() >= default_size(), "%s", kinds[_i].name);
	end();
}
END_TEST

START_TEST(a_small_one_is_small)
{
	size_t n, most = default_size();

	/* That of musl is as small. */
	if (most < 2 * T_SMALL_STACK)
		most = 2 * T_SMALL_STACK;
	begin();
	kinds[_i].begin(T_SMALL_STACK);
	n = size_seen();
	/* Beside it there is room for thread-local data. */
	ck_assert_msg(n >= T_SMALL_STACK && n < most, "%s: %zu",
		      kinds[_i].name, n);
	end();
}
END_TEST

/* Functions of the program that the library's own threads call. */
START_TEST(the_helpers_is_the_systems)
{
	evc_member_opts o = { .unblock = wake };
	evc_id hold;

	begin();
	OK(evc_hold_begin(c, "hold", &o, &hold));
	evc_request_stop(c, EVC_OK, "enough");
	ck_assert_uint_ge(size_seen(), default_size());
	OK(evc_hold_end(c, hold));
	end();
}
END_TEST

START_TEST(that_of_a_runners_join_is_the_systems)
{
	static const evc_runner_ops ops = { .is_running = is_running,
					    .join = join };

	begin();
	OK(evc_runner_add(c, "r", &ops, NULL, NULL, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_uint_ge(size_seen(), default_size());
	end();
}
END_TEST

START_TEST(evc_call_with_refuses_what_evc_call_does)
{
	evc_call_opts o = { .stack = 1 }, room = { .reserved_ = { 1 } };
	int result = 7;

	begin();
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(c, number, NULL, 60, &o, &result));
	HAS(evc_last_error(), "evc_call_detached_with: a stack of 1 bytes");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(c, number, NULL, 60, &room, &result));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(c, NULL, NULL, 60, NULL, &result));
	HAS(evc_last_error(), "evc_call_detached_with: no function");
	ck_assert_int_eq(result, 7);
	OK(evc_call_detached_with(c, number, NULL, 60, NULL, &result));
	ck_assert_int_eq(result, 0);
	end();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stacks");
	TCase *t = tcase_create("stacks");

	tcase_add_loop_test(t, no_size_is_the_systems, 0, N_KINDS);
	tcase_add_loop_test(t, a_small_one_is_small, 0, N_KINDS);
	tcase_add_test(t, the_helpers_is_the_systems);
	tcase_add_test(t, that_of_a_runners_join_is_the_systems);
	tcase_add_test(t, evc_call_with_refuses_what_evc_call_does);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
