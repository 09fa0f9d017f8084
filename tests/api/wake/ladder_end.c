/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last rungs: the program hears who is about to be abandoned, then joins
 * answer with the names.  Each rung stands in the report, the last chance in the
 * log as well.
 */
#include "../../support/ladder_util.h"

enum { N_HEARD = 16 };

/* What the last chance said. */
struct heard {
	pthread_mutex_t lock;
	unsigned n;
	evc_member_info info[N_HEARD];
	evc_coord *c[N_HEARD];
	int tid;
	atomic_int calls;
	atomic_int *lets_go; /* whose gate the callback opens */
};

static void
hear(evc_coord *c, const evc_member_info *m, void *arg)
{
	struct heard *h = arg;

	pthread_mutex_lock(&h->lock);
	if (h->n < N_HEARD) {
		h->info[h->n] = *m;
		h->c[h->n] = c;
	}
	h->n++;
	h->tid = own_tid();
	pthread_mutex_unlock(&h->lock);
	atomic_fetch_add(&h->calls, 1);
	if (h->lets_go != NULL)
		atomic_store(h->lets_go, 1);
}

static const evc_member_info *
heard_of(struct heard *h, const char *name)
{
	const evc_member_info *found = NULL;
	unsigned i;

	for (i = 0; i < h->n; i++)
		if (strcmp(h->info[i].name, name) == 0) {
			ck_assert_msg(found == NULL, "%s: twice", name);
			found = &h->info[i];
		}
	ck_assert_msg(found != NULL, "%s: not at all", name);
	return found;
}

START_TEST(each_member_alive_is_heard_of_once)
{
	struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
	evc_ladder_opts o = { .budget = 2,
			      .on_last_chance = hear,
			      .arg = &h };
	evc_coord *c = laddered(&o, 100);
	evc_id thread = 0, reg = 0, held = 0;
	struct guest g = { 0 };
	struct joiner j;
	pthread_t t;

	OK(evc_thread_start(c, "started", stay, &g, NULL, &thread));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "registered", t, NULL, &reg));
	OK(evc_hold_begin(c, "held", NULL, &held));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1.79);
	NOT_YET(atomic_load(&h.calls) > 0);
	at(1.81);
	UNTIL(atomic_load(&h.calls) == 3);
	at(1.99);
	NOT_YET(atomic_load(&h.calls) > 3);
	STILL_WAITS(&j);
	ck_assert_uint_eq(heard_of(&h, "started")->id, thread);
	ck_assert_uint_eq(heard_of(&h, "started")->kind, EVC_THREAD);
	ck_assert_uint_eq(heard_of(&h, "registered")->id, reg);
	ck_assert_uint_eq(heard_of(&h, "registered")->kind, EVC_REGISTERED);
	ck_assert_uint_eq(heard_of(&h, "held")->id, held);
	ck_assert_uint_eq(heard_of(&h, "held")->kind, EVC_HOLD);
	ck_assert_uint_eq(heard_of(&h, "held")->state, EVC_LIVE);
	ck_assert_ptr_eq(h.c[0], c);
	ck_assert_int_ne(h.tid, own_tid());
	ck_assert_int_ne(h.tid, atomic_load(&j.tid));
	at(2.01);
	gave_up(&j, "started");
	HAS(j.v.error.text, "registered");
	HAS(j.v.error.text, "held");
	/* What makes the join look may be alive itself. */
	ck_assert_uint_ge(j.v.n_stragglers, 3);
	atomic_store(&g.open, 1);
	OK(evc_hold_end(c, held));
	ends_at_last(c);
	ck_assert_int_eq(atomic_load(&h.calls), 3);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_last_chance_is_one)
{
	struct guest g = { 0 };
	struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER,
			   .lets_go = &g.open };
	evc_ladder_opts o = { .budget = 2,
			      .last_chance = 0.5,
			      .on_last_chance = hear,
			      .arg = &h };
	evc_coord *c = laddered(&o, 100);
	struct joiner j;
	int i;

	for (i = 1; i <= 3; i++) { /* in each stop */
		atomic_store(&g.open, 0);
		OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
		join_begin(&j, c, 50, 0);
		stop_now(c);
		at(0.99);
		NOT_YET(atomic_load(&h.calls) >= i);
		at(1.01);
		UNTIL(atomic_load(&h.calls) == i);
		OK(join_end(&j));
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(who_ends_in_time_hears_of_no_last_chance)
{
	struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
	evc_ladder_opts o = { .budget = 2,
			      .on_last_chance = hear,
			      .arg = &h };
	evc_coord *c = laddered(&o, 100);

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	stop_now(c);
	ends_at_last(c);
	at(3);
	NOT_YET(atomic_load(&h.calls) > 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(members_of_scopes_are_heard_of_too)
{
	struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER };
	evc_ladder_opts o = { .budget = 2,
			      .on_last_chance = hear,
			      .arg = &h };
	evc_coord *c = laddered(&o, 100), *low = NULL;
	struct joiner j;
	evc_id id = 0;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_hold_begin(low, "below", NULL, &id));
	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1.81);
	UNTIL(atomic_load(&h.calls) >= 1);
	let_come();
	ck_assert_uint_eq(heard_of(&h, "below")->id, id);
	at(2.01);
	gave_up(&j, "below");
	OK(evc_hold_end(low, id));
	ends_at_last(c);
	OK(evc_free(low));
	OK(evc_free(c));
}
END_TEST

/* ---- what is written ---- */

START_TEST(each_rung_is_in_the_report_and_the_last_one_in_the_log)
{
	evc_ladder_opts o = { .budget = 2, .hooks = 0.25, .kicks = 0.5 };
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper s = { .call = call_without_end, .stubborn = true };
	evc_coord *c = laddered(&o, 100);
	atomic_int calls = 0;
	struct joiner j;
	evc_id id = 0;

	OK(evc_thread_start(c, "stubborn", sleeper_live, &s, &kick, NULL));
	OK(evc_cancel_push(c, count_call, &calls, 0, &id));
	LACKS(report_of(c), "last chance");
	LACKS(report_of(c), "abandoned");
	join_begin(&j, c, 50, 0);
	stop_now(c);
	HAS(report_of(c), "told");
	at(0.51);
	UNTIL_REPORT_HAS(c, "hooks");
	at(1.01);
	UNTIL_BEFORE(1.4, strstr(report_of(c), "kicks") != NULL);
	LACKS(report_of(c), "last chance");
	at(1.81);
	UNTIL_REPORT_HAS(c, "last chance");
	LACKS(report_of(c), "abandoned");
	at(2.01);
	gave_up(&j, "stubborn");
	UNTIL_REPORT_HAS(c, "abandoned");
	HAS(report_of(c), "told");
	HAS(report_of(c), "hooks");
	HAS(report_of(c), "kicks");
	HAS(report_of(c), "last chance");
	UNTIL(book_has(EVC_LOG_WARNING, "last chance"));
	ck_assert(book_has(EVC_LOG_ERROR, "stubborn"));
	atomic_store(&s.open, 1);
	OK(evc_cancel_pop(c, id));
	ends_at_last(c);
	OK(evc_clear_stop(c));
	/* What the stop has left is forgotten with it. */
	LACKS(report_of(c), "abandoned");
	OK(evc_free(c));
}
END_TEST

API_MAIN("ladder_end", each_member_alive_is_heard_of_once,
	 the_last_chance_is_one, who_ends_in_time_hears_of_no_last_chance,
	 members_of_scopes_are_heard_of_too,
	 each_rung_is_in_the_report_and_the_last_one_in_the_log)
