/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_call_detached_with and no_wait: calls that nobody waits for.  They are no
 * error at a stop and hold up nothing; a completion runs on its loop as long as
 * there is one; arg is released exactly once, always.
 *
 * arg is always allocated, as in call.c.
 */
#include "../../support/wait_util.h"

#include <ev.h>
#include <sys/wait.h>

/* What the calls of one test say of themselves. */
struct seen {
	atomic_int calls, tid, released, released_by;
	atomic_int dones, done_by, why, result, released_at_done;
	evc_reactor *_Atomic r;
	void (*in_done)(struct seen *s);
	struct ev_loop *loop;
	evc_coord *c;
};

struct job {
	struct seen *seen;
	int result;
	atomic_int *open; /* NULL: it does not hang */
	bool exits, forks;
};

/* No sanitizer judges a child with a single thread of several. */
static void
leave(void)
{
	_exit(0);
}

static int
work(void *arg)
{
	struct job *j = arg;
	int status;
	pid_t pid;

	atomic_store(&j->seen->tid, own_tid());
	atomic_fetch_add(&j->seen->calls, 1);
	while (j->open != NULL && !atomic_load(j->open))
		t_sleep(0.001);
	if (j->forks) {
		pid = fork();
		/* The end of the child's thread ends the child. */
		if (pid == 0) {
			atexit(leave);
			return 0;
		}
		CHILD(waitpid(pid, &status, 0) == pid && status == 0);
	}
	if (j->exits)
		pthread_exit(NULL);
	return j->result;
}

static void
release(void *arg)
{
	struct seen *s = ((struct job *)arg)->seen;

	free(arg);
	atomic_store(&s->released_by, own_tid());
	atomic_fetch_add(&s->released, 1);
}

static void
done(evc_reactor *r, evc_status why, int result, void *arg)
{
	struct seen *s = ((struct job *)arg)->seen;

	atomic_store(&s->r, r);
	atomic_store(&s->done_by, own_tid());
	atomic_store(&s->why, why);
	atomic_store(&s->result, result);
	atomic_store(&s->released_at_done, atomic_load(&s->released));
	atomic_fetch_add(&s->dones, 1);
	if (s->in_done != NULL)
		s->in_done(s);
}

static evc_status
begin_named(evc_coord *c, const char *name, evc_reactor *r, struct seen *s,
	    struct job j)
{
	evc_call_opts o = { .name = name, .release = release, .no_wait = true,
			    .stack = T_SMALL_STACK, .reactor = r,
			    .done = r != NULL ? done : NULL };
	struct job *copy = malloc(sizeof(*copy));
	evc_status st;

	ck_assert_ptr_nonnull(copy);
	j.seen = s;
	*copy = j;
	st = evc_call_detached_with(c, work, copy, 0, &o, NULL);
	/* Ours again when it was refused. */
	if (st < 0 && st != -EVC_CANCELLED)
		free(copy);
	return st;
}

static evc_status
begin(evc_coord *c, evc_reactor *r, struct seen *s, struct job j)
{
	return begin_named(c, "lookup", r, s, j);
}

/* ---- the log ---- */

struct lines {
	pthread_mutex_t lock;
	char text[4096];
};

static void
note_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct lines *l = arg;
	size_t len;

	(void)r;
	pthread_mutex_lock(&l->lock);
	len = strlen(l->text);
	snprintf(l->text + len, sizeof(l->text) - len, "%d %s\n", level, line);
	pthread_mutex_unlock(&l->lock);
}

#define LINES { .lock = PTHREAD_MUTEX_INITIALIZER }

static evc_coord *
coord_with(struct lines *l)
{
	evc_config cfg = { .name = "main", .log = note_line, .arg = l };

	return new_coord_with(NULL, &cfg);
}

/* The end of a line is left behind, at level info. */
static void
has_left(struct lines *l, const char *who, const char *names)
{
	char line[512];

	snprintf(line, sizeof(line), "%d %s: left behind: %s\n", EVC_LOG_INFO,
		 who, names);
	HAS(l->text, line);
}

/* ---- completions ---- */

struct timer {
	ev_timer t; /* first */
	evc_coord *c;
	struct seen *s;
	evc_status st;
};

static void
begin_in_loop(struct ev_loop *loop, ev_timer *t, int events)
{
	struct timer *x = (struct timer *)t;

	(void)loop;
	(void)events;
	x->st = begin(x->c, evc_home(x->c), x->s, (struct job){ .result = 5 });
}

START_TEST(a_call_on_a_loops_thread_completes_there_and_then_releases)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };
	struct timer x = { .c = c, .s = &s, .st = 77 };

	ev_timer_init(&x.t, begin_in_loop, 0., 0.);
	ev_timer_start(loop, &x.t);
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	OK(x.st);
	ck_assert_int_eq(s.calls, 1);
	ck_assert_int_ne(s.tid, own_tid());
	ck_assert_int_eq(s.done_by, own_tid());
	ck_assert_ptr_eq(s.r, evc_home(c));
	ck_assert_int_eq(s.why, 0);
	ck_assert_int_eq(s.result, 5);
	ck_assert_int_eq(s.released_at_done, 0);
	ck_assert_int_eq(s.released, 1);
	ck_assert_int_eq(s.released_by, own_tid());
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static evc_status
begin_on_a_member(evc_coord *c, void *arg)
{
	evc_loop_ref *loop = arg;
	static struct seen s;
	evc_reactor *r = evc_loop_enter(loop);
	evc_status st = begin(c, r, &s, (struct job){ .result = 6 });

	evc_loop_leave(loop);
	evc_loop_release(loop);
	while (st == 0 && atomic_load(&s.released) == 0)
		t_sleep(0.001);
	evc_request_stop(c, 0, NULL);
	return st == 0 && atomic_load(&s.result) == 6 ? 0 : EVC_INTERNAL;
}

START_TEST(a_call_on_another_thread_completes_on_the_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_verdict v;

	OK(evc_thread_start(c, "t", begin_on_a_member,
			    evc_loop_of(evc_home(c)), NULL, NULL));
	OK(evc_run(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_function_that_ends_its_thread_is_told_to_done)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };

	OK(begin(c, evc_home(c), &s, (struct job){ .exits = true }));
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(s.why, EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(s.result, 0);
	ck_assert_int_eq(s.released, 1);
	/* Without a completion it releases all the same. */
	OK(begin(c, NULL, &s, (struct job){ .exits = true }));
	UNTIL(atomic_load(&s.released) == 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* A member that is still alive at the stop may need the answer. */
START_TEST(after_the_stop_a_completion_comes_as_long_as_the_loop_turns)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };
	atomic_int open = 0;
	evc_task_class k = { .name = "request" };
	evc_task t = { 0 };

	OK(evc_task_begin(evc_home(c), &t, &k));
	OK(begin(c, evc_home(c), &s, (struct job){ .open = &open }));
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	atomic_store(&open, 1);
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	evc_task_end(&t);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
run_the_loop(struct seen *s)
{
	s->in_done = NULL;
	while (atomic_load(&s->dones) < 2)
		ev_run(s->loop, EVRUN_ONCE);
}

static evc_status freed;

static void
free_the_owner(struct seen *s)
{
	freed = evc_free(s->c);
}

START_TEST(two_completions_of_which_the_first_runs_the_loop_or_frees)
{
	static void (*const in_done[])(struct seen *) = { run_the_loop,
							  free_the_owner };
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);
		struct seen s = { .in_done = in_done[i], .loop = loop, .c = c };

		freed = -EVC_FAILED_PRECONDITION;
		OK(begin(c, evc_home(c), &s, (struct job){ .result = 1 }));
		OK(begin(c, evc_home(c), &s, (struct job){ .result = 2 }));
		while (atomic_load(&s.dones) < 2)
			ev_run(loop, EVRUN_ONCE);
		ck_assert_int_eq(s.released, 2);
		/* Refused, as in any post. */
		ck_assert_int_eq(freed, -EVC_FAILED_PRECONDITION);
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* ---- the end of the loop, and of the coordinator ---- */

START_TEST(when_the_loop_is_gone_it_releases_on_its_own_thread)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };
	atomic_int open = 0;

	OK(begin(c, evc_home(c), &s, (struct job){ .open = &open }));
	UNTIL(atomic_load(&s.calls) == 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	atomic_store(&open, 1);
	UNTIL(atomic_load(&s.released) == 1);
	ck_assert_int_eq(s.released_by, s.tid);
	ck_assert_int_eq(s.dones, 0);
	ck_assert(t_settle_gone(atomic_load(&s.tid)));
}
END_TEST

/* A completion that its loop has not run yet is no obstacle, either. */
START_TEST(a_completion_that_waits_is_released_with_the_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	int threads = t_count_threads();
	struct seen s = { 0 };

	OK(begin(c, evc_home(c), &s, (struct job){ 0 }));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(s.calls, 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(s.dones, 0);
	ck_assert_int_eq(s.released, 1);
	ck_assert_int_eq(s.released_by, own_tid());
	ev_loop_destroy(loop);
}
END_TEST

/* The loop is one of another coordinator, and outlives that of the call. */
START_TEST(the_coordinator_is_freed_first)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *of_loop = new_coord(loop), *c = new_coord(NULL);
	struct seen s = { 0 };
	atomic_int open = 0;

	OK(begin(c, evc_home(of_loop), &s, (struct job){ .open = &open,
							 .result = 9 }));
	OK(evc_free(c));
	atomic_store(&open, 1);
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(s.result, 9);
	ck_assert_int_eq(s.released, 1);
	OK(evc_free(of_loop));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- the stop ---- */

START_TEST(at_a_stops_end_it_is_named_and_nothing_waits_for_it)
{
	struct lines l = LINES;
	evc_coord *c = coord_with(&l);
	struct seen s = { 0 };
	atomic_int open = 0;
	evc_verdict v;
	int round;

	OK(begin_named(c, "ended", NULL, &s, (struct job){ 0 }));
	UNTIL(atomic_load(&s.released) == 1);
	ck_assert(t_settle_gone(atomic_load(&s.tid)));
	OK(begin(c, NULL, &s, (struct job){ .open = &open }));
	OK(begin_named(c, "a reload of configuration and zones", NULL, &s,
		       (struct job){ .open = &open }));
	for (round = 1; round <= 2; round++) {
		l.text[0] = '\0';
		OK(evc_request_stop(c, 0, "enough"));
		OK(evc_join(c, NULL, &v));
		ck_assert_int_eq(v.code, 0);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_uint_eq(v.n_errors, 0);
		OK(evc_clear_stop(c));
		has_left(&l, "main",
			 "lookup, a reload of configuration and zones");
	}
	ck_assert_int_eq(evc_finish(c, 0), 0);
	ck_assert_int_eq(s.released, 1);
	atomic_store(&open, 1);
	UNTIL(atomic_load(&s.released) == 3);
}
END_TEST

START_TEST(a_call_whose_wait_is_over_is_named_too)
{
	struct lines l = LINES;
	evc_coord *c = coord_with(&l);

	ck_assert_int_eq(evc_call_detached(c, "slow", hang, malloc(1),
					   hang_release, 0, NULL),
			 -EVC_DEADLINE_EXCEEDED);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	has_left(&l, "main", "slow");
	OK(evc_free(c));
	hangs_end(1);
}
END_TEST

START_TEST(beside_a_member_that_is_late_it_is_named_as_no_straggler)
{
	struct lines l = LINES;
	evc_coord *c = coord_with(&l);
	evc_join_opts o = { .grace = 0.05 };
	struct guest g = { 0 };
	struct seen s = { 0 };
	evc_verdict v;

	OK(evc_thread_start(c, "late", stay, &g, NULL, NULL));
	OK(begin(c, NULL, &s, (struct job){ .open = &g.open }));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &o, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	has_left(&l, "main", "lookup");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	UNTIL(atomic_load(&s.released) == 1);
	OK(evc_free(c));
}
END_TEST

/* A scope's own stop names the calls of the scope; the root's stop names all,
   also those of a scope that is gone. */
START_TEST(calls_of_a_scope)
{
	struct lines l = LINES;
	evc_coord *c = coord_with(&l), *scope;
	struct seen s = { 0 };
	atomic_int open = 0;

	OK(evc_scope_new(c, "part", NULL, &scope));
	OK(evc_scope_ready(scope));
	OK(begin_named(c, "of main", NULL, &s, (struct job){ .open = &open }));
	OK(begin_named(scope, "of part", NULL, &s,
		       (struct job){ .open = &open }));
	OK(evc_request_stop(scope, 0, NULL));
	OK(evc_join(scope, NULL, NULL));
	has_left(&l, "part", "of part");
	OK(evc_free(scope));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	has_left(&l, "main", "of main, of part");
	OK(evc_free(c));
	atomic_store(&open, 1);
	UNTIL(atomic_load(&s.released) == 2);
}
END_TEST

START_TEST(while_a_stop_stands_it_releases_and_calls_nothing)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };

	OK(evc_request_stop(c, 0, NULL));
	STOPPED(begin(c, evc_home(c), &s, (struct job){ 0 }));
	ck_assert_int_eq(s.calls, 0);
	ck_assert_int_eq(s.dones, 0);
	ck_assert_int_eq(s.released, 1);
	ck_assert_int_eq(s.released_by, own_tid());
	OK(evc_clear_stop(c));
	OK(begin(c, NULL, &s, (struct job){ 0 }));
	UNTIL(atomic_load(&s.released) == 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(wrong_use_is_refused_and_calls_nothing)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_reactor *r = evc_home(c);
	const evc_call_opts wrong[] = {
		{ .no_wait = true, .done = done },
		{ .no_wait = true, .reactor = r },
		{ .done = done, .reactor = r },
		{ .no_wait = true, .stack = 1 },
		{ .no_wait = true, .reserved_ = { 0, 1 } },
	};
	evc_call_opts o = { .no_wait = true };
	int result = 77, arg;
	unsigned i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_call_detached_with(c, work, &arg, 1, &wrong[i],
					       NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(c, work, &arg, 1, &o, &result));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(c, NULL, &arg, 1, &o, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_call_detached_with(NULL, work, &arg, 1, &o, NULL));
	ck_assert_int_eq(result, 77);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- many ---- */

enum { MANY = 10000, BESIDE = 100, HANG = 50 };

START_TEST(ten_thousand_calls_and_some_that_hang)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct lines l = LINES;
	evc_config cfg = { .name = "main", .log = note_line, .arg = &l };
	evc_coord *c = new_coord_with(loop, &cfg);
	struct seen s = { 0 }, hung = { 0 };
	char name[32], *left;
	atomic_int open = 0;
	int i;

	for (i = 0; i < HANG; i++) {
		snprintf(name, sizeof(name), "hangs-%d", i);
		OK(begin_named(c, name, NULL, &hung,
			       (struct job){ .open = &open }));
	}
	for (i = 0; i < MANY; i++) {
		OK(begin(c, i % 2 ? evc_home(c) : NULL, &s, (struct job){ 0 }));
		while (i - atomic_load(&s.released) > BESIDE)
			ev_run(loop, EVRUN_NOWAIT);
	}
	while (atomic_load(&s.released) < MANY)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(s.calls, MANY);
	ck_assert_int_eq(s.dones, MANY / 2);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	left = strstr(l.text, "left behind: hangs-");
	ck_assert_ptr_nonnull(left);
	HAS(left, " more\n");
	ck_assert_int_eq(evc_finish(c, 0), 0);
	atomic_store(&open, 1);
	UNTIL(atomic_load(&hung.released) == HANG);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- processes ---- */

/* fn forks: the child of its thread completes nothing and releases nothing. */
START_TEST(a_function_that_forks)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };

	OK(begin(c, evc_home(c), &s, (struct job){ .forks = true,
						   .result = 4 }));
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(s.result, 4);
	ck_assert_int_eq(s.released, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static pid_t forked;

static void
fork_here(struct seen *s)
{
	s->in_done = NULL;
	forked = fork();
}

START_TEST(a_completion_that_forks)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { .in_done = fork_here };
	int status;

	forked = -1;
	OK(begin(c, evc_home(c), &s, (struct job){ 0 }));
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	if (forked == 0) {
		CHILD(atomic_load(&s.released) == 0);
		_exit(0);
	}
	ck_assert_int_eq(s.released, 1);
	ck_assert_int_eq(waitpid(forked, &status, 0), forked);
	ck_assert_int_eq(status, 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* In a child of fork: calls of the parent's coordinator, and of its loop. */
START_TEST(in_a_fork_child_it_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *own;
	struct seen s = { 0 };
	atomic_int open = 0;
	int status;
	pid_t pid;

	OK(begin(c, evc_home(c), &s, (struct job){ .open = &open }));
	UNTIL(atomic_load(&s.calls) == 1);
	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(begin(c, NULL, &s, (struct job){ 0 }));
		CHILD(evc_new(NULL, NULL, &own) == 0);
		CHILD_REFUSED(begin(own, evc_home(c), &s, (struct job){ 0 }));
		CHILD(evc_finish(own, 0) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	atomic_store(&open, 1);
	while (atomic_load(&s.dones) == 0)
		ev_run(loop, EVRUN_ONCE);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* The end of the process while a call runs. */
START_TEST(the_process_ends_while_one_runs)
{
	static struct seen s;
	static atomic_int open;
	int status;
	pid_t pid = fork();
	evc_coord *c;

	if (pid == 0) {
		CHILD(evc_new(NULL, NULL, &c) == 0);
		CHILD(begin(c, NULL, &s, (struct job){ .open = &open }) == 0);
		CHILD(evc_request_stop(c, 0, NULL) == 0);
		_exit(evc_finish(c, evc_join(c, NULL, NULL)));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

API_MAIN("left", a_call_on_a_loops_thread_completes_there_and_then_releases,
	 a_call_on_another_thread_completes_on_the_loop,
	 a_function_that_ends_its_thread_is_told_to_done,
	 after_the_stop_a_completion_comes_as_long_as_the_loop_turns,
	 two_completions_of_which_the_first_runs_the_loop_or_frees,
	 when_the_loop_is_gone_it_releases_on_its_own_thread,
	 a_completion_that_waits_is_released_with_the_loop,
	 the_coordinator_is_freed_first,
	 at_a_stops_end_it_is_named_and_nothing_waits_for_it,
	 a_call_whose_wait_is_over_is_named_too,
	 beside_a_member_that_is_late_it_is_named_as_no_straggler,
	 calls_of_a_scope, while_a_stop_stands_it_releases_and_calls_nothing,
	 wrong_use_is_refused_and_calls_nothing,
	 ten_thousand_calls_and_some_that_hang, a_function_that_forks,
	 a_completion_that_forks, in_a_fork_child_it_is_refused,
	 the_process_ends_while_one_runs)
