/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for the log hook, and the queue in which they wait for the helper
 * thread, which alone calls the hook.
 */
#ifndef EVC_CORE_LOG_H
#define EVC_CORE_LOG_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__tree;

/* This part of a coordinator. */
struct evc__coord_log {
	/* set at creation */
	void (*fn)(int level, const char *line, const evc_reason *r, void *arg);
	void *arg;
	evc_coord *of; /* the coordinator that the hook was given to: this one,
			  or one above */
	/* lock */
	unsigned n_lost; /* errors without a slot that the hook was told of */
	uint32_t late;   /* number of the last stop with a line for a join that
			    left members alive */
	uint32_t timed_out; /* number of the last stop whose time was found to
			       be over; see wake/ending.c */
	/* atomic, changed under the lock: numbers of the last stop with a line
	   for its begin, of the last stop with a line for its end, and of the
	   last stop with a line for the cut of its grace */
	_Atomic uint32_t begun, over, cut;
};

/* A line, or several that no other line may part. */
struct evc__log_line {
	struct list node;
	evc_coord *c;     /* the hook's */
	uint32_t number;
	int level;
	uint64_t real_ns; /* the time of the event */
	bool has_reason;
	bool spare;       /* part of a struct evc__log_spare */
	evc_reason reason;
	char *text;       /* in the memory after the line */
};

/* A line for a moment without memory, made with the tree; the text is cut. */
#define LOG_SPARES     8
#define LOG_SPARE_TEXT 512
struct evc__log_spare {
	struct evc__log_line line; /* its c is NULL: not in use */
	char text[LOG_SPARE_TEXT];
};

/* In the tree: the lines of all its coordinators, in their order. */
struct evc__log_queue {
	pthread_mutex_t lock;
	/* lock */
	struct list lines;
	struct evc__log_spare spare[LOG_SPARES];
	uint32_t last;            /* the number of the newest line */
	unsigned n_lost;
	const evc_coord *calling; /* a hook of this coordinator runs; or NULL */
	uint32_t calling_number;  /* its line */
	/* atomic, changed under the lock */
	_Atomic uint32_t n;       /* lines that wait */
	_Atomic uint32_t changed; /* moves with each line that is handed out */
	_Atomic uint64_t calling_ns; /* since when a hook runs; 0: none runs */
};

/* A hook that has run for so long hangs: a join does not wait for it. */
#define LOG_HANGS_NS (100 * UINT64_C(1000000))
/* How long a join waits for the helper thread and for hooks that return, which
   are slow on a machine with much to do. */
#define LOG_FLUSH_NS UINT64_C(1000000000)

/* ---- queue.c ---- */

void evc__log_queue_init(struct evc__log_queue *q);
void evc__log_queue_destroy(struct evc__log_queue *q);
/* Any lock of a coordinator may be held: put a line into the queue; a text with
   line ends is several lines that stay together.  real_ns: the time of the
   event; 0: now. */
void evc__log_put(evc_coord *c, int level, uint64_t real_ns,
		  const evc_reason *r, const char *text);
/* The same for a line of evc_log: the last places of the queue, and the lines
   kept for a moment without memory, are for the library's own lines. */
void evc__log_put_programs(evc_coord *c, int level, const evc_reason *r,
			   const char *text);
/* Helper thread, no lock: call the hooks for all lines, unless another thread
   of the helper does so. */
void evc__log_drain(struct evc__tree *tree);
/* No lock: wait until all lines of the tree so far are handed out.  false: the
   time is over.  Inside a hook the call does not wait. */
bool evc__log_flush(evc_coord *c, uint64_t ns);
/* Does a hook of the tree hang? */
bool evc__log_hangs(const struct evc__tree *tree);
/* c is being freed: its lines that still wait are dropped. */
void evc__log_forget(evc_coord *c);
/* Is the calling thread inside a log hook of c's tree? */
bool evc__log_inside(const evc_coord *c);
/* For a log hook: the time of the line's event, nanoseconds of the wall
   clock; outside of a hook: now. */
uint64_t evc__log_event_ns(void);
/* In a fork child: the calling thread is in no hook. */
void evc__log_inherited(void);

/* ---- log.c ---- */

/* No lock: write lines for the news: a stop was requested, errors, the stop is
   over. */
void evc__log_errors(evc_coord *c);
/* The same, and no release is called (evc__later_run). */
void evc__log_news(evc_coord *c);
/* No lock: write lines for the news about c, and wait as evc__log_flush does; a
   hook that hangs ends the wait. */
void evc__log_settle(evc_coord *c, uint64_t ns);
/* Lock held: must the hook still be told of the end of the stop of w?  The call
   marks the end as told. */
bool evc__log_over_due(evc_coord *c, uint64_t w);
/* The stop is over, with verdict v. */
void evc__log_over(evc_coord *c, const evc_verdict *v);
/* Lock held: as evc_log, for a line of the library. */
void evc__log_held(evc_coord *c, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The line for the result of a stop hook, when the stop was cleared while the
   hook ran. */
void evc__log_hook(evc_coord *c, const char *name, evc_status st);
/* No lock: the line for members that are late; ignored: a join with
   EVC_JOIN_IGNORE_LIVE. */
void evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored);
/* The end of the stop is near, and there is more left.  No lock. */
void evc__log_ending(evc_coord *c, const char *left);
/* A member has asked for more time.  No lock. */
void evc__log_extend(evc_coord *c, const char *name, double granted,
		     const char *reason);

#endif
