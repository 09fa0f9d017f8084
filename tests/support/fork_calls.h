/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each public call of libevcoord, made in a fork child with what is its
 * parent's, and how it has to answer there: the column "child" of
 * evcoord-threads(7).
 */
#ifndef TESTS_SUPPORT_FORK_CALLS_H
#define TESTS_SUPPORT_FORK_CALLS_H

#include "fork_util.h"

#include <evcoord/unstable/inner_loop.h>

#include <signal.h>

/* What the parent has. */
struct world {
	struct ev_loop *loop, *other_loop, *third_loop;
	evc_coord *c, *scope;
	evc_reactor *home, *other, *hosted;
	int fd;
	evc_loop_ref *handle;
	evc_task task, fresh_task;
	evc_message message, fresh_message;
	evc_id hold, hook, looper, own_looper, runner, watch;
	evc_part part;
	evc_cond *cond;
	evc_queue *queue;
	evc_pool *pool;
	evc_job running, queued, fresh_job;
	evc_registry *reg;
	evc_group *group;
	pthread_mutex_t mutex;
	pthread_t self;
	/* Room for answers that a refused call leaves alone. */
	evc_verdict v;
	evc_reason reason;
	evc_member_info info;
	evc_queue_info queue_info;
	evc_pool_info pool_info;
	evc_group_info group_info;
	evc_worker_info worker_info;
	evc_worker_error worker_error;
	evc_metric metric;
	evc_id id;
	void *item;
	char text[4096];
};

/* ---- functions that are never called ---- */

static MAYBE_UNUSED evc_status
never_fn(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED void
never_void(void *arg)
{
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED evc_status
never_part(evc_part *p)
{
	(void)p;
	NEVER;
	return 0;
}

static MAYBE_UNUSED int
never_int(void *arg)
{
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED bool
never_bool(void *arg)
{
	(void)arg;
	NEVER;
	return false;
}

static MAYBE_UNUSED void
never_answer(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED void
never_posted(evc_reactor *r, evc_status why, void *arg)
{
	(void)r;
	(void)why;
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED void
never_delivered(evc_message *m, evc_status why)
{
	(void)m;
	(void)why;
	NEVER;
}

static MAYBE_UNUSED evc_status
never_set_up(evc_reactor *r, void *arg)
{
	(void)r;
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED bool
never_each(const evc_member_info *m, void *arg)
{
	(void)m;
	(void)arg;
	NEVER;
	return false;
}

static MAYBE_UNUSED bool
never_group(evc_group *g, void *arg)
{
	(void)g;
	(void)arg;
	NEVER;
	return false;
}

static MAYBE_UNUSED void
never_item(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)item;
	(void)why;
	(void)arg;
	NEVER;
}

static MAYBE_UNUSED evc_status
never_feed(evc_queue *q, unsigned n, void **ret_item, void *arg)
{
	(void)q;
	(void)n;
	(void)ret_item;
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED evc_status
never_work(evc_job *job)
{
	(void)job;
	NEVER;
	return 0;
}

static MAYBE_UNUSED evc_status
never_worker(evc_group *g, unsigned id, void *arg)
{
	(void)g;
	(void)id;
	(void)arg;
	NEVER;
	return 0;
}

static MAYBE_UNUSED evc_status
never_wait(void *arg)
{
	(void)arg;
	NEVER;
	return 0;
}

static const evc_runner_ops never_ops MAYBE_UNUSED = {
	.is_running = never_bool,
};
static const evc_task_class never_class MAYBE_UNUSED = { .name = "task" };

/* ---- how they answer ---- */

/* A text that says that this is a fork child. */
#define SAYS(call) \
	((call) > 0 && (strstr(w->text, "child") != NULL || \
			strstr(w->text, "fork") != NULL))

/* The name, and what is true of its answer. */
#define FORK_CALLS(X) \
	X(evc_new, true) /* see fork_table.c */ \
	X(evc_free, REF(evc_free(w->c)) && evc_free(NULL) == 0) \
	X(evc_finish, evc_finish(w->c, 0) == 0) \
	X(evc_request_stop_at, \
	  REF(evc_request_stop_at(w->c, 0, "no", NULL, 0, NULL))) \
	X(evc_request_stop, REF((evc_request_stop)(w->c, 0, "no"))) \
	X(evc_fail_at, \
	  REF(evc_fail_at(w->c, EVC_INTERNAL, 0, NULL, 0, NULL, "no"))) \
	X(evc_fail, REF((evc_fail)(w->c, EVC_INTERNAL, 0, "no"))) \
	X(evc_should_stop, !evc_should_stop(w->c)) \
	X(evc_is_clean, evc_is_clean(w->c, 0)) \
	X(evc_wait_for_stop, !evc_wait_for_stop(w->c, INFINITY)) \
	X(evc_stop_fd, REF(evc_stop_fd(w->c))) \
	X(evc_clear_stop, REF(evc_clear_stop(w->c))) \
	X(evc_raise_requested, REF(evc_raise_requested(w->c, &w->reason))) \
	X(evc_reason_get, REF(evc_reason_get(w->c, 0, &w->reason))) \
	X(evc_on_stop, \
	  REF(evc_on_stop(w->c, "h", never_fn, NULL, NULL, &w->id))) \
	X(evc_run, REF(evc_run(w->c, NULL, &w->v))) \
	X(evc_join, REF(evc_join(w->c, NULL, &w->v)) && \
		    REF(evc_join(w->scope, NULL, &w->v))) \
	X(evc_join_start, REF(evc_join_start(w->c, never_answer, NULL, NULL))) \
	X(evc_join_step, REF(evc_join_step(w->c, NULL, NULL, &w->v))) \
	X(evc_join_fd, REF(evc_join_fd(w->c))) \
	X(evc_joined, !evc_joined(w->c)) \
	X(evc_escalation_set, REF(evc_escalation_set(w->c, &(evc_escalation_opts){ 0 }))) \
	X(evc_progress, DONE(evc_progress("child"))) \
	X(evc_progress_get, \
	  REF(evc_progress_get(w->c, w->hold, NULL, NULL))) \
	X(evc_extend_stop, REF(evc_extend_stop(w->c, 0, 1, "no", NULL))) \
	X(evc_stop_left, evc_stop_left(w->c) == 0) \
	X(evc_abandon, REF(evc_abandon(w->c))) \
	X(evc_looper_start, \
	  REF(evc_looper_start(w->c, "l", 1, never_fn, NULL, NULL, &w->id))) \
	X(evc_looper_trigger, REF(evc_looper_trigger(w->c, w->looper)) && \
			      REF(evc_looper_trigger(w->c, w->own_looper))) \
	X(evc_looper_set_interval, \
	  REF(evc_looper_set_interval(w->c, w->looper, 1))) \
	X(evc_looper_tick, REF(evc_looper_tick(w->c, &w->id, NULL, NULL))) \
	X(evc_member_pause, REF(evc_member_pause(w->c, w->looper))) \
	X(evc_member_resume, REF(evc_member_resume(w->c, w->looper))) \
	X(evc_thread_start, \
	  REF(evc_thread_start(w->c, "t", never_fn, NULL, NULL, &w->id))) \
	X(evc_register_thread, \
	  REF(evc_register_thread(w->c, "t", w->self, NULL, &w->id))) \
	X(evc_guard, REF(evc_guard(w->c, "g", never_fn, NULL, NULL))) \
	X(evc_hold_begin, REF(evc_hold_begin(w->c, "h", NULL, &w->id))) \
	X(evc_hold_end, REF(evc_hold_end(w->c, w->hold))) \
	X(evc_task_begin, \
	  REF(evc_task_begin(w->home, &w->fresh_task, &never_class))) \
	X(evc_task_end, DONE(evc_task_end(&w->task))) \
	X(evc_task_reactor, evc_task_reactor(&w->task) == w->home) \
	X(evc_task_coord, evc_task_coord(&w->task) == w->c) \
	X(evc_member_remove, REF(evc_member_remove(w->c, w->hook)) && \
			     REF(evc_member_remove(w->c, w->own_looper))) \
	X(evc_member_stop, REF(evc_member_stop(w->c, w->looper, 0, NULL))) \
	X(evc_member_wait, REF(evc_member_wait(w->c, w->runner, 0, NULL))) \
	X(evc_member_get, REF(evc_member_get(w->c, w->hold, &w->info))) \
	X(evc_member_each, REF(evc_member_each(w->c, never_each, NULL))) \
	X(evc_explain, SAYS(evc_explain(w->c, w->text, sizeof(w->text)))) \
	X(evc_report, \
	  SAYS(evc_report(w->c, EVC_REPORT_TEXT, w->text, sizeof(w->text))) && \
	  SAYS(evc_report(w->c, EVC_REPORT_JSON, w->text, sizeof(w->text))) && \
	  SAYS(evc_report(w->c, EVC_REPORT_METRICS, w->text, \
			  sizeof(w->text)))) \
	X(evc_dump, REF(evc_dump(w->c, 2, EVC_REPORT_TEXT))) \
	X(evc_dump_signal, \
	  REF(evc_dump_signal(w->c, SIGUSR2, 2, EVC_REPORT_TEXT))) \
	X(evc_stack_signal, \
	  evc_stack_signal(SIGRTMIN + 7) == \
		  (HAS_BACKTRACE ? 0 : -EVC_UNIMPLEMENTED)) \
	X(evc_stack_of, evc_stack_of(getpid(), NULL, 0) > 0) \
	X(evc_log_stderr, true) /* it writes to standard error */ \
	X(evc_log_syslog, true) /* it writes to the system's log */ \
	X(evc_last_error, evc_last_error() != NULL) \
	X(evc_refuse, evc_refuse(-EVC_UNKNOWN, "no") == -EVC_UNKNOWN) \
	X(evc_refuse_setup, \
	  evc_refuse_setup(w->c, "child", -EVC_UNKNOWN) == -EVC_UNKNOWN) \
	X(evc_log, DONE(evc_log(w->c, EVC_LOG_INFO, NULL, "child"))) \
	X(evc_log_flush, evc_log_flush(w->c, 1)) \
	X(evc_part_add, REF(evc_part_add(w->c, &(evc_part){ \
		.may_free = never_part, .free_object = never_part }))) \
	X(evc_part_remove, REF(evc_part_remove(&w->part))) \
	X(evc_may_wait, REF(evc_may_wait(w->c, "child"))) \
	X(evc_status_name, strcmp(evc_status_name(0), "OK") == 0) \
	X(evc_version, evc_version()[0] != '\0') \
	X(evc_pool_new, REF(evc_pool_new(w->c, "p", NULL, &w->pool))) \
	X(evc_pool_free, REF(evc_pool_free(w->pool))) \
	X(evc_pool_submit, \
	  REF(evc_pool_submit(w->pool, w->home, &w->fresh_job))) \
	X(evc_pool_submit_wait, \
	  REF(evc_pool_submit_wait(w->pool, w->home, &w->fresh_job, 1e9))) \
	X(evc_pool_submit_to, \
	  REF(evc_pool_submit_to(w->pool, w->handle, &w->fresh_job, 0)) && \
		  REF(evc_pool_submit_to(w->pool, w->handle, &w->fresh_job, \
					 1e9))) \
	X(evc_job_cancel, REF(evc_job_cancel(&w->queued))) \
	X(evc_job_should_stop, !evc_job_should_stop(&w->running)) \
	X(evc_pool_resize, REF(evc_pool_resize(w->pool, 2))) \
	X(evc_pool_get, REF(evc_pool_get(w->pool, &w->pool_info))) \
	X(evc_pool_scope, evc_pool_scope(w->pool) != NULL) \
	X(evc_loop_of, DONE(evc_loop_release(evc_loop_of(w->home)))) \
	X(evc_loop_release, DONE(evc_loop_release(NULL))) \
	X(evc_loop_reactor, evc_loop_reactor(w->handle) == w->home) \
	X(evc_loop_enter, evc_loop_enter(w->handle) == NULL && \
			  fork_refused(-EVC_FAILED_PRECONDITION)) \
	X(evc_loop_leave, true) /* nothing was entered */ \
	X(evc_post, REF(evc_post(w->handle, never_posted, NULL))) \
	X(evc_post_message, REF(evc_post_message(w->handle, &w->fresh_message))) \
	X(evc_queue_new, REF(evc_queue_new(w->c, "q", 4, NULL, &w->queue))) \
	X(evc_queue_free, REF(evc_queue_free(w->queue))) \
	X(evc_queue_push, REF(evc_queue_push(w->queue, w, INFINITY))) \
	X(evc_queue_pop, REF(evc_queue_pop(w->queue, &w->item, INFINITY))) \
	X(evc_queue_try_pop, REF(evc_queue_try_pop(w->queue, &w->item))) \
	X(evc_queue_close, REF(evc_queue_close(w->queue))) \
	X(evc_queue_cancel, REF(evc_queue_cancel(w->queue))) \
	X(evc_queue_reopen, REF(evc_queue_reopen(w->queue))) \
	X(evc_queue_drain, REF(evc_queue_drain(w->queue, INFINITY))) \
	X(evc_queue_get, REF(evc_queue_get(w->queue, &w->queue_info))) \
	X(evc_queue_watch, \
	  REF(evc_queue_watch(w->queue, w->home, never_item, NULL, 0, \
			      &w->id))) \
	X(evc_queue_watch_on, \
	  REF(evc_queue_watch_on(w->queue, w->handle, never_item, NULL, 0, \
				 &w->id))) \
	X(evc_queue_unwatch, REF(evc_queue_unwatch(w->queue, w->watch))) \
	X(evc_queue_feed, \
	  REF(evc_queue_feed(w->queue, "f", 1, never_feed, NULL, NULL))) \
	X(evc_home, evc_home(w->c) == w->home) \
	X(evc_reactor_attach, \
	  REF(evc_reactor_attach(w->c, "x", w->third_loop, &w->other))) \
	X(evc_reactor_foreign, \
	  REF(evc_reactor_foreign(w->c, "x", &w->fd, &w->other))) \
	X(evc_reactor_turn, REF(evc_reactor_turn(w->hosted))) \
	X(evc_reactor_host_runs, REF(evc_reactor_host_runs(w->hosted, true))) \
	X(evc_reactor_inner_loop, \
	  evc_reactor_inner_loop(w->home) == w->loop) \
	X(evc_reactor_run, REF(evc_reactor_run(w->other))) \
	X(evc_reactor_start, \
	  REF(evc_reactor_start(w->c, "r", never_set_up, NULL, NULL, \
				&w->other))) \
	X(evc_reactor_detach, REF(evc_reactor_detach(w->other))) \
	X(evc_reactor_loop, evc_reactor_loop(w->home) == w->loop) \
	X(evc_reactor_is_here, !evc_reactor_is_here(w->home)) \
	X(evc_reactor_coord, evc_reactor_coord(w->home) == w->c) \
	X(evc_runner_add, \
	  REF(evc_runner_add(w->c, "r", &never_ops, NULL, NULL, &w->id))) \
	X(evc_runner_done, REF(evc_runner_done(w->c, w->runner, 0))) \
	X(evc_all_stopped, !evc_all_stopped(w->c)) \
	X(evc_child_add, \
	  REF(evc_child_add(w->c, "c", getppid(), NULL, &w->id))) \
	X(evc_foreign_add, \
	  REF(evc_foreign_add(w->c, "f", never_void, never_wait, NULL, NULL, \
			      &w->id))) \
	X(evc_scope_new, \
	  REF(evc_scope_new(w->c, "s", NULL, &(evc_coord *){ NULL }))) \
	X(evc_scope_ready, REF(evc_scope_ready(w->scope))) \
	X(evc_scope_parent, evc_scope_parent(w->scope) == w->c) \
	X(evc_request_drain, REF(evc_request_drain(w->c, 1, "no"))) \
	X(evc_should_drain, !evc_should_drain(w->c)) \
	X(evc_signals_start, \
	  REF(evc_signals_start(w->c, \
				&(evc_signals_opts){ .stop = { SIGUSR2 } }))) \
	X(evc_signals_pending, evc_signals_pending(w->c) == 0) \
	X(evc_signals_raise, (evc_signals_raise(0), true)) \
	X(evc_signals_stop, REF(evc_signals_stop(w->c))) \
	X(evc_systemd_start, REF(evc_systemd_start(w->c, NULL))) \
	X(evc_systemd_ready, REF(evc_systemd_ready(w->c, "no"))) \
	X(evc_systemd_reloading, REF(evc_systemd_reloading(w->c, "no"))) \
	X(evc_systemd_notify, REF(evc_systemd_notify(w->c, "STATUS=no"))) \
	X(evc_systemd_stop, REF(evc_systemd_stop(w->c))) \
	X(evc_trace_start, REF(evc_trace_start(w->c, 100))) \
	X(evc_trace_stop, REF(evc_trace_stop(w->c))) \
	X(evc_trace_write, REF(evc_trace_write(w->c, 2, EVC_TRACE_JSON))) \
	X(evc_sleep, REF(evc_sleep(w->c, 1e9))) \
	X(evc_wait_fd, REF(evc_wait_fd(w->c, 0, POLLIN, INFINITY, NULL))) \
	X(evc_poll, REF(evc_poll(w->c, NULL, 0, INFINITY, NULL))) \
	X(evc_cond_new, REF(evc_cond_new(w->c, &w->cond))) \
	X(evc_cond_free, REF(evc_cond_free(w->cond))) \
	X(evc_cond_signal, DONE(evc_cond_signal(w->cond))) \
	X(evc_cond_broadcast, DONE(evc_cond_broadcast(w->cond))) \
	X(evc_cond_wait, \
	  pthread_mutex_lock(&w->mutex) == 0 && \
		  REF(evc_cond_wait(w->cond, &w->mutex, never_bool, NULL, \
				     INFINITY)) && \
		  pthread_mutex_unlock(&w->mutex) == 0) \
	X(evc_cancel_push, \
	  REF(evc_cancel_push(w->c, never_void, NULL, 0, &w->id))) \
	X(evc_cancel_pop, REF(evc_cancel_pop(w->c, 1))) \
	X(evc_kick_signal, \
	  evc_kick_signal(SIGRTMIN + 8) != -EVC_FAILED_PRECONDITION) \
	X(evc_call_detached, \
	  REF(evc_call_detached(w->c, "c", never_int, NULL, NULL, INFINITY, NULL))) \
	X(evc_call_detached_with, \
	  REF(evc_call_detached_with(w->c, never_int, NULL, INFINITY, NULL, NULL)) && \
	  REF(evc_call_detached_with(w->c, never_int, NULL, 0, \
				     &(evc_call_opts){ .no_wait = true }, NULL))) \
	X(evc_group_init, \
	  REF(evc_group_init(w->reg, "g", never_worker, NULL, NULL, NULL, \
			       NULL))) \
	X(evc_group_start, REF(evc_group_start(w->group))) \
	X(evc_group_stop, REF(evc_group_stop(w->group, NULL))) \
	X(evc_group_wait_finish, \
	  !evc_group_wait_finish(w->group, INFINITY)) \
	X(evc_group_is_active, evc_group_is_active(w->group)) \
	X(evc_group_ids, evc_group_ids(w->group, NULL, 0) == 0) \
	X(evc_group_resize, REF(evc_group_resize(w->group, 3))) \
	X(evc_group_pause, REF(evc_group_pause(w->group))) \
	X(evc_group_resume, REF(evc_group_resume(w->group))) \
	X(evc_group_free, REF(evc_group_free(w->group))) \
	X(evc_group_get, REF(evc_group_get(w->group, &w->group_info))) \
	X(evc_group_worker_get, \
	  REF(evc_group_worker_get(w->group, 0, &w->worker_info))) \
	X(evc_group_error_get, \
	  REF(evc_group_error_get(w->group, 0, &w->worker_error))) \
	X(evc_group_scope, evc_group_scope(w->group) != NULL) \
	X(evc_group_fail_at, \
	  REF(evc_group_fail_at(w->group, EVC_INTERNAL, 0, NULL, 0, NULL, \
				  "no"))) \
	X(evc_group_fail, \
	  REF((evc_group_fail)(w->group, EVC_INTERNAL, 0, "no"))) \
	X(evc_group_registry, evc_group_registry(w->group) == w->reg) \
	X(evc_group_put, REF(evc_group_put(w->group, "m", 1, true))) \
	X(evc_group_metrics, \
	  evc_group_metrics(w->group, &w->metric, 1) == 0) \
	X(evc_group_metric, evc_group_metric(w->group, "m") == 0) \
	X(evc_group_metrics_reset, REF(evc_group_metrics_reset(w->group))) \
	X(evc_registry_new, true) /* with the next */ \
	X(evc_registry_free, fork_own_registry() && \
			     REF(evc_registry_free(w->reg))) \
	X(evc_registry_configure, \
	  evc_registry_configure(&(evc_registry_opts){ 0 }) != 0 || true) \
	X(evc_registry_default, evc_registry_default() != NULL) \
	X(evc_registry_start, REF(evc_registry_start(w->reg))) \
	X(evc_registry_stop, REF(evc_registry_stop(w->reg, NULL))) \
	X(evc_registry_stop_name, \
	  REF(evc_registry_stop_name(w->reg, "threads", NULL))) \
	X(evc_registry_ids, evc_registry_ids(w->reg, NULL, 0) == 0) \
	X(evc_registry_each, REF(evc_registry_each(w->reg, never_group, NULL))) \
	X(evc_registry_coord, evc_registry_coord(w->reg) == NULL) \
	X(evc_registry_atexit, evc_registry_atexit(true) == 0)

static MAYBE_UNUSED bool
fork_own_registry(void)
{
	evc_registry *own = NULL;

	return evc_registry_new(NULL, &own) == 0 &&
	       evc_registry_free(own) == 0;
}

FORK_CALLS(FORK_FUNCTION)

static const struct fork_row fork_call[] MAYBE_UNUSED = {
	FORK_CALLS(FORK_ROW)
};

#endif
