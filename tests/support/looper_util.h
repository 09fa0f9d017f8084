/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of loopers share: a looper that notes each of its calls, and
 * the three places where one can live - on the loop of the test's own thread,
 * on a thread of its own, on the loop of another thread.  A test that runs at
 * each place says that all three do the same.
 *
 * Most tests move the clock themselves, in intervals from where the looper
 * began, so that boundaries, delays and counts are exact on any machine.  The
 * looper still sleeps in real time, never long, and looks at that clock then.
 */
#ifndef TESTS_SUPPORT_LOOPER_UTIL_H
#define TESTS_SUPPORT_LOOPER_UTIL_H

#include "far_util.h"

/* A whole number of nanoseconds and of binary digits: sums are exact. */
#define INTERVAL    (1.0 / 128)
#define INTERVAL_NS 7812500u

/* Several intervals: long enough for what must not happen to have happened. */
#define A_WHILE (5 * INTERVAL)

enum place { AT_HOME, ON_THREAD, FAR_AWAY, N_PLACES };

struct rig {
	int place;
	evc_coord *c;
	struct ev_loop *home; /* AT_HOME: turned by the test itself */
	struct far far; /* FAR_AWAY */
	int threads, fds;
};

enum { N_SEEN = 128 };

/* What a run saw when it began. */
struct seen {
	uint64_t missed;
	double late;
	double real;  /* on the real clock */
	bool stopped; /* the stop was requested */
};

struct looper {
	/* the test says; body: what the nth run does, NULL: nothing */
	evc_status (*body)(evc_coord *c, struct looper *l, int n);
	evc_status (*at_start)(evc_coord *c, struct looper *l);
	evc_status (*at_stop)(evc_coord *c, struct looper *l);
	int last;          /* end at this run ... */
	evc_status result; /* ... with this result */
	evc_status start_result, stop_result;
	struct rig *rig;
	void *more;
	/* what was seen */
	evc_id id;
	atomic_int runs, starts, stops, tid;
	atomic_int wrong; /* calls that must not be as they were */
	struct seen seen[N_SEEN];
	int n_calls;
	char calls[N_SEEN]; /* "(": start, "r": run, ")": stop */
};

/* What is true of each call, whatever it is. */
static inline void
looper_call(struct looper *l, evc_coord *c, char what)
{
	int before = 0;

	if (c != l->rig->c || l->id == 0 || atomic_load(&l->stops) > 0)
		atomic_fetch_add(&l->wrong, 1);
	/* All on one thread. */
	if (!atomic_compare_exchange_strong(&l->tid, &before, own_tid()) &&
	    before != own_tid())
		atomic_fetch_add(&l->wrong, 1);
	if (l->n_calls < N_SEEN - 1)
		l->calls[l->n_calls++] = what;
}

static MAYBE_UNUSED evc_status
looper_start(evc_coord *c, void *arg)
{
	struct looper *l = arg;

	looper_call(l, c, '(');
	if (atomic_fetch_add(&l->starts, 1) > 0 || atomic_load(&l->runs) > 0)
		atomic_fetch_add(&l->wrong, 1);
	return l->at_start != NULL ? l->at_start(c, l) : l->start_result;
}

/* A body may free l: nothing is touched after it. */
static MAYBE_UNUSED evc_status
looper_run(evc_coord *c, void *arg)
{
	struct looper *l = arg;
	int n = atomic_load(&l->runs) + 1;
	struct seen s = { .real = t_now(), .stopped = evc_should_stop(c) };
	evc_id id = 0;

	looper_call(l, c, 'r');
	if (atomic_load(&l->starts) != 1 ||
	    evc_looper_tick(c, &id, &s.missed, &s.late) != 0 || id != l->id ||
	    s.late < 0)
		atomic_fetch_add(&l->wrong, 1);
	if (n <= N_SEEN)
		l->seen[n - 1] = s;
	atomic_store(&l->runs, n);
	if (n == l->last)
		return l->result;
	return l->body != NULL ? l->body(c, l, n) : 0;
}

static MAYBE_UNUSED evc_status
looper_stop(evc_coord *c, void *arg)
{
	struct looper *l = arg;

	looper_call(l, c, ')');
	if (atomic_load(&l->starts) != 1)
		atomic_fetch_add(&l->wrong, 1);
	atomic_fetch_add(&l->stops, 1);
	return l->at_stop != NULL ? l->at_stop(c, l) : l->stop_result;
}

/* ---- the three places ---- */

static MAYBE_UNUSED void
rig_begin(struct rig *r, int place, const evc_config *cfg)
{
	memset(r, 0, sizeof(*r));
	r->threads = t_count_threads();
	r->fds = t_count_fds();
	r->place = place;
	if (place == AT_HOME)
		r->home = ev_loop_new(EVFLAG_AUTO);
	r->far.c = r->c = new_coord_with(r->home, cfg);
	if (place == FAR_AWAY)
		far_begin(&r->far);
}

static const evc_config scripted_config MAYBE_UNUSED = {
	.clock = scripted_clock
};

/* With a clock that only clock_to moves. */
static MAYBE_UNUSED void
rig_scripted(struct rig *r, int place)
{
	rig_begin(r, place, &scripted_config);
}

/* One turn of the loop, where that is the test's to run. */
static MAYBE_UNUSED void
rig_turn(struct rig *r)
{
	if (r->home != NULL)
		ev_run(r->home, EVRUN_NOWAIT);
}

/* UNTIL that lets the loop turn. */
#define RIG_UNTIL(r, cond) \
	do { \
		double rig_until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < rig_until_, \
				      "never came true: %s", #cond); \
			rig_turn(r); \
			t_sleep(0.0005); \
		} \
	} while (0)

/* For a moment everything could happen that should not. */
static MAYBE_UNUSED void
rig_moment(struct rig *r)
{
	double end = t_now() + A_WHILE;

	while (t_now() < end) {
		rig_turn(r);
		t_sleep(0.001);
	}
}

/* It has run n times, and not once more. */
#define RUNS_STAY(r, l, n) \
	do { \
		rig_moment(r); \
		ck_assert_int_eq(atomic_load(&(l)->runs), (n)); \
	} while (0)

#define UNTIL_RUNS(r, l, n) RIG_UNTIL((r), atomic_load(&(l)->runs) >= (n))

/* Ask for the stop, unless that was done, and join. */
static MAYBE_UNUSED evc_status
rig_stop(struct rig *r, evc_verdict *v)
{
	evc_verdict unread;
	evc_status st;

	if (v == NULL)
		v = &unread;
	if (!evc_should_stop(r->c))
		OK(evc_request_stop(r->c, 0, NULL));
	st = evc_join(r->c, NULL, v);
	ck_assert_int_eq(st, v->code);
	ck_assert_uint_eq(v->n_stragglers, 0);
	return st;
}

/* Stop what runs, give all back, and find as much as there was. */
static MAYBE_UNUSED void
rig_end(struct rig *r)
{
	ck_assert_int_ge(rig_stop(r, NULL), 0);
	if (r->place == FAR_AWAY)
		far_end(&r->far);
	ck_assert_msg(evc_free(r->c) == 0, "evc_free: %s", evc_last_error());
	if (r->home != NULL)
		ev_loop_destroy(r->home);
	ck_assert_int_eq(t_settle_threads(r->threads), r->threads);
	ck_assert_int_eq(t_settle_fds(r->fds), r->fds);
}

/* ---- loopers there ---- */

/* The clock when the last looper began. */
static uint64_t grid_ns MAYBE_UNUSED;

/* Options for that place; the hooks note their calls. */
static MAYBE_UNUSED evc_member_opts
rig_opts(struct rig *r, const evc_member_opts *o)
{
	evc_member_opts opts;

	memset(&opts, 0, sizeof(opts));
	if (o != NULL)
		opts = *o;
	if (r->place == ON_THREAD)
		opts.flags |= EVC_OWN_THREAD;
	if (r->place == FAR_AWAY)
		opts.reactor = atomic_load(&r->far.r);
	opts.start = looper_start;
	opts.stop = looper_stop;
	return opts;
}

static MAYBE_UNUSED evc_status
looper_try(struct rig *r, struct looper *l, double interval,
	   const evc_member_opts *o)
{
	evc_member_opts opts = rig_opts(r, o);

	l->rig = r;
	return evc_looper_start(r->c, "ticker", interval, looper_run, l, &opts,
				&l->id);
}

static MAYBE_UNUSED void
looper_begin(struct rig *r, struct looper *l, double interval,
	     const evc_member_opts *o)
{
	evc_status st;

	grid_ns = atomic_load(&scripted_ns);
	st = looper_try(r, l, interval, o);
	ck_assert_msg(st == 0, "evc_looper_start: %d, %s", st,
		      evc_last_error());
	ck_assert_uint_ne(l->id, 0);
}

/* The calls that came, when no more can come. */
static MAYBE_UNUSED void
looper_was(struct looper *l, const char *calls)
{
	l->calls[l->n_calls] = '\0';
	ck_assert_str_eq(l->calls, calls);
	ck_assert_int_eq(atomic_load(&l->wrong), 0);
}

/* Does a thread come to sleep, and go on sleeping for so long? */
static MAYBE_UNUSED bool
stays_asleep(int tid, double seconds)
{
	double until = t_now() + T_LIMIT;

	while (t_now() < until)
		if (sleeps_on(tid, seconds))
			return task_sleeps(tid) >= 0;
	return false;
}

/* ---- the clock ---- */

/*
 * Move the clock to that many intervals after the last looper began, and a
 * microsecond, so that no rounding puts it before a boundary.
 */
static MAYBE_UNUSED void
clock_to(double intervals)
{
	atomic_store(&scripted_ns,
		     grid_ns + (uint64_t)(intervals * INTERVAL_NS) + 1000);
}

/* What the nth run saw: so many missed, so many intervals late. */
static MAYBE_UNUSED void
run_saw(const struct looper *l, int n, uint64_t missed, double late)
{
	const struct seen *s = &l->seen[n - 1];

	ck_assert_msg(s->missed == missed, "run %d: %llu missed, not %llu", n,
		      (unsigned long long)s->missed,
		      (unsigned long long)missed);
	ck_assert_msg(fabs(s->late - late * INTERVAL) < 1e-5,
		      "run %d: %g intervals late, not %g", n,
		      s->late / INTERVAL, late);
}

/* ---- a suite of tests that run at some places ---- */

#define EACH_PLACE(name) \
	{ \
		name, AT_HOME, N_PLACES \
	}
#define AT_PLACE(name, place) \
	{ \
		name, (place), (place) + 1 \
	}
/* Where the loop, or the thread, is another one's. */
#define ELSEWHERE(name) \
	{ \
		name, ON_THREAD, N_PLACES \
	}

#define PLACES_MAIN(name, ...) T_MAIN(name, NULL, NULL, __VA_ARGS__)

#endif
