/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_progress: what a member says of itself stands in the report, whoever it
 * is and wherever it runs, until it says something else or nothing.
 */
#include "../../support/rouse_util.h"

#include <ev.h>

/* Says each word that it is handed, and tells when it has. */
struct speaker {
	evc_coord *c;
	_Atomic(const char *) word;
	int what;
	atomic_int turn, said, open;
	evc_status status;
	evc_task task;
};

static evc_status
speak(evc_coord *c, void *arg)
{
	struct speaker *s = arg;
	int turn = 0;

	(void)c;
	evc_progress("here I am");
	atomic_store(&s->said, 1);
	while (!atomic_load(&s->open)) {
		if (atomic_load(&s->turn) > turn) {
			turn = atomic_load(&s->turn);
			evc_progress(atomic_load(&s->word));
			atomic_store(&s->said, turn + 1);
		}
		t_sleep(0.001);
	}
	return 0;
}

static void
let_say(struct speaker *s, const char *word)
{
	int turn = atomic_load(&s->turn) + 1;

	atomic_store(&s->word, word);
	atomic_store(&s->turn, turn);
	UNTIL(atomic_load(&s->said) == turn + 1);
}

static void *
speak_thread(void *arg)
{
	struct speaker *s = arg;

	s->status = evc_register_thread(s->c, "speaker", pthread_self(), NULL,
					NULL);
	speak(s->c, s);
	return NULL;
}

static void
speak_on_stop(evc_task *t, void *arg)
{
	speak(NULL, arg);
	evc_task_end(t);
}

enum { THREAD, ITSELF, OWN_LOOPER, LOOPER, HOOK, TASK, N_SPEAKERS };

static struct speaker speaker;
static const evc_task_class speaks = {
	.name = "speaker",
	.on_stop = speak_on_stop,
	.arg = &speaker,
};

static evc_status
set_up(evc_reactor *r, void *arg)
{
	struct speaker *s = arg;
	evc_member_opts here = { .reactor = r };
	evc_coord *c = evc_reactor_coord(r);

	switch (s->what) {
	case LOOPER:
		return evc_looper_start(c, "speaker", INFINITY, speak, s, &here,
					NULL);
	case HOOK:
		return evc_on_stop(c, "speaker", speak, s, &here, NULL);
	default:
		return evc_task_begin(r, &s->task, &speaks);
	}
}

static void
speaker_begin(struct speaker *s, evc_coord *c, int what)
{
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	pthread_t t;

	memset(s, 0, sizeof(*s));
	s->c = c;
	s->what = what;
	switch (what) {
	case THREAD:
		OK(evc_thread_start(c, "speaker", speak, s, NULL, NULL));
		break;
	case ITSELF:
		OK(pthread_create(&t, NULL, speak_thread, s));
		break;
	case OWN_LOOPER:
		OK(evc_looper_start(c, "speaker", INFINITY, speak, s, &own,
				    NULL));
		break;
	default:
		OK(evc_reactor_start(c, "loop", set_up, s, NULL, NULL));
		break;
	}
}

START_TEST(it_stands_in_the_report)
{
	evc_coord *c = new_coord(NULL);

	speaker_begin(&speaker, c, _i);
	if (_i <= LOOPER) /* no run begins after the stop */
		UNTIL(atomic_load(&speaker.said));
	if (_i < LOOPER) /* of a loop reports tell from the stop on */
		UNTIL_REPORT_HAS(c, "here I am");
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&speaker.said));
	UNTIL_REPORT_HAS(c, "here I am");
	let_say(&speaker, "flushing index");
	UNTIL_REPORT_HAS(c, "flushing index");
	LACKS(report_of(c), "here I am");
	let_say(&speaker, NULL);
	LACKS(report_of(c), "flushing index");
	LACKS(report_of(c), "here I am");
	let_say(&speaker, "closing index");
	UNTIL_REPORT_HAS(c, "closing index");
	atomic_store(&speaker.open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(speaker.status);
	LACKS(report_of(c), "closing index"); /* it has ended */
	OK(evc_free(c));
}
END_TEST

/* Two at once: each its own. */
START_TEST(each_member_has_its_own)
{
	static struct speaker s[3];
	static const char *const word[3] = { "first word", "second word",
					     "third word" };
	evc_coord *c = new_coord(NULL);
	int i;

	for (i = 0; i < 3; i++) {
		speaker_begin(&s[i], c, i);
		UNTIL(atomic_load(&s[i].said));
		let_say(&s[i], word[i]);
	}
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 3; i++)
		HAS(report_of(c), word[i]);
	let_say(&s[1], NULL);
	HAS(report_of(c), word[0]);
	LACKS(report_of(c), word[1]);
	HAS(report_of(c), word[2]);
	for (i = 0; i < 3; i++)
		atomic_store(&s[i].open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(it_can_be_asked_for)
{
	static struct speaker s;
	evc_coord *c = new_coord(NULL);
	const char *text = "untouched";
	struct guest g = { 0 };
	double age = -1;
	evc_id id, silent;

	memset(&s, 0, sizeof(s));
	OK(evc_thread_start(c, "speaker", speak, &s, NULL, &id));
	OK(evc_thread_start(c, "silent", stay, &g, NULL, &silent));
	UNTIL(atomic_load(&s.said));
	OK(evc_progress_get(c, id, &text, &age));
	ck_assert_str_eq(text, "here I am");
	ck_assert(age >= 0 && age < T_LIMIT);
	OK(evc_progress_get(c, id, NULL, NULL));
	let_say(&s, "there I go");
	OK(evc_progress_get(c, id, &text, NULL));
	ck_assert_str_eq(text, "there I go");
	let_say(&s, NULL);
	REFUSED(EVC_NOT_FOUND, evc_progress_get(c, id, &text, NULL));
	REFUSED(EVC_NOT_FOUND, evc_progress_get(c, silent, &text, NULL));
	REFUSED(EVC_NOT_FOUND, evc_progress_get(c, 77, &text, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_progress_get(NULL, id, &text, NULL));
	ck_assert_str_eq(text, "there I go");
	atomic_store(&s.open, 1);
	atomic_store(&g.open, 1);
	OK(evc_join(c, &generous, NULL));
	REFUSED(EVC_NOT_FOUND, evc_progress_get(c, id, &text, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(it_grows_old)
{
	static struct speaker s;
	evc_coord *c = new_coord(NULL);
	char early[32768];

	speaker_begin(&s, c, THREAD);
	UNTIL(atomic_load(&s.said));
	let_say(&s, "old news");
	snprintf(early, sizeof(early), "%s", report_of(c));
	HAS(early, "old news");
	t_sleep(1.1);
	/* The same words, but another age. */
	ck_assert_str_ne(strstr(early, "old news"),
			 strstr(report_of(c), "old news"));
	atomic_store(&s.open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

static void *
speak_unasked(void *arg)
{
	(void)arg;
	evc_progress("nobody's word");
	evc_progress(NULL);
	evc_progress("nobody's word");
	return NULL;
}

START_TEST(a_thread_that_is_no_member_says_nothing)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	pthread_t t;

	speak_unasked(NULL); /* before any member, and beside one */
	OK(evc_thread_start(c, "stays", stay, &g, NULL, NULL));
	OK(pthread_create(&t, NULL, speak_unasked, NULL));
	OK(pthread_join(t, NULL));
	speak_unasked(NULL);
	LACKS(report_of(c), "nobody's word");
	OK(evc_request_stop(c, 0, NULL));
	LACKS(report_of(c), "nobody's word");
	atomic_store(&g.open, 1);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

/* After its end the thread that lives on is nobody's. */
static evc_status
speak_once(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	evc_progress("in the guard");
	return 0;
}

START_TEST(in_a_guard_and_in_a_run_that_has_returned_it_does_no_harm)
{
	evc_member_opts far = { 0 };
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;
	int i;

	OK(evc_guard(c, "guard", speak_once, NULL, NULL));
	evc_progress("after the guard");
	OK(evc_reactor_start(c, "loop", NULL, NULL, NULL, &far.reactor));
	for (i = 0; i < 20; i++) {
		OK(evc_looper_start(c, "looper", 0, speak_once, NULL, &far,
				    &id));
		t_sleep(0.002);
		HAS(report_of(c), "looper");
		OK(evc_member_remove(c, id));
	}
	/* Nobody is in that callback any more. */
	UNTIL(strstr(report_of(c), "in the guard") == NULL);
	LACKS(report_of(c), "after the guard");
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

T_MAIN("progress", NULL, NULL,
       T_TIMES(it_stands_in_the_report, N_SPEAKERS),
       T_ONCE(each_member_has_its_own),
       T_ONCE(it_can_be_asked_for),
       T_ONCE(it_grows_old),
       T_ONCE(a_thread_that_is_no_member_says_nothing),
       T_ONCE(in_a_guard_and_in_a_run_that_has_returned_it_does_no_harm))
