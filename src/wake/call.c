/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_call_detached: a function that may hang, on a thread that can be left
 * behind.  Caller and thread share a block; bits of the word of its alarm are
 * the state.  FINISHED: the function has ended.  LEFT: the caller does not wait
 * any more.  The side with the later of these two events owns arg.  GONE: a
 * side does not need the block any more; the second side to set GONE frees the
 * block.  The listener belongs to the caller: the thread knows no coordinator.
 * Called by: the program.
 * Locks: the coordinator's lock for the listener; the word is atomic.
 */
#include "core/core.h"
#include "base/self.h"
#include "base/spawn.h"
#include "base/text.h"
#include "base/unwind.h"
#include "wake/alarm.h"

#define FINISHED 1u
#define LEFT 2u
#define GONE 4u
_Static_assert((FINISHED | LEFT | GONE) < ALARM_STEP, "bits below the count");

struct call {
	struct evc__alarm alarm;
	/* set at creation */
	int (*fn)(void *arg);
	void *arg;
	void (*release)(void *arg);
	size_t stack;
	const char *func; /* the public call */
	unsigned fork_generation;
	char name[16];
	/* the thread's; the caller's after FINISHED */
	int result;
	bool returned;
};

/* The last use of the block by the caller, or by the thread: the later of the
   two frees the block. */
static void
release_block(struct call *k)
{
	if (sync_or(&k->alarm.word, GONE) & GONE)
		sync_free(k);
}

/* ---- the thread ---- */

/* The function has ended: wake the caller, or, if the caller has left, release
   arg. */
static void
finish_call(struct call *k)
{
	/* A fork child, made in fn, has no caller. */
	if (k->fork_generation != sync_load_relaxed(&evc__fork_generation))
		return;
	if (!(sync_or(&k->alarm.word, FINISHED) & LEFT))
		sync_futex_wake(&k->alarm.word);
	else if (k->release != NULL)
		k->release(k->arg);
	release_block(k);
}

/* Cleanup handler: fn has left by pthread_exit or cancellation. */
static void
left_without_result(void *arg)
{
	sync_unwound();
	finish_call(arg);
}

static void *
call_main(void *arg)
{
	struct call *k = arg;
	int old;

	evc__thread_rename(k->name);
	pthread_cleanup_push(left_without_result, k);
	k->result = k->fn(k->arg);
	/* From here on a cancellation has no effect, because fn has its
	   result. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	k->returned = true;
	pthread_cleanup_pop(0);
	finish_call(k);
	return NULL;
}

static int
create_thread(struct call *k)
{
	struct evc__spawn s;
	pthread_t t;
	int e;

	evc__spawn_begin(&s, k->stack, true);
	e = sync_thread_create(&t, &s.attr, call_main, k);
	evc__spawn_end(&s);
	return e;
}

/* ---- the caller ---- */

/* FINISHED, or the reason for an end of the wait: -code. */
static evc_status
wait_finished(evc_coord *c, struct call *k, uint32_t stops, uint64_t until)
{
	uint32_t seen;

	for (;;) {
		/* The word is read before the stop: a later stop moves the
		   word, and so ends the sleep. */
		seen = sync_load_sc(&k->alarm.word);
		if (seen & FINISHED)
			return FINISHED;
		if (evc__stop_came(c, stops))
			return evc__end_by_stop(k->func);
		if (evc__wait_is_over(c, until))
			return evc__end_by_time(k->func);
		evc__alarm_sleep(c, &k->alarm, seen, until);
	}
}

/* Count the caller as a waiter and add the listener, unless evc_free has begun:
   an evc_free that begins later sees the count. */
static evc_status
enlist_caller(evc_coord *c, struct call *k)
{
	evc_status st = 0;

	sync_lock(&c->lock);
	st = evc__check_loop(c, k->func);
	if (st == 0 && c->life.dying)
		st = evc__end_by_free(k->func);
	if (st == 0 && !evc__alarm_set(c, &k->alarm))
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "%s: no memory", k->func);
	if (st == 0)
		sync_add(&c->stop.n_waiters, 1);
	sync_unlock(&c->lock);
	return st;
}

/* Undo enlist_caller(). */
static void
leave_wait(evc_coord *c, struct call *k)
{
	sync_lock(&c->lock);
	evc__unlisten(c, &k->alarm.listener);
	sync_sub(&c->stop.n_waiters, 1);
	sync_unlock(&c->lock);
}

/* FINISHED was set before LEFT. */
static evc_status
take_result(const struct call *k, int *ret_result)
{
	if (!k->returned)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: the thread ended inside fn", k->func);
	if (ret_result != NULL)
		*ret_result = k->result;
	return 0;
}

/* Start the thread.  < 0: no thread, and the block is the caller's. */
static evc_status
start_call(evc_coord *c, struct call *k, uint32_t stops)
{
	evc_status st = enlist_caller(c, k);
	int e;

	if (st < 0)
		return st;
	if (evc__stop_came(c, stops)) {
		leave_wait(c, k);
		if (k->release != NULL)
			evc__call_walled(k->release, k->arg);
		return evc__end_by_stop(k->func);
	}
	e = create_thread(k);
	if (e == 0)
		return 0;
	leave_wait(c, k);
	return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no thread: %s",
			   k->func, strerror(e));
}

static evc_status
run_call(evc_coord *c, struct call *k, double timeout, int *ret_result)
{
	uint32_t stops = WORD_STOPS(sync_load_sc(&c->word));
	uint64_t until = evc__wait_end(c, timeout);
	evc_status st = start_call(c, k, stops);

	if (st < 0) {
		sync_free(k);
		return st;
	}
	st = wait_finished(c, k, stops, until);
	leave_wait(c, k);
	/* The function may end between the last check and LEFT. */
	if (st == FINISHED || (sync_or(&k->alarm.word, LEFT) & FINISHED))
		st = take_result(k, ret_result);
	release_block(k);
	return st;
}

static evc_status
check_call(evc_coord *c, int (*fn)(void *arg), double timeout,
	   const evc_call_opts *o, const char *func)
{
	evc_status st = evc__check_wait(c, timeout, func);

	if (st == 0)
		st = evc__check_reserved(o->reserved_, func);
	if (st == 0)
		st = evc__launch_check(o->stack, func);
	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT, "%s: no function",
				 func);
	return st;
}

static evc_status
call_detached(evc_coord *c, int (*fn)(void *arg), void *arg, double timeout,
	      const evc_call_opts *o, int *ret_result, const char *func)
{
	evc_status st = check_call(c, fn, timeout, o, func);
	struct call *k;
	int old;

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, func);
	if (st < 0)
		return st;
	/* A cancellation inside release would leave the waiter counted. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	k = sync_alloc(1, sizeof *k);
	if (k != NULL) {
		k->fn = fn;
		k->arg = arg;
		k->release = o->release;
		k->stack = o->stack;
		k->func = func;
		k->fork_generation = c->life.fork_generation;
		evc__copy(k->name, sizeof k->name,
			  o->name != NULL ? o->name : "call");
		sync_store(&k->alarm.n_waiting, 1);
		st = run_call(c, k, timeout, ret_result);
	} else
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				 func);
	evc__refgate_leave(&c->life.gate);
	pthread_setcancelstate(old, NULL);
	return st;
}

evc_status
evc_call_detached(evc_coord *c, const char *name, int (*fn)(void *arg),
		  void *arg, void (*release)(void *arg), double timeout,
		  int *ret_result)
{
	evc_call_opts o = { .name = name, .release = release };

	return call_detached(c, fn, arg, timeout, &o, ret_result, __func__);
}

evc_status
evc_call_detached_with(evc_coord *c, int (*fn)(void *arg), void *arg,
		       double timeout, const evc_call_opts *opts,
		       int *ret_result)
{
	static const evc_call_opts defaults;

	return call_detached(c, fn, arg, timeout,
			     opts != NULL ? opts : &defaults, ret_result,
			     __func__);
}
