/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners that come late: while a join waits already, while the home loop runs,
 * and after the stop.
 */
#include "../../support/runner_util.h"

/* Nothing else wakes that join: a hold is all that it waits for. */
START_TEST(added_while_a_join_waits_it_is_asked_and_joined)
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
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		join_begin(&j, s.c, 0, 0);
		atomic_store(&m.runs, 1);
		machine_add(s.c, "new", &m, s.far, 0);
		TURN_UNTIL(&s, atomic_load(&m.asked) > 1);
		atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, is_gone(s.c, m.id));
		machine_was_joined(&m, 0);
		ck_assert(!atomic_load(&j.returned));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		end_setting(&s);
	}
}
END_TEST

START_TEST(added_after_the_stop_while_a_join_waits_it_is_told)
{
	struct setting s;
	struct machine m, first;
	struct joiner j;
	evc_id hold;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		memset(&first, 0, sizeof(first));
		hold = 0;
		m.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		atomic_store(&first.runs, 1);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		if (d == BY_FAR_LOOP) /* keeps that loop there */
			machine_add(s.c, "first", &first, s.far, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		join_begin(&j, s.c, INFINITY, 0);
		machine_add(s.c, "new", &m, s.far, 0);
		TURN_UNTIL(&s, is_gone(s.c, m.id));
		machine_was_joined(&m, 1);
		ck_assert(!atomic_load(&j.returned));
		atomic_store(&first.runs, 0);
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		end_setting(&s);
	}
}
END_TEST

struct adding {
	struct machine m;
	evc_coord *c;
	evc_status status;
	bool told;
};

static void *
add_main(void *arg)
{
	struct adding *a = arg;
	double end = t_now() + T_LIMIT;

	t_sleep(0.02);
	a->status = evc_runner_add(a->c, "new", &machine_ops, &a->m, NULL,
				   &a->m.id);
	evc_request_stop(a->c, 0, NULL);
	while (!(a->told = atomic_load(&a->m.stops) == 1) && t_now() < end)
		t_sleep(0.001);
	atomic_store(&a->m.runs, 0);
	return NULL;
}

START_TEST(added_while_the_home_loop_runs_it_is_told_there)
{
	struct setting s;
	struct adding a = { .status = 77 };
	evc_verdict v;
	pthread_t t;

	begin_setting(&s, BY_HOME, NULL);
	a.c = s.c;
	atomic_store(&a.m.runs, 1);
	OK(pthread_create(&t, NULL, add_main, &a));
	OK(evc_run(s.c, NULL, &v));
	OK(pthread_join(t, NULL));
	OK(a.status);
	ck_assert(a.told);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_int_eq(a.m.stop_tid, own_tid());
	ck_assert_int_ne(a.m.join_tid, own_tid()); /* no reactor named */
	machine_was_joined(&a.m, 1);
	end_setting(&s);
}
END_TEST

/* The table and the name were copied: they may go. */
START_TEST(its_table_and_its_name_are_copied)
{
	struct setting s;
	struct machine m;
	evc_verdict v;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts opts = { 0 };
		evc_runner_ops ops = machine_ops;
		char name[] = "copied", text[4096];

		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		opts.reactor = s.far;
		m.ends_at_stop = true;
		m.word = "word";
		atomic_store(&m.runs, 1);
		OK(evc_runner_add(s.c, name, &ops, &m, &opts, &m.id));
		memset(&ops, 0, sizeof(ops));
		memset(name, 'x', sizeof(name) - 1);
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "copied");
		HAS(text, "word");
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, &v));
		machine_was_joined(&m, 1);
		end_setting(&s);
	}
}
END_TEST

/* The id stands before the first call that may ask for it. */
struct early {
	evc_id id;
	atomic_int without;
};

static bool
early_runs(void *arg)
{
	struct early *e = arg;

	if (e->id == 0)
		atomic_fetch_add(&e->without, 1);
	return false;
}

START_TEST(its_id_is_set_before_anything_is_called)
{
	static const evc_runner_ops ops = { .is_running = early_runs };
	struct setting s;
	struct early e[100];
	struct joiner j;
	evc_id hold;
	int d, i;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		memset(e, 0, sizeof(e));
		opts.reactor = s.far;
		hold = 0;
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		join_begin(&j, s.c, 0, 0);
		for (i = 0; i < 100; i++) {
			OK(evc_runner_add(s.c, "early", &ops, &e[i], &opts,
					  &e[i].id));
			if (s.loop != NULL)
				ev_run(s.loop, EVRUN_NOWAIT);
		}
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		for (i = 0; i < 100; i++)
			ck_assert_int_eq(e[i].without, 0);
		end_setting(&s);
	}
}
END_TEST

START_TEST(added_after_the_stop_it_is_told_and_waited_for)
{
	struct setting s;
	struct machine m, n;
	evc_verdict v;
	evc_id hold = 0;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts late = { .flags = EVC_AFTER_STOP };

		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		memset(&n, 0, sizeof(n));
		m.ends_at_stop = n.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		atomic_store(&n.runs, 1);
		/* the far loop would leave, with nothing left to do */
		machine_add(s.c, "first", &m, s.far, 0);
		m.ends_at_stop = d != BY_FAR_LOOP;
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_hold_begin(s.c, "hold", &late, &hold));
		machine_add(s.c, "second", &n, s.far, 0);
		if (s.loop != NULL || s.far != NULL) /* no join is needed */
			TURN_UNTIL(&s, atomic_load(&n.stops) == 1);
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(s.c));
		atomic_store(&m.runs, 0);
		OK(evc_hold_end(s.c, hold));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 3 + own_members(&s));
		machine_was_joined(&m, m.stops);
		machine_was_joined(&n, 1);
		end_setting(&s);
	}
}
END_TEST

API_MAIN("runner_add", added_while_a_join_waits_it_is_asked_and_joined,
	 added_after_the_stop_while_a_join_waits_it_is_told,
	 added_while_the_home_loop_runs_it_is_told_there,
	 its_table_and_its_name_are_copied,
	 its_id_is_set_before_anything_is_called,
	 added_after_the_stop_it_is_told_and_waited_for)
