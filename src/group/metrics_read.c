/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics: the sums of all tallies, and their reset.
 * Called by: the program (evc_group_metrics, _metric, _metrics_reset);
 * loggers.c and describe.c.
 * Locks: metrics.lock, taken; cells and epochs are atomic.
 */
#include "group/group.h"
#include "group/metrics.h"

/* Lock held, so no reset comes in between. */
static double
sum_cells(struct evc__metrics *m, unsigned i)
{
	uint64_t epoch = sync_load_relaxed(&m->epoch);
	struct evc__cells *cells;
	struct evc__tally *t;
	unsigned k = i % TALLY_CHUNK;
	double d = 0;

	for (t = m->tallies; t != NULL; t = t->next) {
		cells = sync_load(&t->chunk[i / TALLY_CHUNK]);
		if (cells == NULL || sync_load(&t->epoch) != epoch)
			continue;
		d += evc__metric_number(sync_load_relaxed(&cells->sum[k]));
	}
	return d;
}

/* Lock held. */
static void
read_one(struct evc__metrics *m, unsigned i, evc_metric *to)
{
	memcpy(to->name, m->name[i], sizeof to->name);
	to->value = sum_cells(m, i);
}

/* Lock held: the first n metrics. */
static void
read_all(struct evc__metrics *m, evc_metric *to, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		read_one(m, i, &to[i]);
}

bool
evc__metrics_get(struct evc__metrics *m, unsigned i, evc_metric *ret)
{
	bool found;

	sync_lock(&m->lock);
	found = i < sync_load_relaxed(&m->n);
	if (found)
		read_one(m, i, ret);
	sync_unlock(&m->lock);
	return found;
}

size_t
evc__metrics_read(struct evc__metrics *m, evc_metric *to, size_t n)
{
	unsigned have;

	sync_lock(&m->lock);
	have = sync_load_relaxed(&m->n);
	if (to != NULL)
		read_all(m, to, n < have ? (unsigned)n : have);
	sync_unlock(&m->lock);
	return have;
}

double
evc__metrics_one(struct evc__metrics *m, const char *name)
{
	int i = evc__metrics_find(m, name);
	double d;

	if (i < 0)
		return 0;
	sync_lock(&m->lock);
	d = sum_cells(m, (unsigned)i);
	sync_unlock(&m->lock);
	return d;
}

void
evc__metrics_reset(struct evc__metrics *m)
{
	sync_lock(&m->lock);
	sync_store_relaxed(&m->epoch, sync_load_relaxed(&m->epoch) + 1);
	sync_unlock(&m->lock);
}

const evc_metric *
evc__tally_read(struct evc__tally *t, unsigned *ret_n)
{
	struct evc__metrics *m = t->of;
	unsigned n = sync_load(&m->n);
	evc_metric *more;

	*ret_n = 0;
	if (n > t->room) {
		more = sync_alloc(n, sizeof *more);
		if (more == NULL)
			return NULL;
		sync_free(t->scratch);
		t->scratch = more;
		t->room = n;
	}
	if (n == 0)
		return NULL;
	sync_lock(&m->lock);
	read_all(m, t->scratch, n);
	sync_unlock(&m->lock);
	*ret_n = n;
	return t->scratch;
}

size_t
evc_group_metrics(const evc_group *group, evc_metric *metrics, size_t n)
{
	if (evc__group_check(group, __func__) < 0)
		return 0;
	return evc__metrics_read(group->metrics, metrics, n);
}

double
evc_group_metric(const evc_group *group, const char *name)
{
	if (evc__group_check(group, __func__) < 0 || name == NULL)
		return 0;
	return evc__metrics_one(group->metrics, name);
}

evc_status
evc_group_metrics_reset(evc_group *group)
{
	evc_status st = evc__group_check(group, __func__);

	if (st < 0)
		return st;
	evc__metrics_reset(group->metrics);
	return 0;
}
