/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners, child processes, other libraries' pools and loops that live in a
 * scope: the parent's stop reaches them, and the parent's join asks them, joins
 * them and gives up on them as on its own.
 */
#include "../../support/child_util.h"

/* A parent with a scope; the scope inherits a home where there is one. */
static evc_coord *
scope_in(struct setting *s)
{
	evc_coord *scope = NULL;

	OK(evc_scope_new(s->c, "inner", NULL, &scope));
	OK(evc_scope_ready(scope));
	return scope;
}

START_TEST(the_parents_join_asks_tells_and_joins_it)
{
	struct setting s;
	struct machine m, own;
	evc_coord *scope;
	evc_verdict v;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		scope = scope_in(&s);
		memset(&m, 0, sizeof(m));
		memset(&own, 0, sizeof(own));
		m.ends_at_stop = own.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		atomic_store(&own.runs, 1);
		machine_add(scope, "below", &m, NULL, 0);
		machine_add(s.c, "beside", &own, NULL, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_int_eq(m.stop_tid, own_tid());
		machine_was_joined(&m, 1);
		machine_was_joined(&own, 1);
		OK(evc_free(scope));
		end_setting(&s);
	}
}
END_TEST

START_TEST(it_ends_alone_before_the_stop)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	evc_coord *scope;
	evc_id hold;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		scope = scope_in(&s);
		memset(&m, 0, sizeof(m));
		hold = 0;
		atomic_store(&m.runs, 1);
		OK(evc_hold_begin(s.c, "hold", NULL, &hold));
		machine_add(scope, "below", &m, NULL, 0);
		join_begin(&j, s.c, 0, 0);
		TURN_UNTIL(&s, atomic_load(&m.asked) > 2);
		atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, is_gone(scope, m.id));
		machine_was_joined(&m, 0);
		ck_assert(!atomic_load(&j.returned));
		OK(evc_hold_end(s.c, hold));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		OK(join_end(&j));
		OK(evc_free(scope));
		end_setting(&s);
	}
}
END_TEST

START_TEST(done_below_wakes_the_parents_join)
{
	struct setting s;
	struct machine m;
	struct joiner j;
	evc_coord *scope;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		scope = scope_in(&s);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1); /* for ever */
		machine_add(scope, "rings", &m, NULL, 0);
		join_begin(&j, s.c, 0, 0);
		atomic_store(&m.done, 1);
		OK(evc_runner_done(scope, m.id, EVC_DATA_LOSS));
		TURN_UNTIL(&s, atomic_load(&j.returned));
		/* its error is the parent's too */
		ck_assert_int_eq(join_end(&j), EVC_DATA_LOSS);
		ck_assert(evc_should_stop(s.c));
		ck_assert_str_eq(j.v.error.who, "rings");
		ck_assert_int_eq(m.joins, 1);
		ck_assert_int_eq(evc_join(scope, NULL, NULL), EVC_DATA_LOSS);
		OK(evc_free(scope));
		end_setting(&s);
	}
}
END_TEST

START_TEST(a_blocked_join_below_holds_up_nobody)
{
	/* The other two end within it, also under valgrind. */
	evc_join_opts brief = { .grace = 2 };
	struct setting s;
	struct machine stuck, good, own;
	struct guest g = { 0 };
	evc_coord *scope;
	evc_verdict v;

	begin_setting(&s, BY_JOINER, NULL);
	scope = scope_in(&s);
	memset(&stuck, 0, sizeof(stuck));
	memset(&good, 0, sizeof(good));
	memset(&own, 0, sizeof(own));
	stuck.inside = &g;
	machine_add(scope, "stuck", &stuck, NULL, 0);
	machine_add(scope, "good", &good, NULL, 0);
	machine_add(s.c, "own", &own, NULL, 0);
	OK(evc_request_stop(s.c, 0, NULL));
	ck_assert_int_eq(evc_join(s.c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "stuck");
	machine_was_joined(&good, good.stops);
	machine_was_joined(&own, own.stops);
	atomic_store(&g.open, 1);
	OK(evc_join(s.c, NULL, &v));
	machine_was_joined(&stuck, stuck.stops);
	OK(evc_free(scope));
	end_setting(&s);
}
END_TEST

START_TEST(children_below_get_their_signals)
{
	evc_join_opts brief = { .grace = 0.1 };
	struct setting s, inner;
	struct kid good, deaf, stopped;
	evc_verdict v;
	evc_status st;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		inner = s;
		inner.c = scope_in(&s);
		good = kid_born(TERM_DEFAULT, 0, 0);
		deaf = kid_born(TERM_IGNORED, 0, 0);
		stopped = kid_born(0, 0, 0);
		kid_freeze(&stopped);
		kid_add(&inner, "good", &good, 0, 0);
		kid_add(&inner, "deaf", &deaf, 0, 0);
		kid_add(&inner, "stopped", &stopped, 0, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		ck_assert_int_eq(evc_join(s.c, &brief, &v),
				 EVC_DEADLINE_EXCEEDED);
		UNTIL(kid_has_ended(&deaf));
		st = evc_join(s.c, NULL, &v);
		ck_assert_int_eq(st, EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_str_eq(v.error.who, "deaf");
		ck_assert_uint_eq(v.n_errors, 1);
		kid_was_reaped(&good);
		kid_was_reaped(&deaf);
		kid_was_reaped(&stopped);
		OK(evc_free(inner.c));
		end_setting(&s);
	}
}
END_TEST

static void
stop_foreign(void *arg)
{
	atomic_fetch_add(&((struct guest *)arg)->in, 1);
}

static evc_status
wait_foreign(void *arg)
{
	return atomic_load(&((struct guest *)arg)->in) == 1 ? 0 : EVC_INTERNAL;
}

START_TEST(pools_and_loops_below_are_told_and_joined)
{
	struct setting s;
	evc_coord *scope;
	struct guest g = { 0 };
	atomic_int tid = 0, hooks = 0;
	evc_member_opts opts = { 0 };
	evc_verdict v;

	begin_setting(&s, BY_JOINER, NULL);
	scope = scope_in(&s);
	OK(evc_foreign_add(scope, "pool", stop_foreign, wait_foreign, &g, NULL,
			   NULL));
	OK(evc_reactor_start(scope, "loop", note_far_tid, &tid, NULL,
			     &opts.reactor));
	ck_assert_ptr_eq(evc_reactor_coord(opts.reactor), scope);
	OK(evc_on_stop(scope, "hook", count_hook, &hooks, &opts, NULL));
	OK(evc_request_stop(s.c, 0, NULL));
	OK(evc_join(s.c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(g.in, 1);
	ck_assert_int_eq(hooks, 1);
	OK(evc_free(scope));
	end_setting(&s);
}
END_TEST

/* Its own stop ends what is in it, and nothing beside it. */
START_TEST(the_scopes_own_stop_is_for_its_own_alone)
{
	struct setting s, inner;
	struct machine m, own;
	struct kid k, other;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		inner = s;
		inner.c = scope_in(&s);
		memset(&m, 0, sizeof(m));
		memset(&own, 0, sizeof(own));
		m.ends_at_stop = own.ends_at_stop = true;
		atomic_store(&m.runs, 1);
		atomic_store(&own.runs, 1);
		machine_add(inner.c, "below", &m, NULL, 0);
		machine_add(s.c, "beside", &own, NULL, 0);
		k = kid_born(TERM_DEFAULT, 0, 0);
		other = kid_born(TERM_DEFAULT, 0, 0);
		kid_add(&inner, "below", &k, 0, 0);
		kid_add(&s, "beside", &other, 0, 0);
		OK(evc_request_stop(inner.c, 0, NULL));
		OK(evc_join(inner.c, NULL, NULL));
		machine_was_joined(&m, 1);
		kid_was_reaped(&k);
		ck_assert(!evc_should_stop(s.c));
		ck_assert(!kid_has_ended(&other));
		ck_assert_int_eq(own.stops + own.joins, 0);
		OK(evc_free(inner.c));
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, NULL, NULL));
		machine_was_joined(&own, 1);
		kid_was_reaped(&other);
		end_setting(&s);
	}
}
END_TEST

API_MAIN("runner_scope", the_parents_join_asks_tells_and_joins_it,
	 it_ends_alone_before_the_stop, done_below_wakes_the_parents_join,
	 a_blocked_join_below_holds_up_nobody, children_below_get_their_signals,
	 pools_and_loops_below_are_told_and_joined,
	 the_scopes_own_stop_is_for_its_own_alone)
