/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a kick does not wake, and what does instead: conditions and locks, which
 * sleep on through EINTR, need a cancel hook or unblock; what has no way out is
 * named, or runs in evc_call_detached; a thread in D state is named.  And the gap
 * between the look at the stop and the call.
 */
#include "../../support/old_kernel.h"
#include "../../support/rouse_util.h"

#include <linux/futex.h>

/* ---- waits that go on after EINTR ---- */

struct wait {
	bool on_futex;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	atomic_int word, tid, wakes;
	int way; /* how it is woken */
	evc_status pushed, popped;
};

enum { BY_KICK, BY_HOOK, BY_UNBLOCK };

static void
wake(void *arg)
{
	struct wait *w = arg;

	atomic_fetch_add(&w->wakes, 1);
	atomic_store(&w->word, 1);
	if (w->on_futex) {
		syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			0);
		return;
	}
	pthread_mutex_lock(&w->lock);
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* As locks do it: what is waited for is looked at, and nothing else. */
static void
wait_for_word(struct wait *w)
{
	if (w->on_futex) {
		while (atomic_load(&w->word) == 0)
			syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0,
				NULL, NULL, 0);
		return;
	}
	pthread_mutex_lock(&w->lock);
	while (atomic_load(&w->word) == 0)
		pthread_cond_wait(&w->cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

static evc_status
wait_there(evc_coord *c, void *arg)
{
	struct wait *w = arg;
	evc_id id = 0;

	if (w->way == BY_HOOK)
		w->pushed = evc_cancel_push(c, wake, w, 0, &id);
	atomic_store(&w->tid, own_tid());
	wait_for_word(w);
	if (w->way == BY_HOOK)
		w->popped = evc_cancel_pop(c, id);
	return 0;
}

static void
wait_begin(struct wait *w, evc_coord *c, int way, bool on_futex)
{
	evc_member_opts opts = { .flags = way == BY_KICK ? EVC_KICK : 0,
				 .unblock = way == BY_UNBLOCK ? wake : NULL };

	memset(w, 0, sizeof(*w));
	w->way = way;
	w->on_futex = on_futex;
	OK(pthread_mutex_init(&w->lock, NULL));
	OK(pthread_cond_init(&w->cond, NULL));
	OK(evc_thread_start(c, "waits", wait_there, w, &opts, NULL));
	UNTIL(atomic_load(&w->tid) != 0);
	until_asleep(atomic_load(&w->tid));
	ck_assert_int_eq(atomic_load(&w->wakes), 0);
	OK(evc_request_stop(c, 0, NULL));
}

static void
is_not_kicked_awake(bool on_futex)
{
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	struct wait w;
	evc_verdict v;

	wait_begin(&w, c, BY_KICK, on_futex);
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	names_one(&v, "waits");
	wake(&w);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}

static void
is_woken_by(int way, bool on_futex)
{
	evc_coord *c = new_coord(NULL);
	struct wait w;
	evc_verdict v;

	wait_begin(&w, c, way, on_futex);
	OK(evc_join(c, &generous, &v));
	OK(w.pushed);
	OK(w.popped);
	ck_assert_int_ge(atomic_load(&w.wakes), 1);
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
}

START_TEST(a_condition_sleeps_through_kicks)
{
	is_not_kicked_awake(false);
}
END_TEST

START_TEST(a_condition_is_woken_by_a_cancel_hook_under_its_lock)
{
	is_woken_by(BY_HOOK, false);
}
END_TEST

START_TEST(a_condition_is_woken_by_unblock)
{
	is_woken_by(BY_UNBLOCK, false);
}
END_TEST

START_TEST(a_futex_sleeps_through_kicks)
{
	is_not_kicked_awake(true);
}
END_TEST

START_TEST(a_futex_is_woken_by_a_cancel_hook)
{
	is_woken_by(BY_HOOK, true);
}
END_TEST

START_TEST(a_futex_is_woken_by_unblock)
{
	is_woken_by(BY_UNBLOCK, true);
}
END_TEST

/* ---- what has no way out ---- */

/* As getaddrinfo does: it asks again and again, whatever comes between. */
START_TEST(a_call_without_a_way_out_is_named)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper s = { .call = call_without_end };
	evc_join_opts brief = { .grace = 0.3 };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	s.stubborn = true;
	OK(evc_thread_start(c, "resolver", sleeper_live, &s, &kick, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	names_one(&v, "resolver");
	HAS(report_of(c), "resolver");
	atomic_store(&s.open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

struct lookup {
	atomic_int in, open, released, result;
	evc_status status;
};

static int
look_up(void *arg)
{
	struct lookup *l = arg;

	atomic_store(&l->in, 1);
	while (!atomic_load(&l->open))
		t_sleep(0.001);
	return 5;
}

static void
give_back(void *arg)
{
	struct lookup *l = arg;

	atomic_fetch_add(&l->released, 1);
}

static evc_status
ask_resolver(evc_coord *c, void *arg)
{
	struct lookup *l = arg;
	int result = 77;

	l->status = evc_call_detached(c, "resolver", look_up, l, give_back,
				      INFINITY, &result);
	atomic_store(&l->result, result);
	return 0;
}

START_TEST(the_same_inside_evc_call_is_left_behind)
{
	int before = t_count_threads();
	evc_coord *c = new_coord(NULL);
	struct lookup l = { 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "asks", ask_resolver, &l, NULL, NULL));
	UNTIL(atomic_load(&l.in));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(l.status, -EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&l.result), 77);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&l.released), 0);
	atomic_store(&l.open, 1); /* it comes back late */
	UNTIL(atomic_load(&l.released) == 1);
	ck_assert_int_eq(t_settle_threads(before), before);
	ck_assert_int_eq(atomic_load(&l.released), 1);
}
END_TEST

START_TEST(a_thread_in_D_state_is_named)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_join_opts brief = { .grace = 0.3 };
	struct deep d;
	evc_coord *c;
	evc_verdict v;

	if (t_under_valgrind() || t_under_qemu())
		T_SKIP("it forks instead, and nobody waits");
	c = new_coord(NULL);
	deep_make(&d);
	OK(evc_thread_start(c, "deep", deep_sleep, &d, &kick, NULL));
	UNTIL(is_in_D(&d));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	names_one(&v, "deep");
	ck_assert(is_in_D(&d));
	deep_let_go(&d);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

/* Last, because a filter stays. */
START_TEST(a_kick_that_is_not_sent_is_not_counted)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OLD_LOW(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 0, 1),
		OLD_FAIL(EPERM), OLD_PASS
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper s = { .call = call_read };
	evc_join_opts brief = { .grace = 0.3 };
	evc_verdict v;
	evc_coord *c;

	if (!kernel_can_be_old())
		T_SKIP("no seccomp filters are allowed here");
	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	c = new_coord(NULL);
	OK(pipe(s.fd));
	OK(evc_thread_start(c, "reads", sleeper_live, &s, &kick, NULL));
	UNTIL(atomic_load(&s.tid) != 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(report_of(c), "(0; others could not be sent: "
			  "Operation not permitted)");
	ck_assert_int_eq(write(s.fd[1], "", 1), 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
	close(s.fd[0]);
	close(s.fd[1]);
}
END_TEST

/* ---- the gap ---- */

struct gap {
	struct sleeper s;
	atomic_int looked, asked;
	bool stopped; /* what the look said */
	int signo;
};

static evc_status
dawdle(evc_coord *c, void *arg)
{
	struct gap *g = arg;
	double end;

	atomic_store(&g->s.tid, own_tid());
	g->stopped = evc_should_stop(c);
	atomic_store(&g->looked, 1);
	/* In no call at all while the first kicks come. */
	while (!atomic_load(&g->asked))
		;
	for (end = t_now() + 0.02; t_now() < end;)
		;
	if (call_read(&g->s) < 0)
		g->s.err = errno;
	return 0;
}

static void
falls_into_the_gap(struct gap *g, evc_fn *fn)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(pipe(g->s.fd));
	OK(evc_thread_start(c, "dawdles", fn, g, &kick, NULL));
	UNTIL(atomic_load(&g->looked));
	OK(evc_request_stop(c, 0, NULL));
	atomic_store(&g->asked, 1);
	OK(evc_join(c, &generous, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert(!g->stopped);
	ck_assert_int_eq(g->s.err, EINTR);
	OK(evc_free(c));
	close(g->s.fd[0]);
	close(g->s.fd[1]);
}

START_TEST(a_kick_between_the_look_and_the_call_is_repeated)
{
	struct gap g = { 0 };

	falls_into_the_gap(&g, dawdle);
}
END_TEST

/* The first kick is seen to come, and is taken away. */
static evc_status
swallow(evc_coord *c, void *arg)
{
	struct timespec limit = { .tv_sec = (time_t)T_LIMIT };
	struct gap *g = arg;
	sigset_t kick;

	sigemptyset(&kick);
	sigaddset(&kick, g->signo);
	pthread_sigmask(SIG_BLOCK, &kick, NULL);
	g->stopped = evc_should_stop(c);
	atomic_store(&g->looked, 1);
	g->s.status = sigtimedwait(&kick, NULL, &limit) == g->signo ? 0 : 1;
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
	if (call_read(&g->s) < 0)
		g->s.err = errno;
	return 0;
}

START_TEST(a_kick_that_was_lost_is_repeated)
{
	struct gap g = { .signo = SIGUSR2 };

	OK(evc_kick_signal(SIGUSR2));
	falls_into_the_gap(&g, swallow);
	OK(g.s.status);
}
END_TEST

API_MAIN("kick_not", a_condition_sleeps_through_kicks,
	 a_condition_is_woken_by_a_cancel_hook_under_its_lock,
	 a_condition_is_woken_by_unblock, a_futex_sleeps_through_kicks,
	 a_futex_is_woken_by_a_cancel_hook, a_futex_is_woken_by_unblock,
	 a_call_without_a_way_out_is_named,
	 the_same_inside_evc_call_is_left_behind, a_thread_in_D_state_is_named,
	 a_kick_between_the_look_and_the_call_is_repeated,
	 a_kick_that_was_lost_is_repeated,
	 a_kick_that_is_not_sent_is_not_counted)
