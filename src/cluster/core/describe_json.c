/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster in a report for machines.
 * Called by: describe.c.
 * Locks: the cluster's, taken; the lock of its variables, taken.
 */
/*
 * As JSON an object with the key cluster, and there (every key is always there;
 * a value that does not apply is null; times are seconds):
 *	name, engine	string
 *	numbers[]	number: each name in numbers[] below
 *	rate		number: functions that succeed a second
 *	variables	number, or null: the engine keeps them
 *	unsaved_why, trouble, down
 *			string or null: why saves fail, why functions wait, why
 *			the engine is down
 *	workers		array of at most TOLD_MOST, busy ones rather than others
 *			and then those that are not up: name, state ("starting", "up", "hung",
 *			"fenced", "gone", "leaving"), where, since, lives, running, done,
 *			failures (numbers), function (string or null: the oldest), builds
 *			(string or null: a per-worker value in its build),
 *			busy (number or null: its time in either), text
 *			(string or null: why the worker has gone), stack (array of strings or null:
 *			the lines below the worker in text), no_stack (string or
 *			null: why there are none)
 *	workers_more	number: workers that are not in that array
 */
#include "cluster/core/told.h"

#include "base/json_write.h"
#include "base/prometheus.h"

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
json_stack(struct evc__json *j, const struct worker_stack *s)
{
	char *at = s != NULL ? s->lines : NULL, *line;
	unsigned n = 0;

	if (at == NULL) {
		evc__json_string(j, "stack", NULL);
	} else {
		evc__json_begin(j, "stack", "[");
		while (n++ < STACK_LINES &&
		       (line = evc__stack_line(&at)) != NULL)
			evc__json_string(j, NULL, line + strspn(line, " "));
		evc__json_end(j, "]");
	}
	evc__json_string_if(j, "no_stack", s != NULL ? s->why : "");
}

static const struct worker_stack *
stack_at(const struct worker_stack *s, unsigned n, unsigned index)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (s[i].index == index)
			return &s[i];
	return NULL;
}

static int
by_index(const void *a, const void *b)
{
	const evc_cluster_worker_info *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static void
json_workers(struct evc__json *j, const evc_cluster *cl,
	     struct told_workers *told, const struct worker_stack *s,
	     unsigned n)
{
	const evc_cluster_worker_info *w;
	char text[DEATH_SIZE];
	unsigned i;

	if (told->n > 1)
		qsort(told->at, told->n, sizeof *told->at, by_index);
	evc__json_begin(j, "workers", "[");
	for (i = 0; i < told->n; i++) {
		w = &told->at[i];
		evc__json_begin(j, NULL, "{");
		evc__json_string(j, "name", w->name);
		evc__json_string(j, "state", evc__worker_state_name(w->state));
		evc__json_string(j, "where", w->where);
		evc__json_seconds(j, "since", w->since);
		evc__json_number(j, "lives", w->lives);
		evc__json_number(j, "running", w->n_running);
		evc__json_number(j, "done", w->n_done);
		evc__json_number(j, "failures", w->n_failures);
		evc__json_string_if(j, "function", w->function);
		evc__json_string_if(j, "builds", w->builds);
		evc__json_seconds_if(j, "busy", w->busy);
		(void)evc_cluster_worker_text(cl, w->index, text, sizeof text);
		evc__json_string_if(j, "text", text);
		json_stack(j, stack_at(s, n, w->index));
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
	evc__json_number(j, "workers_more", told->n_all - told->n);
}

void
evc__cluster_json(evc_cluster *cl, const evc_cluster_info *info, bool stacks,
	   struct text *t)
{
	struct text none = evc__text_in(NULL, 0);
	struct evc__json j = { .t = t };
	int64_t n = n_variables(cl);
	struct worker_stack *s = NULL;
	struct told_workers told;
	unsigned i, n_stacks = 0;

	evc__told_copy(cl, &none, &told);
	if (stacks)
		s = evc__told_stacks(cl, &told, &n_stacks);

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
	json_workers(&j, cl, &told, s, n_stacks);
	evc__stacks_free(s, n_stacks);
	sync_free(told.at);
	evc__json_end(&j, "}");
	evc__json_end(&j, "}");
}

static void
family_of_workers(evc_cluster *cl, struct text *t)
{
	unsigned n[WORKER_STATES] = { 0 }, i;

	sync_lock(&cl->q.lock);
	for (i = 0; i < cl->workers.n; i++)
		n[worker_told_state(cl->workers.all[i])]++;
	sync_unlock(&cl->q.lock);
	evc__prometheus_head(t, "cluster", "workers", gauge,
			     "Workers by state.");
	for (i = EVC_WORKER_STARTING; i < WORKER_STATES; i++) {
		evc__text_fmt(t, "evcoord_cluster_workers{state=\"%s\"",
			      evc__worker_state_name(i));
		evc__prometheus_whole(t, n[i]);
	}
}

void
evc__cluster_metrics(evc_cluster *cl, const evc_cluster_info *info, struct text *t)
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
