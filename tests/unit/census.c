/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who keeps a join waiting: the numbers that it decides by, and the names that
 * it gives when somebody is late.
 */

#include "../support/api_util.h"

#include "core/core.h"

/* Names of all but self, with hooks or not; returns how many. */
static unsigned
names(evc_coord *c, const struct evc__member *self, bool hooks, char *buf,
      size_t room)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = evc__names(c, self, hooks, 0, buf, room);
	pthread_mutex_unlock(&c->lock);
	return n;
}

static struct evc__alive_count
count(evc_coord *c, const struct evc__member *self, bool hooks)
{
	struct evc__alive_count k;

	pthread_mutex_lock(&c->lock);
	k = evc__count_alive(c, self, hooks, 0);
	pthread_mutex_unlock(&c->lock);
	return k;
}

static struct evc__member *
member(evc_coord *c, evc_id id)
{
	struct evc__member *m;

	pthread_mutex_lock(&c->lock);
	m = evc__member_find(c, id);
	pthread_mutex_unlock(&c->lock);
	ck_assert_ptr_nonnull(m);
	return m;
}

static evc_id
hold(evc_coord *c, const char *name, double grace, unsigned flags)
{
	evc_member_opts o = { .grace = grace, .flags = flags };
	evc_id id = 0;

	OK(evc_hold_begin(c, name, &o, &id));
	return id;
}

/* The text is whole: no name is cut in the middle, n of all are named. */
static void
check_cut(const char *text, size_t room, const char *const *name, unsigned all)
{
	char should[4096], more[32];
	unsigned shown, i;

	ck_assert_uint_lt(strlen(text), room);
	for (shown = all + 1; shown-- > 0;) {
		should[0] = '\0';
		for (i = 0; i < shown; i++) {
			strcat(should, i > 0 ? ", " : "");
			strcat(should, name[i]);
		}
		snprintf(more, sizeof more, " and %u more", all - shown);
		strcat(should, shown < all ? more : "");
		if (strcmp(text, should) == 0)
			return;
	}
	ck_abort_msg("neither all names nor some and how many more: \"%s\"",
		     text);
}

START_TEST(J7_names_that_do_not_fit_are_counted)
{
	static const char *const name[] = {
		"a", "second", "the third of them", "4", "five",
		"a name that is as long as a name may ever be...", "7", "eight",
		"9", "ten" };
	const unsigned all = sizeof name / sizeof name[0];
	evc_id id[sizeof name / sizeof name[0]];
	evc_coord *c = new_coord(NULL);
	char buf[256], text[256];
	unsigned i;
	size_t room;

	for (i = 0; i < all; i++)
		id[i] = hold(c, name[i], 0, 0);
	for (room = sizeof buf; room >= 24; room--) {
		memset(buf, '#', sizeof buf);
		ck_assert_uint_eq(names(c, NULL, false, buf, room), all);
		memcpy(text, buf, room);
		ck_assert_ptr_nonnull(memchr(buf, 0, room));
		check_cut(text, room, name, all);
		if (room < sizeof buf)
			ck_assert_int_eq(buf[room], '#');
	}
	/* In a small room the number is still right and the text is whole. */
	for (room = 24; room > 0; room--) {
		memset(buf, '#', sizeof buf);
		ck_assert_uint_eq(names(c, NULL, false, buf, room), all);
		ck_assert_ptr_nonnull(memchr(buf, 0, room));
		ck_assert_int_eq(buf[room], '#');
	}
	for (i = 0; i < all; i++)
		OK(evc_hold_end(c, id[i]));
	ck_assert_uint_eq(names(c, NULL, false, buf, sizeof buf), 0);
	ck_assert_str_eq(buf, "");
	OK(evc_free(c));
}
END_TEST

START_TEST(J7_a_verdict_names_who_is_late_and_how_many_more)
{
	evc_join_opts now = { .grace = EVC_NO_GRACE };
	evc_coord *c = new_coord(NULL);
	char name[48];
	evc_id id[40];
	evc_verdict v;
	unsigned i, more, named;

	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "member number %u", i);
		id[i] = hold(c, name, 0, 0);
	}
	(void)evc_fail(c, EVC_INTERNAL, 0, "%0180d", 7); /* as long as it gets */
	ck_assert_int_eq(evc_join(c, &now, &v), EVC_INTERNAL);
	ck_assert_uint_eq(v.n_stragglers, 40);
	HAS(v.error.text, "; still running: member number 0, member number 1");
	ck_assert_ptr_nonnull(strstr(v.error.text, " and "));
	ck_assert_int_eq(sscanf(strstr(v.error.text, " and "), " and %u more",
				&more), 1);
	for (named = 0; named < 40; named++) {
		snprintf(name, sizeof name, "member number %u%s", named,
			 named + more + 1 < 40 ? "," : " ");
		if (strstr(v.error.text, name) == NULL)
			break;
	}
	ck_assert_uint_eq(named + more, 40);
	for (i = 0; i < 40; i++)
		OK(evc_hold_end(c, id[i]));
	OK(evc_free(c));
}
END_TEST

/* ---- tasks ---- */

static const evc_task_class request = { .name = "request" };
static const evc_task_class upload = { .name = "upload",
				       .flags = EVC_AFTER_STOP };

START_TEST(tasks_are_named_by_class_and_loop)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct ev_loop *second = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_task t[6] = { 0 };
	evc_reactor *r;
	char buf[256];
	int i;

	OK(evc_reactor_attach(c, "second", second, &r));
	for (i = 0; i < 3; i++)
		OK(evc_task_begin(evc_home(c), &t[i], &request));
	OK(evc_task_begin(evc_home(c), &t[3], &upload));
	OK(evc_task_begin(r, &t[4], &request));
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 5);
	ck_assert_str_eq(buf, "3 tasks request on home, 1 task upload on home,"
			      " 1 task request on second");
	ck_assert_uint_eq(count(c, NULL, true).alive, 5);
	ck_assert_uint_eq(count(c, NULL, true).foreground, 5);
	ck_assert_double_eq(count(c, NULL, true).longest, INFINITY);
	/* Those begun after the stop are named alike. */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_task_begin(r, &t[5], &upload));
	evc_task_end(&t[4]);
	for (i = 0; i < 4; i++)
		evc_task_end(&t[i]);
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 1);
	ck_assert_str_eq(buf, "1 task upload on second (loop silent)");
	evc_task_end(&t[5]);
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 0);
	OK(evc_free(c));
	ev_loop_destroy(second);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(tasks_of_more_classes_than_counters_are_counted_together)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	static evc_task_class k[TASK_CLASSES + 5];
	static char name[TASK_CLASSES + 5][8];
	evc_task t[TASK_CLASSES + 5];
	char buf[1024];
	unsigned i, n = TASK_CLASSES + 5;

	memset(t, 0, sizeof t);
	for (i = 0; i < n; i++) {
		snprintf(name[i], sizeof name[i], "k%u", i);
		k[i].name = name[i];
		OK(evc_task_begin(evc_home(c), &t[i], &k[i]));
	}
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), n);
	HAS(buf, "1 task k14 on home");
	HAS(buf, "5 tasks of others on home");
	for (i = 0; i < n; i++)
		evc_task_end(&t[(i * 7) % n]);
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- the numbers ---- */

START_TEST(the_longest_own_grace_counts_of_who_is_alive)
{
	evc_coord *c = new_coord(NULL);
	evc_id a, b, d, e;

	ck_assert_double_eq(count(c, NULL, false).longest, 0);
	a = hold(c, "a", 0.25, 0);
	ck_assert_double_eq(count(c, NULL, false).longest, 0.25);
	b = hold(c, "b", 3, 0);
	ck_assert_double_eq(count(c, NULL, false).longest, 3);
	d = hold(c, "d", EVC_NO_GRACE, 0);
	e = hold(c, "e", 0, 0); /* none of its own: the join's */
	ck_assert_double_eq(count(c, NULL, false).longest, INFINITY);
	OK(evc_hold_end(c, e));
	ck_assert_double_eq(count(c, NULL, false).longest, 3);
	OK(evc_hold_end(c, b));
	ck_assert_double_eq(count(c, NULL, false).longest, 0.25);
	OK(evc_hold_end(c, a));
	ck_assert_uint_eq(count(c, NULL, false).alive, 1);
	ck_assert_double_le(count(c, NULL, false).longest, 0);
	OK(evc_hold_end(c, d));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_background_is_alive_but_not_foreground)
{
	evc_coord *c = new_coord(NULL);
	evc_id front = hold(c, "front", 0, 0);
	evc_id back = hold(c, "back", 0, EVC_BACKGROUND);
	evc_id own = hold(c, "own", 1, EVC_BACKGROUND);

	ck_assert_uint_eq(count(c, NULL, false).alive, 3);
	ck_assert_uint_eq(count(c, NULL, false).foreground, 1);
	OK(evc_hold_end(c, own)); /* now nobody has a grace of its own */
	ck_assert_uint_eq(count(c, NULL, false).alive, 2);
	ck_assert_uint_eq(count(c, NULL, false).foreground, 1);
	OK(evc_hold_end(c, front));
	ck_assert_uint_eq(count(c, NULL, false).foreground, 0);
	ck_assert_uint_eq(count(c, NULL, false).alive, 1);
	OK(evc_hold_end(c, back));
	OK(evc_free(c));
}
END_TEST

START_TEST(J5_a_member_leaves_out_itself_and_members_that_join)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct evc__member *me, *other;
	evc_id id[3];
	char buf[64];
	int i;

	for (i = 0; i < 3; i++) {
		static const char *const name[] = { "me", "other", "third" };

		OK(evc_thread_start(c, name[i], stay, &g, NULL, &id[i]));
	}
	UNTIL(atomic_load(&g.in) == 3);
	me = member(c, id[0]);
	other = member(c, id[1]);
	ck_assert_uint_eq(names(c, me, false, buf, sizeof buf), 2);
	ck_assert_str_eq(buf, "other, third");
	ck_assert_uint_eq(count(c, me, false).alive, 2);
	pthread_mutex_lock(&c->lock);
	other->n_joining++;
	pthread_mutex_unlock(&c->lock);
	ck_assert_uint_eq(names(c, me, false, buf, sizeof buf), 1);
	ck_assert_str_eq(buf, "third");
	ck_assert_uint_eq(count(c, me, false).alive, 1);
	/* Who is no member leaves out nobody. */
	ck_assert_uint_eq(names(c, NULL, false, buf, sizeof buf), 3);
	ck_assert_uint_eq(count(c, NULL, false).alive, 3);
	pthread_mutex_lock(&c->lock);
	other->n_joining--;
	pthread_mutex_unlock(&c->lock);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(hooks_count_from_the_stop_until_they_were_called)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_id id = hold(c, "hold", 1, 0);
	atomic_int calls = 0;
	char buf[64];

	OK(evc_on_stop(c, "close all", count_hook, &calls, NULL, NULL));
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 1);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 2);
	ck_assert_str_eq(buf, "hold, hook close all (loop silent)");
	ck_assert_uint_eq(count(c, NULL, true).alive, 2);
	ck_assert_double_eq(count(c, NULL, true).longest, INFINITY);
	/* For clear and free it counts nothing. */
	ck_assert_uint_eq(names(c, NULL, false, buf, sizeof buf), 1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(names(c, NULL, true, buf, sizeof buf), 1);
	ck_assert_double_eq(count(c, NULL, true).longest, 1);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("count", J7_names_that_do_not_fit_are_counted,
	 J7_a_verdict_names_who_is_late_and_how_many_more,
	 tasks_are_named_by_class_and_loop,
	 tasks_of_more_classes_than_counters_are_counted_together,
	 the_longest_own_grace_counts_of_who_is_alive,
	 the_background_is_alive_but_not_foreground,
	 J5_a_member_leaves_out_itself_and_members_that_join,
	 hooks_count_from_the_stop_until_they_were_called)
