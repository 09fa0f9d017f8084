/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report says of a cluster.
 * Called by: a report, as describe of the cluster's scope.
 * Locks: the cluster's, taken; the lock of its variables, taken.
 */
/*
 * As text: which function runs on which worker, since when, the longest first;
 * what is queued; why it waits, if the engine says so.
 *
 * As JSON an object with the key cluster, and there (every key is always there;
 * a value that does not apply is null; times are seconds):
 *	name, engine	string
 *	numbers[]	number: each name in numbers[] below
 *	rate		number: functions that succeed a second
 *	variables	number, or null: the engine keeps them
 *	unsaved_why, trouble, down
 *			string or null: why saves fail, why functions wait, why
 *			the engine is down
 *	workers		array of: name, state ("starting", "up", "hung",
 *			"fenced", "gone", "leaving"), where, since, lives, running, done,
 *			failures (numbers), function (string or null: the oldest), busy
 *			(number or null: its time), text (string or null: why
 *			the worker has gone)
 */
#include "cluster/core/cluster.h"

#include "base/json_write.h"
#include "base/prometheus.h"

static const char *const states[] = {
	[EVC_WORKER_STARTING] = "starting", [EVC_WORKER_UP] = "up",
	[EVC_WORKER_HUNG] = "hung",	    [EVC_WORKER_FENCED] = "fenced",
	[EVC_WORKER_GONE] = "gone",	    [EVC_WORKER_LEAVING] = "leaving",
};

/* ---- as text ---- */

static int
the_longest_first(const void *a, const void *b)
{
	const evc_cluster_worker_info *x = a, *y = b;

	if (x->busy != y->busy)
		return x->busy < y->busy ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void
put_state(unsigned state, struct text *t)
{
	if (state == EVC_WORKER_HUNG)
		evc__text_add(t, "hangs");
	else
		evc__text_fmt(t, "is %s", states[state]);
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

/* The workers at one moment; a line about the queue goes to t.  NULL: no
   workers, or no memory, and then t has a line about all. */
static evc_cluster_worker_info *
copy_workers(evc_cluster *cl, struct text *t, unsigned *ret_n)
{
	evc_cluster_worker_info *all = NULL;
	unsigned i, room = 0, n;
	uint64_t now;

	sync_lock(&cl->q.lock);
	/* Memory is asked for without the lock, and more workers may come
	   meanwhile. */
	while (room < cl->workers.n) {
		room = cl->workers.n;
		sync_unlock(&cl->q.lock);
		sync_free(all);
		all = sync_alloc(room, sizeof *all);
		sync_lock(&cl->q.lock);
		if (all == NULL)
			break;
	}
	now = sync_mono();
	n = all != NULL ? cl->workers.n : 0;
	for (i = 0; i < n; i++)
		evc__worker_info(cl->workers.all[i], now, &all[i]);
	if (all == NULL && cl->workers.n > 0)
		evc__cluster_describe(cl, now, t);
	else
		evc__queue_describe(cl, t);
	if (t->len > 0)
		evc__text_fmt(t, "\n");
	if (n == cl->workers.n && cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.trouble);
	if (n == cl->workers.n && cl->engine.down[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.down);
	if (n == cl->workers.n && cl->checkpoint.n_failed > 0) {
		evc__checkpoint_describe(cl, now, t);
		evc__text_fmt(t, "\n");
	}
	sync_unlock(&cl->q.lock);
	*ret_n = n;
	return all;
}

static void
write_text(evc_cluster *cl, struct text *t)
{
	char queued[200 + 2 * TEXT_SIZE];
	struct text q = evc__lines_in(queued, sizeof queued);
	evc_cluster_worker_info *all;
	unsigned i, n;

	t->lines = true;
	all = copy_workers(cl, &q, &n);
	if (n > 0)
		qsort(all, n, sizeof *all, the_longest_first);
	for (i = 0; i < n; i++)
		put_worker(&all[i], t);
	/* `queued` consists of lines. */
	t->lines = false;
	evc__text_add(t, queued);
	if (t->len == 0)
		evc__text_fmt(t, "nothing runs, nothing is queued\n");
	sync_free(all);
}

/* ---- as JSON and as metrics ---- */

#define NUMBER(field) offsetof(evc_cluster_info, field), false
#define TIME(field) offsetof(evc_cluster_info, field), true
#define AT(type, info, offset) \
	(*(const type *)(const void *)((const char *)(info) + (offset)))

static const char gauge[] = "gauge", counter[] = "counter";

/* The metric of a counter ends in _total, that of seconds in _seconds. */
static const struct {
	const char *name, *type, *help;
	size_t at;
	bool seconds; /* a double, else a whole number */
} numbers[] = {
	{ "queued", gauge, "Functions that were not begun.", NUMBER(n_queued) },
	{ "running", gauge, "Functions that workers have taken.",
	  NUMBER(n_running) },
	{ "scheduled", counter, "Functions accepted.", NUMBER(n_scheduled) },
	{ "done", counter, "Functions that have succeeded.", NUMBER(n_done) },
	{ "failed", counter, "Functions that have failed.", NUMBER(n_failed) },
	{ "cancelled", counter, "Functions that were cancelled.",
	  NUMBER(n_cancelled) },
	{ "executions", counter, "Results that workers have sent.",
	  NUMBER(n_executions) },
	{ "late", counter, "Results of attempts that were given up.",
	  NUMBER(n_late) },
	{ "lost", counter, "Attempts that ended with their worker.",
	  NUMBER(n_lost) },
	{ "retries", counter, "Attempts after a failure.", NUMBER(n_retries) },
	{ "conflicts", counter,
	  "Transactional functions that began again, because a variable "
	  "that they had read was changed.",
	  NUMBER(n_conflicts) },
	{ "fetches", counter, "Remotes whose outcome was handed out.",
	  NUMBER(n_fetches) },
	{ "builds", counter, "Per-worker values built.", NUMBER(n_builds) },
	{ "build_time", counter, "Time of builds of per-worker values.",
	  TIME(build_time) },
	{ "run_time", counter, "Time that functions ran, on all workers.",
	  TIME(run_time) },
	{ "worker_failures", counter,
	  "Lives of workers that ended by death, kill or fence.",
	  NUMBER(n_worker_failures) },
	{ "server_away", gauge,
	  "Time without a connection to the engine's server.",
	  TIME(server_away) },
	{ "age", gauge, "Time since the open.", TIME(age) },
	{ "unsaved_saves", gauge, "Saves that failed since the last success.",
	  NUMBER(n_unsaved) },
	{ "unsaved", gauge, "Age of the checkpoint, after a failed save.",
	  TIME(unsaved) },
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The number of variables; -1: the engine has them. */
static int64_t
n_variables(evc_cluster *cl)
{
	int64_t n = -1;

	if (cluster_asks(cl))
		return n;
	sync_lock(&cl->vars.lock);
	n = (int64_t)cl->vars.by_name.n;
	sync_unlock(&cl->vars.lock);
	return n;
}

static void
json_workers(struct evc__json *j, const evc_cluster *cl)
{
	evc_cluster_worker_info w;
	unsigned i;

	evc__json_begin(j, "workers", "[");
	for (i = 0; evc_cluster_worker_get(cl, i, &w) == 0; i++) {
		evc__json_begin(j, NULL, "{");
		evc__json_string(j, "name", w.name);
		evc__json_string(j, "state", states[w.state]);
		evc__json_string(j, "where", w.where);
		evc__json_seconds(j, "since", w.since);
		evc__json_number(j, "lives", w.lives);
		evc__json_number(j, "running", w.n_running);
		evc__json_number(j, "done", w.n_done);
		evc__json_number(j, "failures", w.n_failures);
		evc__json_string_if(j, "function", w.function);
		evc__json_seconds_if(j, "busy", w.busy);
		evc__json_string_if(j, "text", w.text);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
write_json(evc_cluster *cl, const evc_cluster_info *info, struct text *t)
{
	struct evc__json j = { .t = t };
	int64_t n = n_variables(cl);
	unsigned i;

	evc__json_begin(&j, NULL, "{");
	evc__json_begin(&j, "cluster", "{");
	evc__json_string(&j, "name", cl->name);
	evc__json_string(&j, "engine", info->engine);
	for (i = 0; i < COUNT(numbers); i++)
		if (numbers[i].seconds)
			evc__json_seconds(&j, numbers[i].name,
					  AT(double, info, numbers[i].at));
		else
			evc__json_number(&j, numbers[i].name,
					 AT(uint64_t, info, numbers[i].at));
	evc__json_seconds(&j, "rate", info->rate);
	evc__json_number_if(&j, "variables", n >= 0, (uint64_t)n);
	sync_lock(&cl->q.lock);
	evc__json_string(&j, "unsaved_why", cl->checkpoint.n_failed > 0 ?
						    cl->checkpoint.text : NULL);
	evc__json_string_if(&j, "trouble", cl->engine.trouble);
	evc__json_string_if(&j, "down", cl->engine.down);
	sync_unlock(&cl->q.lock);
	json_workers(&j, cl);
	evc__json_end(&j, "}");
	evc__json_end(&j, "}");
}

static void
family_of_workers(const evc_cluster *cl, struct text *t)
{
	unsigned n[COUNT(states)] = { 0 }, i;
	evc_cluster_worker_info w;

	for (i = 0; evc_cluster_worker_get(cl, i, &w) == 0; i++)
		n[w.state]++;
	evc__prometheus_head(t, "cluster", "workers", gauge,
			     "Workers by state.");
	for (i = EVC_WORKER_STARTING; i < COUNT(states); i++) {
		evc__text_fmt(t, "evcoord_cluster_workers{state=\"%s\"",
			      states[i]);
		evc__prometheus_whole(t, n[i]);
	}
}

static void
write_metrics(evc_cluster *cl, const evc_cluster_info *info, struct text *t)
{
	int64_t n = n_variables(cl);
	char name[40];
	unsigned i;

	for (i = 0; i < COUNT(numbers); i++) {
		snprintf(name, sizeof name, "%s%s%s", numbers[i].name,
			 numbers[i].seconds ? "_seconds" : "",
			 numbers[i].type == counter ? "_total" : "");
		evc__prometheus_head(t, "cluster", name, numbers[i].type,
				     numbers[i].help);
		evc__text_fmt(t, "evcoord_cluster_%s ", name);
		if (numbers[i].seconds)
			evc__text_seconds(t, AT(double, info, numbers[i].at));
		else
			evc__text_fmt(t, "%llu", (unsigned long long)AT(
						uint64_t, info, numbers[i].at));
		evc__text_add(t, "\n");
	}
	family_of_workers(cl, t);
	if (n < 0)
		return;
	evc__prometheus_head(t, "cluster", "variables", gauge, "Variables.");
	evc__text_fmt(t, "evcoord_cluster_variables %lld\n", (long long)n);
}

size_t
evc__cluster_report(unsigned format, char *buf, size_t n, void *cluster)
{
	struct text t = evc__text_in(buf, n);
	evc_cluster_info info;

	if (evc_cluster_get(cluster, &info) < 0)
		return 0;
	if (format == EVC_REPORT_TEXT)
		write_text(cluster, &t);
	else if (format == EVC_REPORT_JSON)
		write_json(cluster, &info, &t);
	else
		write_metrics(cluster, &info, &t);
	return t.len;
}
