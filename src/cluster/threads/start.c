/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seats and their threads: made at the open and by a resize, left at the end or
 * when the number of workers is smaller.
 * Called by: threads.c, at the open and for a resize; batch_watch.c; serve.c at
 * a thread's end.
 * Locks: threads.lock for seat.w; seat.lock in update_variable(); n, n_wanted,
 * taken and to_start are atomic.
 */
#include "cluster/threads/threads.h"

#include "base/deadline.h"
#include "base/text.h"

#define AGAIN_NS UINT64_C(100000000) /* after a thread that did not start */

/* ---- seats ---- */

/* A function finds the updates of all functions with an earlier success:
   results with updates wait no longer, on any seat. */
static void
make_updates(struct threads *e)
{
	unsigned i;

	for (i = 0; i < sync_load(&e->n) && sync_load_sc(&e->n_unmade) > 0;
	     i++) {
		struct seat *s = e->seats[i];

		if (sync_load_sc(&s->unmade) == 0)
			continue;
		sync_lock(&s->lock);
		evc__seat_flush(s);
		sync_unlock(&s->lock);
	}
}

static evc_status
update_variable(void *arg, const evc_engine_update *u, double *ret_now,
		evc_value *ret_value)
{
	struct seat *s = arg;

	make_updates(s->e);
	return s->e->sink->variable(s->e->core, s->index, u, ret_now,
				    ret_value);
}

static evc_status
make_worker(struct seat *s)
{
	struct threads *e = s->e;
	struct worker_env we = {
		.coord = e->scope,
		.functions = e->functions,
		.n_functions = e->n_functions,
		.index = s->index,
		.generation = e->generation,
		.variable = update_variable,
		.arg = s,
	};
	struct worker *w;
	evc_status st = evc__worker_new(&we, &w);

	if (st < 0)
		return st;
	sync_lock(&e->lock);
	s->w = w;
	sync_unlock(&e->lock);
	return 0;
}

bool
evc__threads_add_seat(struct threads *e)
{
	unsigned n = sync_load(&e->n);
	struct seat *s = sync_alloc_aligned(64, sizeof *s);

	if (s == NULL)
		return false;
	s->e = e;
	s->index = n;
	sync_lock_init(&s->lock);
	list_init(&s->link);
	e->seats[n] = s;
	sync_store(&e->n, n + 1);
	return true;
}

/* ---- their threads ---- */

/* As for the first thread of the seat. */
static void
clean_seat(struct seat *s)
{
	s->window = 1;
	s->called = s->ahead = false;
	sync_store_sc(&s->lost, SEAT_SOUND);
	s->next = s->end = s->sent = s->done = 0;
	sync_store_sc(&s->bed, BED_UP);
}

evc_status
evc__seat_start(struct seat *s)
{
	/* The cluster itself keeps the joins of its scope waiting, on every
	   engine. */
	evc_member_opts o = { .flags = EVC_BACKGROUND };
	evc_status st = s->w == NULL ? make_worker(s) : 0;
	struct threads *e = s->e;
	char name[48];
	struct text t = evc__text_in(name, sizeof name);

	if (st < 0)
		return st;
	clean_seat(s);
	evc__text_fmt(&t, "worker %u", s->index);
	sync_store_sc(&s->taken, 1);
	sync_add(&e->n_live, 1);
	st = evc_thread_start(e->scope, name, evc__threads_worker, s, &o, NULL);
	if (st < 0) {
		sync_sub(&e->n_live, 1);
		sync_store_sc(&s->taken, 0);
	}
	return st;
}

/* The next look is later, and the functions wait. */
static void
note_failed(struct threads *e, unsigned i)
{
	char why[160];
	struct text t = evc__text_in(why, sizeof why);

	evc__text_fmt(&t, "worker %u could not be started: %s", i,
		      evc_last_error());
	e->sink->gone(e->core, i, why, EVC_ENGINE_DIED);
	e->start_ns = evc__deadline_in_ns(AGAIN_NS);
	sync_store_sc(&e->to_start, 1);
}

/* The seat has no thread: is none needed? */
static bool
stays_empty(struct seat *s)
{
	struct threads *e = s->e;

	if (!seat_is_extra(s) || !e->sink->leave(e->core, s->index))
		return false;
	e->sink->gone(e->core, s->index, "it has left", EVC_ENGINE_LEFT);
	return true;
}

void
evc__threads_start_missing(struct threads *e)
{
	struct seat *s;
	unsigned i;

	if (e->start_ns != 0 && evc__deadline_left_ns(e->start_ns) > 0)
		return;
	e->start_ns = 0;
	/* Before the look: a later request is a new one. */
	sync_xchg(&e->to_start, 0);
	for (i = 0; i < sync_load(&e->n) && !evc_should_stop(e->scope); i++) {
		s = e->seats[i];
		if (sync_load_sc(&s->taken) == 0 && !stays_empty(s) &&
		    evc__seat_start(s) < 0) {
			note_failed(e, i);
			return;
		}
	}
}
