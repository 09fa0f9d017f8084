/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics and print-out: sides sampled in turns, medians, goals.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Ours and up to three bare things beside it. */
#define MAX_SIDES 4

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
compare_down(const void *a, const void *b)
{
	return compare_doubles(b, a);
}

/* The q-quantile of sorted figures: the smallest one that at least a share q
   of all does not exceed. */
static double
quantile(const double *sorted, unsigned n, double q)
{
	double at = q * n;
	unsigned i = (unsigned)at;

	if ((double)i < at)
		i++;
	if (i > 0)
		i--;
	return sorted[i < n ? i : n - 1];
}

static double
median_of(double *figures, unsigned n)
{
	qsort(figures, n, sizeof(*figures), compare_doubles);
	if (n % 2)
		return figures[n / 2];
	return (figures[n / 2 - 1] + figures[n / 2]) / 2;
}

static void *
allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		bench_must_sys(ENOMEM, "calloc");
	return p;
}

static void
print_goal(bool met, double goal)
{
	printf(" goal %g %s\n", goal, met ? "met" : "missed");
	fflush(stdout);
}

static void
print_least(double value, double goal)
{
	printf(" goal >=%g %s\n", goal, value >= goal ? "met" : "missed");
	fflush(stdout);
}

/* What is known of a side when all is sampled. */
struct sampled {
	const char *subject;
	double goal;
	double *figures; /* round by round; sorted at the end */
};

static double
p99_of(double *figures, unsigned n)
{
	qsort(figures, n, sizeof(*figures), compare_doubles);
	return quantile(figures, n, 0.99);
}

/* Print all sides and their ratios to the first. */
static void
print_sampled(const char *metric, const char *unit, struct sampled *sides,
	      unsigned n_sides, unsigned rounds, unsigned per_round,
	      enum bench_kind kind, struct bench_stats *ret)
{
	double (*figure)(double *figures, unsigned n) =
		kind == BENCH_TAIL ? p99_of : median_of;
	unsigned total = rounds * per_round, s, r;
	double *of_rounds[MAX_SIDES], *scratch;
	struct bench_stats st;

	scratch = allocate(rounds > per_round ? rounds : per_round,
			   sizeof(*scratch));
	for (s = 0; s < n_sides; s++) {
		double *all = sides[s].figures;

		of_rounds[s] = allocate(rounds, sizeof(**of_rounds));
		for (r = 0; r < rounds; r++) {
			memcpy(scratch, all + r * per_round,
			       per_round * sizeof(*all));
			of_rounds[s][r] = figure(scratch, per_round);
		}
		qsort(all, total, sizeof(*all), kind == BENCH_RATE ?
		      compare_down : compare_doubles);
		st.n = total;
		st.p50 = quantile(all, total, 0.50);
		st.p99 = quantile(all, total, 0.99);
		st.max = all[total - 1];
		printf("%s %s %u %.4g %.4g %.4g %s\n", metric,
		       sides[s].subject, st.n, st.p50, st.p99, st.max, unit);
		if (s == 0 && ret)
			*ret = st;
	}
	for (s = 1; s < n_sides; s++) {
		const char *name = strchr(sides[s].subject, '/');
		double ratio;

		for (r = 0; r < rounds; r++)
			scratch[r] = of_rounds[0][r] / of_rounds[s][r];
		ratio = median_of(scratch, rounds);
		printf("ratio %s %s/%s %.3f", metric, sides[0].subject,
		       name ? name + 1 : sides[s].subject, ratio);
		if (sides[s].goal <= 0)
			printf(" no goal\n");
		else if (kind == BENCH_RATE)
			print_least(ratio, sides[s].goal);
		else
			print_goal(ratio <= sides[s].goal, sides[s].goal);
	}
	fflush(stdout);
	for (s = 0; s < n_sides; s++)
		free(of_rounds[s]);
	free(scratch);
}

static void
check_comparison(const char *metric, unsigned n_sides, unsigned total)
{
	if (n_sides > 0 && n_sides <= MAX_SIDES && total > 0)
		return;
	fprintf(stderr, "bench: %s: a wrong comparison\n", metric);
	exit(2);
}

static void
compare(const char *metric, const char *unit, const struct bench_side *sides,
	unsigned n_sides, unsigned rounds, unsigned per_round,
	enum bench_kind kind, struct bench_stats *ret)
{
	unsigned total = rounds * per_round, s, r, i, k;
	struct sampled got[MAX_SIDES];

	check_comparison(metric, n_sides, total);
	for (s = 0; s < n_sides; s++) {
		got[s].subject = sides[s].subject;
		got[s].goal = sides[s].goal;
		got[s].figures = allocate(total, sizeof(*got[s].figures));
		/* The first one pays for pages and caches; it is not kept. */
		(void)sides[s].sample(sides[s].arg);
	}
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < n_sides; i++) {
			s = (r + i) % n_sides;
			for (k = 0; k < per_round; k++)
				got[s].figures[r * per_round + k] =
					sides[s].sample(sides[s].arg);
		}
	}
	print_sampled(metric, unit, got, n_sides, rounds, per_round, kind,
		      ret);
	for (s = 0; s < n_sides; s++)
		free(got[s].figures);
}

void
bench_compare(const char *metric, const char *unit,
	      const struct bench_side *sides, unsigned n_sides,
	      unsigned rounds, unsigned per_round, struct bench_stats *ret)
{
	compare(metric, unit, sides, n_sides, rounds, per_round, BENCH_COST,
		ret);
}

void
bench_compare_rates(const char *metric, const char *unit,
		    const struct bench_side *sides, unsigned n_sides,
		    unsigned rounds)
{
	compare(metric, unit, sides, n_sides, rounds, 1, BENCH_RATE, NULL);
}

void
bench_compare_taken(const char *metric, const char *unit,
		    const struct bench_taken *sides, unsigned n_sides,
		    unsigned rounds, unsigned per_round, enum bench_kind kind)
{
	unsigned total = rounds * per_round, s;
	struct sampled got[MAX_SIDES];

	check_comparison(metric, n_sides, total);
	for (s = 0; s < n_sides; s++) {
		got[s].subject = sides[s].subject;
		got[s].goal = sides[s].goal;
		got[s].figures = allocate(total, sizeof(*got[s].figures));
		memcpy(got[s].figures, sides[s].figures,
		       total * sizeof(*got[s].figures));
	}
	print_sampled(metric, unit, got, n_sides, rounds, per_round, kind,
		      NULL);
	for (s = 0; s < n_sides; s++)
		free(got[s].figures);
}

void
bench_count(const char *metric, const char *subject, double value,
	    const char *unit)
{
	printf("%s %s 1 %.4g %.4g %.4g %s\n", metric, subject, value, value,
	       value, unit);
	fflush(stdout);
}

void
bench_goal(const char *metric, const char *figure, double value,
	   const char *unit, double goal)
{
	printf("value %s %s %.4g %s", metric, figure, value, unit);
	print_goal(value <= goal, goal);
}

void
bench_goal_below(const char *metric, const char *figure, double value,
		 const char *unit, double goal)
{
	printf("value %s %s %.4g %s below", metric, figure, value, unit);
	print_goal(value < goal, goal);
}

void
bench_skip(const char *metric, const char *why)
{
	printf("SKIP %s: %s\n", metric, why);
	fflush(stdout);
}

void
bench_must(evc_status status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "bench: %s: %s: %s\n", what, evc_status_name(status),
		evc_last_error());
	exit(2);
}

void
bench_must_sys(int err, const char *what)
{
	if (err == 0)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, strerror(err));
	exit(2);
}
