/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of functions.  Results of quick functions are sent together.  A result
 * must not wait behind a long function, or behind a function that ends the
 * worker, because then the worker's death would be blamed on the first
 * function.  So all results are sent before a function that was not quick, or
 * is new.
 * Called by: serve.c and cluster/open/main.c.
 * Locks: none; the thread of the functions.
 */
#include "cluster/worker/process.h"

#define QUICK 0.0001 /* seconds */

struct speed {
	const char *name;
	double average; /* seconds; < 0: the function never came to its end */
};

static int
compare_names(const void *a, const void *b)
{
	const struct speed *s = a, *t = b;

	return strcmp(s->name, t->name);
}

bool
evc__speeds_init(struct worker_process *p)
{
	unsigned i;

	p->speeds = sync_alloc(p->n_functions + 1, sizeof *p->speeds);
	if (p->speeds == NULL)
		return false;
	for (i = 0; i < p->n_functions; i++) {
		p->speeds[i].name = p->functions[i].name;
		p->speeds[i].average = -1;
	}
	if (p->n_functions > 1)
		qsort(p->speeds, p->n_functions, sizeof *p->speeds,
		      compare_names);
	return true;
}

void
evc__speeds_free(struct worker_process *p)
{
	sync_free(p->speeds);
	p->speeds = NULL;
}

struct speed *
evc__speed_of(struct worker_process *p, const char *function)
{
	const struct speed key = { .name = function };

	return p->n_functions > 0 ?
		       bsearch(&key, p->speeds, p->n_functions,
			       sizeof *p->speeds, compare_names) :
		       NULL;
}

bool
evc__speed_is_quick(const struct speed *s)
{
	return s != NULL && s->average >= 0 && s->average < QUICK;
}

void
evc__speed_add(struct speed *s, double took)
{
	if (s == NULL || took < 0)
		return;
	if (s->average < 0)
		s->average = took;
	s->average += (took - s->average) / 8;
}
