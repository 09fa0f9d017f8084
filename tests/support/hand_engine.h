/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine that the test is the hand of: it has as many workers as its address
 * says, and they do what the test says, when it says so, by the sink.
 */
#ifndef TESTS_SUPPORT_HAND_ENGINE_H
#define TESTS_SUPPORT_HAND_ENGINE_H

#include "cluster_util.h"

#include <evcoord/unstable/engine.h>

/* One at a time: there is one cluster in each test. */
static struct {
	const evc_engine_sink *sink;
	void *core;
	unsigned n;
	atomic_int wakes, left, closes, kills, n_forgotten;
	atomic_ullong cancelled_upto, cancelled_one, forgotten;
} hand;

/* What its workers can run is not told yet. */
static evc_status
hand_open_silent(const evc_engine_env *env, evc_engine **ret)
{
	memset(&hand, 0, sizeof(hand));
	hand.sink = env->sink;
	hand.core = env->core;
	hand.n = (unsigned)atoi(env->place);
	if (!hand.sink->workers(hand.core, hand.n))
		return -EVC_RESOURCE_EXHAUSTED;
	*ret = (evc_engine *)(void *)&hand;
	return 0;
}

static void
hand_names(void)
{
	static const char *const names[] = { "f", "g" };

	hand.sink->names(hand.core, names, 2);
}

static evc_status
hand_open(const evc_engine_env *env, evc_engine **ret)
{
	evc_status st = hand_open_silent(env, ret);

	if (st == 0)
		hand_names();
	return st;
}

static void
hand_wake(evc_engine *e, int worker)
{
	(void)e;
	(void)worker;
	atomic_fetch_add(&hand.wakes, 1);
}

static void
hand_cancel(evc_engine *e, uint64_t upto)
{
	(void)e;
	atomic_store(&hand.cancelled_upto, upto);
}

static void
hand_cancel_one(evc_engine *e, unsigned worker, uint64_t n)
{
	(void)e;
	(void)worker;
	atomic_store(&hand.cancelled_one, n);
}

static void
hand_kill(evc_engine *e, unsigned worker)
{
	(void)e;
	(void)worker;
	atomic_fetch_add(&hand.kills, 1);
}

static void
hand_forget(evc_engine *e, uint64_t id)
{
	(void)e;
	atomic_store(&hand.forgotten, id);
	atomic_fetch_add(&hand.n_forgotten, 1);
}

static void
hand_leave(evc_engine *e)
{
	(void)e;
	atomic_store(&hand.left, 1);
}

static evc_status
hand_resize(evc_engine *e, unsigned n)
{
	(void)e;
	(void)n;
	return 0;
}

static void
hand_close(evc_engine *e)
{
	(void)e;
	atomic_fetch_add(&hand.closes, 1);
}

/* Workers cannot be ended: what hangs is given up. */
static const evc_engine_ops hand_ops = {
	.abi = EVC_ENGINE_ABI,
	.scheme = "hand",
	.usage = "hand://N",
	.open = hand_open,
	.wake = hand_wake,
	.cancel = hand_cancel,
	.cancel_one = hand_cancel_one,
	.forget = hand_forget,
	.leave = hand_leave,
	.close = hand_close,
	.resize = hand_resize,
};

static const evc_engine_ops *const hand_engines[] = { &hand_ops };

#define HAND_CONFIG .engines = hand_engines, .n_engines = 1

static MAYBE_UNUSED void
hand_up(unsigned worker)
{
	evc_engine_def d;

	hand.sink->up(hand.core, worker, NULL, "by hand");
	while (hand.sink->defs(hand.core, worker, &d))
		;
}

static MAYBE_UNUSED unsigned
hand_take(unsigned worker, evc_engine_task *t, unsigned most)
{
	return hand.sink->take(hand.core, worker, t, most);
}

/* code 0: with value, which may be NULL. */
static MAYBE_UNUSED void
hand_finish(unsigned worker, const evc_engine_task *t, evc_status code,
	    const evc_value *value)
{
	evc_engine_result r = {
		.n = t->n,
		.code = code,
		.kind = code != 0 ? EVC_FAILED_FUNCTION : 0,
	};

	if (value != NULL)
		r.value = *value;
	hand.sink->finished(hand.core, worker, &r, 1);
}

/* It had not begun. */
static MAYBE_UNUSED void
hand_give_back(unsigned worker, const evc_engine_task *t)
{
	evc_engine_result r = { .n = t->n,
				.code = EVC_CANCELLED,
				.kind = EVC_FAILED_FUNCTION,
				.took = -1 };

	hand.sink->finished(hand.core, worker, &r, 1);
}

/* ---- an engine that keeps the variables ---- */

/* Questions that are open, the oldest first. */
static struct {
	pthread_mutex_t lock;
	evc_engine_question *first;
	atomic_int n_asked; /* since the opening */
	atomic_int hold;    /* 1: ask does not return, 2: and one is in it */
} hand_asked = { .lock = PTHREAD_MUTEX_INITIALIZER };

static MAYBE_UNUSED void
hand_ask(evc_engine *e, evc_engine_question *q)
{
	evc_engine_question **at = &hand_asked.first;
	int held = 1;

	(void)e;
	ck_assert_int_eq(atomic_load(&hand.left), 0);
	if (atomic_compare_exchange_strong(&hand_asked.hold, &held, 2))
		while (atomic_load(&hand_asked.hold) == 2)
			t_sleep(0.001);
	pthread_mutex_lock(&hand_asked.lock);
	while (*at != NULL)
		at = &(*at)->next;
	q->next = NULL;
	*at = q;
	pthread_mutex_unlock(&hand_asked.lock);
	atomic_fetch_add(&hand_asked.n_asked, 1);
}

/* The oldest one; NULL: none is open. */
static MAYBE_UNUSED evc_engine_question *
hand_question(void)
{
	evc_engine_question *q;

	pthread_mutex_lock(&hand_asked.lock);
	q = hand_asked.first;
	pthread_mutex_unlock(&hand_asked.lock);
	return q;
}

static MAYBE_UNUSED void
hand_answer(const evc_engine_answer *a)
{
	evc_engine_question *q;

	pthread_mutex_lock(&hand_asked.lock);
	q = hand_asked.first;
	ck_assert_ptr_nonnull(q);
	hand_asked.first = q->next;
	pthread_mutex_unlock(&hand_asked.lock);
	q->done(q, a);
}

static MAYBE_UNUSED void
hand_answer_all(evc_status st, const char *why)
{
	evc_engine_answer a = { .status = st, .text = why };

	while (hand_question() != NULL)
		hand_answer(&a);
}

static MAYBE_UNUSED evc_status
keeping_hand_open(const evc_engine_env *env, evc_engine **ret)
{
	atomic_store(&hand_asked.n_asked, 0);
	atomic_store(&hand_asked.hold, 0);
	hand_asked.first = NULL;
	return hand_open(env, ret);
}

static const evc_engine_ops keeping_hand_ops MAYBE_UNUSED = {
	.abi = EVC_ENGINE_ABI,
	.caps = EVC_ENGINE_KILLS | EVC_ENGINE_DEADLINES | EVC_ENGINE_VARIABLES,
	.scheme = "hand",
	.usage = "hand://N",
	.open = keeping_hand_open,
	.wake = hand_wake,
	.cancel = hand_cancel,
	.cancel_one = hand_cancel_one,
	.kill = hand_kill,
	.forget = hand_forget,
	.leave = hand_leave,
	.close = hand_close,
	.ask = hand_ask,
};

static const evc_engine_ops *const keeping_hands[] MAYBE_UNUSED = {
	&keeping_hand_ops
};

#define KEEPING_HAND_CONFIG .engines = keeping_hands, .n_engines = 1

/* ---- the end ---- */

/* The last words, once the cluster has asked for them. */
static MAYBE_UNUSED void
hand_end(void)
{
	unsigned i;

	UNTIL(atomic_load(&hand.left));
	hand_answer_all(-EVC_CANCELLED, "the engine leaves");
	for (i = 0; i < hand.n; i++)
		hand.sink->gone(hand.core, i, "the test is over",
			       EVC_ENGINE_LEFT);
	hand.sink->closed(hand.core);
}

/* The coordinator's end, with this engine in it, and what its join says. */
static MAYBE_UNUSED void
hand_end_coord_with(evc_coord *c, evc_status st)
{
	OK(evc_request_stop(c, 0, "the test is over"));
	hand_end();
	ck_assert_int_eq(evc_join(c, NULL, &(evc_verdict){ 0 }), st);
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	ck_assert_int_eq(atomic_load(&hand.closes), 1);
}

static MAYBE_UNUSED void
hand_end_coord(evc_coord *c)
{
	hand_end_coord_with(c, 0);
}

static MAYBE_UNUSED void
hand_end_cluster(evc_cluster *cl, evc_coord *c)
{
	evc_cluster_close(cl);
	hand_end_coord(c);
}

#endif
