/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_registry_metrics: the groups of a registry as text for Prometheus,
 * exposition format 0.0.4.  Every sample has the label group.  Groups of the
 * same name are numbered - "train", "train#2" - because no two samples may have
 * the same labels; a group with the name "train#2" is "train#2#1".  Names that
 * programs put are a label, too: such a name may be no legal name of a metric.
 * Called by: the program.
 * Locks: none; report_facts.c has copied the facts.
 */
#include "group/report.h"

#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "base/prometheus.h"

/* ---- the format ---- */

/* evcoord_workers_NAME{group="train#2" - the brace stays open. */
static void
sample(struct text *t, const char *name, const struct evc__group_facts *g)
{
	evc__text_fmt(t, "evcoord_workers_%s{group=\"", name);
	evc__prometheus_escaped(t, g->info.name);
	if (g->same > 0 || evc__is_numbered(g->info.name))
		evc__text_fmt(t, "#%u", g->same + 1);
	evc__text_add(t, "\"");
}

static void
label(struct text *t, const char *name, const char *value)
{
	evc__text_fmt(t, ",%s=\"", name);
	evc__prometheus_escaped(t, value);
	evc__text_add(t, "\"");
}

/* ---- of groups ---- */

static uint64_t
threads(const struct evc__group_facts *g)
{
	return g->info.n_threads;
}

static uint64_t
live(const struct evc__group_facts *g)
{
	return g->info.n_live;
}

static uint64_t
running(const struct evc__group_facts *g)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < g->n_workers; i++)
		n += g->worker[i].running;
	return n;
}

static uint64_t
starts(const struct evc__group_facts *g)
{
	return g->info.n_starts;
}

static const struct {
	const char *name, *type, *help;
	uint64_t (*of)(const struct evc__group_facts *g);
} of_groups[] = {
	{ "threads", "gauge", "Workers that the group is to have.", threads },
	{ "live", "gauge", "Workers that it has.", live },
	{ "running", "gauge", "Workers that are in a run.", running },
	{ "starts_total", "counter", "Starts of the group.", starts },
};

static void
add_of_groups(struct text *t, const struct evc__registry_facts *f)
{
	unsigned k;
	size_t i;

	for (k = 0; k < sizeof of_groups / sizeof of_groups[0]; k++) {
		evc__prometheus_head(t, "workers", of_groups[k].name,
				     of_groups[k].type, of_groups[k].help);
		for (i = 0; i < f->n; i++) {
			sample(t, of_groups[k].name, &f->group[i]);
			evc__prometheus_whole(t, of_groups[k].of(&f->group[i]));
		}
	}
}

static void
add_states(struct text *t, const struct evc__registry_facts *f)
{
	unsigned s;
	size_t i;

	evc__prometheus_head(t, "workers", "state", "gauge",
			     "1 for the state that the group is in.");
	for (i = 0; i < f->n; i++)
		for (s = EVC_GROUP_NEW; s <= EVC_GROUP_STOPPED; s++) {
			sample(t, "state", &f->group[i]);
			label(t, "state", evc__group_state(s));
			evc__prometheus_whole(t, f->group[i].info.state == s);
		}
}

static void
add_stops(struct text *t, const struct evc__registry_facts *f)
{
	size_t i;

	evc__prometheus_head(t, "workers", "last_stop_timestamp_seconds",
			     "gauge",
			     "When the group was last stopped, and why.");
	for (i = 0; i < f->n; i++) {
		const evc_reason *r = &f->group[i].info.stop;

		if (r->kind == 0)
			continue;
		sample(t, "last_stop_timestamp_seconds", &f->group[i]);
		label(t, "kind", evc__group_reason(r->kind));
		label(t, "code", evc_status_name(r->code));
		evc__text_add(t, "} ");
		evc__text_ns(t, r->real_ns);
		evc__text_add(t, "\n");
	}
}

/* ---- of workers ---- */

static uint64_t
worker_runs(const evc_worker_info *w)
{
	return w->n_runs;
}

static uint64_t
worker_errors(const evc_worker_info *w)
{
	return w->n_errors;
}

static uint64_t
worker_restarts(const evc_worker_info *w)
{
	return w->n_restarts;
}

static const struct {
	const char *name, *help;
	uint64_t (*of)(const evc_worker_info *w);
} of_workers[] = {
	{ "runs_total", "Runs of the worker.", worker_runs },
	{ "errors_total", "Of these, that have failed.", worker_errors },
	{ "restarts_total", "How often it began again after an error.",
	  worker_restarts },
};

static void
add_of_workers(struct text *t, const struct evc__registry_facts *f)
{
	unsigned k;
	size_t i, w;

	for (k = 0; k < sizeof of_workers / sizeof of_workers[0]; k++) {
		evc__prometheus_head(t, "workers", of_workers[k].name,
				     "counter", of_workers[k].help);
		for (i = 0; i < f->n; i++)
			for (w = 0; w < f->group[i].n_workers; w++) {
				const evc_worker_info *info =
					&f->group[i].worker[w];

				sample(t, of_workers[k].name, &f->group[i]);
				evc__text_fmt(t, ",worker=\"%u\"", info->id);
				evc__prometheus_whole(t,
						      of_workers[k].of(info));
			}
	}
}

/* ---- of programs ---- */

static void
add_value(struct text *t, double v)
{
	if (isfinite(v))
		evc__text_double(t, v);
	else
		evc__text_add(t, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
}

/* Sums that may fall, if the program puts negative numbers. */
static void
add_metrics(struct text *t, const struct evc__registry_facts *f)
{
	size_t i, k;

	evc__prometheus_head(t, "workers", "metric", "gauge",
			     "What workers have put, by name.");
	for (i = 0; i < f->n; i++)
		for (k = 0; k < f->group[i].n_metrics; k++) {
			const evc_metric *m = &f->group[i].metric[k];

			sample(t, "metric", &f->group[i]);
			label(t, "name", m->name);
			evc__text_add(t, "} ");
			add_value(t, m->value);
			evc__text_add(t, "\n");
		}
}

/* A comment, which readers skip and people see. */
static void
add_lost(struct text *t, const struct evc__registry_facts *f)
{
	bool lost = f->lost > 0;
	size_t i;

	for (i = 0; i < f->n; i++)
		lost = lost || f->group[i].lost;
	if (lost)
		evc__text_fmt(t,
			      "# no memory for all of this: %u groups, and "
			      "of others a part, are missing\n",
			      f->lost);
}

size_t
evc_registry_metrics(evc_registry *reg, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	struct evc__registry_facts f;

	if (evc__registry_facts(reg, false, &f) < 0) {
		evc__prometheus_comment(&t, evc_last_error());
		return t.len;
	}
	add_of_groups(&t, &f);
	add_states(&t, &f);
	add_stops(&t, &f);
	add_of_workers(&t, &f);
	add_metrics(&t, &f);
	add_lost(&t, &f);
	evc__registry_facts_free(&f);
	return t.len;
}
