/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the pages promise in passing, and no other test would miss.
 */
#include "../../../support/scope_util.h"

struct beside {
	evc_coord *c;
	evc_status joined, asked;
	pthread_t thread;
};

static void *
join_beside(void *arg)
{
	struct beside *b = arg;

	b->joined = evc_join(b->c, NULL, NULL);
	b->asked = evc_request_stop(b->c, EVC_INTERNAL, "after that join");
	return NULL;
}

static void
begin_beside(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct beside *b = w->data;

	(void)loop;
	(void)revents;
	OK(pthread_create(&b->thread, NULL, join_beside, b));
}

/* While evc_run waits for its stop no other join closes the round: an error that
   comes then is not handed back. */
START_TEST(a_join_beside_a_run_answers_for_itself_alone)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct beside b = { .c = new_coord(loop), .asked = 77 };
	ev_timer begin;

	ev_timer_init(&begin, begin_beside, 0, 0);
	begin.data = &b;
	ev_timer_start(loop, &begin);
	ck_assert_int_eq(evc_run(b.c, NULL, NULL), EVC_INTERNAL);
	OK(pthread_join(b.thread, NULL));
	OK(b.joined);
	OK(b.asked);
	OK(evc_free(b.c));
	ev_loop_destroy(loop);
}
END_TEST

struct ending {
	evc_coord *c;
	evc_id id;
};

static void
end_hold(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct ending *e = w->data;

	(void)loop;
	(void)revents;
	evc_hold_end(e->c, e->id);
}

/* Of two loops of one thread a join turns the one that it names. */
START_TEST(a_join_turns_the_loop_that_it_names)
{
	struct ev_loop *home = ev_loop_new(0), *second = ev_loop_new(0);
	evc_join_opts o = { .grace = T_LIMIT / 2 };
	struct ending e = { .c = new_coord(home) };
	ev_timer end;

	OK(evc_reactor_attach(e.c, "second", second, &o.reactor));
	e.id = hold(e.c, "until the second loop turns");
	ev_timer_init(&end, end_hold, 0, 0);
	end.data = &e;
	ev_timer_start(second, &end);
	OK(evc_request_stop(e.c, 0, NULL));
	OK(evc_join(e.c, &o, NULL));
	OK(evc_reactor_detach(o.reactor));
	OK(evc_free(e.c));
	ev_loop_destroy(second);
	ev_loop_destroy(home);
}
END_TEST

static void
count_cleared(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	atomic_fetch_add((atomic_int *)arg,
			 strstr(line, " cleared") != NULL);
}

START_TEST(that_a_stop_was_cleared_is_said_once)
{
	atomic_int n = 0;
	evc_config cfg = { .log = count_cleared,
			   .arg = &n };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_id id = hold(c, "late");
	int i;

	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &none, NULL), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, id));
	OK(evc_clear_stop(c));
	for (i = 0; i < 3; i++)
		OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&n), 1);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&n), 1);
}
END_TEST

/* A maker whose set-up has failed gives its scope up; joins go on without. */
START_TEST(a_scope_that_is_held_may_be_given_up)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "given-up", NULL);
	struct joiner j;
	evc_id id = hold(s, "begun");

	join_begin(&j, c, 0, 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(s));
	HAS(evc_last_error(), "begun");
	OK(evc_hold_end(s, id));
	OK(evc_free(s));
	OK(join_end(&j));
	OK(evc_free(c));
}
END_TEST

API_MAIN("in_passing", a_join_beside_a_run_answers_for_itself_alone,
	 a_join_turns_the_loop_that_it_names,
	 that_a_stop_was_cleared_is_said_once,
	 a_scope_that_is_held_may_be_given_up)
