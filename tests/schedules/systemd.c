/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who tells the service manager first: the thread that asks for a stop and the
 * helper thread, one of them held, and a clear that comes between.
 */
#include "schedules.h"

#include "../support/systemd_util.h"

/* Who asks for a stop; held, if told so, at that place of its own. */
struct asker {
	pthread_t thread;
	evc_coord *c;
	const char *op, *func;
	atomic_int hold; /* -1: not yet */
};

static void *
ask(void *arg)
{
	struct asker *a = arg;

	if (a->op != NULL)
		atomic_store(&a->hold, seam_hold_mine(a->op, a->func, 1));
	evc_request_stop(a->c, 0, "asked");
	return NULL;
}

static void
ask_begin(struct asker *a, evc_coord *c)
{
	a->c = c;
	a->op = NULL;
	OK(pthread_create(&a->thread, NULL, ask, a));
}

static int
ask_held(struct asker *a, evc_coord *c, const char *op, const char *func)
{
	a->c = c;
	a->op = op;
	a->func = func;
	atomic_store(&a->hold, -1);
	OK(pthread_create(&a->thread, NULL, ask, a));
	UNTIL(atomic_load(&a->hold) >= 0);
	HELD(atomic_load(&a->hold));
	return atomic_load(&a->hold);
}

static void *
end_telling(void *arg)
{
	evc_systemd_stop(((struct asker *)arg)->c);
	return NULL;
}

static void
over(struct manager *m, evc_coord *c, evc_id id)
{
	UNTIL(manager_heard(m, "STATUS=stopping: 1 member left: hold; "));
	ck_assert_int_eq(manager_count(m, "STOPPING=1"), 1);
	ck_assert_str_eq(m->said[0], "STOPPING=1\nSTATUS=stopping\n");
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(m);
}

/* The bare "stopping" must not come after the first status, which is not said
   twice.  Fails when the job does not wait for who tells. */
START_TEST(said_comes_before_the_first_status)
{
	struct manager m;
	struct asker a;
	evc_coord *c;
	evc_id id = 0;
	int h;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	OK(evc_hold_begin(c, "hold", NULL, &id));
	until_helper_rests();
	h = ask_held(&a, c, "dgram_send", "evc__manager_send");
	/* The helper looks, too. */
	OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, NULL));
	let_come();
	ck_assert_int_eq(manager_hear(&m), 0);
	seam_release(h);
	OK(pthread_join(a.thread, NULL));
	over(&m, c, id);
}
END_TEST

/* Whoever asks stands still before it tells the manager, and something else has
   woken the helper: that does.  Fails when only listeners tell. */
START_TEST(stopping_is_told_for_one_who_stands_still)
{
	struct manager m;
	struct asker a;
	evc_coord *c;
	evc_id id = 0;
	int h;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	OK(evc_hold_begin(c, "hold", NULL, &id));
	until_helper_rests();
	h = ask_held(&a, c, "load", "evc__systemd_tell");
	OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, NULL));
	UNTIL(manager_heard(&m, "STOPPING=1"));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	seam_release(h);
	OK(pthread_join(a.thread, NULL));
	over(&m, c, id);
}
END_TEST

/* A stop that is told while the end of the one before is: the last word is that
   it stops.  Fails when the job does not look again. */
START_TEST(ready_is_not_the_last_word_of_a_new_stop)
{
	struct manager m;
	evc_coord *c;
	evc_id id = 0;
	const char *last;
	int h, i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	UNTIL(manager_heard(&m, "STATUS=stopped\n"));
	h = seam_hold_others("dgram_send", "evc__manager_send", 1);
	OK(evc_clear_stop(c));
	HELD(h); /* with READY=1 in its hand */
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 2);
	seam_release(h);
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	for (i = 0, last = ""; i < m.n; i++)
		if (strstr(m.said[i], "READY=1") != NULL ||
		    strstr(m.said[i], "STOPPING=1") != NULL)
			last = m.said[i];
	HAS(last, "STOPPING=1");
	ck_assert_int_eq(manager_count(&m, "READY=1"), 1);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

/* evc_systemd_stop while the job is at work, and while somebody tells: it
   waits for both.  Fails (under the address sanitizer) when it does not. */
START_TEST(stop_waits_for_who_is_telling)
{
	static const struct place places[] = {
		{ "dgram_send", "evc__manager_send", 1 }, /* who asks */
		{ "dgram_send", "evc__manager_send", 2 }, /* the job */
		{ "load", "evc__systemd_run", 1 },
	};
	struct manager m;
	struct asker a;
	evc_coord *c;
	evc_id id;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		pthread_t ender;
		struct asker e;

		id = 0;
		manager_begin(&m, true);
		c = manager_told(&m, NULL, NULL, NULL);
		OK(evc_hold_begin(c, "hold", NULL, &id));
		h = hold_at(&places[i]);
		ask_begin(&a, c);
		HELD(h);
		e.c = c;
		OK(pthread_create(&ender, NULL, end_telling, &e));
		t_sleep(0.05);
		seam_release(h);
		OK(pthread_join(ender, NULL));
		OK(pthread_join(a.thread, NULL));
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(c));
		manager_end(&m);
	}
}
END_TEST

SCHEDULES_MAIN("schedules: systemd", said_comes_before_the_first_status,
	       stopping_is_told_for_one_who_stands_still,
	       ready_is_not_the_last_word_of_a_new_stop,
	       stop_waits_for_who_is_telling)
