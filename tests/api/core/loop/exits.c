/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that end in a callback.  What the library calls on a loop must not end
 * its thread: pthread_exit there calls abort, where it stands, and a cancellation
 * waits until the callback has returned.  A watcher of the program's may end it,
 * and leaves nothing behind.
 */
#include "../../../support/scope_util.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct ev_loop *loop;
static evc_coord *c;
static evc_reactor *r;

static _Noreturn void
leave(void)
{
	pthread_exit(NULL);
}

/* ---- all kinds of callbacks ---- */

static evc_status
fn(evc_coord *coord, void *arg)
{
	(void)coord;
	(void)arg;
	leave();
}

static evc_status
flush(evc_coord *coord, void *arg)
{
	(void)arg;
	if (evc_should_stop(coord))
		leave();
	return 0;
}

static void
with_arg(void *arg)
{
	(void)arg;
	leave();
}

static bool
is_running(void *arg)
{
	(void)arg;
	leave();
}

static void
told(evc_task *t, void *arg)
{
	(void)t;
	(void)arg;
	leave();
}

static void
posted(evc_reactor *reactor, evc_status why, void *arg)
{
	(void)reactor;
	(void)why;
	(void)arg;
	leave();
}

static void
joined(evc_coord *coord, const evc_verdict *v, void *arg)
{
	(void)coord;
	(void)v;
	(void)arg;
	leave();
}

static evc_status
work(evc_job *job)
{
	(void)job;
	return 0;
}

static void
done(evc_job *job, evc_status st)
{
	(void)job;
	(void)st;
	leave();
}

static void
popped(evc_queue *q, void *item, evc_status st, void *arg)
{
	(void)q;
	(void)item;
	(void)st;
	(void)arg;
	leave();
}

static void
looper(void)
{
	evc_member_opts o = { .reactor = r };

	OK(evc_looper_start(c, "looper", 0.001, fn, NULL, &o, NULL));
}

static void
looper_flush(void)
{
	evc_member_opts o = { .reactor = r, .flags = EVC_FLUSH };

	OK(evc_looper_start(c, "looper", 60, flush, NULL, &o, NULL));
	OK(evc_request_stop(c, 0, NULL));
}

static void
hook(void)
{
	evc_member_opts o = { .reactor = r };

	OK(evc_on_stop(c, "hook", fn, NULL, &o, NULL));
	OK(evc_request_stop(c, 0, NULL));
}

static void
task(void)
{
	static const evc_task_class cls = { .name = "task", .on_stop = told };
	static evc_task t;

	OK(evc_task_begin(r, &t, &cls));
	OK(evc_request_stop(c, 0, NULL));
}

static void
post_on(evc_reactor *reactor, evc_post_fn *f)
{
	evc_loop_ref *l = evc_loop_of(reactor);

	OK(evc_post(l, f, NULL));
	evc_loop_release(l);
}

static void
post(void)
{
	post_on(r, posted);
}

static void
evented_join(void)
{
	evc_join_opts o = { .reactor = r };

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, joined, NULL, &o));
}

static void
ended(void)
{
	evc_scope_opts o = { .ended = joined };

	ready_scope(c, "scope", &o);
	OK(evc_request_stop(c, 0, NULL));
}

static void
pool_done(void)
{
	static evc_job job = { .work = work, .done = done };
	evc_pool *p;

	OK(evc_pool_new(c, "pool", NULL, &p));
	OK(evc_pool_submit(p, r, &job));
}

static void
queue_watch(void)
{
	evc_queue *q;

	OK(evc_queue_new(c, "queue", 4, NULL, &q));
	OK(evc_queue_watch(q, r, popped, NULL, 0, NULL));
	OK(evc_queue_push(q, q, 0));
}

static void
runner_asked(void)
{
	static const evc_runner_ops ops = { .is_running = is_running };

	OK(evc_runner_add(c, "runner", &ops, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
}

static void
runner_stopped(void)
{
	static const evc_runner_ops ops = { .is_running = never_true,
					    .stop = with_arg };

	OK(evc_runner_add(c, "runner", &ops, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
}

static void
logs(int level, const char *line, const evc_reason *reason, void *arg)
{
	(void)level;
	(void)line;
	(void)reason;
	(void)arg;
	leave();
}

static void
log_hook(void)
{
	(void)evc_fail(c, EVC_INTERNAL, 0, "logged");
}

/* On the helper thread, which ends no more than a loop does. */
static void
unblock(void)
{
	evc_member_opts o = { .unblock = with_arg };

	OK(evc_hold_begin(c, "hold", &o, NULL));
	OK(evc_request_stop(c, 0, NULL));
}

static const struct {
	const char *name;
	void (*begin)(void);
} kinds[] = {
	{ "looper", looper },
	{ "looper, flushed", looper_flush },
	{ "hook", hook },
	{ "task", task },
	{ "post", post },
	{ "join", evented_join },
	{ "ended", ended },
	{ "done of a pool", pool_done },
	{ "watch of a queue", queue_watch },
	{ "is_running", runner_asked },
	{ "stop of a runner", runner_stopped },
	{ "log hook", log_hook },
	{ "unblock", unblock },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *
run_ours(void *begin)
{
	evc_config cfg = { .log = begin == (void *)log_hook ? logs : NULL };

	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord_with(loop, &cfg);
	r = evc_home(c);
	((void (*)(void))begin)();
	(void)!evc_run(c, NULL, NULL);
	return NULL;
}

static void *
run_plain(void *begin)
{
	evc_config cfg = { .log = begin == (void *)log_hook ? logs : NULL };

	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord_with(loop, &cfg);
	r = evc_home(c);
	((void (*)(void))begin)();
	for (;;) {
		ev_run(loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
	return NULL;
}

static evc_status
set_up(evc_reactor *reactor, void *begin)
{
	r = reactor;
	((void (*)(void))begin)();
	return 0;
}

/* The home is a thread's that turns nothing but the other loop. */
static void *
run_reactor(void *begin)
{
	evc_config cfg = { .log = begin == (void *)log_hook ? logs : NULL };

	c = new_coord_with(NULL, &cfg);
	OK(evc_reactor_start(c, "loop", set_up, begin, NULL, NULL));
	(void)!evc_join(c, NULL, NULL);
	return NULL;
}

/* Where pthread_exit in a callback is an abort. */
#if defined __LP64__ && (defined __x86_64__ || defined __aarch64__)
#define WALLS true
#else
#define WALLS false
#endif

static void *(*const ways[])(void *begin) = { run_ours, run_plain,
					      run_reactor };

static int
status_of(void *(*way)(void *), void (*begin)(void))
{
	struct rlimit none = { 0, 0 };
	int status = -1;
	pthread_t t;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		alarm((unsigned)T_LIMIT);
		CHILD(pthread_create(&t, NULL, way, (void *)begin) == 0);
		CHILD(pthread_join(t, NULL) == 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

START_TEST(pthread_exit_in_a_callback_is_an_abort)
{
	size_t k, w;
	int status;

	if (!WALLS)
		T_SKIP("neither amd64 nor arm64");
	for (k = 0; k < N_KINDS; k++)
		for (w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
			status = status_of(ways[w], kinds[k].begin);
			ck_assert_msg(WIFSIGNALED(status) &&
					      WTERMSIG(status) == SIGABRT,
				      "%s, way %zu: status %#x", kinds[k].name,
				      w, status);
		}
}
END_TEST

/* ---- cancellation ---- */

static atomic_int went_on;

static void
cancelled(evc_reactor *reactor, evc_status why, void *arg)
{
	(void)reactor;
	(void)why;
	(void)arg;
	(void)pthread_cancel(pthread_self());
	pthread_testcancel();
	atomic_fetch_add(&went_on, 1);
}

static void *
run_until_cancelled(void *arg)
{
	(void)arg;
	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord(loop);
	post_on(evc_home(c), cancelled);
	for (;;) {
		ev_run(loop, EVRUN_NOWAIT);
		pthread_testcancel();
	}
	return NULL;
}

START_TEST(a_cancellation_waits_for_the_callback)
{
	void *result = NULL;
	pthread_t t;

	OK(pthread_create(&t, NULL, run_until_cancelled, NULL));
	OK(pthread_join(t, &result));
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(atomic_load(&went_on), 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ev_loop_destroy(loop);
	OK(evc_free(c));
}
END_TEST

static void
cancelled_in_the_log(int level, const char *line, const evc_reason *reason,
		     void *arg)
{
	(void)level;
	(void)line;
	(void)reason;
	(void)arg;
	pthread_testcancel();
	atomic_fetch_add(&went_on, 1);
}

static evc_status
log_a_line(evc_coord *coord, void *arg)
{
	(void)arg;
	(void)pthread_cancel(pthread_self());
	evc_log(coord, EVC_LOG_INFO, NULL, "a line");
	pthread_testcancel();
	return 0;
}

/* A hook that writes is where cancellations are waited for. */
START_TEST(a_cancellation_waits_for_the_log_hook)
{
	evc_config cfg = { .log = cancelled_in_the_log };

	c = new_coord_with(NULL, &cfg);
	OK(evc_thread_start(c, "logs", log_a_line, NULL, NULL, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	ck_assert_int_ge(atomic_load(&went_on), 1);
	OK(evc_free(c));
}
END_TEST

/* ---- watchers of the program's ---- */

static void
on_time(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	leave();
}

static atomic_int n_told, n_dropped;

static void
count_told(evc_coord *coord, const evc_verdict *v, void *arg)
{
	(void)coord;
	(void)arg;
	ck_assert_int_eq(v->code, EVC_CANCELLED);
	atomic_fetch_add(&n_told, 1);
}

static void
count_dropped(evc_reactor *reactor, evc_status why, void *arg)
{
	(void)reactor;
	(void)arg;
	ck_assert_int_eq(why, EVC_CANCELLED);
	atomic_fetch_add(&n_dropped, 1);
}

/* The last turn of that loop. */
static void
post_and_leave(struct ev_loop *l, ev_timer *w, int revents)
{
	(void)l;
	(void)w;
	(void)revents;
	post_on(r, count_dropped);
	leave();
}

static evc_status
begin_things(evc_reactor *reactor, void *arg)
{
	static const evc_task_class cls = { .name = "task" };
	static evc_task t;
	evc_join_opts o = { .reactor = reactor };

	r = reactor;
	OK(evc_task_begin(r, &t, &cls));
	OK(evc_join_start(c, count_told, NULL, &o));
	ev_timer_init((ev_timer *)arg, post_and_leave, 0.01, 0.);
	ev_timer_start(evc_reactor_loop(r), arg);
	return 0;
}

/* Its loop ends with the thread, and so does all that lives there. */
START_TEST(a_loop_of_ours_goes_with_its_thread)
{
	ev_timer timer;
	evc_verdict v = { 0 };

	c = new_coord(NULL);
	OK(evc_reactor_start(c, "loop", begin_things, &timer, NULL, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	HAS(v.error.text, "ended without a result");
	ck_assert_int_eq(atomic_load(&n_told), 1);
	ck_assert_int_eq(atomic_load(&n_dropped), 1);
	OK(evc_free(c));
}
END_TEST

static void *
run_until_exit(void *arg)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	c = new_coord(loop);
	ev_timer_init((ev_timer *)arg, on_time, 0.01, 0.);
	ev_timer_start(loop, arg);
	(void)!evc_run(c, NULL, NULL);
	return NULL;
}

/* The loop is the program's, and so is what becomes of it. */
START_TEST(a_run_that_is_left_leaves_nothing_behind)
{
	ev_timer timer;
	pthread_t t;

	OK(pthread_create(&t, NULL, run_until_exit, &timer));
	OK(pthread_join(t, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ev_loop_destroy(loop);
	OK(evc_free(c));
}
END_TEST

API_MAIN("exits", pthread_exit_in_a_callback_is_an_abort,
	 a_cancellation_waits_for_the_callback,
	 a_cancellation_waits_for_the_log_hook,
	 a_loop_of_ours_goes_with_its_thread,
	 a_run_that_is_left_leaves_nothing_behind)
