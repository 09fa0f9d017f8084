/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report says, as plain memory: collected once, then written as text, as
 * JSON or as counters.
 *
 * A coordinator's part is copied under its lock, and it is kept by its gate
 * meanwhile.  What takes time - /proc, stacks - is looked at afterwards, when
 * nothing of any coordinator is held: by thread id alone, so a thread that has
 * ended since costs a line that says little, and one of the same id that came
 * after it a line that is wrong, and nothing worse.
 */
#ifndef EVC_OBSERVE_FACTS_H
#define EVC_OBSERVE_FACTS_H

#include <evcoord.h>

#include "base/proc.h"
#include "base/stack.h"
#include "core/core.h"

/* What to look at. */
enum {
	/* The kernel's view of threads, and their stacks, where a stop
	   stands. */
	FACTS_THREADS = 1 << 0,
	/* And where none does. */
	FACTS_ALL_THREADS = 1 << 1
};

#define FACTS_FRAMES 32

/* What the kernel says of a thread, and its stack. */
struct evc__facts_thread {
	int tid;
	struct evc__facts_thread *next; /* all of a report */
	/* Whose it is; it may also be that of loops, and of hooks that they
	   are in. */
	const void *owner;    /* the member, or the loop */
	const struct evc__facts *in;
	evc_id id;            /* of the member, or 0 */
	bool known;           /* /proc could be read */
	bool deaf;            /* it blocks the signal that asks for stacks */
	bool left;            /* there were too many before it */
	struct evc__proc proc;
	const char *no_stack; /* why there is none; NULL: there is one, or it
				 was not asked for */
	unsigned n_frames;
	void *frame[FACTS_FRAMES]; /* the innermost first */
};

/* A member; or tasks of a class, or a scope, as evc_member_each shows them. */
struct evc__seen {
	evc_member_info info;
	int tid;                /* the thread that it is, or 0 */
	const char *progress; /* or NULL */
	uint64_t progress_ns; /* by the coarse clock */
	double progress_age;  /* seconds */
	unsigned unblocks, kicks; /* in the present stop */
	const struct evc__extension *extension; /* in its facts, or NULL */
	struct evc__facts_thread *thread; /* or NULL */
};

/* LOOP_BUSY: it has heard of the stop, and is in a callback of ours. */
enum { LOOP_TURNS, LOOP_BUSY, LOOP_SILENT, LOOP_DESTROYED };

struct evc__facts_loop {
	char name[48];
	int tid;
	unsigned state;
	struct evc__silence silence; /* of one that was not destroyed */
	unsigned n_tasks, n_loopers, n_runners;
	const char *progress; /* of the callback of ours that runs, or NULL */
	uint64_t progress_ns;
	double progress_age;
	struct evc__facts_thread *thread; /* or NULL */
};

struct evc__facts {
	/* the tree of them */
	const struct evc__facts *up;
	struct evc__facts *next, *below;
	const evc_coord *above; /* the first one's: what c is a scope of */
	unsigned twin; /* how many scopes before it there have its name */

	char name[48];
	bool scope, phased, held;
	int phase;
	uint64_t word;
	unsigned n_ended, n_errors;
	double stop_age;        /* < 0: no stop */

	/* the one that fits always, and all of them */
	evc_reason first, *reasons;
	unsigned n_reasons;
	double step[N_STEPS];   /* seconds since the stop; < 0: not reached */
	unsigned n_kicks, n_unblocks;
	const char *kicks_lost; /* why; or NULL */
	struct evc__extension *extensions;
	unsigned n_extensions;
	struct evc__seen *members;
	unsigned n_members;
	struct evc__facts_loop *loops;
	unsigned n_loops;
	struct evc__stats stats;
	unsigned n_scopes;
	uint64_t now;           /* by c's clock */

	/* for lack of memory */
	unsigned lost_reasons, lost_extensions, lost_loops, lost_scopes;
	bool lost_members, lost_threads;

	/* the first one's alone */
	struct evc__facts_thread *threads;
	uint64_t real_ns;
	bool no_signal;         /* stacks would have been taken, but there is no
				   signal for it */
	unsigned stacks_left;   /* not taken: there were too many */
};

/* ---- members.c ---- */

struct evc__snapshot {
	const evc_coord *c;
	uint64_t now;
	struct evc__seen *seen;
	unsigned n, room;
};

/* Lock held: all members, tasks and scopes of c.  false: no memory; else
   s->seen is the caller's to free. */
bool evc__snapshot(evc_coord *c, struct evc__snapshot *s);
/* No lock: runners are asked where they are, and only they know. */
void evc__describe_runner(evc_coord *c, evc_member_info *i);

/* ---- facts.c ---- */

/* No lock, c usable.  f is the caller's, to be given back. */
void evc__facts_take(evc_coord *c, unsigned what, struct evc__facts *f);
void evc__facts_free(struct evc__facts *f);

/* ---- look.c ---- */

/* The threads of members that are alive, and of loops that do not turn: where a
   stop stands; all: everywhere, and every loop's. */
void evc__facts_look(struct evc__facts *f, bool all);

/* ---- names that report and JSON share ---- */

const char *evc__reason_kind(unsigned kind);
const char *evc__member_kind(unsigned kind);
const char *evc__state_name(unsigned state);
const char *evc__facts_state(const struct evc__facts *f);
/* "db/pool": where a scope stands below its root, which itself is "". */
struct text;
void evc__facts_path(struct text *t, const struct evc__facts *f);
const char *evc__facts_root_name(const struct evc__facts *f);

/* ---- how they are written ---- */

void evc__report_write(struct text *t, const struct evc__facts *f);
void evc__json_write(struct text *t, const struct evc__facts *f);
void evc__metrics_write(struct text *t, const struct evc__facts *f);

#endif
