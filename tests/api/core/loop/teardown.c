/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The teardown of evc_reactor_start: once, on the loop's thread, when its
 * members are gone and while there is a loop; and whatever it does.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

struct place {
	evc_task task; /* first */
	ev_timer timer, exits;
	struct ev_loop *loop;
	int tid, torn_tid;
	int n_told, n_torn;
	bool task_gone, timer_on;
	evc_status setup_gives, gives;
	pid_t child;
	void (*then)(struct place *);
	bool exit; /* a watcher ends the thread */
};

static void
told(evc_task *t, void *arg)
{
	(void)arg;
	((struct place *)t)->n_told++;
	evc_task_end(t);
}

static const evc_task_class cls = { .name = "conn", .on_stop = told };

static void
on_timer(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
}

static void
on_exit_timer(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	pthread_exit(NULL);
}

static evc_status
setup(evc_reactor *r, void *arg)
{
	struct place *p = arg;

	p->tid = own_tid();
	p->loop = evc_reactor_loop(r);
	ev_timer_init(&p->timer, on_timer, 1000, 1000);
	ev_timer_start(p->loop, &p->timer);
	if (p->exit) {
		ev_timer_init(&p->exits, on_exit_timer, 0.001, 0);
		ev_timer_start(p->loop, &p->exits);
	}
	OK(evc_task_begin(r, &p->task, &cls));
	return p->setup_gives;
}

static evc_status
teardown(evc_coord *c, void *arg)
{
	struct place *p = arg;

	(void)c;
	p->n_torn++;
	p->torn_tid = own_tid();
	p->task_gone = evc_task_reactor(&p->task) == NULL;
	p->timer_on = ev_is_active(&p->timer);
	ev_timer_stop(p->loop, &p->timer);
	if (p->then != NULL)
		p->then(p);
	return p->gives;
}

static evc_coord *
start(struct place *p, evc_status st)
{
	evc_member_opts opts = { .stop = teardown };
	evc_coord *c = new_coord(NULL);

	ck_assert_int_eq(evc_reactor_start(c, "place", setup, p, &opts, NULL),
			 st);
	return c;
}

START_TEST(it_runs_when_the_members_are_gone_and_the_loop_is_not)
{
	struct place p = { .n_torn = 0 };
	evc_coord *c = start(&p, 0);

	let_come();
	ck_assert_int_eq(p.n_torn, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(p.n_told, 1);
	ck_assert_int_eq(p.n_torn, 1);
	ck_assert_int_eq(p.torn_tid, p.tid);
	ck_assert(p.task_gone);
	ck_assert(p.timer_on);
	OK(evc_free(c));
}
END_TEST

START_TEST(its_result_is_the_members)
{
	struct place p = { .gives = EVC_DATA_LOSS };
	evc_coord *c = start(&p, 0);
	evc_verdict v;

	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.who, "place");
	OK(evc_free(c));
}
END_TEST

START_TEST(without_a_set_up_that_succeeds_there_is_none)
{
	struct place p = { .setup_gives = EVC_UNAVAILABLE };
	evc_coord *c = start(&p, -EVC_UNAVAILABLE);

	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_UNAVAILABLE);
	ck_assert_int_eq(p.n_torn, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(it_runs_when_a_watcher_has_ended_the_thread)
{
	struct place p = { .exit = true };
	evc_coord *c = start(&p, 0);

	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	ck_assert_int_eq(p.n_torn, 1);
	ck_assert_int_eq(p.torn_tid, p.tid);
	ck_assert(p.task_gone);
	ck_assert_int_eq(p.n_told, 0);
	OK(evc_free(c));
}
END_TEST

static void
run_the_loop(struct place *p)
{
	ev_run(p->loop, EVRUN_NOWAIT);
}

static void
ask_again(struct place *p)
{
	(void)p;
	ck_assert_int_eq(evc_reactor_start(NULL, "again", setup, p, NULL, NULL),
			 -EVC_INVALID_ARGUMENT);
}

/* In the child, which has lost what other threads had in hand. */
static void
leave_at_once(void)
{
	_exit(0);
}

static void
fork_a_child(struct place *p)
{
	p->child = fork();
	if (p->child == 0)
		atexit(leave_at_once);
}

static void (*const ways[])(struct place *) = {
	run_the_loop, ask_again, fork_a_child,
};

START_TEST(whatever_it_does)
{
	struct place p = { .then = ways[_i] };
	evc_coord *c = start(&p, 0);
	int status = 0;

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(p.n_torn, 1);
	/* The child's only thread has ended, and so has the child. */
	if (p.child != 0) {
		ck_assert_int_eq(waitpid(p.child, &status, 0), p.child);
		ck_assert_int_eq(status, 0);
	}
	OK(evc_free(c));
}
END_TEST

static atomic_int hangs, let_go;

static void
hang(struct place *p)
{
	(void)p;
	atomic_store(&hangs, 1);
	while (!atomic_load(&let_go))
		t_sleep(0.001);
}

START_TEST(one_that_hangs_is_late)
{
	evc_join_opts opts = { .grace = 0.05 };
	struct place p = { .then = hang };
	evc_coord *c = start(&p, 0);
	evc_verdict v;

	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&hangs) == 1);
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_str_eq(v.error.text, "still running: place");
	atomic_store(&let_go, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("teardown");
	TCase *t = tcase_create("teardown");

	tcase_add_test(t, it_runs_when_the_members_are_gone_and_the_loop_is_not);
	tcase_add_test(t, its_result_is_the_members);
	tcase_add_test(t, without_a_set_up_that_succeeds_there_is_none);
	tcase_add_test(t, it_runs_when_a_watcher_has_ended_the_thread);
	tcase_add_loop_test(t, whatever_it_does, 0,
			    sizeof(ways) / sizeof(ways[0]));
	tcase_add_test(t, one_that_hangs_is_late);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
