/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the program that are registered: by whom and when, what their end
 * means, and that handles which the system uses again confuse nobody.
 */
#include "../../../support/api_util.h"

#include <sys/resource.h>

static pthread_t
thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	OK(pthread_create(&t, NULL, fn, arg));
	return t;
}

struct own {
	evc_coord *c;
	evc_id first, second;
	evc_status status;
	struct guest g;
};

static void *
register_self(void *arg)
{
	struct own *o = arg;

	o->status = evc_register_thread(o->c, "self", pthread_self(), NULL,
					&o->first);
	if (o->status == 0)
		o->status = evc_register_thread(o->c, "self", pthread_self(),
						NULL, &o->second);
	stay(NULL, &o->g);
	return NULL;
}

START_TEST(registering_twice_gives_the_same_id)
{
	struct own o = { .c = new_coord(NULL) };
	evc_verdict v;
	evc_id id = 0;
	pthread_t t = thread(register_self, &o);

	UNTIL(atomic_load(&o.g.in));
	OK(o.status);
	ck_assert_uint_ne(o.first, 0);
	ck_assert_uint_eq(o.second, o.first);
	OK(evc_register_thread(o.c, "other name", t, NULL, &id));
	ck_assert_uint_eq(id, o.first);
	atomic_store(&o.g.open, 1);
	OK(evc_join(o.c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(o.c));
}
END_TEST

START_TEST(one_that_ended_before_is_joined_too)
{
	int before = t_count_threads();
	evc_coord *c = new_coord(NULL);
	pthread_t t = thread(end_at_once, NULL);
	evc_verdict v;

	ck_assert_int_eq(t_settle_threads(before), before);
	OK(evc_register_thread(c, "ended", t, NULL, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(free_reaps_those_that_have_ended)
{
	int before = t_count_threads();
	evc_coord *c = new_coord(NULL);
	pthread_t t = thread(end_at_once, NULL);

	OK(evc_register_thread(c, "ended", t, NULL, NULL));
	UNTIL(evc_free(c) == 0); /* refused as long as it runs */
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

static void *
be_cancelled(void *arg)
{
	atomic_store((atomic_int *)arg, 1);
	stay_until_cancelled();
	return NULL;
}

START_TEST(of_the_value_only_PTHREAD_CANCELED_counts)
{
	evc_coord *c = new_coord(NULL);
	atomic_int in = 0;
	evc_verdict v;
	pthread_t t;

	t = thread(end_at_once, (void *)(intptr_t)EVC_INTERNAL);
	OK(evc_register_thread(c, "value", t, NULL, NULL));
	OK(evc_join(c, NULL, NULL));

	t = thread(be_cancelled, &in);
	OK(evc_register_thread(c, "victim", t, NULL, NULL));
	UNTIL(atomic_load(&in));
	pthread_cancel(t);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert(evc_should_stop(c));
	ck_assert_str_eq(v.error.who, "victim");
	OK(evc_clear_stop(c));

	/* after the stop it is no error */
	in = 0;
	t = thread(be_cancelled, &in);
	OK(evc_register_thread(c, "victim", t, NULL, NULL));
	UNTIL(atomic_load(&in));
	OK(evc_request_stop(c, 0, NULL));
	pthread_cancel(t);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(with_END_STOPS_its_end_is_a_stop)
{
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "other", obey, NULL, NULL, NULL));
	OK(evc_register_thread(c, "vital", thread(end_at_once, NULL), &opts,
			       NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
	ck_assert_str_eq(v.stop.who, "vital");
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_detached_thread_is_refused)
{
	static struct guest g; /* outlives a thread that nobody joins */
	int before = t_count_threads();
	evc_coord *c = new_coord(NULL);
	evc_id id = 77;
	pthread_t t;

	g.in = g.open = 0;
	t = thread(stay_thread, &g);
	pthread_detach(t);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(c, "detached", t, NULL, &id));
	ck_assert_uint_eq(id, 77);
	OK(evc_join(c, NULL, NULL)); /* it is no member */
	atomic_store(&g.open, 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

START_TEST(registering_is_accepted_after_the_stop)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_verdict v;
	evc_id id = 0;

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_register_thread(c, "runs", thread(stay_thread, &g), NULL, &id));
	ck_assert_uint_ne(id, 0);
	UNTIL(atomic_load(&g.in));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

static void *
named_main(void *arg)
{
	pthread_setname_np(pthread_self(), "kernel-name");
	return stay_thread(arg);
}

START_TEST(without_a_name_the_kernels_is_shown)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = 0.01 };
	struct guest g = { 0 };
	pthread_t t = thread(named_main, &g);
	evc_member_info info;
	evc_verdict v;
	evc_id id = 0;

	UNTIL(atomic_load(&g.in));
	OK(evc_register_thread(c, NULL, t, NULL, &id));
	OK(evc_member_get(c, id, &info));
	ck_assert_str_eq(info.name, "kernel-name");
	ck_assert_uint_eq(info.kind, EVC_REGISTERED);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "kernel-name");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static atomic_int churned, churn_failed;

static void *
register_and_end(void *arg)
{
	if (evc_register_thread(arg, "brief", pthread_self(), NULL, NULL) != 0)
		atomic_fetch_add(&churn_failed, 1);
	atomic_fetch_add(&churned, 1);
	return NULL;
}

#define CHURN 300

/*
 * A joiner reaps while new threads come, so the system gives them handles that
 * were just joined.  Each must be its own member, and be joined.
 */
START_TEST(handles_used_again_are_new_members)
{
	int before = t_count_threads(), used_again = 0, i, k;
	evc_coord *c = new_coord(NULL);
	pthread_t t[CHURN];
	struct joiner j;
	evc_id hold = 0;

	churned = churn_failed = 0;
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&j, c, INFINITY, 0);
	for (i = 0; i < CHURN; i++) {
		t[i] = thread(register_and_end, c);
		for (k = 0; k < i; k++)
			used_again += pthread_equal(t[i], t[k]) != 0;
		if (i % 4 == 0)
			t_sleep(0.002);
	}
	UNTIL(atomic_load(&churned) == CHURN);
	OK(evc_hold_end(c, hold));
	OK(join_end(&j));
	ck_assert_int_eq(churn_failed, 0);
	ck_assert_uint_eq(j.v.n_ended, CHURN + 1);
	ck_assert_int_gt(used_again, 0);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

/* No descriptor left: noticed by trying, and nothing fails. */
START_TEST(without_descriptors_ends_are_noticed_all_the_same)
{
	evc_coord *c = new_coord(NULL);
	struct rlimit old, none;
	evc_verdict v;
	evc_status st[3];
	pthread_t t[3];
	int i;

	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	t[0] = thread(end_at_once, NULL);
	t[1] = thread(obey_thread, c);
	t[2] = thread(obey_thread, c);
	setrlimit(RLIMIT_NOFILE, &none);
	for (i = 0; i < 3; i++)
		st[i] = evc_register_thread(c, "no-fd", t[i], NULL, NULL);
	evc_request_stop(c, 0, NULL);
	if (evc_join(c, NULL, &v) < 0)
		v.n_ended = 99;
	setrlimit(RLIMIT_NOFILE, &old);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(st[i], 0);
	ck_assert_int_eq(v.code, 0);
	ck_assert_uint_eq(v.n_ended, 3);
	OK(evc_free(c));
}
END_TEST

static evc_status
register_started(evc_coord *c, void *arg)
{
	return evc_register_thread(c, "again", pthread_self(), NULL, arg);
}

START_TEST(a_started_thread_is_known_already)
{
	evc_coord *c = new_coord(NULL);
	evc_id id = 0, again = 0;
	evc_verdict v;

	OK(evc_thread_start(c, "started", register_started, &again, NULL, &id));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(again, id);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

API_MAIN("registered", registering_twice_gives_the_same_id,
	 one_that_ended_before_is_joined_too, free_reaps_those_that_have_ended,
	 of_the_value_only_PTHREAD_CANCELED_counts,
	 with_END_STOPS_its_end_is_a_stop, a_detached_thread_is_refused,
	 registering_is_accepted_after_the_stop,
	 without_a_name_the_kernels_is_shown,
	 handles_used_again_are_new_members,
	 without_descriptors_ends_are_noticed_all_the_same,
	 a_started_thread_is_known_already)
