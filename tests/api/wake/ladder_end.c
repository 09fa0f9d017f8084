/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last steps: at 0.9 of the budget the log names the members alive, then
 * joins answer with the names.  Each step stands in the report.
 */
#include "../../support/ladder_util.h"

#define ENDING " is about to end; still running: "

/* The number of such lines in the log; names: the names in the latest one. */
static unsigned
endings(char names[256])
{
	const char *at, *line = book.text[EVC_LOG_WARNING];
	unsigned n = 0;

	names[0] = '\0';
	pthread_mutex_lock(&book.lock);
	while ((at = strstr(line, ENDING)) != NULL) {
		line = at + strlen(ENDING);
		snprintf(names, 256, "%.*s", (int)strcspn(line, "\n"), line);
		n++;
	}
	pthread_mutex_unlock(&book.lock);
	return n;
}

START_TEST(each_member_alive_is_heard_of_once)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	char names[256];
	unsigned before = endings(names);
	struct guest g = { 0 };
	struct joiner j;
	evc_id held = 0;
	pthread_t t;

	OK(evc_thread_start(c, "started", stay, &g, NULL, NULL));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "registered", t, NULL, NULL));
	OK(evc_hold_begin(c, "held", NULL, &held));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1.79);
	NOT_YET(endings(names) > before);
	at(1.81);
	UNTIL(endings(names) == before + 1);
	HAS(names, "started");
	HAS(names, "registered");
	HAS(names, "held");
	ck_assert_uint_eq(strlen(names), strlen("started, registered, held"));
	at(1.99);
	NOT_YET(endings(names) > before + 1);
	STILL_WAITS(&j);
	at(2.01);
	gave_up(&j, "started");
	HAS(j.v.error.text, "registered");
	HAS(j.v.error.text, "held");
	/* What makes the join look may be alive itself. */
	ck_assert_uint_ge(j.v.n_stragglers, 3);
	atomic_store(&g.open, 1);
	OK(evc_hold_end(c, held));
	ends_at_last(c);
	ck_assert_uint_eq(endings(names), before + 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_last_chance_is_one)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	char names[256];
	unsigned before = endings(names), i;
	struct joiner j;
	evc_id id = 0;

	for (i = 1; i <= 3; i++) { /* in each stop */
		OK(evc_hold_begin(c, "stays", NULL, &id));
		join_begin(&j, c, 50, 0);
		stop_now(c);
		at(1.79);
		NOT_YET(endings(names) >= before + i);
		at(1.81);
		UNTIL(endings(names) == before + i);
		ck_assert_str_eq(names, "stays");
		OK(evc_hold_end(c, id));
		OK(join_end(&j));
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(who_ends_in_time_hears_of_no_last_chance)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	char names[256];
	unsigned before = endings(names);

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	stop_now(c);
	ends_at_last(c);
	at(3);
	NOT_YET(endings(names) > before);
	OK(evc_free(c));
}
END_TEST

START_TEST(members_of_scopes_are_heard_of_too)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100), *low = NULL;
	char names[256];
	unsigned before = endings(names);
	struct joiner j;
	evc_id id = 0;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_hold_begin(low, "below", NULL, &id));
	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1.81);
	UNTIL(endings(names) >= before + 1);
	let_come();
	ck_assert_uint_eq(endings(names), before + 1);
	ck_assert_str_eq(names, "below");
	ck_assert(book_has(EVC_LOG_WARNING, "stop of scope" ENDING "below\n"));
	at(2.01);
	gave_up(&j, "below");
	OK(evc_hold_end(low, id));
	ends_at_last(c);
	FREE_ALL(low, c);
}
END_TEST

/* ---- what is written ---- */

START_TEST(each_rung_is_in_the_report_and_the_last_one_in_the_log)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.25, .kicks = 0.5 };
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sleeper s = { .call = call_without_end, .stubborn = true };
	evc_coord *c = laddered(&o, 100);
	atomic_int calls = 0;
	struct joiner j;
	evc_id id = 0;

	OK(evc_thread_start(c, "stubborn", sleeper_live, &s, &kick, NULL));
	OK(evc_cancel_push(c, count_call, &calls, 0, &id));
	LACKS(report_of(c), "ending");
	LACKS(report_of(c), "abandoned");
	join_begin(&j, c, 50, 0);
	stop_now(c);
	HAS(report_of(c), "told");
	at(0.51);
	UNTIL_REPORT_HAS(c, "hooks");
	at(1.01);
	UNTIL_BEFORE(1.4, strstr(report_of(c), "kicks") != NULL);
	LACKS(report_of(c), "ending");
	at(1.81);
	UNTIL_REPORT_HAS(c, "ending");
	LACKS(report_of(c), "abandoned");
	at(2.01);
	gave_up(&j, "stubborn");
	UNTIL_REPORT_HAS(c, "abandoned");
	HAS(report_of(c), "told");
	HAS(report_of(c), "hooks");
	HAS(report_of(c), "kicks");
	HAS(report_of(c), "ending");
	UNTIL(book_has(EVC_LOG_WARNING, ENDING "stubborn\n"));
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
