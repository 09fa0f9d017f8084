/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of queues share: a coordinator with a queue, and calls that
 * wait on a thread of their own.
 */
#ifndef TESTS_SUPPORT_QUEUE_UTIL_H
#define TESTS_SUPPORT_QUEUE_UTIL_H

#include "api_util.h"

#include <ev.h>

/* Items are numbers from 1. */
#define ITEM(n) ((void *)(intptr_t)(n))
#define NUMBER(item) ((intptr_t)(item))

static MAYBE_UNUSED evc_queue *
new_queue(evc_coord *c, size_t capacity, unsigned flags)
{
	evc_queue_opts o = { .flags = flags };
	evc_queue *q = NULL;

	OK(evc_queue_new(c, "things", capacity, &o, &q));
	ck_assert_ptr_nonnull(q);
	return q;
}

static MAYBE_UNUSED evc_queue_info
info_of(const evc_queue *q)
{
	evc_queue_info i;

	OK(evc_queue_get(q, &i));
	return i;
}

/* Items first to last, at once. */
static MAYBE_UNUSED void
push_now(evc_queue *q, int first, int last)
{
	int i;

	for (i = first; i <= last; i++)
		OK(evc_queue_push(q, ITEM(i), 0));
}

/* They come out again, in that order. */
static MAYBE_UNUSED void
pop_now(evc_queue *q, int first, int last)
{
	void *item;
	int i;

	for (i = first; i <= last; i++) {
		OK(evc_queue_pop(q, &item, 0));
		ck_assert_int_eq(NUMBER(item), i);
	}
}

static MAYBE_UNUSED void
take_now(evc_queue *q, int first, int last)
{
	void *item;
	int i;

	for (i = first; i <= last; i++) {
		OK(evc_queue_try_pop(q, &item));
		ck_assert_int_eq(NUMBER(item), i);
	}
}

/* Empty it and free it, then its coordinator. */
static MAYBE_UNUSED void
drop_queue(evc_coord *c, evc_queue *q)
{
	void *item;

	while (evc_queue_try_pop(q, &item) == 0)
		;
	OK(evc_queue_free(q));
	OK(evc_free(c));
}

/* ---- at random ---- */

/* splitmix64, one state for each thread */
static MAYBE_UNUSED unsigned
queue_pick(uint64_t *state, unsigned n)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((z ^ z >> 31) % n);
}

/* Printed, so that a run can be had again with it. */
static MAYBE_UNUSED uint64_t
queue_seed(void)
{
	const char *given = getenv("EVC_QUEUE_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 0) :
					(uint64_t)(t_now() * 1e6);

	printf("EVC_QUEUE_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* ---- a call on a thread of its own, which is no member ---- */

enum { BY_PUSH, BY_POP, BY_DRAIN, N_CALLS };

struct qcall {
	pthread_t thread;
	evc_queue *q;
	int what;
	void *item;
	double timeout;
	evc_status st;
	char why[256]; /* evc_last_error */
	atomic_int tid, done;
};

static MAYBE_UNUSED evc_status
qcall_now(struct qcall *w)
{
	if (w->what == BY_PUSH)
		return evc_queue_push(w->q, w->item, w->timeout);
	if (w->what == BY_POP)
		return evc_queue_pop(w->q, &w->item, w->timeout);
	return evc_queue_drain(w->q, w->timeout);
}

static MAYBE_UNUSED void *
qcall_main(void *arg)
{
	struct qcall *w = arg;

	atomic_store(&w->tid, own_tid());
	w->st = qcall_now(w);
	snprintf(w->why, sizeof(w->why), "%s", evc_last_error());
	atomic_store(&w->done, 1);
	return NULL;
}

static MAYBE_UNUSED void
qcall_begin(struct qcall *w, evc_queue *q, int what, void *item,
	    double timeout)
{
	memset(w, 0, sizeof(*w));
	w->q = q;
	w->what = what;
	w->item = item;
	w->timeout = timeout;
	OK(pthread_create(&w->thread, NULL, qcall_main, w));
}

/* It is under way, and sleeps. */
static MAYBE_UNUSED void
qcall_sleeps(struct qcall *w)
{
	UNTIL(atomic_load(&w->tid) != 0);
	until_asleep(atomic_load(&w->tid));
	ck_assert_msg(!atomic_load(&w->done), "it did not wait: %d", w->st);
}

/* It sleeps before the next line. */
static MAYBE_UNUSED void
qcall_wait(struct qcall *w, evc_queue *q, int what, void *item)
{
	qcall_begin(w, q, what, item, INFINITY);
	qcall_sleeps(w);
}

/* What it returned. */
static MAYBE_UNUSED evc_status
qcall_end(struct qcall *w)
{
	UNTIL(atomic_load(&w->done));
	OK(pthread_join(w->thread, NULL));
	return w->st;
}

/* It was refused with that code, and says why. */
#define QCALL_REFUSED(w, code) \
	do { \
		ck_assert_int_eq(qcall_end(w), -(code)); \
		ck_assert_str_ne((w)->why, ""); \
	} while (0)

#endif
