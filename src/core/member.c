/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register: who must have ended before the program may.
 *
 * A thread's end is one atomic step on its own state, then a push on the chain
 * c->done, then a ring; whoever joins takes the whole chain and reaps it.  Only
 * one can claim a record (DONE -> REAPING), so each thread is joined once.  The
 * lock guards the lists; it is given up for the one thing that may block, the
 * join of an ended thread, and the claimed record stays ours meanwhile.
 */
#include "base/text.h"
#include "core/join.h"

/* ---- what is alive ---- */

void
evc__alive_add(evc_coord *c)
{
	/* Add, then read the word; who closes sets CLOSING, then reads the
	   count: at least one of the two sees the other. */
	sync_add(&c->alive, 1);
	evc__reopen(c);
}

void
evc__reopen(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);

	while (w & (WORD_CLOSING | WORD_JOINED))
		if (sync_cas(&c->word, &w, w & ~(WORD_CLOSING | WORD_JOINED)))
			break;
}

void
evc__alive_sub(evc_coord *c)
{
	sync_sub(&c->alive, 1);
}

/* ---- the table of ids: numbers count up, so their low bits spread well ---- */

bool
evc__id_room(evc_coord *c, unsigned more)
{
	unsigned n = c->id_buckets != 0 ? c->id_buckets : 64, i;
	struct evc__member **table, *m, *next;

	while (n < c->n_entries + more)
		n *= 2;
	if (n == c->id_buckets)
		return true;
	table = sync_alloc(n, sizeof *table);
	if (table == NULL)
		return c->id_buckets != 0; /* longer chains do as well */
	for (i = 0; i < c->id_buckets; i++)
		for (m = c->id_table[i]; m != NULL; m = next) {
			next = m->by_id;
			m->by_id = table[m->id & (n - 1)];
			table[m->id & (n - 1)] = m;
		}
	sync_free(c->id_table);
	c->id_table = table;
	c->id_buckets = n;
	return true;
}

struct evc__member *
evc__member_find(const evc_coord *c, evc_id id)
{
	struct evc__member *m = NULL;

	if (id != 0 && c->id_buckets != 0)
		m = c->id_table[id & (c->id_buckets - 1)];
	while (m != NULL && m->id != id)
		m = m->by_id;
	return m;
}

/* ---- entries ---- */

struct evc__member *
evc__member_new(evc_coord *c, size_t size, unsigned kind, const char *name,
		const evc_member_opts *o)
{
	struct evc__member *m = sync_alloc(1, size);

	if (m == NULL)
		return NULL;
	m->c = c;
	m->kind = kind;
	m->flags = o != NULL ? o->flags : 0;
	m->grace = o != NULL ? o->grace : 0;
	m->since_ns = evc__now(c);
	m->pidfd = -1;
	list_init(&m->node);
	evc__copy(m->name, sizeof m->name, name);
	sync_store(&m->state, EVC_LIVE);
	return m;
}

evc_status
evc__member_add(evc_coord *c, struct evc__member *m)
{
	if (!evc__id_room(c, 1))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for the register");
	if (m->id == 0) /* else: numbered by who starts it */
		m->id = c->last_id + 1;
	c->last_id = m->id;
	m->round = WORD_ROUND(sync_load(&c->word));
	m->by_id = c->id_table[m->id & (c->id_buckets - 1)];
	c->id_table[m->id & (c->id_buckets - 1)] = m;
	c->n_entries++;
	if (m->kind == EVC_HOOK) {
		list_append(&c->hooks, &m->node);
		return 0;
	}
	list_append(&c->members, &m->node);
	c->n_members++;
	c->n_threads += m->ops != NULL;
	c->n_own_grace += m->grace != 0;
	c->n_background += (m->flags & EVC_BACKGROUND) != 0;
	evc__alive_add(c);
	return 0;
}

/* Out of table and list; memory stays while it stands in c->done. */
void
evc__member_unlink(struct evc__member *m)
{
	evc_coord *c = m->c;
	struct evc__member **p = &c->id_table[m->id & (c->id_buckets - 1)];
	struct list *n, *tmp;

	/* It left an evented join behind, on a loop that runs no more. */
	if (m->n_joining > 0)
		LIST_EACH(n, tmp, &c->joins) {
			struct evc__join *j = LIST_OF(n, struct evc__join, node);

			if (j->self == m)
				j->self = NULL;
		}
	while (*p != m)
		p = &(*p)->by_id;
	*p = m->by_id;
	c->n_entries--;
	list_remove(&m->node);
	sync_store(&m->state, EVC_REAPED);
	if (m->kind != EVC_HOOK) {
		evc__member_probed(m, false);
		c->n_lingering -= m->lingers;
		c->n_members--;
		c->n_threads -= m->ops != NULL;
		c->n_own_grace -= m->grace != 0;
		c->n_background -= (m->flags & EVC_BACKGROUND) != 0;
	}
	if (m->ops != NULL && m->ops->release != NULL)
		m->ops->release(m);
}

void
evc__member_gone(struct evc__member *m)
{
	evc_coord *c = m->c;

	if (m->kind == EVC_REGISTERED)
		evc__reasons_sign(c, m);
	evc__member_unlink(m);
	c->n_ended++;
	evc__alive_sub(c);
	if (!m->queued)
		sync_free(m);
	evc__ring(c);
}

void
evc__member_probed(struct evc__member *m, bool yes)
{
	m->c->n_probed += (unsigned)yes - (unsigned)m->probed;
	m->probed = yes;
}

struct evc__member *
evc__member_self(const evc_coord *c)
{
	struct evc__member *m = evc__self()->member;
	struct list *n, *tmp;

	if (m != NULL && m->c == c)
		return m;
	/* Registered by somebody else: only the register knows. */
	LIST_EACH(n, tmp, &c->members) {
		m = LIST_OF(n, struct evc__member, node);
		if (m->kind == EVC_REGISTERED &&
		    sync_load(&m->state) == EVC_LIVE &&
		    pthread_equal(m->thread, pthread_self()))
			return m;
	}
	return NULL;
}

/* ---- ends ---- */

void
evc__member_done(struct evc__member *m)
{
	evc_coord *c = m->c;
	struct evc__member *head;

	/* Before the step: who joins it before the chain is taken leaves the
	   record to who takes the chain. */
	m->queued = true;
	sync_store(&m->state, EVC_DONE);
	head = sync_load(&c->done);
	do
		m->done_next = head;
	while (!sync_cas(&c->done, &head, m));
	evc__ring(c);
}

/* Lock held, given up for the join itself.  false: it hangs. */
static bool
reap(struct evc__member *m, uint64_t ns)
{
	uint32_t done = EVC_DONE;
	evc_coord *c = m->c;
	bool joined;

	/* A probe may have joined it while it stood in the chain. */
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
	/* Its destructors take their time: look again on the back-off. */
	sync_store(&m->state, EVC_DONE);
	evc__member_probed(m, true);
	c->n_lingering += !m->lingers;
	m->lingers = true;
	evc__ring(c);
	return false;
}

bool
evc__members_reap(evc_coord *c, uint64_t ns)
{
	struct evc__member *m, *next, *in_order = NULL;

	if (sync_load_sc(&c->done) == NULL)
		return false;
	for (m = sync_xchg(&c->done, NULL); m != NULL; m = next) {
		next = m->done_next;
		m->done_next = in_order;
		in_order = m;
	}
	for (m = in_order; m != NULL; m = next) {
		next = m->done_next;
		/* One that hangs has used up the time for all. */
		if (!reap(m, ns))
			ns = 0;
	}
	return true;
}

void
evc__members_refresh(evc_coord *c)
{
	evc__members_reap(c, BACKOFF_MOST_NS);
	evc__members_probe(c);
}

void
evc__members_probe(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->members) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);
		uint32_t s = sync_load(&m->state);

		if (m->ops != NULL && (s == EVC_LIVE || s == EVC_DONE) &&
		    m->ops->probe(m))
			evc__member_gone(m);
	}
}
