/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_runner_done: what can ring has to be asked nothing.
 */
#include "../../support/runner_util.h"

#include <sched.h>

/* Say that it has ended; is_running goes on to say yes. */
static evc_status
done(evc_coord *c, struct machine *m, evc_status result)
{
	atomic_store(&m->done, 1);
	return evc_runner_done(c, m->id, result);
}

START_TEST(done_is_believed_and_rings)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1); /* for ever */
		machine_add(s.c, "rings", &m, s.far, 0);
		join_begin(&j, s.c, 0, 0);
		OK(done(s.c, &m, 0));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_uint_eq(j.v.n_ended, 1 + own_members(&s));
		machine_was_joined(&m, 0);
		REFUSED(EVC_NOT_FOUND, evc_runner_done(s.c, m.id, 0));
		end_setting(&s);
	}
}
END_TEST

struct ringing {
	struct machine m;
	evc_coord *c;
	evc_status status;
	int asked_before, asked_after;
	bool gone;
};

static void *
ring_main(void *arg)
{
	struct ringing *r = arg;
	double end = t_now() + T_LIMIT;

	r->asked_before = atomic_load(&r->m.asked);
	r->status = done(r->c, &r->m, 0);
	while (!(r->gone = is_gone(r->c, r->m.id)) && t_now() < end)
		t_sleep(0.001);
	r->asked_after = atomic_load(&r->m.asked);
	evc_request_stop(r->c, 0, NULL);
	return NULL;
}

/* evc_run probes nothing before the stop: so nothing but the ring helps. */
START_TEST(in_a_run_nobody_is_asked_and_done_is_heard)
{
	struct setting s;
	struct ringing r;
	pthread_t t;

	begin_setting(&s, BY_HOME, NULL);
	memset(&r, 0, sizeof(r));
	r.c = s.c;
	atomic_store(&r.m.runs, 1);
	machine_add(s.c, "rings", &r.m, NULL, 0);
	OK(pthread_create(&t, NULL, ring_main, &r));
	OK(evc_run(s.c, NULL, NULL));
	OK(pthread_join(t, NULL));
	OK(r.status);
	ck_assert(r.gone);
	ck_assert_int_eq(r.asked_after, r.asked_before);
	ck_assert_int_eq(r.asked_after, 0);
	machine_was_joined(&r.m, 0);
	end_setting(&s);
}
END_TEST

/* What done says, and what its join returns beside it. */
static void
results_mean(enum drive d, unsigned flags, evc_status said, evc_status joined,
	     evc_status verdict, unsigned n_errors, bool stops)
{
	struct setting s;
	struct machine m = { .result = joined };
	struct joiner j;
	evc_reason why;
	evc_id hold = 0;

	begin_setting(&s, d, NULL);
	atomic_store(&m.runs, 1);
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	machine_add(s.c, "machine", &m, s.far, flags);
	join_begin(&j, s.c, 0, 0);
	OK(done(s.c, &m, said));
	if (stops && said != 0) /* in the call itself */
		ck_assert(evc_should_stop(s.c));
	TURN_UNTIL(&s, is_gone(s.c, m.id));
	ck_assert_int_eq(evc_should_stop(s.c), stops);
	OK(evc_hold_end(s.c, hold));
	TURN_UNTIL(&s, atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), verdict);
	ck_assert_uint_eq(j.v.n_errors, n_errors);
	ck_assert_uint_eq(j.v.n_ended, 2 + own_members(&s));
	if (verdict != 0) {
		ck_assert_str_eq(j.v.error.who, "machine");
		ck_assert_uint_eq(j.v.error.by, m.id);
	}
	if (stops) {
		ck_assert_uint_eq(j.v.stop.kind, EVC_BY_MEMBER_END);
		ck_assert_str_eq(j.v.stop.who, "machine");
	}
	if (stops && n_errors < 2) /* one end is one reason */
		REFUSED(EVC_NOT_FOUND, evc_reason_get(s.c, 1, &why));
	ck_assert_int_eq(m.joins, 1);
	ck_assert_int_eq(m.wrong, 0);
	end_setting(&s);
}

START_TEST(its_result_means_what_a_threads_result_means)
{
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		results_mean(d, 0, 0, 0, 0, 0, false);
		results_mean(d, 0, EVC_OUT_OF_RANGE, 0, 0, 0, false);
		results_mean(d, 0, EVC_DATA_LOSS, 0, EVC_DATA_LOSS, 1, true);
		results_mean(d, 0, -EVC_DATA_LOSS, 0, EVC_DATA_LOSS, 1, true);
		results_mean(d, 0, 1000, 0, EVC_UNKNOWN, 1, true);
		results_mean(d, EVC_END_STOPS, 0, 0, 0, 0, true);
		results_mean(d, EVC_END_STOPS, EVC_OUT_OF_RANGE, 0, 0, 0, true);
		/* and counts beside what join returns */
		results_mean(d, 0, 0, EVC_ABORTED, EVC_ABORTED, 1, true);
		results_mean(d, 0, EVC_DATA_LOSS, EVC_ABORTED, EVC_DATA_LOSS, 2,
			     true);
	}
}
END_TEST

START_TEST(a_second_done_is_refused)
{
	struct setting s;
	struct machine m;
	struct guest g = { 0 };
	struct joiner j;
	evc_member_info info;
	evc_verdict v;

	/* nobody joins it yet */
	begin_setting(&s, BY_HOME, NULL);
	memset(&m, 0, sizeof(m));
	atomic_store(&m.runs, 1);
	machine_add(s.c, "machine", &m, NULL, 0);
	OK(done(s.c, &m, 0));
	OK(evc_member_get(s.c, m.id, &info));
	ck_assert_uint_eq(info.state, EVC_DONE);
	REFUSED(EVC_NOT_FOUND, evc_runner_done(s.c, m.id, EVC_INTERNAL));
	OK(evc_join(s.c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	machine_was_joined(&m, 0);
	end_setting(&s);

	/* it is being joined, and its join takes its time */
	begin_setting(&s, BY_JOINER, NULL);
	memset(&m, 0, sizeof(m));
	atomic_store(&m.runs, 1);
	m.inside = &g;
	machine_add(s.c, "machine", &m, NULL, 0);
	join_begin(&j, s.c, 0, 0);
	OK(done(s.c, &m, 0));
	UNTIL(atomic_load(&g.in));
	REFUSED(EVC_NOT_FOUND, evc_runner_done(s.c, m.id, EVC_INTERNAL));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_errors, 0);
	machine_was_joined(&m, 0);
	end_setting(&s);
}
END_TEST

static void
stop_and_be_done(void *arg)
{
	struct ringing *r = arg;

	machine_stop(&r->m);
	r->status = done(r->c, &r->m, 0);
}

static bool
ask_and_be_done(void *arg)
{
	struct ringing *r = arg;

	if (machine_runs(&r->m) && !atomic_load(&r->m.done))
		r->status = done(r->c, &r->m, 0);
	return true;
}

static evc_status
join_ringing(void *arg)
{
	return machine_join(&((struct ringing *)arg)->m);
}

static bool
ask_ringing(void *arg)
{
	return machine_runs(&((struct ringing *)arg)->m);
}

START_TEST(done_may_be_said_in_its_own_operations)
{
	static const evc_runner_ops in_stop = { ask_ringing, stop_and_be_done,
						join_ringing, NULL };
	static const evc_runner_ops in_ask = { ask_and_be_done, NULL,
					       join_ringing, NULL };
	struct setting s;
	struct ringing r;
	int d, i;

	for (d = 0; d < N_DRIVES; d++)
		for (i = 0; i < 2; i++) {
			evc_member_opts opts = { 0 };

			begin_setting(&s, d, NULL);
			opts.reactor = s.far;
			memset(&r, 0, sizeof(r));
			r.c = s.c;
			r.status = 77;
			atomic_store(&r.m.runs, 1);
			OK(evc_runner_add(s.c, "rings", i ? &in_ask : &in_stop,
					  &r, &opts, &r.m.id));
			OK(evc_request_stop(s.c, 0, NULL));
			OK(evc_join(s.c, NULL, NULL));
			OK(r.status);
			machine_was_joined(&r.m, i == 0);
			end_setting(&s);
		}
}
END_TEST

static void *
be_done_main(void *arg)
{
	struct ringing *r = arg;

	r->status = done(r->c, &r->m, 0);
	atomic_store(&r->m.runs, 0);
	return NULL;
}

/*
 * It may be asked at the same time, by joins and by evc_all_stopped; and who
 * joined may free the coordinator at once.
 */
START_TEST(done_beside_joins_questions_and_free)
{
	pthread_t t;
	int i;

	for (i = 0; i < 200; i++) {
		evc_coord *c = new_coord(NULL);
		struct ringing r = { .c = c, .status = 77 };

		atomic_store(&r.m.runs, 1);
		machine_add(c, "last", &r.m, NULL, 0);
		OK(pthread_create(&t, NULL, be_done_main, &r));
		if (i % 2)
			while (!evc_all_stopped(c))
				sched_yield();
		OK(evc_join(c, NULL, NULL));
		machine_was_joined(&r.m, 0);
		atomic_store(&r.m.over, 0); /* runs is about to be set */
		OK(evc_free(c));
		OK(pthread_join(t, NULL));
		OK(r.status);
	}
}
END_TEST

API_MAIN("runner_done", done_is_believed_and_rings,
	 in_a_run_nobody_is_asked_and_done_is_heard,
	 its_result_means_what_a_threads_result_means, a_second_done_is_refused,
	 done_may_be_said_in_its_own_operations,
	 done_beside_joins_questions_and_free)
