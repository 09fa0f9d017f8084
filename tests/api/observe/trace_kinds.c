/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can stand in the timeline: each kind of member, loops and their tasks,
 * steps and what they do.
 */
#include "../../support/trace_util.h"
#include "../../support/scope_util.h"

static struct {
	atomic_int stopped, joined;
} op;

static bool
op_runs(void *arg)
{
	(void)arg;
	return !atomic_load(&op.stopped);
}

static void
op_stop(void *arg)
{
	(void)arg;
	atomic_store(&op.stopped, 1);
}

static evc_status
op_join(void *arg)
{
	(void)arg;
	atomic_store(&op.joined, 1);
	return 0;
}

START_TEST(every_kind_of_member_has_its_lane)
{
	static const evc_runner_ops ops = { .is_running = op_runs,
					    .stop = op_stop,
					    .join = op_join };
	static const char *const lane[][2] = {
		{ "a-thread (thread, coord)", "a-thread" },
		{ "a-guest (thread, coord)", "a-guest" },
		{ "a-looper (looper, coord)", "a-looper" },
		{ "own-looper (looper, coord)", "own-looper" },
		{ "a-runner (runner, coord)", "a-runner" },
		{ "a-hold (hold, coord)", "a-hold" },
		{ "a-hook (hook, coord)", "a-hook" },
	};
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	struct guest g = { 0 };
	atomic_int hooked = 0, ran = 0, ran_own = 0;
	uint64_t before = mono_ns(), asked;
	pthread_t guest;
	char *text;
	evc_id id;
	size_t i;

	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "a-thread", obey, NULL, NULL, NULL));
	OK(pthread_create(&guest, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "a-guest", guest, NULL, NULL));
	OK(evc_looper_start(c, "a-looper", 0.001, count_hook, &ran, NULL,
			    NULL));
	OK(evc_looper_start(c, "own-looper", 0.001, count_hook, &ran_own, &own,
			    NULL));
	OK(evc_runner_add(c, "a-runner", &ops, NULL, NULL, NULL));
	OK(evc_on_stop(c, "a-hook", count_hook, &hooked, NULL, NULL));
	id = hold(c, "a-hold");
	while (atomic_load(&ran) == 0)
		ev_run(loop, EVRUN_ONCE);
	UNTIL(atomic_load(&ran_own) > 0);
	OK(evc_request_stop(c, 0, NULL));
	asked = mono_ns();
	atomic_store(&g.open, 1);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&hooked), 1);
	text = traced(c, EVC_TRACE_JSON);
	for (i = 0; i < sizeof(lane) / sizeof(lane[0]); i++) {
		struct life l = life_of(text, lane[i][0], lane[i][1]);

		IN_ORDER(before, l.begin, asked);
		/* A hook stays; all others have ended. */
		if (i < 6)
			IN_ORDER(l.begin, l.end, mono_ns());
	}
	IN_ORDER(before,
		 number_of(event_of(text, "a-looper (its calls, coord)",
				    "call"), "ns"),
		 asked);
	ck_assert(has_event(text, "own-looper (its calls, coord)", "call"));
	ck_assert(has_event(text, "a-runner (its calls, coord)", "stop"));
	ck_assert(has_event(text, "a-runner (its calls, coord)", "join"));
	ck_assert(has_event(text, "a-hook (its calls, coord)", "call"));
	free(text);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- loops ---- */

static void
end_task(evc_task *t, void *arg)
{
	(void)arg;
	evc_task_end(t);
}

START_TEST(a_loop_hears_the_stop_and_tells_its_tasks)
{
	static const evc_task_class cls = { .name = "request",
					    .on_stop = end_task };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	const char *tell, *home = "home (loop, coord)";
	evc_task task[3];
	uint64_t asked, told;
	char *text;
	int i;

	memset(task, 0, sizeof(task));
	OK(evc_trace_start(c, 0));
	for (i = 0; i < 3; i++)
		OK(evc_task_begin(evc_home(c), &task[i], &cls));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	asked = number_of(event_of(text, "coord (coordinator, coord)", "stop"),
			  "ns");
	tell = event_of(text, "home (its calls, coord)", "tells its tasks");
	told = number_of(tell, "ns");
	ck_assert_uint_eq(number_of(tell, "tasks"), 3);
	IN_ORDER(asked,
		 number_of(event_of(text, home, "heard the stop"), "ns"), told,
		 number_of(event_of(text, home, "no tasks left"), "ns"),
		 number_of(event_of(text, "join (join, coord)", "verdict"),
			   "ns"));
	free(text);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static bool
has_end(const char *at)
{
	const char *end = strstr(at, "\"end_ns\"");

	return end != NULL && end < strchr(at, '\n');
}

/* The bar of this lane is red at last, and goes on to the right edge. */
static void
late_to_the_edge(const char *lane)
{
	double x, width;
	const char *late;

	ck_assert_ptr_nonnull(lane);
	late = strstr(lane, "<rect class=\"late\"");
	ck_assert_ptr_nonnull(late);
	ck_assert_ptr_eq(strstr(lane, "</g>"), strstr(late, "</g>"));
	ck_assert_int_eq(sscanf(strstr(late, " x=\""),
				" x=\"%lf\" y=\"%*d\" width=\"%lf\"", &x,
				&width), 2);
	ck_assert_double_gt(x + width, 989);
}

/* The loop is there, before a stop, silent in it, and with tasks after it. */
START_TEST(a_loop_is_alive_and_so_are_its_tasks)
{
	static const evc_task_class cls = { .name = "request",
					    .describe = say_descriptor };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_join_opts brief = { .grace = 0.02 };
	const char *home = "home (loop, coord)", *task, *at;
	struct connection k[6];
	char *text;
	int i;

	memset(k, 0, sizeof(k));
	OK(evc_trace_start(c, 0));
	for (i = 0; i < 6; i++) {
		k[i].fd = 100 + i;
		OK(evc_task_begin(evc_home(c), &k[i].task, &cls));
	}
	text = traced(c, EVC_TRACE_JSON);
	string_is(event_of(text, home, "home"), "state", "alive");
	ck_assert(!has_end(event_of(text, home, "home")));
	task = event_of(text, "request (task, coord)", "request");
	string_is(task, "state", "alive");
	string_is(task, "progress", "6 tasks");
	free(text);
	text = drawn(c, "a_loop_is_alive_and_so_are_its_tasks");
	if (text != NULL)
		HAS(text, "No stop was requested");
	free(text);

	OK(evc_request_stop(c, 0, NULL));
	text = traced(c, EVC_TRACE_JSON);
	string_is(event_of(text, home, "home"), "state", "alive");
	free(text);
	text = drawn(c, "a_loop_is_alive_and_so_are_its_tasks");
	if (text != NULL) {
		HAS(text, "Still running when this was written: 2.");
		HAS(text, ">has not turned since the stop<");
	}
	free(text);

	ev_run(loop, EVRUN_NOWAIT);
	text = traced(c, EVC_TRACE_JSON);
	string_is(event_of(text, home, "home"), "state", "alive");
	ck_assert(!has_end(event_of(text, home, "home")));
	/* The four oldest, and the others. */
	for (i = 0; i < 4; i++) {
		char fd[32];

		snprintf(fd, sizeof(fd), "\"progress\":\"fd %d\"", 100 + i);
		HAS(text, fd);
	}
	HAS(text, "\"progress\":\"2 tasks\"");
	free(text);
	text = drawn(c, "a_loop_is_alive_and_so_are_its_tasks");
	if (text != NULL) {
		HAS(text, "Still running when this was written: 6.");
		HAS(text, ">until its tasks and loopers have ended<");
		at = strstr(text, "data-name=\"home\"");
		ck_assert_ptr_nonnull(at);
		HAS(at, "data-alive=\"1\"");
	}
	free(text);
	ck_assert_int_eq(evc_join(c, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	text = drawn(c, "a_loop_is_alive_and_so_are_its_tasks");
	if (text != NULL) {
		late_to_the_edge(strstr(text, "data-name=\"home\""));
		late_to_the_edge(strstr(text, "data-name=\"request\""));
	}
	free(text);
	for (i = 0; i < 6; i++)
		evc_task_end(&k[i].task);
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	string_is(event_of(text, home, "home"), "state", "alive");
	ck_assert_uint_eq(lane_of(text, "request (task, coord)"), 0);
	free(text);
	text = drawn(c, "a_loop_is_alive_and_so_are_its_tasks");
	if (text != NULL)
		ck_assert_ptr_null(strstr(text, "data-alive=\"1\""));
	free(text);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Many tasks, one line: they stay as cheap as they are. */
START_TEST(tasks_that_come_and_go_leave_no_events)
{
	static const evc_task_class cls = { .name = "request" };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_task task;
	char *text;
	int i;

	memset(&task, 0, sizeof(task));
	OK(evc_trace_start(c, 4));
	for (i = 0; i < 100; i++) {
		OK(evc_task_begin(evc_home(c), &task, &cls));
		evc_task_end(&task);
	}
	text = traced(c, EVC_TRACE_JSON);
	ck_assert_uint_eq(number_of(strstr(text, "\"otherData\""), "lost"), 0);
	free(text);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- steps ---- */

static evc_status
blocked(evc_coord *c, void *arg)
{
	int *fds = arg;
	char byte;

	while (!evc_should_stop(c))
		(void)!read(fds[0], &byte, 1);
	return 0;
}

static void
let_go(void *arg)
{
	atomic_store(&((struct guest *)arg)->open, 1);
}

START_TEST(rungs_and_what_they_do_are_shown)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_member_opts unblock = { .unblock = let_go };
	evc_coord *c = new_coord(NULL);
	const char *coord = "coord (coordinator, coord)", *at;
	struct guest g = { 0 };
	int fds[2];
	uint64_t asked;
	char *text;

	OK(pipe(fds));
	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "reader", blocked, fds, &kick, NULL));
	OK(evc_thread_start(c, "guest", stay, &g, &unblock, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	asked = number_of(event_of(text, coord, "stop"), "ns");
	at = event_of(text, "guest (thread, coord)", "unblock");
	ck_assert_uint_ge(number_of(at, "times"), 1);
	IN_ORDER(asked, number_of(event_of(text, coord, "step: hooks"), "ns"),
		 number_of(at, "ns"),
		 life_of(text, "guest (thread, coord)", "guest").end);
	free(text);
	OK(evc_free(c));
	close(fds[0]);
	close(fds[1]);
}
END_TEST

static evc_status
asks_for_more(evc_coord *c, void *arg)
{
	double granted = 0;

	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return evc_extend_stop(c, 0, 0.5, "one more batch", &granted) == 0 &&
			       granted > 0.4 ?
		       0 :
		       EVC_INTERNAL;
}

START_TEST(a_veto_is_shown)
{
	evc_escalation_opts opts = { .budget = 20, .hard_end = 30 };
	evc_coord *c = new_coord(NULL);
	const char *at;
	char *text;

	OK(evc_escalation_set(c, &opts));
	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "batch", asks_for_more, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	at = event_of(text, "batch (thread, coord)", "extend");
	string_is(at, "reason", "one more batch");
	ck_assert_uint_ge(number_of(at, "granted_ns"), 400000000u);
	/* It keeps its name. */
	ck_assert(has_event(text, "batch (thread, coord)", "batch"));
	free(text);
	text = drawn(c, __func__);
	/* Cut where the picture ends. */
	if (text != NULL)
		HAS(text, "extended: one");
	free(text);
	OK(evc_free(c));
}
END_TEST

START_TEST(kicks_are_shown)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c = new_coord(NULL);
	const char *coord = "coord (coordinator, coord)", *at;
	struct guest g = { 0 };
	char *text;

	OK(evc_trace_start(c, 0));
	/* One that takes no notice of them for a while. */
	OK(evc_thread_start(c, "deaf", stay, &g, &kick, NULL));
	OK(evc_request_stop(c, 0, NULL));
	for (;;) {
		double until = t_now() + T_LIMIT;

		text = traced(c, EVC_TRACE_JSON);
		at = lane_of(text, "deaf (thread, coord)") != 0 ?
			     next_event(text,
					lane_of(text, "deaf (thread, coord)"),
					"kick") :
			     NULL;
		if (at != NULL)
			break;
		ck_assert(t_now() < until);
		free(text);
		t_sleep(0.002);
	}
	IN_ORDER(number_of(event_of(text, coord, "stop"), "ns"),
		 number_of(event_of(text, coord, "step: kicks"), "ns"),
		 number_of(at, "ns"));
	free(text);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static evc_status
says_and_waits(evc_coord *c, void *arg)
{
	(void)arg;
	evc_progress("flushing index");
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

START_TEST(the_last_checkpoint_is_shown_at_the_end)
{
	evc_coord *c = new_coord(NULL);
	char *text;

	OK(evc_trace_start(c, 0));
	OK(evc_thread_start(c, "indexer", says_and_waits, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	text = traced(c, EVC_TRACE_JSON);
	string_is(life_of(text, "indexer (thread, coord)", "indexer").at,
		  "progress", "flushing index");
	free(text);
	OK(evc_free(c));
}
END_TEST

API_MAIN("trace_kinds", every_kind_of_member_has_its_lane,
	 a_loop_hears_the_stop_and_tells_its_tasks,
	 a_loop_is_alive_and_so_are_its_tasks,
	 tasks_that_come_and_go_leave_no_events,
	 rungs_and_what_they_do_are_shown, a_veto_is_shown, kicks_are_shown,
	 the_last_checkpoint_is_shown_at_the_end)
