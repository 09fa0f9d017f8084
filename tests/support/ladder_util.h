/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the escalation share: a coordinator whose time only the test
 * moves, counted from the stop, and what its log was told.
 */
#ifndef TESTS_SUPPORT_LADDER_UTIL_H
#define TESTS_SUPPORT_LADDER_UTIL_H

#include "rouse_util.h"

/* The log of one coordinator: kept by level, any thread may write. */
struct book {
	pthread_mutex_t lock;
	unsigned lines[8];
	char text[8][4096];
};
static struct book book MAYBE_UNUSED = { .lock = PTHREAD_MUTEX_INITIALIZER };

static MAYBE_UNUSED void
book_line(int level, const char *line, const evc_reason *r, void *arg)
{
	size_t n;

	(void)r;
	(void)arg;
	pthread_mutex_lock(&book.lock);
	level &= 7;
	book.lines[level]++;
	n = strlen(book.text[level]);
	snprintf(book.text[level] + n, sizeof(book.text[level]) - n, "%s\n",
		 line);
	pthread_mutex_unlock(&book.lock);
}

static MAYBE_UNUSED bool
book_has(int level, const char *part)
{
	bool yes;

	pthread_mutex_lock(&book.lock);
	yes = strstr(book.text[level & 7], part) != NULL;
	pthread_mutex_unlock(&book.lock);
	return yes;
}

static uint64_t stop_ns MAYBE_UNUSED;

static MAYBE_UNUSED evc_coord *
laddered(const evc_escalation_opts *o, double grace)
{
	evc_config cfg = { .clock = scripted_clock,
			   .grace = grace,
			   .log = book_line };
	evc_coord *c = new_coord_with(NULL, &cfg);

	OK(evc_escalation_set(c, o));
	return c;
}

static MAYBE_UNUSED void
stop_now(evc_coord *c)
{
	stop_ns = atomic_load(&scripted_ns);
	OK(evc_request_stop(c, 0, "by the test"));
}

/* So many seconds after the stop. */
static MAYBE_UNUSED void
at(double seconds)
{
	atomic_store(&scripted_ns, stop_ns + nanoseconds(seconds));
}

/* UNTIL, while time goes on, but not beyond so many seconds. */
#define UNTIL_BEFORE(seconds, cond) \
	do { \
		double before_until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < before_until_, \
				      "never came true: %s", #cond); \
			t_sleep(0.002); \
			if (atomic_load(&scripted_ns) + 5000000 < \
			    stop_ns + (uint64_t)((seconds)*1e9)) \
				scripted_advance(0.005); \
		} \
	} while (0)

static MAYBE_UNUSED void
count_call(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

/*
 * A join that waits for threads looks often while a clock stands still: let it
 * begin before the stop, when it sleeps.
 */

/* The join waits still, though it was made to look. */
#define STILL_WAITS(j) ck_assert(still_waits(j))

/* It has given up, and named that one. */
static MAYBE_UNUSED void
gave_up(struct joiner *j, const char *name)
{
	RETURNS(j);
	ck_assert_int_eq(join_end(j), EVC_DEADLINE_EXCEEDED);
	HAS(j->v.error.text, name);
}

/* The join gives up so many seconds after the stop, not before, and names the
   hold, which then ends; so does c. */
static MAYBE_UNUSED void
ends_late(evc_coord *c, evc_id id, const char *name, struct joiner *j,
	  double seconds)
{
	at(seconds - 0.01);
	STILL_WAITS(j);
	at(seconds + 0.01);
	gave_up(j, name);
	OK(evc_hold_end(c, id));
	ends_at_last(c);
	OK(evc_free(c));
}

#endif
