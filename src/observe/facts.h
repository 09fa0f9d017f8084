/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The facts of a report as plain memory: collected once, then written as text,
 * as JSON or as counters.
 *
 * A coordinator's part is copied under its lock; meanwhile its refgate keeps
 * the coordinator.  Slow looks - /proc, stacks - come afterwards, with nothing
 * held, by thread id alone; and then what other functions say.  A thread that has ended since costs a line that
 * says little.  A new thread with the same id costs a wrong line, and nothing
 * worse.
 */
#ifndef EVC_OBSERVE_FACTS_H
#define EVC_OBSERVE_FACTS_H

#include <evcoord.h>

#include "base/proc.h"
#include "base/stack.h"
#include "core/core.h"

/* A format of a report, without its flag. */
#define REPORT_FORM(format) ((format) & ~(unsigned)EVC_REPORT_STACKS)

#define FACTS_FRAMES 32

/* The kernel's view of a thread, and its stack. */
struct evc__facts_thread {
	int tid;
	/* the next of all threads of a report */
	struct evc__facts_thread *next;
	/* The owner of the thread; loops and their hooks may have the same
	   thread. */
	const void *owner;    /* the member, or the loop */
	const struct evc__facts *in;
	evc_id id;            /* id of the member, or 0 */
	bool known;           /* /proc could be read */
	bool deaf; /* the thread blocks the signal that asks for stacks */
	bool left; /* no stack: too many threads came before this thread */
	bool told; /* a part of the report has these lines */
	struct evc__proc proc;
	/* why there is no stack; NULL: there is a stack, or none was asked
	   for */
	const char *no_stack;
	unsigned n_frames;
	void *frame[FACTS_FRAMES]; /* the innermost first */
};

/* A member; or tasks of a class, or a scope, as in evc_member_each. */
struct evc__seen {
	evc_member_info info;
	bool called;            /* a hook that was called for the present
				   stop */
	int tid;                /* thread id of the member, or 0 */
	const char *progress; /* NULL: no progress so far */
	uint64_t progress_ns; /* time of the progress, coarse clock */
	double progress_age;  /* seconds */
	unsigned unblocks, kicks; /* calls in the present stop */
	/* in the member's facts, or NULL */
	const struct evc__extension *extension;
	/* NULL: the thread was not looked at */
	struct evc__facts_thread *thread;
};

/* The names of loops, parts and scopes, which need different labels: nth is how
   many of the same kind and name there are before. */
struct evc__twin {
	const char *kind, *name;
	unsigned nth;
};

/* A part of a report that a function outside observe has written. */
struct evc__facts_part {
	struct evc__facts_part *next;
	struct evc__describer *of; /* until its function was called */
	char kind[16], name[48]; /* of a scope's own part: "" */
	struct evc__twin twin;
	/* in the form of the report; in text and metrics each line ends with a
	   0 byte.  NULL: nothing */
	char *text;
	size_t n;                /* bytes of `text` */
};

/* LOOP_BUSY: the loop has heard of the stop, and is in a callback of ours.
   LOOP_HELD: there is no stop of which the loop has not heard, but the loop has
   not turned for HELD_S and does not wait for events. */
enum { LOOP_TURNS, LOOP_BUSY, LOOP_SILENT, LOOP_DESTROYED, LOOP_HELD };
#define HELD_S 0.1

struct evc__facts_loop {
	char name[48];
	int tid;
	unsigned state;
	struct evc__silence silence; /* valid if the loop was not destroyed */
	unsigned n_tasks, n_loopers, n_runners;
	bool owner;         /* false: the loop is listed elsewhere, too */
	bool awaited;       /* a member or a join needs its turns */
	uint64_t n_turns;
	double longest;     /* seconds of the longest turn */
	unsigned n_posts;   /* posts that have not returned */
	struct evc__twin twin;
	/* progress of the running callback of ours, or NULL */
	const char *progress;
	uint64_t progress_ns;
	double progress_age;
	/* NULL: the thread was not looked at */
	struct evc__facts_thread *thread;
};

struct evc__facts {
	/* the tree of facts */
	const struct evc__facts *up;
	struct evc__facts *next, *below;
	const evc_coord *above; /* in the first facts only: the parent of c */
	struct evc__twin twin; /* among the scopes of the same parent */

	uint32_t number;       /* of c, in the tree */
	char name[48];
	bool scope, phased, held;
	int phase;
	uint64_t word;
	unsigned n_ended, n_unjoined, n_errors; /* n_ended: n_unjoined, too */
	double stop_age;        /* < 0: no stop */

	/* `first`: a copy that needs no memory; `reasons`: all kept reasons */
	evc_reason first, *reasons;
	unsigned n_reasons;
	double step[N_STEPS];   /* seconds since the stop; < 0: not reached */
	unsigned n_kicks, n_unblocks;
	const char *kicks_lost; /* why kicks wake nobody, or NULL */
	int kick_error; /* of the last kick that was not sent; 0: none */
	struct evc__extension *extensions;
	unsigned n_extensions;
	struct evc__seen *members;
	unsigned n_members;
	struct evc__seen ended; /* a call of `ended`; its tid is 0: none */
	struct evc__facts_loop *loops;
	unsigned n_loops;
	struct evc__stats stats;
	unsigned n_scopes;
	uint64_t now;           /* by c's clock */
	struct evc__facts_part *parts; /* the scope's own part comes first */

	/* numbers and parts that lack of memory has cost */
	unsigned lost_reasons, lost_extensions, lost_loops, lost_scopes;
	bool lost_members, lost_threads, lost_described;

	/* in the first facts only */
	struct evc__facts_thread *threads;
	uint64_t real_ns;
	bool no_signal;         /* stacks were wanted, but no signal is free */
	unsigned stacks_left;   /* stacks not taken: too many threads */
};

/* The lines of all parts, for text and metrics. */
#define FACTS_EACH_LINE(line, p, f) \
	for ((p) = (f)->parts; (p) != NULL; (p) = (p)->next) \
		for ((line) = (p)->text; \
		     (line) != NULL && (line) < (p)->text + (p)->n; \
		     (line) += strlen(line) + 1)

/* ---- members.c ---- */

struct evc__snapshot {
	const evc_coord *c;
	uint64_t now;
	struct evc__seen *seen;
	unsigned n, room;
};

/* Lock held: all members, tasks and scopes of c.  false: no memory; else the
   caller frees s->seen. */
bool evc__snapshot(evc_coord *c, struct evc__snapshot *s);
/* No lock: asks the runner for its place; only the runner knows. */
void evc__describe_runner(evc_coord *c, evc_member_info *i);

/* ---- facts.c ---- */

/* No lock, c usable.  The caller gives f back.  Text and JSON have the kernel's
   view of threads, and their stacks, where a stop stands; with
   EVC_REPORT_STACKS everywhere. */
void evc__facts_take(evc_coord *c, unsigned format, struct evc__facts *f);
void evc__facts_free(struct evc__facts *f);

/* ---- described.c ---- */

/* No lock: the places of runners, and the parts that other functions write about
   c and the scopes below.  These functions may take long: the threads were
   looked at before. */
void evc__described_take(evc_coord *c, unsigned format, struct evc__facts *f);
/* The thread with this id in the report for which the calling thread is in such
   a function; NULL: none. */
struct evc__facts_thread *evc__described_thread(int tid);
void evc__described_free(struct evc__facts *f);
/* Set nth of each of n, in the order of the array, which is sorted. */
void evc__number_twins(struct evc__twin **all, unsigned n);

/* ---- look.c ---- */

/* Look at the threads of live members and of loops that do not turn, where a
   stop stands; all: everywhere, and at the thread of every loop. */
void evc__facts_look(struct evc__facts *f, bool all);

/* ---- names that report and JSON share ---- */

const char *evc__member_kind(unsigned kind);
const char *evc__state_name(unsigned state);
const char *evc__seen_state(const struct evc__seen *m);
const char *evc__facts_state(const struct evc__facts *f);
/* "db/pool": the path from the root to a scope; the root itself is "". */
struct text;
void evc__facts_path(struct text *t, const struct evc__facts *f);
/* "#2" behind the second of a name, and "#1" behind a name that ends in a
   number as well. */
void evc__twin_add(struct text *t, const struct evc__twin *twin);
const char *evc__facts_root_name(const struct evc__facts *f);

/* ---- how they are written ---- */

/* "loop "home" (tid 7) has not turned for 3.204 s: in looper "tick"" */
void evc__loop_text(struct text *t, const struct evc__facts_loop *l);
/* The lines of a thread, indented: "kernel: S in recvfrom", "stack: recv+0x62
   (libc.so.6+0x10a972)", and so on.  kicks: of the present stop. */
void evc__thread_write(struct text *t, int indent,
		       const struct evc__facts_thread *f, unsigned kicks);
void evc__report_write(struct text *t, const struct evc__facts *f);
void evc__json_write(struct text *t, const struct evc__facts *f);
void evc__metrics_write(struct text *t, const struct evc__facts *f);

#endif
