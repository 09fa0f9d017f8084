/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function that the thread of a loop is in: when a loop does not turn, a
 * report names the function that holds up the loop.
 *
 * Called by: all callers of the user's functions on a loop; reports.
 * Locks: none; only the loop's thread writes, with relaxed stores, and the
 * chain of calls is thread-local.
 */

/*
 * A report may read a name safely: the owner of a name is freed under the
 * coordinator's lock, after evc__busy_end, and reports read under this lock.
 * For this reason a reactor keeps only names of its own coordinator; inside a
 * function of another coordinator, the report has no name.
 *
 * The stores are relaxed and order nothing, because a report may show the state
 * of any moment.
 *
 * The calls of a thread form a chain, because a call may free the reactor of
 * another call.
 */
#include "core/core.h"

#include "base/text.h"

static __thread struct evc__busy *innermost;

/* Only the loop's thread writes, so a load and a store are enough. */
static void
count_busy(struct evc__loop_waker *lw, uint32_t change)
{
	sync_store_relaxed(&lw->busy, sync_load_relaxed(&lw->busy) + change);
}

void
evc__busy_begin(evc_reactor *r, const evc_coord *c, enum evc__busy_kind kind,
		const char *name, struct evc__busy *keep)
{
	struct evc__self *self = evc__self();

	if (r == NULL && innermost != NULL)
		r = innermost->r;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &keep->cancel);
	keep->up = innermost;
	keep->r = r;
	keep->mark = self->mark;
	/* A turn is no callback, neither for c nor for another coordinator. */
	keep->counted = kind != BUSY_TURN;
	innermost = keep;
	if (r == NULL)
		return;
	keep->text = sync_load_relaxed(&r->mark.text);
	keep->name = sync_load_relaxed(&r->busy_name);
	keep->kind = sync_load_relaxed(&r->busy_kind);
	count_busy(r->waker, keep->counted);
	sync_store_relaxed(&r->busy_name, r->c == c ? name : NULL);
	sync_store_relaxed(&r->busy_kind, kind);
	/* The time of the last progress stays; the text does not. */
	sync_store_relaxed(&r->mark.text, NULL);
	self->mark = &r->mark;
}

void
evc__busy_end(struct evc__busy *keep)
{
	evc_reactor *r = keep->r;

	innermost = keep->up;
	evc__self()->mark = keep->mark;
	pthread_setcancelstate(keep->cancel, NULL);
	if (r == NULL)
		return;
	sync_store_relaxed(&r->mark.text, keep->text);
	sync_store_relaxed(&r->busy_kind, keep->kind);
	sync_store_relaxed(&r->busy_name, keep->name);
	count_busy(r->waker, 0u - keep->counted);
}

void
evc__busy_forget(evc_reactor *r)
{
	struct evc__self *self = evc__self();
	struct evc__busy *b;

	for (b = innermost; b != NULL; b = b->up) {
		if (b->mark == &r->mark)
			b->mark = NULL;
		if (b->r != r)
			continue;
		b->r = NULL;
		count_busy(r->waker, 0u - b->counted);
	}
	if (self->mark == &r->mark)
		self->mark = NULL;
}

void
evc__busy_inherited(void)
{
	struct evc__frame *f;
	struct evc__loop_waker_frame *g;
	struct evc__busy *b;

	for (b = innermost; b != NULL; b = b->up) {
		if (b->r != NULL) {
			for (f = b->r->frames; f != NULL; f = f->up)
				f->gone = true;
			for (g = b->r->waker->frames; g != NULL; g = g->up)
				g->gone = true;
			sync_lock_init(&b->r->c->lock);
		}
		b->r = NULL;
		b->mark = NULL;
	}
	innermost = NULL;
}

void
evc__busy_left(void)
{
	innermost = NULL;
}

/* ---- for reports ---- */

/* A host may have nothing to do for an hour: outside a turn its silence is as
   old as the first reason for a turn. */
static void
look_at_turn(const struct evc__loop_waker *lw, struct evc__silence *s)
{
	uint64_t turned = sync_load_relaxed(&lw->turned), now = sync_real();

	s->rests = sync_load_relaxed(&lw->rests);
	if (turned == 0)
		return;
	s->least = lw->host != NULL && sync_load_relaxed(&lw->host->turns) == 0;
	if (s->least) {
		s->since_s = (double)evc__host_waits(lw->host) / 1e9;
		s->rests = s->since_s == 0;
		return;
	}
	/* The wall clock may have been put back. */
	s->since_s = now > turned ? (double)(now - turned) / 1e9 : 0;
}

struct evc__silence
evc__reactor_silence(const evc_reactor *r)
{
	struct evc__silence s = { .since_s = -1 };
	uint64_t w = sync_load(&r->c->word);
	const char *name;

	if (r->loop == NULL)
		return s;
	s.silent = (w & WORD_FLAG) &&
		   sync_load(&r->heard) != WORD_STOP_NUMBER(w);
	look_at_turn(r->waker, &s);
	s.kind = sync_load_relaxed(&r->busy_kind);
	name = sync_load_relaxed(&r->busy_name);
	if (s.kind == BUSY_APPLICATION) {
		if (sync_load_relaxed(&r->waker->busy) > 0)
			s.kind = BUSY_ELSEWHERE;
	} else if (name != NULL)
		evc__copy(s.name, sizeof s.name, name);
	return s;
}

const char *
evc__busy_text(enum evc__busy_kind kind)
{
	static const char *const text[] = {
		[BUSY_APPLICATION] = "a callback of the application",
		[BUSY_TURN] = "evcoord's own turn",
		[BUSY_HOOK] = "stop hook",
		[BUSY_TASKS] = "on_stop of task class",
		[BUSY_LATE] = "on_late of task class",
		[BUSY_DESCRIBE] = "describe of task class",
		[BUSY_LOOPER] = "looper",
		[BUSY_RUNNER] = "an operation of runner",
		[BUSY_JOIN] = "the callback of a join of",
		[BUSY_ENDED] = "`ended` of",
		[BUSY_SETUP] = "the setup of",
		[BUSY_POST] = "a post",
		[BUSY_ELSEWHERE] = "a callback for another coordinator",
	};

	return text[kind];
}

void
evc__text_silent_loops(struct text *t, const evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);
		struct evc__silence s = evc__reactor_silence(r);

		if (!s.silent)
			continue;
		evc__text_fmt(t, "; loop %s has not turned: in %s", r->name,
			      evc__busy_text(s.kind));
		if (s.name[0] != '\0')
			evc__text_fmt(t, " %s", s.name);
		if (s.kind == BUSY_APPLICATION && s.since_s < 0)
			evc__text_add(t, ", or nobody has run it yet");
	}
}
