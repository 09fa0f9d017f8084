/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control of a worker: how many functions the worker may have at a time,
 * and when functions that wait there are given back.  A function that waits
 * behind a long one could run elsewhere meanwhile, and the long one might even
 * wait for it.  So the window is 1 until functions prove to be quick.
 *
 * PURE: no clock, no lock; the caller keeps other threads out.
 */
#ifndef EVC_ENGINE_FLOW_H
#define EVC_ENGINE_FLOW_H

#include <evcoord/unstable/engine.h>

#define WINDOW_MOST 256

struct flow {
	unsigned window; /* functions that the worker may have, at most */
	double average;  /* seconds of a function; recent ones count most */
};

/* A function has ended after `took` seconds.  The window doubles, up to `ahead`
   seconds of work and `more` functions, and to `limit`; it is 1 for functions
   that are not quick: `quick` seconds on average, or one of 10 times as long.
   But the next one may wait behind a function of less than FLOW_NEXT seconds,
   unless the last one was much longer: a worker that need not sleep between two
   functions takes less of the processor's time. */
#define FLOW_NEXT 0.02
static inline void
flow_ended(struct flow *f, double took, double quick, double ahead,
	   unsigned more, unsigned limit)
{
	double most = limit;

	f->average += (took - f->average) / 8;
	if (f->average >= quick || took >= quick * 10)
		most = 1;
	else if (f->average * limit > ahead)
		most = more + ahead / f->average;
	if (most < 2 + more && f->average < FLOW_NEXT && took < FLOW_NEXT * 2)
		most = 2 + more;
	f->window = f->window * 2 < most ? f->window * 2 : (unsigned)most;
}

/* The next window of a worker that takes batches and begins none before the end
   of the last: twice as many after a full batch, half as many after one that
   was not full, or that took longer than `ahead` seconds. */
static inline unsigned
flow_next_batch(unsigned window, unsigned n, double took, double ahead,
		unsigned most)
{
	if (took > ahead)
		return n > 1 ? n / 2 : 1;
	if (n == window)
		return window < most ? window * 2 : window;
	return window > 1 ? window / 2 : 1;
}

/* Functions have waited for too long: none has ended, and none was taken by an
   idle worker, for `patience` seconds since `moved`.  true also after the clock
   was set back, because the time of waiting is unknown then. */
static inline bool
flow_is_stuck(double moved, double now, double patience)
{
	return now - moved > patience || now < moved;
}

/* The result of function n, which has not begun.  Of several functions the
   youngest is given back first: each goes to the front of the queue. */
static inline evc_engine_result
flow_given_back(uint64_t n)
{
	return (evc_engine_result){ .n = n,
				    .code = EVC_CANCELLED,
				    .kind = EVC_FAILED_FUNCTION,
				    .took = -1 };
}

/* The result of function n, which could not be sent: the last error. */
static inline evc_engine_result
flow_refused(uint64_t n)
{
	return (evc_engine_result){ .n = n,
				    .code = EVC_RESOURCE_EXHAUSTED,
				    .kind = EVC_FAILED_FUNCTION,
				    .text = evc_last_error() };
}

#endif
