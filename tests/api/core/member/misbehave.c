/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that misbehave: whatever one does, the join ends on time, and whoever
 * is late has a name.  Callbacks that do not return stand in misbehave_calls.c
 * and misbehave_loops.c.
 */
#include "../../../support/rouse_util.h"

#include <setjmp.h>

static void
all_well_after(evc_coord *c)
{
	evc_verdict v;

	OK(evc_join(c, &generous, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	OK(evc_free(c));
}

/* Begin fn as one of three kinds of member. */
struct wild {
	evc_coord *c;
	evc_fn *fn;
	atomic_int in, open;
};

static void *
wild_main(void *arg)
{
	struct wild *w = arg;

	w->fn(w->c, w);
	return NULL;
}

static void
wild_begin(struct wild *w, evc_coord *c, int kind, evc_fn *fn)
{
	evc_member_opts o = { .flags = EVC_KICK };
	pthread_t t;

	w->c = c;
	w->fn = fn;
	switch (kind) {
	case A_THREAD:
		OK(evc_thread_start(c, "wild", fn, w, &o, NULL));
		break;
	case A_REGISTERED:
		OK(pthread_create(&t, NULL, wild_main, w));
		OK(evc_register_thread(c, "wild", t, &o, NULL));
		break;
	default:
		o.flags |= EVC_OWN_THREAD;
		OK(evc_looper_start(c, "wild", INFINITY, fn, w, &o, NULL));
		break;
	}
	UNTIL(atomic_load(&w->in));
}

/* ---- it hears nothing ---- */

static evc_status
spin_deaf(evc_coord *c, void *arg)
{
	struct wild *w = arg;
	sigset_t all;

	(void)c;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	atomic_store(&w->in, 1);
	while (!atomic_load(&w->open))
		;
	return 0;
}

START_TEST(one_that_spins_with_all_signals_blocked)
{
	evc_coord *c = new_coord(NULL);
	struct wild w = { 0 };
	evc_verdict v;

	wild_begin(&w, c, _i, spin_deaf);
	v = late_join(c);
	names_one(&v, "wild");
	HAS(report_of(c), "wild");
	atomic_store(&w.open, 1);
	all_well_after(c);
}
END_TEST

static struct deep depth;

static evc_status
sleep_deep(evc_coord *c, void *arg)
{
	struct wild *w = arg;

	atomic_store(&w->in, 1);
	return deep_sleep(c, &depth);
}

START_TEST(one_that_sleeps_in_D_state)
{
	struct wild w = { 0 };
	evc_coord *c;
	evc_verdict v;

	if (t_under_valgrind() || t_under_qemu())
		T_SKIP("it forks instead, and nobody waits");
	c = new_coord(NULL);
	deep_make(&depth);
	wild_begin(&w, c, _i, sleep_deep);
	UNTIL(is_in_D(&depth));
	v = late_join(c);
	names_one(&v, "wild");
	HAS(report_of(c), "wild");
	deep_let_go(&depth);
	all_well_after(c);
}
END_TEST

/* ---- it takes others with it ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static evc_status
sit_on_lock(evc_coord *c, void *arg)
{
	struct wild *w = arg;

	(void)c;
	pthread_mutex_lock(&lock);
	atomic_store(&w->in, 1);
	while (!atomic_load(&w->open))
		t_sleep(0.001);
	pthread_mutex_unlock(&lock);
	return 0;
}

static evc_status
need_lock(evc_coord *c, void *arg)
{
	(void)c;
	atomic_store((atomic_int *)arg, own_tid());
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

START_TEST(one_that_holds_a_lock_that_others_need)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c = new_coord(NULL);
	atomic_int tid[2] = { 0 };
	struct wild w = { 0 };
	evc_verdict v;
	int i;

	wild_begin(&w, c, _i, sit_on_lock);
	for (i = 0; i < 2; i++) {
		OK(evc_thread_start(c, i ? "second" : "first", need_lock,
				    &tid[i], &kick, NULL));
		UNTIL(atomic_load(&tid[i]) != 0);
		until_asleep(atomic_load(&tid[i]));
	}
	v = late_join(c);
	ck_assert_uint_eq(v.n_stragglers, 3);
	HAS(v.error.text, "wild");
	HAS(v.error.text, "first");
	HAS(v.error.text, "second");
	atomic_store(&w.open, 1);
	all_well_after(c);
}
END_TEST

static evc_status
die_with_lock(evc_coord *c, void *arg)
{
	struct wild *w = arg;

	pthread_mutex_lock(&lock);
	atomic_store(&w->in, 1);
	evc_wait_for_stop(c, INFINITY);
	syscall(SYS_exit, 0);
	return 0;
}

START_TEST(one_that_dies_raw_while_others_wait)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	atomic_int tid = 0;
	struct wild w = { 0 };
	evc_coord *c;
	evc_verdict v;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	wild_begin(&w, c, A_REGISTERED, die_with_lock);
	OK(evc_thread_start(c, "waits", need_lock, &tid, &kick, NULL));
	UNTIL(atomic_load(&tid) != 0);
	until_asleep(atomic_load(&tid));
	v = late_join(c);
	/* The dead one was noticed, the one that waits for it is named. */
	names_one(&v, "waits");
	ck_assert_uint_eq(v.n_ended, 1);
	/* What it took with it the test gives back: nobody else holds it. */
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	syscall(SYS_futex, &lock, 1 | 128, 1, NULL, NULL, 0);
	all_well_after(c);
}
END_TEST

/* ---- it jumps ---- */

struct jumper {
	jmp_buf out;
	struct wild w;
	atomic_int calls, done;
	evc_status pushed;
};

static void
count_call(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void
jump_from_stretch(struct jumper *j, evc_coord *c)
{
	evc_id id = 0;

	j->pushed = evc_cancel_push(c, count_call, &j->calls,
				    EVC_CANCEL_REPEAT, &id);
	longjmp(j->out, 1);
}

static evc_status
jump_and_stay(evc_coord *c, void *arg)
{
	struct jumper *j = arg;

	if (setjmp(j->out) == 0)
		jump_from_stretch(j, c);
	atomic_store(&j->w.in, 1);
	while (!atomic_load(&j->w.open))
		t_sleep(0.001);
	return 0;
}

static evc_status
die_in_stretch(evc_coord *c, void *arg)
{
	struct jumper *j = arg;
	evc_id id = 0;

	j->pushed = evc_cancel_push(c, count_call, &j->calls,
				    EVC_CANCEL_REPEAT, &id);
	atomic_store(&j->w.in, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* Its end is noticed after the stop, and with it ends what it had pushed. */
START_TEST(one_that_dies_raw_in_a_stretch)
{
	static struct jumper j;
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c;
	int calls;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "dies", die_in_stretch, &j, &kick, NULL));
	UNTIL(atomic_load(&j.w.in));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_ge(evc_join(c, &generous, NULL), 0);
	OK(j.pushed);
	calls = atomic_load(&j.calls);
	NOT_YET(atomic_load(&j.calls) > calls);
	OK(evc_free(c));
}
END_TEST

START_TEST(one_that_jumps_out_of_a_stretch)
{
	static struct jumper j;
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	int calls;

	OK(evc_thread_start(c, "jumper", jump_and_stay, &j, NULL, NULL));
	UNTIL(atomic_load(&j.w.in));
	v = late_join(c);
	names_one(&v, "jumper");
	OK(j.pushed);
	/* What it left is called on: it was never popped. */
	calls = atomic_load(&j.calls);
	UNTIL(atomic_load(&j.calls) > calls);
	atomic_store(&j.w.open, 1);
	OK(evc_join(c, &generous, NULL));
	calls = atomic_load(&j.calls);
	NOT_YET(atomic_load(&j.calls) > calls);
	OK(evc_free(c));
}
END_TEST

static evc_status
jump_from_guard(evc_coord *c, void *arg)
{
	struct jumper *j = arg;

	(void)c;
	longjmp(j->out, 1);
}

static evc_status
guard_jump_and_stay(evc_coord *c, void *arg)
{
	struct jumper *j = arg;

	if (setjmp(j->out) == 0)
		evc_guard(c, "guard", jump_from_guard, j, NULL);
	atomic_store(&j->w.in, 1);
	while (!atomic_load(&j->w.open))
		t_sleep(0.001);
	return 0;
}

START_TEST(one_that_jumps_out_of_a_guard)
{
	static struct jumper j;
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_thread_start(c, "jumper", guard_jump_and_stay, &j, NULL, NULL));
	UNTIL(atomic_load(&j.w.in));
	v = late_join(c);
	names_one(&v, "jumper");
	atomic_store(&j.w.open, 1);
	all_well_after(c);
}
END_TEST

T_MAIN("misbehave", NULL, NULL,
       T_TIMES(one_that_spins_with_all_signals_blocked, A_GUARD),
       T_TIMES(one_that_sleeps_in_D_state, A_GUARD),
       T_TIMES(one_that_holds_a_lock_that_others_need, A_GUARD),
       T_ONCE(one_that_dies_raw_while_others_wait),
       T_ONCE(one_that_dies_raw_in_a_stretch),
       T_ONCE(one_that_jumps_out_of_a_stretch),
       T_ONCE(one_that_jumps_out_of_a_guard))
