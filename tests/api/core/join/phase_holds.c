/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What holds up a phase, and what does not: all that lives in the parent and in
 * the scopes before it, of every kind, however it ends.
 */
#include "../../../support/scope_util.h"

START_TEST(the_parents_own_members_count_for_phase_0)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s;
		struct guest thread = { 0 }, hook = { 0 };
		evc_id id = hold(c, "of the parent");

		s = phase_scope(c, "s", 1, 0);
		OK(evc_on_stop(c, "hook", stay, &hook, NULL, NULL));
		OK(evc_thread_start(c, "thread", stay, &thread, NULL, NULL));
		driver_go(&d);
		driver_stop(&d);
		UNTIL(atomic_load(&hook.in));
		OK(evc_hold_end(c, id));
		NOT_YET(evc_should_stop(s));
		atomic_store(&thread.open, 1);
		NOT_YET(evc_should_stop(s)); /* the hook is inside still */
		atomic_store(&hook.open, 1);
		UNTIL(evc_should_stop(s));
		OK(driver_wait(&d));
		OK(evc_free(s));
		driver_end(&d);
	}
}
END_TEST

START_TEST(a_phase_waits_for_all_of_the_phase_before)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b, *empty, *last;
		struct guest g = { 0 };
		evc_id in_b;

		a = phase_scope(c, "a", 2, 0);
		b = phase_scope(c, "b", 2, 0);
		empty = phase_scope(c, "empty", 4, 0);
		last = phase_scope(c, "last", 6, 0);
		OK(evc_thread_start(a, "stays", stay, &g, NULL, NULL));
		in_b = hold(b, "held");
		OK(evc_thread_start(last, "obeys", obey, NULL, NULL, NULL));
		driver_go(&d);
		driver_stop(&d);
		/* phases 0 and 1 are empty */
		UNTIL(evc_should_stop(a) && evc_should_stop(b));
		OK(evc_hold_end(b, in_b));
		NOT_YET(evc_should_stop(empty) || evc_should_stop(last));
		atomic_store(&g.open, 1);
		OK(driver_wait(&d));
		/* empty ones were told, too */
		BY_PARENT(empty);
		BY_PARENT(last);
		FREE_ALL(a, b, empty, last);
		driver_end(&d);
	}
}
END_TEST

START_TEST(a_set_up_that_is_not_finished_holds_its_phase)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *next;

		s = new_scope(c, "s", NULL);
		next = phase_scope(c, "next", 1, 0);
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(s));
		NOT_YET(evc_should_stop(next));
		OK(evc_scope_ready(s));
		OK(driver_wait(&d));
		BY_PARENT(next);
		FREE_ALL(s, next);
		driver_end(&d);
	}
}
END_TEST

/* Nobody but the join that drives the phases looks after these. */
START_TEST(threads_and_background_members_hold_their_phase)
{
	evc_member_opts background = { .flags = EVC_BACKGROUND };
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *below, *next;
		struct guest a = { 0 }, b = { 0 };
		evc_id id = hold(c, "keeps the join");
		pthread_t t;

		s = phase_scope(c, "s", 1, 0);
		below = ready_scope(s, "below", NULL);
		next = phase_scope(c, "next", 2, 0);
		OK(evc_thread_start(s, "a", stay, &a, &background, NULL));
		OK(pthread_create(&t, NULL, stay_thread, &b));
		OK(evc_register_thread(below, "b", t, NULL, NULL));
		driver_go(&d);
		driver_stop(&d);
		OK(evc_hold_end(c, id));
		UNTIL(evc_should_stop(below));
		NOT_YET(evc_should_stop(next));
		atomic_store(&a.open, 1);
		NOT_YET(evc_should_stop(next));
		atomic_store(&b.open, 1);
		OK(driver_wait(&d));
		BY_PARENT(next);
		FREE_ALL(below, s, next);
		driver_end(&d);
	}
}
END_TEST

START_TEST(a_stop_hook_of_a_scope_holds_its_phase)
{
	struct driver d = { .config.grace = INFINITY };
	int how, deep;

	for (how = 0; how < N_WAYS; how++)
		for (deep = 0; deep < 2; deep++) {
			evc_coord *c = driver_make(&d, how), *s, *below, *next;
			struct guest hook = { 0 };

			s = phase_scope(c, "s", 0, 0);
			below = ready_scope(s, "below", NULL);
			next = phase_scope(c, "next", 1, 0);
			OK(evc_on_stop(deep ? below : s, "hook", stay, &hook,
				       NULL, NULL));
			OK(evc_thread_start(next, "obeys", obey, NULL, NULL,
					    NULL));
			driver_go(&d);
			driver_stop(&d);
			UNTIL(atomic_load(&hook.in));
			NOT_YET(evc_should_stop(next));
			atomic_store(&hook.open, 1);
			OK(driver_wait(&d));
			BY_PARENT(next);
			FREE_ALL(below, s, next);
			driver_end(&d);
		}
}
END_TEST

struct server {
	evc_coord *next;
	evc_task conn[2];
	bool too_early;
};

static void
end_one(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct server *v = w->data;

	(void)loop;
	(void)revents;
	v->too_early = evc_should_stop(v->next);
	evc_task_end(&v->conn[0]);
}

START_TEST(tasks_hold_their_phase)
{
	static const evc_task_class slow = { .name = "slow" },
				    quick = { .name = "quick",
					      .on_stop = end_told_task };
	int of_scope;

	for (of_scope = 0; of_scope < 2; of_scope++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop), *s;
		evc_join_opts opts = { .flags = EVC_JOIN_STOP_FIRST };
		struct server v = { .too_early = true };
		evc_reactor *r;
		ev_timer t;

		s = phase_scope(c, "conns", 0, 0);
		v.next = phase_scope(c, "next", 1, 0);
		r = evc_home(of_scope ? s : c);
		OK(evc_task_begin(r, &v.conn[0], &slow));
		OK(evc_task_begin(evc_home(v.next), &v.conn[1], &quick));
		ev_timer_init(&t, end_one, MOMENT, 0);
		t.data = &v;
		ev_timer_start(loop, &t);
		OK(evc_run(c, &opts, NULL));
		ck_assert(!v.too_early);
		BY_PARENT(v.next);
		FREE_ALL(s, v.next, c);
		ev_loop_destroy(loop);
	}
}
END_TEST

/* J5: who waits for the others is not waited for, by the phases either. */
static evc_status
join_above(evc_coord *c, void *arg)
{
	evc_join_opts opts = { .grace = INFINITY };
	evc_coord *parent = evc_scope_parent(c);

	return evc_join(parent != NULL ? parent : c, &opts, NULL) == 0
		       ? 0
		       : *(evc_status *)arg;
}

START_TEST(J5_a_member_that_joins_holds_up_no_phase)
{
	evc_status failed = EVC_INTERNAL;
	int of_scope;

	for (of_scope = 0; of_scope < 2; of_scope++) {
		evc_coord *c = new_coord(NULL), *s, *next;
		evc_join_opts opts = { .grace = INFINITY };
		evc_id id;

		s = phase_scope(c, "s", 0, 0);
		next = phase_scope(c, "next", 1, 0);
		id = hold(next, "held");
		OK(evc_thread_start(of_scope ? s : c, "joins", join_above,
				    &failed, NULL, NULL));
		let_come(); /* it has begun */
		OK(evc_request_stop(c, 0, NULL));
		UNTIL(evc_should_stop(next));
		OK(evc_hold_end(next, id));
		OK(evc_join(c, &opts, NULL));
		FREE_ALL(s, next, c);
	}
}
END_TEST

API_MAIN("phase_holds", the_parents_own_members_count_for_phase_0,
	 a_phase_waits_for_all_of_the_phase_before,
	 a_set_up_that_is_not_finished_holds_its_phase,
	 threads_and_background_members_hold_their_phase,
	 a_stop_hook_of_a_scope_holds_its_phase, tasks_hold_their_phase,
	 J5_a_member_that_joins_holds_up_no_phase)
