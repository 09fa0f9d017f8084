/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who obeys a stop that is not yet its own has made no error, and who stops its
 * own group is waited for by others.
 */
#include "../../support/workers_util.h"

/* Hears the stop of what is above, which comes a moment before its own. */
static evc_status
wait_above(evc_group *group, unsigned id, void *arg)
{
	(void)group;
	(void)id;
	return evc_sleep(arg, INFINITY);
}

START_TEST(who_obeys_the_stop_above_has_made_no_error)
{
	int i;

	for (i = 0; i < 100; i++) {
		evc_coord *c = new_coord(NULL);
		evc_group_opts o = { .coord = c,
				     .n_threads = 4,
				     .on_error = EVC_GROUP_RESTART };
		evc_registry *reg = new_registry(0);
		evc_worker_error e;
		evc_group *g;

		OK(evc_group_init(reg, "w", wait_above, c, &o, &g, NULL));
		OK(evc_registry_start(reg));
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		REFUSED(EVC_NOT_FOUND, evc_group_error_get(g, 0, &e));
		OK(evc_registry_free(reg));
		OK(evc_free(c));
	}
}
END_TEST

/* ---- who is waited for ---- */

struct stopper {
	atomic_int stopped, open;
};

/* Stops its group, and goes on for a while. */
static evc_status
stop_and_stay(evc_group *group, unsigned id, void *arg)
{
	struct stopper *s = arg;

	(void)id;
	(void)evc_group_stop(group, NULL);
	atomic_store(&s->stopped, 1);
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	return 0;
}

START_TEST(a_worker_that_stops_its_group_is_waited_for_by_others)
{
	struct stopper s = { .open = 0 };
	evc_group_opts o = { .n_threads = 1 };
	evc_join_opts soon = { .grace = 0.01 };
	evc_registry *reg = new_registry(0);
	evc_group *g;

	OK(evc_group_init(reg, "w", stop_and_stay, &s, &o, &g, NULL));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&s.stopped));
	ck_assert(!evc_group_wait_finish(g, 0.01));
	ck_assert_int_eq(evc_group_stop(g, &soon), EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "w/0");
	REFUSED(EVC_FAILED_PRECONDITION, evc_group_start(g));
	atomic_store(&s.open, 1);
	ck_assert(evc_group_wait_finish(g, T_LIMIT));
	OK(evc_registry_free(reg));
}
END_TEST

/* The one that stops waits for the other, and has something to do afterwards:
   meanwhile nobody is told that all have ended. */
static evc_status
stop_or_stay(evc_group *group, unsigned id, void *arg)
{
	struct stopper *s = arg;

	if (id == 0) {
		atomic_store(&s->stopped, 1);
		(void)evc_group_stop(group, NULL);
		t_sleep(0.02);
		return 0;
	}
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	return 0;
}

START_TEST(wait_finish_is_true_only_when_all_have_ended)
{
	int i;

	for (i = 0; i < 20; i++) {
		struct stopper s = { .open = 0 };
		evc_registry *reg = new_registry(0);
		evc_group_info info;
		evc_group *g;

		OK(evc_group_init(reg, "w", stop_or_stay, &s, NULL, &g, NULL));
		OK(evc_registry_start(reg));
		UNTIL(atomic_load(&s.stopped));
		atomic_store(&s.open, 1);
		ck_assert(evc_group_wait_finish(g, T_LIMIT));
		OK(evc_group_get(g, &info));
		ck_assert_uint_eq(info.n_live, 0);
		ck_assert_uint_eq(info.state, EVC_GROUP_STOPPED);
		OK(evc_registry_free(reg));
	}
}
END_TEST

API_MAIN("workers_obey", who_obeys_the_stop_above_has_made_no_error,
	 a_worker_that_stops_its_group_is_waited_for_by_others,
	 wait_finish_is_true_only_when_all_have_ended)
