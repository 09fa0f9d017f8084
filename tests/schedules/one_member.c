/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows between one member's end and what others do with it: the stop of its
 * own scope, and evc_free.
 */
#include "schedules.h"

static evc_status
do_member_stop(evc_coord *c, void *arg)
{
	return evc_member_stop(c, *(evc_id *)arg, 0, "stop");
}

/* The thread ends, and would free its scope, while a stop of it is on its way
   into that scope. */
START_TEST(a_scope_stays_until_a_stop_of_it_has_returned)
{
	const evc_member_opts own = { .flags = EVC_OWN_SCOPE };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct actor a;
	evc_id id;
	int h;

	OK(evc_thread_start(c, "worker", stay, &g, &own, &id));
	UNTIL(atomic_load(&g.in));
	h = actor_held(&a, do_member_stop, c, &id, "load", "record_request",
		       1);
	atomic_store(&g.open, 1);
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_member_wait(c, id, 0.05, NULL));
	seam_release(h);
	OK(actor_end(&a));
	OK(evc_member_wait(c, id, INFINITY, NULL));
	REFUSED(EVC_NOT_FOUND, evc_member_stop(c, id, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

struct own {
	evc_coord *c;
	evc_status st;
	struct guest g;
};

static void *
own_main(void *arg)
{
	const evc_member_opts opts = { .flags = EVC_NOT_JOINED };
	struct own *o = arg;

	o->st = evc_register_thread(o->c, "own", pthread_self(), &opts, NULL);
	return stay_thread(&o->g);
}

/* The thread has told of its end, and is about to leave the coordinator. */
START_TEST(a_free_waits_for_a_thread_that_tells_of_its_end)
{
	struct own o = { .c = new_coord(NULL) };
	struct actor a;
	pthread_t t;
	int h;

	OK(pthread_create(&t, NULL, own_main, &o));
	UNTIL(atomic_load(&o.g.in));
	OK(o.st);
	h = seam_hold("sub", "evc__refgate_leave", 1);
	atomic_store(&o.g.open, 1);
	held_at(h, "sub", "evc__refgate_leave");
	actor_begin(&a, do_free, o.c, NULL);
	actor_waits(&a);
	seam_release(h);
	OK(actor_end(&a));
	OK(pthread_join(t, NULL));
}
END_TEST

SCHEDULES_MAIN("one_member", a_scope_stays_until_a_stop_of_it_has_returned,
	       a_free_waits_for_a_thread_that_tells_of_its_end)
