/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocking join: when it returns (J1), what it waits for (J2, J3), many
 * joins at once (J4), joins by members (J5), without a loop (J6), and who is
 * named (J7).  Joins on loops stand in run.c, options in join_opts.c.
 */
#include "../../../support/api_util.h"

#include <ev.h>

START_TEST(J1_returns_when_the_last_member_has_ended_and_not_before)
{
	evc_coord *c = new_coord(NULL);
	struct guest a = { 0 }, b = { 0 };
	struct joiner j;

	OK(evc_thread_start(c, "a", stay, &a, NULL, NULL));
	OK(evc_thread_start(c, "b", stay, &b, NULL, NULL));
	join_begin(&j, c, 0, 0);
	atomic_store(&a.open, 1);
	NOT_YET(atomic_load(&j.returned));
	atomic_store(&b.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 2);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	ck_assert_uint_eq(j.v.round, 1);
	ck_assert_uint_eq(j.v.stop.kind, 0); /* nobody asked for anything */
	ck_assert_int_eq(j.v.error.code, 0);
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(J1_the_grace_is_honoured_whole_and_to_the_smallest)
{
	static const double graces[] = { EVC_NO_GRACE, 1e-10, 0.002, 0.3 };
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { 0 };
	evc_verdict v;
	evc_id hold = 0;
	double start;
	size_t i;

	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	OK(evc_request_stop(c, 0, "stop"));
	for (i = 0; i < sizeof(graces) / sizeof(graces[0]); i++) {
		opts.grace = graces[i];
		start = t_now();
		ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
		ck_assert_double_ge(t_now() - start, graces[i]);
		ck_assert_int_eq(v.code, EVC_DEADLINE_EXCEEDED);
		ck_assert_int_eq(v.error.code, EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(v.n_stragglers, 1);
		ck_assert_uint_eq(v.n_errors, 0);
		HAS(v.error.text, "stuck");
		ck_assert_str_eq(v.stop.text, "stop");
	}
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(J1_the_grace_comes_from_the_config)
{
	evc_config cfg = { .grace = 0.2 };
	evc_coord *c = new_coord_with(NULL, &cfg);
	double start = t_now();
	evc_id hold = 0;

	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.2);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(J2_what_begins_while_a_join_waits_is_waited_for)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 }, late = { 0 };
	struct joiner j;
	pthread_t t;
	evc_id hold = 0;

	OK(evc_thread_start(c, "first", stay, &g, NULL, NULL));
	join_begin(&j, c, 0, 0);
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_thread_start(c, "second", stay, &late, NULL, NULL));
	OK(pthread_create(&t, NULL, stay_thread, &late));
	OK(evc_register_thread(c, "third", t, NULL, NULL));
	atomic_store(&g.open, 1);
	t_sleep(0.05);
	ck_assert(!atomic_load(&j.returned));
	OK(evc_hold_end(c, hold));
	t_sleep(0.05);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&late.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 4);
	OK(evc_free(c));
}
END_TEST

START_TEST(J2_after_the_stop_only_what_runs_already_comes_in)
{
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct guest g = { 0 };
	struct joiner j;
	pthread_t t;
	evc_id id = 77, hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	REFUSED(EVC_CANCELLED, evc_thread_start(c, "no", stay, &g, NULL, &id));
	REFUSED(EVC_CANCELLED, evc_hold_begin(c, "no", NULL, &id));
	ck_assert_uint_eq(id, 77);
	OK(evc_raise_requested(c, NULL)); /* no error, though STRICT_SETUP */
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "runs", t, NULL, NULL));
	OK(evc_thread_start(c, "late", stay, &g, &late, &id));
	OK(evc_hold_end(c, hold));
	t_sleep(0.05);
	ck_assert(!atomic_load(&j.returned));
	UNTIL(atomic_load(&g.in) == 2);
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 3);
	OK(evc_free(c));
}
END_TEST

START_TEST(J3_registered_are_ended_and_stragglers)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_join_opts opts = { .grace = 0.5 };
	evc_verdict v;
	pthread_t t;
	evc_id hold[4] = { 0 };
	int i;

	for (i = 0; i < 4; i++) {
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
		OK(pthread_create(&t, NULL, end_at_once, NULL));
		OK(evc_register_thread(c, "ends", t, NULL, NULL));
		OK(evc_hold_begin(c, "hold", NULL, &hold[i]));
	}
	OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
	OK(evc_hold_end(c, hold[0]));
	OK(evc_hold_end(c, hold[1]));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_ended, 10);
	ck_assert_uint_eq(v.n_stragglers, 3);
	OK(evc_hold_end(c, hold[2]));
	OK(evc_hold_end(c, hold[3]));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 13);
	ck_assert_uint_eq(v.n_stragglers, 0);
	OK(evc_free(c));
}
END_TEST

/* A member that joins; what it was answered. */
static evc_status
join_as_member(evc_coord *c, void *arg)
{
	evc_verdict *v = arg;
	evc_join_opts opts = { .grace = INFINITY };

	if (evc_join(c, &opts, v) < 0)
		v->code = -1;
	return 0;
}

struct freer {
	atomic_int called;
	evc_verdict v;
	evc_status freed;
};

static void
free_at_once(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct freer *f = arg;

	atomic_fetch_add(&f->called, 1);
	f->v = *v;
	f->freed = evc_free(c);
}

START_TEST(J4_every_join_has_its_own_grace)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_join_opts patient = { .grace = INFINITY };
	struct joiner shortest, shorter, endless;
	evc_verdict member = { .code = 77 };
	struct freer f = { 0 };
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_thread_start(c, "joins", join_as_member, &member, NULL, NULL));
	OK(evc_join_start(c, free_at_once, &f, &patient));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&shortest, c, 0.05, 0);
	join_begin(&shorter, c, 1, 0);
	join_begin(&endless, c, INFINITY, 0);

	ck_assert_int_eq(join_end(&shortest), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(shortest.seconds, 0.05);
	ck_assert_int_eq(join_end(&shorter), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(shorter.seconds, 1);
	ck_assert(!atomic_load(&endless.returned));
	ck_assert_int_eq(f.called, 0);

	OK(evc_hold_end(c, hold));
	ev_run(loop, 0); /* returns once the evented join is over */
	OK(join_end(&endless));
	ck_assert_int_eq(f.called, 1);
	ck_assert_int_eq(f.freed, 0);
	ck_assert_int_eq(member.code, 0);
	/* those that waited when the round closed got the same */
	ck_assert_uint_eq(endless.v.n_ended, 2);
	ck_assert_uint_eq(f.v.n_ended, 2);
	ck_assert_int_eq(f.v.code, 0);
	ck_assert_double_eq(f.v.took, endless.v.took);
	ev_loop_destroy(loop);
}
END_TEST

struct rush {
	evc_coord *c;
	atomic_int tid[4], n, freed, bad;
};

static void *
join_and_free(void *arg)
{
	struct rush *r = arg;

	atomic_store(&r->tid[atomic_fetch_add(&r->n, 1)], own_tid());
	if (evc_join(r->c, NULL, NULL) != 0)
		atomic_fetch_add(&r->bad, 1);
	if (atomic_fetch_sub(&r->n, 1) == 4)
		atomic_store(&r->freed, evc_free(r->c) == 0);
	return NULL;
}

/* The others may still be on their way out of the join. */
START_TEST(J4_the_first_of_four_joins_frees_at_once)
{
	struct t_crowd k;
	int round, i;

	for (round = 0; round < 10; round++) {
		struct rush r = { .c = new_coord(NULL) };
		evc_id hold = 0;

		OK(evc_hold_begin(r.c, "hold", NULL, &hold));
		crowd_begin(&k, 4, join_and_free, &r, 0);
		/* a join that begins beside the free would be wrong use */
		for (i = 0; i < 4; i++) {
			UNTIL(atomic_load(&r.tid[i]) != 0);
			until_asleep(r.tid[i]);
		}
		OK(evc_hold_end(r.c, hold));
		crowd_end(&k);
		ck_assert_int_eq(r.freed, 1);
		ck_assert_int_eq(r.bad, 0);
	}
}
END_TEST

START_TEST(J4_many_joins_join_each_thread_once)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct joiner j[4];
	pthread_t t[3], list[6];
	int i;

	for (i = 0; i < 3; i++) {
		OK(pthread_create(&t[i], NULL, stay_thread, &g));
		list[i] = list[5 - i] = t[i]; /* each of them twice */
	}
	for (i = 0; i < 4; i++) {
		memset(&j[i], 0, sizeof(j[i]));
		j[i].c = c;
		j[i].opts.threads = list;
		j[i].opts.n_threads = 6;
		OK(pthread_create(&j[i].thread, NULL, joiner_main, &j[i]));
		UNTIL(atomic_load(&j[i].tid) != 0);
		until_asleep(j[i].tid);
	}
	atomic_store(&g.open, 1);
	for (i = 0; i < 4; i++) {
		OK(join_end(&j[i]));
		ck_assert_uint_eq(j[i].v.n_ended, 3);
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(J5_members_that_join_leave_out_themselves_and_each_other)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict a = { .code = 77 }, b = { .code = 77 };
	struct guest g = { 0 };

	OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
	OK(evc_thread_start(c, "a", join_as_member, &a, NULL, NULL));
	OK(evc_thread_start(c, "b", join_as_member, &b, NULL, NULL));
	UNTIL(atomic_load(&g.in));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(a.code, 0);
	ck_assert_int_eq(b.code, 0);
	ck_assert_uint_eq(a.n_stragglers, 0);
	OK(evc_free(c));
}
END_TEST

static evc_status
join_shortly(evc_coord *c, void *arg)
{
	evc_join_opts opts = { .grace = 0.05 };

	return evc_join(c, &opts, arg) < 0 ? EVC_INTERNAL : 0;
}

START_TEST(J5_a_member_that_joins_does_not_name_itself)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v = { 0 };
	evc_id hold = 0;

	OK(evc_hold_begin(c, "other", NULL, &hold));
	OK(evc_thread_start(c, "myself", join_shortly, &v, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(evc_joined(c));
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(v.code, EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "other");
	ck_assert_ptr_null(strstr(v.error.text, "myself"));
	OK(evc_free(c));
}
END_TEST

START_TEST(J6_a_blocking_join_needs_no_running_loop)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	struct joiner j;
	pthread_t t;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(pthread_create(&t, NULL, end_at_once, NULL));
	OK(evc_register_thread(c, "ends", t, NULL, NULL));
	join_begin(&j, c, 0, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j)); /* and nobody ran the loop */
	ck_assert_uint_eq(j.v.n_ended, 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(J7_stragglers_are_named_beside_an_error)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = 0.01 };
	char name[48];
	evc_verdict v;
	evc_id hold[100] = { 0 };
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "late-%d", i);
		OK(evc_hold_begin(c, name, NULL, &hold[i]));
	}
	evc_fail(c, EVC_INTERNAL, 0, "the error");
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_INTERNAL);
	ck_assert_uint_eq(v.n_stragglers, 2);
	HAS(v.error.text, "the error");
	HAS(v.error.text, "late-0");
	HAS(v.error.text, "late-1");
	OK(evc_hold_end(c, hold[0]));
	OK(evc_hold_end(c, hold[1]));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, "the error");
	OK(evc_clear_stop(c));

	/* more of them than the text has room for */
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "a-rather-long-name-%d", i);
		OK(evc_hold_begin(c, name, NULL, &hold[i]));
	}
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 100);
	HAS(v.error.text, "a-rather-long-name-0");
	HAS(v.error.text, " more");
	ck_assert_uint_lt(strlen(v.error.text), sizeof(v.error.text));
	for (i = 0; i < 100; i++)
		OK(evc_hold_end(c, hold[i]));
	OK(evc_free(c));
}
END_TEST

API_MAIN("join", J1_returns_when_the_last_member_has_ended_and_not_before,
	 J1_the_grace_is_honoured_whole_and_to_the_smallest,
	 J1_the_grace_comes_from_the_config,
	 J2_what_begins_while_a_join_waits_is_waited_for,
	 J2_after_the_stop_only_what_runs_already_comes_in,
	 J3_registered_are_ended_and_stragglers,
	 J4_every_join_has_its_own_grace,
	 J4_the_first_of_four_joins_frees_at_once,
	 J4_many_joins_join_each_thread_once,
	 J5_members_that_join_leave_out_themselves_and_each_other,
	 J5_a_member_that_joins_does_not_name_itself,
	 J6_a_blocking_join_needs_no_running_loop,
	 J7_stragglers_are_named_beside_an_error)
