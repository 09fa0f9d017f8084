/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trainer - asynchronous stochastic gradient descent, on workers that may die.
 *
 *	trainer [OPTION...] [ADDRESS]
 *	trainer --worker [-n N] ADDRESS
 *
 * A logistic regression with a million sparse features, on samples that are made
 * by their numbers, so no data are sent.  ADDRESS is that of the cluster:
 * processes://4 (the default, which runs this program once more for each
 * worker), threads://4, or redis://HOST:PORT/NAMESPACE, where --worker brings
 * workers, from this machine or from others.
 *
 * The training has rounds.  In each one the cluster is given batches, and when
 * they are done the loss on samples that are held out is measured.  Then one
 * thread, without a cluster, is trained with the same batches, in their order;
 * in the end both must have learnt the same.
 *
 *	--samples N        how many (2000000), in batches of
 *	--batch N          samples (100)
 *	--seed N           of all random numbers (1)
 *	--quick            fewer samples (200000)
 *	--kill             kill -9 of a worker every 100 to 200 ms, if a batch
 *	                   was done meanwhile
 *	--checkpoint FILE  keep the model there, and go on from it the next time
 *	--plot FILE        draw the losses there, as SVG
 *
 * SIGINT or SIGTERM stop it.  The exit status is 0; 1 after an error; 2 for
 * wrong use; 3 if the losses differ by more than 5 %, or if a batch does not
 * count exactly once; 130 after a signal.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "trainer.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIFFERS 3
#define TOLERANCE 0.05

/* ---- options ---- */

static _Noreturn void
usage(bool is_asked)
{
	fputs("usage: trainer [--samples N] [--batch N] [--seed N] [--quick] "
	      "[--kill]\n"
	      "               [--checkpoint FILE] [--plot FILE] [ADDRESS]\n"
	      "       trainer --worker [-n N] ADDRESS\n",
	      is_asked ? stdout : stderr);
	exit(is_asked ? 0 : 2);
}

static uint64_t
whole(const char *text, double least, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end || !(d >= least && d <= most) || d != floor(d))
		usage(false);
	return (uint64_t)d;
}

/* What is not possible is said, not left out. */
static void
options_check(const struct options *o)
{
	if (o->is_worker ? o->address == NULL : o->n_workers > 0)
		usage(false);
	if (o->kills && strncmp(o->address, "threads:", 8) == 0) {
		fputs("trainer: threads cannot be killed; --kill is for "
		      "processes\n", stderr);
		exit(2);
	}
	if (o->n_samples / o->n_batch < ROUNDS) {
		fprintf(stderr, "trainer: fewer than %d batches\n", ROUNDS);
		exit(2);
	}
}

static void
options_read(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "samples", required_argument, NULL, 's' },
		{ "batch", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 'S' },
		{ "quick", no_argument, NULL, 'q' },
		{ "kill", no_argument, NULL, 'k' },
		{ "checkpoint", required_argument, NULL, 'c' },
		{ "plot", required_argument, NULL, 'p' },
		{ "worker", no_argument, NULL, 'w' },
		{ 0 }
	};
	int opt;

	*o = (struct options){ .seed = 1, .n_batch = 100 };
	while ((opt = getopt_long(argc, argv, "hn:", longs, NULL)) != -1) {
		switch (opt) {
		case 'h':
			usage(true);
		case 's':
			o->n_samples = whole(optarg, 1, 1e9);
			break;
		case 'b':
			o->n_batch = (uint32_t)whole(optarg, 1, BATCH_MOST);
			break;
		case 'S':
			o->seed = whole(optarg, 0, 1e15);
			break;
		case 'q':
			o->is_quick = true;
			break;
		case 'k':
			o->kills = true;
			break;
		case 'c':
			o->checkpoint = optarg;
			break;
		case 'p':
			o->plot = optarg;
			break;
		case 'w':
			o->is_worker = true;
			break;
		case 'n':
			o->n_workers = (unsigned)whole(optarg, 1, 256);
			break;
		default:
			usage(false);
		}
	}
	if (argc - optind > 1)
		usage(false);
	if (optind < argc)
		o->address = argv[optind];
	else if (!o->is_worker)
		o->address = "processes://4";
	if (o->n_samples == 0)
		o->n_samples = o->is_quick ? 200000 : 2000000;
	options_check(o);
}

/* ---- one thread without a cluster, to compare with ---- */

struct alone {
	float *weights;
	struct batch batch;
	uint64_t n_trained; /* samples */
	double seconds;     /* that it took */
};

/* The same as the cluster's function, line by line. */
static void
alone_train(struct alone *a, const struct trainer *t, uint64_t from,
	    uint64_t to)
{
	const struct options *o = t->o;
	struct batch *b = &a->batch;
	double began = now_seconds();
	uint64_t i;
	size_t k;

	for (i = from; i < to && !evc_should_stop(t->c); i++) {
		batch_make(b, o->seed, i * o->n_batch);
		batch_read(b, a->weights);
		batch_steps(b);
		for (k = 0; k < b->n; k++)
			a->weights[b->at[k]] += b->steps[k];
		a->n_trained += o->n_batch;
	}
	a->seconds += now_seconds() - began;
}

/* ---- rounds ---- */

static double
loss_of(struct batch *held_out, const float *model)
{
	batch_read(held_out, model);
	return batch_loss(held_out);
}

static void
print_head(const struct trainer *t)
{
	const struct options *o = t->o;

	printf("%s: %" PRIu64 " samples in batches of %u, %d features\n",
	       o->address, t->n_batches * o->n_batch, (unsigned)o->n_batch,
	       FEATURES);
	if (t->n_old > 0)
		printf("%" PRIu64 " of %" PRIu64 " batches are done by the "
		       "checkpoint\n", t->n_old, t->n_batches);
	putchar('\n');
	printf("             the cluster          one thread\n"
	       "  samples    seconds     loss     seconds     loss\n");
}

static void
print_point(const struct point *p)
{
	printf("%9" PRIu64 " %10.2f %8.4f  %10.2f %8.4f\n", p->n_samples,
	       p->seconds[0], p->loss[0], p->seconds[1], p->loss[1]);
	fflush(stdout);
}

/* Both are trained with the batches of a round, one after the other, so that
   neither takes the processors from the other.  Rounds of which a checkpoint had
   all are no points of a curve, unless that is the whole training. */
static bool
run_rounds(struct trainer *t, struct alone *a, struct batch *held_out,
	   struct curves *curves)
{
	uint64_t from = 0, to;
	struct point *p;
	int round;

	print_head(t);
	for (round = 0; round < ROUNDS; round++, from = to) {
		to = t->n_batches * (uint64_t)(round + 1) / ROUNDS;
		if (!cluster_train(t, from, to))
			return false;
		alone_train(a, t, from, to);
		if (evc_should_stop(t->c))
			return false;
		if (t->n_trained == 0 && round < ROUNDS - 1) {
			a->seconds = 0;
			a->n_trained = 0;
			continue;
		}
		p = &curves->points[curves->n++];
		*p = (struct point){
			.n_samples = to * t->o->n_batch,
			.seconds = { t->seconds, a->seconds },
			.loss = { loss_of(held_out, t->weights),
				  loss_of(held_out, a->weights) },
		};
		print_point(p);
	}
	return true;
}

/* ---- what has come out ---- */

static void
print_cluster(const struct trainer *t, const struct alone *a)
{
	evc_cluster_info i = { 0 };

	evc_cluster_get(t->cluster, &i);
	printf("samples a second        %.0f on the cluster, %.0f in one "
	       "thread\n", (double)t->n_trained / t->seconds,
	       (double)a->n_trained / a->seconds);
	printf("functions               %" PRIu64 " done, %" PRIu64
	       " runs answered, %" PRIu64 " lost with their worker\n", i.n_done,
	       i.n_executions, i.n_lost);
	/* A process may be killed once more before its death is heard of. */
	printf("kill -9                 %u times; %" PRIu64 " workers died\n",
	       t->n_kills, i.n_worker_failures);
	printf("conflicts               %" PRIu64 "\n", i.n_conflicts);
}

/* Have both learnt the same, and does each batch count once?  Returns the exit
   status. */
static int
judge(const struct trainer *t, const struct point *last)
{
	double difference = last->loss[0] / last->loss[1] - 1;
	uint64_t wrong = cluster_wrong(t);

	printf("batches                 %" PRIu64 ", of which %" PRIu64
	       " do not count exactly once\n", t->n_batches, wrong);
	printf("final losses            %.4f on the cluster, %.4f in one "
	       "thread: %+.2f %%\n", last->loss[0], last->loss[1],
	       100 * difference);
	/* So that NaN is no success. */
	return fabs(difference) <= TOLERANCE && wrong == 0 ? 0 : DIFFERS;
}

/* Returns the exit status. */
static int
show(const struct trainer *t, const struct alone *a,
     const struct curves *curves)
{
	int status;

	putchar('\n');
	plot_text(curves);
	putchar('\n');
	print_cluster(t, a);
	status = judge(t, &curves->points[curves->n - 1]);
	if (t->o->plot == NULL || plot_svg(t->o->plot, curves))
		return status;
	fprintf(stderr, "trainer: %s: %s\n", t->o->plot, strerror(errno));
	return EXIT_FAILURE;
}

/* ---- all of it ---- */

/* Returns the exit status; main says why it stopped, if it did. */
static int
run(struct trainer *t)
{
	struct curves curves = { .n = 0 };
	struct batch held_out = { 0 };
	struct alone a = { .weights = calloc(FEATURES, sizeof(float)) };
	int status = EXIT_FAILURE;

	if (a.weights == NULL || !batch_init(&a.batch, t->o->n_batch) ||
	    !batch_init(&held_out, HELD_OUT)) {
		fputs("trainer: no memory\n", stderr);
	} else {
		batch_make_held_out(&held_out, t->o->seed);
		if (cluster_begin(t) && run_rounds(t, &a, &held_out, &curves))
			status = show(t, &a, &curves);
	}
	batch_free(&held_out);
	batch_free(&a.batch);
	free(a.weights);
	return status;
}

/* The cluster ends, and a join waits for its workers, 10 seconds at most. */
static int
end(struct trainer *t, int status)
{
	evc_verdict v = { 0 };
	evc_status st;

	evc_cluster_close(t->cluster);
	st = evc_join(t->c, NULL, &v);
	if (st != 0) {
		fprintf(stderr, "trainer: %s\n",
			st < 0 ? evc_last_error() : v.error.text);
		status = EXIT_FAILURE;
	} else if (v.stop.kind == EVC_BY_SIGNAL) {
		fprintf(stderr, "trainer: %s%s\n", v.stop.text,
			t->o->checkpoint ? "; to go on: the same once more" :
					   "");
		status = 130;
	}
	evc_finish(t->c, st);
	if (v.n_stragglers > 0)
		_exit(EXIT_FAILURE); /* a worker runs still */
	return status;
}

int
main(int argc, char **argv)
{
	const evc_config cfg = { .name = "trainer", .grace = 10 };
	struct trainer t = { 0 };
	struct options o;
	int status;

	/* The workers are this program, too. */
	if (evc_worker_is())
		return cluster_worker(NULL);
	options_read(&o, argc, argv);
	if (o.is_worker)
		return cluster_worker(&o);
	t.o = &o;
	t.n_batches = o.n_samples / o.n_batch;
	t.done = calloc(t.n_batches, sizeof(*t.done));
	t.weights = calloc(FEATURES, sizeof(*t.weights));
	if (t.done == NULL || t.weights == NULL) {
		fputs("trainer: no memory\n", stderr);
		return EXIT_FAILURE;
	}
	if (evc_new(NULL, &cfg, &t.c) < 0 || !cluster_open(&t) ||
	    /* Last: a stop refuses what begins after it. */
	    evc_signals_start(t.c, NULL) < 0) {
		fprintf(stderr, "trainer: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	status = end(&t, run(&t));
	free(t.done);
	free(t.weights);
	return status;
}
