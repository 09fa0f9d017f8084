/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that wait in a queue of another coordinator than their group's: its
 * stop is no error of theirs, and no reason to begin again.
 */
#include "../../support/queue_util.h"

enum { BY_POPPING, BY_PUSHING, BY_DRAINING };

struct waits {
	evc_queue *q;
	int what;
};

static evc_status
wait_in_queue(evc_group *group, unsigned id, void *arg)
{
	struct waits *w = arg;
	evc_status st;
	void *item;

	(void)group;
	(void)id;
	if (w->what == BY_POPPING)
		st = evc_queue_pop(w->q, &item, INFINITY);
	else if (w->what == BY_PUSHING)
		st = evc_queue_push(w->q, ITEM(2), INFINITY);
	else
		st = evc_queue_drain(w->q, INFINITY);
	return st;
}

/* The group is of a registry that knows nothing of the program's coordinator. */
static evc_group_info
ends(int what, bool cancel, evc_registry *reg)
{
	evc_group_opts o = { .on_error = EVC_GROUP_RESTART,
			     .n_threads = 2,
			     .restart = { .first = 0.001, .times = 3 } };
	evc_coord *c = new_coord(NULL);
	struct waits w = { .q = new_queue(c, 1, 0), .what = what };
	evc_group_info info;
	evc_group *group;

	if (what != BY_POPPING)
		push_now(w.q, 1, 1);
	OK(evc_group_init(reg, "outside", wait_in_queue, &w, &o, &group, NULL));
	OK(evc_group_start(group));
	if (what == BY_POPPING)
		UNTIL(info_of(w.q).n_popping == 2);
	else if (what == BY_PUSHING)
		UNTIL(info_of(w.q).n_pushing == 2);
	if (cancel)
		OK(evc_queue_cancel(w.q));
	else
		OK(evc_request_stop(c, 0, "the end"));
	UNTIL(evc_group_get(group, &info) == 0 &&
	      info.state == EVC_GROUP_STOPPED);
	OK(evc_group_free(group));
	drop_queue(c, w.q);
	return info;
}

START_TEST(a_stop_of_the_queues_coordinator_is_no_error)
{
	evc_registry *own;
	evc_group_info info;
	int what, mine;

	OK(evc_registry_new(NULL, &own));
	for (what = BY_POPPING; what <= BY_DRAINING; what++)
		for (mine = 0; mine < 2; mine++) {
			info = ends(what, false, mine ? own : NULL);
			ck_assert_uint_eq(info.n_errors, 0);
			ck_assert_uint_eq(info.n_restarts, 0);
			ck_assert_int_eq(info.stop.code, 0);
		}
	OK(evc_registry_free(own));
}
END_TEST

/* Nobody has stopped: then it is what the program makes of it. */
START_TEST(a_cancel_of_the_queue_is_an_error)
{
	evc_group_info info = ends(BY_POPPING, true, NULL);

	ck_assert_uint_ge(info.n_errors, 4);
	ck_assert_int_eq(info.stop.code, EVC_CANCELLED);
}
END_TEST

API_MAIN("workers_queue", a_stop_of_the_queues_coordinator_is_no_error,
	 a_cancel_of_the_queue_is_an_error)
