/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random histories of members and a stop, for the test of the decision under
 * all joins: the dice, what they throw, and how it is shown.
 */
#ifndef TESTS_UNIT_HISTORIES_H
#define TESTS_UNIT_HISTORIES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define STEP (25 * MS) /* the longest step of the back-off */
#define MEMBERS 7

struct member {
	uint64_t begin, end; /* NEVER: it does not */
	double own;          /* 0: no grace of its own; -1: none at all */
	bool background, rings;
};

struct history {
	uint64_t start, stop, grace_cut, cut_grace;
	double grace;
	bool until_stop;
	unsigned n;
	struct member m[MEMBERS];
	uint64_t begin; /* nothing happens before */
	uint64_t give_up;
};

/* Where the dice stand. */
static uint64_t state;

static inline uint64_t
dice(uint64_t n)
{
	/* xorshift64*: the same on every machine. */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717) % n;
}

static inline bool
chance(unsigned percent)
{
	return dice(100) < percent;
}

#define ONE_OF(...) \
	((const double[]){__VA_ARGS__}[dice(sizeof((const double[]){ \
					       __VA_ARGS__}) / \
				       sizeof(double))])

/* Who begins while the end of another is not known yet is waited for or comes
   too late; both are right, so the dice leave that out. */
static inline void
keep_apart(struct history *h)
{
	unsigned i, j;

	for (i = 0; i < h->n; i++)
		for (j = 0; j < h->n; j++)
			if (!h->m[j].rings && h->m[i].begin >= h->m[j].end &&
			    h->m[i].begin - h->m[j].end <= STEP)
				h->m[i].begin = h->begin;
}

static inline struct history
make_history(void)
{
	struct history h = { .begin = 5 * SEC };
	unsigned i;

	h.start = h.begin + 200 * MS + dice(100 * MS);
	h.give_up = h.begin + 20 * SEC;
	h.grace = ONE_OF(0, 1e-10, 1e-3, 0.05, 0.3, 1, INFINITY);
	h.until_stop = chance(20);
	h.stop = h.grace_cut = NEVER;
	if (chance(75))
		h.stop = h.begin + dice(600 * MS); /* before start or later */
	if (h.stop != NEVER && chance(40)) {
		h.grace_cut = h.stop + dice(300 * MS);
		h.cut_grace = dice(3) * 40 * MS;
	}
	h.n = (unsigned)dice(MEMBERS + 1);
	for (i = 0; i < h.n; i++) {
		struct member *m = &h.m[i];

		m->begin = h.begin + (chance(70) ? 0 : dice(700 * MS));
		m->end = chance(20) ? NEVER : m->begin + 1 + dice(700 * MS);
		m->own = chance(60) ? 0 :
				      ONE_OF(-1, 1e-10, 0.02, 0.1, 0.5,
					     INFINITY);
		m->background = chance(30);
		m->rings = chance(60);
	}
	keep_apart(&h);
	return h;
}

/* Milliseconds since the begin of h; -1 for NEVER. */
#define AT(h, t) \
	((t) == NEVER ? -1. : ((double)(t) - (double)(h)->begin) / 1e6)

static inline void
show_history(const struct history *h)
{
	unsigned i;

	printf("  join at %.6f ms, grace %g s%s; stop %.6f; hurry %.6f + "
	       "%.0f ms\n",
	       AT(h, h->start), h->grace, h->until_stop ? ", until stop" : "",
	       AT(h, h->stop), AT(h, h->grace_cut), (double)h->cut_grace / 1e6);
	for (i = 0; i < h->n; i++)
		printf("  member %u: %.6f to %.6f, own grace %g%s%s\n", i,
		       AT(h, h->m[i].begin), AT(h, h->m[i].end), h->m[i].own,
		       h->m[i].background ? ", background" : "",
		       h->m[i].rings ? "" : ", cannot ring");
}

#endif
