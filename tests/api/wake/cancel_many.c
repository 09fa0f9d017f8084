/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several cancel hooks at once: stretches inside stretches, members that end
 * or jump away without a pop, hooks in scopes.
 */
#include "../../support/rouse_util.h"

#include <setjmp.h>

static void
count_call(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static evc_id
push(evc_coord *c, atomic_int *calls)
{
	evc_id id = 0;

	OK(evc_cancel_push(c, count_call, calls, 0, &id));
	return id;
}

/* ---- inside each other ---- */

START_TEST(nested_ones_are_all_called)
{
	evc_coord *c = new_coord(NULL);
	atomic_int calls[5] = { 0 };
	evc_id id[5];
	int i, k;

	for (i = 0; i < 5; i++)
		id[i] = push(c, &calls[i]);
	for (i = 0; i < 5; i++)
		for (k = 0; k < i; k++)
			ck_assert_uint_ne(id[i], id[k]);
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 5; i++)
		UNTIL(atomic_load(&calls[i]) == 1);
	for (i = 4; i >= 0; i--)
		OK(evc_cancel_pop(c, id[i]));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_pop_of_an_outer_one_pops_the_inner_ones)
{
	evc_coord *c = new_coord(NULL);
	atomic_int calls[4] = { 0 };
	evc_id id[4];
	int i;

	for (i = 0; i < 4; i++)
		id[i] = push(c, &calls[i]);
	OK(evc_cancel_pop(c, id[1]));
	for (i = 1; i < 4; i++)
		REFUSED(EVC_NOT_FOUND, evc_cancel_pop(c, id[i]));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&calls[0]) == 1);
	let_come();
	for (i = 1; i < 4; i++)
		ck_assert_int_eq(atomic_load(&calls[i]), 0);
	OK(evc_cancel_pop(c, id[0]));
	OK(evc_free(c));
}
END_TEST

START_TEST(stretches_of_two_coordinators_nest_too)
{
	evc_coord *a = new_coord(NULL), *b = new_coord(NULL);
	atomic_int outer = 0, inner = 0;
	evc_id first = push(a, &outer), second = push(b, &inner);

	OK(evc_request_stop(b, 0, NULL));
	UNTIL(atomic_load(&inner) == 1);
	NOT_YET(atomic_load(&outer) > 0);
	OK(evc_cancel_pop(a, first)); /* ends what was begun inside it */
	REFUSED(EVC_NOT_FOUND, evc_cancel_pop(b, second));
	FREE_ALL(b, a);
}
END_TEST

/* ---- members that end without a pop ---- */

struct forgetful {
	evc_coord *c;
	int way;
	atomic_int *calls; /* freed by the test when it has ended */
	atomic_int begun, go;
	evc_status pushed, popped, late;
	jmp_buf out;
};

enum { RETURNS, EXITS, JUMPS_OUT, N_FORGETS };

static void
jump_out(struct forgetful *f)
{
	evc_id id = 0;

	f->pushed = evc_cancel_push(f->c, count_call, f->calls, 0, &id);
	longjmp(f->out, 1);
}

static evc_status
forget(evc_coord *c, void *arg)
{
	struct forgetful *f = arg;
	evc_id id = 0;

	if (f->way == JUMPS_OUT) {
		if (setjmp(f->out) == 0)
			jump_out(f);
		/* It goes on, and what it has left is there still. */
		atomic_store(&f->begun, 1);
		while (!atomic_load(&f->go))
			t_sleep(0.001);
		return f->pushed;
	}
	f->pushed = evc_cancel_push(c, count_call, f->calls, 0, &id);
	atomic_store(&f->begun, 1);
	if (f->way == RETURNS)
		return f->pushed;
	while (!atomic_load(&f->go))
		t_sleep(0.001);
	pthread_exit(NULL);
}

static void *
forget_thread(void *arg)
{
	struct forgetful *f = arg;

	f->late = evc_register_thread(f->c, "forgets", pthread_self(), NULL,
				      NULL);
	forget(f->c, f);
	return NULL;
}

/* Popped at its end: c is free, and what was left is not called any more. */
static void
is_popped_at_the_end(int way, bool registered, bool stop_before)
{
	struct forgetful f = { .c = new_coord(NULL), .way = way };
	atomic_int *calls = calloc(1, sizeof(*calls)), after = 0;
	evc_status want;
	evc_id ours;
	pthread_t t;
	int n_before;

	f.calls = calls;
	if (registered)
		OK(pthread_create(&t, NULL, forget_thread, &f));
	else
		OK(evc_thread_start(f.c, "forgets", forget, &f, NULL, NULL));
	UNTIL(atomic_load(&f.begun));
	OK(f.pushed);
	if (way != RETURNS && stop_before) {
		OK(evc_request_stop(f.c, 0, NULL));
		UNTIL(atomic_load(calls) == 1);
	}
	atomic_store(&f.go, 1);
	want = way == EXITS && !registered && !stop_before ? EVC_ABORTED : 0;
	ck_assert_int_eq(evc_join(f.c, &generous, NULL), want);
	OK(f.late);
	/* They are called in the order of their pushes: when ours was, what was
	   left would have been. */
	n_before = atomic_load(calls);
	if (evc_should_stop(f.c))
		OK(evc_clear_stop(f.c));
	ours = push(f.c, &after);
	OK(evc_request_stop(f.c, 0, NULL));
	UNTIL(atomic_load(&after) == 1);
	ck_assert_int_eq(atomic_load(calls), n_before);
	OK(evc_cancel_pop(f.c, ours));
	OK(evc_free(f.c));
	free(calls);
}

START_TEST(what_a_started_thread_left_is_popped_at_its_end)
{
	is_popped_at_the_end(_i, false, false);
	is_popped_at_the_end(_i, false, true);
}
END_TEST

START_TEST(what_a_registered_thread_left_is_popped_at_its_end)
{
	is_popped_at_the_end(_i, true, false);
	is_popped_at_the_end(_i, true, true);
}
END_TEST

static evc_status
push_elsewhere(evc_coord *c, void *arg)
{
	struct forgetful *f = arg;
	evc_id id = 0;

	(void)c;
	return evc_cancel_push(f->c, count_call, f->calls, 0, &id);
}

/* Of another coordinator, too, which never hears of that thread. */
START_TEST(what_it_left_for_another_coordinator_is_popped_too)
{
	atomic_int calls = 0;
	struct forgetful f = { .c = new_coord(NULL), .calls = &calls };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "forgets", push_elsewhere, &f, NULL, NULL));
	OK(evc_join(c, &generous, NULL));
	FREE_ALL(f.c, c);
	ck_assert_int_eq(atomic_load(&calls), 0);
}
END_TEST

static evc_status
jump_and_push_again(evc_coord *c, void *arg)
{
	struct forgetful *f = arg;
	evc_id outer = 0;

	f->popped = evc_cancel_push(c, count_call, f->calls, 0, &outer);
	if (setjmp(f->out) == 0)
		jump_out(f);
	/* Cleaned up by who began the outer stretch. */
	f->late = evc_cancel_pop(c, outer);
	atomic_store(&f->begun, 1);
	while (!atomic_load(&f->go))
		t_sleep(0.001);
	return 0;
}

START_TEST(a_jump_out_is_cleaned_up_by_an_outer_pop)
{
	struct forgetful f = { .c = new_coord(NULL) };
	atomic_int *calls = calloc(1, sizeof(*calls));

	f.calls = calls;
	OK(evc_thread_start(f.c, "jumps", jump_and_push_again, &f, NULL,
			    NULL));
	UNTIL(atomic_load(&f.begun));
	memset(calls, 0xff, sizeof(*calls));
	free(calls);
	OK(evc_request_stop(f.c, 0, NULL));
	let_come();
	atomic_store(&f.go, 1);
	OK(evc_join(f.c, &generous, NULL));
	OK(f.popped);
	OK(f.pushed);
	OK(f.late);
	OK(evc_free(f.c));
}
END_TEST

/* ---- threads, guards, loopers ---- */

struct stretch {
	atomic_int calls, tid, open;
	evc_status pushed, popped;
};

static void
let_go(void *arg)
{
	struct stretch *s = arg;

	atomic_fetch_add(&s->calls, 1);
	atomic_store(&s->open, 1);
}

static evc_status
wait_in_stretch(evc_coord *c, void *arg)
{
	struct stretch *s = arg;
	evc_id id = 0;

	s->pushed = evc_cancel_push(c, let_go, s, 0, &id);
	atomic_store(&s->tid, own_tid());
	while (!atomic_load(&s->open))
		t_sleep(0.001);
	s->popped = evc_cancel_pop(c, id);
	return 0;
}

static evc_coord *shared;

static void *
stretch_in_guard(void *arg)
{
	evc_guard(shared, "guard", wait_in_stretch, arg, NULL);
	return NULL;
}

START_TEST(it_stands_for_any_thread)
{
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	struct stretch s[4];
	pthread_t t;
	int i;

	memset(s, 0, sizeof(s));
	shared = new_coord(NULL);
	OK(evc_thread_start(shared, "thread", wait_in_stretch, &s[0], NULL,
			    NULL));
	OK(evc_looper_start(shared, "looper", INFINITY, wait_in_stretch, &s[1],
			    &own, NULL));
	OK(pthread_create(&t, NULL, stretch_in_guard, &s[2]));
	OK(evc_thread_start(shared, "thread2", wait_in_stretch, &s[3], NULL,
			    NULL));
	for (i = 0; i < 4; i++)
		UNTIL(atomic_load(&s[i].tid) != 0);
	OK(evc_request_stop(shared, 0, NULL));
	OK(evc_join(shared, &generous, NULL));
	OK(pthread_join(t, NULL));
	for (i = 0; i < 4; i++) {
		OK(s[i].pushed);
		OK(s[i].popped);
		ck_assert_int_eq(atomic_load(&s[i].calls), 1);
	}
	OK(evc_free(shared));
}
END_TEST

/* ---- scopes ---- */

START_TEST(in_a_scope_the_parents_stop_counts_and_not_the_other_way)
{
	evc_coord *c = new_coord(NULL), *low = NULL;
	atomic_int above = 0, below = 0;
	evc_id up, down;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	up = push(c, &above);
	down = push(low, &below);
	OK(evc_request_stop(low, 0, NULL)); /* its own */
	UNTIL(atomic_load(&below) == 1);
	NOT_YET(atomic_load(&above) > 0);
	OK(evc_clear_stop(low));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&above) == 1 && atomic_load(&below) == 2);
	OK(evc_cancel_pop(low, down));
	OK(evc_cancel_pop(c, up));
	REFUSED(EVC_NOT_FOUND, evc_cancel_pop(low, down));
	FREE_ALL(low, c);
}
END_TEST

START_TEST(in_a_scope_of_a_later_phase_it_waits_for_that_phase)
{
	evc_scope_opts later = { .phase = 1 };
	evc_coord *c = new_coord(NULL), *low = NULL;
	atomic_int calls = 0;
	struct joiner j;
	evc_id id, hold = 0;

	OK(evc_scope_new(c, "later", &later, &low));
	OK(evc_scope_ready(low));
	OK(evc_hold_begin(c, "first", NULL, &hold));
	id = push(low, &calls);
	join_begin(&j, c, T_LIMIT, 0);
	OK(evc_request_stop(c, 0, NULL));
	NOT_YET(atomic_load(&calls) > 0);
	OK(evc_hold_end(c, hold));
	UNTIL(atomic_load(&calls) == 1);
	OK(join_end(&j));
	OK(evc_cancel_pop(low, id));
	FREE_ALL(low, c);
}
END_TEST

T_MAIN("cancel_many", NULL, NULL,
       T_ONCE(nested_ones_are_all_called),
       T_ONCE(the_pop_of_an_outer_one_pops_the_inner_ones),
       T_ONCE(stretches_of_two_coordinators_nest_too),
       T_TIMES(what_a_started_thread_left_is_popped_at_its_end, N_FORGETS),
       T_TIMES(what_a_registered_thread_left_is_popped_at_its_end, N_FORGETS),
       T_ONCE(what_it_left_for_another_coordinator_is_popped_too),
       T_ONCE(a_jump_out_is_cleaned_up_by_an_outer_pop),
       T_ONCE(it_stands_for_any_thread),
       T_ONCE(in_a_scope_the_parents_stop_counts_and_not_the_other_way),
       T_ONCE(in_a_scope_of_a_later_phase_it_waits_for_that_phase))
