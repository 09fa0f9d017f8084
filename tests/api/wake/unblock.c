/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unblock of a member: called for every kind of member, with what belongs
 * to it, from the stop on, again and again, until it has ended and no more.
 */
#include "../../support/rouse_util.h"
#include "../../support/child_util.h"

/* ---- somebody who stays until unblock was called often enough ---- */

struct lodger {
	evc_coord *c;
	atomic_int calls, tid, in, open, over;
	atomic_int wrong; /* calls after the end, or on a thread of its own */
	int ends_at;      /* this many calls let it go */
	atomic_int joined;
};

/* For those whose unblock is called with NULL. */
static struct lodger *alone;
static atomic_int with_arg;

static void
nudge(struct lodger *l)
{
	if (atomic_load(&l->over) || own_tid() == atomic_load(&l->tid))
		atomic_fetch_add(&l->wrong, 1);
	if (atomic_fetch_add(&l->calls, 1) + 1 >= l->ends_at)
		atomic_store(&l->open, 1);
}

static void
unblock_arg(void *arg)
{
	nudge(arg);
}

static void
unblock_none(void *arg)
{
	if (arg != NULL)
		atomic_fetch_add(&with_arg, 1);
	nudge(alone);
}

static evc_status
lodge(evc_coord *c, void *arg)
{
	struct lodger *l = arg;

	(void)c;
	atomic_store(&l->tid, own_tid());
	atomic_store(&l->in, 1);
	while (!atomic_load(&l->open))
		t_sleep(0.001);
	return 0;
}

static void *
lodge_thread(void *arg)
{
	lodge(NULL, arg);
	return NULL;
}

static void *
lodge_in_guard(void *arg)
{
	evc_member_opts o = { .unblock = unblock_arg };
	struct lodger *l = arg;

	evc_guard(l->c, "guarded", lodge, l, &o);
	/* In no guard any more: it is called no more. */
	atomic_store(&l->over, 1);
	t_sleep(MOMENT);
	return NULL;
}

static bool
lodger_runs(void *arg)
{
	return !atomic_load(&((struct lodger *)arg)->open);
}

static evc_status
lodger_join(void *arg)
{
	atomic_store(&((struct lodger *)arg)->joined, 1);
	return 0;
}

static void
no_stop(void *arg)
{
	(void)arg;
}

static evc_status
lodger_wait(void *arg)
{
	return lodge(NULL, arg);
}

static evc_status
reactor_up(evc_reactor *r, void *arg)
{
	struct lodger *l = arg;

	(void)r;
	atomic_store(&l->in, 1);
	return 0;
}

enum {
	THREAD, REGISTERED_THREAD, HOLD, LOOPER, RUNNER, FOREIGN, GUARD,
	N_MEMBERS
};

/* Begin one of a kind; its id, or 0 when it has none. */
static evc_id
lodger_begin(struct lodger *l, int what, evc_coord *c, pthread_t *t)
{
	static const evc_runner_ops ops = { lodger_runs, NULL, lodger_join,
					    NULL };
	evc_member_opts o = { .unblock = unblock_arg };
	evc_id id = 0;

	l->c = c;
	switch (what) {
	case THREAD:
		OK(evc_thread_start(c, "lodger", lodge, l, &o, &id));
		break;
	case REGISTERED_THREAD:
		o.unblock = unblock_none;
		OK(pthread_create(t, NULL, lodge_thread, l));
		OK(evc_register_thread(c, "lodger", *t, &o, &id));
		break;
	case HOLD:
		o.unblock = unblock_none;
		OK(evc_hold_begin(c, "lodger", &o, &id));
		break;
	case LOOPER:
		o.flags = EVC_OWN_THREAD;
		OK(evc_looper_start(c, "lodger", INFINITY, lodge, l, &o, &id));
		break;
	case RUNNER:
		OK(evc_runner_add(c, "lodger", &ops, l, &o, &id));
		break;
	case FOREIGN:
		OK(evc_foreign_add(c, "lodger", no_stop, lodger_wait, l, &o,
				   &id));
		break;
	default:
		OK(pthread_create(t, NULL, lodge_in_guard, l));
		break;
	}
	if (what == HOLD || what == RUNNER || what == FOREIGN)
		return id;
	UNTIL(atomic_load(&l->in));
	return id;
}

START_TEST(it_is_called_until_the_member_has_ended)
{
	struct lodger *l = calloc(1, sizeof(*l));
	evc_coord *c = new_coord(NULL);
	struct joiner j;
	evc_id id, other = 0;
	pthread_t t;

	l->ends_at = 6;
	alone = l;
	/* Keeps the stop standing when the other has ended. */
	OK(evc_hold_begin(c, "other", NULL, &other));
	id = lodger_begin(l, _i, c, &t);
	NOT_YET(atomic_load(&l->calls) > 0);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, T_LIMIT, 0);
	UNTIL(atomic_load(&l->open));
	if (_i == HOLD)
		OK(evc_hold_end(c, id));
	else if (_i == GUARD)
		OK(pthread_join(t, NULL));
	else
		UNTIL(is_gone(c, id));
	ck_assert_int_ge(atomic_load(&l->calls), 6);
	ck_assert_int_eq(atomic_load(&l->wrong), 0);
	ck_assert_int_eq(atomic_load(&with_arg), 0);
	/* A call now would use what is freed. */
	memset(l, 0xff, sizeof(*l));
	alone = NULL;
	free(l);
	let_come();
	OK(evc_hold_end(c, other));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	OK(evc_free(c));
}
END_TEST

/* The same on loops: a looper, and the thread of a loop. */
/* A stop ends the member by n calls at least; none comes after its end. */
static void
ends_by_unblock(evc_coord *c, struct lodger *l, int n)
{
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, NULL));
	atomic_store(&l->over, 1);
	ck_assert_int_ge(atomic_load(&l->calls), n);
	NOT_YET(atomic_load(&l->wrong) > 0);
	OK(evc_free(c));
}

START_TEST(it_is_called_for_a_looper_on_a_loop)
{
	struct lodger l = { .ends_at = 4 };
	evc_coord *c = new_coord(NULL);
	evc_reactor *far = NULL;
	evc_member_opts o = { .unblock = unblock_arg };
	evc_id id = 0;

	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &far));
	o.reactor = far;
	OK(evc_looper_start(c, "lodger", INFINITY, lodge, &l, &o, &id));
	UNTIL(atomic_load(&l.in));
	ends_by_unblock(c, &l, 4);
}
END_TEST

START_TEST(it_is_called_for_a_loop_thread)
{
	struct lodger l = { .ends_at = 3 };
	evc_member_opts o = { .unblock = unblock_arg }, s = { 0 };
	evc_coord *c = new_coord(NULL);

	OK(evc_reactor_start(c, "loop", reactor_up, &l, &o, &s.reactor));
	/* Something that its loop sits in until the unblock of the thread. */
	OK(evc_looper_start(c, "stuck", INFINITY, lodge, &l, &s, NULL));
	UNTIL(atomic_load(&l.tid) != 0);
	ends_by_unblock(c, &l, 3);
}
END_TEST

START_TEST(it_is_called_for_a_stop_hook)
{
	struct lodger l = { .ends_at = 3 };
	evc_member_opts o = { .unblock = unblock_arg };
	evc_coord *c = new_coord(NULL);

	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &o.reactor));
	OK(evc_on_stop(c, "hook", lodge, &l, &o, NULL));
	NOT_YET(atomic_load(&l.calls) > 0);
	ends_by_unblock(c, &l, 3);
}
END_TEST

/* One that SIGTERM does not end, but a word from us does. */
START_TEST(it_is_called_for_a_child_process)
{
	struct lodger l = { .ends_at = 3 };
	evc_member_opts o = { .unblock = unblock_none };
	struct kid k = kid_born(TERM_IGNORED, 0, 0);
	evc_coord *c = new_coord(NULL);

	alone = &l;
	OK(evc_child_add(c, "kid", k.pid, &o, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&l.open));
	kid_let_go(&k);
	OK(evc_join(c, &generous, NULL));
	atomic_store(&l.over, 1);
	NOT_YET(atomic_load(&l.wrong) > 0);
	kid_was_reaped(&k);
	OK(evc_free(c));
}
END_TEST

START_TEST(it_is_not_called_after_a_removal)
{
	struct lodger *l = calloc(1, sizeof(*l));
	evc_coord *c = new_coord(NULL);
	evc_id id, hold = 0;
	pthread_t t;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	l->ends_at = 1000000;
	id = lodger_begin(l, RUNNER, c, &t);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&l->calls) >= 3);
	OK(evc_member_remove(c, id));
	memset(l, 0xff, sizeof(*l));
	free(l);
	let_come();
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_member_that_begins_after_the_stop_is_unblocked_too)
{
	evc_member_opts o = { .unblock = unblock_arg, .flags = EVC_AFTER_STOP };
	struct lodger l = { .ends_at = 2 };
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_thread_start(c, "late", lodge, &l, &o, NULL));
	OK(evc_join(c, &generous, NULL));
	ck_assert_int_ge(atomic_load(&l.calls), 2);
	OK(evc_free(c));
}
END_TEST

START_TEST(each_stop_begins_anew)
{
	evc_member_opts o = { .unblock = unblock_arg };
	evc_coord *c = new_coord(NULL);
	struct lodger l;
	int i;

	for (i = 0; i < 5; i++) {
		memset(&l, 0, sizeof(l));
		l.ends_at = 2;
		OK(evc_thread_start(c, "lodger", lodge, &l, &o, NULL));
		NOT_YET(atomic_load(&l.calls) > 0);
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, &generous, NULL));
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(a_stop_of_the_parent_unblocks_what_is_below)
{
	evc_member_opts o = { .unblock = unblock_arg };
	evc_coord *c = new_coord(NULL), *low = NULL;
	struct lodger l = { .ends_at = 2 };

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_thread_start(low, "lodger", lodge, &l, &o, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, NULL));
	FREE_ALL(low, c);
}
END_TEST

T_MAIN("unblock", NULL, NULL,
       T_TIMES(it_is_called_until_the_member_has_ended, N_MEMBERS),
       T_ONCE(it_is_called_for_a_looper_on_a_loop),
       T_ONCE(it_is_called_for_a_loop_thread),
       T_ONCE(it_is_not_called_after_a_removal),
       T_ONCE(a_member_that_begins_after_the_stop_is_unblocked_too),
       T_ONCE(each_stop_begins_anew),
       T_ONCE(a_stop_of_the_parent_unblocks_what_is_below),
       T_ONCE(it_is_called_for_a_stop_hook),
       T_ONCE(it_is_called_for_a_child_process))
