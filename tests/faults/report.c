/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports when something fails: no memory, a descriptor that takes nothing.
 * They say less, and that it is less; they never fail as a whole.
 */
#include "faults.h"

#include <signal.h>

/* Reasons, extensions, members, loops, scopes and what they say, threads: all
   that a report asks memory for. */
struct scene {
	struct ev_loop *loop;
	evc_coord *c, *s[2];
	struct guest g;
	evc_part part[2];
	evc_id hold, below;
};

static size_t
say_own(unsigned format, char *buf, size_t n, void *arg)
{
	static const char *const own[] = {
		[EVC_REPORT_TEXT] = "its own words\n",
		[EVC_REPORT_JSON] = "\"its own words\"",
		[EVC_REPORT_METRICS] = "# HELP evcoord_own Words.\n"
				       "evcoord_own 1\n",
	};

	(void)arg;
	return (size_t)snprintf(buf, n, "%s", own[format]);
}

static evc_status
stays(evc_part *p)
{
	(void)p;
	return -EVC_FAILED_PRECONDITION;
}

static void
scene_make(struct scene *k)
{
	evc_scope_opts says = { .describe = say_own };
	evc_escalation_opts escalation = { .budget = 100, .hard_end = 200 };
	evc_config cfg = { .name = "scene" };
	int i;

	memset(k, 0, sizeof *k);
	k->loop = ev_loop_new(EVFLAG_AUTO);
	k->c = new_coord_with(k->loop, &cfg);
	OK(evc_escalation_set(k->c, &escalation));
	OK(evc_thread_start(k->c, "its-thread", stay, &k->g, NULL, NULL));
	OK(evc_hold_begin(k->c, "its-hold", NULL, &k->hold));
	OK(evc_scope_new(k->c, "scope-0", NULL, &k->s[0]));
	OK(evc_scope_new(k->c, "scope-1", &says, &k->s[1]));
	for (i = 0; i < 2; i++) {
		k->part[i].may_free = k->part[i].free_object = stays;
		k->part[i].describe = say_own;
		k->part[i].kind = "store";
		k->part[i].name = "disk";
		OK(evc_part_add(k->c, &k->part[i]));
	}
	OK(evc_scope_ready(k->s[0]));
	OK(evc_scope_ready(k->s[1]));
	OK(evc_hold_begin(k->s[0], "below", NULL, &k->below));
	OK(evc_request_stop(k->c, 0, "first-reason"));
	OK(evc_request_stop(k->c, 0, "second-reason"));
	OK(evc_extend_stop(k->c, k->hold, 1, "some-extension", NULL));
	UNTIL(atomic_load(&k->g.in) == 1);
}

static void
scene_end(struct scene *k)
{
	atomic_store(&k->g.open, 1);
	OK(evc_part_remove(&k->part[0]));
	OK(evc_part_remove(&k->part[1]));
	OK(evc_hold_end(k->c, k->hold));
	OK(evc_hold_end(k->s[0], k->below));
	OK(evc_run(k->c, NULL, NULL));
	OK(evc_free(k->s[0]));
	OK(evc_free(k->s[1]));
	OK(evc_free(k->c));
	ev_loop_destroy(k->loop);
}

typedef size_t tell_fn(const evc_coord *c, char *buf, size_t n);

static char text[1 << 16];

/* What it says when the nth allocation fails; false: there is no nth. */
static bool
tell_without(tell_fn *tell, const evc_coord *c, int nth)
{
	int h = seam_fail("alloc", NULL, nth, ENOMEM);
	size_t n = tell(c, text, sizeof text);
	bool failed = seam_arrivals(h) >= nth;

	/* Not seam_reset: other threads may just be looking at this place. */
	seam_release(h);
	ck_assert_uint_lt(n, sizeof text);
	ck_assert_uint_eq(n, strlen(text));
	return failed;
}

/* Each allocation fails once: the head is there, and who is to be told of what
   is missing is. */
static int
says_less(tell_fn *tell, const evc_coord *c, const char *head,
	  const char *const *excuse)
{
	int nth, i;

	for (nth = 1; tell_without(tell, c, nth); nth++) {
		HAS(text, head);
		for (i = 0; excuse[i] != NULL && strstr(text, excuse[i]) == NULL;
		     i++)
			;
		ck_assert_msg(excuse[i] != NULL,
			      "allocation %d failed, and nothing of it in %s",
			      nth, text);
		ck_assert_int_lt(nth, 100);
	}
	/* the one that did not fail says all */
	for (i = 0; excuse[i] != NULL; i++)
		ck_assert_ptr_null(strstr(text, excuse[i]));
	return nth - 1;
}

START_TEST(evc_report_without_memory)
{
	static const char *const excuse[] = { "no memory to ",
					      "(no memory to look at", NULL };
	struct scene k;

	scene_make(&k);
	/* reasons, extensions, members, loops, a thread, the scopes, and what
	   one of them says */
	ck_assert_int_ge(says_less(report_text, k.c, "coordinator \"scene\"",
				   excuse),
			 9);
	HAS(text, "second-reason");
	HAS(text, "some-extension");
	HAS(text, "its-thread");
	HAS(text, "loop \"home\"");
	HAS(text, "scope-1");
	HAS(text, "    its own words\n");
	scene_end(&k);
}
END_TEST

START_TEST(evc_report_json_without_memory)
{
	static const char *const excuse[] = {
		"\"lost\":{\"reasons\":1", "\"extensions\":1,\"loops\"",
		"\"loops\":1,\"scopes\"",  "\"scopes\":1,\"members\"",
		"\"scopes\":2,\"members\"", "\"members\":true",
		"\"threads\":true",	   "\"described\":true",
		NULL
	};
	struct scene k;

	scene_make(&k);
	ck_assert_int_ge(says_less(report_json, k.c,
				   "\"coordinator\":{\"name\":\"scene\"",
				   excuse),
			 9);
	scene_end(&k);
}
END_TEST

/* Reasons and extensions are in no counter: what is lost of them is not missed
   here. */
START_TEST(evc_metrics_without_memory)
{
	struct scene k;
	int nth, excused = 0;

	scene_make(&k);
	for (nth = 1; tell_without(report_metrics, k.c, nth); nth++) {
		HAS(text, "evcoord_stopping{coordinator=\"scene\"} 1\n");
		excused += strstr(text, "\n# no memory for all of this: ") !=
			   NULL;
		ck_assert_int_lt(nth, 100);
	}
	ck_assert_ptr_null(strstr(text, "no memory"));
	HAS(text, "\nevcoord_own{coordinator=\"scene\",scope=\"scope-1\"} 1\n");
	HAS(text, "\nevcoord_own{coordinator=\"scene\",store=\"disk\"} 1\n");
	HAS(text, "\nevcoord_own{coordinator=\"scene\",store=\"disk#2\"} 1\n");
	/* members of three, the scopes as a whole and each of them, what one
	   says, the loops of three and their names, two describers, their names
	   and what they say */
	ck_assert_int_ge(excused, 18);
	scene_end(&k);
}
END_TEST

START_TEST(with_no_memory_at_all_there_is_a_report)
{
	struct scene k;

	scene_make(&k);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	evc_report(k.c, EVC_REPORT_TEXT, text, sizeof text);
	HAS(text, "coordinator \"scene\", round 1: stopping");
	HAS(text, "first-reason");
	HAS(text, "escalation: told");
	HAS(text, "no memory to list 1 more\n");
	HAS(text, "no memory to list 1 extensions\n");
	HAS(text, "no memory to list them\n");
	HAS(text, "no memory to list 1 loops\n");
	HAS(text, "no memory to list 2 scopes\n");
	evc_report(k.c, EVC_REPORT_JSON, text, sizeof text);
	HAS(text, "first-reason");
	HAS(text, "\"lost\":{\"reasons\":1,\"extensions\":1,\"loops\":1,"
		  "\"scopes\":2,\"members\":true,");
	evc_report(k.c, EVC_REPORT_METRICS, text, sizeof text);
	HAS(text, "evcoord_errors{coordinator=\"scene\"} 0\n");
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_dump(k.c, 2, EVC_REPORT_TEXT));
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_dump_signal(k.c, SIGUSR1, 2, EVC_REPORT_TEXT));
	seam_reset();
	scene_end(&k);
}
END_TEST

START_TEST(evc_dump_signal_without_memory)
{
	struct sigaction now;
	evc_coord *c;
	evc_status st;
	int nth, h, failed = 0;
	bool all = false;

	for (nth = 1; !all; nth++) {
		c = new_coord(NULL);
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_dump_signal(c, SIGUSR1, 2, EVC_REPORT_TEXT);
		all = seam_arrivals(h) < nth;
		seam_reset();
		OK(sigaction(SIGUSR1, NULL, &now));
		if (st < 0) {
			ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
			ck_assert_str_ne(evc_last_error(), "");
			ck_assert(now.sa_handler == SIG_DFL);
			REFUSED(EVC_NOT_FOUND, evc_dump_signal(c, 0, 0, 0));
			failed++;
		} else {
			ck_assert(now.sa_handler != SIG_DFL);
			OK(evc_dump_signal(c, 0, 0, 0));
		}
		OK(evc_free(c));
		ck_assert_int_lt(nth, 50);
	}
	ck_assert_int_ge(failed, 2);
}
END_TEST

START_TEST(a_write_that_fails_is_told)
{
	evc_coord *c = new_coord(NULL);
	int fd[2];

	OK(pipe(fd));
	seam_fail("fd_put", NULL, 1, ENOSPC);
	REFUSED(EVC_UNAVAILABLE, evc_dump(c, fd[1], EVC_REPORT_TEXT));
	HAS(evc_last_error(), "No space left");
	seam_reset();
	/* this one is tried again */
	seam_fail("fd_put", NULL, 1, EINTR);
	OK(evc_dump(c, fd[1], EVC_REPORT_TEXT));
	seam_reset();
	ck_assert_int_gt((int)read(fd[0], text, sizeof text), 0);
	close(fd[0]);
	close(fd[1]);
	OK(evc_free(c));
}
END_TEST

/* No descriptor to read /proc by. */
START_TEST(a_report_without_descriptors)
{
	struct scene k;

	scene_make(&k);
	evc_report(k.c, EVC_REPORT_TEXT, text, sizeof text);
	HAS(text, "     kernel: ");
	seam_fail_all("open_read", NULL, 1, EMFILE);
	evc_report(k.c, EVC_REPORT_TEXT, text, sizeof text);
	HAS(text, "\"its-thread\"");
	HAS(text, "     kernel: not known");
	seam_reset();
	scene_end(&k);
}
END_TEST

API_MAIN("report", evc_report_without_memory, evc_report_json_without_memory,
	 evc_metrics_without_memory, with_no_memory_at_all_there_is_a_report,
	 evc_dump_signal_without_memory, a_write_that_fails_is_told,
	 a_report_without_descriptors)
