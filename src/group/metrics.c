/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics: tallies, names, and puts; see metrics.h.  A put finds its two cells
 * by the address of the name, if the text there is the same as in the last put:
 * programs write names into a buffer and use the buffer again.  Otherwise the
 * put looks the text up among the group's names, without a lock; only a new
 * name takes the lock.
 * Called by: the program (evc_group_put); run.c, group.c and metrics_read.c.
 * Locks: metrics.lock for new names, new tallies and the shared tally; n,
 * epochs and cells are atomic.
 */
#include "group/metrics.h"

#include "base/fork.h"
#include "group/group.h"

#define LINE 128 /* two cache lines: the cpu fetches them in pairs */

_Static_assert(METRIC_NAMES % TALLY_CHUNK == 0, "each is in a chunk");
_Static_assert(sizeof ((evc_metric *)0)->name == METRIC_NAME_SIZE,
	       "as long as the public ones");
_Static_assert(METRIC_PUT_SIZE + sizeof "_count" - 1 <= METRIC_NAME_SIZE,
	       "room for NAME_count");

/* The tally of the calling thread. */
static __thread struct evc__tally *mine;

struct evc__tally *
evc__tally_enter(struct evc__tally *t)
{
	struct evc__tally *before = mine;

	mine = t;
	return before;
}

/* ---- life ---- */

/* m->lock held, or m is not published yet. */
static struct evc__tally *
new_tally(struct evc__metrics *m)
{
	struct evc__tally *t = sync_alloc_aligned(LINE, sizeof *t);

	if (t == NULL)
		return NULL;
	t->of = m;
	sync_store_relaxed(&t->epoch, sync_load_relaxed(&m->epoch));
	t->next = m->tallies;
	m->tallies = t;
	return t;
}

struct evc__tally *
evc__tally_new(struct evc__metrics *m)
{
	struct evc__tally *t;

	sync_lock(&m->lock);
	t = new_tally(m);
	sync_unlock(&m->lock);
	return t;
}

struct evc__metrics *
evc__metrics_new(void)
{
	struct evc__metrics *m = sync_alloc_aligned(LINE, sizeof *m);

	if (m == NULL)
		return NULL;
	sync_lock_init(&m->lock);
	m->fork_generation = sync_load(&evc__fork_generation);
	m->shared = new_tally(m);
	if (m->shared == NULL) {
		evc__metrics_free(m);
		return NULL;
	}
	return m;
}

void
evc__metrics_free(struct evc__metrics *m)
{
	struct evc__tally *t, *next;
	unsigned i;

	if (m == NULL)
		return;
	for (t = m->tallies; t != NULL; t = next) {
		next = t->next;
		for (i = 0; i < TALLY_CHUNKS; i++)
			sync_free(sync_load_relaxed(&t->chunk[i]));
		sync_free(t->scratch);
		sync_free(t);
	}
	sync_lock_destroy(&m->lock);
	sync_free(m);
}

/* ---- names and cells ---- */

/* Entries below n never change. */
int
evc__metrics_find(struct evc__metrics *m, const char *name)
{
	unsigned i, n = sync_load(&m->n);

	for (i = 0; i < n; i++)
		if (strcmp(m->name[i], name) == 0)
			return (int)i;
	return -1;
}

/* The cell of a name in the caller's own tally; NULL: no memory. */
static _Atomic uint64_t *
own_cell(struct evc__tally *t, int i)
{
	_Atomic(struct evc__cells *) *at = &t->chunk[i / TALLY_CHUNK];
	struct evc__cells *cells = sync_load_relaxed(at);

	if (cells == NULL) {
		cells = sync_alloc_aligned(LINE, sizeof *cells);
		if (cells == NULL)
			return NULL;
		sync_store(at, cells);
	}
	return &cells->sum[i % TALLY_CHUNK];
}

/* A put that needs one name, or two with a count: both names are added, or
   neither. */
struct wanted {
	char counter[METRIC_NAME_SIZE];
	int value, count; /* numbers of names; count -1: not wanted */
};

/* Names that each run puts must find a place: the place is kept free until
   their first put, or is used now. */
static unsigned
kept_free(struct evc__metrics *m, const char *name, const struct wanted *w)
{
	static const char *const own[] = { "worker_time",
					   "worker_time_count" };
	unsigned i, n = 0;

	for (i = 0; i < 2; i++)
		n += strcmp(own[i], name) != 0 &&
		     strcmp(own[i], w->counter) != 0 &&
		     evc__metrics_find(m, own[i]) < 0;
	return n;
}

/* m->lock held. */
static evc_status
add_names(struct evc__metrics *m, const char *name, bool count,
	  struct wanted *w)
{
	unsigned n = sync_load_relaxed(&m->n);
	int value = evc__metrics_find(m, name);
	int counter = count ? evc__metrics_find(m, w->counter) : 0;

	if (n + (value < 0) + (counter < 0) + kept_free(m, name, w) >
	    METRIC_NAMES)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_group_put: \"%s\" would be more than "
				  "%d metrics",
				  name, METRIC_NAMES);
	if (value < 0) {
		value = (int)n++;
		memcpy(m->name[value], name, strlen(name) + 1);
	}
	if (counter < 0) {
		counter = (int)n++;
		memcpy(m->name[counter], w->counter, sizeof w->counter);
	}
	sync_store(&m->n, n);
	w->value = value;
	w->count = count ? counter : -1;
	return 0;
}

static evc_status
find_or_add_names(struct evc__metrics *m, const char *name, bool count,
		  bool locked, struct wanted *w)
{
	size_t n = name != NULL ? strnlen(name, METRIC_PUT_SIZE) : 0;
	evc_status st;

	if (n == 0 || n == METRIC_PUT_SIZE)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_group_put: no name, or one of %d "
				  "bytes or more",
				  METRIC_PUT_SIZE);
	memset(w->counter, 0, sizeof w->counter);
	memcpy(w->counter, name, n);
	memcpy(w->counter + n, "_count", sizeof "_count");
	w->value = evc__metrics_find(m, name);
	w->count = count ? evc__metrics_find(m, w->counter) : -1;
	if (w->value >= 0 && (!count || w->count >= 0))
		return 0;
	if (evc__forked_since(m->fork_generation))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_group_put: this is a fork child, the "
				  "group is its parent's");
	if (!locked)
		sync_lock(&m->lock);
	st = add_names(m, name, count, w);
	if (!locked)
		sync_unlock(&m->lock);
	return st;
}

/* ---- put ---- */

static struct evc__cached *
cache_of(struct evc__tally *t, const char *name)
{
	uintptr_t a = (uintptr_t)name;

	return &t->cache[(a ^ a >> 4 ^ a >> 9) % TALLY_CACHE];
}

static evc_status
look_up(struct evc__tally *t, const char *name, bool count, bool locked,
	struct evc__cached *c)
{
	struct wanted w;
	_Atomic uint64_t *value, *counter = NULL;
	evc_status st = find_or_add_names(t->of, name, count, locked, &w);

	if (st < 0)
		return st;
	value = own_cell(t, w.value);
	if (value != NULL && count)
		counter = own_cell(t, w.count);
	if (value == NULL || (count && counter == NULL))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_group_put: no memory");
	c->at = name;
	c->name = t->of->name[w.value];
	c->value = value;
	c->count = counter;
	return 0;
}

/* After a reset the values in the tally are old. */
static void
begin_anew(struct evc__tally *t, uint64_t epoch)
{
	struct evc__cells *cells;
	unsigned i, k;

	for (i = 0; i < TALLY_CHUNKS; i++) {
		cells = sync_load_relaxed(&t->chunk[i]);
		for (k = 0; cells != NULL && k < TALLY_CHUNK; k++)
			sync_store_relaxed(&cells->sum[k], 0);
	}
	/* Last: a reader that sees the epoch sees the zeros. */
	sync_store(&t->epoch, epoch);
}

/* The thread is the only writer, so nothing comes between load and store. */
static void
add_to_sum(_Atomic uint64_t *sum, double value)
{
	double d = evc__metric_number(sync_load_relaxed(sum)) + value;
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	sync_store_relaxed(sum, bits);
}

static inline evc_status
put_value(struct evc__tally *t, const char *name, double value, bool count,
	  bool locked)
{
	struct evc__cached *c = cache_of(t, name);
	uint64_t epoch;
	evc_status st;

	if (name == NULL || c->at != name || (count && c->count == NULL) ||
	    strcmp(c->name, name) != 0) {
		st = look_up(t, name, count, locked, c);
		if (st < 0)
			return st;
	}
	epoch = sync_load_relaxed(&t->of->epoch);
	if (epoch != sync_load_relaxed(&t->epoch))
		begin_anew(t, epoch);
	add_to_sum(c->value, value);
	if (count)
		add_to_sum(c->count, 1);
	return 0;
}

static evc_status
put_shared(struct evc__metrics *m, const char *name, double value, bool count)
{
	evc_status st;

	sync_lock(&m->lock);
	st = put_value(m->shared, name, value, count, true);
	sync_unlock(&m->lock);
	return st;
}

evc_status
evc__metrics_put(struct evc__metrics *m, const char *name, double value,
		 bool count)
{
	struct evc__tally *t = mine;

	if (t != NULL && t->of == m)
		return put_value(t, name, value, count, false);
	return put_shared(m, name, value, count);
}

evc_status
evc_group_put(evc_group *group, const char *name, double value, bool count)
{
	struct evc__tally *t = mine;
	evc_status st;

	/* In a fork child of a worker the thread still has the worker's
	   tally. */
	if (group != NULL && t != NULL && t->of == group->metrics &&
	    !evc__group_inherited(group))
		return put_value(t, name, value, count, false);
	st = evc__group_check(group, __func__);
	return st < 0 ? st : put_shared(group->metrics, name, value, count);
}
