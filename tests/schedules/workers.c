/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups, stepped: who has waited for a stop looks around while the group
 * is started again, in vain, and that start is being shut down, or while somebody
 * else cleans up; and who looks at a group that is about to stop sees why.
 */
#include "schedules.h"

/* A group of which the first start succeeds alone; what is shut down after
   another one stays in its shutdown until it is let go. */
struct team {
	evc_registry *reg;
	evc_group *group;
	atomic_int n_starts, n_shutdowns, open;
};

static evc_status
beat(evc_group *group, unsigned id, void *arg)
{
	(void)id;
	(void)arg;
	evc_sleep(evc_group_scope(group), 0.001);
	return 0;
}

static evc_status
start_once(void *arg)
{
	struct team *t = arg;

	return atomic_fetch_add(&t->n_starts, 1) == 0 ? 0 : EVC_DATA_LOSS;
}

static void
stay_in_others(evc_group *group, void *arg)
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
	evc_group_opts o = { .n_threads = 1, .shutdown = stay_in_others };

	memset(t, 0, sizeof(*t));
	o.state.start = start_once;
	o.state.arg = t;
	OK(evc_registry_new(NULL, &t->reg));
	OK(evc_group_init(t->reg, "team", beat, t, &o, &t->group, NULL));
	OK(evc_group_start(t->group));
}

static void
end(struct team *t)
{
	seam_reset();
	OK(evc_group_free(t->group));
	OK(evc_registry_free(t->reg));
}

static evc_status
do_start(evc_coord *c, void *arg)
{
	(void)c;
	return evc_group_start(arg);
}

static evc_status
do_stop(evc_coord *c, void *arg)
{
	evc_join_opts generous = { .grace = 60 };

	(void)c;
	return evc_group_stop(arg, &generous);
}

static evc_status
do_wait_finish(evc_coord *c, void *arg)
{
	(void)c;
	return evc_group_wait_finish(arg, 60) ? 0 : EVC_ABORTED;
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
	h = seam_hold("lock", "await_workers", 1);
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
	h = seam_hold("lock", "evc__group_calls_over", 1);
	actor_begin(&a, do_wait_finish, NULL, t.group);
	actor_sleeps(&a);
	OK(evc_group_stop(t.group, NULL));
	is_not_late(&t, &a, h);
}
END_TEST

/* ---- the last worker, which waits itself ---- */

/* A worker of "stopper" stops or awaits "team", one of "team" waits for the end
   of "third": so it is left out of the wait. */
static struct {
	evc_registry *reg;
	evc_group *stopper, *team, *third;
	bool finish;     /* wait_finish, and no stop */
	evc_status st;   /* what the stopper's call said */
	atomic_int go, waits, cleaning, open, done, tid;
} rig;

static evc_status
stop_team(evc_group *group, unsigned id, void *arg)
{
	(void)group;
	(void)id;
	(void)arg;
	while (!atomic_load(&rig.go))
		t_sleep(0.001);
	atomic_store(&rig.tid, own_tid());
	rig.st = rig.finish ? do_wait_finish(NULL, rig.team) :
			      do_stop(NULL, rig.team);
	atomic_store(&rig.done, 1);
	return EVC_OUT_OF_RANGE;
}

static evc_status
await_third(evc_group *group, unsigned id, void *arg)
{
	evc_group_info info = { .state = 0 };

	(void)group;
	(void)id;
	(void)arg;
	while (info.state != EVC_GROUP_RUNNING) {
		t_sleep(0.001);
		(void)evc_group_get(rig.third, &info);
	}
	atomic_store(&rig.waits, 1);
	(void)evc_group_wait_finish(rig.third, 60);
	return EVC_OUT_OF_RANGE;
}

static void
clean_slowly(void *arg)
{
	(void)arg;
	atomic_store(&rig.cleaning, 1);
	while (!atomic_load(&rig.open))
		t_sleep(0.001);
}

/* Fails when it takes the cleanup of somebody else for one that it has waited
   for: "still alive: team/cleanup", with all its time left. */
static void
cleanup_is_waited_for(bool finish, const char *func)
{
	evc_group_opts one = { .n_threads = 1 }, slow = { .n_threads = 1 };
	struct actor a;
	int h;

	memset(&rig, 0, sizeof(rig));
	rig.finish = finish;
	slow.state.cleanup = clean_slowly;
	OK(evc_registry_new(NULL, &rig.reg));
	OK(evc_group_init(rig.reg, "stopper", stop_team, NULL, &one,
			  &rig.stopper, NULL));
	OK(evc_group_init(rig.reg, "team", await_third, NULL, &slow, &rig.team,
			  NULL));
	OK(evc_group_init(rig.reg, "third", beat, NULL, &one, &rig.third,
			  NULL));
	OK(evc_registry_start(rig.reg));
	UNTIL(atomic_load(&rig.waits));
	h = seam_hold("lock", func, 1);
	atomic_store(&rig.go, 1);
	HELD(h);
	actor_begin(&a, do_stop, NULL, rig.team);
	UNTIL(!evc_group_is_active(rig.team));
	OK(evc_group_stop(rig.third, NULL));
	UNTIL(atomic_load(&rig.cleaning));
	seam_release(h);
	/* A wrong answer comes at once. */
	until_asleep(atomic_load(&rig.tid));
	atomic_store(&rig.open, 1);
	OK(actor_end(&a));
	UNTIL(atomic_load(&rig.done));
	OK(rig.st);
	OK(evc_registry_stop(rig.reg, NULL));
	OK(evc_registry_free(rig.reg));
}

START_TEST(a_workers_stop_waits_for_a_cleanup_of_others)
{
	cleanup_is_waited_for(false, "await_workers");
}
END_TEST

START_TEST(a_workers_wait_waits_for_a_cleanup_of_others)
{
	cleanup_is_waited_for(true, "evc__group_calls_over");
}
END_TEST

/* ---- why it stopped ---- */

static evc_status
do_get(evc_coord *c, void *arg)
{
	(void)c;
	return evc_group_get(rig.team, arg);
}

/* A stop, by a call or by its scope, has come so far; who looks at the group now
   sees that it runs, or that it stops, and why it does this time. */
static void
says_why(bool by_scope, const char *op, const char *func)
{
	evc_group_opts one = { .n_threads = 1 };
	evc_group_info info;
	struct actor a, get;
	int h;

	OK(evc_registry_new(NULL, &rig.reg));
	OK(evc_group_init(rig.reg, "team", beat, NULL, &one, &rig.team, NULL));
	OK(evc_group_start(rig.team));
	OK(evc_request_stop(evc_group_scope(rig.team), 0, "the first"));
	UNTIL(evc_group_get(rig.team, &info) == 0 &&
	      info.state == EVC_GROUP_STOPPED);
	ck_assert_str_eq(info.stop.text, "the first");
	OK(evc_group_start(rig.team));
	h = seam_hold(op, func, 1);
	if (by_scope)
		OK(evc_request_stop(evc_group_scope(rig.team), 0, "again"));
	else
		actor_begin(&a, do_stop, NULL, rig.team);
	HELD(h);
	actor_begin(&get, do_get, NULL, &info);
	UNTIL(atomic_load(&get.tid) != 0);
	until_asleep(atomic_load(&get.tid));
	seam_release(h);
	OK(actor_end(&get));
	if (info.state != EVC_GROUP_RUNNING)
		ck_assert_str_eq(info.stop.text,
				 by_scope ? "again" : "evc_group_stop");
	if (!by_scope)
		OK(actor_end(&a));
	OK(evc_registry_stop(rig.reg, NULL));
	OK(evc_registry_free(rig.reg));
}

START_TEST(who_looks_at_a_stop_sees_why)
{
	says_why(false, NULL, "record_request");
	says_why(false, "lock", "log_stop");
	says_why(true, "lock", "claim_asked");
	says_why(true, "lock", "log_stop");
}
END_TEST

SCHEDULES_MAIN("workers", a_stop_names_nobody_of_a_later_start,
	       who_waits_for_a_finish_sees_only_that_one,
	       a_workers_stop_waits_for_a_cleanup_of_others,
	       a_workers_wait_waits_for_a_cleanup_of_others,
	       who_looks_at_a_stop_sees_why)
