/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a scope has from its parent, and what it has of its own: clean codes,
 * the log, the room for reasons, the clock.  Graces stand in scope_grace.c.
 */
#include "../../../support/scope_util.h"

static bool
teens_are_clean(evc_status code, void *arg)
{
	(void)arg;
	return code >= 17 && code <= 19;
}

START_TEST(clean_codes_are_inherited_unless_it_has_its_own)
{
	static const evc_status list[] = { EVC_UNAVAILABLE }, own[] = { 20 };
	evc_config cfg = { .clean = list,
			   .n_clean = 1,
			   .is_clean = teens_are_clean };
	evc_coord *c = new_coord_with(NULL, &cfg), *s, *t;
	evc_scope_opts opts = { .on_error = EVC_ON_ERROR_IGNORE };
	int i;

	/* as the parent's parent, too */
	for (i = 0; i < 2; i++) {
		s = ready_scope(c, "s", &opts);
		t = i ? ready_scope(s, "t", &opts) : s;
		OK(evc_request_stop(t, EVC_UNAVAILABLE, NULL));
		OK(evc_request_stop(t, 19, NULL));
		OK(evc_raise_requested(t, NULL));
		OK(evc_request_stop(t, EVC_OUT_OF_RANGE, NULL));
		ck_assert_int_eq(evc_raise_requested(t, NULL),
				 EVC_OUT_OF_RANGE);
		if (i)
			OK(evc_free(t));
		OK(evc_free(s));
	}
	opts.config.clean = own;
	opts.config.n_clean = 1;
	s = ready_scope(c, "its own", &opts);
	OK(evc_request_stop(s, 20, NULL));
	OK(evc_raise_requested(s, NULL));
	OK(evc_request_stop(s, EVC_UNAVAILABLE, NULL));
	ck_assert_int_eq(evc_raise_requested(s, NULL), EVC_UNAVAILABLE);
	OK(evc_free(s));

	memset(&opts.config, 0, sizeof(opts.config));
	opts.config.flags = EVC_NO_CLEAN_CODES;
	s = ready_scope(c, "none", &opts);
	OK(evc_request_stop(s, EVC_UNAVAILABLE, NULL));
	ck_assert_int_eq(evc_raise_requested(s, NULL), EVC_UNAVAILABLE);
	FREE_ALL(s, c);
}
END_TEST

struct lines {
	atomic_int n;
	char first[256];
};

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct lines *l = arg;

	(void)r;
	if (level == EVC_LOG_ERROR && atomic_fetch_add(&l->n, 1) == 0)
		snprintf(l->first, sizeof(l->first), "%s", line);
}

START_TEST(the_log_is_inherited_unless_it_has_its_own)
{
	struct lines host = { 0 }, own = { 0 };
	evc_config cfg = { .log = keep_line, .arg = &host };
	evc_coord *c = new_coord_with(NULL, &cfg), *s, *t;
	evc_scope_opts opts = { .on_error = EVC_ON_ERROR_IGNORE };

	s = ready_scope(c, "s", &opts);
	evc_fail(s, EVC_DATA_LOSS, 0, "for the host");
	ck_assert_int_eq(evc_join(s, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_int_ge(host.n, 1);
	HAS(host.first, "for the host");
	OK(evc_free(s));

	atomic_store(&host.n, 0);
	opts.config.log = keep_line;
	opts.config.arg = &own;
	s = ready_scope(c, "s", &opts);
	opts.config.log = NULL;
	opts.config.arg = NULL;
	t = ready_scope(s, "t", &opts); /* from its parent, not from above */
	evc_fail(t, EVC_DATA_LOSS, 0, "for its own");
	ck_assert_int_eq(evc_join(t, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_int_ge(own.n, 1);
	HAS(own.first, "for its own");
	ck_assert_int_eq(host.n, 0);
	FREE_ALL(t, s, c);
}
END_TEST

START_TEST(fewer_reasons_are_kept_unless_it_says_so)
{
	evc_coord *c = new_coord(NULL), *s;
	evc_scope_opts opts = { .on_error = EVC_ON_ERROR_IGNORE };
	unsigned i, kept;
	evc_reason r;
	evc_verdict v;

	for (i = 0; i < 2; i++) {
		opts.config.max_reasons = i ? 100 : 0;
		s = ready_scope(c, "s", &opts);
		for (kept = 0; kept < 50; kept++)
			evc_fail(s, EVC_DATA_LOSS, 0, "error %u", kept);
		for (kept = 0; evc_reason_get(s, kept, &r) == 0; kept++)
			;
		ck_assert_uint_eq(kept, i ? 50 : 8);
		ck_assert_int_eq(evc_join(s, NULL, &v), EVC_DATA_LOSS);
		ck_assert_uint_eq(v.n_errors, 50);
		OK(evc_free(s));
	}
	OK(evc_free(c));
}
END_TEST

/* What was said of the parent's clock: it is the one of the whole tree. */
START_TEST(the_clock_is_the_parents)
{
	evc_config cfg = { .clock = scripted_clock, .grace = 10 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	evc_scope_opts opts = { .config.grace = 5 };
	struct joiner j;
	evc_id id;

	s = ready_scope(c, "s", &opts);
	id = hold(s, "stuck");
	OK(evc_request_stop(s, 0, NULL));
	ck_assert_uint_eq(reason_of(s, 0).mono_ns, scripted_clock(NULL));
	join_begin(&j, s, 0, 0);
	scripted_advance(4);
	ck_assert(still_waits(&j));
	scripted_advance(1.5);
	RETURNS(&j);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(s, id));
	FREE_ALL(s, c);
}
END_TEST

API_MAIN("scope_inherit", clean_codes_are_inherited_unless_it_has_its_own,
	 the_log_is_inherited_unless_it_has_its_own,
	 fewer_reasons_are_kept_unless_it_says_so, the_clock_is_the_parents)
