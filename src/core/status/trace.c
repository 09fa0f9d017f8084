/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline's ring of events.
 *
 * Called by: the notes of trace.h, from any thread and from signal handlers;
 * the trace writers of src/observe.
 * Locks: start and stop take the root's lock.  Writers take none: the first
 * word of a slot orders writers and readers, tree->trace is stored by
 * start_ring() and loaded by evc__trace_put.
 */

/*
 * How a slot is written and read.  A writer takes the next number, and with the
 * number the slot at number modulo size.  The first word of a slot is 2k + 1
 * while event k is being written, 2k + 2 when event k is complete.  A writer
 * makes the word odd by a CAS from a smaller, even value.  When the CAS fails,
 * a newer event is in the slot, or another writer was held up in an older
 * event: the event is dropped and counts as lost.  So no writer waits, and a
 * writer that was overtaken by a whole round of the ring spoils nothing.
 *
 * A reader copies a slot and then checks that the first word has not changed.
 * The other words are stored with release and loaded with acquire: a reader of
 * a later event's word sees the odd first word before that.
 */
#include "core/core.h"
#include "core/status/trace.h"

#include "base/self.h"

#define N_MOST ((size_t)1 << 24)

enum {
	W_SEQ,
	W_NS,
	W_ID,
	W_ARG,
	W_WHERE, /* tid << 32 | coordinator */
	W_WHAT,  /* kind << 8 | what */
	W_NAME,
	W_MORE = W_NAME + TRACE_NAME / 8,
	N_WORDS = W_MORE + TRACE_MORE / 8
};

struct slot {
	/* atomic: writers among themselves, and -> readers */
	_Atomic uint64_t word[N_WORDS];
};
_Static_assert(sizeof(struct slot) == 128, "evcoord/trace.h says so");

struct evc__trace {
	struct evc__trace *before; /* root's lock: next ring, of another size;
				      all rings stay until the root goes */
	uint32_t n;                /* set at creation */
	/* atomic: evc_trace_start -> readers */
	_Atomic uint64_t since, first; /* time and number of the beginning */
	/* atomic: writers among themselves */
	_Alignas(128) _Atomic uint64_t next;
	struct slot slot[];
};

/* ---- writing ---- */

static void
put_event(struct evc__trace *t, const uint64_t *word)
{
	uint64_t k = sync_add(&t->next, 1), seen;
	struct slot *s = &t->slot[k % t->n];
	unsigned i;

	seen = sync_load_relaxed(&s->word[W_SEQ]);
	if ((seen & 1) || seen > 2 * k ||
	    !sync_cas(&s->word[W_SEQ], &seen, 2 * k + 1))
		return;
	for (i = W_SEQ + 1; i < N_WORDS; i++)
		sync_store(&s->word[i], word[i]);
	sync_store(&s->word[W_SEQ], 2 * k + 2);
}

static void
put_text(uint64_t *word, size_t room, const char *s)
{
	memset(word, 0, room);
	if (s != NULL)
		memcpy(word, s, strnlen(s, room - 1));
}

void
evc__trace_put(const evc_coord *c, const struct evc__note *n)
{
	/* start_ring stores `trace` last: so a ring that is seen here is
	   complete. */
	struct evc__trace *t = sync_load(&c->tree->trace);
	uint64_t word[N_WORDS];
	int tid;

	/* The ring in a fork child is a copy, which no report shows. */
	if (t == NULL || !evc__same_process(c))
		return;
	tid = n->tid != 0 ? n->tid : evc__tid();
	word[W_NS] = n->ns != 0 ? n->ns : sync_mono();
	word[W_ID] = n->id;
	word[W_ARG] = n->arg;
	word[W_WHERE] = (uint64_t)(uint32_t)tid << 32 | c->number;
	word[W_WHAT] = (uint64_t)n->kind << 8 | n->what;
	put_text(&word[W_NAME], TRACE_NAME, n->name);
	put_text(&word[W_MORE], TRACE_MORE, n->more);
	put_event(t, word);
}

void
evc__trace_put_member(enum evc__trace_what what, const struct evc__member *m)
{
	bool over = what == TRACE_END || what == TRACE_REAPED;
	struct evc__note n = {
		.what = what,
		.kind = m->e.kind,
		.id = m->e.id,
		.tid = m->tid,
		.name = m->name,
	};

	if (over && m->c->status.clock == NULL)
		n.arg = m->since_ns;
	if (over)
		n.more = sync_load_relaxed(&m->mark.text);
	evc__trace_put(m->c, &n);
}

void
evc__trace_put_request(const evc_coord *c, const struct evc__request *q,
		       uint64_t ns, uint64_t arg)
{
	const struct evc__member *m = evc__self()->member;
	const struct evc__acting *as = evc__self()->acting;
	struct evc__note n = {
		.what = TRACE_REQUEST,
		.ns = ns,
		.kind = q->kind,
		.id = q->by,
		.arg = arg,
		.tid = q->tid,
		.name = q->text,
		.more = q->who,
	};

	/* The event has the same author as the reason. */
	if (as != NULL && as->c != c)
		as = NULL;
	if (n.kind == 0)
		n.kind = evc__is_clean(c,
				       TRACE_ASKED_WON(arg) ? 0 : WORD_FLAG,
				       q->code) ?
				 EVC_BY_REQUEST :
				 EVC_BY_ERROR;
	if (n.id == 0 && as != NULL)
		n.id = as->id;
	else if (n.id == 0 && m != NULL && m->c == c)
		n.id = m->e.id;
	if (n.more == NULL)
		n.more = as != NULL ? as->name :
			 m != NULL  ? m->name :
				      evc__thread_name();
	evc__trace_put(c, &n);
}

void
evc__trace_put_heard(const evc_reactor *r)
{
	uint64_t w = sync_load(&r->c->word);

	if ((w & WORD_FLAG) &&
	    sync_load_relaxed(&r->heard) != WORD_STOP_NUMBER(w))
		evc__trace(r->c, TRACE_HEARD, (uint64_t)r->tid, TRACE_LOOP,
			   r->name, r->owner);
}

void
evc__trace_put_awake(const evc_coord *c)
{
	const struct evc__member *m = evc__self()->member;
	bool ours = m != NULL && m->c == c;
	struct evc__note n = {
		.what = TRACE_AWAKE,
		.kind = ours ? m->e.kind : TRACE_WAITER,
		.id = ours ? m->e.id : (uint64_t)evc__tid(),
		.name = m != NULL ? m->name : evc__thread_name(),
	};

	evc__trace_put(c, &n);
}

/* ---- reading ---- */

struct evc__trace *
evc__trace_last(const evc_coord *c)
{
	return sync_load(&c->tree->recorded);
}

size_t
evc__trace_room(const struct evc__trace *t)
{
	return t->n;
}

uint64_t
evc__trace_since(const struct evc__trace *t)
{
	return sync_load(&t->since);
}

/* false: the slot is empty, or being written. */
static bool
get_event(struct slot *s, struct evc__record *to)
{
	uint64_t word[N_WORDS];
	unsigned i;

	for (i = 0; i < N_WORDS; i++)
		word[i] = sync_load(&s->word[i]);
	if (word[W_SEQ] == 0 || (word[W_SEQ] & 1) ||
	    sync_load_relaxed(&s->word[W_SEQ]) != word[W_SEQ])
		return false;
	to->number = word[W_SEQ] / 2 - 1;
	to->ns = word[W_NS];
	to->id = word[W_ID];
	to->arg = word[W_ARG];
	to->coord = (uint32_t)word[W_WHERE];
	to->tid = (int)(word[W_WHERE] >> 32);
	to->what = (uint8_t)word[W_WHAT];
	to->kind = (uint8_t)(word[W_WHAT] >> 8);
	memcpy(to->name, &word[W_NAME], TRACE_NAME);
	memcpy(to->more, &word[W_MORE], TRACE_MORE);
	return true;
}

size_t
evc__trace_read(struct evc__trace *t, struct evc__record *to,
		uint64_t *ret_lost)
{
	uint64_t first = sync_load(&t->first), end, all;
	size_t n = 0, i;

	for (i = 0; i < t->n; i++)
		n += get_event(&t->slot[i], &to[n]) && to[n].number >= first;
	/* `next` is read after the slots, so it is beyond the number of each
	   event in the slots. */
	end = sync_load(&t->next);
	all = end > first ? end - first : 0;
	*ret_lost = all > n ? all - n : 0;
	return n;
}

/* ---- on and off ---- */

/* Lock held: an old ring of this size, or NULL.  Late writers may still write
   into the ring; their events have numbers from before `first`. */
static struct evc__trace *
find_ring(const evc_coord *c, size_t n)
{
	struct evc__trace *t = c->tree->rings;

	while (t != NULL && t->n != n)
		t = t->before;
	return t;
}

static struct evc__trace *
make_ring(size_t n)
{
	struct evc__trace *t = sync_alloc_aligned(
		_Alignof(struct evc__trace), sizeof *t + n * sizeof t->slot[0]);

	if (t != NULL)
		t->n = (uint32_t)n;
	return t;
}

/* Lock held. */
static void
start_ring(evc_coord *c, struct evc__trace *t)
{
	sync_store(&t->since, sync_mono());
	sync_store(&t->first, sync_load(&t->next));
	sync_store(&c->tree->recorded, t);
	/* `trace` comes last, because evc__trace_put uses the ring from then
	   on. */
	sync_store(&c->tree->trace, t);
}

evc_status
evc__trace_start(evc_coord *c, size_t n)
{
	struct evc__trace *t;
	evc_status st = 0;

	if (c->parent != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_trace_start: %s is a scope, the "
				   "timeline is that of all",
				   c->name);
	if (n > N_MOST)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_trace_start: 2^24 events at most");
	sync_lock(&c->lock);
	if (sync_load(&c->tree->trace) != NULL)
		st = evc__refuse(-EVC_ALREADY_EXISTS,
				 "evc_trace_start: it is on");
	else if ((t = find_ring(c, n)) != NULL)
		start_ring(c, t);
	else if ((t = make_ring(n)) != NULL) {
		t->before = c->tree->rings;
		c->tree->rings = t;
		start_ring(c, t);
	} else
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_trace_start: no memory for %zu events",
				 n);
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_trace_stop(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	if (c->parent != NULL || sync_load(&c->tree->trace) == NULL)
		st = evc__refuse(-EVC_NOT_FOUND, "evc_trace_stop: %s",
				 c->parent != NULL ?
					 "the timeline is not this scope's" :
					 "it is not on");
	else
		sync_store(&c->tree->trace, NULL);
	sync_unlock(&c->lock);
	return st;
}

void
evc__trace_free(struct evc__tree *tree)
{
	struct evc__trace *t, *before;

	for (t = tree->rings; t != NULL; t = before) {
		before = t->before;
		sync_free(t);
	}
}
