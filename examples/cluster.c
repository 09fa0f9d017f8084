/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster - functions on workers that may die, and what comes back.
 *
 *	cluster [threads|processes] [N]
 *	cluster ADDRESS
 *	cluster --worker ADDRESS [N]
 *
 * N workers (2), which are threads of this process, or processes that run this
 * program once more; or whoever comes to an ADDRESS, redis://HOST:PORT/NAMESPACE,
 * where --worker brings N of them, from this machine or from another one.  Each of them has a dataset of its own; a variable belongs
 * to all.  A step takes the next element of its worker's dataset and adds it to
 * the variable.  One step is scheduled and its result fetched, then some more
 * and all are waited for; at last one that fails, to see who hears of it.
 *
 * main has no loop: the cluster runs one on a thread of its own.  wordcount is
 * the same on a loop of the program's.
 *
 * SIGINT or SIGTERM stop it.  The exit status is 0, or 1 after an error.
 */
#include <evcoord.h>
#include <evcoord/cluster.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 10

/* ---- what a worker can do ---- */

/* A dataset: the number 3, three times. */
struct numbers {
	int64_t element;
	unsigned n;
};

/* A walk through it. */
struct walk {
	const struct numbers *in;
	unsigned at;
};

static evc_status
walk_begin(evc_exec *x, void *state, void **ret_iterator)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return evc_exec_fail(x, EVC_RESOURCE_EXHAUSTED, "no memory");
	w->in = state;
	*ret_iterator = w;
	return 0;
}

static evc_status
walk_next(evc_exec *x, void *iterator)
{
	struct walk *w = iterator;

	if (w->at == w->in->n)
		return EVC_OUT_OF_RANGE; /* the end */
	w->at++;
	return evc_exec_return(x, "I", w->in->element);
}

/* Called once on each worker, and again on one that came back. */
static evc_status
dataset_fn(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = {
		.iterate = walk_begin,
		.next = walk_next,
		.free_iterator = free,
		.free = free,
	};
	struct numbers *numbers = malloc(sizeof(*numbers));
	evc_status st;

	(void)arg;
	if (numbers == NULL)
		return evc_exec_fail(x, EVC_RESOURCE_EXHAUSTED, "no memory");
	*numbers = (struct numbers){ .element = 3, .n = 3 };
	st = evc_exec_keep(x, &ops, numbers);
	if (st < 0) {
		free(numbers);
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	}
	return 0;
}

/* One step: [ITERATOR] -> what the variable is after it. */
static evc_status
worker_fn(evc_exec *x, void *arg)
{
	evc_local *iterator;
	evc_value next;
	evc_status st;
	int64_t number;
	double now;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &iterator) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	st = evc_exec_next(x, iterator, &next);
	if (st > 0)
		return evc_exec_fail(x, st, "there is no element any more");
	if (st == 0)
		st = evc_unpack(&next, "I", &number);
	if (st == 0)
		st = evc_exec_variable_add(x, "v", (double)number, &now);
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	return evc_exec_return(x, "d", now);
}

/* A worker knows functions by these names. */
static const evc_function functions[] = {
	{ .name = "dataset_fn", .fn = dataset_fn },
	{ .name = "worker_fn", .fn = worker_fn },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* This process was started as a worker: it is nothing else.  With an address it
   was started by hand, and starts workers of that address. */
static int
be_worker(const char *address, unsigned n)
{
	const evc_worker_opts opts = { .uri = address, .n_workers = n };
	evc_status st = evc_worker_main(functions, N_FUNCTIONS, &opts);

	if (st < 0)
		fprintf(stderr, "cluster: %s\n", evc_last_error());
	return st == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the coordinator's side ---- */

/* < 0 is a refusal of this very call, and evc_last_error says why.  > 0 is an
   error of some function that was scheduled: it is raised once, here or by
   whatever asks next, and kept for who wants to know more. */
static bool
is_fine(evc_status st, const evc_cluster *cluster, const char *what)
{
	evc_reason r;

	if (st == 0)
		return true;
	if (st > 0 && evc_cluster_error_get(cluster, 0, &r) == 0)
		fprintf(stderr, "cluster: %s: %s of %s on %s: %s\n", what,
			evc_status_name(st), r.func, r.who, r.text);
	else
		fprintf(stderr, "cluster: %s: %s: %s\n", what,
			evc_status_name(st), evc_last_error());
	return false;
}

/* The result of one step.  Its error is its own, and raised by a join still. */
static bool
fetch(evc_cluster *cluster, evc_remote *remote)
{
	evc_value remotes = { 0 }, results = { 0 };
	evc_remote_info i;
	evc_status st;
	double sum;

	/* Any number of remotes may stand in what is fetched, at any depth:
	   the same comes back with their results in their places. */
	st = evc_pack(&remotes, "{first:r}", remote);
	if (st == 0)
		st = evc_fetch(cluster, &remotes, INFINITY, &results);
	if (st == 0)
		st = evc_unpack(&results, "{first:d}", &sum);
	if (st == 0)
		printf("fetch: %g\n", sum);
	evc_value_free(&results);
	evc_value_free(&remotes);
	if (st <= 0)
		return is_fine(st, cluster, "fetch");
	if (evc_remote_get(remote, &i) == 0)
		/* One that never began has no worker. */
		fprintf(stderr, "cluster: fetch: %s of %s%s%s: %s\n",
			evc_status_name(st), i.function,
			i.worker[0] ? " on " : "", i.worker, i.text);
	return false;
}

static bool
fetch_one(evc_cluster *cluster, evc_per_worker *iterator)
{
	evc_remote *result;
	evc_status st;
	bool ok;

	st = evc_schedule_pack(cluster, "worker_fn", NULL, &result, "[w]",
			       iterator);
	if (!is_fine(st, cluster, "the first step"))
		return false;
	ok = fetch(cluster, result);
	evc_remote_free(result);
	return ok;
}

/* Steps of which nobody wants the result, and the wait for all of them. */
static bool
join_many(evc_cluster *cluster, evc_per_worker *iterator)
{
	evc_value v = { 0 };
	evc_status st = 0;
	double sum;
	int i;

	for (i = 0; i < STEPS && st == 0; i++)
		st = evc_schedule_pack(cluster, "worker_fn", NULL, NULL, "[w]",
				       iterator);
	if (st == 0)
		st = evc_cluster_join(cluster, INFINITY);
	if (st == 0)
		st = evc_variable_get(cluster, "v", &v);
	if (st == 0)
		st = evc_unpack(&v, "d", &sum);
	if (st == 0)
		printf("join: %d steps more, the variable is %g\n", STEPS, sum);
	evc_value_free(&v);
	return is_fine(st, cluster, "the steps");
}

/* Four steps on one worker, whose dataset has three elements.  Returns: the
   remote of the last, NULL when they were not all accepted. */
static evc_remote *
schedule_four(evc_cluster *cluster, evc_per_worker *dataset)
{
	const evc_schedule_opts on = { .worker = "worker 0" };
	evc_per_worker *iterator = NULL;
	evc_remote *last = NULL;
	evc_status st;
	int i;

	st = evc_per_worker_iterator(dataset, &iterator);
	for (i = 0; i < 4 && st == 0; i++) {
		evc_remote_free(last);
		last = NULL;
		st = evc_schedule_pack(cluster, "worker_fn", &on, &last, "[w]",
				       iterator);
	}
	/* It is freed on the workers when the steps are over. */
	evc_per_worker_free(iterator);
	if (is_fine(st, cluster, "four steps"))
		return last;
	evc_remote_free(last);
	return NULL;
}

/* An error of a function, and who hears of it. */
static bool
fail_one(evc_cluster *cluster, evc_per_worker *dataset)
{
	evc_remote *last = schedule_four(cluster, dataset);
	evc_status st;
	evc_reason r;
	bool raised;

	if (last == NULL)
		return false;
	st = evc_cluster_join(cluster, INFINITY);
	raised = st > 0 && evc_cluster_error_get(cluster, 0, &r) == 0;
	if (raised)
		printf("join raises %s: %s\n", evc_status_name(st), r.text);
	else
		fprintf(stderr, "cluster: join: %s, and not the error\n",
			evc_status_name(st));
	/* The remote keeps its own; the cluster has raised it, and is as
	   new. */
	st = evc_remote_fetch(last, INFINITY, NULL);
	printf("the remote keeps %s\n", evc_status_name(st));
	evc_remote_free(last);
	st = evc_cluster_join(cluster, INFINITY);
	printf("join once more: %s\n", evc_status_name(st));
	return is_fine(st, cluster, "join once more") && raised;
}

static bool
use(evc_cluster *cluster)
{
	/* A number of steps is scheduled, wherever they run: so the dataset has
	   no end. */
	const evc_dataset_opts for_ever = { .repeat = UINT64_MAX };
	evc_per_worker *endless = NULL, *dataset = NULL, *iterator = NULL;
	evc_value zero = { 0 };
	evc_status st;
	bool ok;

	st = evc_pack(&zero, "d", 0.);
	if (st == 0)
		st = evc_variable_set(cluster, "v", &zero);
	evc_value_free(&zero);
	if (st == 0)
		st = evc_per_worker_dataset(cluster, "threes for ever",
					    "dataset_fn", NULL, &for_ever,
					    &endless);
	if (st == 0)
		st = evc_per_worker_iterator(endless, &iterator);
	if (st == 0)
		st = evc_per_worker_dataset(cluster, "threes", "dataset_fn",
					    NULL, NULL, &dataset);
	ok = is_fine(st, cluster, "set up") &&
	     fetch_one(cluster, iterator) && join_many(cluster, iterator) &&
	     fail_one(cluster, dataset);
	evc_per_worker_free(iterator);
	evc_per_worker_free(endless);
	evc_per_worker_free(dataset);
	return ok;
}

static _Noreturn void
usage(int status)
{
	fputs("usage: cluster [threads|processes] [N]\n"
	      "       cluster ADDRESS\n"
	      "       cluster --worker ADDRESS [N]\n",
	      status == 0 ? stdout : stderr);
	exit(status);
}

/* What comes last; 2 without one. */
static unsigned
read_n(char **argv)
{
	unsigned long n;
	char *end;

	if (argv[0] == NULL)
		return 2;
	n = strtoul(argv[0], &end, 10);
	if (*argv[0] < '0' || *argv[0] > '9' || *end || n < 1 || n > 256 ||
	    argv[1] != NULL)
		usage(2);
	return (unsigned)n;
}

/* "threads://2" */
static void
read_uri(char *uri, size_t size, char **argv)
{
	const char *engine = "threads";

	if (argv[0] != NULL && strstr(argv[0], "://") != NULL) {
		if (argv[1] != NULL)
			usage(2);
		snprintf(uri, size, "%s", argv[0]);
		return;
	}
	if (argv[0] != NULL && (strcmp(argv[0], "threads") == 0 ||
				strcmp(argv[0], "processes") == 0))
		engine = *argv++;
	snprintf(uri, size, "%s://%u", engine, read_n(argv));
}

int
main(int argc, char **argv)
{
	const evc_cluster_config config = {
		/* For threads.  Processes say by themselves what they can. */
		.functions = functions,
		.n_functions = N_FUNCTIONS,
	};
	evc_cluster *cluster;
	evc_verdict v = { 0 };
	evc_status st;
	evc_coord *c;
	bool ok;
	char uri[1024];

	if (evc_worker_is())
		return be_worker(NULL, 0);
	if (argc > 2 && strcmp(argv[1], "--worker") == 0)
		return be_worker(argv[2], read_n(argv + 3));
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		usage(0);
	read_uri(uri, sizeof(uri), argv + 1);
	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, uri, &config, &cluster) < 0 ||
	    /* Last: a stop refuses what begins after it. */
	    evc_signals_start(c, NULL) < 0) {
		fprintf(stderr, "cluster: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	printf("%s\n", uri);
	ok = use(cluster);
	/* The cluster ends, and the join waits for its workers.  After SIGINT
	   it is ending already, and the calls above were refused. */
	evc_cluster_close(cluster);
	st = evc_join(c, NULL, &v);
	if (st < 0)
		fprintf(stderr, "cluster: %s\n", evc_last_error());
	else if (st > 0)
		fprintf(stderr, "cluster: %s\n", v.error.text);
	st = evc_finish(c, st);
	if (v.n_stragglers > 0)
		_Exit(EXIT_FAILURE); /* a worker runs still */
	return st == 0 && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
