/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report says of a cluster.
 * Called by: a report, as describe of the cluster's scope.
 * Locks: the cluster's, taken; the lock of its variables, taken.
 */
/*
 * As text: which function runs on which worker, since when, the longest first,
 * with the worker's stack if the report has stacks; what is queued; why it
 * waits, if the engine says so.  As JSON and as metrics: describe_json.c.
 */
#include "cluster/core/told.h"

/* ---- as text ---- */

static void
put_state(unsigned state, struct text *t)
{
	if (state == EVC_WORKER_HUNG)
		evc__text_add(t, "hangs");
	else
		evc__text_fmt(t, "is %s", evc__worker_state_name(state));
}

static void
put_worker(const evc_cluster_worker_info *i, struct text *t)
{
	if (i->busy >= 0) {
		evc__run_describe(i, t);
		if (i->state != EVC_WORKER_UP) {
			evc__text_add(t, "; it ");
			put_state(i->state, t);
		}
	} else if (i->state != EVC_WORKER_UP) {
		evc__text_fmt(t, "%s ", i->name);
		put_state(i->state, t);
		evc__text_fmt(t, ", for %.1f s", i->since);
	} else {
		return;
	}
	if (i->state != EVC_WORKER_UP && i->text[0] != '\0')
		evc__text_fmt(t, ": %s", i->text);
	evc__text_fmt(t, "\n");
}

/* Indented as the threads in a report are. */
static void
put_stack(const struct worker_stack *s, struct text *t)
{
	char *at = s->lines, *line;
	unsigned n = 0;

	if (s->why[0] != '\0')
		evc__text_fmt(t, "     stack: not available: %s\n", s->why);
	while (n++ < STACK_LINES && (line = evc__stack_line(&at)) != NULL)
		evc__text_fmt(t, "     %s\n", line);
}

static void
put_more(unsigned n, unsigned named, const char *what, struct text *t)
{
	if (n > named)
		evc__text_fmt(t, n - named == 1 ? "%u more worker is %s\n" :
						  "%u more workers are %s\n",
			      n - named, what);
}

static void
write_text(evc_cluster *cl, bool stacks, struct text *t)
{
	char queued[200 + 2 * TEXT_SIZE];
	struct text q = evc__lines_in(queued, sizeof queued);
	struct worker_stack *s = NULL;
	struct told_workers told;
	unsigned i, n_stacks = 0, n_busy;

	t->lines = true;
	evc__told_copy(cl, &q, &told);
	if (stacks)
		s = evc__told_stacks(cl, &told, &n_stacks);
	for (i = 0; i < told.n; i++) {
		put_worker(&told.at[i], t);
		if (i < n_stacks)
			put_stack(&s[i], t);
	}
	if (told.n > 0) {
		n_busy = told.n_busy < told.n ? told.n_busy : told.n;
		put_more(told.n_busy, n_busy, "busy", t);
		put_more(told.n_down, told.n - n_busy, "not up", t);
	}
	/* `queued` consists of lines. */
	t->lines = false;
	evc__text_add(t, queued);
	if (t->len == 0)
		evc__text_fmt(t, "nothing runs, nothing is queued\n");
	evc__stacks_free(s, n_stacks);
	sync_free(told.at);
}

size_t
evc__cluster_report(unsigned format, char *buf, size_t n, void *cluster)
{
	struct text t = evc__text_in(buf, n);
	bool stacks = (format & EVC_REPORT_STACKS) != 0;
	evc_cluster_info info;

	if (evc_cluster_get(cluster, &info) < 0)
		return 0;
	switch (format & ~(unsigned)EVC_REPORT_STACKS) {
	case EVC_REPORT_TEXT:
		write_text(cluster, stacks, &t);
		break;
	case EVC_REPORT_JSON:
		evc__cluster_json(cluster, &info, stacks, &t);
		break;
	default:
		evc__cluster_metrics(cluster, &info, &t);
	}
	return t.len;
}
