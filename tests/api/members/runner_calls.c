/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of a runner are called one at a time, so that its join may
 * free what the others look at; whoever is in one passes on what has become due
 * meanwhile.
 */
#include "../../support/runner_util.h"

#include <sched.h>

/* One that takes its time to say what it does. */
struct slow {
	struct machine m;
	struct guest g;
	evc_coord *c;
	atomic_int reported;
};

static bool
slow_runs(void *arg)
{
	return machine_runs(&((struct slow *)arg)->m);
}

static evc_status
slow_join(void *arg)
{
	return machine_join(&((struct slow *)arg)->m);
}

static void
slow_says(char *buf, size_t n, void *arg)
{
	struct slow *s = arg;

	stay(NULL, &s->g);
	snprintf(buf, n, "slow");
}

static void *
report_main(void *arg)
{
	struct slow *s = arg;
	char text[4096];

	evc_report(s->c, EVC_REPORT_TEXT, text, sizeof(text));
	atomic_store(&s->reported, 1);
	return NULL;
}

/* Then nobody else looks: who describes it has to pass it on. */
START_TEST(done_is_heard_beside_a_report)
{
	static const evc_runner_ops ops = { slow_runs, NULL, slow_join,
					    slow_says };
	struct setting s;
	struct slow w;
	struct joiner j;
	pthread_t t;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		evc_member_opts opts = { 0 };

		begin_setting(&s, d, NULL);
		memset(&w, 0, sizeof(w));
		w.c = s.c;
		opts.reactor = s.far;
		atomic_store(&w.m.runs, 1);
		OK(evc_runner_add(s.c, "slow", &ops, &w, &opts, &w.m.id));
		join_begin(&j, s.c, 0, 0);
		for (;;) { /* a report that meets a question does not ask */
			atomic_store(&w.reported, 0);
			OK(pthread_create(&t, NULL, report_main, &w));
			UNTIL(atomic_load(&w.g.in) || atomic_load(&w.reported));
			if (atomic_load(&w.g.in))
				break;
			OK(pthread_join(t, NULL));
		}
		atomic_store(&w.m.done, 1);
		OK(evc_runner_done(s.c, w.m.id, 0));
		let_come();
		ck_assert_int_eq(w.m.joins, 0);
		atomic_store(&w.g.open, 1);
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		OK(pthread_join(t, NULL));
		machine_was_joined(&w.m, 0);
		end_setting(&s);
	}
}
END_TEST

/* One that sees whether two of its operations run at the same time. */
struct single {
	struct machine m;
	atomic_int inside, together;
};

static void
enter(struct single *s)
{
	if (atomic_fetch_add(&s->inside, 1) != 0)
		atomic_fetch_add(&s->together, 1);
	t_sleep(0.001);
}

static bool
single_runs(void *arg)
{
	struct single *s = arg;
	bool runs;

	enter(s);
	runs = machine_runs(&s->m);
	atomic_fetch_sub(&s->inside, 1);
	return runs;
}

static void
single_stop(void *arg)
{
	struct single *s = arg;

	enter(s);
	machine_stop(&s->m);
	atomic_fetch_sub(&s->inside, 1);
}

static evc_status
single_join(void *arg)
{
	struct single *s = arg;

	enter(s);
	machine_join(&s->m);
	atomic_fetch_sub(&s->inside, 1);
	return 0;
}

static void *
ask_all(void *arg)
{
	while (!evc_all_stopped(arg))
		sched_yield();
	return NULL;
}

/* Its join may free what is_running looks at. */
START_TEST(its_operations_are_never_called_side_by_side)
{
	static const evc_runner_ops ops = { single_runs, single_stop,
					    single_join, NULL };
	struct single s;
	struct joiner j;
	pthread_t t;
	int i;

	for (i = 0; i < 30; i++) {
		evc_coord *c = new_coord(NULL);

		memset(&s, 0, sizeof(s));
		memset(&j, 0, sizeof(j));
		j.c = c;
		atomic_store(&s.m.runs, 1);
		OK(evc_runner_add(c, "single", &ops, &s, NULL, &s.m.id));
		OK(pthread_create(&j.thread, NULL, joiner_main, &j));
		OK(pthread_create(&t, NULL, ask_all, c));
		UNTIL(atomic_load(&s.m.asked) > 2);
		if (i % 2)
			OK(evc_request_stop(c, 0, NULL));
		atomic_store(&s.m.done, 1);
		OK(evc_runner_done(c, s.m.id, 0));
		OK(evc_join(c, NULL, NULL));
		OK(join_end(&j));
		OK(pthread_join(t, NULL));
		ck_assert_int_eq(s.together, 0);
		machine_was_joined(&s.m, s.m.stops);
		OK(evc_free(c));
	}
}
END_TEST

API_MAIN("runner_calls", done_is_heard_beside_a_report,
	 its_operations_are_never_called_side_by_side)
