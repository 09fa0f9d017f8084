/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * S4: a signal handler may ask for the stop whatever it has interrupted.
 */
#include "faults.h"

#include <sched.h>
#include <signal.h>

static evc_coord *interrupted;
static atomic_int handled;
static evc_status in_handler;

static void
on_usr1(int signo)
{
	(void)signo;
	in_handler = evc_request_stop(interrupted, EVC_ABORTED, "SIGUSR1");
	atomic_fetch_add(&handled, 1);
}

static void
handle_usr1(void)
{
	struct sigaction sa = { .sa_handler = on_usr1 };

	sigemptyset(&sa.sa_mask);
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
}

struct victim {
	evc_coord *c;
	void (*call)(evc_coord *c);
	int step;
	atomic_int tid, hold, done, leave;
};

static void *
victim_main(void *arg)
{
	struct victim *v = arg;

	atomic_store(&v->tid, own_tid());
	/* This thread alone: one that it starts might be held with the lock
	   that this one waits for, and then the thread sanitizer keeps signals
	   from it. */
	atomic_store(&v->hold, seam_hold_mine(NULL, NULL, v->step));
	v->call(v->c);
	atomic_store(&v->done, 1);
	while (!atomic_load(&v->leave))
		t_sleep(0.0005);
	return NULL;
}

static bool
held_or_done(struct victim *v, int h)
{
	while (!seam_is_held(h)) {
		if (atomic_load(&v->done))
			return seam_is_held(h);
		sched_yield();
	}
	return true;
}

/* While a thread is made, its maker takes no signals.  By bare system calls: to
   the thread sanitizer, descriptors of a thread that stands still race with
   ours. */
static bool
takes_usr1(int tid)
{
	char path[64], text[4096], *mask;
	long fd, n;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
	n = syscall(SYS_read, fd, text, sizeof text - 1);
	syscall(SYS_close, fd);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	mask = strstr(text, "SigBlk:");
	ck_assert_ptr_nonnull(mask);
	return !(strtoull(mask + 7, NULL, 16) >> (SIGUSR1 - 1) & 1);
}

/* Again now and then: the thread sanitizer loses signals.  A handler that does
   not return is not helped by that. */
static void
interrupt(pthread_t t)
{
	double until = t_now() + T_LIMIT, again = 0;

	while (!atomic_load(&handled)) {
		if (t_now() >= again) {
			ck_assert_int_eq(pthread_kill(t, SIGUSR1), 0);
			again = t_now() + 0.2;
		}
		ck_assert_msg(t_now() < until, "the handler hangs");
		t_sleep(0.0005);
	}
}

/* Each of the calls that a thread makes is interrupted before each of its
   steps, also while it has the lock; the handler's request must return while
   the thread still stands there, and the stop must be whole. */
static void
interrupt_each_step(void (*prepare)(evc_coord *c), void (*call)(evc_coord *c))
{
	bool more = true;
	int step;

	handle_usr1();
	for (step = 1; more; step++) {
		struct victim v = { .call = call, .step = step, .hold = -1 };
		pthread_t t;
		int h;

		seam_reset();
		v.c = interrupted = new_coord(NULL);
		OK(evc_thread_start(v.c, "member", obey, NULL, NULL, NULL));
		if (prepare != NULL)
			prepare(v.c);
		atomic_store(&handled, 0);
		t = spawn(victim_main, &v);
		UNTIL(atomic_load(&v.hold) >= 0);
		h = atomic_load(&v.hold);
		more = held_or_done(&v, h);
		if (more) {
			if (!takes_usr1(atomic_load(&v.tid)))
				seam_release(h);
			interrupt(t);
			ck_assert(evc_should_stop(v.c));
		} else
			OK(evc_request_stop(v.c, 0, "after all"));
		seam_release(h);
		atomic_store(&v.leave, 1);
		ck_assert_int_eq(pthread_join(t, NULL), 0);
		ck_assert(!more || in_handler == 0 ||
			  in_handler == EVC_ABORTED);
		(void)!evc_join(v.c, NULL, NULL);
		OK(evc_free(v.c));
	}
	ck_assert_int_gt(step, 5); /* there were steps */
	seam_reset();
}

static void
call_hold(evc_coord *c)
{
	evc_id id;

	if (evc_hold_begin(c, "hold", NULL, &id) == 0)
		evc_hold_end(c, id);
}

static void
call_start(evc_coord *c)
{
	(void)evc_thread_start(c, "another", obey, NULL, NULL, NULL);
}

static void
call_request(evc_coord *c)
{
	(void)evc_request_stop(c, EVC_INTERNAL, "interrupted");
}

static void
call_fail(evc_coord *c)
{
	(void)evc_fail(c, EVC_INTERNAL, 0, "interrupted %d", 1);
}

static void
call_join(evc_coord *c)
{
	evc_join_opts o = { .flags = EVC_JOIN_STOP_FIRST };

	(void)!evc_join(c, &o, NULL);
}

static void
call_clear(evc_coord *c)
{
	(void)evc_clear_stop(c);
}

static void
call_stop_fd(evc_coord *c)
{
	(void)evc_stop_fd(c);
}

static void
call_look(evc_coord *c)
{
	char buf[64];
	evc_reason r;

	(void)n_members(c);
	(void)evc_explain(c, buf, sizeof buf);
	(void)evc_raise_requested(c, &r);
}

static void
call_wait(evc_coord *c)
{
	(void)evc_wait_for_stop(c, 0.001);
}

static void
call_attach_and_hook(evc_coord *c)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	static atomic_int calls;
	evc_member_opts o = { 0 };
	evc_id id;

	if (evc_reactor_attach(c, "loop", loop, &o.reactor) == 0) {
		if (evc_on_stop(c, "hook", count_hook, &calls, &o, &id) == 0)
			(void)evc_member_remove(c, id);
		(void)evc_reactor_detach(o.reactor);
	}
	ev_loop_destroy(loop);
}

static void
with_fd(evc_coord *c)
{
	ck_assert_int_ge(evc_stop_fd(c), 0);
}

static void
stopped_and_joined(evc_coord *c)
{
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
}

static const struct interruption {
	void (*prepare)(evc_coord *c);
	void (*call)(evc_coord *c);
} interruption[] = {
	{ NULL, call_hold },
	{ NULL, call_start },
	{ with_fd, call_request },
	{ with_fd, call_fail },
	{ NULL, call_join },
	{ stopped_and_joined, call_clear },
	{ NULL, call_stop_fd },
	{ NULL, call_look },
	{ NULL, call_wait },
	{ NULL, call_attach_and_hook },
};

START_TEST(S4_a_handler_may_interrupt_any_step_of_any_call)
{
	size_t i;

	for (i = 0; i < sizeof interruption / sizeof interruption[0]; i++)
		interrupt_each_step(interruption[i].prepare,
				    interruption[i].call);
}
END_TEST

API_MAIN("interrupt", S4_a_handler_may_interrupt_any_step_of_any_call)
