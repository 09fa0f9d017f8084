/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory for a coordinator, for its members, for looking at them.
 */
#include "alloc.h"

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
	struct call k = { 0, start_watched, no_member, one_member,
			  HELPER_PARTS };

	each_allocation_fails(&k);
}
END_TEST

static evc_status
start_own_scope(struct site *s)
{
	evc_member_opts o = { .flags = EVC_OWN_SCOPE };

	return evc_thread_start(s->c, "own", obey, NULL, &o, &s->id);
}

/* Nothing is left of the scope: its parent can be freed. */
START_TEST(evc_thread_start_own_scope_without_memory)
{
	struct call k = { 0, start_own_scope, no_member, one_member, 0 };

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
struct own {
	struct site *s;
	evc_status st;
	atomic_int done;
};

static void *
own_main(void *arg)
{
	evc_member_opts o = { .flags = EVC_NOT_JOINED };
	struct own *own = arg;
	struct site *s = own->s;
	evc_status st = evc_register_thread(s->c, NULL, pthread_self(), &o,
					    &s->id);

	pthread_detach(pthread_self());
	own->st = st;
	atomic_store(&own->done, 1);
	if (st == 0)
		stay(NULL, &s->guest);
	return NULL;
}

static evc_status
register_own(struct site *s)
{
	struct own own = { .s = s };

	(void)spawn(own_main, &own);
	UNTIL(atomic_load(&own.done));
	if (own.st < 0) /* its text was the other thread's */
		(void)evc_refuse(own.st, "refused");
	return own.st;
}

/* Without a helper its destructor tells of its end. */
START_TEST(evc_register_thread_not_joined_without_memory)
{
	struct call k = { 0, register_own, no_member, one_member,
			  HELPER_PARTS };

	each_allocation_fails(&k);
}
END_TEST

START_TEST(evc_register_thread_without_memory)
{
	struct call k = { WITH_THREADS, register_one, not_registered,
			  registered, HELPER_PARTS };

	each_allocation_fails(&k);
}
END_TEST

/* ---- the register ---- */

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
	ck_assert_uint_gt(evc_report(c, EVC_REPORT_TEXT, buf, sizeof buf), 0);
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
	seam_fail_all("alloc", "evc__id_reserve", 1, ENOMEM);
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
	 evc_thread_start_own_scope_without_memory,
	 evc_register_thread_not_joined_without_memory,
	 evc_hold_begin_without_memory, evc_on_stop_without_memory,
	 evc_register_thread_without_memory, evc_member_each_without_memory,
	 more_members_than_the_table_of_ids_has_room_for,
	 a_strict_set_up_without_memory_is_a_stop)
