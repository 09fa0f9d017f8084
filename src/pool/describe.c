/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pool in numbers - its threads and its jobs - for the program and for
 * reports.
 * Called by: the program (evc_pool_get); a report, as describe of the pool's
 * scope.
 * Locks: none; the counts are atomic.
 */
/*
 * As JSON an object with the key pool, and there (every key is always there):
 *	threads, live, idle
 *			number: threads that the pool may have, has, and that
 *			sleep
 *	queued, running	number: jobs now
 *	submitted, done, cancelled
 *			number: jobs so far
 */
#include "pool/pool.h"

#include "base/json_write.h"
#include "base/prometheus.h"
#include "base/text.h"

evc_status
evc_pool_get(const evc_pool *pool, evc_pool_info *ret_info)
{
	evc_pool *of = (evc_pool *)(uintptr_t)pool; /* only read */
	evc_status st = evc__pool_check(pool, __func__);
	evc_pool_info i = { 0 };
	uint64_t begun = 0, w;
	struct pool_port *p;
	uint32_t k, n;

	if (st == 0 && ret_info == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_pool_get: no place for the answer");
	if (st < 0)
		return st;
	/* Counts of the later steps of a job are read first, so no difference
	   is below 0. */
	n = sync_load(&of->n_seats);
	for (k = 0; k < n; k++) {
		struct pool_seat *s = sync_load(&of->seat[k]);

		i.n_done += sync_load(&s->n_done);
		begun += sync_load(&s->n_begun);
		i.n_cancelled += sync_load(&s->n_cancelled);
	}
	for (p = sync_load(&of->ports); p != NULL; p = sync_load(&p->next)) {
		i.n_cancelled += sync_load(&p->n_cancelled);
		i.n_submitted += sync_load(&p->n_own_submitted) +
				 sync_load(&p->n_foreign_submitted);
	}
	w = sync_load_sc(&of->crowd);
	i.n_threads = sync_load_relaxed(&of->limit);
	i.n_live = N_LIVE(w);
	i.n_idle = N_IDLE(w);
	i.n_running = begun - i.n_done;
	if (i.n_submitted > begun + i.n_cancelled)
		i.n_queued = i.n_submitted - begun - i.n_cancelled;
	*ret_info = i;
	return 0;
}

#define OF(i, offset) \
	(*(const uint64_t *)(const void *)((const char *)(i) + (offset)))

static const struct {
	const char *name, *metric, *type, *help;
	size_t at;
} jobs[] = {
	{ "queued", "queued", "gauge", "Jobs that wait for a thread.",
	  offsetof(evc_pool_info, n_queued) },
	{ "running", "running", "gauge", "Jobs that run.",
	  offsetof(evc_pool_info, n_running) },
	{ "submitted", "submitted_total", "counter", "Jobs submitted.",
	  offsetof(evc_pool_info, n_submitted) },
	{ "done", "done_total", "counter", "Jobs that have run.",
	  offsetof(evc_pool_info, n_done) },
	{ "cancelled", "cancelled_total", "counter",
	  "Jobs that have not run, because of a stop or a cancel.",
	  offsetof(evc_pool_info, n_cancelled) },
};

#define N_JOBS (sizeof jobs / sizeof jobs[0])

static void
write_text(struct text *t, const evc_pool_info *i)
{
	unsigned k;

	evc__text_fmt(t, "pool: %u of %u threads, %u idle", i->n_live,
		      i->n_threads, i->n_idle);
	for (k = 0; k < N_JOBS; k++)
		evc__text_fmt(t, "%s %llu %s", k == 0 ? "; jobs:" : ",",
			      (unsigned long long)OF(i, jobs[k].at),
			      jobs[k].name);
	evc__text_fmt(t, "\n");
}

static void
write_json(struct text *t, const evc_pool_info *i)
{
	struct evc__json j = { .t = t };
	unsigned k;

	evc__json_begin(&j, NULL, "{");
	evc__json_begin(&j, "pool", "{");
	evc__json_number(&j, "threads", i->n_threads);
	evc__json_number(&j, "live", i->n_live);
	evc__json_number(&j, "idle", i->n_idle);
	for (k = 0; k < N_JOBS; k++)
		evc__json_number(&j, jobs[k].name, OF(i, jobs[k].at));
	evc__json_end(&j, "}");
	evc__json_end(&j, "}");
}

static void
write_metrics(struct text *t, const evc_pool_info *i)
{
	unsigned k;

	evc__prometheus_family(t, "pool", "threads", "gauge",
			       "Threads that the pool may have.",
			       i->n_threads);
	evc__prometheus_family(t, "pool", "threads_live", "gauge",
			       "Threads that the pool has.", i->n_live);
	evc__prometheus_family(t, "pool", "threads_idle", "gauge",
			       "Threads that wait for a job.", i->n_idle);
	for (k = 0; k < N_JOBS; k++)
		evc__prometheus_family(t, "pool", jobs[k].metric, jobs[k].type,
				       jobs[k].help, OF(i, jobs[k].at));
}

size_t
evc__pool_report(unsigned format, char *buf, size_t n, void *pool)
{
	struct text t = evc__text_in(buf, n);
	evc_pool_info i;

	if (evc_pool_get(pool, &i) < 0)
		return 0;
	t.lines = format == EVC_REPORT_TEXT;
	if (format == EVC_REPORT_TEXT)
		write_text(&t, &i);
	else if (format == EVC_REPORT_JSON)
		write_json(&t, &i);
	else
		write_metrics(&t, &i);
	return t.len;
}
