/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Additions of plain functions of which nobody wants the sum.  Such an addition
 * is noted, with others of the same function, and no answer is waited for.
 * Notes go out with the function's result; or before the function's next
 * question for a variable; or, when the function goes on for longer than HOLD_NS,
 * by a thread of their own, as questions whose answers the function's thread
 * reads later.  An impossible addition is remembered, and fails the function at
 * its end.
 * `out` of the process belongs to the thread of the functions; the other thread
 * uses it with the lock held, when there are notes and the function goes on.
 * Called by: serve.c, as operations of the worker; cluster/open/main.c.
 * Locks: additions.lock; `bell` is atomic.
 */
#include "cluster/worker/process.h"

#include <math.h>

#include "base/deadline.h"
#include "base/text.h"

/* Notes stay for up to twice as long. */
#define HOLD_NS UINT64_C(2000000)
/* Unread answers fill the link, and then the coordinator answers no more.  From
   this number on the function reads answers. */
#define UNANSWERED_MOST 128

enum { BELL_DOWN, BELL_RUNG, BELL_END };

/* ---- failures ---- */

/* The first failure counts. */
static void
note_failure(struct additions *a, evc_status st, const char *text)
{
	if (a->failed != 0)
		return;
	a->failed = st < 0 ? st : -st;
	evc__copy(a->why, sizeof a->why, text);
}

/* ---- notes; lock held ---- */

static struct addition *
find_note(struct additions *a, const char *name)
{
	unsigned i;

	for (i = 0; i < a->n; i++)
		if (strcmp(a->names + a->at[i].name, name) == 0)
			return &a->at[i];
	return NULL;
}

/* false: there is no room. */
static bool
add_note(struct additions *a, const evc_engine_update *u)
{
	struct addition *at = find_note(a, u->name);
	size_t size = strlen(u->name) + 1;

	if (at != NULL && !isfinite(at->by + u->by))
		return false;
	if (at != NULL) {
		at->by += u->by;
		return true;
	}
	if (a->n == ADDITIONS_MOST || size > sizeof a->names - a->n_names)
		return false;
	if (a->n == 0)
		a->group++;
	a->at[a->n++] = (struct addition){ .name = a->n_names, .by = u->by };
	memcpy(a->names + a->n_names, u->name, size);
	a->n_names += size;
	return true;
}

static evc_engine_update
update_of(const struct additions *a, unsigned i)
{
	return (evc_engine_update){ .op = EVC_VARIABLE_ADD,
				    .name = a->names + a->at[i].name,
				    .by = a->at[i].by };
}

static void
drop_notes(struct additions *a)
{
	a->n = 0;
	a->n_names = 0;
}

/* Put all notes into `out`, as questions. */
static void
put_notes(struct worker_process *p)
{
	struct additions *a = &p->additions;
	evc_engine_update u;
	unsigned i;
	evc_status st;

	for (i = 0; i < a->n; i++) {
		u = update_of(a, i);
		st = evc__frame_put_variable(&p->out.own, p->max_frame, &u);
		if (st == 0)
			a->unanswered++;
		else
			note_failure(a, st, evc_last_error());
	}
	drop_notes(a);
}

/* ---- the thread that sends late ---- */

/* The bell's state after a look.  *seen: the group of notes that was there at
   the last look. */
static uint32_t
look_at_notes(struct worker_process *p, uint64_t *seen)
{
	struct additions *a = &p->additions;
	uint32_t bell;

	sync_lock(&a->lock);
	if (a->n > 0 && a->group == *seen && !a->settling) {
		put_notes(p);
		evc__worker_flush_some(p);
	}
	*seen = a->group;
	if (a->n == 0 && sync_load_sc(&a->bell) == BELL_RUNG)
		sync_store_sc(&a->bell, BELL_DOWN);
	bell = sync_load_sc(&a->bell);
	sync_unlock(&a->lock);
	return bell;
}

static evc_status
send_late(evc_coord *c, void *arg)
{
	struct worker_process *p = arg;
	struct additions *a = &p->additions;
	uint64_t seen = 0;
	uint32_t bell;

	(void)c;
	while ((bell = sync_load_sc(&a->bell)) != BELL_END) {
		sync_futex_wait(&a->bell, bell,
				bell == BELL_DOWN ? SYNC_FOREVER : HOLD_NS);
		if (bell == BELL_RUNG)
			(void)look_at_notes(p, &seen);
	}
	return 0;
}

/* Have the thread look in a while.  false: there is no thread. */
static bool
ring(struct worker_process *p)
{
	static const evc_member_opts opts = { .flags = EVC_AFTER_STOP };
	struct additions *a = &p->additions;
	uint32_t down;

	if (!a->has_thread)
		a->has_thread = evc_thread_start(p->coord, "additions",
						 send_late, p, &opts,
						 NULL) == 0;
	down = BELL_DOWN;
	if (sync_cas(&a->bell, &down, BELL_RUNG))
		sync_futex_wake(&a->bell);
	return a->has_thread;
}

void
evc__additions_end(struct worker_process *p)
{
	sync_store_sc(&p->additions.bell, BELL_END);
	sync_futex_wake(&p->additions.bell);
}

/* ---- the thread of the functions ---- */

/* Read the answers to all questions that nobody has waited for.  false: the
   coordinator is gone. */
static bool
read_answers(struct worker_process *p, unsigned n)
{
	struct frame_reply reply;
	struct frame f;

	for (; n > 0; n--) {
		if (evc__worker_await(p, FRAME_REPLY, &f) <= 0 ||
		    evc__frame_get_reply(&f, &reply) < 0) {
			p->gone = true;
			return false;
		}
		if (reply.status < 0)
			note_failure(&p->additions, reply.status, reply.text);
		evc__worker_erase(p, &f);
	}
	return true;
}

bool
evc__additions_flush(struct worker_process *p)
{
	struct additions *a = &p->additions;
	unsigned n;

	if (!a->used)
		return !p->gone;
	sync_lock(&a->lock);
	put_notes(p);
	n = a->unanswered;
	a->unanswered = 0;
	sync_unlock(&a->lock);
	return read_answers(p, n);
}

evc_status
evc__additions_note(void *arg, const evc_engine_update *u)
{
	struct worker_process *p = arg;
	struct additions *a = &p->additions;
	bool fits, is_first, is_there = true;

	a->used = true;
	sync_lock(&a->lock);
	a->settling = false;
	is_first = a->n == 0;
	fits = a->unanswered < UNANSWERED_MOST && add_note(a, u);
	sync_unlock(&a->lock);
	if (!fits) {
		is_there = evc__additions_flush(p);
		sync_lock(&a->lock);
		is_first = add_note(a, u);
		sync_unlock(&a->lock);
	}
	/* Without the thread nothing is held back. */
	if (is_first && !ring(p))
		is_there = evc__additions_flush(p);
	return is_there ? 0 :
			  evc_refuse(-EVC_UNAVAILABLE,
				     "the worker has lost its coordinator");
}

#define NOTE_BYTES 32 /* bytes of a note in a frame, beside its name */

/* The notes become the updates of the result, if there is room in its frame. */
static void
take_notes(struct worker_process *p, evc_engine_result *ret)
{
	struct additions *a = &p->additions;
	unsigned i;

	if (ret->value.size + a->n_names + (a->n + 2) * NOTE_BYTES >
	    p->max_frame)
		return;

	for (i = 0; i < a->n; i++)
		a->updates[i] = update_of(a, i);
	ret->updates = a->updates;
	ret->n_updates = a->n;
	drop_notes(a);
}

evc_status
evc__additions_settle(void *arg, evc_engine_result *ret)
{
	struct worker_process *p = arg;
	struct additions *a = &p->additions;
	bool is_there;
	unsigned n;
	evc_status st;

	if (!a->used)
		return 0;
	sync_lock(&a->lock);
	a->settling = true;
	n = a->unanswered;
	a->unanswered = 0;
	sync_unlock(&a->lock);
	is_there = read_answers(p, n);
	sync_lock(&a->lock);
	/* Those of a function that fails are made nevertheless. */
	if (is_there && ret->code == 0 && a->failed == 0)
		take_notes(p, ret);
	sync_unlock(&a->lock);
	(void)evc__additions_flush(p);
	st = a->failed;
	if (st != 0)
		(void)evc_refuse(st, "%s", a->why);
	a->failed = 0;
	a->used = false;
	return st;
}
