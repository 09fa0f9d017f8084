/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What evc_report says, field by field: who is alive, where it says it is, what
 * was done to wake it, what the stop has come to.
 */
#include "../../support/report_util.h"

#include <sys/wait.h>

/* ---- who ---- */

START_TEST(each_kind_of_member_has_a_line)
{
	struct zoo z;
	const char *text;

	zoo_make(&z, "zoo");
	text = report(z.c);
	HAS(text, "thread \"a-thread\" tid ");
	HAS(text, "registered thread \"a-registered\" tid ");
	HAS(text, "looper \"a-looper\" on home");
	HAS(text, "looper \"an-own-looper\"");
	HAS(text, "runner \"a-runner\" behind the counter");
	HAS(text, "hold \"a-hold\"");
	HAS(text, "hook \"a-hook\" on home");
	HAS(text, "task \"upload\" on home");
	HAS(text, "scope \"a-scope\"");
	HAS(text, "hold \"below\"");
	zoo_end(&z);
}
END_TEST

START_TEST(name_id_kind_state_and_age_stand_in_its_line)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	char expected[96];
	evc_id id = 0;

	OK(evc_hold_begin(c, "the-hold", NULL, &id));
	scripted_advance(12.5);
	snprintf(expected, sizeof(expected),
		 "  #%llu hold \"the-hold\", live, for 12.500 s",
		 (unsigned long long)id);
	ck_assert_str_eq(line_with(report(c), "the-hold", NULL), expected);
	OK(evc_hold_end(c, id));
	HAS(report(c), "members:\n  none\n");
	OK(evc_free(c));
}
END_TEST

START_TEST(a_looper_tells_its_runs_and_what_it_missed)
{
	struct zoo z;

	zoo_make(&z, "zoo");
	UNTIL(atomic_load(&z.runs) > 3);
	HAS(line_with(report(z.c), "\"an-own-looper\"", NULL), " runs, ");
	HAS(line_with(report(z.c), "\"an-own-looper\"", NULL), " missed");
	zoo_end(&z);
}
END_TEST

/* What the hook's report says of itself, and of the other one. */
static evc_status
look_at_hooks(evc_coord *c, void *arg)
{
	HAS(line_with(report(c), "\"looks\"", NULL), "helper thread, live, ");
	HAS(line_with(report(c), "\"first\"", NULL), "helper thread, called, ");
	HAS(line_with(report(c), "\"last\"", NULL), "helper thread, live, ");
	++*(int *)arg;
	return 0;
}

START_TEST(a_hook_says_whether_it_was_called_in_this_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts drained = { .flags = EVC_ON_DRAIN };
	int round, n = 0;
	evc_id id;

	OK(evc_on_stop(c, "first", return_at_once, NULL, &drained, NULL));
	OK(evc_on_stop(c, "looks", look_at_hooks, &n, NULL, NULL));
	OK(evc_on_stop(c, "last", return_at_once, NULL, NULL, NULL));
	for (round = 1; round <= 2; round++) {
		ck_assert(!says(c, "called"));
		if (round == 2) {
			OK(evc_hold_begin(c, "hold", NULL, &id));
			OK(evc_request_drain(c, 60, NULL));
			UNTIL(says(c, "\"first\" on helper thread, called"));
			ck_assert_uint_eq(times_in(report(c), ", called"), 1);
			OK(evc_hold_end(c, id));
		}
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		ck_assert_uint_eq(times_in(report(c), ", called, "), 3);
		ck_assert_int_eq(n, round);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(the_head_tells_what_the_coordinator_is_at)
{
	evc_config cfg = { .name = "headed" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id id = 0;

	HAS(report(c), "coordinator \"headed\", round 1: running, 0 ended\n");
	OK(evc_hold_begin(c, "h", NULL, &id));
	OK(evc_request_drain(c, 60, NULL));
	HAS(report(c), "round 1: draining");
	OK(evc_hold_end(c, id));
	OK(evc_request_stop(c, 0, NULL));
	HAS(report(c), "round 1: stopping, 1 ended\n");
	OK(evc_join(c, NULL, NULL));
	HAS(report(c), "stopping, joined, 1 ended\n");
	OK(evc_clear_stop(c));
	HAS(report(c), "round 2: running, 0 ended\n");
	OK(evc_free(c));
}
END_TEST

/* ---- where it says it is ---- */

struct walker {
	struct guest g;
	const char *_Atomic where;
};

static evc_status
walk(evc_coord *c, void *arg)
{
	struct walker *w = arg;

	evc_progress(atomic_load(&w->where));
	return stay(c, &w->g);
}

START_TEST(a_checkpoint_is_shown_with_its_age)
{
	struct walker w = { .where = "flushing index" };
	evc_coord *c = new_coord(NULL);
	const char *line;
	double age = -1;

	OK(evc_thread_start(c, "walker", walk, &w, NULL, NULL));
	UNTIL(atomic_load(&w.g.in) == 1);
	t_sleep(0.05);
	line = line_with(report(c), "at \"flushing index\"", NULL);
	ck_assert_int_eq(sscanf(line, " at \"flushing index\", %lf s ago",
				&age),
			 1);
	ck_assert_double_ge(age, 0.03);
	ck_assert_double_lt(age, 60);
	atomic_store(&w.g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_checkpoint_that_was_taken_back_is_not_shown)
{
	struct walker w = { .where = NULL };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "walker", walk, &w, NULL, NULL));
	UNTIL(atomic_load(&w.g.in) == 1);
	ck_assert_ptr_null(strstr(report(c), " ago"));
	atomic_store(&w.g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- what was done to wake it ---- */

static atomic_int unblocked;

static void
count_unblock(void *arg)
{
	(void)arg;
	atomic_fetch_add(&unblocked, 1);
}

/* How often, by the line of the member. */
static int
how_often(const evc_coord *c, const char *word)
{
	const char *at = strstr(report(c), word);

	return at != NULL ? atoi(at + strlen(word)) : 0;
}

START_TEST(how_often_it_was_unblocked_and_kicked_is_shown)
{
	evc_member_opts opts = { .unblock = count_unblock,
				 .flags = EVC_KICK };
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);
	int calls = 0;

	OK(evc_thread_start(c, "deaf", stay, &g, &opts, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	ck_assert_int_eq(how_often(c, "unblocked "), 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL((calls = how_often(c, "unblocked ")) >= 2 &&
	      how_often(c, ", kicked ") >= 2);
	/* the last one may just begin */
	ck_assert_int_ge(atomic_load(&unblocked), calls - 1);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- what the stop has come to ---- */

static bool
has_rung(const evc_coord *c, const char *step)
{
	const char *at = strstr(report(c), "escalation: "), *hit, *end;

	if (at == NULL)
		return false;
	end = strchr(at, '\n');
	hit = strstr(at, step);
	return hit != NULL && hit < end;
}

START_TEST(each_rung_is_shown_with_its_time)
{
	evc_escalation_opts escalation = { .budget = 0.4,
					   .hooks = 0.1,
					   .kicks = 0.2 };
	evc_member_opts opts = { .unblock = count_unblock,
				 .flags = EVC_KICK };
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);
	double told, hooks, kicks, ending, abandoned;
	unsigned calls, signals;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_thread_start(c, "deaf", stay, &g, &opts, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	ck_assert(!has_rung(c, "told"));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(has_rung(c, "told +0.0"));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	UNTIL(has_rung(c, "ending +") && has_rung(c, "abandoned +"));
	ck_assert_int_eq(
		sscanf(line_with(report(c), "escalation: ", NULL),
		       "escalation: told +%lf s, hooks +%lf s (%u calls), "
		       "kicks +%lf s (%u), ending +%lf s, "
		       "abandoned +%lf s",
		       &told, &hooks, &calls, &kicks, &signals, &ending,
		       &abandoned),
		7);
	/* as the fractions say, or later */
	ck_assert_double_ge(hooks, 0.039);
	ck_assert_double_ge(kicks, 0.079);
	ck_assert_double_ge(ending, 0.359);
	ck_assert_double_ge(abandoned, 0.399);
	ck_assert_uint_ge(calls, 1);
	ck_assert_uint_ge(signals, 1);
	atomic_store(&g.open, 1);
	/* the budget is over, so a join only looks */
	UNTIL(evc_join(c, NULL, NULL) == 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_veto_is_shown_with_its_member_and_after_its_end)
{
	evc_escalation_opts escalation = { .budget = 10, .hard_end = 100 };
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;
	double granted = 0;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_hold_begin(c, "writer", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_ptr_null(strstr(report(c), "     extended: "));
	OK(evc_extend_stop(c, id, 3, "flushing", &granted));
	ck_assert(fabs(granted - 3) < 1e-6);
	HAS(report(c), "     extended: 3.000 s more: flushing\n");
	OK(evc_hold_end(c, id));
	HAS(report(c), "\"writer\", which has ended: 3.000 s more: flushing\n");
	OK(evc_free(c));
}
END_TEST

START_TEST(counters_are_shown_when_there_are_some)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts brief = { .grace = 0.01 };
	evc_id id = 0;

	ck_assert_ptr_null(strstr(report(c), "so far: "));
	OK(evc_hold_begin(c, "late", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	HAS(line_with(report(c), "so far: ", NULL), ", 1 straggler, ");
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	HAS(line_with(report(c), "so far: ", NULL), "so far: 1 stop in ");
	OK(evc_free(c));
}
END_TEST

START_TEST(one_that_has_ended_and_is_not_joined_says_so)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "quick", return_at_once, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(says(c, "stopping, 1 ended, 1 of them not joined yet\n"));
	HAS(line_with(report(c), "\"quick\"", NULL), ", ended, not joined yet,");
	OK(evc_join(c, NULL, NULL));
	HAS(report(c), "stopping, joined, 1 ended\n");
	OK(evc_free(c));
}
END_TEST

/* ---- tasks, as another thread sees them ---- */

START_TEST(tasks_of_a_stop_say_what_and_how_old_they_are)
{
	static const evc_task_class class = { .name = "connection",
					      .describe = say_descriptor };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct connection k[7] = { 0 };
	const char *line;
	double age = -1;
	int i;

	for (i = 0; i < 7; i++) {
		k[i].fd = 100 + i;
		OK(evc_task_begin(evc_home(c), &k[i].task, &class));
	}
	HAS(elsewhere(report_plain, c), "\n  7 tasks \"connection\" on home\n");
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	UNTIL(strstr(elsewhere(report_plain, c),
		     "\n  3 tasks \"connection\" on home\n") != NULL);
	line = line_with(elsewhere(report_plain, c), "(fd 100)", NULL);
	ck_assert_int_eq(sscanf(line, "  task \"connection\" on home (fd 100), "
				      "live, for %lf s", &age), 1);
	ck_assert_double_ge(age, 0);
	ck_assert_double_lt(age, 60);
	ck_assert_uint_eq(times_in(elsewhere(report_plain, c), "task \""), 4);
	/* On the loop's own thread each of them stands alone. */
	ck_assert_uint_eq(times_in(report(c), "task \"connection\" on "), 7);
	ck_assert_uint_eq(times_in(report(c), " on home (fd 10"), 4);
	/* The text may be that of a task that ends: none is shown then. */
	evc_task_end(&k[6].task);
	HAS(elsewhere(report_plain, c), "\n  6 tasks \"connection\" on home\n");
	ck_assert_uint_eq(times_in(report(c), "(fd "), 0);
	for (i = 0; i < 6; i++)
		evc_task_end(&k[i].task);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(scopes_stand_below_with_their_phase)
{
	evc_coord *c = new_coord(NULL), *s = NULL;
	evc_scope_opts later = { .phase = 4 };

	OK(evc_scope_new(c, "late-one", &later, &s));
	HAS(report(c), "\n  scope \"late-one\", phase 4, round 1: running, "
		       "set-up not finished, 0 ended\n");
	OK(evc_scope_ready(s));
	HAS(report(c), "phase 4, round 1: running, 0 ended\n");
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

/* ---- how it is asked for ---- */

/* The length is that of the whole, whatever fits; n is kept to. */
static void
length_rule(tell_fn *tell, const evc_coord *c)
{
	static char part[1 << 16];
	size_t length = tell(c, NULL, 0), n;

	ck_assert_uint_gt(length, 1);
	ck_assert_uint_lt(length, sizeof(part));
	for (n = 1; n <= length + 1; n += n < 40 || n + 40 > length ? 1 : 97) {
		memset(part, '#', sizeof(part));
		ck_assert_uint_eq(tell(c, part, n), length);
		ck_assert_uint_eq(strlen(part), n - 1);
		ck_assert_int_eq(part[n], '#');
	}
	part[0] = '#';
	ck_assert_uint_eq(tell(c, part, 0), length);
	ck_assert_int_eq(part[0], '#');
}

START_TEST(lengths_are_those_of_snprintf)
{
	/* ages stand still on this clock */
	evc_config cfg = { .clock = scripted_clock };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord_with(loop, &cfg);
	evc_id id = 0;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	evc_fail(c, EVC_INTERNAL, EIO, "some error");
	ev_run(loop, EVRUN_NOWAIT); /* it hears of the stop */
	length_rule(report_text, c);
	length_rule(report_json, c);
	length_rule(report_metrics, c);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(without_a_coordinator_they_say_why)
{
	char buf[256];

	evc_report(NULL, EVC_REPORT_TEXT, buf, sizeof(buf));
	ck_assert_str_eq(buf, "evc_report: no coordinator");
	evc_report(NULL, EVC_REPORT_JSON, buf, sizeof(buf));
	ck_assert_str_eq(buf, "{\"error\":\"evc_report: no coordinator\"}\n");
	evc_report(NULL, EVC_REPORT_METRICS, buf, sizeof(buf));
	ck_assert_str_eq(buf, "# evc_report: no coordinator\n");
	REFUSED(EVC_INVALID_ARGUMENT, evc_dump(NULL, 1, EVC_REPORT_TEXT));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_dump_signal(NULL, SIGUSR1, 1, EVC_REPORT_TEXT));
}
END_TEST

START_TEST(in_a_fork_child_they_say_why)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	char buf[256];
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		evc_report(c, EVC_REPORT_TEXT, buf, sizeof(buf));
		CHILD(strstr(buf, "fork child") != NULL);
		evc_report(c, EVC_REPORT_JSON, buf, sizeof(buf));
		CHILD(strstr(buf, "fork child") != NULL);
		evc_report(c, EVC_REPORT_METRICS, buf, sizeof(buf));
		CHILD(strstr(buf, "fork child") != NULL);
		CHILD_REFUSED(evc_dump(c, 1, EVC_REPORT_TEXT));
		CHILD_REFUSED(evc_dump_signal(c, SIGUSR1, 1, EVC_REPORT_TEXT));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- at the same time ---- */

struct crowd {
	evc_coord *c;
	atomic_int leave;
	long turns;
};

static void *
come_and_go(void *arg)
{
	struct crowd *k = arg;
	evc_coord *s;
	evc_id id;

	for (; !atomic_load(&k->leave); k->turns++) {
		if (evc_scope_new(k->c, "brief", NULL, &s) < 0)
			continue;
		evc_scope_ready(s);
		if (evc_hold_begin(s, "in it", NULL, &id) == 0)
			evc_hold_end(s, id);
		evc_thread_start(s, "ends", return_at_once, NULL, NULL, NULL);
		evc_request_stop(s, 0, NULL);
		if (evc_join(s, NULL, NULL) != 0 || evc_free(s) != 0)
			return (void *)-1;
	}
	return NULL;
}

static void *
ask_again_and_again(void *arg)
{
	static __thread char buf[1 << 15];
	struct crowd *k = arg;

	for (; !atomic_load(&k->leave); k->turns++) {
		evc_report(k->c, EVC_REPORT_TEXT, buf, sizeof(buf));
		evc_report(k->c, EVC_REPORT_JSON, buf, sizeof(buf));
		evc_report(k->c, EVC_REPORT_METRICS, buf, sizeof(buf));
	}
	return NULL;
}

START_TEST(reports_while_members_and_scopes_come_and_go)
{
	enum { N = 2 };
	evc_coord *c = new_coord(NULL);
	struct crowd go[N] = { { .c = c }, { .c = c } };
	struct crowd ask[N] = { { .c = c }, { .c = c } };
	pthread_t goer[N], asker[N];
	void *result;
	int i;

	STACKS_BY(0);
	for (i = 0; i < N; i++) {
		OK(pthread_create(&goer[i], NULL, come_and_go, &go[i]));
		OK(pthread_create(&asker[i], NULL, ask_again_and_again,
				  &ask[i]));
	}
	t_sleep(1);
	for (i = 0; i < N; i++) {
		atomic_store(&go[i].leave, 1);
		OK(pthread_join(goer[i], &result));
		ck_assert_ptr_null(result);
		ck_assert_int_gt(go[i].turns, 0);
	}
	for (i = 0; i < N; i++) {
		atomic_store(&ask[i].leave, 1);
		OK(pthread_join(asker[i], NULL));
		ck_assert_int_gt(ask[i].turns, 0);
	}
	OK(evc_free(c));
}
END_TEST

API_MAIN("report", each_kind_of_member_has_a_line,
	 name_id_kind_state_and_age_stand_in_its_line,
	 a_looper_tells_its_runs_and_what_it_missed,
	 a_hook_says_whether_it_was_called_in_this_stop,
	 the_head_tells_what_the_coordinator_is_at,
	 a_checkpoint_is_shown_with_its_age,
	 a_checkpoint_that_was_taken_back_is_not_shown,
	 how_often_it_was_unblocked_and_kicked_is_shown,
	 each_rung_is_shown_with_its_time,
	 a_veto_is_shown_with_its_member_and_after_its_end,
	 counters_are_shown_when_there_are_some,
	 one_that_has_ended_and_is_not_joined_says_so,
	 tasks_of_a_stop_say_what_and_how_old_they_are,
	 scopes_stand_below_with_their_phase, lengths_are_those_of_snprintf,
	 without_a_coordinator_they_say_why, in_a_fork_child_they_say_why,
	 reports_while_members_and_scopes_come_and_go)
