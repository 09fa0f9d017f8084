/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workers - groups of threads that call one function again and again.
 *
 *	workers [basic] [groups]
 *
 *   basic    as little as it takes: add a group, start, stop
 *   groups   two of them, "train" and "test", with all that a group may have:
 *            an init and a shutdown function, metrics, a logger.  Then an error
 *            stops one of them alone; the other is stopped by its name; both
 *            are started again; and main returns while they run: exit(3) stops
 *            them
 *
 * Without arguments it shows both.  The exit status is 0 when all went as told
 * here.
 */
#include <evcoord.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Wrong use of the library or no memory: this example gives up. */
static void
check(evc_status st, const char *what)
{
	if (st == 0)
		return;
	fprintf(stderr, "workers: %s: %s: %s\n", what, evc_status_name(st),
		st < 0 ? evc_last_error() : "it failed");
	exit(EXIT_FAILURE); /* which stops what runs */
}

/* Something was not as told. */
static bool went_wrong;

static void
expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	printf("NOT AS TOLD: %s\n", what);
	went_wrong = true;
}

/* ---- basic ---- */

static atomic_uint n_fetched;

/* One piece of work: it is called again and again, by several threads, until
   the group stops. */
static evc_status
my_worker(evc_group *group, unsigned worker_id, void *arg)
{
	(void)worker_id;
	(void)arg;
	atomic_fetch_add(&n_fetched, 1);
	/* Waits that hear the stop; they return -EVC_CANCELLED then, which a
	   worker may return as it is. */
	return evc_sleep(evc_group_scope(group), 0.001);
}

/*
 * What a group needs: a function.  All else has a default: two threads, the
 * name "train", the registry of the process.
 */
static void
show_basic(void)
{
	evc_registry *coordinator, *again;

	printf("== basic\n");
	/* coordinator = init_workers(my_worker, worker_name="train") */
	check(evc_group_init(NULL, "train", my_worker, NULL, NULL, NULL,
			       &coordinator), "init");
	/* For a second GPU once more; it hands back the same one. */
	check(evc_group_init(NULL, "train", my_worker, NULL, NULL, NULL,
			       &again), "init");
	expect(again == coordinator, "one registry");

	/* coordinator.start() */
	check(evc_registry_start(coordinator), "start");
	printf("%zu workers run\n", evc_registry_ids(coordinator, NULL, 0));
	while (atomic_load(&n_fetched) < 10)
		usleep(1000);

	/* coordinator.stop() */
	check(evc_registry_stop(coordinator, NULL), "stop");
	printf("all of them have ended\n");
}

/* ---- groups ---- */

/* What the workers of a group share. */
struct job {
	const char *name;
	double scale;           /* set by init, before any worker runs */
	atomic_uint n_batches;
	unsigned bad_batch;     /* this one fails; 0: none */
	atomic_uint n_logged;
	evc_group *group;
};

/* Before any thread of any group is started, so the workers find what it has
   set; at each start. */
static evc_status
init(evc_group *group, evc_registry *reg, void *arg)
{
	struct job *job = arg;

	(void)group;
	(void)reg;
	printf("%s: init\n", job->name);
	job->scale = 0.5;
	return 0;
}

/* At the stop, once, when it was started.  Workers may still run: this is the
   place to close what they wait for. */
static void
shut_down(evc_group *group, void *arg)
{
	const struct job *job = arg;

	(void)group;
	printf("%s: shutdown\n", job->name);
}

/* With state it is symmetric: start before the first thread, cleanup when the
   last one has ended. */
static void
clean_up(void *arg)
{
	const struct job *job = arg;

	printf("%s: all workers have ended, cleanup\n", job->name);
}

static evc_status
work(evc_group *group, unsigned id, void *arg)
{
	struct job *job = arg;
	unsigned batch = atomic_fetch_add(&job->n_batches, 1) + 1;

	(void)id;
	if (batch == job->bad_batch)
		return evc_fail(evc_group_scope(group), EVC_DATA_LOSS, 0,
				"batch %u is damaged", batch);
	/* A metric is a sum; this one has a count beside it, so that somebody
	   can make a mean of it. */
	evc_group_put(group, "loss", job->scale / batch, true);
	return evc_sleep(evc_group_scope(group), 0.001);
}

/* After a run, on the worker's thread, and every tenth of a second at most: all
   metrics of the group, here as one line to standard error. */
static evc_status
log_metrics(evc_group *group, const evc_metric *metrics, unsigned n,
	    void *arg)
{
	struct job *job = arg;
	char line[1024];
	int at = snprintf(line, sizeof(line), "%s:", job->name);

	(void)group;
	for (unsigned i = 0; i < n && at < (int)sizeof(line); i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at,
			       " %s=%.3f", metrics[i].name, metrics[i].value);
	fprintf(stderr, "%s\n", line);
	atomic_fetch_add(&job->n_logged, 1);
	return 0;
}

static void
add_group(struct job *job, unsigned n_threads)
{
	const evc_logger logger = { .fn = log_metrics, .arg = job,
				    .every = 0.1 };
	const evc_group_opts opts = {
		.n_threads = n_threads,
		.init = init,
		.shutdown = shut_down,
		.state = { .cleanup = clean_up, .arg = job },
		.loggers = &logger,
		.n_loggers = 1,
		/* .on_error: its own group stops, which is the default. */
	};

	check(evc_group_init(NULL, job->name, work, job, &opts, &job->group,
			       NULL), job->name);
}

/* The error that stopped it, as it is kept with the group. */
static void
say_error(const struct job *job)
{
	evc_worker_error e;

	check(evc_group_error_get(job->group, 0, &e), "error");
	printf("%s: start %u: %s: %s\n", job->name, e.start,
	       evc_status_name(e.reason.code), e.reason.text);
}

static void
say_metrics(const struct job *job)
{
	evc_metric m[16];
	size_t n = evc_group_metrics(job->group, m, 16);
	double n_losses;

	for (size_t i = 0; i < n && i < 16; i++) {
		printf("%s: metric %s\n", job->name, m[i].name);
		expect(m[i].value > 0, m[i].name);
	}
	/* By its name.  The workers go on meanwhile. */
	n_losses = evc_group_metric(job->group, "loss_count");
	expect(n_losses <= atomic_load(&job->n_batches), "one for each batch");
}

/* Until each worker has had something to do, and the logger as well. */
static void
let_work(const struct job *job, unsigned n)
{
	unsigned until = atomic_load(&job->n_batches) + n;

	while (atomic_load(&job->n_batches) < until ||
	       atomic_load(&job->n_logged) == 0)
		usleep(1000);
}

static struct job train = { .name = "train" };
static struct job test = { .name = "test", .bad_batch = 20 };

static void
show_groups(void)
{
	printf("== groups\n");
	add_group(&train, 3);
	add_group(&test, 2);
	check(evc_registry_start(NULL), "start");

	/* An error in one group is no affair of the other. */
	expect(evc_group_wait_finish(test.group, 20), "test ends");
	say_error(&test);
	expect(evc_group_is_active(train.group), "train goes on");
	let_work(&train, 20);
	say_metrics(&train);

	/* By name: all groups that have it. */
	check(evc_registry_stop_name(NULL, "train", NULL), "stop train");
	expect(!evc_group_is_active(train.group), "train has stopped");

	/* What has stopped can be started again: the same workers with the same
	   ids; errors and metrics stay. */
	printf("again\n");
	test.bad_batch = 0;
	check(evc_group_start(test.group), "start test");
	check(evc_group_start(train.group), "start train");
	let_work(&train, 20);
	let_work(&test, 20);

	/* They run still when main returns.  exit(3) stops them, and waits no
	   longer than evc_registry_stop would. */
	printf("main returns\n");
}

/* ---- all of it ---- */

/* Take the groups away that an example has left. */
static bool
free_group(evc_group *group, void *arg)
{
	(void)arg;
	check(evc_group_free(group), "free");
	return true;
}

static bool
is_wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc <= 1;
}

int
main(int argc, char **argv)
{
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "basic") == 0 ||
		    strcmp(argv[i], "groups") == 0)
			continue;
		fputs("usage: workers [basic] [groups]\n",
		      help ? stdout : stderr);
		return help ? 0 : 2;
	}
	if (is_wanted("basic", argc, argv)) {
		show_basic();
		check(evc_registry_each(NULL, free_group, NULL), "each");
	}
	if (is_wanted("groups", argc, argv))
		show_groups();
	return went_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
