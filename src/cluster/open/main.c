/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main of workers that are processes: from the environment to the end of
 * the process.
 * The coordinator's death ends a worker in two ways: the kernel kills the
 * worker when the thread that started it ends, and the worker's streams end.
 * Called by: the program (evc_worker_main, evc_worker_is).
 * Locks: none here; is_worker is atomic.
 */
#include "cluster/worker/process.h"

#include <signal.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/reserved.h"
#include "base/self.h"
#include "cluster/open/open.h"

#define WELCOME_MOST 4096

/* atomic: main -> any thread. evc_worker_main has taken the variable out of the
   environment, so that no child of this worker takes itself for a worker. */
static _Atomic uint32_t is_worker;

struct start {
	int protocol, data, control;
	pid_t parent;
};

static bool
read_number(const char **at, int *ret)
{
	char *end;
	long n = strtol(*at, &end, 10);

	if (end == *at || n < 0 || n > INT_MAX || (*end != ' ' && *end != '\0'))
		return false;
	*at = end;
	*ret = (int)n;
	return true;
}

/* false: the variable is missing. */
static bool
read_variable(struct start *ret)
{
	const char *at = getenv(WORKER_VARIABLE);
	int parent = 0;

	memset(ret, 0, sizeof *ret);
	if (at == NULL)
		return false;
	if (!read_number(&at, &ret->protocol) ||
	    !read_number(&at, &ret->data) ||
	    !read_number(&at, &ret->control) || !read_number(&at, &parent))
		ret->protocol = 0;
	ret->parent = parent;
	return true;
}

static void
fork_reset(void)
{
	sync_store(&is_worker, 0);
}

bool
evc_worker_is(void)
{
	struct start s;

	return sync_load(&is_worker) != 0 || read_variable(&s);
}

/* ---- the beginning ---- */

/* The streams of *ret are in p. 0, or refused. */
static evc_status
take_streams(struct worker_process *p, struct start *ret)
{
	struct start s;

	if (sync_load(&is_worker) != 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: this worker has called "
				  "it before");
	if (!read_variable(&s))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: this process was not "
				  "started as a worker");
	if (s.protocol != WORKER_PROTOCOL)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: " WORKER_VARIABLE
				  " is of version %d, and only %d is known "
				  "here",
				  s.protocol, WORKER_PROTOCOL);
	if (!evc__fork_watch())
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_worker_main: no memory");
	p->data = s.data;
	p->control = s.control;
	if (sync_fd_cloexec(p->data) < 0 || sync_fd_cloexec(p->control) < 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: the streams of "
				  WORKER_VARIABLE " are not there");
	sync_store(&is_worker, 1);
	evc__fork_also(fork_reset);
	unsetenv(WORKER_VARIABLE);
	*ret = s;
	return 0;
}

/* End with the coordinator.  0; > 0: the coordinator is gone; < 0: refused. */
static evc_status
tie_to_parent(pid_t coordinator)
{
	pid_t parent;

	/* The request comes first: a parent that dies in between is not
	   missed. */
	if (sync_parent_death(SIGKILL) < 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: the parent-death signal "
				  "cannot be set: %s", strerror(errno));
	parent = getppid();
	if (parent == coordinator)
		return 0;
	/* The kernel has no number for a parent outside. */
	if (parent == 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: this worker is in another "
				  "pid namespace than its coordinator");
	evc_refuse(-EVC_UNAVAILABLE,
		   "evc_worker_main: the coordinator is gone, or it has "
		   "started a script that did not exec this");
	return EVC_UNAVAILABLE;
}

/* Tell the coordinator why this process is no worker.  Returns st. */
static evc_status
report_failure(struct worker_process *p, evc_status st, const char *text)
{
	struct frame_failed f = { .code = st < 0 ? -st : st, .text = text };

	if (f.code > 255)
		f.code = EVC_UNKNOWN;
	if (evc__frame_put_failed(&p->out.own, WELCOME_MOST, &f) == 0)
		evc__worker_flush(p);
	return st;
}

/* Read the first frame. */
static evc_status
read_welcome(struct worker_process *p, struct frame_welcome *ret)
{
	struct frame f;
	int got = evc__worker_next(p, &f);

	if (got == 0) {
		evc_refuse(-EVC_UNAVAILABLE,
			   "evc_worker_main: the coordinator is gone");
		return EVC_UNAVAILABLE;
	}
	if (got > 0 && f.type != FRAME_WELCOME)
		got = evc_refuse(-EVC_INVALID_ARGUMENT,
				 "something before its welcome");
	if (got > 0)
		got = evc__frame_get_welcome(&f, ret);
	if (got < 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_worker_main: a message of the coordinator "
				  "cannot be read: %s",
				  strdupa(evc_last_error()));
	return 0;
}

static evc_status
make_coordinator(struct worker_process *p, const struct frame_welcome *welcome)
{
	const evc_config config = { .name = welcome->name,
				    .log = evc_log_stderr };
	struct worker_env env = { .functions = p->functions,
				  .n_functions = p->n_functions,
				  .index = welcome->index,
				  .name = welcome->name,
				  .generation = welcome->generation,
				  .variable = evc__worker_variable,
				  .note = evc__additions_note,
				  .settle = evc__additions_settle,
				  .kept = evc__worker_kept,
				  .arg = p };
	evc_status st = evc_new(NULL, &config, &p->coord);

	if (st < 0)
		return st;
	env.coord = p->coord;
	/* The first unwinding loads what it needs, under a lock of the dynamic
	   linker that a function might hold later. */
	(void)evc_stack_of(p->tid, NULL, 0);
	p->max_frame = (size_t)welcome->max_frame;
	if (!evc__speeds_init(p))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_worker_main: no memory");
	st = evc__worker_new(&env, &p->w);
	if (st == 0)
		st = evc__worker_control_start(p);
	return st;
}

/* ---- between the beginning and the end ---- */

/* A function of the program's may have forked, and come back in the child.
   Streams and kept objects are the parent's there. */
static bool
is_inherited(const struct worker_process *p)
{
	return evc__forked_since(p->fork_generation);
}

static evc_status
start_program(struct worker_process *p, const evc_worker_opts *o)
{
	evc_status st = o != NULL && o->start != NULL ?
				o->start(p->coord, o->arg) :
				0;
	evc_reason why;

	if (st == 0 || is_inherited(p))
		return 0;
	st = st < 0 ? -st : st;
	st = st > 255 ? EVC_UNKNOWN : st;
	/* The program may have said more. */
	if (evc_raise_requested(p->coord, &why) == st && why.text[0] != '\0')
		return report_failure(p, st, why.text);
	return report_failure(p, st,
			      "the start of its evc_worker_opts has failed");
}

static evc_status
greet_and_serve(struct worker_process *p)
{
	/* In front of all other words. */
	if (evc__frame_put_hello(&p->out.own, p->max_frame, p->functions,
				 p->n_functions) < 0)
		return report_failure(p, -EVC_RESOURCE_EXHAUSTED,
				      evc_last_error());
	return evc__worker_serve(p);
}

static evc_status
refuse_child(struct worker_process *p)
{
	sync_fd_close(p->data);
	sync_fd_close(p->control);
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "evc_worker_main: this is a fork child of the worker");
}

static void
end_worker(struct worker_process *p)
{
	evc_verdict v;
	evc_status late;

	if (p->coord != NULL) {
		(void)(evc_request_stop)(p->coord, 0, "the worker ends");
		evc__worker_control_end(p);
		/* The cluster kills a worker with a member that does not
		   end. */
		late = evc_join(p->coord, NULL, &v);
		(void)late;
	}
	evc__worker_free(evc__worker_take(p));
	(void)evc_free(p->coord);
	evc__speeds_free(p);
	evc__kept_clear(&p->kept);
	bytes_free(&p->in);
	bytes_free(&p->retired);
	evc__outgoing_free(&p->out);
	sync_lock_destroy(&p->lock);
	sync_lock_destroy(&p->additions.lock);
	sync_fd_close(p->data);
	sync_fd_close(p->control);
}

/* A function has ended the main thread.  The process would go on with its other
   threads, also those of the library, and look alive: so the process ends here. */
static void
lose_main_thread(void *arg)
{
	struct worker_process *p = arg;

	sync_unwound();
	if (is_inherited(p))
		return;
	evc_log(p->coord, EVC_LOG_ERROR, NULL,
		"a function has ended the thread of this worker");
	(void)evc_log_flush(p->coord, 1);
	_exit(EXIT_FAILURE);
}

/* Not inlined: local variables must not stand beside a cleanup handler's. */
static __attribute__((noinline)) evc_status
serve_guarded(struct worker_process *p)
{
	evc_status st;

	pthread_cleanup_push(lose_main_thread, p);
	st = greet_and_serve(p);
	pthread_cleanup_pop(0);
	return st;
}

/* 0, > 0 or refused; end_worker() frees all that was made. */
static evc_status
run_worker(struct worker_process *p, const evc_worker_opts *o)
{
	struct frame_welcome welcome;
	evc_status st = evc__functions_check(p->functions, p->n_functions);

	if (st < 0)
		return report_failure(p, st, evc_last_error());
	st = read_welcome(p, &welcome);
	if (st < 0)
		return report_failure(p, st, evc_last_error());
	if (st == 0) {
		st = make_coordinator(p, &welcome);
		evc__worker_used(p);
		if (st < 0)
			return report_failure(p, st, evc_last_error());
	}
	if (st == 0)
		st = start_program(p, o);
	if (st != 0 || is_inherited(p))
		return st;
	st = serve_guarded(p);
	if (is_inherited(p))
		return st;
	/* Kept objects go before the program's own data. */
	evc__worker_free(evc__worker_take(p));
	if (o != NULL && o->stop != NULL && !is_inherited(p))
		o->stop(p->coord, o->arg);
	return st;
}

evc_status
evc_worker_main(const evc_function *functions, unsigned n,
		const evc_worker_opts *opts)
{
	struct worker_process p = { .functions = functions,
				    .n_functions = n,
				    .max_frame = WELCOME_MOST };
	struct start s = { 0 };
	evc_status st;

	if (opts != NULL && !RESERVED_IS_ZERO(opts->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_worker_main: options that were not "
				  "zeroed");
	if (opts != NULL && opts->uri != NULL && !evc_worker_is())
		return evc__worker_node(functions, n, opts);
	p.tid = evc__tid();
	p.fork_generation = sync_load_relaxed(&evc__fork_generation);
	st = take_streams(&p, &s);
	if (st < 0)
		return st;
	st = tie_to_parent(s.parent);
	if (st != 0) {
		/* The coordinator may be there after all. */
		report_failure(&p, st, evc_last_error());
		evc__outgoing_free(&p.out);
		return st;
	}
	sync_lock_init(&p.lock);
	sync_lock_init(&p.additions.lock);
	sync_store_sc(&p.heard, 1);
	st = run_worker(&p, opts);
	if (is_inherited(&p))
		return refuse_child(&p);
	end_worker(&p);
	return st;
}
