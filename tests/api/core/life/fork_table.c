/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children, as a table: the child of a plain thread, of a member's, of a
 * callback; in it all public calls with what is the parent's (fork_calls.h);
 * and then what a child may want: a coordinator of its own, the loop that it has
 * inherited, that loop's end, exit, exec.  Everything lives in the parent
 * meanwhile, and threads of it hold the locks as often as they can.
 *
 * A child says on stderr what was not as it should be, and leaves with 1; an
 * alarm ends one that hangs.
 */
#include "../../../support/fork_calls.h"
#include "../../../support/fork_child.h"

static struct world world;
/* ---- what lives in the parent ---- */

static evc_status
count_fn(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	called();
	return 0;
}

static size_t
described(unsigned format, char *buf, size_t n, void *arg)
{
	(void)format;
	(void)arg;
	called();
	return (size_t)snprintf(buf, n, "%s", "");
}

static void
task_on_stop(evc_task *t, void *arg)
{
	(void)arg;
	called();
	evc_task_end(t);
}

static const evc_task_class task_class = { .name = "task",
					   .on_stop = task_on_stop };

static void
answered(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	called();
}

static void
delivered(evc_message *m, evc_status why)
{
	(void)m;
	(void)why;
	called();
}

static void
popped(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)item;
	(void)why;
	(void)arg;
	called();
}

static evc_status
beat(evc_group *g, unsigned id, void *arg)
{
	(void)g;
	(void)id;
	(void)arg;
	called();
	t_sleep(0.0005);
	return 0;
}

static evc_status
work(evc_job *job)
{
	while (!evc_job_should_stop(job))
		t_sleep(0.001);
	return 0;
}

static void
done(evc_job *job, evc_status result)
{
	(void)job;
	(void)result;
	called();
}

static bool
runs(void *arg)
{
	called();
	return !evc_should_stop(((struct world *)arg)->c);
}

static const evc_runner_ops runner_ops = { .is_running = runs };

static void
woken(void *arg)
{
	(void)arg;
	called();
}

/* It has the locks as often as it can. */
static evc_status
busy(evc_coord *c, void *arg)
{
	struct world *w = arg;
	char text[2048];
	evc_id hold, hook;

	while (!evc_should_stop(c)) {
		if (evc_hold_begin(c, "busy", NULL, &hold) == 0)
			(void)evc_hold_end(c, hold);
		(void)evc_explain(c, text, sizeof(text));
		if (evc_cancel_push(c, woken, NULL, 0, &hook) == 0)
			(void)evc_cancel_pop(c, hook);
		evc_progress("busy");
		(void)evc_group_put(w->group, "metric", 1, true);
		(void)evc_queue_try_pop(w->queue, &w->item);
	}
	return 0;
}

static void
world_make(struct world *w)
{
	evc_group_opts o = { .n_threads = 2 };
	evc_member_opts own = { .flags = EVC_OWN_THREAD };
	evc_pool_opts pool = { .n_threads = 1 };
	evc_signals_opts signals = { .stop = { SIGUSR1 } };
	int i;

	note_old_fds();
	memset(w, 0, sizeof(*w));
	pthread_mutex_init(&w->mutex, NULL);
	w->self = pthread_self();
	w->loop = ev_loop_new(0);
	w->other_loop = ev_loop_new(0);
	w->third_loop = ev_loop_new(0);
	w->c = new_coord(w->loop);
	w->home = evc_home(w->c);
	w->handle = evc_loop_of(w->home);
	OK(evc_signals_start(w->c, &signals));
	OK(evc_reactor_attach(w->c, "other", w->other_loop, &w->other));
	OK(evc_reactor_foreign(w->c, "hosted", &w->fd, &w->hosted));
	OK(evc_scope_new(w->c, "scope", NULL, &w->scope));
	OK(evc_hold_begin(w->scope, "of the scope", NULL, &w->hold));
	OK(evc_scope_ready(w->scope));
	OK(evc_hold_begin(w->c, "hold", NULL, &w->hold));
	w->part.may_free = w->part.free_object = never_part;
	w->part.describe = described;
	w->part.kind = "k";
	OK(evc_part_add(w->c, &w->part));
	OK(evc_on_stop(w->c, "hook", count_fn, w, NULL, &w->hook));
	OK(evc_looper_start(w->c, "looper", 0.001, count_fn, w, NULL,
			    &w->looper));
	OK(evc_looper_start(w->c, "own", 0.001, count_fn, w, &own,
			    &w->own_looper));
	OK(evc_task_begin(w->home, &w->task, &task_class));
	OK(evc_runner_add(w->c, "runner", &runner_ops, w, NULL, &w->runner));
	OK(evc_cond_new(w->c, &w->cond));
	OK(evc_queue_new(w->c, "queue", 16, NULL, &w->queue));
	OK(evc_queue_watch(w->queue, w->home, popped, w, 0, &w->watch));
	OK(evc_pool_new(w->c, "pool", &pool, &w->pool));
	w->running.work = w->queued.work = work;
	w->running.done = w->queued.done = done;
	w->fresh_job.work = never_work;
	w->fresh_message.fn = never_delivered;
	w->message.fn = delivered;
	OK(evc_pool_submit(w->pool, w->home, &w->running));
	OK(evc_registry_new(NULL, &w->reg));
	o.coord = w->c;
	OK(evc_group_init(w->reg, "threads", beat, w, &o, &w->group, NULL));
	OK(evc_registry_start(w->reg));
	OK(evc_join_start(w->c, answered, w, NULL));
	for (i = 0; i < 2; i++)
		OK(evc_thread_start(w->c, "busy", busy, w, NULL, NULL));
	OK(evc_pool_submit(w->pool, w->home, &w->queued));
	OK(evc_queue_push(w->queue, w, 0));
	OK(evc_post_message(w->handle, &w->message));
	ev_run(w->loop, EVRUN_NOWAIT);
	/* Something is always on its way to the loop. */
	OK(evc_post_message(w->handle, &w->message));
	OK(evc_queue_push(w->queue, w, 0));
}

static void
world_end(struct world *w)
{
	evc_join_opts o = { .grace = T_LIMIT };
	evc_status st;
	evc_verdict v;

	ck_assert(!evc_should_stop(w->c));
	ck_assert_int_ne(w->task.reactor_ != NULL, 0);
	OK(evc_member_get(w->c, w->hold, &w->info));
	OK(evc_hold_end(w->c, w->hold));
	OK(evc_member_get(w->scope, 1, &w->info));
	OK(evc_hold_end(w->scope, 1));
	OK(evc_request_stop(w->c, 0, "the parent goes on"));
	st = evc_run(w->c, &o, &v);
	(void)evc_report(w->c, EVC_REPORT_TEXT, w->text, sizeof(w->text));
	ck_assert_msg(st == 0, "%d: %s", st, w->text);
	ck_assert_str_eq(v.stop.text, "the parent goes on");
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_group_free(w->group));
	OK(evc_registry_free(w->reg));
	OK(evc_pool_free(w->pool));
	while (evc_queue_try_pop(w->queue, &w->item) == 0)
		;
	OK(evc_queue_free(w->queue));
	OK(evc_cond_free(w->cond));
	OK(evc_free(w->scope));
	OK(evc_reactor_detach(w->other));
	OK(evc_reactor_detach(w->hosted));
	evc_loop_release(w->handle);
	OK(evc_free(w->c));
	ev_loop_destroy(w->loop);
	ev_loop_destroy(w->other_loop);
	ev_loop_destroy(w->third_loop);
}

/* ---- what a child does ---- */

/* A coordinator of the child's own, with or without a loop. */
static void
own_coordinator(struct ev_loop *loop)
{
	evc_coord *own = NULL;
	evc_id hold = 0;
	evc_verdict v;
	atomic_int hooks = 0;

	CHILD(evc_new(loop, NULL, &own) == 0);
	if (loop != NULL)
		CHILD(evc_on_stop(own, "hook", count_hook, &hooks, NULL,
				  NULL) == 0);
	CHILD(evc_hold_begin(own, "hold", NULL, &hold) == 0);
	CHILD(evc_hold_end(own, hold) == 0);
	CHILD(evc_guard(own, "guard", count_hook, &hooks, NULL) == 0);
	CHILD(evc_thread_start(own, "thread", count_hook, &hooks, NULL,
			       NULL) == 0);
	CHILD(evc_request_stop(own, 0, "own") == 0);
	CHILD((loop != NULL ? evc_run(own, NULL, &v) :
			      evc_join(own, NULL, &v)) == 0);
	CHILD(hooks == 2 + (loop != NULL));
	CHILD(v.stop.by == 0);
	CHILD(evc_free(own) == 0);
}

static void
check_calls(void)
{
	FORK_CHECK(fork_call, &world);
}

static void
make_own(void)
{
	struct ev_loop *loop;

	own_coordinator(NULL);
	loop = ev_loop_new(0);
	own_coordinator(loop);
	ev_loop_destroy(loop);
}

static void
keep_loop(void)
{
	struct world *w = &world;

	ev_loop_fork(w->loop);
	turn_loop(w->loop);
	own_coordinator(w->loop);
	turn_loop(w->loop);
	own_coordinator(w->loop);
	check_calls();
	ev_loop_destroy(w->loop);
	/* One that was not turned before it. */
	ev_loop_fork(w->other_loop);
	ev_loop_destroy(w->other_loop);
}

static void
destroy_loops(void)
{
	ev_loop_destroy(world.loop);
	ev_loop_destroy(world.other_loop);
}

/* ---- who forks ---- */

static void *
plain_thread(void *arg)
{
	(void)arg;
	do_fork(PLAIN);
	return NULL;
}

static evc_status
member_thread(evc_coord *c, void *arg)
{
	(void)c;
	do_fork(MEMBER);
	atomic_store((atomic_int *)arg, 1);
	return 0;
}

static void
posted(evc_reactor *r, evc_status why, void *arg)
{
	(void)why;
	(void)arg;
	do_fork(CALLBACK);
	ev_break(evc_reactor_loop(r), EVBREAK_ALL);
}

static void
fork_from(enum from from)
{
	struct world *w = &world;
	atomic_int over = 0;
	pthread_t t;

	switch (from) {
	case PLAIN:
		OK(pthread_create(&t, NULL, plain_thread, NULL));
		OK(pthread_join(t, NULL));
		break;
	case MEMBER:
		OK(evc_thread_start(w->c, "forks", member_thread, &over, NULL,
				    NULL));
		UNTIL(atomic_load(&over));
		break;
	case CALLBACK:
		OK(evc_post(w->handle, posted, w));
		ev_run(w->loop, 0);
		if (in_child)
			do_then();
		break;
	}
}

static void
rows(enum from from)
{
	world_make(&world);
	for (next_child = OWN; next_child <= EXEC; next_child++) {
		fork_from(from);
		ENDED_WELL;
	}
	world_end(&world);
}

START_TEST(L5_the_child_of_a_plain_thread)
{
	rows(PLAIN);
}
END_TEST

START_TEST(L5_the_child_of_a_member)
{
	rows(MEMBER);
}
END_TEST

START_TEST(L5_the_child_of_a_callback)
{
	rows(CALLBACK);
}
END_TEST

API_MAIN("fork_table", L5_the_child_of_a_plain_thread,
	 L5_the_child_of_a_member, L5_the_child_of_a_callback)
