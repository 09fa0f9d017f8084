/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is there for layers on top: refusals and log lines of their own, and
 * scopes that need no loop to turn.
 */
#include "../../../support/api_util.h"

#include <ev.h>

START_TEST(a_layer_refuses_as_the_library_does)
{
	ck_assert_int_eq(evc_refuse(-EVC_NOT_FOUND, "no shard %d", 7),
			 -EVC_NOT_FOUND);
	ck_assert_str_eq(evc_last_error(), "no shard 7");
	/* the status is the caller's affair */
	ck_assert_int_eq(evc_refuse(0, "a note"), 0);
	ck_assert_str_eq(evc_last_error(), "a note");
}
END_TEST

struct heard {
	atomic_int n;
	int level, code;
	char line[600];
};

static void
hear(int level, const char *line, const evc_reason *r, void *arg)
{
	struct heard *h = arg;

	h->level = level;
	h->code = r != NULL ? r->code : -1;
	snprintf(h->line, sizeof(h->line), "%s", line);
	atomic_fetch_add(&h->n, 1);
}

START_TEST(a_layer_says_a_line_by_the_hook_of_its_coordinator)
{
	struct heard h = { .n = 0 };
	evc_config cfg = { .name = "host", .log = hear, .arg = &h };
	evc_coord *c, *scope, *silent = new_coord(NULL);
	evc_reason r = { .code = 20 };
	char big[2000];

	OK(evc_new(NULL, &cfg, &c));
	evc_log(c, EVC_LOG_WARNING, NULL, "%d of %s", 3, "four");
	UNTIL(atomic_load(&h.n) == 1);
	ck_assert_int_eq(h.level, EVC_LOG_WARNING);
	ck_assert_str_eq(h.line, "host: 3 of four");
	ck_assert_int_eq(h.code, -1);
	/* a scope has its parent's hook, and its own name */
	OK(evc_scope_new(c, "part", NULL, &scope));
	evc_log(scope, EVC_LOG_ERROR, &r, "broken");
	UNTIL(atomic_load(&h.n) == 2);
	ck_assert_str_eq(h.line, "part: broken");
	ck_assert_int_eq(h.code, 20);
	/* a long one is cut; without a hook, or a coordinator, nothing */
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	evc_log(c, EVC_LOG_INFO, NULL, "%s", big);
	UNTIL(atomic_load(&h.n) == 3);
	ck_assert_uint_gt(strlen(h.line), 400);
	evc_log(silent, EVC_LOG_INFO, NULL, "nobody hears");
	evc_log(NULL, EVC_LOG_INFO, NULL, "nobody hears");
	FREE_ALL(scope, c, silent);
	ck_assert_int_eq(atomic_load(&h.n), 3);
}
END_TEST

START_TEST(a_layer_asks_which_codes_are_clean)
{
	static const evc_status clean[] = { 40, 41 };
	evc_config cfg = { .clean = clean, .n_clean = 2 };
	evc_coord *c, *listed, *scope;

	c = new_coord(NULL);
	ck_assert(evc_is_clean(c, 0));
	ck_assert(evc_is_clean(c, EVC_OUT_OF_RANGE));
	ck_assert(evc_is_clean(c, -EVC_OUT_OF_RANGE));
	ck_assert(!evc_is_clean(c, EVC_CANCELLED));
	ck_assert(!evc_is_clean(c, 40));
	ck_assert(!evc_is_clean(c, 256));
	ck_assert(!evc_is_clean(c, -1000000));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(evc_is_clean(c, EVC_CANCELLED));
	/* by a list, and a scope by its parent's */
	OK(evc_new(NULL, &cfg, &listed));
	OK(evc_scope_new(listed, "part", NULL, &scope));
	ck_assert(evc_is_clean(scope, 41));
	ck_assert(!evc_is_clean(scope, EVC_OUT_OF_RANGE));
	FREE_ALL(scope, listed, c);
}
END_TEST

/* ---- EVC_NO_HOME ---- */

static atomic_int hook_tid, ended_tid;

static evc_status
note_hook(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	atomic_store(&hook_tid, own_tid());
	return 0;
}

static void
note_ended(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	atomic_store(&ended_tid, own_tid());
}

START_TEST(a_scope_without_a_home_needs_no_loop_to_turn)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *scope;
	evc_scope_opts o = { .config.flags = EVC_NO_HOME,
			     .ended = note_ended };

	OK(evc_scope_new(c, "group", &o, &scope));
	ck_assert_ptr_null(evc_home(scope));
	OK(evc_on_stop(scope, "hook", note_hook, NULL, NULL, NULL));
	OK(evc_scope_ready(scope));
	/* the loop does not turn meanwhile */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(scope, NULL, NULL));
	ck_assert_int_ne(hook_tid, 0);
	ck_assert_int_ne(hook_tid, own_tid());
	UNTIL(atomic_load(&ended_tid) != 0);
	ck_assert_int_eq(ended_tid, hook_tid);
	OK(evc_run(c, NULL, NULL));
	FREE_ALL(scope, c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_scope_below_one_without_a_home_has_none)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *scope, *below, *again;
	evc_scope_opts o = { .config.flags = EVC_NO_HOME };

	OK(evc_scope_new(c, "group", &o, &scope));
	OK(evc_scope_new(scope, "below", NULL, &below));
	ck_assert_ptr_null(evc_home(below));
	/* a home that is named it may have */
	o.config.flags = 0;
	o.home = evc_home(c);
	OK(evc_scope_new(scope, "again", &o, &again));
	ck_assert_ptr_nonnull(evc_home(again));
	FREE_ALL(again, below, scope, c);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(no_home_is_refused_where_it_makes_no_sense)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *none = NULL;
	evc_config k = { .flags = EVC_NO_HOME };
	evc_scope_opts o = { .config.flags = EVC_NO_HOME,
			     .home = evc_home(c) };

	REFUSED(EVC_INVALID_ARGUMENT, evc_scope_new(c, "scope", &o, &none));
	REFUSED(EVC_INVALID_ARGUMENT, evc_new(NULL, &k, &none));
	ck_assert_ptr_null(none);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("layers", a_layer_refuses_as_the_library_does,
	 a_layer_says_a_line_by_the_hook_of_its_coordinator,
	 a_layer_asks_which_codes_are_clean,
	 a_scope_without_a_home_needs_no_loop_to_turn,
	 a_scope_below_one_without_a_home_has_none,
	 no_home_is_refused_where_it_makes_no_sense)
