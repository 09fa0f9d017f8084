/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children that come back from the function that they were made in.  On a
 * loop the child goes on with the loop, without anything of its parent's, until
 * it has nothing of its own left there: then evc_run and its like are refused.
 * On a thread of the library the child ends as by exit(0).  In neither does a
 * function of the parent's run, though everything is due.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

static bool in_child;
static atomic_bool forked;
static unsigned strayed; /* functions of the parent's that the child called */
static _Atomic int status; /* what came of the child */
static int fired;        /* the child's own timer */
static struct ev_loop *loop;
static ev_timer timer;
static bool in_setup, no_member;
static struct ev_loop *own_loop; /* of evc_reactor_start */
static evc_coord *coord;

/* Of an exit by the end of the last thread. */
static void
at_exit(void)
{
	_exit(strayed == 0 ? 0 : 3);
}

static void
on_timer(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)l;
	(void)t;
	(void)revents;
	fired++;
}

/* Each function of the parent's begins with it; the first one forks. */
static void
here(void)
{
	pid_t pid;

	if (in_child)
		strayed++;
	if (in_child || atomic_exchange(&forked, true))
		return;
	pid = fork();
	if (pid != 0) {
		int st = -2;

		if (pid > 0)
			(void)waitpid(pid, &st, 0);
		atomic_store(&status, st);
		/* A thread that is no member may not, beside evc_free. */
		if (!no_member)
			(void)evc_request_stop(coord, 0, "forked");
		return;
	}
	in_child = true;
	signal(SIGALRM, SIG_DFL);
	alarm((unsigned)T_LIMIT * 2);
	atexit(at_exit);
	if (own_loop != NULL)
		ev_loop_fork(own_loop);
	if (loop == NULL)
		return;
	ev_loop_fork(loop);
	ev_timer_init(&timer, on_timer, 0.01, 0);
	ev_timer_start(loop, &timer);
}

static evc_status
fn(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	here();
	return 0;
}

/* In a child that has come back: the rest of it. */
static void
end_child(evc_status st)
{
	evc_coord *own = NULL;

	if (!in_child)
		return;
	CHILD(st == -EVC_FAILED_PRECONDITION);
	CHILD(fired == 1);
	CHILD(evc_new(loop, NULL, &own) == 0);
	CHILD(evc_request_stop(own, 0, NULL) == 0);
	CHILD(evc_run(own, NULL, NULL) == 0);
	CHILD(evc_free(own) == 0);
	CHILD(ev_run(loop, 0) == 0);
	ev_loop_destroy(loop);
	CHILD(strayed == 0);
	_exit(0);
}

static void
begin(bool with_loop)
{
	status = -1;
	loop = with_loop ? ev_loop_new(0) : NULL;
	coord = new_coord(loop);
}

static void
end(void)
{
	ck_assert(atomic_load(&forked));
	ck_assert_msg(status == 0, "the child ended with %#x",
		      (unsigned)status);
	OK(evc_free(coord));
	if (loop != NULL)
		ev_loop_destroy(loop);
}

static void
run(void)
{
	evc_join_opts o = { .grace = T_LIMIT };
	evc_status st = evc_run(coord, &o, NULL);

	end_child(st);
	ck_assert_int_eq(st, 0);
}

/* ---- on a loop ---- */

static void
on_first_timer(struct ev_loop *l, ev_timer *t, int revents)
{
	(void)l;
	(void)t;
	(void)revents;
	here();
}

START_TEST(from_a_watcher_of_the_application)
{
	ev_timer t;

	begin(true);
	ev_timer_init(&t, on_first_timer, 0, 0);
	ev_timer_start(loop, &t);
	OK(evc_on_stop(coord, "hook", fn, NULL, NULL, NULL));
	OK(evc_looper_start(coord, "looper", 0.001, fn, NULL, NULL, NULL));
	run();
	end();
}
END_TEST

static void
posted(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	(void)arg;
	here();
}

START_TEST(from_a_post)
{
	evc_loop_ref *l;
	int i;

	begin(true);
	l = evc_loop_of(evc_home(coord));
	for (i = 0; i < 3; i++)
		OK(evc_post(l, posted, NULL));
	run();
	evc_loop_release(l);
	end();
}
END_TEST

START_TEST(from_a_looper)
{
	evc_member_opts o = { .start = fn, .stop = fn };

	begin(true);
	OK(evc_looper_start(coord, "a", 0.001, fn, NULL, NULL, NULL));
	OK(evc_looper_start(coord, "b", 0.001, fn, NULL, &o, NULL));
	run();
	end();
}
END_TEST

static evc_status
nothing(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	if (in_child)
		strayed++;
	return 0;
}

static evc_status
asks(evc_coord *c, void *arg)
{
	(void)arg;
	if (in_child)
		strayed++;
	(void)evc_request_stop(c, 0, NULL);
	return 0;
}

START_TEST(from_the_stop_of_a_looper)
{
	evc_member_opts o = { .stop = fn };

	begin(true);
	OK(evc_looper_start(coord, "a", 1, nothing, NULL, &o, NULL));
	OK(evc_looper_start(coord, "b", 1, nothing, NULL, &o, NULL));
	OK(evc_looper_start(coord, "c", 0.01, asks, NULL, NULL, NULL));
	run();
	end();
}
END_TEST

START_TEST(from_a_stop_hook)
{
	begin(true);
	OK(evc_on_stop(coord, "a", fn, NULL, NULL, NULL));
	OK(evc_on_stop(coord, "b", fn, NULL, NULL, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	run();
	end();
}
END_TEST

static void
on_stop(evc_task *t, void *arg)
{
	(void)arg;
	here();
	evc_task_end(t);
}

START_TEST(from_on_stop_of_a_task)
{
	static const evc_task_class cls = { .name = "task",
					    .on_stop = on_stop };
	evc_task a = { 0 }, b = { 0 };

	begin(true);
	OK(evc_task_begin(evc_home(coord), &a, &cls));
	OK(evc_task_begin(evc_home(coord), &b, &cls));
	OK(evc_request_stop(coord, 0, NULL));
	run();
	end();
}
END_TEST

static void
answered(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	here();
}

START_TEST(from_the_answer_of_a_join)
{
	begin(true);
	OK(evc_join_start(coord, answered, NULL, NULL));
	OK(evc_join_start(coord, answered, NULL, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	run();
	end();
}
END_TEST

START_TEST(from_ended_of_a_scope)
{
	evc_scope_opts o = { .ended = answered };
	evc_coord *s, *other;

	begin(true);
	OK(evc_scope_new(coord, "a", &o, &s));
	OK(evc_scope_ready(s));
	OK(evc_scope_new(coord, "b", &o, &other));
	OK(evc_scope_ready(other));
	OK(evc_request_stop(coord, 0, NULL));
	run();
	FREE_ALL(s, other);
	end();
}
END_TEST

static void
popped(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)why;
	(void)arg;
	if (item != NULL || in_child)
		here();
}

START_TEST(from_the_watch_of_a_queue)
{
	evc_queue *q;
	int i;

	begin(true);
	OK(evc_queue_new(coord, "queue", 4, NULL, &q));
	OK(evc_queue_watch(q, evc_home(coord), popped, NULL, 0, NULL));
	for (i = 0; i < 3; i++)
		OK(evc_queue_push(q, q, 0));
	run();
	while (evc_queue_try_pop(q, &(void *){ NULL }) == 0)
		;
	OK(evc_queue_free(q));
	end();
}
END_TEST

static evc_status
no_work(evc_job *job)
{
	(void)job;
	return 0;
}

static void
done(evc_job *job, evc_status result)
{
	(void)job;
	(void)result;
	here();
}

static evc_status
work(evc_job *job)
{
	(void)job;
	here();
	return 0;
}

START_TEST(from_the_end_of_a_job)
{
	evc_pool_opts o = { .n_threads = 1 };
	evc_job a = { .work = no_work, .done = done }, b = a;
	evc_pool *p;

	begin(true);
	OK(evc_pool_new(coord, "pool", &o, &p));
	OK(evc_pool_submit(p, evc_home(coord), &a));
	OK(evc_pool_submit(p, evc_home(coord), &b));
	run();
	OK(evc_pool_free(p));
	end();
}
END_TEST

static evc_status
worker(evc_group *g, unsigned id, void *arg)
{
	(void)g;
	(void)id;
	(void)arg;
	here();
	return 0;
}

START_TEST(of_evc_join_and_evc_reactor_run)
{
	evc_reactor *r;
	evc_status st;

	begin(false);
	loop = ev_loop_new(0);
	OK(evc_reactor_attach(coord, "loop", loop, &r));
	OK(evc_on_stop(coord, "a", fn, NULL, &(evc_member_opts){ .reactor = r },
		       NULL));
	OK(evc_on_stop(coord, "b", fn, NULL, &(evc_member_opts){ .reactor = r },
		       NULL));
	OK(evc_request_stop(coord, 0, NULL));
	st = _i == 0 ? evc_join(coord, NULL, NULL) : evc_reactor_run(r);
	end_child(st);
	OK(st);
	end();
}
END_TEST

/* ---- on a thread of the library ---- */

static void
join(void)
{
	evc_join_opts o = { .grace = T_LIMIT };

	OK(evc_join(coord, &o, NULL));
}

START_TEST(from_a_thread)
{
	begin(false);
	OK(evc_thread_start(coord, "thread", fn, NULL, NULL, NULL));
	join();
	end();
}
END_TEST

static evc_status
exits(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	here();
	if (in_child)
		pthread_exit(NULL);
	return 0;
}

START_TEST(from_a_thread_by_pthread_exit)
{
	begin(false);
	OK(evc_thread_start(coord, "thread", exits, NULL, NULL, NULL));
	join();
	end();
}
END_TEST

static evc_status
guards(evc_coord *c, void *arg)
{
	evc_member_opts o = { .flags = EVC_KICK };
	evc_status st = evc_guard(c, "guard", fn, arg, &o);

	if (in_child)
		CHILD(st == -EVC_FAILED_PRECONDITION);
	return st;
}

START_TEST(from_a_guard)
{
	begin(false);
	OK(evc_thread_start(coord, "thread", guards, NULL, NULL, NULL));
	join();
	end();
}
END_TEST

START_TEST(from_a_looper_with_a_thread)
{
	evc_member_opts o = { .flags = EVC_OWN_THREAD | EVC_FLUSH,
			      .stop = fn };

	begin(false);
	OK(evc_looper_start(coord, "looper", 0.001, fn, NULL, &o, NULL));
	join();
	end();
}
END_TEST

START_TEST(from_a_worker)
{
	evc_group_opts o = { .n_threads = 2 };
	evc_registry *reg;
	evc_group *g;

	begin(false);
	o.coord = coord;
	OK(evc_registry_new(NULL, &reg));
	OK(evc_group_init(reg, "group", worker, NULL, &o, &g, NULL));
	OK(evc_group_start(g));
	join();
	OK(evc_group_free(g));
	OK(evc_registry_free(reg));
	end();
}
END_TEST

START_TEST(from_a_job)
{
	evc_pool_opts o = { .n_threads = 1 };
	evc_job a = { .work = work }, b = a;
	struct ev_loop *l = ev_loop_new(0);
	evc_reactor *r;
	evc_pool *p;

	begin(false);
	OK(evc_reactor_attach(coord, "loop", l, &r));
	OK(evc_pool_new(coord, "pool", &o, &p));
	OK(evc_pool_submit(p, r, &a));
	OK(evc_pool_submit(p, r, &b));
	join();
	OK(evc_pool_free(p));
	end();
	ev_loop_destroy(l);
}
END_TEST

static evc_status
feed(evc_queue *q, unsigned number, void **ret_item, void *arg)
{
	(void)q;
	(void)number;
	(void)ret_item;
	(void)arg;
	here();
	return 0;
}

START_TEST(from_a_feeder)
{
	evc_queue *q;

	begin(false);
	OK(evc_queue_new(coord, "queue", 4, NULL, &q));
	OK(evc_queue_feed(q, "feeder", 1, feed, NULL, NULL));
	join();
	OK(evc_queue_free(q));
	end();
}
END_TEST

static int
call(void *arg)
{
	(void)arg;
	here();
	return 0;
}

START_TEST(from_evc_call)
{
	begin(false);
	no_member = true;
	OK(evc_call_detached(coord, "call", call, NULL, NULL, T_LIMIT * 3,
			     NULL));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	end();
}
END_TEST

static evc_status
set_up(evc_reactor *r, void *arg)
{
	(void)arg;
	own_loop = evc_reactor_loop(r);
	if (in_setup)
		here();
	else
		OK(evc_on_stop(evc_reactor_coord(r), "hook", fn, NULL,
			       &(evc_member_opts){ .reactor = r }, NULL));
	return 0;
}

/* In its setup, and in a hook there. */
START_TEST(from_a_loop_with_a_thread)
{
	begin(false);
	in_setup = _i == 0;
	own_loop = NULL;
	OK(evc_reactor_start(coord, "loop", set_up, NULL, NULL, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	end();
}
END_TEST

static void
stop_fn(void *arg)
{
	(void)arg;
	here();
}

static evc_status
wait_fn(void *arg)
{
	(void)arg;
	if (in_child)
		strayed++;
	return 0;
}

START_TEST(from_a_foreign_stop)
{
	begin(false);
	OK(evc_foreign_add(coord, "foreign", stop_fn, wait_fn, NULL, NULL,
			   NULL));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	end();
}
END_TEST

static evc_status
join_fn(void *arg)
{
	(void)arg;
	here();
	return 0;
}

START_TEST(from_the_join_of_a_runner)
{
	static const evc_runner_ops ops = { .is_running = never_true,
					    .join = join_fn };

	begin(false);
	OK(evc_runner_add(coord, "runner", &ops, NULL, NULL, NULL));
	join();
	end();
}
END_TEST

START_TEST(from_a_hook_without_a_loop)
{
	begin(false);
	OK(evc_on_stop(coord, "a", fn, NULL, NULL, NULL));
	OK(evc_on_stop(coord, "b", fn, NULL, NULL, NULL));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	end();
}
END_TEST

START_TEST(from_ended_without_a_loop)
{
	evc_scope_opts o = { .ended = answered };
	evc_coord *s;

	begin(false);
	OK(evc_scope_new(coord, "a", &o, &s));
	OK(evc_scope_ready(s));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	OK(evc_free(s));
	end();
}
END_TEST

static evc_status
is_woken(evc_coord *c, void *arg)
{
	evc_id id;
	evc_status st = evc_cancel_push(c, stop_fn, NULL, 0, &id);

	if (st < 0)
		return -st;
	atomic_store((atomic_int *)arg, 1);
	while (status == -1)
		t_sleep(0.001);
	return evc_cancel_pop(c, id);
}

START_TEST(from_a_cancel_hook)
{
	atomic_int pushed = 0;

	begin(false);
	OK(evc_thread_start(coord, "thread", is_woken, &pushed, NULL, NULL));
	UNTIL(atomic_load(&pushed));
	OK(evc_request_stop(coord, 0, NULL));
	join();
	end();
}
END_TEST

T_MAIN("fork_returns", NULL, NULL,
       T_ONCE(from_a_watcher_of_the_application),
       T_ONCE(from_a_post),
       T_ONCE(from_a_looper),
       T_ONCE(from_the_stop_of_a_looper),
       T_ONCE(from_a_stop_hook),
       T_ONCE(from_on_stop_of_a_task),
       T_ONCE(from_the_answer_of_a_join),
       T_ONCE(from_ended_of_a_scope),
       T_ONCE(from_the_watch_of_a_queue),
       T_ONCE(from_the_end_of_a_job),
       T_TIMES(of_evc_join_and_evc_reactor_run, 2),
       T_ONCE(from_a_thread),
       T_ONCE(from_a_thread_by_pthread_exit),
       T_ONCE(from_a_guard),
       T_ONCE(from_a_looper_with_a_thread),
       T_ONCE(from_a_worker),
       T_ONCE(from_a_job),
       T_ONCE(from_a_feeder),
       T_ONCE(from_evc_call),
       T_TIMES(from_a_loop_with_a_thread, 2),
       T_ONCE(from_a_foreign_stop),
       T_ONCE(from_the_join_of_a_runner),
       T_ONCE(from_a_hook_without_a_loop),
       T_ONCE(from_ended_without_a_loop),
       T_ONCE(from_a_cancel_hook))
