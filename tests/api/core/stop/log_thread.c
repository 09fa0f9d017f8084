/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log hook runs on a thread of its own, one line at a time: a line comes
 * at once although the loop hangs, a cause stands before its consequence, and
 * a hook that hangs holds up nobody.
 */
#include "../../../support/api_util.h"

#include <ev.h>

enum { MOST = 2048 };

struct log {
	pthread_mutex_t lock;
	char line[MOST][200];
	int tid[MOST];
	int n;
	atomic_int inside, most_inside;
	atomic_bool hang;
};

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct log *g = arg;
	int n = atomic_fetch_add(&g->inside, 1) + 1;

	(void)level;
	(void)r;
	if (n > atomic_load(&g->most_inside))
		atomic_store(&g->most_inside, n);
	pthread_mutex_lock(&g->lock);
	if (g->n < MOST) {
		snprintf(g->line[g->n], sizeof(g->line[0]), "%s", line);
		g->tid[g->n++] = own_tid();
	}
	pthread_mutex_unlock(&g->lock);
	while (atomic_load(&g->hang))
		t_sleep(0.001);
	atomic_fetch_sub(&g->inside, 1);
}

static int
lines(struct log *g)
{
	int n;

	pthread_mutex_lock(&g->lock);
	n = g->n;
	pthread_mutex_unlock(&g->lock);
	return n;
}

static int
count(struct log *g, const char *text)
{
	int i, n = 0;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->n; i++)
		n += strstr(g->line[i], text) != NULL;
	pthread_mutex_unlock(&g->lock);
	return n;
}

static struct log g;

static evc_coord *
logged(struct ev_loop *loop)
{
	evc_config cfg = { .name = "web", .log = keep_line, .arg = &g };

	OK(pthread_mutex_init(&g.lock, NULL));
	return new_coord_with(loop, &cfg);
}

struct hung {
	evc_coord *c;
	ev_timer t;
	bool line_came;
};

static void
hang_until_line(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct hung *h = t->data;

	(void)loop;
	(void)revents;
	OK(evc_request_stop(h->c, 0, "from the callback"));
	UNTIL(count(&g, "stop of web requested") == 1);
	h->line_came = true;
}

START_TEST(the_line_of_a_request_comes_while_the_loop_hangs)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct hung h = { .c = logged(loop) };

	h.t.data = &h;
	ev_timer_init(&h.t, hang_until_line, 0., 0.);
	ev_timer_start(loop, &h.t);
	OK(evc_run(h.c, NULL, NULL));
	ck_assert(h.line_came);
	OK(evc_free(h.c));
	ck_assert_int_eq(lines(&g), 2);
	ck_assert_int_ne(g.tid[0], own_tid());
	ck_assert_int_eq(g.tid[0], g.tid[1]);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(the_line_of_a_scope_comes_without_any_join)
{
	evc_coord *c = logged(NULL), *s;

	OK(evc_scope_new(c, "db", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_request_stop(s, 0, "alone"));
	UNTIL(count(&g, "stop of db requested: OK (0): alone") == 1);
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

enum { FAILING = 16, ERRORS = 10 };

static evc_status
fail_often(evc_coord *c, void *arg)
{
	int i;

	for (i = 0; i < ERRORS; i++)
		evc_fail(c, EVC_UNAVAILABLE, 0, "%d of %d", i,
			 (int)(intptr_t)arg);
	return 0;
}

START_TEST(the_request_stands_before_errors_and_they_before_the_end)
{
	evc_coord *c = logged(NULL);
	int i;
	evc_member_opts late = { .flags = EVC_AFTER_STOP };

	for (i = 0; i < FAILING; i++)
		OK(evc_thread_start(c, "fails", fail_often,
				    (void *)(intptr_t)i, &late, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_UNAVAILABLE);
	/* All lines are out when the join returns. */
	ck_assert_int_eq(count(&g, "stop of web ended after"), 1);
	HAS(g.line[0], "stop of web requested");
	HAS(g.line[lines(&g) - 1], "stop of web ended after");
	ck_assert_int_eq(atomic_load(&g.most_inside), 1);
	OK(evc_free(c));
}
END_TEST

static evc_status
stays_in_hook(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	UNTIL(count(&g, "stays") == 1);
	return 0;
}

START_TEST(lines_come_while_a_hook_holds_the_helper_without_any_join)
{
	evc_coord *c = logged(NULL);

	OK(evc_on_stop(c, "long", stays_in_hook, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(count(&g, "requested") == 1);
	evc_fail(c, EVC_INTERNAL, 0, "stays");
	UNTIL(count(&g, "stays") == 1);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_hook_that_hangs_holds_up_no_join)
{
	evc_coord *c = logged(NULL);

	atomic_store(&g.hang, true);
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(lines(&g), 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "log hook");
	atomic_store(&g.hang, false);
	UNTIL(count(&g, "ended after") == 1);
	OK(evc_free(c));
	ck_assert_int_eq(lines(&g), 2);
}
END_TEST

/* The hook has a line of the scope's, or one before. */
static void
free_a_scope(bool its_line)
{
	const evc_scope_opts quiet = { .no_log = true,
				       .on_error = EVC_ON_ERROR_REPORT };
	evc_coord *c = logged(NULL), *s, *t;
	evc_verdict v;

	atomic_store(&g.hang, true);
	OK(evc_scope_new(c, "db", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_scope_new(c, "quiet", &quiet, &t));
	OK(evc_scope_ready(t));
	if (its_line)
		OK(evc_request_stop(s, 0, NULL));
	else
		evc_log(c, EVC_LOG_INFO, NULL, "the first");
	UNTIL(lines(&g) == 1);
	OK(evc_request_stop(s, 0, NULL));
	evc_fail(t, EVC_DATA_LOSS, 0, "of quiet");
	OK(evc_free(s));
	OK(evc_free(t));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	HAS(v.error.text, "of quiet");
	ck_assert_int_eq(lines(&g), 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	atomic_store(&g.hang, false);
	UNTIL(count(&g, "stop of db ended after") == 1);
	OK(evc_free(c));
	ck_assert_int_eq(count(&g, "stop of db requested"), 1);
	/* It has no line of its own. */
	ck_assert_int_eq(count(&g, "of quiet"), 1);
	ck_assert_int_eq(count(&g, "web: error DATA_LOSS"), 1);
}

START_TEST(a_hook_that_hangs_keeps_no_scope)
{
	free_a_scope(false);
}
END_TEST

START_TEST(nor_a_scope_whose_line_it_has)
{
	free_a_scope(true);
}
END_TEST

static evc_status
logs_and_ends(evc_coord *c, void *arg)
{
	(void)arg;
	evc_log(c, EVC_LOG_INFO, NULL, "it ends");
	return 0;
}

START_TEST(nor_the_scope_of_a_thread)
{
	const evc_member_opts own = { .flags = EVC_OWN_SCOPE };
	evc_coord *c = logged(NULL);

	atomic_store(&g.hang, true);
	evc_log(c, EVC_LOG_INFO, NULL, "the first");
	UNTIL(lines(&g) == 1);
	OK(evc_thread_start(c, "t", logs_and_ends, NULL, &own, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(lines(&g), 1);
	atomic_store(&g.hang, false);
	UNTIL(count(&g, "it ends") == 1);
	OK(evc_free(c));
}
END_TEST

/* A coordinator with 1500 lines behind a hook that hangs. */
static evc_coord *
stormed(void)
{
	evc_coord *c = logged(NULL);
	int i;

	atomic_store(&g.hang, true);
	evc_log(c, EVC_LOG_INFO, NULL, "first");
	UNTIL(lines(&g) == 1);
	for (i = 0; i < 1500; i++)
		evc_log(c, EVC_LOG_INFO, NULL, "line %d", i);
	return c;
}

START_TEST(lines_beyond_a_thousand_are_counted)
{
	evc_coord *c = stormed();

	g.n = 0;
	atomic_store(&g.hang, false);
	OK(evc_free(c));
	ck_assert_int_eq(lines(&g), 1000 + 1);
	HAS(g.line[0], "web: line 0");
	HAS(g.line[1000], "500 lines of the log are lost");
}
END_TEST

START_TEST(a_storm_of_evc_log_leaves_places_to_the_library)
{
	evc_coord *c = stormed();

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	atomic_store(&g.hang, false);
	OK(evc_free(c));
	ck_assert_int_eq(count(&g, "stop of web ended after"), 1);
	ck_assert_int_eq(count(&g, "stop of web requested"), 1);
}
END_TEST

static void
free_in_hook(int level, const char *line, const evc_reason *r, void *arg)
{
	evc_coord **c = arg;

	(void)level;
	(void)line;
	(void)r;
	if (*c == NULL)
		return;
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(*c));
	HAS(evc_last_error(), "inside a log hook");
	OK(evc_request_stop(*c, 0, "from the hook"));
	*c = NULL;
}

START_TEST(a_hook_may_request_the_stop_and_may_not_free)
{
	evc_coord *given = NULL, *c;
	evc_config cfg = { .log = free_in_hook, .arg = &given };

	c = new_coord_with(NULL, &cfg);
	given = c;
	evc_log(c, EVC_LOG_INFO, NULL, "a line");
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

API_MAIN("log_thread", the_line_of_a_request_comes_while_the_loop_hangs,
	 the_line_of_a_scope_comes_without_any_join,
	 the_request_stands_before_errors_and_they_before_the_end,
	 lines_come_while_a_hook_holds_the_helper_without_any_join,
	 a_hook_that_hangs_holds_up_no_join, a_hook_that_hangs_keeps_no_scope,
	 nor_a_scope_whose_line_it_has, nor_the_scope_of_a_thread,
	 lines_beyond_a_thousand_are_counted,
	 a_storm_of_evc_log_leaves_places_to_the_library,
	 a_hook_may_request_the_stop_and_may_not_free)
