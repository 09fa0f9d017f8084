/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the closure queue share: items, the queue's calls with its
 * lock around them, and a thread that waits or puts.
 */
#ifndef TESTS_UNIT_CLOSURES_H
#define TESTS_UNIT_CLOSURES_H

#include "../support/api_util.h"
#include "support/seam.h"

#include "base/deadline.h"
#include "cluster/core/closures.h"

#define MANY 1000000

#define IS(call, st) ck_assert_int_eq((call), (st))

struct item {
	struct closure c;
	atomic_int runs;
	int ended;     /* by its owner */
	int cancelled; /* by the queue */
};

#define ITEM_INIT { .c = { .tag = TAG_ANY } }
#define ITEM_OF(cl) LIST_OF(cl, struct item, c)

static MAYBE_UNUSED void
note_cancelled(struct closures *q, struct closure *cl)
{
	(void)q;
	ITEM_OF(cl)->cancelled += cl->where == CLOSURE_OUT ? 1 : 1000;
}

static MAYBE_UNUSED struct closures *
begin(uint64_t most)
{
	struct closures *q = malloc(sizeof(*q));

	ck_assert_ptr_nonnull(q);
	ck_assert(evc__closures_init(q, most, note_cancelled));
	pthread_mutex_lock(&q->lock);
	ck_assert(evc__closures_tags(q, 4));
	pthread_mutex_unlock(&q->lock);
	return q;
}

static MAYBE_UNUSED void
end(struct closures *q)
{
	ck_assert_uint_eq(q->n_quiet + q->n_roomy, 0);
	evc__closures_destroy(q);
	free(q);
}

/* One call under the lock. */
#define LOCKED(q, call) \
	__extension__({ \
		__auto_type q_ = (q); \
		pthread_mutex_lock(&q_->lock); \
		__auto_type got_ = (call); \
		pthread_mutex_unlock(&q_->lock); \
		got_; \
	})
#define LOCKED_DO(q, call) LOCKED(q, ((call), 0))

/* As a thread that schedules does it. */
static MAYBE_UNUSED evc_status
put_until(struct closures *q, struct item *i, double seconds)
{
	uint64_t until = evc__deadline_in(seconds);
	evc_status st;

	pthread_mutex_lock(&q->lock);
	while ((st = evc__closures_may_put(q, 1)) == EVC_PENDING)
		if (!evc__closures_await_room(q, until))
			break;
	if (st == 0)
		evc__closures_put(q, &i->c, false);
	pthread_mutex_unlock(&q->lock);
	return st;
}

static MAYBE_UNUSED evc_status
put(struct closures *q, struct item *i)
{
	return put_until(q, i, T_LIMIT);
}

static MAYBE_UNUSED void
put_held(struct closures *q, struct item *i)
{
	OK(LOCKED(q, evc__closures_may_put(q, 1)));
	LOCKED_DO(q, evc__closures_put(q, &i->c, true));
	ck_assert_int_eq(i->c.where, CLOSURE_HELD);
}

static MAYBE_UNUSED struct item *
get_for(struct closures *q, uint32_t tag)
{
	struct closure *cl = NULL;
	unsigned n = LOCKED(q, evc__closures_take(q, tag, &cl, 1));

	return n == 1 ? ITEM_OF(cl) : NULL;
}

/* For a worker for which nothing stands in alone. */
static MAYBE_UNUSED struct item *
get(struct closures *q)
{
	return get_for(q, 3);
}

static MAYBE_UNUSED void
back(struct closures *q, struct item *i)
{
	LOCKED_DO(q, evc__closures_back(q, &i->c, CLOSURE_QUEUED));
}

static MAYBE_UNUSED void
finish(struct closures *q, struct item *i)
{
	i->ended++;
	LOCKED_DO(q, evc__closures_finish(q, &i->c));
}

static MAYBE_UNUSED void
breaks(struct closures *q, struct item *i, evc_status code, const char *text)
{
	evc_reason r = { .code = code, .kind = EVC_BY_ERROR };

	i->ended++;
	snprintf(r.text, sizeof(r.text), "%s", text);
	LOCKED_DO(q, (evc__closures_note(q, &r),
		      evc__closures_finish(q, &i->c)));
}

static MAYBE_UNUSED evc_status
done(struct closures *q)
{
	return LOCKED(q, evc__closures_done(q));
}

/* EVC_PENDING is a hang. */
static MAYBE_UNUSED evc_status
wait_for(struct closures *q)
{
	uint64_t until = evc__deadline_in(T_LIMIT);
	evc_status st;

	pthread_mutex_lock(&q->lock);
	while ((st = evc__closures_done(q)) == EVC_PENDING)
		if (!evc__closures_await_quiet(q, until))
			break;
	pthread_mutex_unlock(&q->lock);
	return st;
}

static MAYBE_UNUSED bool
is_empty(struct closures *q)
{
	return LOCKED(q, q->n_held + q->n_queued + q->n_taken == 0 &&
				 list_empty(&q->held) && q->common.some == 0);
}

/* ---- a thread that waits, or puts ---- */

struct waiting {
	pthread_t thread;
	struct closures *q;
	struct item *puts; /* NULL: it waits */
	evc_status answer;
	atomic_int tid, over;
};

static MAYBE_UNUSED void *
waiting_main(void *arg)
{
	struct waiting *w = arg;

	atomic_store(&w->tid, own_tid());
	w->answer = w->puts != NULL ? put(w->q, w->puts) : wait_for(w->q);
	atomic_store(&w->over, 1);
	return NULL;
}

static MAYBE_UNUSED void
waiting_begin(struct waiting *w, struct closures *q, struct item *puts)
{
	memset(w, 0, sizeof(*w));
	w->q = q;
	w->puts = puts;
	OK(pthread_create(&w->thread, NULL, waiting_main, w));
}

static MAYBE_UNUSED void
wait_begin_at(struct waiting *w, struct closures *q)
{
	waiting_begin(w, q, NULL);
}

static MAYBE_UNUSED void
wait_begin_asleep(struct waiting *w, struct closures *q)
{
	waiting_begin(w, q, NULL);
	UNTIL(LOCKED(q, q->n_quiet) == 1);
}

static MAYBE_UNUSED void
put_begin_asleep(struct waiting *w, struct closures *q, struct item *i)
{
	waiting_begin(w, q, i);
	UNTIL(LOCKED(q, q->n_roomy) == 1);
}

/* It must not return yet: seen as well as that can be. */
static MAYBE_UNUSED bool
still_sleeps(struct waiting *w)
{
	t_sleep(0.02);
	return !atomic_load(&w->over);
}

static MAYBE_UNUSED evc_status
wait_end(struct waiting *w)
{
	UNTIL(atomic_load(&w->over));
	OK(pthread_join(w->thread, NULL));
	return w->answer;
}

#endif
