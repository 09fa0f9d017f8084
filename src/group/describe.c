/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report says of a group: its state, workers, errors and metrics.
 * Called by: a report, as describe of the group's scope.
 * Locks: none of its own; the public calls take them, each for one moment.
 */
/*
 * As JSON an object with the key group, and there (every key is always there; a
 * value that does not apply is null; times are seconds):
 *	name		string
 *	state		"new", "starting", "running", "paused", "stopping" or
 *			"stopped"
 *	threads, live	number: workers wanted, workers alive
 *	starts, runs, errors, restarts
 *			number
 *	stop		reason or null: of the last stop
 *	workers		array of: id, live, running, retired (boolean), run_time
 *			(number; null between two runs), runs, errors,
 *			restarts
 *	kept_errors	array of: worker (its id), start, run (numbers), reason
 *	metrics		array of: name, value (number; null if not finite)
 * A reason:
 *	time, age	number: since the epoch, since the reason
 *	kind, code_name, who, text, file, func
 *			string
 *	code, tid, errno, line
 *			number
 *
 * As metrics every sample has the label group.  Names that programs put are a
 * label, too: such a name may be no legal name of a metric.
 */
#include "group/group.h"

#include <math.h>
#include <stdio.h>

#include "base/json_write.h"
#include "base/prometheus.h"
#include "base/reason.h"
#include "base/text.h"
#include "group/metrics.h"

static const char *
state_name(unsigned state)
{
	static const char *const name[] = {
		"new", "starting", "running", "paused", "stopping", "stopped",
	};
	unsigned i = state - EVC_GROUP_NEW;

	return i < sizeof name / sizeof name[0] ? name[i] : "?";
}

/* ---- as text ---- */

static void
add_count(struct text *t, uint64_t n, const char *of)
{
	evc__text_fmt(t, ", %llu %s%s", (unsigned long long)n, of,
		      n == 1 ? "" : "s");
}

/* "error INTERNAL (13) by "train/1" (tid 12), 3.204 s ago: bad shard" */
static void
add_reason(struct text *t, const evc_reason *r)
{
	uint64_t now = sync_mono();

	evc__text_add(t, evc__reason_kind(r->kind));
	if (r->code != 0)
		evc__text_fmt(t, " %s (%d)", evc_status_name(r->code),
			      r->code);
	evc__text_fmt(t, " by \"%s\" (tid %d), %.3f s ago", r->who, r->tid,
		      now > r->mono_ns ? (double)(now - r->mono_ns) / 1e9 : 0);
	if (r->text[0] != '\0')
		evc__text_fmt(t, ": %s", r->text);
	evc__text_errno(t, r->text, r->err);
	evc__text_place(t, r->file, r->line, r->func);
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
	add_count(t, w->n_runs, "run");
	if (w->n_errors > 0)
		add_count(t, w->n_errors, "error");
	if (w->n_restarts > 0)
		add_count(t, w->n_restarts, "restart");
	evc__text_fmt(t, "\n");
}

static void
add_error(struct text *t, const evc_worker_error *e)
{
	evc_reason r = e->reason;
	char run[32];
	char *text;

	snprintf(run, sizeof run, "run %llu: ", (unsigned long long)e->run);
	evc__text_fmt(t, "    worker %u, start %u, %s", e->id, e->start, run);
	/* The text mostly starts with the run, and on a loop with the
	   worker. */
	text = strstr(r.text, run);
	if (text != NULL && (text == r.text || text[-1] == ' '))
		memmove(r.text, text + strlen(run),
			strlen(text + strlen(run)) + 1);
	add_reason(t, &r);
}

static void
add_metric(struct text *t, const evc_metric *m)
{
	evc__text_fmt(t, "    %s: ", m->name);
	if (isfinite(m->value))
		evc__text_double(t, m->value);
	else
		evc__text_fmt(t, "%f", m->value);
	evc__text_fmt(t, "\n");
}

static void
write_text(struct text *t, const evc_group *g, const evc_group_info *i)
{
	evc_worker_info w;
	evc_worker_error e;
	evc_metric m;
	unsigned n;

	evc__text_fmt(t, "group: %s, %u of %u worker%s", state_name(i->state),
		      i->n_live, i->n_threads, i->n_threads == 1 ? "" : "s");
	add_count(t, i->n_starts, "start");
	add_count(t, i->n_runs, "run");
	add_count(t, i->n_errors, "error");
	add_count(t, i->n_restarts, "restart");
	evc__text_fmt(t, "\n");
	if (i->stop.kind != 0) {
		evc__text_add(t, "  stopped last: ");
		add_reason(t, &i->stop);
	}
	for (n = 0; evc_group_worker_get(g, n, &w) == 0; n++)
		add_worker(t, &w);
	for (n = 0; evc_group_error_get(g, n, &e) == 0; n++) {
		if (n == 0)
			evc__text_fmt(t, "  errors:\n");
		add_error(t, &e);
	}
	for (n = 0; evc__metrics_get(g->metrics, n, &m); n++) {
		if (n == 0)
			evc__text_fmt(t, "  metrics:\n");
		add_metric(t, &m);
	}
}

/* ---- as JSON ---- */

static void
json_reason(struct evc__json *j, const char *key, const evc_reason *r)
{
	uint64_t now = sync_mono();

	if (r->kind == 0) {
		evc__json_null(j, key);
		return;
	}
	evc__json_begin(j, key, "{");
	evc__json_key(j, "time");
	evc__text_ns(j->t, r->real_ns);
	evc__json_key(j, "age");
	evc__text_ns(j->t, now > r->mono_ns ? now - r->mono_ns : 0);
	evc__json_string(j, "kind", evc__reason_kind(r->kind));
	evc__json_integer(j, "code", r->code);
	evc__json_string(j, "code_name", evc_status_name(r->code));
	evc__json_string(j, "who", r->who);
	evc__json_integer(j, "tid", r->tid);
	evc__json_integer(j, "errno", r->err);
	evc__json_string(j, "text", r->text);
	evc__json_string(j, "file", r->file);
	evc__json_string(j, "func", r->func);
	evc__json_integer(j, "line", r->line);
	evc__json_end(j, "}");
}

static void
json_worker(struct evc__json *j, const evc_worker_info *w)
{
	evc__json_begin(j, NULL, "{");
	evc__json_number(j, "id", w->id);
	evc__json_boolean(j, "live", w->live);
	evc__json_boolean(j, "running", w->running);
	evc__json_boolean(j, "retired", w->retired);
	evc__json_seconds_if(j, "run_time", w->running ? w->run_time : -1);
	evc__json_number(j, "runs", w->n_runs);
	evc__json_number(j, "errors", w->n_errors);
	evc__json_number(j, "restarts", w->n_restarts);
	evc__json_end(j, "}");
}

static void
json_lists(struct evc__json *j, const evc_group *g)
{
	evc_worker_info w;
	evc_worker_error e;
	evc_metric m;
	unsigned n;

	evc__json_begin(j, "workers", "[");
	for (n = 0; evc_group_worker_get(g, n, &w) == 0; n++)
		json_worker(j, &w);
	evc__json_end(j, "]");
	evc__json_begin(j, "kept_errors", "[");
	for (n = 0; evc_group_error_get(g, n, &e) == 0; n++) {
		evc__json_begin(j, NULL, "{");
		evc__json_number(j, "worker", e.id);
		evc__json_number(j, "start", e.start);
		evc__json_number(j, "run", e.run);
		json_reason(j, "reason", &e.reason);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
	evc__json_begin(j, "metrics", "[");
	for (n = 0; evc__metrics_get(g->metrics, n, &m); n++) {
		evc__json_begin(j, NULL, "{");
		evc__json_string(j, "name", m.name);
		evc__json_key(j, "value");
		if (isfinite(m.value))
			evc__text_double(j->t, m.value);
		else
			evc__text_add(j->t, "null");
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
write_json(struct text *t, const evc_group *g, const evc_group_info *i)
{
	struct evc__json j = { .t = t };

	evc__json_begin(&j, NULL, "{");
	evc__json_begin(&j, "group", "{");
	evc__json_string(&j, "name", i->name);
	evc__json_string(&j, "state", state_name(i->state));
	evc__json_number(&j, "threads", i->n_threads);
	evc__json_number(&j, "live", i->n_live);
	evc__json_number(&j, "starts", i->n_starts);
	evc__json_number(&j, "runs", i->n_runs);
	evc__json_number(&j, "errors", i->n_errors);
	evc__json_number(&j, "restarts", i->n_restarts);
	json_reason(&j, "stop", &i->stop);
	json_lists(&j, g);
	evc__json_end(&j, "}");
	evc__json_end(&j, "}");
}

/* ---- as metrics ---- */

/* evcoord_workers_NAME{group="train" - the brace stays open. */
static void
begin_sample(struct text *t, const evc_group_info *i, const char *name)
{
	evc__text_fmt(t, "evcoord_workers_%s{group=\"", name);
	evc__prometheus_escaped(t, i->name);
	evc__text_add(t, "\"");
}

static void
add_label(struct text *t, const char *name, const char *value)
{
	evc__text_fmt(t, ",%s=\"", name);
	evc__prometheus_escaped(t, value);
	evc__text_add(t, "\"");
}

static void
family_of_group(struct text *t, const evc_group_info *i, const char *name,
		const char *type, const char *help, uint64_t v)
{
	evc__prometheus_head(t, "workers", name, type, help);
	begin_sample(t, i, name);
	evc__prometheus_whole(t, v);
}

static void
family_of_workers(struct text *t, const evc_group *g, const evc_group_info *i,
		  const char *name, const char *help, size_t offset)
{
	evc_worker_info w;
	unsigned n;

	evc__prometheus_head(t, "workers", name, "counter", help);
	for (n = 0; evc_group_worker_get(g, n, &w) == 0; n++) {
		begin_sample(t, i, name);
		evc__text_fmt(t, ",worker=\"%u\"", w.id);
		evc__prometheus_whole(
			t, *(uint64_t *)(void *)((char *)&w + offset));
	}
}

static void
family_of_states(struct text *t, const evc_group_info *i)
{
	unsigned s;

	evc__prometheus_head(t, "workers", "state", "gauge",
			     "1 for the state that the group is in.");
	for (s = EVC_GROUP_NEW; s <= EVC_GROUP_STOPPED; s++) {
		begin_sample(t, i, "state");
		add_label(t, "state", state_name(s));
		evc__prometheus_whole(t, i->state == s);
	}
}

static void
family_of_stops(struct text *t, const evc_group_info *i)
{
	if (i->stop.kind == 0)
		return;
	evc__prometheus_head(t, "workers", "last_stop_timestamp_seconds",
			     "gauge",
			     "When the group was last stopped, and why.");
	begin_sample(t, i, "last_stop_timestamp_seconds");
	add_label(t, "kind", evc__reason_kind(i->stop.kind));
	add_label(t, "code", evc_status_name(i->stop.code));
	evc__text_add(t, "} ");
	evc__text_ns(t, i->stop.real_ns);
	evc__text_add(t, "\n");
}

/* Sums that may fall, if the program puts negative numbers. */
static void
family_of_program(struct text *t, const evc_group *g, const evc_group_info *i)
{
	evc_metric m;
	unsigned n;

	for (n = 0; evc__metrics_get(g->metrics, n, &m); n++) {
		if (n == 0)
			evc__prometheus_head(t, "workers", "metric", "gauge",
					     "What workers have put, by name.");
		begin_sample(t, i, "metric");
		add_label(t, "name", m.name);
		evc__text_add(t, "} ");
		if (isfinite(m.value))
			evc__text_double(t, m.value);
		else
			evc__text_add(t, isnan(m.value) ? "NaN" :
					 m.value > 0	? "+Inf" : "-Inf");
		evc__text_add(t, "\n");
	}
}

static void
write_metrics(struct text *t, const evc_group *g, const evc_group_info *i)
{
	evc_worker_info w;
	unsigned n, running = 0;

	for (n = 0; evc_group_worker_get(g, n, &w) == 0; n++)
		running += w.running;
	family_of_group(t, i, "threads", "gauge",
			"Workers that the group is to have.", i->n_threads);
	family_of_group(t, i, "live", "gauge", "Workers that it has.",
			i->n_live);
	family_of_group(t, i, "running", "gauge", "Workers that are in a run.",
			running);
	family_of_group(t, i, "starts_total", "counter",
			"Starts of the group.", i->n_starts);
	family_of_states(t, i);
	family_of_stops(t, i);
	family_of_workers(t, g, i, "runs_total", "Runs of the worker.",
			  offsetof(evc_worker_info, n_runs));
	family_of_workers(t, g, i, "errors_total",
			  "Of these, that have failed.",
			  offsetof(evc_worker_info, n_errors));
	family_of_workers(t, g, i, "restarts_total",
			  "How often it began again after an error.",
			  offsetof(evc_worker_info, n_restarts));
	family_of_program(t, g, i);
}

size_t
evc__group_describe(unsigned format, char *buf, size_t n, void *group)
{
	struct text t = evc__text_in(buf, n);
	evc_group_info i;

	if (evc_group_get(group, &i) < 0)
		return 0;
	t.lines = format == EVC_REPORT_TEXT;
	if (format == EVC_REPORT_TEXT)
		write_text(&t, group, &i);
	else if (format == EVC_REPORT_JSON)
		write_json(&t, group, &i);
	else
		write_metrics(&t, group, &i);
	return t.len;
}
