/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: run on the loop's thread exactly once, or reported as not run; waited
 * for by joins; refused after the stop and when the loop is gone.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

/* What posts say of themselves. */
struct seen {
	atomic_int n, n_cancelled, tid;
	evc_reactor *_Atomic r;
};

static void
see(evc_reactor *r, evc_status why, void *arg)
{
	struct seen *s = arg;

	atomic_store(&s->tid, own_tid());
	atomic_store(&s->r, r);
	if (why == EVC_CANCELLED)
		atomic_fetch_add(&s->n_cancelled, 1);
	else
		atomic_fetch_add(&s->n, why == 0 ? 1 : 1000000);
}

struct poster {
	evc_loop_ref *loop;
	struct seen *seen;
	evc_status st;
};

static void *
post_once(void *arg)
{
	struct poster *p = arg;

	p->st = evc_post(p->loop, see, p->seen);
	return NULL;
}

static void
post_from_a_thread(struct poster *p)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, post_once, p), 0);
	pthread_join(t, NULL);
}

START_TEST(a_post_runs_on_the_thread_of_its_loop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct seen s = { 0 };
	struct poster p = { evc_loop_of(evc_home(c)), &s, 1 };

	ck_assert_ptr_nonnull(p.loop);
	post_from_a_thread(&p);
	OK(p.st);
	ck_assert_int_eq(s.n, 0);
	ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(s.n, 1);
	ck_assert_int_eq(s.tid, own_tid());
	ck_assert_ptr_eq(s.r, evc_home(c));
	/* and from the loop's own thread, in its next turn */
	OK(evc_post(p.loop, see, &s));
	ck_assert_int_eq(s.n, 1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(s.n, 2);
	evc_loop_release(p.loop);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- order, and exactly once ---- */

enum { THREADS = 8, EACH = 5000 };

struct numbered {
	evc_message message; /* first */
	struct stream *of;
	int number;
};

struct stream {
	evc_loop_ref *loop;
	struct numbered *m;
	int next;     /* loop thread */
	int n_run, n_cancelled;
	int accepted; /* the poster's */
	bool in_order;
};

static void
in_turn(evc_message *m, evc_status why)
{
	struct numbered *n = (struct numbered *)m;
	struct stream *s = n->of;

	s->in_order = s->in_order && n->number == s->next;
	s->next = n->number + 1;
	if (why == 0)
		s->n_run++;
	else
		s->n_cancelled++;
}

static void *
post_a_stream(void *arg)
{
	struct stream *s = arg;
	int i;

	for (i = 0; i < EACH; i++) {
		s->m[i].message.fn = in_turn;
		s->m[i].of = s;
		s->m[i].number = i;
		if (evc_post_message(s->loop, &s->m[i].message) < 0)
			break;
		s->accepted++;
	}
	return NULL;
}

static void
streams_begin(struct stream *s, struct t_crowd *k, evc_reactor *r)
{
	int i;

	memset(s, 0, THREADS * sizeof(*s));
	for (i = 0; i < THREADS; i++) {
		s[i].loop = evc_loop_of(r);
		s[i].m = calloc(EACH, sizeof(*s[i].m));
		s[i].in_order = true;
	}
	crowd_begin(k, THREADS, post_a_stream, s, sizeof(*s));
}

static void
streams_end(struct stream *s, struct t_crowd *k)
{
	int i;

	crowd_end(k);
	for (i = 0; i < THREADS; i++) {
		ck_assert(s[i].in_order);
		ck_assert_int_eq(s[i].n_run + s[i].n_cancelled, s[i].accepted);
		evc_loop_release(s[i].loop);
		free(s[i].m);
	}
}

static int
n_run(const struct stream *s)
{
	int i, n = 0;

	for (i = 0; i < THREADS; i++)
		n += s[i].n_run;
	return n;
}

START_TEST(posts_of_many_threads_run_once_each_in_the_order_of_each_thread)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct stream s[THREADS];
	struct t_crowd k;

	streams_begin(s, &k, evc_home(c));
	/* Sleeps whenever nothing is there: a lost wake-up hangs it. */
	while (n_run(s) < THREADS * EACH)
		ev_run(loop, EVRUN_ONCE);
	streams_end(s, &k);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(posts_that_a_detach_overtakes_are_called_as_not_run)
{
	int round;

	for (round = 0; round < 20; round++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(NULL);
		evc_reactor *r;
		struct stream s[THREADS];
		struct t_crowd k;

		OK(evc_reactor_attach(c, "loop", loop, &r));
		streams_begin(s, &k, r);
		while (n_run(s) < round * 500)
			ev_run(loop, EVRUN_ONCE);
		if (round % 2 == 0)
			OK(evc_reactor_detach(r));
		else
			ev_loop_destroy(loop);
		streams_end(s, &k);
		REFUSED(EVC_INVALID_ARGUMENT, evc_post(NULL, see, NULL));
		OK(evc_free(c));
		if (round % 2 == 0)
			ev_loop_destroy(loop);
	}
}
END_TEST

START_TEST(a_handle_outlives_its_loop_and_its_coordinator)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r;
	struct seen s = { 0 };
	evc_loop_ref *l;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	l = evc_loop_of(r);
	ck_assert_ptr_eq(evc_loop_reactor(l), r);
	OK(evc_post(l, see, &s));
	OK(evc_reactor_detach(r));
	ck_assert_ptr_null(evc_loop_reactor(l));
	ck_assert_ptr_null(evc_loop_reactor(NULL));
	ck_assert_int_eq(s.n, 0);
	ck_assert_int_eq(s.n_cancelled, 1);
	ck_assert_ptr_null(s.r);
	ck_assert_int_eq(s.tid, own_tid());
	REFUSED(EVC_NOT_FOUND, evc_post(l, see, &s));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	REFUSED(EVC_NOT_FOUND, evc_post(l, see, &s));
	ck_assert_int_eq(s.n + s.n_cancelled, 1);
	evc_loop_release(l);
	evc_loop_release(NULL);
	evc_loop_leave(NULL);
	ck_assert_ptr_null(evc_loop_of(NULL));
}
END_TEST

START_TEST(posts_that_a_destroyed_loop_leaves_are_called_as_not_run)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	struct seen s = { 0 };

	OK(evc_post(l, see, &s));
	ev_loop_destroy(loop);
	ck_assert_int_eq(s.n_cancelled, 1);
	REFUSED(EVC_NOT_FOUND, evc_post(l, see, &s));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	evc_loop_release(l);
}
END_TEST

/* ---- joins and the stop ---- */

START_TEST(a_join_waits_for_a_post_and_names_it)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r;
	evc_verdict v;
	struct seen s = { 0 };
	struct joiner j;
	evc_loop_ref *l;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	l = evc_loop_of(r);
	OK(evc_post(l, see, &s));
	OK(evc_post(l, see, &s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "2 posts on loop");
	OK(evc_request_stop(c, 0, NULL));
	/* On another thread: here it would run the loop. */
	memset(&j, 0, sizeof(j));
	j.c = c;
	j.opts.grace = EVC_NO_GRACE;
	OK(pthread_create(&j.thread, NULL, joiner_main, &j));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(j.v.n_stragglers, 2);
	HAS(j.v.error.text, "2 posts on loop");
	join_begin(&j, c, 0, 0);
	ck_assert(still_waits(&j));
	ev_run(loop, EVRUN_NOWAIT);
	OK(join_end(&j));
	v = j.v;
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_int_eq(s.n, 2);
	evc_loop_release(l);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(after_the_stop_only_late_posts_are_accepted)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	struct seen s = { 0 };
	struct stream one = { .in_order = true };
	struct numbered late = { { .fn = in_turn, .flags = EVC_AFTER_STOP },
				 &one,
				 0 };

	OK(evc_post(l, see, &s));
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED, evc_post(l, see, &s));
	OK(evc_post_message(l, &late.message));
	/* what was accepted before the stop is run after it */
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(s.n, 1);
	ck_assert_int_eq(one.n_run, 1);
	OK(evc_clear_stop(c));
	OK(evc_post(l, see, &s));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(s.n, 2);
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Posts itself again until its loop refuses it, with EVC_AFTER_STOP n times more. */
struct again {
	evc_message message; /* first */
	evc_loop_ref *loop;
	atomic_int n, more;
};

static void
again(evc_message *m, evc_status why)
{
	struct again *a = (struct again *)m;

	atomic_fetch_add(&a->n, 1);
	if (why != 0)
		return;
	if (evc_post_message(a->loop, m) == 0)
		return;
	if (atomic_fetch_sub(&a->more, 1) > 0) {
		m->flags = EVC_AFTER_STOP;
		a->n += evc_post_message(a->loop, m) < 0 ? 1000000 : 0;
		m->flags = 0;
	}
}

static evc_status
post_again(evc_reactor *r, void *arg)
{
	struct again *a = arg;

	a->loop = evc_loop_of(r);
	return evc_post_message(a->loop, &a->message);
}

START_TEST(a_loop_runs_until_its_posts_have_returned)
{
	evc_coord *c = new_coord(NULL);
	struct again a = { .message = { .fn = again }, .more = 5 };
	int before;

	OK(evc_reactor_start(c, "loop", post_again, &a, NULL, NULL));
	UNTIL(a.n > 100);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	/* The last ones were refused, then late, then no more. */
	ck_assert_int_le(a.more, 0);
	before = a.n;
	REFUSED(EVC_NOT_FOUND, evc_post_message(a.loop, &a.message));
	ck_assert_int_eq(a.n, before);
	evc_loop_release(a.loop);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_post_to_a_scope_keeps_the_joins_above_waiting)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *scope;
	struct seen s = { 0 };
	evc_loop_ref *l;

	OK(evc_scope_new(c, "scope", NULL, &scope));
	OK(evc_scope_ready(scope));
	l = evc_loop_of(evc_home(scope));
	OK(evc_post(l, see, &s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(scope));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(s.n, 1);
	ck_assert_ptr_eq(s.r, evc_home(scope));
	OK(evc_free(scope));
	REFUSED(EVC_NOT_FOUND, evc_post(l, see, &s));
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- inside a post ---- */

struct inside {
	evc_message message; /* first */
	evc_coord *c;
	struct ev_loop *loop;
	struct seen *seen;
	evc_loop_ref *l;
	evc_status detached, freed, posted;
	int n_nested;
};

static void
try_it_inside(evc_message *m, evc_status why)
{
	struct inside *i = (struct inside *)m;

	(void)why;
	i->detached = evc_reactor_detach(i->seen->r);
	i->freed = evc_free(i->c);
	i->posted = evc_post(i->l, see, i->seen);
	ev_run(i->loop, EVRUN_NOWAIT);
	i->n_nested = i->seen->n;
}

START_TEST(inside_a_post_its_reactor_stays_and_its_loop_can_run)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	struct seen s = { 0 };
	struct inside i = { .message = { .fn = try_it_inside },
			    .c = c, .loop = loop, .seen = &s };
	evc_reactor *r;

	OK(evc_reactor_attach(c, "loop", loop, &r));
	s.r = r;
	i.l = evc_loop_of(r);
	OK(evc_post_message(i.l, &i.message));
	OK(evc_post(i.l, see, &s));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(i.detached, -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(i.freed, -EVC_FAILED_PRECONDITION);
	OK(i.posted);
	/* the one behind it, and the one it posted */
	ck_assert_int_eq(i.n_nested, 2);
	ck_assert_int_eq(s.n, 2);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	evc_loop_release(i.l);
	ev_loop_destroy(loop);
}
END_TEST

/* Waits for the one behind it, by running the loop. */
static void
wait_for_the_next(evc_message *m, evc_status why)
{
	struct inside *i = (struct inside *)m;

	(void)why;
	while (i->seen->n == 0)
		ev_run(i->loop, EVRUN_ONCE);
	i->n_nested = i->seen->n;
}

static evc_status
wait_in_a_hook(evc_coord *c, void *arg)
{
	(void)c;
	wait_for_the_next(arg, 0);
	return 0;
}

static void
inside_begin(struct inside *i, struct ev_loop *loop, struct seen *s)
{
	memset(i, 0, sizeof(*i));
	memset(s, 0, sizeof(*s));
	i->message.fn = wait_for_the_next;
	i->loop = loop;
	i->seen = s;
}

/* Behind it in its own box, in that of a scope, and behind a hook. */
START_TEST(a_loop_run_inside_a_post_hears_of_those_behind_it)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *scope;
	evc_loop_ref *own = evc_loop_of(evc_home(c)), *below;
	struct seen s;
	struct inside i;

	OK(evc_scope_new(c, "scope", NULL, &scope));
	OK(evc_scope_ready(scope));
	below = evc_loop_of(evc_home(scope));

	inside_begin(&i, loop, &s);
	OK(evc_post_message(own, &i.message));
	OK(evc_post(own, see, &s));
	ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(i.n_nested, 1);

	inside_begin(&i, loop, &s);
	OK(evc_post_message(below, &i.message));
	OK(evc_post(own, see, &s));
	while (s.n == 0)
		ev_run(loop, EVRUN_ONCE);
	inside_begin(&i, loop, &s);
	OK(evc_post_message(own, &i.message));
	OK(evc_post(below, see, &s));
	while (s.n == 0)
		ev_run(loop, EVRUN_ONCE);

	inside_begin(&i, loop, &s);
	OK(evc_on_stop(c, "hook", wait_in_a_hook, &i, NULL, NULL));
	OK(evc_post(own, see, &s));
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(i.n_nested, 1);

	evc_loop_release(own);
	evc_loop_release(below);
	FREE_ALL(scope, c);
	ev_loop_destroy(loop);
}
END_TEST

static void
free_myself(evc_message *m, evc_status why)
{
	(void)why;
	free(m);
}

START_TEST(a_post_may_free_its_memory)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	int i;

	for (i = 0; i < 4; i++) {
		evc_message *m = calloc(1, sizeof(*m));

		m->fn = free_myself;
		OK(evc_post_message(l, m));
		if (i == 2)
			ev_run(loop, EVRUN_NOWAIT);
	}
	/* the last one is not run */
	ev_loop_destroy(loop);
	evc_loop_release(l);
	OK(evc_free(c));
}
END_TEST

/* ---- from a signal handler ---- */

static evc_loop_ref *signal_loop;
static struct numbered signal_message;

static void
post_in_handler(int signo)
{
	(void)signo;
	if (evc_post_message(signal_loop, &signal_message.message) < 0)
		_exit(3);
}

START_TEST(a_signal_handler_may_post)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct stream s = { .in_order = true };

	signal_loop = evc_loop_of(evc_home(c));
	signal_message.message.fn = in_turn;
	signal_message.of = &s;
	signal(SIGUSR1, post_in_handler);
	raise(SIGUSR1);
	while (s.n_run == 0)
		ev_run(loop, EVRUN_ONCE);
	ck_assert_int_eq(s.n_run, 1);
	evc_loop_release(signal_loop);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- wrong use ---- */

START_TEST(wrong_posts_are_refused_with_a_text)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	struct stream s = { .in_order = true };
	struct numbered m = { { .fn = in_turn }, &s, 0 };
	evc_message none = { 0 },
		    odd = { .fn = free_myself, .flags = 1u << 31 };
	evc_message unclean = { .fn = free_myself, .reserved_ = { 0, 1 } };

	REFUSED(EVC_INVALID_ARGUMENT, evc_post(l, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_post_message(l, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_post_message(l, &none));
	REFUSED(EVC_INVALID_ARGUMENT, evc_post_message(l, &odd));
	REFUSED(EVC_INVALID_ARGUMENT, evc_post_message(l, &unclean));
	REFUSED(EVC_INVALID_ARGUMENT, evc_post_message(NULL, &m.message));
	OK(evc_post_message(l, &m.message));
	REFUSED(EVC_ALREADY_EXISTS, evc_post_message(l, &m.message));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(s.n_run, 1);
	m.number = 1;
	OK(evc_post_message(l, &m.message));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(s.n_run, 2);
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_fork_child_cannot_post)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_loop_ref *l = evc_loop_of(evc_home(c));
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		evc_message m = { .fn = free_myself };

		CHILD_REFUSED(evc_post(l, see, NULL));
		CHILD_REFUSED(evc_post_message(l, &m));
		evc_loop_release(l);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	evc_loop_release(l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("posts", a_post_runs_on_the_thread_of_its_loop,
	 posts_of_many_threads_run_once_each_in_the_order_of_each_thread,
	 posts_that_a_detach_overtakes_are_called_as_not_run,
	 a_handle_outlives_its_loop_and_its_coordinator,
	 posts_that_a_destroyed_loop_leaves_are_called_as_not_run,
	 a_join_waits_for_a_post_and_names_it,
	 after_the_stop_only_late_posts_are_accepted,
	 a_loop_runs_until_its_posts_have_returned,
	 a_post_to_a_scope_keeps_the_joins_above_waiting,
	 inside_a_post_its_reactor_stays_and_its_loop_can_run,
	 a_loop_run_inside_a_post_hears_of_those_behind_it,
	 a_post_may_free_its_memory,
	 a_signal_handler_may_post,
	 wrong_posts_are_refused_with_a_text,
	 a_fork_child_cannot_post)
