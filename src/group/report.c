/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_registry_report: the groups of a registry, their workers, errors and
 * metrics, as text for a person.
 * Called by: the program.
 * Locks: none; report_facts.c has copied the facts.
 */
#include "group/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void
add_count(struct text *t, uint64_t n, const char *of)
{
	evc__text_fmt(t, "%llu %s%s", (unsigned long long)n, of, plural(n));
}

/* ---- reasons ---- */

static void
add_place(struct text *t, const evc_reason *r)
{
	const char *e = r->err != 0 ? strerrordesc_np(r->err) : NULL;

	if (e != NULL)
		evc__text_fmt(t, ": %s", e);
	else if (r->err != 0)
		evc__text_fmt(t, ": errno %d", r->err);
	if (r->file[0] == '\0')
		return;
	evc__text_add(t, " [");
	if (r->func[0] != '\0')
		evc__text_fmt(t, "%s() at ", r->func);
	evc__text_fmt(t, "%s:%d]", r->file, r->line);
}

/* "error INTERNAL (13) by "train/1" (tid 12), 3.204 s ago: bad shard" */
static void
add_reason(struct text *t, const evc_reason *r, uint64_t now)
{
	evc__text_add(t, evc__group_reason(r->kind));
	if (r->code != 0)
		evc__text_fmt(t, " %s (%d)", evc_status_name(r->code),
			      r->code);
	evc__text_fmt(t, " by \"%s\" (tid %d), %.3f s ago", r->who, r->tid,
		      now > r->mono_ns ? (double)(now - r->mono_ns) / 1e9 : 0);
	if (r->text[0] != '\0')
		evc__text_fmt(t, ": %s", r->text);
	add_place(t, r);
	evc__text_fmt(t, "\n");
}

/* ---- a group ---- */

static void
add_head(struct text *t, const struct evc__group_facts *g)
{
	const evc_group_info *i = &g->info;

	evc__text_fmt(t, "\"%s\": %s, %u of %u worker%s, ", i->name,
		      evc__group_state(i->state), i->n_live, i->n_threads,
		      plural(i->n_threads));
	add_count(t, i->n_starts, "start");
	evc__text_add(t, ", ");
	add_count(t, i->n_runs, "run");
	evc__text_add(t, ", ");
	add_count(t, i->n_errors, "error");
	evc__text_add(t, ", ");
	add_count(t, i->n_restarts, "restart");
	evc__text_fmt(t, "\n");
}

static void
add_worker(struct text *t, const evc_worker_info *w)
{
	evc__text_fmt(t, "  worker %u: ", w->id);
	if (w->running)
		evc__text_fmt(t, "in a run for %.3f s", w->run_time);
	else
		evc__text_add(t, w->live ? "between runs" : "not there");
	if (w->retired)
		evc__text_add(t, ", retired");
	evc__text_add(t, ", ");
	add_count(t, w->n_runs, "run");
	if (w->n_errors > 0) {
		evc__text_add(t, ", ");
		add_count(t, w->n_errors, "error");
	}
	if (w->n_restarts > 0) {
		evc__text_add(t, ", ");
		add_count(t, w->n_restarts, "restart");
	}
	evc__text_fmt(t, "\n");
}

static void
add_error(struct text *t, const evc_worker_error *e, uint64_t now)
{
	evc_reason r = e->reason;
	char run[32];
	char *text;

	snprintf(run, sizeof run, "run %llu: ", (unsigned long long)e->run);
	evc__text_fmt(t, "  worker %u, start %u, %s", e->id, e->start, run);
	/* The text mostly starts with the run, and on a loop with the
	   worker. */
	text = strstr(r.text, run);
	if (text != NULL && (text == r.text || text[-1] == ' '))
		memmove(r.text, text + strlen(run),
			strlen(text + strlen(run)) + 1);
	add_reason(t, &r, now);
}

static void
add_metric(struct text *t, const evc_metric *m)
{
	evc__text_fmt(t, "  %s: ", m->name);
	if (isfinite(m->value))
		evc__text_double(t, m->value);
	else
		evc__text_fmt(t, "%f", m->value);
	evc__text_fmt(t, "\n");
}

static void
add_group(struct text *t, const struct evc__group_facts *g, uint64_t now)
{
	size_t i;

	add_head(t, g);
	if (g->info.stop.kind != 0) {
		evc__text_add(t, "  stopped last: ");
		add_reason(t, &g->info.stop, now);
	}
	for (i = 0; i < g->n_workers; i++)
		add_worker(t, &g->worker[i]);
	if (g->n_errors > 0)
		evc__text_fmt(t, " errors:\n");
	for (i = 0; i < g->n_errors; i++)
		add_error(t, &g->error[i], now);
	if (g->n_metrics > 0)
		evc__text_fmt(t, " metrics:\n");
	for (i = 0; i < g->n_metrics; i++)
		add_metric(t, &g->metric[i]);
	if (g->lost)
		evc__text_fmt(t, "  (no memory to list all of it)\n");
}

size_t
evc_registry_report(evc_registry *reg, char *buf, size_t n)
{
	struct text t = evc__lines_in(buf, buf != NULL ? n : 0);
	struct evc__registry_facts f;
	size_t i;

	if (evc__registry_facts(reg, true, &f) < 0) {
		evc__text_add(&t, evc_last_error());
		return t.len;
	}
	add_count(&t, f.n + f.lost, "worker group");
	evc__text_fmt(&t, "\n");
	for (i = 0; i < f.n; i++)
		add_group(&t, &f.group[i], f.mono_ns);
	if (f.lost > 0)
		evc__text_fmt(&t, "(no memory to list %u groups)\n", f.lost);
	evc__registry_facts_free(&f);
	return t.len;
}
