/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stop hooks: where they run, once for each stop, removed at any time, waited
 * for by joins, and what their results mean.
 */
#include "../../../support/scope_util.h"

#include <ev.h>

struct hook {
	atomic_int calls, tid;
	struct guest g; /* stays inside until it is let go */
	bool stays, removes_itself;
	evc_id id;
	evc_status result, removed;
	int tasks_told_before;
};

static int n_tasks_told;

static evc_status
on_stop(evc_coord *c, void *arg)
{
	struct hook *h = arg;

	h->tasks_told_before = n_tasks_told;
	atomic_store(&h->tid, own_tid());
	atomic_fetch_add(&h->calls, 1);
	if (h->stays)
		stay(c, &h->g);
	if (h->removes_itself)
		h->removed = evc_member_remove(c, h->id);
	return h->result;
}

static void
add(evc_coord *c, struct hook *h, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r };

	OK(evc_on_stop(c, "the-hook", on_stop, h, &opts, &h->id));
	ck_assert_uint_ne(h->id, 0);
}

static void
task_told(evc_task *t, void *arg)
{
	(void)arg;
	n_tasks_told++;
	evc_task_end(t);
}

START_TEST(on_the_home_before_any_task_is_told)
{
	static const evc_task_class cls = {
		.name = "task",
		.on_stop = task_told,
	};
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct hook h = { 0 };
	evc_task t = { 0 };

	n_tasks_told = 0;
	OK(evc_task_begin(evc_home(c), &t, &cls));
	add(c, &h, NULL);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(h.calls, 0); /* never in the thread that asks */
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(h.calls, 1);
	ck_assert_int_eq(h.tid, own_tid());
	ck_assert_int_eq(h.tasks_told_before, 0);
	ck_assert_int_eq(n_tasks_told, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(on_the_reactor_that_it_names_put_there_by_another_thread)
{
	struct far f = { .c = new_coord(NULL) };
	struct hook h = { 0 };

	far_begin_member(&f);
	add(f.c, &h, f.r);
	OK(evc_request_stop(f.c, 0, NULL));
	OK(evc_join(f.c, NULL, NULL));
	OK(f.status);
	ck_assert_int_eq(h.calls, 1);
	ck_assert_int_eq(h.tid, f.tid);
	OK(evc_free(f.c));
}
END_TEST

START_TEST(without_a_home_on_the_helper_thread)
{
	int threads = t_count_threads(), fds = t_count_fds();
	evc_coord *c = new_coord(NULL);
	struct hook h = { 0 };

	add(c, &h, NULL);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.calls)); /* no join and no loop is needed */
	ck_assert_int_ne(h.tid, own_tid());
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(h.calls, 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

/* Once for each stop, in every round, with a loop and without. */
static void
once_a_stop(struct ev_loop *loop)
{
	evc_coord *c = new_coord(loop);
	struct hook h = { 0 };
	int i;

	add(c, &h, NULL);
	for (i = 1; i <= 5; i++) {
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_request_stop(c, EVC_OUT_OF_RANGE, NULL));
		OK(evc_join(c, NULL, NULL));
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(h.calls, i);
		OK(evc_clear_stop(c));
	}
	OK(evc_join(c, NULL, NULL)); /* no stop: hooks keep no join waiting */
	ck_assert_int_eq(h.calls, 5);
	OK(evc_free(c));
}

START_TEST(once_a_stop_and_again_in_the_next_round)
{
	struct ev_loop *loop = ev_loop_new(0);

	once_a_stop(NULL);
	once_a_stop(loop);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(added_after_the_stop_it_is_called_too)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *d = new_coord(NULL);
	struct hook before = { 0 }, on_loop = { 0 }, on_helper = { 0 };

	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	add(c, &on_loop, NULL);
	ev_run(loop, EVRUN_NOWAIT); /* no join is needed */
	ck_assert_int_eq(on_loop.calls, 1);
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(on_loop.calls, 1);

	add(d, &before, NULL);
	OK(evc_request_stop(d, 0, NULL));
	OK(evc_join(d, NULL, NULL));
	add(d, &on_helper, NULL);
	UNTIL(atomic_load(&on_helper.calls) == 1);
	ck_assert_int_eq(before.calls, 1);
	FREE_ALL(c, d);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_removed_hook_is_never_called)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *d = new_coord(NULL);
	struct hook h = { 0 }, due = { 0 }, k = { 0 };

	add(c, &h, NULL);
	add(c, &due, NULL);
	add(d, &k, NULL);
	OK(evc_member_remove(c, h.id));
	OK(evc_member_remove(d, k.id));
	REFUSED(EVC_NOT_FOUND, evc_member_remove(c, h.id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_request_stop(d, 0, NULL));
	OK(evc_member_remove(c, due.id)); /* due, and not called yet */
	OK(evc_run(c, NULL, NULL));
	OK(evc_join(d, NULL, NULL));
	ck_assert_int_eq(h.calls + due.calls + k.calls, 0);
	FREE_ALL(c, d);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(removed_from_inside_it_is_called_no_more)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c[2] = { new_coord(loop), new_coord(NULL) };
	int i;

	for (i = 0; i < 2; i++) {
		struct hook h = { .removes_itself = true, .removed = 77 };

		add(c[i], &h, NULL);
		OK(evc_request_stop(c[i], 0, NULL));
		OK(evc_join(c[i], NULL, NULL));
		OK(h.removed);
		OK(evc_clear_stop(c[i]));
		OK(evc_request_stop(c[i], 0, NULL));
		OK(evc_join(c[i], NULL, NULL));
		ck_assert_int_eq(h.calls, 1);
		OK(evc_free(c[i]));
	}
	ev_loop_destroy(loop);
}
END_TEST

struct removal {
	evc_coord *c;
	evc_id id;
	evc_status status;
	atomic_int tid, done;
};

static void *
remove_main(void *arg)
{
	struct removal *r = arg;

	atomic_store(&r->tid, own_tid());
	r->status = evc_member_remove(r->c, r->id);
	atomic_store(&r->done, 1);
	return NULL;
}

START_TEST(removing_waits_while_it_runs_elsewhere)
{
	evc_coord *c = new_coord(NULL);
	struct hook h = { .stays = true };
	struct removal r = { .c = c };
	pthread_t t;

	add(c, &h, NULL);
	r.id = h.id;
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.g.in));
	OK(pthread_create(&t, NULL, remove_main, &r));
	UNTIL(atomic_load(&r.tid));
	until_asleep(r.tid);
	ck_assert(!atomic_load(&r.done));
	atomic_store(&h.g.open, 1);
	pthread_join(t, NULL);
	OK(r.status);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_waits_for_it_and_names_it_when_late)
{
	evc_coord *c = new_coord(NULL);
	struct hook h = { .stays = true };
	evc_join_opts opts = { .grace = 0.05 };
	struct joiner j;
	evc_verdict v;

	add(c, &h, NULL);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "hook the-hook");
	/* but it bars no new round ... */
	UNTIL(atomic_load(&h.g.in));
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&h.g.open, 1);
	OK(join_end(&j));
	/* ... and is called for the new stop as well */
	ck_assert_int_eq(h.calls, 2);
	OK(evc_free(c));
}
END_TEST

static evc_status
join_inside(evc_coord *c, void *arg)
{
	evc_join_opts opts = { .grace = INFINITY };

	*(evc_status *)arg = evc_join(c, &opts, NULL);
	return 0;
}

START_TEST(a_hook_that_joins_does_not_wait_for_itself)
{
	evc_coord *c = new_coord(NULL);
	evc_status st = 77;

	OK(evc_on_stop(c, "joins", join_inside, &st, NULL, NULL));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(st);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_result_that_is_not_clean_is_an_error)
{
	static const evc_status results[] = { 0, EVC_OUT_OF_RANGE,
					      EVC_CANCELLED, EVC_DATA_LOSS,
					      1000 };
	static const evc_status verdicts[] = { 0, 0, 0, EVC_DATA_LOSS,
					       EVC_UNKNOWN };
	struct ev_loop *loop = ev_loop_new(0);
	evc_verdict v;
	evc_coord *c;
	int i;

	for (i = 0; i < 10; i++) {
		struct hook h = { .result = results[i / 2] };

		c = new_coord(i % 2 ? loop : NULL);
		add(c, &h, NULL);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(evc_join(c, NULL, &v), verdicts[i / 2]);
		if (v.code != 0)
			ck_assert_str_eq(v.error.who, "the-hook");
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(free_without_a_join_drops_what_is_due)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct hook h = { 0 };

	add(c, &h, NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_free(c));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(h.calls, 0);
	ev_loop_destroy(loop);
}
END_TEST

/* In a time that grows with their number, not with its square: then it would
   be a matter of minutes. */
static void
many_hooks(struct ev_loop *loop)
{
	const int N = t_under_tsan() || t_under_valgrind() ? 20000 : 200000;
	evc_coord *c = new_coord(loop);
	atomic_int n = 0;
	int i;

	for (i = 0; i < N; i++)
		OK(evc_on_stop(c, NULL, count_hook, &n, NULL, NULL));
	for (i = 1; i <= 2; i++) {
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(n, i * N);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}

START_TEST(very_many_on_a_loop_are_gone_through_once)
{
	struct ev_loop *loop = ev_loop_new(0);

	many_hooks(loop);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(very_many_on_the_helper_are_gone_through_once)
{
	many_hooks(NULL);
}
END_TEST

static char order[8];
static atomic_int n_order;

static evc_status
note_order(evc_coord *c, void *arg)
{
	char name = *(const char *)arg;
	int n = n_order;

	if (name == 'B' && n == 1) {
		if (evc_clear_stop(c) < 0 || evc_request_stop(c, 0, NULL) < 0)
			name = '?';
	}
	order[n] = name;
	n_order = n + 1;
	return 0;
}

static bool
all_in_order(void *arg)
{
	(void)arg;
	return n_order == 6;
}

START_TEST(a_stop_out_of_a_hook_begins_with_the_first_again)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_on_stop(c, NULL, note_order, "A", NULL, NULL));
	OK(evc_on_stop(c, NULL, note_order, "B", NULL, NULL));
	OK(evc_on_stop(c, NULL, note_order, "C", NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(t_until(all_in_order, NULL, T_LIMIT));
	OK(evc_join(c, NULL, NULL));
	ck_assert_str_eq(order, "ABABCC");
	OK(evc_free(c));
}
END_TEST

API_MAIN("hooks", on_the_home_before_any_task_is_told,
	 on_the_reactor_that_it_names_put_there_by_another_thread,
	 without_a_home_on_the_helper_thread,
	 once_a_stop_and_again_in_the_next_round,
	 added_after_the_stop_it_is_called_too, a_removed_hook_is_never_called,
	 removed_from_inside_it_is_called_no_more,
	 removing_waits_while_it_runs_elsewhere,
	 a_join_waits_for_it_and_names_it_when_late,
	 a_hook_that_joins_does_not_wait_for_itself,
	 a_result_that_is_not_clean_is_an_error,
	 free_without_a_join_drops_what_is_due,
	 very_many_on_a_loop_are_gone_through_once,
	 very_many_on_the_helper_are_gone_through_once,
	 a_stop_out_of_a_hook_begins_with_the_first_again)
