/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trainer_cluster.c - asynchronous stochastic gradient descent on a cluster.
 *
 * The model is one variable of the cluster: the vector "weights".  A function is
 * one batch: it reads the weights of the batch's features, as they are at that
 * moment, and adds its steps to them.  Nobody waits for anybody: while a worker
 * computes, others change the weights that it has read, and the training does
 * well all the same, for one batch changes each weight by very little.
 *
 * What must not happen is that a batch counts twice, or not at all, because its
 * worker was killed.  So the function is a transactional one: its additions are
 * made when it has succeeded, all of them and once.  Among them is a 1 in the
 * vector "done", in the place of the batch: from it a later run of the program
 * knows what is left to do.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "trainer.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what a worker does ---- */

/* One batch: the samples first, first + 1, ... */
static evc_status
train_with(evc_exec *x, struct batch *b, uint64_t first)
{
	float one = 1;
	const evc_elements weights = {
		.floats = b->weights,
		.at = b->at,
		.n = b->n,
	};
	const evc_elements steps = {
		.floats = b->steps,
		.at = b->at,
		.n = b->n,
	};
	const evc_elements done = {
		.floats = &one,
		.from = first / b->n_samples,
		.n = 1,
	};
	evc_status st;

	/* Loosely: a checked read would have the function run again whenever
	   another batch has changed one of these weights meanwhile. */
	st = evc_exec_vector_get_loose(x, "weights", &weights);
	if (st < 0)
		return st;
	batch_steps(b);
	/* Additions read nothing, so these two are never in conflict either.  A
	   feature that several samples have is added to as often. */
	st = evc_exec_vector_add(x, "weights", &steps);
	return st < 0 ? st : evc_exec_vector_add(x, "done", &done);
}

/* [seed, first sample, number of samples] */
static evc_status
train(evc_exec *x, void *arg)
{
	struct batch b;
	uint64_t seed, first;
	unsigned n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[UUu]", &seed, &first, &n) < 0 || n < 1 ||
	    n > BATCH_MOST)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "no batch: %s",
				     evc_last_error());
	if (!batch_init(&b, n))
		return evc_exec_fail(x, EVC_RESOURCE_EXHAUSTED, "no memory");
	batch_make(&b, seed, first);
	st = train_with(x, &b, first);
	batch_free(&b);
	return st < 0 ? evc_exec_fail(x, -st, "%s", evc_last_error()) : 0;
}

static const evc_function functions[] = {
	{ .name = "train", .fn = train },
};

int
cluster_worker(const struct options *o)
{
	const evc_worker_opts opts = {
		.uri = o ? o->address : NULL,
		.n_workers = o ? o->n_workers : 0,
	};
	evc_status st = evc_worker_main(functions, 1, &opts);

	if (st < 0)
		fprintf(stderr, "trainer: %s\n", evc_last_error());
	return st == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the coordinator's side ---- */

double
now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* < 0 is a refusal of a call; > 0 is the error of a batch, which this call was
   the first to be told of.  After a stop main says who has asked for it. */
static bool
is_fine(const struct trainer *t, evc_status st, const char *what)
{
	evc_reason r;

	if (st == 0)
		return true;
	if (evc_should_stop(t->c))
		return false;
	if (st > 0 && evc_cluster_error_get(t->cluster, 0, &r) == 0)
		fprintf(stderr, "trainer: %s: %s on %s: %s\n", what, r.func,
			r.who, r.text);
	else
		fprintf(stderr, "trainer: %s: %s\n", what, evc_last_error());
	return false;
}

bool
cluster_open(struct trainer *t)
{
	const evc_cluster_config config = {
		/* For threads.  Processes say by themselves what they can. */
		.functions = functions,
		.n_functions = 1,
		/* A function that ends three workers would be given up; here
		   they are killed by us, and no function can help it. */
		.deaths = UINT_MAX,
		/* It is loaded from there now, and saved in the end, too. */
		.checkpoint = t->o->checkpoint,
		.checkpoint_every = 5,
	};

	return evc_cluster_open(t->c, t->o->address, &config, &t->cluster) == 0;
}

/* A new model: all weights are 0, and no batch is done.  "run" says of what. */
static evc_status
make_variables(struct trainer *t, const evc_value *run)
{
	const evc_elements weights = { .floats = t->weights, .n = FEATURES };
	const evc_elements done = { .floats = t->done, .n = t->n_batches };
	evc_status st;

	st = evc_vector_set(t->cluster, "weights", &weights);
	if (st == 0)
		st = evc_vector_set(t->cluster, "done", &done);
	if (st == 0)
		st = evc_variable_set(t->cluster, "run", run);
	return st;
}

/* Which batches does the model of the checkpoint know?  A checkpoint of another
   seed, or of another number of batches, is refused. */
static evc_status
read_done(struct trainer *t, const evc_value *run)
{
	const evc_elements done = { .floats = t->done, .n = t->n_batches };
	evc_status st;
	uint64_t i;

	st = evc_variable_compare_set(t->cluster, "run", run, run);
	if (st == -EVC_ABORTED)
		fprintf(stderr, "trainer: %s is of another training\n",
			t->o->checkpoint);
	if (st == 0)
		st = evc_vector_get(t->cluster, "done", &done);
	for (i = 0; st == 0 && i < t->n_batches; i++)
		t->n_old += t->done[i] > 0;
	return st;
}

bool
cluster_begin(struct trainer *t)
{
	const struct options *o = t->o;
	evc_value run;
	evc_status st;

	st = evc_pack(&run, "[UUu]", o->seed, t->n_batches,
		      (unsigned)o->n_batch);
	if (st == 0 && o->checkpoint && access(o->checkpoint, F_OK) == 0)
		st = read_done(t, &run);
	else if (st == 0)
		st = make_variables(t, &run);
	evc_value_free(&run);
	return st == -EVC_ABORTED ? false : is_fine(t, st, "set up");
}

static evc_status
schedule(struct trainer *t, uint64_t from, uint64_t to)
{
	const evc_schedule_opts opts = { .flags = EVC_TRANSACTIONAL };
	const struct options *o = t->o;
	evc_status st = 0;
	uint64_t i;

	for (i = from; i < to && st == 0; i++) {
		if (t->done[i] > 0)
			continue; /* by the checkpoint */
		/* Nobody needs a result of it; the join tells of an error. */
		st = evc_schedule_pack(t->cluster, "train", &opts, NULL,
				       "[UUu]", o->seed, i * o->n_batch,
				       (unsigned)o->n_batch);
		t->n_trained += o->n_batch;
	}
	return st;
}

/* The process of a worker, if it is one of this machine: "pid 12" or, with
   Redis, "HOST pid 12".  0: it is none. */
static pid_t
pid_of(const evc_cluster_worker_info *w)
{
	char host[sizeof(w->where)] = "";
	const char *pid = strstr(w->where, "pid ");

	if (pid == NULL || w->state != EVC_WORKER_UP)
		return 0;
	gethostname(host, sizeof(host) - 1);
	if (pid > w->where && (strncmp(w->where, host, strlen(host)) != 0 ||
			       w->where + strlen(host) + 1 != pid))
		return 0; /* of another machine */
	return (pid_t)strtol(pid + strlen("pid "), NULL, 10);
}

/* kill -9 of some worker that has work, when a batch was done since the last one:
   where a batch takes longer than the time between two, all would die of it. */
static void
kill_a_worker(struct trainer *t)
{
	evc_cluster_worker_info w;
	unsigned i, n = 0;
	pid_t pid, chosen = 0;
	evc_cluster_info now;
	bool may = evc_cluster_get(t->cluster, &now) == 0 &&
		   (t->n_kills == 0 || now.n_done != t->done_at_kill);

	for (i = 0; may && evc_cluster_worker_get(t->cluster, i, &w) == 0; i++) {
		pid = w.n_running > 0 ? pid_of(&w) : 0;
		/* Of n workers each is chosen as often as the others. */
		if (pid > 0 && random() % ++n == 0)
			chosen = pid;
	}
	if (chosen > 0 && kill(chosen, SIGKILL) == 0) {
		t->n_kills++;
		t->done_at_kill = now.n_done;
	}
	t->next_kill = now_seconds() +
		       (chosen ? 0.1 + 0.1 * ((double)random() / RAND_MAX) :
				 0.005);
}

/* Until all that was scheduled is over: a wait with a bound is also what else
   there is to do in between. */
static evc_status
wait_for_all(struct trainer *t)
{
	double timeout = INFINITY;
	evc_status st;

	for (;;) {
		if (t->o->kills)
			timeout = fmax(t->next_kill - now_seconds(), 0);
		st = evc_cluster_join(t->cluster, timeout);
		if (st != -EVC_DEADLINE_EXCEEDED || evc_should_stop(t->c))
			return st;
		kill_a_worker(t);
	}
}

bool
cluster_train(struct trainer *t, uint64_t from, uint64_t to)
{
	const evc_elements all = { .floats = t->weights, .n = FEATURES };
	double began = now_seconds();
	evc_status st;

	st = schedule(t, from, to);
	if (st == 0)
		st = wait_for_all(t);
	t->seconds += now_seconds() - began;
	/* The whole model, as it is at one moment. */
	if (st == 0)
		st = evc_vector_get(t->cluster, "weights", &all);
	return is_fine(t, st, "training");
}

uint64_t
cluster_wrong(const struct trainer *t)
{
	const evc_elements done = { .floats = t->done, .n = t->n_batches };
	uint64_t i, n = 0;

	if (!is_fine(t, evc_vector_get(t->cluster, "done", &done), "the end"))
		return t->n_batches;
	for (i = 0; i < t->n_batches; i++)
		n += t->done[i] != 1;
	return n;
}
