/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WATCHDOG=1: while a loop turns, and during a stop; asked for by the options or
 * by the environment, and then only when that is meant for this process.
 */
#include "../../support/systemd_util.h"

#include <ev.h>

#define SIGN "WATCHDOG=1"

struct seen {
	int n;
	unsigned flags;
};

static bool
look(const evc_member_info *m, void *arg)
{
	struct seen *s = arg;

	if (m->kind == EVC_LOOPER && strcmp(m->name, "watchdog") == 0) {
		s->n++;
		s->flags = m->flags;
	}
	return true;
}

/* How many loopers of that name there are. */
static int
watchdogs(evc_coord *c)
{
	struct seen s = { 0 };

	OK(evc_member_each(c, look, &s));
	ck_assert(s.n == 0 || (s.flags & EVC_BACKGROUND));
	return s.n;
}

/* Some more of them come. */
static void
more(struct manager *m)
{
	int before = manager_count(m, SIGN);

	UNTIL(manager_count(m, SIGN) >= before + 3);
}

START_TEST(a_thread_of_its_own_without_a_loop)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	int threads = t_count_threads();
	struct manager m;
	evc_coord *c;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, &o);
	ck_assert_int_eq(watchdogs(c), 1);
	more(&m);
	/* It is in nobody's way, but c cannot go under it. */
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "watchdog");
	OK(evc_systemd_stop(c));
	ck_assert_int_eq(watchdogs(c), 0);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	manager_end(&m);
}
END_TEST

START_TEST(a_loop_that_does_not_turn_shows_no_life)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct ev_loop *loop = ev_loop_new(0);
	struct manager m;
	double until;
	evc_coord *c;
	int n;

	manager_begin(&m, true);
	c = manager_told(&m, loop, NULL, &o);
	ck_assert_int_eq(watchdogs(c), 1);
	let_come();
	ck_assert_int_eq(manager_count(&m, SIGN), 0);
	until = t_now() + T_LIMIT;
	while (manager_count(&m, SIGN) < 3 && t_now() < until) {
		ev_run(loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	n = manager_count(&m, SIGN);
	ck_assert_int_ge(n, 3);
	let_come();
	ck_assert_int_eq(manager_count(&m, SIGN), n);
	OK(evc_systemd_stop(c));
	ck_assert_int_eq(watchdogs(c), 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

/* Another thread's loop, which hangs in a callback when it is told to. */
struct far {
	evc_coord *c;
	_Atomic(evc_reactor *) r;
	ev_timer timer;
	atomic_int hang, hangs;
	evc_status status;
};

static void
tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct far *f = w->data;

	(void)loop;
	(void)revents;
	while (atomic_load(&f->hang)) {
		atomic_store(&f->hangs, 1);
		t_sleep(0.001);
	}
	atomic_store(&f->hangs, 0);
}

static void *
far_main(void *arg)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct far *f = arg;
	evc_reactor *r = NULL;

	if (evc_reactor_attach(f->c, "far", loop, &r) != 0)
		return NULL;
	ev_timer_init(&f->timer, tick, 0, 0.005);
	f->timer.data = f;
	ev_timer_start(loop, &f->timer);
	atomic_store(&f->r, r);
	f->status = evc_reactor_run(r);
	ev_timer_stop(loop, &f->timer);
	ev_loop_destroy(loop);
	return NULL;
}

START_TEST(the_loop_that_was_named_is_the_one_that_counts)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct ev_loop *home = ev_loop_new(0);
	struct far f = { 0 };
	struct manager m;
	pthread_t t;
	evc_coord *c;
	int n;

	manager_begin(&m, true);
	o.socket = m.name;
	f.c = c = new_coord(home);
	OK(pthread_create(&t, NULL, far_main, &f));
	UNTIL(atomic_load(&f.r) != NULL);
	o.reactor = atomic_load(&f.r);
	OK(evc_systemd_start(c, &o));
	more(&m);
	atomic_store(&f.hang, 1);
	UNTIL(atomic_load(&f.hangs));
	n = manager_count(&m, SIGN);
	let_come();
	ck_assert_int_eq(manager_count(&m, SIGN), n);
	atomic_store(&f.hang, 0);
	more(&m);
	OK(evc_request_stop(c, 0, NULL));
	OK(pthread_join(t, NULL));
	OK(f.status);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(home);
	manager_end(&m);
}
END_TEST

/* ---- several loops ---- */

enum { LOOPS = 4 };

/* Loops on threads of their own, the last one a scope's; a home whose loop main
   runs; all of them idle until one is told to hang. */
struct loops {
	struct ev_loop *home;
	evc_coord *c, *scope;
	evc_loop_ref *loop[LOOPS];
	atomic_int hang, hangs;
	atomic_int tid[LOOPS];
};

static void
hang_here(evc_reactor *r, evc_status why, void *arg)
{
	struct loops *l = arg;

	(void)r;
	ck_assert_int_eq(why, 0);
	atomic_store(&l->hangs, 1);
	while (atomic_load(&l->hang))
		t_sleep(0.001);
	atomic_store(&l->hangs, 0);
}

static evc_status
note_loop(evc_reactor *r, void *arg)
{
	(void)r;
	atomic_store((atomic_int *)arg, own_tid());
	return 0;
}

static void
loops_begin(struct loops *l, struct manager *m, struct ev_loop *home)
{
	evc_systemd_opts o = { .watchdog = 0.02, .socket = m->name };
	evc_reactor *r;
	int i;

	memset(l, 0, sizeof(*l));
	l->home = home;
	l->c = new_coord(home);
	OK(evc_scope_new(l->c, "scope", NULL, &l->scope));
	OK(evc_scope_ready(l->scope));
	for (i = 0; i < LOOPS; i++) {
		OK(evc_reactor_start(i == LOOPS - 1 ? l->scope : l->c, "far",
				     note_loop, &l->tid[i], NULL, &r));
		l->loop[i] = evc_loop_of(r);
	}
	OK(evc_systemd_start(l->c, &o));
}

static void
loops_end(struct loops *l)
{
	int i;

	OK(evc_request_stop(l->c, 0, NULL));
	OK(l->home != NULL ? evc_run(l->c, NULL, NULL) :
			     evc_join(l->c, NULL, NULL));
	for (i = 0; i < LOOPS; i++)
		evc_loop_release(l->loop[i]);
	FREE_ALL(l->scope, l->c);
}

/* Fails when the turns of one loop are taken for those of all. */
START_TEST(one_loop_of_four_that_hangs_ends_it)
{
	struct manager m;
	struct loops l;
	int i, n;

	manager_begin(&m, true);
	loops_begin(&l, &m, NULL);
	for (i = 0; i < LOOPS; i++) {
		more(&m);
		atomic_store(&l.hang, 1);
		OK(evc_post(l.loop[i], hang_here, &l));
		UNTIL(atomic_load(&l.hangs));
		/* The answer to a question before may be on its way. */
		let_come();
		n = manager_count(&m, SIGN);
		let_come();
		let_come();
		ck_assert_int_eq(manager_count(&m, SIGN), n);
		atomic_store(&l.hang, 0);
		UNTIL(!atomic_load(&l.hangs));
	}
	more(&m);
	loops_end(&l);
	manager_end(&m);
}
END_TEST

/* Nothing is asked of loops but by the ping, and once for each. */
START_TEST(idle_loops_are_pinged_throughout_and_sleep_between)
{
	struct manager m;
	struct loops l;
	long sleeps[LOOPS + 1];
	int tid[LOOPS + 1], i, n;

	manager_begin(&m, true);
	loops_begin(&l, &m, NULL);
	more(&m);
	for (i = 0; i < LOOPS; i++)
		tid[i] = atomic_load(&l.tid[i]);
	tid[LOOPS] = helper_tid();
	for (i = 0; i <= LOOPS; i++)
		sleeps[i] = task_sleeps(tid[i]);
	n = manager_count(&m, SIGN);
	UNTIL(manager_count(&m, SIGN) >= n + 20);
	n = manager_count(&m, SIGN) - n;
	/* A loop may meet a mutex on its way, and the helper comes for each
	   answer. */
	for (i = 0; i < LOOPS; i++)
		ck_assert_int_le(task_sleeps(tid[i]) - sleeps[i], 3 * n + 5);
	ck_assert_int_le(task_sleeps(tid[LOOPS]) - sleeps[LOOPS],
			 3 * LOOPS * n + 5);
	loops_end(&l);
	manager_end(&m);
}
END_TEST

START_TEST(a_home_that_has_run_counts_and_one_that_has_not_does_not)
{
	struct ev_loop *home = ev_loop_new(0);
	evc_systemd_opts o = { .watchdog = 0.02 };
	struct manager m;
	evc_reactor *r;
	evc_coord *c;
	double until;
	int n;

	manager_begin(&m, true);
	c = new_coord(home);
	OK(evc_reactor_start(c, "far", NULL, NULL, NULL, &r));
	o.reactor = r;
	o.socket = m.name;
	OK(evc_systemd_start(c, &o));
	more(&m);
	ev_run(home, EVRUN_NOWAIT);
	let_come();
	n = manager_count(&m, SIGN);
	let_come();
	let_come();
	ck_assert_int_eq(manager_count(&m, SIGN), n);
	until = t_now() + T_LIMIT;
	while (manager_count(&m, SIGN) < n + 3 && t_now() < until) {
		ev_run(home, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	ck_assert_int_ge(manager_count(&m, SIGN), n + 3);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(home);
	manager_end(&m);
}
END_TEST

/* A loop that goes while it owes an answer. */
START_TEST(a_loop_that_goes_is_not_waited_for)
{
	struct ev_loop *second = ev_loop_new(0);
	evc_systemd_opts o = { .watchdog = 0.02 };
	struct manager m;
	evc_reactor *r;
	evc_coord *c;
	int n;

	manager_begin(&m, true);
	c = new_coord(NULL);
	o.socket = m.name;
	OK(evc_systemd_start(c, &o));
	more(&m);
	OK(evc_reactor_attach(c, "second", second, &r));
	more(&m);
	ev_run(second, EVRUN_NOWAIT);
	let_come();
	n = manager_count(&m, SIGN);
	let_come();
	ck_assert_int_eq(manager_count(&m, SIGN), n);
	if (_i)
		ev_loop_destroy(second);
	else
		OK(evc_reactor_detach(r));
	more(&m);
	OK(evc_systemd_stop(c));
	OK(evc_free(c));
	if (!_i)
		ev_loop_destroy(second);
	manager_end(&m);
}
END_TEST

START_TEST(during_a_stop_it_goes_on)
{
	evc_systemd_opts o = { .watchdog = 0.01, .status_every = 1000 };
	struct ev_loop *loop = _i ? ev_loop_new(0) : NULL;
	struct manager m;
	evc_coord *c;
	evc_id id = 0;

	manager_begin(&m, true);
	c = manager_told(&m, loop, NULL, &o);
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	/* With a loop that does not turn, too. */
	more(&m);
	OK(evc_hold_end(c, id));
	OK(_i ? evc_run(c, NULL, NULL) : evc_join(c, NULL, NULL));
	ck_assert_int_eq(watchdogs(c), 0);
	more(&m);
	OK(evc_free(c));
	if (_i)
		ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

struct hung {
	struct manager *m;
	evc_coord *c;
	ev_timer timer;
};

static void
hang_in_stop(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct hung *h = w->data;
	char text[600];

	(void)loop;
	(void)revents;
	OK(evc_request_stop(h->c, 0, NULL));
	UNTIL(strstr(manager_last(h->m, "STATUS=", text, sizeof(text)),
		     "loop home has not turned") != NULL);
	HAS(text, "stopping: loop home has not turned: in a callback of the "
		  "application; requested by");
	/* None of the library's own is to blame. */
	ck_assert(!manager_heard(h->m, "STATUS=stopping: 1 member"));
	ck_assert_int_eq(watchdogs(h->c), 0);
}

START_TEST(a_loop_that_hangs_is_to_blame_and_not_the_watchdog)
{
	evc_systemd_opts o = { .watchdog = 0.01, .status_every = 0.01 };
	struct ev_loop *loop = ev_loop_new(0);
	struct manager m;
	struct hung h = { .m = &m };

	manager_begin(&m, true);
	h.c = manager_told(&m, loop, NULL, &o);
	ck_assert_int_eq(watchdogs(h.c), 1);
	h.timer.data = &h;
	ev_timer_init(&h.timer, hang_in_stop, 0.05, 0);
	ev_timer_start(loop, &h.timer);
	OK(evc_run(h.c, NULL, NULL));
	OK(evc_free(h.c));
	ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

START_TEST(after_a_clear_there_is_one_again)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct manager m;
	evc_coord *c;
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	for (i = 1; i <= 3; i++) {
		more(&m);
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		UNTIL(watchdogs(c) == 1);
		ck_assert_int_eq(manager_count(&m, "STOPPING=1"), i);
		UNTIL(manager_count(&m, "READY=1") == i);
	}
	more(&m);
	ck_assert_int_eq(watchdogs(c), 1);
	OK(evc_systemd_stop(c));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(started_while_a_stop_stands_it_comes_with_the_clear)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct manager m;
	evc_coord *c = new_coord(NULL);

	manager_begin(&m, true);
	o.socket = m.name;
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_systemd_start(c, &o));
	ck_assert_int_eq(watchdogs(c), 0);
	more(&m);
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	UNTIL(watchdogs(c) == 1);
	more(&m);
	OK(evc_systemd_stop(c));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(it_keeps_no_join_waiting)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct manager m;
	evc_verdict v;
	evc_coord *c;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

/* ---- the environment ---- */

struct environment {
	const char *usec, *pid; /* pid: "" is ours */
	double opts;
	bool watches;
};

static const struct environment environments[] = {
	{ NULL, NULL, 0, false },
	{ "20000", NULL, 0, true },
	{ "20000", "", 0, true },
	{ "20000", "1", 0, false }, /* somebody else's */
	{ "20000", "", -1, false },
	{ NULL, NULL, 0.01, true },
	{ "20000", "1", 0.01, true }, /* the options are meant for us */
	{ "0", NULL, 0, false },
	{ "", NULL, 0, false },
	{ "-20000", NULL, 0, false },
	{ "20000s", NULL, 0, false },
	{ "99999999999999999999999", NULL, 0, false },
	{ "20000", "", 0, true },
	{ "20000", "x", 0, false },
};

static void
set(const char *name, const char *value)
{
	if (value != NULL)
		OK(setenv(name, value, 1));
	else
		unsetenv(name);
}

START_TEST(the_environment_asks_for_it)
{
	const struct environment *e = &environments[_i];
	evc_systemd_opts o = { .watchdog = e->opts };
	struct manager m;
	evc_coord *c = new_coord(NULL);
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	set("WATCHDOG_USEC", e->usec);
	set("WATCHDOG_PID", e->pid != NULL && e->pid[0] == '\0' ? pid : e->pid);
	manager_begin(&m, true);
	o.socket = m.name;
	errno = 77;
	OK(evc_systemd_start(c, &o));
	ck_assert_int_eq(watchdogs(c), e->watches);
	if (e->watches)
		more(&m);
	OK(evc_systemd_stop(c));
	OK(evc_free(c));
	ck_assert(e->watches || manager_hear(&m) == 0);
	manager_end(&m);
	set("WATCHDOG_USEC", NULL);
	set("WATCHDOG_PID", NULL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("systemd_watchdog");
	TCase *tcase = tcase_create("systemd_watchdog");

	tcase_add_loop_test(tcase, a_thread_of_its_own_without_a_loop, 0, 2);
	tcase_add_test(tcase, a_loop_that_does_not_turn_shows_no_life);
	tcase_add_test(tcase, the_loop_that_was_named_is_the_one_that_counts);
	tcase_add_test(tcase, one_loop_of_four_that_hangs_ends_it);
	tcase_add_test(tcase,
		       idle_loops_are_pinged_throughout_and_sleep_between);
	tcase_add_test(
		tcase,
		a_home_that_has_run_counts_and_one_that_has_not_does_not);
	tcase_add_loop_test(tcase, a_loop_that_goes_is_not_waited_for, 0, 2);
	tcase_add_loop_test(tcase, during_a_stop_it_goes_on, 0, 2);
	tcase_add_test(tcase,
		       a_loop_that_hangs_is_to_blame_and_not_the_watchdog);
	tcase_add_test(tcase, after_a_clear_there_is_one_again);
	tcase_add_test(tcase,
		       started_while_a_stop_stands_it_comes_with_the_clear);
	tcase_add_test(tcase, it_keeps_no_join_waiting);
	tcase_add_loop_test(tcase, the_environment_asks_for_it, 0,
			    (int)(sizeof(environments) /
				  sizeof(environments[0])));
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
