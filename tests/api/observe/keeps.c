/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_reactor_explain: what keeps a loop running.  Each kind of watcher and
 * reference of ours is named, the sum is what libev counts, and what is the
 * application's is said to be so.
 */
#include "../../support/report_util.h"

static const char *
keeps(const evc_reactor *r)
{
	static char text[1 << 16];
	size_t n = evc_reactor_explain(r, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	return text;
}

/* The sum at its end: references, and on the loop's thread timers. */
static unsigned
sum(const evc_reactor *r, unsigned *ret_timers)
{
	unsigned references = 0, timers = 0;
	const char *at = strstr(keeps(r), "\nin all: ");

	ck_assert_ptr_nonnull(at);
	ck_assert_int_ge(sscanf(at, "\nin all: %u reference%*[s] and %u",
				&references, &timers),
			 1);
	if (references == 1)
		ck_assert_int_ge(sscanf(at, "\nin all: 1 reference and %u",
					&timers),
				 0);
	if (ret_timers != NULL)
		*ret_timers = timers;
	return references;
}

/* Does ev_run return by itself?  Then nothing of anybody keeps it. */
static bool
returns_alone(struct ev_loop *loop)
{
	int i;

	/* what is pending, and what that begins */
	for (i = 0; i < 3; i++)
		ev_run(loop, EVRUN_NOWAIT);
	return ev_run(loop, EVRUN_NOWAIT) == 0;
}

struct field {
	struct ev_loop *loop;
	evc_coord *c;
};

static struct field
field_make(void)
{
	evc_config cfg = { .name = "field" };
	struct field f = { .loop = ev_loop_new(0) };

	f.c = new_coord_with(f.loop, &cfg);
	return f;
}

static void
field_end(struct field *f)
{
	OK(evc_free(f->c));
	ev_loop_destroy(f->loop);
}

START_TEST(our_three_watchers_keep_nothing)
{
	struct field f = field_make();
	const char *text = keeps(evc_home(f.c));

	HAS(text, "loop \"home\" (tid ");
	HAS(text, "of coordinator \"field\": ");
	HAS(text, "ev_run depth 0");
	HAS(text, "1 ev_async, 1 ev_check, 1 ev_cleanup: none of them keeps "
		  "ev_run running");
	HAS(text, "in all: 0 references and 0 ev_timers of evcoord");
	HAS(text, "whatever else keeps ev_run from returning was started by "
		  "the application, and libev does not list that\n");
	ck_assert(returns_alone(f.loop));
	field_end(&f);
}
END_TEST

START_TEST(a_join_holds_a_reference_and_a_timer)
{
	struct field f = field_make();
	unsigned timers = 0;
	evc_id id = 0;

	OK(evc_hold_begin(f.c, "h", NULL, &id));
	OK(evc_join_start(f.c, ignore_verdict, NULL, NULL));
	ck_assert(!returns_alone(f.loop));
	HAS(keeps(evc_home(f.c)), "    1 join: 1 reference, 1 ev_timer\n");
	ck_assert_uint_eq(sum(evc_home(f.c), &timers), 1);
	ck_assert_uint_eq(timers, 1);
	OK(evc_join_start(f.c, ignore_verdict, NULL, NULL));
	ev_run(f.loop, EVRUN_NOWAIT);
	HAS(keeps(evc_home(f.c)), "    2 joins: 2 references, 2 ev_timers\n");
	ck_assert_uint_eq(sum(evc_home(f.c), &timers), 2);
	ck_assert_uint_eq(timers, 2);
	OK(evc_hold_end(f.c, id));
	ev_run(f.loop, 0);
	ck_assert_uint_eq(sum(evc_home(f.c), &timers), 0);
	ck_assert_uint_eq(timers, 0);
	ck_assert(returns_alone(f.loop));
	field_end(&f);
}
END_TEST

static evc_status
beat(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

START_TEST(loopers_in_the_foreground_hold_one_reference)
{
	evc_member_opts back = { .flags = EVC_BACKGROUND };
	struct field f = field_make();
	evc_id one = 0, two = 0;

	OK(evc_looper_start(f.c, "quiet", 60, beat, NULL, &back, NULL));
	HAS(keeps(evc_home(f.c)),
	    "    1 looper, 1 of them in the background: \"quiet\"; one ev_timer "
	    "for all, no reference\n");
	ck_assert_uint_eq(sum(evc_home(f.c), NULL), 0);
	ck_assert(returns_alone(f.loop));
	OK(evc_looper_start(f.c, "one", 60, beat, NULL, NULL, &one));
	OK(evc_looper_start(f.c, "two", 60, beat, NULL, NULL, &two));
	HAS(keeps(evc_home(f.c)), "    3 loopers, 1 of them in the background: ");
	HAS(keeps(evc_home(f.c)), "; one ev_timer for all, 1 reference\n");
	ck_assert_uint_eq(sum(evc_home(f.c), NULL), 1);
	ck_assert(!returns_alone(f.loop));
	OK(evc_member_remove(f.c, one));
	OK(evc_member_remove(f.c, two));
	ck_assert(returns_alone(f.loop));
	ck_assert_uint_eq(sum(evc_home(f.c), NULL), 0);
	OK(evc_request_stop(f.c, 0, NULL));
	ev_run(f.loop, 0);
	OK(evc_run(f.c, NULL, NULL));
	field_end(&f);
}
END_TEST

START_TEST(tasks_runners_and_hooks_are_named_and_keep_nothing)
{
	static const evc_task_class upload = { "upload", NULL, NULL, 0 };
	static const evc_runner_ops ops = { .is_running = zoo_running };
	struct field f = field_make();
	evc_member_opts here = { .reactor = evc_home(f.c) };
	struct zoo z = { .running = 1 };
	evc_task t[2] = { 0 };

	OK(evc_task_begin(evc_home(f.c), &t[0], &upload));
	HAS(keeps(evc_home(f.c)), "    1 task \"upload\", without a reference\n");
	OK(evc_task_begin(evc_home(f.c), &t[1], &upload));
	HAS(keeps(evc_home(f.c)),
	    "    2 tasks \"upload\", without a reference\n");
	OK(evc_runner_add(f.c, "runner", &ops, &z, &here, NULL));
	HAS(keeps(evc_home(f.c)), "    1 runner, without a reference\n");
	OK(evc_on_stop(f.c, "my-hook", return_at_once, NULL, NULL, NULL));
	ck_assert_ptr_null(strstr(keeps(evc_home(f.c)), "my-hook"));
	ck_assert_uint_eq(sum(evc_home(f.c), NULL), 0);
	ck_assert(returns_alone(f.loop));
	OK(evc_request_stop(f.c, 0, NULL));
	HAS(keeps(evc_home(f.c)), "    stop hooks due: \"my-hook\"\n");
	/* the ring of the stop */
	HAS(keeps(evc_home(f.c)),
	    "  it has not turned since the stop: in a callback of the "
	    "application");
	ev_run(f.loop, EVRUN_NOWAIT);
	ck_assert_ptr_null(strstr(keeps(evc_home(f.c)), "my-hook"));
	atomic_store(&z.running, 0);
	evc_task_end(&t[0]);
	evc_task_end(&t[1]);
	OK(evc_run(f.c, NULL, NULL));
	field_end(&f);
}
END_TEST

START_TEST(what_is_pending_is_counted)
{
	struct field f = field_make();
	ev_timer t;

	/* what was made ready and taken back at the start counts, too */
	ev_run(f.loop, EVRUN_NOWAIT);
	HAS(keeps(evc_home(f.c)), ", 0 events pending\n");
	ev_init(&t, NULL);
	ev_feed_event(f.loop, &t, EV_TIMER);
	HAS(keeps(evc_home(f.c)), ", 1 event pending\n");
	ev_clear_pending(f.loop, &t);
	ev_run(f.loop, EVRUN_NOWAIT);
	HAS(keeps(evc_home(f.c)), ", 0 events pending\n");
	field_end(&f);
}
END_TEST

/* A scope's home on the same loop, with a join of its own. */
START_TEST(scopes_on_the_same_loop_count_too)
{
	struct field f = field_make();
	evc_coord *s = NULL;
	unsigned timers;
	evc_id id = 0;

	OK(evc_scope_new(f.c, "plugin", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_hold_begin(s, "h", NULL, &id));
	OK(evc_join_start(s, ignore_verdict, NULL, NULL));
	ev_run(f.loop, EVRUN_NOWAIT);
	HAS(keeps(evc_home(f.c)), "\" of scope \"plugin\"\n    1 join: ");
	ck_assert_uint_eq(sum(evc_home(f.c), &timers), 1);
	ck_assert_uint_eq(timers, 1);
	/* and from there the whole loop is seen as well */
	HAS(keeps(evc_home(s)), "of scope \"plugin\": ");
	HAS(keeps(evc_home(s)), "of coordinator \"field\"\n");
	ck_assert_uint_eq(sum(evc_home(s), NULL), 1);
	OK(evc_hold_end(s, id));
	ev_run(f.loop, 0);
	OK(evc_free(s));
	field_end(&f);
}
END_TEST

/* Inside a run of ours. */
struct inside {
	evc_coord *c;
	ev_timer timer, inner;
	char text[4096], nested[4096];
	bool nests;
};

static void
on_inner(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct inside *i = w->data;

	(void)revents;
	snprintf(i->nested, sizeof(i->nested), "%s", keeps(evc_home(i->c)));
	ev_break(loop, EVBREAK_ONE);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct inside *i = w->data;

	(void)revents;
	snprintf(i->text, sizeof(i->text), "%s", keeps(evc_home(i->c)));
	evc_request_stop(i->c, 0, NULL);
	if (!i->nests)
		return;
	/* the join is answered in here, and its ev_run must wait */
	ev_timer_init(&i->inner, on_inner, 0.05, 0);
	i->inner.data = i;
	ev_timer_start(loop, &i->inner);
	ev_run(loop, 0);
}

START_TEST(a_run_of_ours_holds_a_reference)
{
	struct field f = field_make();
	struct inside i = { .c = f.c };

	ev_timer_init(&i.timer, on_timer, 0, 0);
	i.timer.data = &i;
	ev_timer_start(f.loop, &i.timer);
	OK(evc_run(f.c, NULL, NULL));
	HAS(i.text, "ev_run depth 1");
	HAS(i.text, "    1 join: 1 reference");
	OK(evc_clear_stop(f.c));
	ev_timer_start(f.loop, &i.timer);
	OK(evc_reactor_run(evc_home(f.c)));
	HAS(i.text, "    1 run (evc_reactor_run): 1 reference\n");
	HAS(i.text, "in all: 1 reference and 0 ev_timers of evcoord");
	field_end(&f);
}
END_TEST

START_TEST(a_run_that_waits_for_a_nested_one_has_an_ev_prepare)
{
	struct field f = field_make();
	struct inside i = { .c = f.c, .nests = true };

	ev_timer_init(&i.timer, on_timer, 0, 0);
	i.timer.data = &i;
	ev_timer_start(f.loop, &i.timer);
	OK(evc_run(f.c, NULL, NULL));
	ck_assert_ptr_null(strstr(i.text, "ev_prepare"));
	HAS(i.nested, "ev_run depth 2");
	HAS(i.nested, "1 ev_cleanup, 1 ev_prepare (an ev_run of ours is over");
	field_end(&f);
}
END_TEST

static void *
explain_elsewhere(void *arg)
{
	static char text[4096];

	evc_reactor_explain(arg, text, sizeof(text));
	return text;
}

START_TEST(on_another_thread_it_says_what_it_cannot_see)
{
	struct field f = field_make();
	evc_coord *s = NULL;
	pthread_t t;
	evc_id id = 0;
	void *text;

	OK(evc_scope_new(f.c, "plugin", NULL, &s));
	OK(evc_scope_ready(s));
	OK(evc_hold_begin(f.c, "h", NULL, &id));
	OK(evc_join_start(f.c, ignore_verdict, NULL, NULL));
	OK(pthread_create(&t, NULL, explain_elsewhere, evc_home(f.c)));
	OK(pthread_join(t, &text));
	HAS(text, "asked on another thread, so its depth, its pending events "
		  "and its timers are not known\n");
	HAS(text, "    1 join: 1 reference\n");
	HAS(text, "  1 more reactor on this loop: only its own thread may look "
		  "at them\n");
	HAS(text, "in all: 1 reference of evcoord keeps ev_run running; ");
	HAS(text, "started by the application");
	OK(evc_hold_end(f.c, id));
	ev_run(f.loop, 0);
	OK(evc_free(s));
	field_end(&f);
}
END_TEST

START_TEST(a_loop_that_was_destroyed_has_nothing_of_ours)
{
	struct field f = field_make();
	evc_reactor *home = evc_home(f.c);

	ev_loop_destroy(f.loop);
	HAS(keeps(home), "loop \"home\" (tid ");
	HAS(keeps(home), ") was destroyed: nothing of evcoord is on it\n");
	OK(evc_free(f.c));
}
END_TEST

API_MAIN("keeps", our_three_watchers_keep_nothing,
	 a_join_holds_a_reference_and_a_timer,
	 loopers_in_the_foreground_hold_one_reference,
	 tasks_runners_and_hooks_are_named_and_keep_nothing,
	 what_is_pending_is_counted, scopes_on_the_same_loop_count_too,
	 a_run_of_ours_holds_a_reference,
	 a_run_that_waits_for_a_nested_one_has_an_ev_prepare,
	 on_another_thread_it_says_what_it_cannot_see,
	 a_loop_that_was_destroyed_has_nothing_of_ours)
