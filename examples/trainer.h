/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trainer.h - what the parts of trainer know of each other.
 *
 *   trainer.c          the program: options, rounds, the end
 *   trainer_data.c     samples, and the mathematics: loss and steps
 *   trainer_cluster.c  the training on a cluster: workers and coordinator
 *   trainer_plot.c     the losses by time, as text and as SVG
 */
#ifndef EXAMPLES_TRAINER_H
#define EXAMPLES_TRAINER_H

#include <evcoord.h>
#include <evcoord/cluster.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEATURES 1000000   /* the model has one weight for each */
#define SAMPLE_MOST 40     /* features of one sample */
#define BATCH_MOST 10000   /* samples of one batch */
#define HELD_OUT 20000     /* samples that nobody is trained with */
#define ROUNDS 20          /* between two rounds the loss is measured */

struct options {
	const char *address;
	const char *checkpoint, *plot; /* files; NULL: none */
	uint64_t seed, n_samples;
	uint32_t n_batch;              /* samples of a batch */
	bool is_quick, kills, is_worker;
	unsigned n_workers;            /* --worker: how many; 0: one for each
					  processor */
};

/* ---- samples: trainer_data.c ---- */

/* Some samples, all of their features one behind the other. */
struct batch {
	uint32_t n_samples;
	size_t n;        /* features of all samples */
	uint32_t *at;    /* which ones */
	float *weights;  /* the weight of each: the caller reads them */
	float *steps;    /* what each weight has to be changed by */
	size_t *ends;    /* of each sample: where it ends in at */
	bool *labels;    /* of each sample: what the model has to foretell */
};

/* Room for n_samples; false: no memory. */
bool batch_init(struct batch *b, uint32_t n_samples);
void batch_free(struct batch *b);
/* The samples first, first + 1, ... of a seed: the same ones everywhere. */
void batch_make(struct batch *b, uint64_t seed, uint64_t first);
/* ... and those that are held out. */
void batch_make_held_out(struct batch *b, uint64_t seed);
/* Take the weights of the batch's features from a whole model. */
void batch_read(struct batch *b, const float *model);
/* The loss of one sample, on average, by b->weights. */
double batch_loss(const struct batch *b);
/* Fill b->steps, by b->weights: one step down the loss. */
void batch_steps(struct batch *b);

/* ---- the cluster: trainer_cluster.c ---- */

struct trainer {
	const struct options *o;
	evc_coord *c;
	evc_cluster *cluster;
	uint64_t n_batches;
	float *done;        /* of each batch: how often it counts */
	uint64_t n_old;     /* of them: done by the checkpoint */
	float *weights;     /* the cluster's model, between two rounds */
	uint64_t n_trained; /* samples, by this run of the program */
	double seconds;     /* that it took */
	double next_kill;   /* a moment, as of now_seconds */
	unsigned n_kills;
	uint64_t done_at_kill; /* functions, as of the last one */
};

/* This process is a worker, or, with options, brings workers to an address.
   Returns an exit status. */
int cluster_worker(const struct options *o);
bool cluster_open(struct trainer *t);
/* Make the variables, or go on from the checkpoint. */
bool cluster_begin(struct trainer *t);
/* Train with the batches from..to, and read the model. */
bool cluster_train(struct trainer *t, uint64_t from, uint64_t to);
/* How many batches do not count exactly once? */
uint64_t cluster_wrong(const struct trainer *t);
/* Some clock's seconds. */
double now_seconds(void);

/* ---- the losses by time: trainer_plot.c ---- */

/* After a round: of the cluster, and of one thread. */
struct point {
	uint64_t n_samples;
	double seconds[2], loss[2];
};

struct curves {
	struct point points[ROUNDS];
	size_t n;
};

void plot_text(const struct curves *curves);
/* false: errno says why. */
bool plot_svg(const char *path, const struct curves *curves);

#endif
