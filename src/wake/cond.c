/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions that a stop ends, too: an alarm that evc_cond_signal also rings.
 * A coordinator is not freed while a condition exists, and a condition not
 * while a thread waits.  So a wait keeps both by its count in the alarm, and
 * its last access is to leave the count.
 * Called by: the program.
 * Locks: the coordinator's lock for the listener and n_conds; the program's
 * mutex.
 */
#include "base/unwind.h"
#include "wake/alarm.h"

struct evc_cond {
	struct evc__alarm alarm;
	evc_coord *c; /* set at creation */
};

evc_status
evc_cond_new(evc_coord *c, evc_cond **ret_cond)
{
	evc_status st = evc__check(c, __func__);
	evc_cond *cond;

	if (st == 0 && ret_cond == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_cond_new: no place for the condition");
	if (st < 0)
		return evc__refuse_setup(c, __func__, st);
	st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	cond = sync_alloc(1, sizeof *cond);
	sync_lock(&c->lock);
	/* evc_free has counted the conditions. */
	if (c->life.dying)
		st = evc__end_by_free(__func__);
	else if (cond == NULL || !evc__alarm_set(c, &cond->alarm))
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_cond_new: no memory");
	else {
		cond->c = c;
		c->life.n_conds++;
	}
	sync_unlock(&c->lock);
	if (st == 0)
		*ret_cond = cond;
	else
		sync_free(cond);
	evc__refuse_setup(c, __func__, st);
	evc__refgate_leave(&c->life.gate);
	return st;
}

evc_status
evc_cond_free(evc_cond *cond)
{
	evc_coord *c;
	evc_status st;

	if (cond == NULL)
		return 0;
	c = cond->c;
	st = evc__check(c, __func__);
	/* c may be freed as soon as its last condition is gone. */
	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	if (sync_load_sc(&cond->alarm.n_waiting) > 0)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_cond_free: %u wait on it",
				 sync_load_sc(&cond->alarm.n_waiting));
	else {
		evc__unlisten(c, &cond->alarm.listener);
		c->life.n_conds--;
	}
	sync_unlock(&c->lock);
	if (st == 0)
		sync_free(cond);
	evc__refgate_leave(&c->life.gate);
	return st;
}

void
evc_cond_signal(evc_cond *cond)
{
	if (cond != NULL)
		evc__alarm_ring(&cond->alarm, 1);
}

void
evc_cond_broadcast(evc_cond *cond)
{
	if (cond != NULL)
		evc__alarm_ring(&cond->alarm, INT_MAX);
}

/* The mutex is held, and released for each sleep. */
static evc_status
wait_true(evc_cond *cond, pthread_mutex_t *mutex, bool (*is_true)(void *),
	  void *arg, double timeout)
{
	evc_coord *c = cond->c;
	uint32_t stops = WORD_STOPS(sync_load_sc(&c->word)), seen;
	uint64_t until = evc__wait_end(c, timeout);
	bool woken = false;

	for (;;) {
		/* The word is read before the stop and the condition are
		   checked, and the mutex released last: a stop or a signal
		   after a check moves the word, and so ends the sleep. */
		seen = sync_load_sc(&cond->alarm.word);
		if (evc__stop_came(c, stops))
			return evc__end_by_stop("evc_cond_wait");
		if (is_true != NULL ? is_true(arg) : woken)
			return 0;
		if (evc__wait_is_over(c, until))
			return evc__end_by_time("evc_cond_wait");
		sync_unlock(mutex);
		woken = evc__alarm_sleep(c, &cond->alarm, seen, until);
		sync_lock(mutex);
	}
}

/* The record of a waiter.  Cancellation is off, because a cancellation inside
   is_true would leave the waiter counted for ever. */
struct counted {
	evc_cond *cond;
	int cancel; /* the state before */
};

/* The end of a wait, also by an exception from is_true. */
static void
count_out(struct counted *k)
{
	sync_sub(&k->cond->alarm.n_waiting, 1);
	pthread_setcancelstate(k->cancel, NULL);
}

static evc_status
wait_counted(evc_cond *cond, pthread_mutex_t *mutex, bool (*is_true)(void *),
	     void *arg, double timeout)
{
	struct counted k LEAVING(count_out) = { cond, 0 };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &k.cancel);
	/* Counted with the mutex held: a thread that changes the condition
	   afterwards, and signals, finds the waiter. */
	sync_add(&cond->alarm.n_waiting, 1);
	return wait_true(cond, mutex, is_true, arg, timeout);
}

evc_status
evc_cond_wait(evc_cond *cond, pthread_mutex_t *mutex,
	      bool (*is_true)(void *arg), void *arg, double timeout)
{
	evc_status st;

	if (cond == NULL || mutex == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_cond_wait: no %s",
				   cond == NULL ? "condition" : "mutex");
	st = evc__check_wait(cond->c, timeout, __func__);
	if (st < 0)
		return st;
	return wait_counted(cond, mutex, is_true, arg, timeout);
}
