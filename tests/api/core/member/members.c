/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register: holds, ids that are never used twice, a look at one member
 * and at all of them; and guards, which are no members but end like them.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sched.h>

START_TEST(a_hold_keeps_the_join_waiting_until_another_thread_ends_it)
{
	evc_coord *c = new_coord(NULL);
	struct joiner j;
	evc_id id = 0;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	ck_assert_uint_ne(id, 0);
	join_begin(&j, c, 0, 0);
	ck_assert(!atomic_load(&j.returned));
	OK(evc_hold_end(c, id));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 1);
	REFUSED(EVC_NOT_FOUND, evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(hold_end_takes_holds_only)
{
	evc_coord *c = new_coord(NULL);
	evc_id thread = 0, hold = 0;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, &thread));
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	REFUSED(EVC_NOT_FOUND, evc_hold_end(c, thread));
	REFUSED(EVC_NOT_FOUND, evc_hold_end(c, thread + hold + 1000));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_remove(c, thread));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_remove(c, hold));
	REFUSED(EVC_NOT_FOUND, evc_member_remove(c, thread + hold + 1000));
	OK(evc_hold_end(c, hold));
	REFUSED(EVC_NOT_FOUND, evc_member_remove(c, hold));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(holds_after_the_stop_need_LATE)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL);
	evc_id id = 77;

	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED, evc_hold_begin(c, "no", NULL, &id));
	ck_assert_uint_eq(id, 77);
	OK(evc_hold_begin(c, "yes", &late, &id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_hold_with_END_STOPS_stops_at_its_end)
{
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL);
	evc_reason r;
	evc_id id = 0;

	OK(evc_hold_begin(c, "vital", &opts, &id));
	ck_assert(!evc_should_stop(c));
	OK(evc_hold_end(c, id));
	ck_assert(evc_should_stop(c));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_uint_eq(r.kind, EVC_BY_MEMBER_END);
	ck_assert_str_eq(r.who, "vital");
	ck_assert_uint_eq(r.by, id);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static int
compare_ids(const void *a, const void *b)
{
	evc_id x = *(const evc_id *)a, y = *(const evc_id *)b;

	return x < y ? -1 : x > y;
}

START_TEST(an_id_is_never_used_twice)
{
	enum { ROUNDS = 20, EACH = 30 };
	evc_coord *c = new_coord(NULL);
	evc_id ids[ROUNDS * EACH], *id = ids;
	evc_member_info info;
	int i, k;

	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < EACH; k += 3) {
			OK(evc_hold_begin(c, "h", NULL, id));
			OK(evc_hold_end(c, *id++));
			OK(evc_on_stop(c, "s", return_at_once, NULL, NULL, id));
			OK(evc_member_remove(c, *id++));
			OK(evc_thread_start(c, "t", return_at_once, NULL, NULL,
					    id++));
		}
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
	}
	qsort(ids, ROUNDS * EACH, sizeof(ids[0]), compare_ids);
	ck_assert_uint_ne(ids[0], 0);
	for (i = 0; i < ROUNDS * EACH; i++) {
		ck_assert(i == 0 || ids[i - 1] != ids[i]);
		REFUSED(EVC_NOT_FOUND, evc_member_get(c, ids[i], &info));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(a_look_at_one_member_shows_what_it_is)
{
	evc_member_opts back = { .flags = EVC_BACKGROUND | EVC_END_STOPS };
	char name[16] = "the-hold";
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_member_info info;
	evc_id hold = 0, thread = 0, hook = 0, own = 0;
	pthread_t t;

	OK(evc_clear_stop(c));
	OK(evc_hold_begin(c, name, &back, &hold));
	strcpy(name, "overwritten"); /* it was copied */
	OK(evc_thread_start(c, "the-thread", stay, &g, NULL, &thread));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "the-other", t, NULL, &own));
	OK(evc_on_stop(c, "the-hook", return_at_once, NULL, NULL, &hook));
	t_sleep(0.05);

	OK(evc_member_get(c, hold, &info));
	ck_assert_uint_eq(info.id, hold);
	ck_assert_uint_eq(info.kind, EVC_HOLD);
	ck_assert_uint_eq(info.state, EVC_LIVE);
	ck_assert_uint_eq(info.flags, EVC_BACKGROUND | EVC_END_STOPS);
	ck_assert_uint_eq(info.round, 1);
	ck_assert_str_eq(info.name, "the-hold");
	ck_assert_double_ge(info.age, 0.05);
	ck_assert_double_lt(info.age, 60);

	UNTIL(atomic_load(&g.in) == 2);
	OK(evc_member_get(c, thread, &info));
	ck_assert_uint_eq(info.kind, EVC_THREAD);
	ck_assert_str_eq(info.name, "the-thread");
	HAS(info.where, "tid ");
	OK(evc_member_get(c, own, &info));
	ck_assert_uint_eq(info.kind, EVC_REGISTERED);
	HAS(info.where, "tid ");
	OK(evc_member_get(c, hook, &info));
	ck_assert_uint_eq(info.kind, EVC_HOOK);
	ck_assert_str_eq(info.name, "the-hook");

	atomic_store(&g.open, 1);
	UNTIL(evc_member_get(c, thread, &info) != 0 || info.state != EVC_LIVE);
	OK(evc_hold_end(c, hold));
	OK(evc_join(c, NULL, NULL));
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, thread, &info));
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, own, &info));
	OK(evc_member_get(c, hook, &info)); /* hooks stay */
	OK(evc_free(c));
}
END_TEST

struct walk {
	evc_coord *c;
	evc_id seen[16];
	unsigned n, stop_after;
	bool end_them;
};

static bool
on_member(const evc_member_info *m, void *arg)
{
	struct walk *w = arg;

	w->seen[w->n++] = m->id;
	if (w->end_them)
		evc_hold_end(w->c, m->id);
	return w->n != w->stop_after;
}

START_TEST(a_walk_goes_by_ids_may_be_ended_and_may_call_anything)
{
	evc_coord *c = new_coord(NULL);
	struct walk w = { .c = c };
	evc_id id[8];
	int i;

	OK(evc_member_each(c, on_member, &w));
	ck_assert_uint_eq(w.n, 0);
	for (i = 0; i < 8; i++)
		OK(evc_hold_begin(c, "h", NULL, &id[i]));
	OK(evc_hold_end(c, id[3]));
	OK(evc_member_each(c, on_member, &w));
	ck_assert_uint_eq(w.n, 7);
	for (i = 1; i < 7; i++)
		ck_assert_uint_lt(w.seen[i - 1], w.seen[i]);

	memset(&w, 0, sizeof(w));
	w.c = c;
	w.stop_after = 3;
	w.end_them = true;
	OK(evc_member_each(c, on_member, &w));
	ck_assert_uint_eq(w.n, 3);
	w.stop_after = 0;
	OK(evc_member_each(c, on_member, &w));
	ck_assert_uint_eq(w.n, 7); /* the other four */
	OK(evc_free(c));
}
END_TEST

struct lines {
	unsigned n;
	uint64_t ticks;
	bool others, on;
};

static bool
count_lines(const evc_member_info *m, void *arg)
{
	struct lines *l = arg;

	if (m->kind != EVC_TASK || m->id != 0 || strcmp(m->name, "request"))
		l->others = true;
	l->on = strstr(m->where, "worker-loop") != NULL;
	l->ticks += m->ticks;
	l->n++;
	return true;
}

static void *
look_from_elsewhere(void *arg)
{
	static struct lines l;

	memset(&l, 0, sizeof(l));
	return evc_member_each(arg, count_lines, &l) == 0 ? &l : NULL;
}

START_TEST(tasks_are_shown_one_by_one_on_their_loop_and_summed_elsewhere)
{
	static const evc_task_class cls = { .name = "request" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = NULL;
	evc_task t[5] = { 0 };
	struct lines here = { 0 }, *there;
	pthread_t other;
	void *result;
	int i;

	OK(evc_reactor_attach(c, "worker-loop", loop, &r));
	for (i = 0; i < 5; i++)
		OK(evc_task_begin(r, &t[i], &cls));
	OK(evc_member_each(c, count_lines, &here));
	ck_assert_uint_eq(here.n, 5);
	ck_assert(!here.others && here.on);
	OK(pthread_create(&other, NULL, look_from_elsewhere, c));
	OK(pthread_join(other, &result));
	ck_assert_ptr_nonnull(result);
	there = result;
	ck_assert_uint_eq(there->n, 1);
	ck_assert_uint_eq(there->ticks, 5);
	ck_assert(!there->others && there->on);
	for (i = 0; i < 5; i++)
		evc_task_end(&t[i]);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(L2_free_is_refused_with_live_members_and_names_them)
{
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;

	OK(evc_free(NULL));
	OK(evc_hold_begin(c, "the-one-alive", NULL, &id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "the-one-alive");
	ck_assert(!evc_should_stop(c)); /* usable as before */
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(L2_free_is_refused_while_joins_or_waits_are_under_way)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL), *home = new_coord(loop);
	struct waiter w, x;
	evc_id id = 0;

	waiter_begin(&w, c, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(w.tid);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_free(c)); /* who is on the way out is waited for */
	OK(pthread_join(w.thread, NULL));
	ck_assert(w.answer);

	waiter_begin(&x, home, 0.05);
	OK(pthread_join(x.thread, NULL));
	ck_assert(!x.answer);
	OK(evc_hold_begin(home, "h", NULL, &id));
	OK(evc_join_start(home, ignore_verdict, NULL, NULL));
	OK(evc_hold_end(home, id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(home));
	ev_run(loop, 0);
	OK(evc_free(home));
	ev_loop_destroy(loop);
}
END_TEST

struct last {
	evc_coord *c;
	evc_id id;
	evc_status status;
};

static void *
end_hold(void *arg)
{
	struct last *l = arg;

	l->status = evc_hold_end(l->c, l->id);
	return NULL;
}

/* It may come the moment the last hold has ended, on another thread. */
START_TEST(L2_free_beside_the_end_of_the_last_hold)
{
	pthread_t t;
	int i;

	for (i = 0; i < 200; i++) {
		struct last l = { .c = new_coord(NULL), .status = 77 };

		OK(evc_hold_begin(l.c, "last", NULL, &l.id));
		OK(pthread_create(&t, NULL, end_hold, &l));
		while (evc_free(l.c) != 0)
			sched_yield();
		OK(pthread_join(t, NULL));
		OK(l.status);
	}
}
END_TEST

START_TEST(L2_finish_says_how_to_leave_and_can_be_repeated)
{
	evc_join_opts opts = { .grace = EVC_NO_GRACE };
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;

	ck_assert_int_eq(evc_finish(NULL, 0), 0);
	ck_assert_int_eq(evc_finish(new_coord(NULL), EVC_INTERNAL), 1);
	ck_assert_int_eq(evc_finish(new_coord(NULL), -EVC_INTERNAL), 1);
	OK(evc_hold_begin(c, "late", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_finish(c, evc_join(c, &opts, NULL)), 124);
	ck_assert(evc_should_stop(c)); /* it lives, for a member does */
	OK(evc_hold_end(c, id));
	ck_assert_int_eq(evc_finish(c, evc_join(c, &opts, NULL)), 0);
}
END_TEST

static evc_status
guard_inside(evc_coord *c, void *arg)
{
	evc_status inner = EVC_ABORTED;

	if (evc_guard(c, "inner", return_at_once, &inner, NULL) != 0)
		return EVC_INTERNAL;
	return *(evc_status *)arg;
}

START_TEST(a_guard_stops_at_what_is_not_OK_and_swallows_it)
{
	evc_status result[] = { 0, EVC_OUT_OF_RANGE, EVC_DATA_LOSS };
	evc_member_opts ends = { .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	int i;

	for (i = 0; i < 3; i++) {
		OK(evc_guard(c, "guard", return_at_once, &result[i], NULL));
		ck_assert(evc_should_stop(c) == (i > 0));
		ck_assert_int_eq(evc_join(c, NULL, &v),
				 i == 2 ? EVC_DATA_LOSS : 0);
		ck_assert_uint_eq(v.n_ended, 0); /* a guard is no member */
		OK(evc_clear_stop(c));
	}
	OK(evc_guard(c, "guard", return_at_once, &result[0], &ends));
	ck_assert(evc_should_stop(c));
	OK(evc_clear_stop(c));

	OK(evc_guard(c, "outer", guard_inside, &result[2], NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "inner");
	ck_assert_uint_eq(v.n_errors, 2);
	OK(evc_free(c));
}
END_TEST

API_MAIN("members", a_hold_keeps_the_join_waiting_until_another_thread_ends_it,
	 hold_end_takes_holds_only, holds_after_the_stop_need_LATE,
	 a_hold_with_END_STOPS_stops_at_its_end, an_id_is_never_used_twice,
	 a_look_at_one_member_shows_what_it_is,
	 a_walk_goes_by_ids_may_be_ended_and_may_call_anything,
	 tasks_are_shown_one_by_one_on_their_loop_and_summed_elsewhere,
	 L2_free_is_refused_with_live_members_and_names_them,
	 L2_free_is_refused_while_joins_or_waits_are_under_way,
	 L2_free_beside_the_end_of_the_last_hold,
	 L2_finish_says_how_to_leave_and_can_be_repeated,
	 a_guard_stops_at_what_is_not_OK_and_swallows_it)
