/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups, stepped: who has waited for a stop looks around while the group
 * is started again, in vain, and that start is being shut down.
 */
#include "schedules.h"

/* A group of which the first start succeeds alone; what is shut down after
   another one stays in its shutdown until it is let go. */
struct team {
	evc_registry *reg;
	evc_workers *group;
	atomic_int n_starts, n_shutdowns, open;
};

static evc_status
beat(evc_workers *group, unsigned id, void *arg)
{
	(void)id;
	(void)arg;
	evc_sleep(evc_workers_scope(group), 0.001);
	return 0;
}

static evc_status
start_once(void *arg)
{
	struct team *t = arg;

	return atomic_fetch_add(&t->n_starts, 1) == 0 ? 0 : EVC_DATA_LOSS;
}

static void
stay_in_others(evc_workers *group, void *arg)
{
	struct team *t = arg;

	(void)group;
	if (atomic_fetch_add(&t->n_shutdowns, 1) == 0)
		return;
	while (!atomic_load(&t->open))
		t_sleep(0.001);
}

static void
begin(struct team *t)
{
	evc_workers_opts o = { .n_threads = 1, .shutdown = stay_in_others };

	memset(t, 0, sizeof(*t));
	o.state.start = start_once;
	o.state.arg = t;
	OK(evc_registry_new(NULL, &t->reg));
	OK(evc_workers_init(t->reg, "team", beat, t, &o, &t->group, NULL));
	OK(evc_workers_start(t->group));
}

static void
end(struct team *t)
{
	seam_reset();
	OK(evc_workers_free(t->group));
	OK(evc_registry_free(t->reg));
}

static evc_status
do_start(evc_coord *c, void *arg)
{
	(void)c;
	return evc_workers_start(arg);
}

static evc_status
do_stop(evc_coord *c, void *arg)
{
	evc_join_opts generous = { .grace = 60 };

	(void)c;
	return evc_workers_stop(arg, &generous);
}

static evc_status
do_wait_finish(evc_coord *c, void *arg)
{
	(void)c;
	return evc_workers_wait_finish(arg, 60) ? 0 : EVC_ABORTED;
}

/* Who stands at h has seen the workers end.  A start fails, and is in its
   shutdown; that is none of his business: he returns 0. */
static void
is_not_late(struct team *t, struct actor *a, int h)
{
	struct actor other;

	HELD(h);
	actor_begin(&other, do_start, NULL, t->group);
	UNTIL(atomic_load(&t->n_shutdowns) == 2);
	OK(actor_go(a, h));
	atomic_store(&t->open, 1);
	ck_assert_int_eq(actor_end(&other), EVC_DATA_LOSS);
	end(t);
}

/* Fails when a stop and the start after it, which did not succeed, are taken for
   one: "still alive: team/shutdown", with all the time left. */
START_TEST(a_stop_names_nobody_of_a_later_start)
{
	struct actor a;
	struct team t;
	int h;

	begin(&t);
	h = seam_hold("lock", "await", 1);
	actor_begin(&a, do_stop, NULL, t.group);
	is_not_late(&t, &a, h);
}
END_TEST

/* Fails when the shutdown of another start counts. */
START_TEST(who_waits_for_a_finish_sees_only_that_one)
{
	struct actor a;
	struct team t;
	int h;

	begin(&t);
	h = seam_hold("lock", "is_called", 1);
	actor_begin(&a, do_wait_finish, NULL, t.group);
	actor_sleeps(&a);
	OK(evc_workers_stop(t.group, NULL));
	is_not_late(&t, &a, h);
}
END_TEST

SCHEDULES_MAIN("workers", a_stop_names_nobody_of_a_later_start,
	       who_waits_for_a_finish_sees_only_that_one)
