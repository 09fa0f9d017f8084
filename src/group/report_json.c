/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_registry_report_json: the groups of a registry as one JSON object.
 * Called by: the program.
 * Locks: none; report_facts.c has copied the facts.
 */
/*
 * Every key is always there; a value that does not apply is null.  Times are
 * seconds, as numbers with nine places; "time" is since the epoch, all others
 * are ages or distances.  A refused call gives one object with "error" alone.
 *
 * The object itself:
 *	evcoord		string: the library's version
 *	pid		number
 *	groups		array of groups, in the order in which they were added
 *	lost		number: groups without memory
 *	time		number: of this report
 * A group:
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
 *	lost		boolean: no memory for all of the group
 * A reason:
 *	time, age	number
 *	kind		string
 *	code		number
 *	code_name, who	string
 *	tid, errno	number
 *	text, file, func
 *			string
 *	line		number
 */
#include "group/report.h"

#include <math.h>

#include "base/json_write.h"
#include "base/sync.h"

static void
add_reason(struct evc__json *j, const char *key, const evc_reason *r,
	   uint64_t now)
{
	if (r->kind == 0) {
		evc__json_null(j, key);
		return;
	}
	evc__json_begin(j, key, "{");
	evc__json_key(j, "time");
	evc__text_ns(j->t, r->real_ns);
	evc__json_key(j, "age");
	evc__text_ns(j->t, now > r->mono_ns ? now - r->mono_ns : 0);
	evc__json_string(j, "kind", evc__group_reason(r->kind));
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
add_workers(struct evc__json *j, const struct evc__group_facts *g)
{
	size_t i;

	evc__json_begin(j, "workers", "[");
	for (i = 0; i < g->n_workers; i++) {
		const evc_worker_info *w = &g->worker[i];

		evc__json_begin(j, NULL, "{");
		evc__json_number(j, "id", w->id);
		evc__json_boolean(j, "live", w->live);
		evc__json_boolean(j, "running", w->running);
		evc__json_boolean(j, "retired", w->retired);
		evc__json_seconds_if(j, "run_time",
				     w->running ? w->run_time : -1);
		evc__json_number(j, "runs", w->n_runs);
		evc__json_number(j, "errors", w->n_errors);
		evc__json_number(j, "restarts", w->n_restarts);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_errors(struct evc__json *j, const struct evc__group_facts *g, uint64_t now)
{
	size_t i;

	evc__json_begin(j, "kept_errors", "[");
	for (i = 0; i < g->n_errors; i++) {
		const evc_worker_error *e = &g->error[i];

		evc__json_begin(j, NULL, "{");
		evc__json_number(j, "worker", e->id);
		evc__json_number(j, "start", e->start);
		evc__json_number(j, "run", e->run);
		add_reason(j, "reason", &e->reason, now);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_metrics(struct evc__json *j, const struct evc__group_facts *g)
{
	size_t i;

	evc__json_begin(j, "metrics", "[");
	for (i = 0; i < g->n_metrics; i++) {
		const evc_metric *m = &g->metric[i];

		evc__json_begin(j, NULL, "{");
		evc__json_string(j, "name", m->name);
		if (isfinite(m->value)) {
			evc__json_key(j, "value");
			evc__text_double(j->t, m->value);
		} else
			evc__json_null(j, "value");
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_group(struct evc__json *j, const struct evc__group_facts *g, uint64_t now)
{
	const evc_group_info *i = &g->info;

	evc__json_begin(j, NULL, "{");
	evc__json_string(j, "name", i->name);
	evc__json_string(j, "state", evc__group_state(i->state));
	evc__json_number(j, "threads", i->n_threads);
	evc__json_number(j, "live", i->n_live);
	evc__json_number(j, "starts", i->n_starts);
	evc__json_number(j, "runs", i->n_runs);
	evc__json_number(j, "errors", i->n_errors);
	evc__json_number(j, "restarts", i->n_restarts);
	add_reason(j, "stop", &i->stop, now);
	add_workers(j, g);
	add_errors(j, g, now);
	add_metrics(j, g);
	evc__json_boolean(j, "lost", g->lost);
	evc__json_end(j, "}");
}

static void
add_all(struct evc__json *j, const struct evc__registry_facts *f)
{
	size_t i;

	evc__json_string(j, "evcoord", evc_version());
	evc__json_integer(j, "pid", (int)getpid());
	evc__json_begin(j, "groups", "[");
	for (i = 0; i < f->n; i++)
		add_group(j, &f->group[i], f->mono_ns);
	evc__json_end(j, "]");
	evc__json_number(j, "lost", f->lost);
	evc__json_key(j, "time");
	evc__text_ns(j->t, f->real_ns);
}

size_t
evc_registry_report_json(evc_registry *reg, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	struct evc__json j = { &t, false };
	struct evc__registry_facts f;

	evc__json_begin(&j, NULL, "{");
	if (evc__registry_facts(reg, true, &f) < 0)
		evc__json_string(&j, "error", evc_last_error());
	else {
		add_all(&j, &f);
		evc__registry_facts_free(&f);
	}
	evc__json_end(&j, "}");
	evc__text_add(&t, "\n");
	return t.len;
}
