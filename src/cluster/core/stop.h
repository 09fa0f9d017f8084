/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of functions, and of the engine.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_STOP_H
#define EVC_CLUSTER_STOP_H

/* All fields: lock. */
struct cluster_stop {
	bool begun;           /* the scope's stop was seen */
	uint64_t begun_ns;    /* the time of that */
	bool lost;            /* the stop has cancelled functions, and no join
				 has said so yet */
	uint64_t asked_ns;    /* time of the last request to running functions
				 to stop */
	uint64_t asked_upto;  /* the last attempt that this request was made
				 to */
	bool any_asked;       /* a function that runs was asked to stop, alone or
				 with others, at the last look or since */
};

/* ---- stop.c: lock held ---- */

/* A change may be what the loop waits for: joins, callbacks. */
void evc__tell(evc_cluster *cl);
/* Running functions are asked to stop, up to the latest attempt: the engine
   hears of that, and the loop looks when the grace is over. */
void evc__stop_running(evc_cluster *cl);
/* An error of a function that does not run: running functions are asked to
   stop, queued ones are cancelled. */
void evc__end_all(evc_cluster *cl);
/* No worker for too long, or no engine: the error, raised while that lasts. */
void evc__note_unavailable(evc_cluster *cl);
/* The stop of the scope: all functions are cancelled, and the engine is to
   leave when nothing runs. */
void evc__stop_all(evc_cluster *cl);
/* The engine is told to leave, once, if nothing runs and nothing will. */
void evc__leave_if_idle(evc_cluster *cl);

#endif
