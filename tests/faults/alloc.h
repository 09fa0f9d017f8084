/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call, made again and again on a new coordinator; each time another one of
 * its allocations fails.  Then the call is refused with
 * -EVC_RESOURCE_EXHAUSTED and a text, nothing is half done, and the object is
 * usable as before; or it does without, where the headers say so.  What leaks
 * is found by the address sanitizer, which looks at each test when it ends.
 */
#ifndef TESTS_FAULTS_ALLOC_H
#define TESTS_FAULTS_ALLOC_H

#include "faults.h"

/* ---- a coordinator that is to be as good as new after each failure ---- */

struct site {
	struct ev_loop *loop, *second; /* second is not attached */
	evc_coord *c;
	pthread_t thread[3];           /* those of the test's own */
	struct guest guest;
	atomic_int hook_calls;
	evc_id id;
	void *made;
};

enum { WITH_LOOP = 1, WITH_THREADS = 2 };

static inline void
build(struct site *s, unsigned with)
{
	int i;

	memset(s, 0, sizeof *s);
	if (with & WITH_LOOP)
		s->loop = ev_loop_new(EVFLAG_AUTO);
	s->second = ev_loop_new(EVFLAG_AUTO);
	s->c = new_coord(s->loop);
	s->id = 77;
	for (i = 0; with & WITH_THREADS && i < 3; i++)
		s->thread[i] = spawn(stay_thread, &s->guest);
}

/* Whatever happened before: a thread can be started, stopped and joined. */
static inline void
check_usable(struct site *s)
{
	evc_verdict v;

	OK(evc_thread_start(s->c, "usual", obey, NULL, NULL, NULL));
	OK(evc_request_stop(s->c, 0, NULL));
	atomic_store(&s->guest.open, 1);
	if (s->loop != NULL)
		OK(evc_run(s->c, NULL, &v));
	else
		OK(evc_join(s->c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(n_members(s->c), 0);
}

static inline void
tear_down(struct site *s)
{
	OK(evc_free(s->c));
	ev_loop_destroy(s->second);
	if (s->loop != NULL)
		ev_loop_destroy(s->loop);
}

/* ---- one call, each of its allocations failing once ---- */

struct call {
	unsigned with;
	evc_status (*make)(struct site *s);
	/* It was refused: nothing has changed. */
	void (*refused)(struct site *s);
	/* It was done, perhaps without what could not be had. */
	void (*done)(struct site *s);
	unsigned spared; /* how many of its allocations it can do without */
};

/* What a helper thread is made of, when it is to watch the first thread: itself,
   its table of clients and the one in it, the place of that one among the
   coordinator's listeners, the table of who is watched. */
#define HELPER_PARTS 5

static MAYBE_UNUSED void
each_allocation_fails(const struct call *k)
{
	unsigned nth, spared = 0, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		struct site s;
		evc_status st;
		int h, fds;

		build(&s, k->with);
		fds = t_count_fds();
		h = seam_fail("alloc", NULL, (int)nth, ENOMEM);
		st = k->make(&s);
		all = seam_arrivals(h) < (int)nth;
		seam_reset();
		if (st < 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert_int_eq(t_count_fds(), fds);
			ck_assert(!evc_should_stop(s.c));
			k->refused(&s);
			failed++;
		} else {
			k->done(&s);
			spared += !all;
		}
		check_usable(&s);
		tear_down(&s);
		ck_assert_uint_lt(nth, 50);
	}
	ck_assert_uint_gt(failed, 0);
	ck_assert_uint_eq(spared, has_thread_pidfd() ? k->spared : 0);
}

/* ---- what is so after a refusal ---- */

static inline void
no_member(struct site *s)
{
	ck_assert_uint_eq(s->id, 77);
	ck_assert_uint_eq(n_members(s->c), 0);
}

/* Threads that were not taken are the test's own to join. */
static inline void
join_by_hand(struct site *s, int from)
{
	atomic_store(&s->guest.open, 1);
	for (; from < 3; from++)
		ck_assert_int_eq(pthread_join(s->thread[from], NULL), 0);
}

#endif
