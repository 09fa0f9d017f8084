/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trainer_data.c - samples that are made by their numbers, and logistic
 * regression.
 *
 * A sample is a set of 20 to 40 features out of a million, as a text is a set of
 * words, and a label, yes or no.  A few features are frequent and most are rare.
 * Behind the labels stands a hidden model, in which one feature of five has a
 * weight; noise turns some labels round.  All of it follows from the seed and
 * the sample's number, so whoever has these two has the sample.
 */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE_LEAST 20
/* The first 30 features are about as frequent as each other; from there on the
   frequency of a feature falls as 1 / its number. */
#define FLAT 30.
/* Of labels: turned round. */
#define NOISE 0.05
/* The length of the step for one sample, and for a whole batch at most.  It is
   short enough for gradients of weights that are a few batches old, which is
   what workers beside each other compute. */
#define RATE 0.01
#define RATE_MOST 1.
/* No sample for the training has such a number. */
#define HELD_OUT_FIRST ((uint64_t)1 << 48)

/* ---- random numbers: splitmix64 ---- */

static uint64_t
mixed(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t
next_number(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return mixed(*state);
}

/* 0 <= fraction < 1 */
static double
fraction(uint64_t number)
{
	return (double)(number >> 11) * 0x1p-53;
}

/* ---- samples ---- */

static uint32_t
random_feature(uint64_t *state)
{
	double u = fraction(next_number(state));
	double f = FLAT * expm1(u * log1p(FEATURES / FLAT));

	return f < FEATURES - 1 ? (uint32_t)f : FEATURES - 1;
}

/* The weight that the hidden model has for a feature: -2 ... 2, or none. */
static double
hidden_weight(uint64_t seed, uint32_t feature)
{
	uint64_t h = mixed(mixed(seed) + feature);

	return h % 5 == 0 ? 4 * fraction(mixed(h)) - 2 : 0;
}

/* The probability of the label yes. */
static double
probability(double sum)
{
	return 1 / (1 + exp(-sum));
}

/* Append one sample. */
static void
make_sample(struct batch *b, uint32_t i, uint64_t seed, uint64_t number)
{
	uint64_t state = mixed(seed ^ mixed(number));
	uint64_t n = SAMPLE_LEAST +
		     next_number(&state) % (SAMPLE_MOST - SAMPLE_LEAST + 1);
	double sum = 0;

	for (; n > 0; n--) {
		uint32_t f = random_feature(&state);

		b->at[b->n++] = f;
		sum += hidden_weight(seed, f);
	}
	b->ends[i] = b->n;
	b->labels[i] = fraction(next_number(&state)) < probability(sum);
	if (fraction(next_number(&state)) < NOISE)
		b->labels[i] = !b->labels[i];
}

bool
batch_init(struct batch *b, uint32_t n_samples)
{
	size_t most = (size_t)n_samples * SAMPLE_MOST;

	*b = (struct batch){
		.n_samples = n_samples,
		.at = calloc(most, sizeof(*b->at)),
		.weights = calloc(most, sizeof(*b->weights)),
		.steps = calloc(most, sizeof(*b->steps)),
		.ends = calloc(n_samples, sizeof(*b->ends)),
		.labels = calloc(n_samples, sizeof(*b->labels)),
	};
	if (b->at && b->weights && b->steps && b->ends && b->labels)
		return true;
	batch_free(b);
	return false;
}

void
batch_free(struct batch *b)
{
	free(b->at);
	free(b->weights);
	free(b->steps);
	free(b->ends);
	free(b->labels);
	*b = (struct batch){ 0 };
}

void
batch_make(struct batch *b, uint64_t seed, uint64_t first)
{
	uint32_t i;

	b->n = 0;
	for (i = 0; i < b->n_samples; i++)
		make_sample(b, i, seed, first + i);
}

void
batch_make_held_out(struct batch *b, uint64_t seed)
{
	batch_make(b, seed, HELD_OUT_FIRST);
}

void
batch_read(struct batch *b, const float *model)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		b->weights[i] = model[b->at[i]];
}

/* ---- logistic regression ---- */

/* What the model says of a sample: the sum of the weights of its features.  *at
   is its first feature, and then that of the next sample. */
static double
sum_of_weights(const struct batch *b, uint32_t sample, size_t *at)
{
	double sum = 0;

	for (; *at < b->ends[sample]; ++*at)
		sum += b->weights[*at];
	return sum;
}

double
batch_loss(const struct batch *b)
{
	double loss = 0, sum;
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < b->n_samples; i++) {
		sum = sum_of_weights(b, i, &at);
		if (b->labels[i])
			sum = -sum;
		/* log(1 + exp(sum)), which does not overflow */
		loss += (sum > 0 ? sum : 0) + log1p(exp(-fabs(sum)));
	}
	return loss / b->n_samples;
}

void
batch_steps(struct batch *b)
{
	const double rate = fmin(RATE, RATE_MOST / b->n_samples);
	size_t at = 0, i = 0;
	uint32_t sample;
	double error;

	for (sample = 0; sample < b->n_samples; sample++) {
		error = probability(sum_of_weights(b, sample, &at)) -
			b->labels[sample];
		/* The gradient is the same for each feature that the sample
		   has, and 0 for all others. */
		for (; i < at; i++)
			b->steps[i] = (float)(-rate * error);
	}
}
