/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners that are taken out of the register: no operation is called
 * afterwards, nobody waits for them any more, and whoever takes one out waits
 * while one of its operations runs elsewhere.
 */
#include "../../support/runner_util.h"

START_TEST(a_removed_runner_is_given_up_and_never_called_again)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	evc_id hold;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		hold = 0;
		atomic_store(&m.runs, 1);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		machine_add(s.c, "machine", &m, s.far, 0);
		join_begin(&j, s.c, 0, 0);
		TURN_UNTIL(&s, atomic_load(&m.asked) > 2);
		OK(evc_member_remove(s.c, m.id));
		atomic_store(&m.over, 1);
		atomic_store(&m.runs, 0);
		REFUSED(EVC_NOT_FOUND, evc_member_remove(s.c, m.id));
		REFUSED(EVC_NOT_FOUND, evc_runner_done(s.c, m.id, 0));
		ck_assert(is_gone(s.c, m.id));
		ck_assert(!evc_should_stop(s.c));
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_uint_eq(j.v.n_stragglers, 0);
		ck_assert_int_eq(m.wrong + m.stops + m.joins, 0);
		end_setting(&s);
	}
}
END_TEST

START_TEST(a_join_that_waits_for_nothing_else_ends_when_it_is_removed)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		machine_add(s.c, "machine", &m, NULL, 0);
		join_begin(&j, s.c, INFINITY, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		TURN_UNTIL(&s, atomic_load(&m.stops) == 1);
		OK(evc_member_remove(s.c, m.id));
		atomic_store(&m.over, 1);
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_int_eq(m.wrong + m.joins, 0);
		end_setting(&s);
	}
}
END_TEST

struct remover {
	struct machine m;
	evc_coord *c;
	int in; /* 0: is_running, 1: stop, 2: join */
	atomic_int removed, tid;
	struct guest *stays; /* before it removes */
};

static void
remove_in(struct remover *r, int here)
{
	if (r->stays != NULL && here == r->in)
		stay(NULL, r->stays);
	else if (here == r->in) {
		atomic_store(&r->removed,
			     evc_member_remove(r->c, r->m.id) == 0 ? 1 : -1);
		atomic_store(&r->m.over, 1);
	}
}

static bool
removing_runs(void *arg)
{
	struct remover *r = arg;
	bool runs = machine_runs(&r->m);

	remove_in(r, 0);
	return runs;
}

static void
removing_stop(void *arg)
{
	struct remover *r = arg;

	machine_stop(&r->m);
	remove_in(r, 1);
}

static evc_status
removing_join(void *arg)
{
	struct remover *r = arg;
	evc_status st = machine_join(&r->m);

	remove_in(r, 2);
	return st;
}

static const evc_runner_ops removing_ops = { removing_runs, removing_stop,
					     removing_join, NULL };

START_TEST(removed_from_inside_it_is_called_no_more)
{
	struct setting s;
	struct remover r;
	evc_verdict v;
	int d, in;

	for (d = 0; d < N_DRIVES; d++)
		for (in = 0; in < 2; in++) {
			evc_member_opts opts = { 0 };

			begin_setting(&s, d, NULL);
			opts.reactor = s.far;
			memset(&r, 0, sizeof(r));
			r.c = s.c;
			r.in = in;
			atomic_store(&r.m.runs, 1);
			OK(evc_runner_add(s.c, "leaves", &removing_ops, &r,
					  &opts, &r.m.id));
			OK(evc_request_stop(s.c, 0, NULL));
			OK(evc_join(s.c, NULL, &v));
			ck_assert_int_eq(r.removed, 1);
			ck_assert_int_eq(r.m.wrong + r.m.joins, 0);
			ck_assert_int_le(r.m.stops, 1);
			end_setting(&s);
		}
}
END_TEST

static void *
remove_main(void *arg)
{
	struct remover *r = arg;

	atomic_store(&r->tid, own_tid());
	atomic_store(&r->removed,
		     evc_member_remove(r->c, r->m.id) == 0 ? 1 : -1);
	return NULL;
}

/* In whichever operation it is, on whichever thread. */
START_TEST(removing_waits_while_an_operation_runs_elsewhere)
{
	struct setting s;
	struct remover r;
	struct guest g;
	struct joiner j;
	pthread_t t;
	int d, in;

	for (d = 0; d < N_DRIVES; d += 2)
		for (in = 0; in < 3; in++) {
			evc_member_opts opts = { 0 };

			begin_setting(&s, d, NULL);
			opts.reactor = s.far;
			memset(&r, 0, sizeof(r));
			memset(&g, 0, sizeof(g));
			r.c = s.c;
			r.in = in;
			r.stays = &g;
			r.m.ends_at_stop = in == 2;
			atomic_store(&r.m.runs, 1);
			OK(evc_runner_add(s.c, "busy", &removing_ops, &r, &opts,
					  &r.m.id));
			memset(&j, 0, sizeof(j));
			j.c = s.c;
			OK(pthread_create(&j.thread, NULL, joiner_main, &j));
			OK(evc_request_stop(s.c, 0, NULL));
			UNTIL(atomic_load(&g.in));
			OK(pthread_create(&t, NULL, remove_main, &r));
			UNTIL(atomic_load(&r.tid));
			until_asleep(r.tid);
			ck_assert(!atomic_load(&r.removed));
			atomic_store(&g.open, 1);
			OK(pthread_join(t, NULL));
			ck_assert_int_eq(r.removed, 1);
			atomic_store(&r.m.over, 1);
			OK(join_end(&j));
			ck_assert_int_eq(r.m.wrong, 0);
			ck_assert_int_eq(r.m.joins, in == 2);
			end_setting(&s);
		}
}
END_TEST

API_MAIN("runner_remove", a_removed_runner_is_given_up_and_never_called_again,
	 a_join_that_waits_for_nothing_else_ends_when_it_is_removed,
	 removed_from_inside_it_is_called_no_more,
	 removing_waits_while_an_operation_runs_elsewhere)
