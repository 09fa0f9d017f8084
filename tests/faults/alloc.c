/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory: for each call that allocates, its first, second ... last
 * allocation fails.  Then the call is refused with -EVC_RESOURCE_EXHAUSTED and
 * a text, nothing is half done, and the object is usable as before; or it does
 * without, where the headers say so.  What leaks is found by the address
 * sanitizer, which looks at each test when it ends.
 */
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

static void
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
static void
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

static void
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

static void
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
	ck_assert_uint_eq(spared, has_pidfds() ? k->spared : 0);
}

/* ---- evc_new, which has no object to go on with ---- */

static void
new_fails_at_each(struct ev_loop *loop)
{
	int fds = t_count_fds(), nth, h;
	evc_coord *c = NULL;
	evc_status st;

	for (nth = 1;; nth++) {
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_new(loop, NULL, &c);
		if (seam_arrivals(h) < nth)
			break;
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_str_ne(evc_last_error(), "");
		ck_assert_ptr_null(c);
		ck_assert_int_eq(t_count_fds(), fds);
		if (loop != NULL)
			ev_run(loop, 0); /* no watcher of ours holds it */
		seam_reset();
	}
	ck_assert_int_gt(nth, 2);
	seam_reset();
	OK(st);
	OK(evc_free(c));
}

START_TEST(evc_new_without_memory)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

	seam_reset();
	new_fails_at_each(NULL);
	new_fails_at_each(loop);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- members ---- */

static void
no_member(struct site *s)
{
	ck_assert_uint_eq(s->id, 77);
	ck_assert_uint_eq(n_members(s->c), 0);
}

static void
one_member(struct site *s)
{
	ck_assert_uint_ne(s->id, 77);
	OK(evc_member_get(s->c, s->id, NULL));
}

static evc_status
start_thread(struct site *s)
{
	return evc_thread_start(s->c, "thread", obey, NULL, NULL, &s->id);
}

START_TEST(evc_thread_start_without_memory)
{
	struct call k = { 0, start_thread, no_member, one_member, 0 };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
start_watched(struct site *s)
{
	evc_member_opts o = { .flags = EVC_WATCHED };

	return evc_thread_start(s->c, "watched", obey, NULL, &o, &s->id);
}

/* Without a helper it is probed. */
START_TEST(evc_thread_start_watched_without_memory)
{
	struct call k = { 0, start_watched, no_member, one_member, 1 };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
begin_hold(struct site *s)
{
	return evc_hold_begin(s->c, "hold", NULL, &s->id);
}

static void
end_hold(struct site *s)
{
	one_member(s);
	OK(evc_hold_end(s->c, s->id));
}

START_TEST(evc_hold_begin_without_memory)
{
	struct call k = { 0, begin_hold, no_member, end_hold, 0 };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
add_hook(struct site *s)
{
	return evc_on_stop(s->c, "hook", count_hook, &s->hook_calls, NULL,
			   &s->id);
}

static void
hook_is_called(struct site *s)
{
	one_member(s);
	OK(evc_request_stop(s->c, 0, NULL));
	if (s->loop != NULL)
		OK(evc_run(s->c, NULL, NULL));
	else
		OK(evc_join(s->c, NULL, NULL));
	ck_assert_int_eq(s->hook_calls, 1);
	OK(evc_member_remove(s->c, s->id));
	OK(evc_clear_stop(s->c));
}

START_TEST(evc_on_stop_without_memory)
{
	struct call home = { WITH_LOOP, add_hook, no_member, hook_is_called,
			     0 };
	struct call helper = { 0, add_hook, no_member, hook_is_called, 0 };

	each_allocation_fails(&home);
	each_allocation_fails(&helper);
}
END_TEST

static evc_status
register_one(struct site *s)
{
	return evc_register_thread(s->c, NULL, s->thread[0], NULL, &s->id);
}

/* Those that were not taken are the test's own to join. */
static void
join_by_hand(struct site *s, int from)
{
	atomic_store(&s->guest.open, 1);
	for (; from < 3; from++)
		ck_assert_int_eq(pthread_join(s->thread[from], NULL), 0);
}

static void
not_registered(struct site *s)
{
	no_member(s);
	join_by_hand(s, 0);
}

static void
registered(struct site *s)
{
	one_member(s);
	join_by_hand(s, 1);
}

/* Without a helper it is probed. */
START_TEST(evc_register_thread_without_memory)
{
	struct call k = { WITH_THREADS, register_one, not_registered,
			  registered, 1 };

	each_allocation_fails(&k);
}
END_TEST

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
		h = seam_fail("alloc", "evc__listen", 1, ENOMEM);
		st = evc_reactor_attach(c, "loop", loop[i], &r[i]);
		ck_assert_int_eq(st, seam_arrivals(h) > 0 ?
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

/* ---- joins and walks ---- */

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
	struct call k = { WITH_LOOP | WITH_THREADS, start_join, list_not_taken,
			  join_delivered, 1 };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
join_list(struct site *s)
{
	evc_join_opts o = { .threads = s->thread,
			    .n_threads = 3,
			    .flags = EVC_JOIN_STOP_FIRST };
	evc_verdict v;
	evc_status st;

	/* If it is taken, it is to end. */
	memset(&v, '#', sizeof v);
	atomic_store(&s->guest.open, 1);
	st = evc_join(s->c, &o, &v);
	ck_assert_uint_eq(v.n_ended, st < 0 ? 0x23232323 : 3);
	return st;
}

static void
joined(struct site *s)
{
	ck_assert(evc_joined(s->c));
	OK(evc_clear_stop(s->c));
}

/* One more than the list needs can be spared: the helper's. */
START_TEST(J3_evc_join_takes_a_list_whole_or_not_at_all)
{
	struct call k = { WITH_THREADS, join_list, list_not_taken, joined, 1 };

	each_allocation_fails(&k);
}
END_TEST

START_TEST(evc_member_each_without_memory)
{
	evc_coord *c = new_coord(NULL);
	unsigned seen = 0;
	char buf[512];
	evc_id id;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_member_each(c, count_one, &seen));
	ck_assert_uint_eq(seen, 0);
	/* The texts for a person say what they can. */
	ck_assert_uint_gt(evc_explain(c, buf, sizeof buf), 0);
	HAS(buf, "hold");
	ck_assert_uint_gt(evc_report(c, buf, sizeof buf), 0);
	HAS(buf, "no memory");
	seam_reset();
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* The table of ids cannot grow: chains get longer, nobody is lost. */
START_TEST(more_members_than_the_table_of_ids_has_room_for)
{
	enum { MANY = 500 };
	evc_coord *c = new_coord(NULL);
	evc_id id[MANY];
	int i;

	OK(evc_hold_begin(c, "first", NULL, &id[0]));
	seam_fail_all("alloc", "evc__id_room", 1, ENOMEM);
	for (i = 1; i < MANY; i++)
		OK(evc_hold_begin(c, "more", NULL, &id[i]));
	seam_reset();
	for (i = 0; i < MANY; i++)
		OK(evc_member_get(c, id[i], NULL));
	ck_assert_uint_eq(n_members(c), MANY);
	for (i = 0; i < MANY; i++)
		OK(evc_hold_end(c, id[(i * 7) % MANY]));
	REFUSED(EVC_NOT_FOUND, evc_hold_end(c, id[0]));
	OK(evc_free(c));
}
END_TEST

/* With EVC_STRICT_SETUP the refusal is a stop with a reason. */
START_TEST(a_strict_set_up_without_memory_is_a_stop)
{
	evc_config strict = { .flags = EVC_STRICT_SETUP };
	evc_coord *c = new_coord_with(NULL, &strict);
	evc_reason r;

	seam_fail_all("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_thread_start(c, "thread", obey, NULL, NULL, NULL));
	seam_reset();
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(r.func, "evc_thread_start");
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_RESOURCE_EXHAUSTED);
	OK(evc_free(c));
}
END_TEST

API_MAIN("alloc", evc_new_without_memory, evc_thread_start_without_memory,
	 evc_thread_start_watched_without_memory,
	 evc_hold_begin_without_memory, evc_on_stop_without_memory,
	 evc_register_thread_without_memory, evc_reactor_attach_without_memory,
	 evc_reactor_attach_without_memory_for_one_more,
	 J3_evc_join_start_takes_a_list_whole_or_not_at_all,
	 J3_evc_join_takes_a_list_whole_or_not_at_all,
	 evc_member_each_without_memory,
	 more_members_than_the_table_of_ids_has_room_for,
	 a_strict_set_up_without_memory_is_a_stop)
