/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory for a loop that is to be attached, for a join, for the list of
 * threads that it is given.
 */
#include "alloc.h"

/* ---- loops ---- */

static evc_status
attach(struct site *s)
{
	evc_reactor *r = (evc_reactor *)s;
	evc_status st = evc_reactor_attach(s->c, "second", s->second, &r);

	s->made = r;
	return st;
}

static void
not_attached(struct site *s)
{
	ck_assert_ptr_eq(s->made, s);
	ev_run(s->second, 0); /* nothing of ours is in it */
	OK(attach(s));
	OK(evc_reactor_detach(s->made));
}

static void
attached(struct site *s)
{
	ck_assert_ptr_eq(evc_reactor_loop(s->made), s->second);
	OK(evc_reactor_detach(s->made));
}

START_TEST(evc_reactor_attach_without_memory)
{
	struct call k = { 0, attach, not_attached, attached, 0 };

	each_allocation_fails(&k);
}
END_TEST

/* Places for loops come in chunks: one that needs a new chunk is refused, and
   all that were there are told of the stop. */
START_TEST(evc_reactor_attach_without_memory_for_one_more)
{
	enum { MANY = 40 };
	struct ev_loop *loop[MANY];
	evc_coord *c = new_coord(NULL);
	evc_reactor *r[MANY];
	atomic_int calls = 0;
	unsigned i, refused = 0;
	int h;

	for (i = 0; i < MANY; i++) {
		evc_member_opts o = { 0 };
		evc_status st;

		loop[i] = ev_loop_new(EVFLAG_AUTO);
		/* The first one is of the loop's own bell. */
		h = seam_fail("alloc", "chunk_new", 2, ENOMEM);
		st = evc_reactor_attach(c, "loop", loop[i], &r[i]);
		ck_assert_int_eq(st, seam_arrivals(h) > 1 ?
					     -EVC_RESOURCE_EXHAUSTED :
					     0);
		seam_reset();
		if (st < 0) {
			refused++;
			ev_run(loop[i], 0);
			OK(evc_reactor_attach(c, "loop", loop[i], &r[i]));
		}
		o.reactor = r[i];
		OK(evc_on_stop(c, "hook", count_hook, &calls, &o, NULL));
	}
	ck_assert_uint_gt(refused, 1);
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < MANY; i++)
		OK(evc_reactor_run(r[i]));
	ck_assert_int_eq(calls, MANY);
	OK(evc_free(c));
	for (i = 0; i < MANY; i++)
		ev_loop_destroy(loop[i]);
}
END_TEST

/* ---- joins ---- */

static void
note_verdict(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	*(evc_verdict *)arg = *v;
	((evc_verdict *)arg)->took = 1;
}

static evc_verdict evented;

static evc_status
start_join(struct site *s)
{
	evc_join_opts o = { .threads = s->thread, .n_threads = 3 };

	memset(&evented, 0, sizeof evented);
	return evc_join_start(s->c, note_verdict, &evented, &o);
}

static void
list_not_taken(struct site *s)
{
	no_member(s);
	if (s->loop != NULL)
		ev_run(s->loop, 0); /* nothing of ours holds it */
	ck_assert_double_eq(evented.took, 0);
	join_by_hand(s, 0);
}

static void
join_delivered(struct site *s)
{
	atomic_store(&s->guest.open, 1);
	ev_run(s->loop, 0);
	ck_assert_double_eq(evented.took, 1);
	ck_assert_uint_eq(evented.n_ended, 3);
}

START_TEST(J3_evc_join_start_takes_a_list_whole_or_not_at_all)
{
	/* The table of listeners is there: the home stands in it. */
	struct call k = { WITH_LOOP | WITH_THREADS, start_join, list_not_taken,
			  join_delivered, HELPER_PARTS - 1 };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
join_list(struct site *s)
{
	/* If it is taken, this join ends at once, and leaves them alive. */
	evc_join_opts o = { .grace = EVC_NO_GRACE,
			    .threads = s->thread,
			    .n_threads = 3,
			    .flags = EVC_JOIN_STOP_FIRST |
				     EVC_JOIN_IGNORE_LIVE };
	evc_verdict v;
	evc_status st;

	memset(&v, '#', sizeof v);
	st = evc_join(s->c, &o, &v);
	ck_assert_uint_eq(v.n_stragglers, st < 0 ? 0x23232323 : 3);
	return st;
}

static void
joined(struct site *s)
{
	evc_verdict v;

	atomic_store(&s->guest.open, 1);
	OK(evc_join(s->c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 3);
	OK(evc_clear_stop(s->c));
}

START_TEST(J3_evc_join_takes_a_list_whole_or_not_at_all)
{
	struct call k = { WITH_THREADS, join_list, list_not_taken, joined,
			  HELPER_PARTS };

	each_allocation_fails(&k);
}
END_TEST

API_MAIN("alloc_loops", evc_reactor_attach_without_memory,
	 evc_reactor_attach_without_memory_for_one_more,
	 J3_evc_join_start_takes_a_list_whole_or_not_at_all,
	 J3_evc_join_takes_a_list_whole_or_not_at_all)
