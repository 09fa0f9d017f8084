/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_all_stopped: asks here and below, and changes nothing.
 */
#include "../../../support/child_util.h"

/* Long enough for a join to have come about. */
static void
ask_again(evc_coord *c)
{
	int i;

	for (i = 0; i < 20; i++) {
		ck_assert(evc_all_stopped(c));
		t_sleep(0.002);
	}
}

START_TEST(all_stopped_asks_the_runners_and_joins_nobody)
{
	struct setting s;
	struct machine m[2];
	evc_id hold = 0;
	int d, i;

	ck_assert(!evc_all_stopped(NULL));
	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		memset(m, 0, sizeof(m));
		ck_assert(evc_all_stopped(s.c));
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		ck_assert(!evc_all_stopped(s.c));
		OK(evc_hold_end(s.c, hold));
		for (i = 0; i < 2; i++) {
			atomic_store(&m[i].runs, 1);
			machine_add(s.c, "machine", &m[i], NULL, 0);
		}
		ck_assert(!evc_all_stopped(s.c));
		atomic_store(&m[1].runs, 0);
		ck_assert(!evc_all_stopped(s.c));
		ck_assert_int_eq(m[0].asked_tid, own_tid());
		atomic_store(&m[0].runs, 0);
		ck_assert(evc_all_stopped(s.c));
		ck_assert(!evc_should_stop(s.c));
		ask_again(s.c);
		ck_assert_int_eq(m[0].joins + m[1].joins, 0);
		ck_assert_int_eq(m[0].stops + m[1].stops, 0);
		OK(evc_join(s.c, NULL, NULL));
		machine_was_joined(&m[0], 0);
		machine_was_joined(&m[1], 0);
		ck_assert(evc_all_stopped(s.c));
		end_setting(&s);
	}
}
END_TEST

/* "Runners of another thread's loop excepted": their own loop asks them. */
START_TEST(all_stopped_never_asks_for_another_threads_loop)
{
	struct setting s;
	struct machine m = { .ends_at_stop = true };
	int i;

	begin_setting(&s, BY_FAR_LOOP, NULL);
	atomic_store(&m.runs, 1);
	machine_add(s.c, "machine", &m, s.far, 0);
	for (i = 0; i < 20; i++) {
		ck_assert(!evc_all_stopped(s.c));
		ck_assert_int_ne(atomic_load(&m.asked_tid), own_tid());
	}
	OK(evc_request_stop(s.c, 0, NULL));
	OK(evc_join(s.c, NULL, NULL));
	ck_assert_int_ne(m.asked_tid, own_tid());
	ck_assert_int_eq(m.stop_tid, atomic_load(&s.far_tid));
	ck_assert(evc_all_stopped(s.c));
	machine_was_joined(&m, 1);
	end_setting(&s);
}
END_TEST

START_TEST(all_stopped_asks_below)
{
	struct setting s;
	struct machine m;
	evc_coord *scope, *deeper;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		scope = deeper = NULL;
		OK(evc_scope_new(s.c, "scope", NULL, &scope));
		OK(evc_scope_ready(scope));
		OK(evc_scope_new(scope, "deeper", NULL, &deeper));
		ck_assert(!evc_all_stopped(s.c)); /* it is held */
		OK(evc_scope_ready(deeper));
		ck_assert(evc_all_stopped(s.c));
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		machine_add(deeper, "below", &m, NULL, 0);
		ck_assert(!evc_all_stopped(s.c));
		ck_assert(!evc_all_stopped(scope));
		ck_assert(!evc_all_stopped(deeper));
		atomic_store(&m.runs, 0);
		ck_assert(evc_all_stopped(s.c));
		ck_assert(evc_all_stopped(scope));
		ck_assert(evc_all_stopped(deeper));
		ck_assert_int_eq(m.asked_tid, own_tid());
		ask_again(s.c);
		ck_assert_int_eq(m.joins + m.stops, 0);
		OK(evc_join(s.c, NULL, NULL));
		machine_was_joined(&m, 0);
		FREE_ALL(deeper, scope);
		end_setting(&s);
	}
}
END_TEST

START_TEST(all_stopped_sees_a_child_that_has_ended)
{
	struct setting s;
	evc_verdict v;
	struct kid k;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		k = kid_born(TERM_DEFAULT, 0, 0);
		kid_add(&s, "child", &k, 0, 0);
		ck_assert(!evc_all_stopped(s.c));
		kid_let_go(&k);
		UNTIL(evc_all_stopped(s.c));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 1);
		kid_was_reaped(&k);
		end_setting(&s);
	}
}
END_TEST

/* Whatever else lives: threads, holds, tasks, hooks. */
START_TEST(all_stopped_is_about_every_kind_of_member)
{
	static const evc_task_class cls = { .name = "task" };
	struct setting s;
	struct guest g = { 0 };
	atomic_int hooks = 0;
	evc_task task = { 0 };
	evc_id hold = 0;

	begin_setting(&s, BY_HOME, NULL);
	OK(evc_on_stop(s.c, "hook", count_hook, &hooks, NULL, NULL));
	ck_assert(evc_all_stopped(s.c)); /* hooks do not run, they wait */
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	ck_assert(!evc_all_stopped(s.c));
	OK(evc_hold_end(s.c, hold));
	ck_assert(evc_all_stopped(s.c));
	OK(evc_task_begin(evc_home(s.c), &task, &cls));
	ck_assert(!evc_all_stopped(s.c));
	evc_task_end(&task);
	ck_assert(evc_all_stopped(s.c));
	OK(evc_thread_start(s.c, "stays", stay, &g, NULL, NULL));
	ck_assert(!evc_all_stopped(s.c));
	atomic_store(&g.open, 1);
	UNTIL(evc_all_stopped(s.c)); /* its end is seen without a join */
	OK(evc_join(s.c, NULL, NULL));
	end_setting(&s);
}
END_TEST

API_MAIN("all_stopped", all_stopped_asks_the_runners_and_joins_nobody,
	 all_stopped_never_asks_for_another_threads_loop,
	 all_stopped_asks_below, all_stopped_sees_a_child_that_has_ended,
	 all_stopped_is_about_every_kind_of_member)
