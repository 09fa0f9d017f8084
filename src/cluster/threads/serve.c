/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a worker that is a thread, from its first word to its last:
 * builds, batches of functions, sleep.
 * Called by: threads.c, as a thread's function; batch_watch.c.
 * Locks: seat.lock for the batch; the sink takes the cluster's lock above it.
 */
#include <evcoord/escalation.h>

#include "base/cpus.h"
#include "base/self.h"
#include "base/text.h"
#include "cluster/threads/threads.h"
#include "engine/flow.h"

/* Older results are told before the next function. */
#define HELD_MOST 0.001

/* ---- build ---- */

/* Build and drop definitions. false: there were none. */
static bool
build_defs(struct seat *s)
{
	struct threads *e = s->e;
	evc_engine_def def;
	evc_status code;
	double seconds;
	bool any = false;

	while (e->sink->defs(e->core, s->index, &def)) {
		any = true;
		/* Queued functions need another worker during the build. */
		evc__seat_get_up(s);
		if (s->called) {
			s->called = false;
			evc__threads_wake(e, EVC_ENGINE_ANY);
		}
		/* The name of a definition is not static. */
		evc_progress(def.kind == EVC_DEF_DROP ? "drops something"
						      : "builds something");
		code = evc__worker_define(s->w, &def, NULL, &seconds);
		if (threads_inherited(e))
			return true;
		if (def.kind != EVC_DEF_DROP)
			e->sink->built(e->core, s->index, def.id, code,
				       seconds);
	}
	if (any)
		evc__worker_done(s->w);
	return any;
}

/* ---- a batch ---- */

void
evc__seat_flush(struct seat *s)
{
	if (s->sent < s->done)
		s->e->sink->finished(s->e->core, s->index, s->results + s->sent,
				     s->done - s->sent);
	s->sent = s->done;
	if (sync_load_relaxed(&s->unmade) != 0) {
		sync_store_sc(&s->unmade, 0);
		sync_sub(&s->e->n_unmade, 1);
	}
}

/* Lock held: the function has ended. */
static void
note_done(struct seat *s, unsigned i)
{
	s->done = i + 1;
	if (s->results[i].n_updates == 0 ||
	    sync_load_relaxed(&s->unmade) != 0)
		return;
	sync_store_sc(&s->unmade, 1);
	sync_add(&s->e->n_unmade, 1);
}

void
evc__seat_give_back(struct seat *s)
{
	evc_engine_result back[sizeof s->tasks / sizeof s->tasks[0]];
	unsigned i, n = 0;

	for (i = s->end; i > s->next; i--)
		back[n++] = flow_given_back(s->tasks[i - 1].n);
	s->end = s->next;
	s->e->sink->finished(s->e->core, s->index, back, n);
}

/* Lock held: take the next function. false: the batch is at its end. */
static bool
begin_next_task(struct seat *s, unsigned *ret)
{
	/* After the stop no function begins; the cluster cancels the others. */
	if (s->next < s->end && evc_should_stop(s->e->scope))
		evc__seat_give_back(s);
	if (s->next >= s->end)
		return false;
	*ret = s->next++;
	return true;
}

static double
run_task(struct seat *s, unsigned i)
{
	evc_progress(s->tasks[i].function);
	evc__worker_run(s->w, &s->tasks[i], &s->results[i]);
	return s->results[i].took > 0 ? s->results[i].took : 0;
}

_Static_assert((BATCH_MOST & (BATCH_MOST - 1)) == 0, "twice as many end there");

static void
run_batch(struct seat *s, unsigned n)
{
	double held = 0, all = 0, took;
	unsigned i;
	bool more;

	sync_lock(&s->lock);
	s->batch++;
	s->next = s->sent = s->done = 0;
	s->end = n;
	s->hurried = false;
	more = begin_next_task(s, &i);
	sync_unlock(&s->lock);
	/* No function waits behind a single one. */
	if (n > 1)
		evc__batch_watch_mark(s);
	while (more) {
		took = run_task(s, i);
		if (threads_inherited(s->e))
			return;
		all += took;
		held += took;
		sync_lock(&s->lock);
		note_done(s, i);
		more = begin_next_task(s, &i);
		if (!more || held > HELD_MOST) {
			evc__seat_flush(s);
			evc__worker_rests(s->w);
			held = 0;
		}
		sync_unlock(&s->lock);
	}
	if (n > 1)
		sync_store_sc(&s->holds, 0);
	evc__worker_done(s->w);
	s->window = s->hurried ? 1 :
				 flow_next_batch(s->window, n, all, HELD_MOST,
						 BATCH_MOST);
}

#define BREATHS 32

/* A thread as fast as the functions come would take each of them, and the lock,
   from the hands of the thread that schedules.  So the worker lets a few
   functions come together, for about a microsecond.  After a sleep there is no
   such wait, for the sake of single functions. */
static void
let_tasks_come(struct seat *s)
{
	if (s->ahead)
		evc__breathe(BREATHS);
	s->ahead = false;
}

/* A leaving worker was woken for any function: others rely on the wake-up. */
static void
pass_call_on(struct seat *s)
{
	if (s->called)
		evc__threads_wake(s->e, EVC_ENGINE_ANY);
	s->called = false;
}

static bool
work_once(struct seat *s)
{
	struct threads *e = s->e;
	unsigned most = s->window, n;
	bool was_down = sync_load_relaxed(&s->bed) != BED_UP;
	bool built = build_defs(s);

	if (threads_inherited(e) || evc_should_stop(e->scope))
		return built;
	let_tasks_come(s);
	n = e->sink->take(e->core, s->index, s->tasks, most);
	if (n == 0) {
		if (seat_is_extra(s))
			pass_call_on(s);
		return built;
	}
	evc__seat_get_up(s);
	if (s->called) {
		s->called = false;
		if (n == most || was_down)
			evc__threads_wake(e, EVC_ENGINE_ANY);
	}
	run_batch(s, n);
	s->ahead = n < most;
	return true;
}

/* ---- life ---- */

bool
evc__threads_may_go(struct threads *e)
{
	uint32_t go;

	while ((go = sync_load(&e->go)) == GO_WAIT)
		sync_futex_wait(&e->go, GO_WAIT, SYNC_FOREVER);
	if (go == GO_SERVE)
		return true;
	/* The engine may be gone after the last step: a wake-up of a freed word
	   wakes nobody. */
	if (sync_sub(&e->n_live, 1) == 1)
		sync_futex_wake(&e->n_live);
	return false;
}

void
evc__threads_leave(struct threads *e)
{
	const evc_engine_sink *sink = e->sink;
	void *core = e->core;

	/* A thread that is not the last touches nothing afterwards; nor does
	   the last thread after its last word. */
	if (sync_sub(&e->n_live, 1) == 1)
		sink->closed(core);
}

static void
vacate_seat(struct seat *s)
{
	struct threads *e = s->e;

	struct worker *w = s->w;

	/* From here on without cancels. */
	sync_lock(&e->lock);
	s->w = NULL;
	sync_unlock(&e->lock);
	evc_progress("drops what it keeps");
	evc__worker_free(w);
	if (threads_inherited(e))
		return;
	evc_progress(NULL);
	/* The text of a lost thread stays. */
	e->sink->gone(e->core, s->index,
		      sync_load_sc(&s->lost) != SEAT_SOUND ? NULL :
		      sync_load_sc(&e->leaving) != 0	   ? "it has ended" :
							     "it has left",
		      EVC_ENGINE_LEFT);
	evc__seat_empty(s);
}

/* Is the thread to leave the seat? */
static bool
has_to_leave(struct seat *s)
{
	struct threads *e = s->e;

	return sync_load_sc(&e->leaving) != 0 ||
	       (seat_is_extra(s) && e->sink->leave(e->core, s->index));
}

/* Is the rest of a thread to leave the seat?  Each resize brings a thread again,
   also one to the same number. */
static bool
is_renewed(struct seat *s)
{
	return has_to_leave(s) ||
	       (!seat_is_extra(s) && sync_load_sc(&s->lost) == SEAT_RENEWED);
}

/* A function has ended the thread.  The rest of the thread waits for the end,
   without its seat when that is one too many: an early end would be an error of
   the scope. */
static void
lose_seat(void *arg)
{
	struct seat *s = arg;
	struct threads *e = s->e;
	char why[256];
	struct text t = evc__text_in(why, sizeof why);

	sync_unwound();
	if (threads_inherited(e))
		return;
	sync_lock(&s->lock);
	evc__seat_flush(s);
	/* The other functions begin again elsewhere. */
	s->end = s->next;
	sync_store_sc(&s->holds, 0);
	sync_unlock(&s->lock);
	sync_store_sc(&s->lost, SEAT_LOST);
	evc__text_fmt(&t, "worker %u (tid %d): a function has ended its thread",
		      s->index, sync_load(&s->tid));
	e->sink->gone(e->core, s->index, why, EVC_ENGINE_DIED_RUNNING);
	evc_progress(NULL);
	for (evc__seat_lie_lost(s); !is_renewed(s); evc__seat_lie_lost(s))
		evc__seat_sleep(s);
	vacate_seat(s);
	if (threads_inherited(e))
		return;
	while (sync_load_sc(&e->leaving) == 0)
		sync_futex_wait(&e->leaving, 0, SYNC_FOREVER);
	evc__threads_leave(e);
}

/* Not inlined: local variables must not stand beside a cleanup handler's. */
static __attribute__((noinline)) void
serve_seat(struct seat *s)
{
	struct threads *e = s->e;

	while (sync_load_sc(&e->leaving) == 0) {
		if (work_once(s)) {
			if (threads_inherited(e))
				return;
			continue;
		}
		if (has_to_leave(s))
			break;
		if (sync_load_relaxed(&s->bed) == BED_UP) {
			evc_progress(NULL);
			evc__seat_lie_down(s);
		} else {
			evc__seat_sleep(s);
		}
	}
	evc__seat_get_up(s);
	pass_call_on(s);
}

evc_status
evc__threads_worker(evc_coord *c, void *seat)
{
	struct seat *s = seat;
	struct threads *e = s->e;
	char where[32];
	struct text t = evc__text_in(where, sizeof where);

	(void)c;
	if (!evc__threads_may_go(s->e))
		return 0;
	evc__exec_of = e->core;
	sync_store(&s->tid, evc__tid());
	evc__text_fmt(&t, "tid %d", evc__tid());
	e->sink->up(s->e->core, s->index, NULL, where);
	pthread_cleanup_push(lose_seat, s);
	serve_seat(s);
	pthread_cleanup_pop(0);
	if (threads_inherited(e))
		return 0;
	vacate_seat(s);
	if (!threads_inherited(e))
		evc__threads_leave(e);
	return 0;
}
