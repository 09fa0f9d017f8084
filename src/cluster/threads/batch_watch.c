/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The batch watch: a thread that looks, a thousand times a second, at functions that
 * workers have taken and not begun, or finished and not told.  Without such
 * functions the batch watch sleeps.
 * A worker without a move between two looks is in a long function: its other
 * functions are given back, and its results told.  While a worker sleeps,
 * functions older than a look are given back in any case.
 * This thread also starts the threads for a resize (start.c).
 * Called by: threads.c, as a thread's function.
 * Locks: seat.lock; watch_sleeps and watch_bell are atomic.
 */
#include "cluster/threads/threads.h"

#define LOOK_NS UINT64_C(1000000)
/* Looks without a find before the batch watch sleeps: a stream of short functions
   lets it hardly ever sleep. */
#define LOOKS 20

/* true: functions were given back. */
static bool
look_at_seat(struct seat *s)
{
	bool old, stuck, back = false;

	sync_lock(&s->lock);
	old = s->batch == s->seen_batch;
	stuck = old && s->next == s->seen_next;
	if (stuck)
		evc__seat_flush(s);
	if (s->next < s->end &&
	    (stuck || (old && sync_load_sc(&s->e->n_lying) > 0))) {
		evc__seat_give_back(s);
		s->hurried = true;
		back = true;
	}
	s->seen_batch = s->batch;
	s->seen_next = s->next;
	sync_unlock(&s->lock);
	return back;
}

/* false: no seat holds anything. */
static bool
look_at_seats(struct threads *e)
{
	bool some = false, back = false;
	unsigned i;

	for (i = 0; i < sync_load(&e->n); i++)
		if (sync_load_sc(&e->seats[i]->holds) != 0) {
			some = true;
			back |= look_at_seat(e->seats[i]);
		}
	if (back)
		evc__threads_wake(e, EVC_ENGINE_ANY);
	return some;
}

/* Until a seat holds something, or the end. */
static void
sleep_until_rung(struct threads *e)
{
	uint32_t seen = sync_load_sc(&e->watch_bell);

	sync_store_sc(&e->watch_sleeps, 1);
	if (!look_at_seats(e) && sync_load_sc(&e->leaving) == 0 &&
	    sync_load_sc(&e->to_start) == 0)
		sync_futex_wait(&e->watch_bell, seen, SYNC_FOREVER);
	sync_store_sc(&e->watch_sleeps, 0);
}

evc_status
evc__threads_batch_watch(evc_coord *c, void *arg)
{
	struct threads *e = arg;
	unsigned empty = LOOKS;
	uint32_t seen;

	(void)c;
	if (!evc__threads_may_go(e))
		return 0;
	while (sync_load_sc(&e->leaving) == 0) {
		if (sync_load_sc(&e->to_start) != 0)
			evc__threads_start_missing(e);
		if (empty >= LOOKS)
			sleep_until_rung(e);
		seen = sync_load_sc(&e->watch_bell);
		if (sync_load_sc(&e->leaving) != 0)
			break;
		sync_futex_wait(&e->watch_bell, seen, LOOK_NS);
		empty = look_at_seats(e) ? 0 : empty + 1;
	}
	evc__threads_leave(e);
	return 0;
}
