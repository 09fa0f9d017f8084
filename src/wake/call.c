/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_call_detached: a function that may hang, on a thread that can be left
 * behind.  Caller and thread share a block; bits of the word of its alarm are
 * the state.  FINISHED: the function has ended.  LEFT: the caller does not wait
 * any more, or has never waited.  The side with the later of these two events
 * owns arg.  The later of the two to drop the block frees it.  The listener
 * belongs to the caller: the thread knows no coordinator.  A caller that leaves
 * gives its hold on the block to the tree, which names the call at the end of a
 * stop.  A completion travels to its loop inside the block.
 * Called by: the program.
 * Locks: the coordinator's lock for the listener; the word is atomic.
 */
#include "core/core.h"
#include "core/loop/post.h"
#include "core/wake/left.h"
#include "base/self.h"
#include "base/spawn.h"
#include "base/text.h"
#include "base/unwind.h"
#include "wake/alarm.h"

#define FINISHED 1u
#define LEFT 2u
_Static_assert((FINISHED | LEFT) < ALARM_STEP, "bits below the count");

struct call {
	struct evc__left left; /* first: the memory begins here */
	struct evc__alarm alarm;
	/* set at creation */
	int (*fn)(void *arg);
	void *arg;
	void (*release)(void *arg);
	size_t stack;
	const char *func; /* the public call */
	unsigned fork_generation;
	void (*done)(evc_reactor *r, evc_status why, int result, void *arg);
	evc_loop_ref *loop; /* of done; NULL: no done */
	/* the thread's; the caller's after FINISHED, or the loop's in done */
	int result;
	bool returned;
	evc_message message;
};

/* A fork child, made in a function of the program's, has no caller. */
static bool
in_fork_child(const struct call *k)
{
	return k->fork_generation != sync_load_relaxed(&evc__fork_generation);
}

/* ---- the loop of a completion ---- */

/* The message is called: on the loop, or, when the loop is going, somewhere. */
static void
complete_call(evc_message *m, evc_status why)
{
	struct call *k = LIST_OF(m, struct call, message);

	if (why == 0)
		k->done(evc_loop_reactor(k->loop),
			k->returned ? 0 : EVC_FAILED_PRECONDITION, k->result,
			k->arg);
	if (in_fork_child(k))
		return;
	if (k->release != NULL)
		k->release(k->arg);
	evc__left_drop(&k->left);
}

/* ---- the thread ---- */

/* The function has ended, and no caller waits: the rest is done on the loop of
   the completion, or here. */
static void
finish_left(struct call *k)
{
	evc_loop_ref *loop = k->loop;

	if (loop == NULL || !evc__inbox_put(loop, &k->message))
		complete_call(&k->message, EVC_CANCELLED);
	evc_loop_release(loop);
}

/* The function has ended: wake the caller, if the caller has not left. */
static void
finish_call(struct call *k)
{
	if (in_fork_child(k))
		return;
	if (sync_or(&k->alarm.word, FINISHED) & LEFT) {
		finish_left(k);
		return;
	}
	sync_futex_wake(&k->alarm.word);
	evc__left_drop(&k->left);
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

	evc__thread_rename(k->left.name);
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

static evc_status
create_thread(struct call *k)
{
	struct evc__spawn s;
	pthread_t t;
	int e;

	evc__spawn_begin(&s, k->stack, true);
	e = sync_thread_create(&t, &s.attr, call_main, k);
	evc__spawn_end(&s);
	return e == 0 ? 0 : evc__refuse(-EVC_RESOURCE_EXHAUSTED,
					"%s: no thread: %s", k->func,
					strerror(e));
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

/* A stop stands: the function is not called. */
static evc_status
release_unbegun(const struct call *k)
{
	if (k->release != NULL)
		evc__call_walled(k->release, k->arg);
	return evc__end_by_stop(k->func);
}

/* Start the thread.  < 0: no thread, and the block is the caller's. */
static evc_status
start_call(evc_coord *c, struct call *k, uint32_t stops)
{
	evc_status st = enlist_caller(c, k);

	if (st < 0)
		return st;
	st = evc__stop_came(c, stops) ? release_unbegun(k) : create_thread(k);
	if (st < 0)
		leave_wait(c, k);
	return st;
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
	if (st == FINISHED || (sync_or(&k->alarm.word, LEFT) & FINISHED)) {
		st = take_result(k, ret_result);
		evc__left_drop(&k->left);
	} else
		evc__left_add(c, &k->left);
	return st;
}

/* A call with no_wait. */
static evc_status
leave_call(evc_coord *c, struct call *k, const evc_call_opts *o)
{
	evc_status st;

	sync_store(&k->alarm.word, LEFT);
	k->message.fn = complete_call;
	k->done = o->done;
	k->loop = evc_loop_of(o->reactor);
	st = evc_should_stop(c) ? release_unbegun(k) : create_thread(k);
	if (st == 0) {
		evc__left_add(c, &k->left);
		return 0;
	}
	evc_loop_release(k->loop);
	sync_free(k);
	return st;
}

/* NULL, or the reason against these options. */
static const char *
wrong_options(const evc_call_opts *o, const int *ret_result)
{
	if ((o->done != NULL) != (o->reactor != NULL))
		return "a completion needs a reactor, and a reactor one";
	if (!o->no_wait && o->done != NULL)
		return "a completion is for no_wait";
	if (o->no_wait && ret_result != NULL)
		return "no_wait has no result here";
	return NULL;
}

static evc_status
check_call(evc_coord *c, int (*fn)(void *arg), double timeout,
	   const evc_call_opts *o, const int *ret_result, const char *func)
{
	evc_status st = evc__check_wait(c, o->no_wait ? 0 : timeout, func);
	const char *wrong = wrong_options(o, ret_result);

	if (st == 0)
		st = evc__check_reserved(o->reserved_, func);
	if (st == 0)
		st = evc__launch_check(o->stack, func);
	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT, "%s: no function",
				 func);
	if (st == 0 && wrong != NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT, "%s: %s", func, wrong);
	if (st == 0 && o->reactor != NULL)
		st = evc__check(o->reactor->c, func);
	return st;
}

static evc_status
call_detached(evc_coord *c, int (*fn)(void *arg), void *arg, double timeout,
	      const evc_call_opts *o, int *ret_result, const char *func)
{
	evc_status st = check_call(c, fn, timeout, o, ret_result, func);
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
		evc__copy_dots(k->left.name, sizeof k->left.name,
			       o->name != NULL ? o->name : "call");
		list_init(&k->left.node);
		sync_store(&k->left.refs, 2);
		sync_store(&k->alarm.n_waiting, 1);
		st = o->no_wait ? leave_call(c, k, o) :
				  run_call(c, k, timeout, ret_result);
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
