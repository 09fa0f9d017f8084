/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners that do not end in time: they are named, and hold up neither the
 * others nor the join beyond its grace, whatever it is that blocks.
 */
#include "../../support/runner_util.h"

/* One whose join blocks, and three that do what they should. */
struct party {
	struct machine stuck, good[3];
	struct guest g;
};

static void
begin_party(struct party *p, struct setting *s)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->stuck.ends_at_stop = true;
	p->stuck.inside = &p->g;
	atomic_store(&p->stuck.runs, 1);
	machine_add(s->c, "stuck", &p->stuck, s->far, 0);
	for (i = 0; i < 3; i++) {
		p->good[i].ends_at_stop = true;
		atomic_store(&p->good[i].runs, 1);
		machine_add(s->c, "good", &p->good[i], s->far, 0);
	}
}

static void
others_were_joined(struct party *p, struct setting *s)
{
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert(is_gone(s->c, p->good[i].id));
		machine_was_joined(&p->good[i], 1);
	}
	ck_assert_int_eq(p->stuck.joins, 1);
}

START_TEST(a_join_that_blocks_is_named_and_holds_up_nobody)
{
	evc_join_opts brief = { 0 };
	evc_member_info info;
	struct setting s;
	struct party p;
	char text[4096];
	evc_verdict v;
	double took;
	int d;

	for (d = 0; d <= BY_HOME; d++) {
		begin_setting(&s, d, NULL);
		begin_party(&p, &s);
		brief.grace = 1;
		OK(evc_request_stop(s.c, 0, NULL));
		took = -t_now();
		ck_assert_int_eq(evc_join(s.c, &brief, &v),
				 EVC_DEADLINE_EXCEEDED);
		took += t_now();
		ck_assert_double_ge(took, 0.99);
		ck_assert_double_lt(took, T_LIMIT / 2);
		ck_assert_uint_eq(v.n_stragglers, 1);
		ck_assert_uint_eq(v.n_ended, 3);
		HAS(v.error.text, "stuck");
		ck_assert_ptr_null(strstr(v.error.text, "good"));
		others_were_joined(&p, &s);
		OK(evc_member_get(s.c, p.stuck.id, &info));
		ck_assert_uint_eq(info.state, EVC_REAPING);
		evc_report(s.c, EVC_REPORT_TEXT, text, sizeof(text));
		HAS(text, "stuck");
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(s.c));
		HAS(evc_last_error(), "stuck");
		REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(s.c));
		HAS(evc_last_error(), "stuck");
		brief.grace = 0.05; /* joins again, in vain */
		ck_assert_int_eq(evc_join(s.c, &brief, &v),
				 EVC_DEADLINE_EXCEEDED);
		atomic_store(&p.g.open, 1);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_stragglers, 0);
		machine_was_joined(&p.stuck, 1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(a_join_that_blocks_before_the_stop_holds_up_nobody)
{
	struct setting s;
	struct party p;
	struct joiner j;
	evc_id hold = 0;
	int i;

	begin_setting(&s, BY_JOINER, NULL);
	begin_party(&p, &s);
	OK(evc_hold_begin(s.c, "hold", NULL, &hold));
	join_begin(&j, s.c, 0.3, 0);
	atomic_store(&p.stuck.runs, 0);
	UNTIL(atomic_load(&p.g.in));
	/* each of the others ends, and the join has still time for it */
	for (i = 0; i < 3; i++) {
		atomic_store(&p.good[i].runs, 0);
		UNTIL(is_gone(s.c, p.good[i].id));
		machine_was_joined(&p.good[i], 0);
	}
	ck_assert(!evc_should_stop(s.c));
	OK(evc_hold_end(s.c, hold));
	OK(evc_request_stop(s.c, 0, NULL));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(j.v.n_stragglers, 1);
	HAS(j.v.error.text, "stuck");
	atomic_store(&p.g.open, 1);
	OK(evc_join(s.c, NULL, NULL));
	ck_assert_int_eq(p.stuck.joins, 1);
	end_setting(&s);
}
END_TEST

START_TEST(several_joins_block_side_by_side)
{
	enum { N = 5 };
	struct machine m[N];
	struct setting s;
	struct guest g = { 0 };
	struct joiner j;
	int i;

	begin_setting(&s, BY_JOINER, NULL);
	memset(m, 0, sizeof(m));
	for (i = 0; i < N; i++) {
		m[i].inside = &g;
		machine_add(s.c, "machine", &m[i], NULL, 0);
	}
	join_begin(&j, s.c, 0, 0);
	UNTIL(atomic_load(&g.in) == N);
	for (i = 0; i < N; i++)
		ck_assert_int_ne(m[i].join_tid, atomic_load(&j.tid));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	for (i = 0; i < N; i++)
		machine_was_joined(&m[i], 0);
	end_setting(&s);
}
END_TEST

/* What blocks on a loop blocks that loop, but nobody who joins elsewhere. */
START_TEST(on_another_threads_loop_a_blocked_join_is_named)
{
	evc_join_opts brief = { .grace = 0.2 };
	struct setting s;
	struct machine m;
	struct guest g = { 0 };
	evc_verdict v;

	begin_setting(&s, BY_FAR_LOOP, NULL);
	memset(&m, 0, sizeof(m));
	m.ends_at_stop = true;
	m.inside = &g;
	atomic_store(&m.runs, 1);
	machine_add(s.c, "stuck", &m, s.far, 0);
	OK(evc_request_stop(s.c, 0, NULL));
	UNTIL(atomic_load(&g.in));
	ck_assert_int_eq(evc_join(s.c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "stuck");
	atomic_store(&g.open, 1);
	OK(evc_join(s.c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	machine_was_joined(&m, 1);
	end_setting(&s);
}
END_TEST

START_TEST(one_is_late_after_its_own_grace)
{
	struct setting s;
	struct machine slow;
	struct joiner j;
	evc_verdict v;
	evc_id brief;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		struct machine m = { 0 };
		evc_member_opts opts = { .grace = 0.1 };

		begin_setting(&s, d, NULL);
		opts.reactor = s.far;
		atomic_store(&m.runs, 1);
		OK(evc_runner_add(s.c, "brief", &machine_ops, &m, &opts,
				  &brief));
		OK(evc_request_stop(s.c, 0, NULL));
		if (d != BY_FAR_LOOP) { /* whose thread has no own grace */
			/* the join's own grace would be two minutes */
			ck_assert_int_eq(evc_join(s.c, NULL, &v),
					 EVC_DEADLINE_EXCEEDED);
			ck_assert_double_ge(v.took, 0.0999);
			ck_assert_double_lt(v.took, 60);
			ck_assert_uint_eq(v.n_stragglers, 1);
			HAS(v.error.text, "brief");
		}
		/* and others keep theirs beside it */
		memset(&slow, 0, sizeof(slow));
		atomic_store(&slow.runs, 1);
		machine_add(s.c, "slow", &slow, s.far, 0);
		join_begin(&j, s.c, 0, 0);
		t_sleep(0.2);
		TURN_UNTIL(&s, atomic_load(&slow.stops) == 1);
		ck_assert(!atomic_load(&j.returned));
		atomic_store(&slow.runs, 0);
		if (d == BY_FAR_LOOP)
			atomic_store(&m.runs, 0);
		TURN_UNTIL(&s, atomic_load(&j.returned));
		ck_assert_int_eq(join_end(&j),
				 d == BY_FAR_LOOP ? 0 : EVC_DEADLINE_EXCEEDED);
		machine_was_joined(&slow, 1);
		if (d != BY_FAR_LOOP) {
			HAS(j.v.error.text, "brief");
			ck_assert_ptr_null(strstr(j.v.error.text, "slow"));
		}
		atomic_store(&m.runs, 0);
		OK(evc_join(s.c, NULL, NULL));
		machine_was_joined(&m, 1);
		end_setting(&s);
	}
}
END_TEST

START_TEST(IGNORE_LIVE_is_content_with_one_that_runs)
{
	evc_join_opts opts = { .grace = 0.05, .flags = EVC_JOIN_IGNORE_LIVE };
	struct setting s;
	struct machine m;
	evc_verdict v;
	int d;

	for (d = 0; d < N_DRIVES; d++) {
		begin_setting(&s, d, NULL);
		memset(&m, 0, sizeof(m));
		atomic_store(&m.runs, 1);
		machine_add(s.c, "deaf", &m, s.far, 0);
		OK(evc_request_stop(s.c, 0, NULL));
		OK(evc_join(s.c, &opts, &v));
		ck_assert_uint_eq(v.n_stragglers, 1 + own_members(&s));
		ck_assert_int_eq(m.joins, 0);
		atomic_store(&m.runs, 0);
		OK(evc_join(s.c, NULL, &v));
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_int_eq(m.joins, 1);
		end_setting(&s);
	}
}
END_TEST

API_MAIN("runner_late", a_join_that_blocks_is_named_and_holds_up_nobody,
	 a_join_that_blocks_before_the_stop_holds_up_nobody,
	 several_joins_block_side_by_side,
	 on_another_threads_loop_a_blocked_join_is_named,
	 one_is_late_after_its_own_grace,
	 IGNORE_LIVE_is_content_with_one_that_runs)
