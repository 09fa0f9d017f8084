/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stop hooks, stepped: added, removed and cleared while they run on another
 * thread.
 */
#include "schedules.h"

static evc_status
do_remove(evc_coord *c, void *arg)
{
	return evc_member_remove(c, *(evc_id *)arg);
}

/* The hook adds its reactor itself when it has one. */
struct adding {
	evc_reactor *reactor;
	atomic_int told;
	evc_id id;
};

static evc_status
do_add(evc_coord *c, void *arg)
{
	struct adding *a = arg;
	evc_member_opts o = {.reactor = a->reactor};

	return evc_on_stop(c, "hook", count_hook, &a->told, &o, &a->id);
}

/* A hook of the helper's; it sleeps now, and has nothing to do. */
static void
add_hook(evc_coord *c, evc_fn *fn, void *arg, evc_id *ret_id)
{
	int h = seam_hold("futex_wait", "sleep_once", 1);

	OK(evc_on_stop(c, "hook", fn, arg, NULL, ret_id));
	HELD(h);
	seam_release(h);
}

/* The stop comes while the hook is being added.  Fails when who adds it does
   not look for a stop afterwards. */
START_TEST(hooks_added_while_the_stop_comes)
{
	static const struct place places[] = {
		{"add", "hooks_count", 1},
		{"load", "add_hook", 2},
	};
	struct actor a, t;
	size_t i;
	int h, turned, with_loop;

	for (i = 0; i < N_OF(places) * 2; i++) {
		struct ev_loop *loop = ev_loop_new(0);
		struct adding add = {.reactor = NULL};
		evc_coord *c;

		with_loop = i % 2;
		c = new_coord(with_loop ? loop : NULL);
		add.reactor = evc_home(c);
		h = hold_at(&places[i / 2]);
		actor_begin(&a, do_add, c, &add);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		/* Told, the loop finds no hook yet: that turn was not it.  It
		   has looked for hooks, and waits for the lock of who adds. */
		if (with_loop && i < N_OF(places)) {
			turned = seam_hold("xchg", "evc__runners_turn", 1);
			actor_begin(&t, do_turn, c, loop);
			HELD(turned);
			seam_release(turned);
		}
		seam_release(h);
		OK(actor_end(&a));
		if (with_loop && i < N_OF(places))
			OK(actor_end(&t));
		if (with_loop)
			ev_run(loop, EVRUN_NOWAIT);
		UNTIL(atomic_load(&add.told) == 1);
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(atomic_load(&add.told), 1);
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* Fails when it is called all the same. */
START_TEST(hooks_removed_before_their_turn_are_not_called)
{
	evc_coord *c = new_coord(NULL);
	atomic_int told = 0;
	evc_id id;
	int h;

	add_hook(c, count_hook, &told, &id);
	h = seam_hold("lock", "evc__hooks_run", 1);
	OK(evc_request_stop(c, 0, "stop"));
	HELD(h);
	OK(evc_member_remove(c, id));
	seam_release(h);
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&told), 0);
	REFUSED(EVC_NOT_FOUND, evc_member_remove(c, id));
	OK(evc_free(c));
}
END_TEST

/* It runs on the helper, or has just returned.  Fails when who removes it does
   not wait, and when its return does not ring. */
START_TEST(hooks_removed_while_they_run_elsewhere)
{
	int h, returned;

	for (returned = 0; returned < 2; returned++) {
		evc_coord *c = new_coord(NULL);
		struct guest g = {0, returned};
		struct actor a;
		evc_id id;

		add_hook(c, stay, &g, &id);
		h = seam_hold("lock", "evc__hooks_run", 2);
		OK(evc_request_stop(c, 0, "stop"));
		UNTIL(atomic_load(&g.in));
		if (returned)
			HELD(h);
		actor_begin(&a, do_remove, c, &id);
		actor_sleeps(&a);
		atomic_store(&g.open, 1);
		HELD(h);
		actor_waits(&a);
		seam_release(h);
		OK(actor_end(&a));
		REFUSED(EVC_NOT_FOUND, evc_member_remove(c, id));
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(atomic_load(&g.in), 1);
		OK(evc_free(c));
	}
}
END_TEST

/* A hook that removes itself. */
struct removing {
	evc_id id;
	evc_status status;
	atomic_int in;
};

static evc_status
remove_itself(evc_coord *c, void *arg)
{
	struct removing *r = arg;

	r->status = evc_member_remove(c, r->id);
	atomic_fetch_add(&r->in, 1);
	return 0;
}

/* Fails when a hook that runs does not count as alive, and when one that was
   removed inside itself is freed at once. */
START_TEST(hooks_keep_a_join_waiting_until_they_have_returned)
{
	int h, removes;

	for (removes = 0; removes < 2; removes++) {
		struct removing r = {.id = 0};
		evc_coord *c = new_coord(NULL);
		atomic_int told = 0;
		struct actor a;
		evc_verdict v;

		if (removes)
			add_hook(c, remove_itself, &r, &r.id);
		else
			add_hook(c, count_hook, &told, NULL);
		h = seam_hold("lock", "evc__hooks_run", 2);
		OK(evc_request_stop(c, 0, "stop"));
		HELD(h);
		ck_assert_int_eq(atomic_load(&told) + atomic_load(&r.in), 1);
		OK(r.status);
		actor_begin(&a, do_join, c, &v);
		actor_sleeps(&a);
		seam_release(h);
		OK(actor_end(&a));
		OK(evc_free(c));
	}
}
END_TEST

/* The round is cleared while the hook runs, and the next stop comes: it is
   called once more.  Fails when the hook takes the stop it finds at its return
   for the one it was called for. */
START_TEST(hooks_that_run_across_a_clear_are_called_for_the_next_stop)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = {0, 0};

	add_hook(c, stay, &g, NULL);
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&g.in) == 1);
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, "next"));
	atomic_store(&g.open, 1);
	UNTIL(atomic_load(&g.in) == 2);
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&g.in), 2);
	OK(evc_free(c));
}
END_TEST

/* Fails when evc_free does not wait for the helper. */
START_TEST(hooks_that_run_are_waited_for_by_free)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = {0, 0};
	struct actor f;

	add_hook(c, stay, &g, NULL);
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&g.in) == 1);
	actor_begin(&f, do_free, c, NULL);
	actor_waits(&f);
	atomic_store(&g.open, 1);
	OK(actor_end(&f));
}
END_TEST

/* A loop with a hook that never turns. */
struct idle_loop {
	struct t_gate attached, leave;
	atomic_int told;
};

static evc_status
hook_and_leave(evc_coord *c, void *arg)
{
	struct idle_loop *i = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);
	evc_member_opts o = {.reactor = r};

	if (st == 0)
		st = evc_on_stop(c, "hook", count_hook, &i->told, &o, NULL);
	gate_step(&i->attached);
	gate_await(&i->leave, 1);
	if (st == 0)
		st = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return st;
}

/* A join waits for a hook that is due on a loop, and that loop is detached.
   Fails when the detach leaves the hook, and when dropping it does not ring. */
START_TEST(hooks_of_a_loop_that_is_detached_are_dropped)
{
	struct idle_loop i = {.attached = GATE_INIT, .leave = GATE_INIT};
	evc_coord *c = new_coord(NULL);
	struct actor a, j;
	evc_verdict v;

	actor_begin(&a, hook_and_leave, c, &i);
	ck_assert(gate_await(&i.attached, 1));
	OK(evc_request_stop(c, 0, "stop"));
	actor_begin(&j, do_join, c, &v);
	actor_sleeps(&j);
	gate_step(&i.leave);
	OK(actor_end(&a));
	OK(actor_end(&j));
	ck_assert_int_eq(atomic_load(&i.told), 0);
	OK(evc_free(c));
}
END_TEST

/* A request that comes when the other stands at its place. */
struct held_ask {
	int h;
	struct ask ask;
};

static evc_status
ask_when_held(evc_coord *c, void *arg)
{
	struct held_ask *a = arg;
	evc_status st;

	if (!seam_await(a->h))
		return -1;
	st = do_request(c, &a->ask);
	seam_release(a->h);
	return st;
}

static void
note_verdict(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	*(bool *)arg = true;
}

static void
task_told(evc_task *t, void *arg)
{
	/* What the hook has counted by then. */
	atomic_fetch_add((atomic_int *)arg, 100);
	evc_task_end(t);
}

static evc_status
hook_told(evc_coord *c, void *arg)
{
	(void)c;
	if (atomic_load((atomic_int *)arg) == 0)
		atomic_store((atomic_int *)arg, 1);
	return 0;
}

/* The stop comes when a turn has looked for hooks, and not yet for tasks.  Fails
   when that turn goes on to tell them. */
START_TEST(hooks_come_first_when_the_stop_comes_in_the_middle_of_a_turn)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	atomic_int told = 0;
	evc_task_class k = {.name = "task", .on_stop = task_told,
			    .arg = &told};
	evc_task task = {0};
	struct held_ask held = {0, {0, "stop"}};
	bool joined = false;
	struct actor a;

	OK(evc_on_stop(c, "hook", hook_told, &told, NULL, NULL));
	OK(evc_task_begin(evc_home(c), &task, &k));
	/* Another thread asks while this one stands in its turn. */
	held.h = seam_hold_mine("xchg", "evc__runners_turn", 1);
	actor_begin(&a, ask_when_held, c, &held);
	/* A join begins with a turn. */
	OK(evc_join_start(c, note_verdict, &joined, NULL));
	while (!joined)
		ev_run(loop, EVRUN_ONCE);
	OK(actor_end(&a));
	ck_assert_int_eq(atomic_load(&told), 101);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

SCHEDULES_MAIN("hooks",
	       hooks_come_first_when_the_stop_comes_in_the_middle_of_a_turn,
	       hooks_added_while_the_stop_comes,
	       hooks_removed_before_their_turn_are_not_called,
	       hooks_removed_while_they_run_elsewhere,
	       hooks_keep_a_join_waiting_until_they_have_returned,
	       hooks_that_run_across_a_clear_are_called_for_the_next_stop,
	       hooks_that_run_are_waited_for_by_free,
	       hooks_of_a_loop_that_is_detached_are_dropped)
