/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register: the members that must have ended before the program may end.  A
 * thread that ends changes its state from LIVE to DONE, pushes its record on
 * the chain `done`, and rings.  A joining thread takes the whole chain and
 * reaps each record: the joining thread claims the record (DONE -> REAPING),
 * joins the ended thread, and frees the record.  A single thread can claim a
 * record, so each thread is joined once.  Who brings a new thread buries ended
 * threads first, because each of them keeps its stack until it is joined.
 *
 * Called by: all kinds of members, joins, the helper.
 * Locks: the coordinator's guards the lists.  A joining thread gives the lock
 * up only for the join of an ended thread, which may block; the claimed record
 * stays with the joining thread meanwhile.
 */
#include "base/probe.h"
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"
#include "core/join/join.h"
#include "core/status/trace.h"

/* ---- entries ---- */

struct evc__member *
evc__member_new(evc_coord *c, size_t size, unsigned kind, const char *name,
		const evc_member_opts *o)
{
	struct evc__member *m = sync_alloc(1, size);

	if (m == NULL)
		return NULL;
	m->c = c;
	m->e.kind = (uint8_t)kind;
	m->e.flags = o != NULL ? (uint16_t)o->flags : 0;
	m->grace = o != NULL ? o->grace : 0;
	m->mark.c = c;
	m->since_ns = evc__now(c);
	m->pidfd = -1;
	list_init(&m->node);
	evc__copy_dots(m->name, sizeof m->name, name);
	sync_store(&m->state, EVC_LIVE);
	return m;
}

evc_status
evc__member_add(evc_coord *c, struct evc__member *m)
{
	if (!evc__id_reserve(c, 1))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for the register");
	evc__id_add(c, &m->e);
	if (m->e.kind == EVC_HOOK) {
		list_append(&c->loop.hooks, &m->node);
		evc__trace_member(TRACE_BEGIN, m);
	} else
		evc__member_enter(c, m);
	return 0;
}

void
evc__member_enter(evc_coord *c, struct evc__member *m)
{
	evc__trace_member(TRACE_BEGIN, m);
	list_append(&c->member.all, &m->node);
	c->member.n++;
	c->member.n_threads += evc__is_thread(m);
	c->member.n_runners += m->e.kind == EVC_RUNNER;
	c->member.n_own_grace += m->grace != 0;
	if (m->grace != 0)
		sync_store_sc(&c->tree->own_grace, true);
	c->member.n_background += (m->e.flags & EVC_BACKGROUND) != 0;
	evc__alive_add(c);
}

/* Lock held.  yes: m has rung, but its thread could not be joined; no: m
   lingers no more. */
static void
set_lingers(struct evc__member *m, bool yes)
{
	evc_coord *c = m->c;
	unsigned change = (unsigned)yes - (unsigned)m->lingers;

	m->lingers = yes;
	c->member.n_lingering += change;
	while (change != 0 && (c = c->parent) != NULL)
		sync_add(&c->member.n_lingering_below, change);
}

evc_coord *
evc__member_leaves_scope(struct evc__member *m)
{
	evc_coord *s = m->scope;

	if (s == NULL)
		return NULL;
	sync_lock(&s->lock);
	evc__wakers_drop(m);
	evc__wakers_left(s, m);
	s->life.thread_runs = false;
	sync_unlock(&s->lock);
	m->scope = NULL;
	return s;
}

void
evc__member_leaves_scope_behind(struct evc__member *m)
{
	evc_coord *s = evc__member_leaves_scope(m);

	if (s == NULL)
		return;
	s->life.next_left = m->c->member.left;
	m->c->member.left = s;
	sync_store(&m->c->member.has_later, true);
}

/* Take m out of the id table and the list.  The memory of m stays while m is in
   the chain `done`. */
void
evc__member_unlink(struct evc__member *m)
{
	evc_coord *c = m->c;
	struct list *n, *tmp;

	/* The thread of m may have begun a join on a loop that no thread runs
	   any more. */
	if (m->n_joining > 0)
		LIST_EACH(n, tmp, &c->join.all) {
			struct evc__join *j =
				LIST_OF(n, struct evc__join, node);

			if (j->self == m) {
				j->self = NULL;
				j->self_here = false;
			}
		}
	evc__member_leaves_scope_behind(m);
	evc__wakers_drop(m);
	evc__mark_leaves(c, &m->mark);
	evc__trace_member(TRACE_REAPED, m);
	evc__id_remove(c, &m->e);
	list_remove(&m->node);
	sync_store(&m->state, EVC_REAPED);
	if (m->e.kind != EVC_HOOK) {
		evc__member_probed(m, false);
		set_lingers(m, false);
		c->member.n--;
		c->member.n_threads -= evc__is_thread(m);
		c->member.n_runners -= m->e.kind == EVC_RUNNER;
		c->member.n_own_grace -= m->grace != 0;
		c->member.n_background -= (m->e.flags & EVC_BACKGROUND) != 0;
	}
	if (m->ops != NULL && m->ops->release != NULL)
		m->ops->release(m);
	evc__release_due(c, m->e.id, m->release);
	m->release = NULL;
}

void
evc__member_gone(struct evc__member *m)
{
	evc_coord *c = m->c;

	if (m->e.kind == EVC_REGISTERED)
		evc__reasons_sign(c, m);
	if (evc__is_thread(m))
		evc__wakers_left(c, m);
	PROBE4(member_end, &c->name[0], &m->name[0], m->e.kind, m->e.id);
	evc__member_unlink(m);
	evc__outcome_keep(m);
	evc__ended_add(c);
	evc__alive_sub(c);
	if (!m->queued)
		sync_free(m);
	evc__ring(c);
}

void
evc__member_waits(bool yes)
{
	struct evc__member *m = evc__self()->member;
	evc_coord *c;

	if (m == NULL)
		return;
	c = m->c;
	sync_lock(&c->lock);
	m->n_waits += yes ? 1 : (unsigned)-1;
	sync_unlock(&c->lock);
	/* Phases do not wait for m any more, so a later phase may begin. */
	if (yes)
		evc__ring(c);
}

void
evc__ended_add(evc_coord *c)
{
	c->member.n_ended++;
	while ((c = c->parent) != NULL)
		sync_add(&c->member.n_ended_below, 1);
}

void
evc__ended_at_once(evc_coord *c)
{
	/* The member counts as alive for a moment, so that a closed round opens
	   again. */
	evc__alive_add(c);
	evc__ended_add(c);
	evc__alive_sub(c);
	evc__ring(c);
}

void
evc__member_probed(struct evc__member *m, bool yes)
{
	evc_coord *c = m->c;
	unsigned change = (unsigned)yes - (unsigned)m->probed;

	m->probed = yes;
	c->member.n_probed += change;
	while (change != 0 && (c = c->parent) != NULL)
		sync_add(&c->member.n_probed_below, change);
}

/* Lock held: the member that is the calling thread, if another thread has
   registered this thread.  evc__self() does not know such a member; the
   register does. */
static struct evc__member *
registered_self(const evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->member.all) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		if (m->e.kind == EVC_REGISTERED &&
		    sync_load(&m->state) == EVC_LIVE &&
		    (m->e.flags & EVC_NOT_JOINED ?
			     m->tid == evc__tid() :
			     pthread_equal(m->thread, pthread_self())))
			return m;
	}
	return NULL;
}

struct evc__member *
evc__member_self(const evc_coord *c)
{
	struct evc__member *m = evc__self()->member;

	return m != NULL && m->c == c ? m : registered_self(c);
}

struct evc__member *
evc__member_self_below(evc_coord *c)
{
	struct evc__member *m = evc__self()->member;
	struct list *n, *tmp;
	const evc_coord *a;

	for (a = m != NULL ? m->c : NULL; a != NULL; a = a->parent)
		if (a == c)
			return m;
	m = registered_self(c);
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = LIST_OF(n, evc_coord, sibling);

		if (m != NULL)
			break;
		if (sync_load_sc(&s->stop.alive) == 0)
			continue;
		sync_lock(&s->lock);
		m = evc__member_self_below(s);
		sync_unlock(&s->lock);
	}
	return m;
}

/* ---- ends ---- */

static void
push_done(struct evc__member *m)
{
	struct evc__member *head = sync_load(&m->c->member.done);

	do
		m->done_next = head;
	while (!sync_cas(&m->c->member.done, &head, m));
}

void
evc__member_done(struct evc__member *m)
{
	evc_coord *c = m->c;

	evc__trace_member(TRACE_END, m);
	/* `queued` is set before the state.  In the state DONE a probe may join
	   m at once; a queued record stays until a thread takes the record from
	   the chain. */
	m->queued = true;
	sync_store(&m->state, EVC_DONE);
	push_done(m);
	evc__ring(c);
}

/* Lock held, given up for the join of the thread.  m comes from the chain.
   false: the thread has not come to its end. */
static bool
reap_member(struct evc__member *m, uint64_t ns)
{
	uint32_t done = EVC_DONE;
	evc_coord *c = m->c;
	bool joined;

	/* A probe has joined m while m was in the chain, and has left the
	   memory to this function. */
	if (!sync_cas(&m->state, &done, EVC_REAPING)) {
		sync_free(m);
		return true;
	}
	sync_unlock(&c->lock);
	joined = m->ops->reap(m, ns);
	sync_lock(&c->lock);
	m->queued = false;
	if (joined) {
		evc__member_gone(m);
		return true;
	}
	/* Destructors of m's thread still run: joins probe m again, at the
	   times of their back-off. */
	sync_store(&m->state, EVC_DONE);
	evc__member_probed(m, true);
	set_lingers(m, true);
	evc__ring(c);
	return false;
}

bool
evc__members_reap(evc_coord *c, uint64_t ns)
{
	struct evc__member *m, *next, *in_order = NULL;

	if (sync_load_sc(&c->member.done) == NULL)
		return false;
	for (m = sync_xchg(&c->member.done, NULL); m != NULL; m = next) {
		next = m->done_next;
		m->done_next = in_order;
		in_order = m;
	}
	for (m = in_order; m != NULL; m = next) {
		next = m->done_next;
		/* The first thread that hangs uses up the time for all
		   threads. */
		if (!reap_member(m, ns))
			ns = 0;
	}
	return true;
}

/* The program may still name the thread of m, by its pthread_t, in a second
   registration or in the list of a join. */
static bool
is_known_outside(const struct evc__member *m)
{
	return m->e.kind == EVC_REGISTERED && !(m->e.flags & EVC_NOT_JOINED);
}

void
evc__members_bury(evc_coord *c)
{
	struct evc__member *m, *next;

	if (sync_load_sc(&c->member.done) == NULL)
		return;
	for (m = sync_xchg(&c->member.done, NULL); m != NULL; m = next) {
		next = m->done_next;
		if (sync_load(&m->state) != EVC_DONE)
			sync_free(m); /* joined by a probe */
		else if (!is_known_outside(m) && m->ops->probe(m)) {
			m->queued = false;
			evc__member_gone(m);
		} else
			push_done(m);
	}
}

void
evc__members_probe(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->member.all) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);
		uint32_t s = sync_load(&m->state);

		if (evc__is_thread(m) && (s == EVC_LIVE || s == EVC_DONE) &&
		    m->ops->probe(m))
			evc__member_gone(m);
	}
}

void
evc__later_add(evc_coord *c, struct evc__later *l)
{
	l->next = NULL;
	if (c->member.later == NULL)
		c->member.later_end = &c->member.later;
	*c->member.later_end = l;
	c->member.later_end = &l->next;
	sync_store(&c->member.has_later, true);
}

bool
evc__release_new(const evc_member_opts *o, void *arg, struct evc__later **ret)
{
	*ret = NULL;
	if (o == NULL || o->release == NULL)
		return true;
	*ret = sync_alloc(1, sizeof **ret);
	if (*ret == NULL)
		return false;
	(*ret)->release = o->release;
	(*ret)->arg = arg;
	return true;
}

void
evc__release_due(evc_coord *c, evc_id id, struct evc__later *l)
{
	struct list *n, *tmp;

	if (l == NULL)
		return;
	LIST_EACH(n, tmp, &c->wake.echoes)
		if (LIST_OF(n, struct evc__waker, node)->id == id) {
			LIST_OF(n, struct evc__waker, node)->then = l;
			return;
		}
	evc__later_add(c, l);
}

void
evc__member_discard(struct evc__member *m)
{
	sync_free(m->release);
	sync_free(m->outcome);
	sync_free(m);
}
