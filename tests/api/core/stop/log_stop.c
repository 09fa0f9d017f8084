/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log's lines about the stop: one when it was asked for, one when it is
 * over, and what happens between them; each once, and none from who asks.
 */
#include "../../../support/api_util.h"

#include <ev.h>

enum { MOST = 64 };

struct line {
	int level, tid;
	bool has_reason;
	evc_reason reason;
	char text[512];
};

struct log {
	pthread_mutex_t lock;
	struct line line[MOST];
	int n;
};

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct log *g = arg;
	struct line *l;

	pthread_mutex_lock(&g->lock);
	if (g->n < MOST) {
		l = &g->line[g->n++];
		l->level = level;
		l->tid = own_tid();
		l->has_reason = r != NULL;
		if (r != NULL)
			l->reason = *r;
		snprintf(l->text, sizeof(l->text), "%s", line);
	}
	pthread_mutex_unlock(&g->lock);
}

/* How many lines of that level hold text; the last of them. */
static int
count(struct log *g, int level, const char *text, struct line *ret)
{
	int i, n = 0;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->n; i++)
		if (g->line[i].level == level &&
		    strstr(g->line[i].text, text) != NULL) {
			n++;
			if (ret != NULL)
				*ret = g->line[i];
		}
	pthread_mutex_unlock(&g->lock);
	return n;
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

#define BEGUN(g)   count((g), EVC_LOG_INFO, "-coordinator requested", NULL)
#define OVER(g)	   count((g), EVC_LOG_INFO, " ended after ", NULL)
#define CLEARED(g) count((g), EVC_LOG_INFO, " cleared", NULL)

static evc_coord *
logged(struct log *g, struct ev_loop *loop, evc_config *cfg)
{
	memset(g, 0, sizeof(*g));
	OK(pthread_mutex_init(&g->lock, NULL));
	cfg->name = "the-coordinator";
	cfg->log = keep_line;
	cfg->arg = g;
	return new_coord_with(loop, cfg);
}

START_TEST(a_stop_has_a_line_when_it_begins_and_one_when_it_is_over)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	struct joiner j;
	struct line l;
	evc_id id = 0;
	int i;

	for (i = 0; i < 3; i++)
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	join_begin(&j, c, 0, 0);
	ck_assert_int_eq(lines(&g), 0);
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "end of input"));
	UNTIL(BEGUN(&g) == 1);
	ck_assert_int_eq(lines(&g), 1);
	ck_assert_int_eq(OVER(&g), 0);
	OK(evc_hold_end(c, id));
	OK(join_end(&j));

	ck_assert_int_eq(count(&g, EVC_LOG_INFO, "requested", &l), 1);
	HAS(l.text, "stop of the-coordinator requested: OUT_OF_RANGE (11)"
		    ": end of input; by \"");
	HAS(l.text, "log_stop.c:");
	HAS(l.text, " in ");
	ck_assert(l.has_reason);
	ck_assert_uint_eq(l.reason.kind, EVC_BY_REQUEST);
	ck_assert_int_eq(l.reason.code, EVC_OUT_OF_RANGE);
	ck_assert_str_eq(l.reason.text, "end of input");
	/* Neither the requester tells nor the joiner. */
	ck_assert_int_ne(l.tid, own_tid());
	ck_assert_int_ne(l.tid, atomic_load(&j.tid));

	ck_assert_int_eq(count(&g, EVC_LOG_INFO, "stop of the-coordinator ended after ", &l), 1);
	HAS(l.text, "stop of the-coordinator ended after 0.");
	HAS(l.text, " s; 4 members ended");
	ck_assert(!l.has_reason);

	/* Each once. */
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(lines(&g), 2);
}
END_TEST

START_TEST(how_long_it_took_is_said)
{
	evc_config cfg = { .clock = scripted_clock };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	evc_id id = 0;

	/* One clock, which begins where cfg.arg does not matter. */
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	scripted_advance(1.5);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(count(&g, EVC_LOG_INFO,
			       "ended after 1.500 s; 1 member ended", NULL),
			 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_loop_that_turns_says_that_it_has_begun)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, loop, &cfg);

	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	UNTIL(BEGUN(&g) == 1);
	ev_run(loop, EVRUN_NOWAIT);
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(BEGUN(&g), 1);
	ck_assert_int_eq(OVER(&g), 1);
	ck_assert_int_eq(lines(&g), 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(an_error_has_its_own_line_between_them)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);

	OK(evc_request_stop(c, EVC_DATA_LOSS, "bad disk"));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_int_eq(lines(&g), 3);
	HAS(g.line[0].text, "requested: DATA_LOSS (15): bad disk");
	HAS(g.line[1].text, "error DATA_LOSS (15): bad disk");
	ck_assert_int_eq(g.line[1].level, EVC_LOG_ERROR);
	HAS(g.line[2].text, "ended after");
	OK(evc_free(c));
}
END_TEST

START_TEST(each_round_has_its_lines)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	int i;

	for (i = 1; i <= 3; i++) {
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(BEGUN(&g), i);
		ck_assert_int_eq(OVER(&g), i);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
	ck_assert_int_eq(lines(&g), 6);
	ck_assert_int_eq(CLEARED(&g), 0);
}
END_TEST

START_TEST(one_that_no_join_has_ended_is_told_as_cleared)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);

	OK(evc_request_stop(c, 0, "the first"));
	OK(evc_clear_stop(c));
	ck_assert_int_eq(BEGUN(&g), 1);
	OK(evc_request_stop(c, 0, "the second"));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(lines(&g), 4);
	HAS(g.line[0].text, "the first");
	HAS(g.line[1].text, "stop of the-coordinator cleared");
	HAS(g.line[2].text, "the second");
	HAS(g.line[3].text, "ended after");
	OK(evc_free(c));
	ck_assert_int_eq(lines(&g), 4);
}
END_TEST

START_TEST(one_that_only_evc_free_ends_is_over_then)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	evc_id id = 0;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	ck_assert_int_eq(BEGUN(&g), 1);
	ck_assert_int_eq(OVER(&g), 0);
	OK(evc_hold_end(c, id));
	/* The thread obeys, and until it has it is refused. */
	UNTIL(evc_free(c) == 0);
	ck_assert_int_eq(count(&g, EVC_LOG_INFO, "2 members ended", NULL), 1);
	ck_assert_int_eq(lines(&g), 2);
}
END_TEST

START_TEST(the_line_of_a_clear_is_out_when_it_returns)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	int i;

	for (i = 1; i <= 20; i++) {
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_clear_stop(c));
		ck_assert_int_eq(lines(&g), 2 * i);
		HAS(g.line[2 * i - 1].text, "stop of the-coordinator cleared");
	}
	OK(evc_free(c));
}
END_TEST

/* The place of the first line with this text; lines(g): there is none. */
static int
first(struct log *g, const char *text)
{
	int i, n = lines(g);

	for (i = 0; i < n && strstr(g->line[i].text, text) == NULL; i++)
		;
	return i;
}

/* A stop of 50 ms with a hold that stays: the join on this thread, or the run
   of the loop, answers; then the report is written, with the answer. */
static void
check_report_of_late(struct ev_loop *loop)
{
	evc_escalation_opts escalation = { .budget = 0.05 };
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, loop, &cfg);
	evc_id id = 0;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "stays", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(loop != NULL ? evc_run(c, NULL, NULL) :
					evc_join(c, NULL, NULL),
			 EVC_DEADLINE_EXCEEDED);
	ck_assert_int_lt(first(&g, "-coordinator ended after"),
			 first(&g, "the time of the stop is over"));
	ck_assert_int_lt(first(&g, "the time of the stop is over"),
			 first(&g, "hold \"stays\""));
	ck_assert_int_lt(first(&g, ", abandoned +0."), lines(&g));
	ck_assert_int_lt(first(&g, "so far: 1 stop in 0."), lines(&g));
	ck_assert_int_lt(first(&g, ", 1 straggler, "), lines(&g));
	/* The loop that answers is late for nothing. */
	ck_assert_int_eq(first(&g, "loop \""), lines(&g));
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}

START_TEST(the_report_of_a_late_stop_has_the_answer_of_its_join)
{
	struct ev_loop *loop = ev_loop_new(0);
	int i;

	for (i = 0; i < 4; i++) {
		check_report_of_late(NULL);
		check_report_of_late(loop);
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_request_has_its_line_before_the_next_line_of_evc_log)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg), *s = NULL;
	int i;

	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	for (i = 0; i < 200; i++) {
		OK(evc_request_stop(c, 0, NULL));
		evc_log(i % 2 ? s : c, EVC_LOG_INFO, NULL, "consequence");
		(void)evc_log_flush(c, INFINITY);
		ck_assert_int_eq(first(&g, "-coordinator requested"), 0);
		ck_assert_int_eq(first(&g, "consequence"), 1);
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		g.n = 0;
	}
	FREE_ALL(s, c);
}
END_TEST

/* A join of the scope is late long before the time of the stop is over. */
START_TEST(after_the_end_of_a_stop_no_line_says_that_it_is_near)
{
	evc_config cfg = { 0 };
	evc_escalation_opts escalation = { .budget = 0.3 };
	evc_join_opts opts = { .grace = EVC_NO_GRACE };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg), *s = NULL;
	evc_id above, below;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_hold_begin(c, "above", NULL, &above));
	OK(evc_hold_begin(s, "below", NULL, &below));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(s, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(count(&g, EVC_LOG_ERROR, "stop of scope ended", NULL),
			 1);
	UNTIL(count(&g, EVC_LOG_ERROR, "the time of the stop is over", NULL) ==
	      1);
	ck_assert_int_eq(count(&g, EVC_LOG_WARNING,
			       "-coordinator is about to end", NULL),
			 1);
	ck_assert_int_eq(count(&g, EVC_LOG_WARNING, "scope is about to end",
			       NULL),
			 0);
	OK(evc_hold_end(s, below));
	OK(evc_hold_end(c, above));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, c);
}
END_TEST

/* A late join ends no stop; the next one does. */
START_TEST(one_that_is_late_is_over_when_all_have_ended)
{
	evc_config cfg = { 0 };
	evc_join_opts opts = { .grace = EVC_NO_GRACE };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	evc_id id = 0;

	OK(evc_hold_begin(c, "laggard", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(BEGUN(&g), 1);
	ck_assert_int_eq(OVER(&g), 0);
	ck_assert_int_eq(count(&g, EVC_LOG_ERROR, "ended after", NULL), 1);
	ck_assert_int_eq(count(&g, EVC_LOG_ERROR, "hold \"laggard\"", NULL), 1);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(OVER(&g), 1);
	OK(evc_free(c));
}
END_TEST

/* The parent's line speaks for them; a stop of their own has lines. */
START_TEST(scopes_that_inherit_a_stop_are_silent)
{
	evc_config cfg = { 0 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg), *a = NULL, *b = NULL;

	OK(evc_scope_new(c, "alone", NULL, &a));
	OK(evc_scope_ready(a));
	OK(evc_scope_new(c, "with-all", NULL, &b));
	OK(evc_scope_ready(b));
	OK(evc_request_stop(a, 0, "only this one"));
	OK(evc_join(a, NULL, NULL));
	ck_assert_int_eq(lines(&g), 2);
	HAS(g.line[0].text, "stop of alone requested: OK (0): only this");
	HAS(g.line[1].text, "stop of alone ended after");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(b, NULL, NULL));
	ck_assert_int_eq(count(&g, EVC_LOG_INFO, "with-all", NULL), 0);
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(lines(&g), 4);
	FREE_ALL(a, b, c);
	ck_assert_int_eq(lines(&g), 4);
}
END_TEST

START_TEST(the_last_chance_and_a_veto_are_warnings)
{
	evc_config cfg = { 0 };
	evc_escalation_opts escalation = { .budget = 0.4, .hard_end = 0.6 };
	struct log g;
	evc_coord *c = logged(&g, NULL, &cfg);
	double granted = 0;
	struct line l;
	evc_id id = 0;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "laggard", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_extend_stop(c, id, 0.1, "still writing", &granted));
	/* After the answer of a join this line would not come any more. */
	UNTIL(count(&g, EVC_LOG_WARNING, "still running", NULL) == 1);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(count(&g, EVC_LOG_WARNING, " extended by ", &l),
			 1);
	ck_assert_str_eq(l.text, "stop of the-coordinator extended by 0.100 s for "
				 "laggard: still writing");
	UNTIL(count(&g, EVC_LOG_WARNING, "still running", &l) == 1);
	ck_assert_str_eq(l.text, "stop of the-coordinator is about to end; still "
				 "running: laggard");
	ck_assert(!l.has_reason);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(count(&g, EVC_LOG_WARNING, "", NULL), 2);
}
END_TEST

API_MAIN("log_stop", a_stop_has_a_line_when_it_begins_and_one_when_it_is_over,
	 how_long_it_took_is_said, a_loop_that_turns_says_that_it_has_begun,
	 an_error_has_its_own_line_between_them, each_round_has_its_lines,
	 one_that_no_join_has_ended_is_told_as_cleared,
	 one_that_only_evc_free_ends_is_over_then,
	 the_line_of_a_clear_is_out_when_it_returns,
	 the_report_of_a_late_stop_has_the_answer_of_its_join,
	 a_request_has_its_line_before_the_next_line_of_evc_log,
	 after_the_end_of_a_stop_no_line_says_that_it_is_near,
	 one_that_is_late_is_over_when_all_have_ended,
	 scopes_that_inherit_a_stop_are_silent,
	 the_last_chance_and_a_veto_are_warnings)
