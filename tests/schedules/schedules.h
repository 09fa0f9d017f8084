/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of tests/schedules share.  They step the protocols of the core
 * one operation at a time: a thread is held before an operation of the library
 * (support/seam.h), the test does what must not go wrong meanwhile, and lets it
 * go on.
 *
 * A name of a function and of an operation in a hold is a place in src/: who
 * changes the order of operations there finds the test here that watches it.
 * A place that is never reached fails the test, so no hold is silently void.
 */
#ifndef TESTS_SCHEDULES_SCHEDULES_H
#define TESTS_SCHEDULES_SCHEDULES_H

#include "../support/api_util.h"
#include "../support/seam.h"

#include <ev.h>
#include <fcntl.h>

/* Somebody has come to the place of a hold, and stands there. */
#define HELD(h) \
	ck_assert_msg(seam_await(h), "nobody came to the place: %s", #h)

/* A place in src/: the nth arrival at op in func. */
struct place {
	const char *op, *func;
	int nth;
};

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* Where an error that is not the first is counted, and then looks whether its
   round was closed. */
static const struct place at_the_count[] MAYBE_UNUSED = {
	{ "load", "evc__error_count", 1 },
	{ "cas", "evc__error_count", 1 },
	{ "load", "record_request", 2 },
};

static inline int
hold_at(const struct place *p)
{
	return seam_hold(p->op, p->func, p->nth);
}

/* HELD in a function that is given the place. */
static inline void
held_at(int h, const char *op, const char *func)
{
	ck_assert_msg(seam_await(h), "nobody came to the place: %s in %s", op,
		      func);
}

/* The main of a program of schedules.  No hold outlives its test. */
#define SCHEDULES_MAIN(title, ...) \
	API_MAIN_WITH(title, NULL, seam_reset, __VA_ARGS__)

/* One call of the library on a thread of its own, which is no member. */
struct actor {
	pthread_t thread;
	evc_fn *fn;
	evc_coord *c;
	void *arg;
	evc_status status;
	atomic_int tid, done;
};

static MAYBE_UNUSED void *
actor_main(void *arg)
{
	struct actor *a = arg;

	atomic_store(&a->tid, own_tid());
	a->status = a->fn(a->c, a->arg);
	atomic_store(&a->done, 1);
	return NULL;
}

static MAYBE_UNUSED void
actor_begin(struct actor *a, evc_fn *fn, evc_coord *c, void *arg)
{
	memset(a, 0, sizeof(*a));
	a->fn = fn;
	a->c = c;
	a->arg = arg;
	ck_assert_int_eq(pthread_create(&a->thread, NULL, actor_main, a), 0);
}

/* It is under way, and sleeps in the library or in the test's own call. */
static MAYBE_UNUSED void
actor_sleeps(struct actor *a)
{
	UNTIL(atomic_load(&a->tid) != 0);
	until_asleep(atomic_load(&a->tid));
	ck_assert_msg(!atomic_load(&a->done), "it did not wait");
}

/* It is under way, and a while later it still is, though it may look about. */
static MAYBE_UNUSED void
actor_waits(struct actor *a)
{
	UNTIL(atomic_load(&a->tid) != 0);
	t_sleep(0.05);
	ck_assert_msg(!atomic_load(&a->done), "it did not wait");
}

/* Wait for it, but not for ever: what its call returned. */
static MAYBE_UNUSED evc_status
actor_end(struct actor *a)
{
	UNTIL(atomic_load(&a->done));
	ck_assert_int_eq(pthread_join(a->thread, NULL), 0);
	return a->status;
}

/* Begin a call; somebody, as a rule its thread, comes to a place and stands
   there.  Returns the hold. */
static MAYBE_UNUSED int
actor_held(struct actor *a, evc_fn *fn, evc_coord *c, void *arg,
	   const char *op, const char *func, int nth)
{
	int h = seam_hold(op, func, nth);

	actor_begin(a, fn, c, arg);
	held_at(h, op, func);
	return h;
}

/* Let it go on, and wait for it: what its call returned. */
static MAYBE_UNUSED evc_status
actor_go(struct actor *a, int h)
{
	seam_release(h);
	return actor_end(a);
}

/* A started thread that says which one it is. */
struct named {
	struct guest g;
	atomic_int tid;
};

static MAYBE_UNUSED evc_status
stay_named(evc_coord *c, void *arg)
{
	struct named *n = arg;

	atomic_store(&n->tid, own_tid());
	return stay(c, &n->g);
}

/* ---- calls for actors ---- */

/* A request with a code and a text. */
struct ask {
	evc_status code;
	const char *text;
};

static MAYBE_UNUSED evc_status
do_request(evc_coord *c, void *arg)
{
	const struct ask *a = arg;

	return evc_request_stop(c, a->code, a->text);
}

static MAYBE_UNUSED evc_status
do_clear(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_clear_stop(c);
}

static MAYBE_UNUSED evc_status
do_signals_stop(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_signals_stop(c);
}

static MAYBE_UNUSED evc_status
do_free(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_free(c);
}

static MAYBE_UNUSED evc_status
do_raise(evc_coord *c, void *arg)
{
	(void)c;
	return raise(*(int *)arg);
}

static MAYBE_UNUSED evc_status
do_wait(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_wait_for_stop(c, INFINITY);
}

static MAYBE_UNUSED evc_status
do_hold(evc_coord *c, void *arg)
{
	return evc_hold_begin(c, "hold", NULL, arg);
}

static MAYBE_UNUSED evc_status
do_hold_end(evc_coord *c, void *arg)
{
	return evc_hold_end(c, *(evc_id *)arg);
}

static MAYBE_UNUSED evc_status
do_join(evc_coord *c, void *arg)
{
	return evc_join(c, NULL, arg);
}

static MAYBE_UNUSED evc_status
do_stop_fd(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_stop_fd(c);
}

/* Let a loop do what it has to do at once. */
static MAYBE_UNUSED evc_status
do_turn(evc_coord *c, void *arg)
{
	(void)c;
	ev_run(arg, EVRUN_NOWAIT);
	return 0;
}

/* ---- threads of the program's own, and their registration ---- */

static MAYBE_UNUSED pthread_t
spawn(struct guest *g)
{
	pthread_t t;

	memset(g, 0, sizeof(*g));
	OK(pthread_create(&t, NULL, stay_thread, g));
	UNTIL(atomic_load(&g->in));
	return t;
}

static MAYBE_UNUSED void
let_go(struct guest *g)
{
	atomic_store(&g->open, 1);
}

#define NEEDS_PIDFDS() \
	do { \
		if (!has_thread_pidfd()) \
			T_SKIP("there are no pidfds of threads here"); \
	} while (0)

/* A registration of a thread. */
struct reg {
	pthread_t t;
	evc_id id;
};

static MAYBE_UNUSED evc_status
do_register(evc_coord *c, void *arg)
{
	struct reg *r = arg;

	return evc_register_thread(c, "registered", r->t, NULL, &r->id);
}

/* ---- what a round holds ---- */

static MAYBE_UNUSED unsigned
count_reasons(evc_coord *c)
{
	unsigned n = 0;

	while (evc_reason_get(c, n, NULL) == 0)
		n++;
	return n;
}

/* Is a reason with that text kept? */
static MAYBE_UNUSED bool
is_kept(evc_coord *c, const char *text)
{
	evc_reason r;
	unsigned i;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		if (strcmp(r.text, text) == 0)
			return true;
	return false;
}

#endif
