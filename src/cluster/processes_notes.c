/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes: what any thread asks of the engine, under the cluster's lock, until the
 * loop reads it.  One mail is on its way at a time.
 */
#include "cluster/processes.h"

static struct processes *
of(evc_engine *engine)
{
	return (struct processes *)(void *)engine;
}

/* Lock held.  Without a loop there is nobody to do anything. */
static void
ring(struct processes *p)
{
	struct notes *n = &p->notes;

	if (!n->posted && !n->shut)
		n->posted = evc_post_mail(p->loop, &p->mail) == 0;
}

void
evc__processes_ring(struct processes *p)
{
	sync_lock(&p->notes.lock);
	ring(p);
	sync_unlock(&p->notes.lock);
}

void
evc__processes_wake(evc_engine *engine, int worker)
{
	struct processes *p = of(engine);

	/* What any of them may take, this one may; and to look costs little. */
	(void)worker;
	if (sync_xchg(&p->notes.wake, 1) != 0)
		return;
	evc__processes_ring(p);
}

void
evc__processes_cancel(evc_engine *engine, uint64_t upto)
{
	struct processes *p = of(engine);

	sync_lock(&p->notes.lock);
	if (upto > p->notes.asked.cancel_upto)
		p->notes.asked.cancel_upto = upto;
	ring(p);
	sync_unlock(&p->notes.lock);
}

/* Room for n more; false: no memory. */
static bool
more_room(uint64_t **at, size_t used, size_t *room, size_t n)
{
	size_t want = *room != 0 ? *room * 2 : 64;
	uint64_t *p;

	if (used + n <= *room)
		return true;
	p = sync_alloc(want, sizeof *p);
	if (p == NULL)
		return false;
	if (used > 0)
		memcpy(p, *at, used * sizeof *p);
	sync_free(*at);
	*at = p;
	*room = want;
	return true;
}

void
evc__processes_cancel_one(evc_engine *engine, unsigned worker, uint64_t number)
{
	struct processes *p = of(engine);
	struct asked *n = &p->notes.asked;

	sync_lock(&p->notes.lock);
	if (more_room(&n->ones, n->n_ones, &n->ones_room, 2)) {
		n->ones[n->n_ones++] = worker;
		n->ones[n->n_ones++] = number;
	}
	ring(p);
	sync_unlock(&p->notes.lock);
}

void
evc__processes_kill(evc_engine *engine, unsigned worker)
{
	struct processes *p = of(engine);

	sync_lock(&p->notes.lock);
	if (worker < p->n)
		p->notes.asked.kills[worker / 64] |= UINT64_C(1) << worker % 64;
	ring(p);
	sync_unlock(&p->notes.lock);
}

void
evc__processes_forget(evc_engine *engine, uint64_t id)
{
	struct processes *p = of(engine);
	struct asked *n = &p->notes.asked;

	/* The usual case.  <- keep(), on the loop: before the result was told,
	   and so before anybody can know that it is not needed. */
	if (sync_load_sc(&p->notes.n_kept) == 0)
		return;
	sync_lock(&p->notes.lock);
	/* Without memory it is forgotten when others have taken its room. */
	if (more_room(&n->forgets, n->n_forgets, &n->forgets_room, 1))
		n->forgets[n->n_forgets++] = id;
	ring(p);
	sync_unlock(&p->notes.lock);
}

void
evc__processes_leave(evc_engine *engine)
{
	struct processes *p = of(engine);

	sync_lock(&p->notes.lock);
	p->notes.asked.leave = true;
	ring(p);
	sync_unlock(&p->notes.lock);
}

/* ---- the loop's side ---- */

struct asked
evc__processes_asked(struct processes *p)
{
	struct asked now;

	sync_lock(&p->notes.lock);
	now = p->notes.asked;
	p->notes.asked = (struct asked){ .leave = now.leave,
					 .cancel_upto = now.cancel_upto };
	p->notes.posted = false;
	sync_unlock(&p->notes.lock);
	return now;
}

bool
evc__processes_shut(struct processes *p)
{
	bool shut;

	sync_lock(&p->notes.lock);
	shut = !p->notes.posted;
	p->notes.shut = shut;
	sync_unlock(&p->notes.lock);
	return shut;
}
