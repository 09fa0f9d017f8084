/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a coordinator: made, freed, abandoned.
 */
#ifndef EVC_CORE_LIFE_H
#define EVC_CORE_LIFE_H

#include <evcoord.h>

#include "base/list.h"
#include "base/refgate.h"
#include "base/sync.h"

struct evc__helper_job;
struct evc__systemd;

/* This part of a coordinator. */
struct evc__coord_life {
	unsigned fork_generation; /* set at creation */
	/* set at creation: for reports, called inside the refgate; or NULL */
	evc_describe_fn *describe;
	void *describe_arg;
	bool describe_stacks;
	_Atomic bool in_describe; /* atomic: a thread of the helper is in it */
	struct refgate gate;    /* around calls that use c, so that evc_free
				   waits for their end */
	/* set at creation: the scope of a thread; see own_scope.c */
	bool of_thread;
	evc_coord *next_left;   /* parent's lock: in parent's member.left */
	/* lock */
	bool thread_runs;    /* of_thread: the thread has not ended */
	bool held;           /* evc_scope_ready has not been called */
	bool dying;          /* evc_free has passed its checks, and will free
				c */
	uint64_t ready_ns;   /* when c was made, for the age of c in reports */
	struct list describers; /* of parts; the oldest first */
	unsigned n_conds;    /* conds made and not freed; see wake/cond.c */
	evc_part *parts;     /* the newest first; see part.c */
	evc_part *part;      /* parent's lock: the part with this scope; NULL:
				none */
	struct evc__helper_job *owner; /* job of the helper as owner; set by
					  evc_abandon */
	struct evc__systemd *systemd;
	/* signals.c: the helper's lines about refused signals; freed with c */
	struct evc__helper_job *signals_job;
	/* set by rooms above; called when c goes, before its parts go */
	void (*release_signals)(evc_coord *c);
	void (*release_dump)(evc_coord *c);
	void (*release_systemd)(evc_coord *c);
	/* atomic: signals.c -> joins: called when a join of c has begun; or
	   NULL */
	_Atomic(void (*)(evc_coord *c)) join_begins;
	/* atomic: evc_abandon -> the helper, which frees c when no member is
	   alive */
	_Atomic bool abandoned;
};

/* ---- coord.c ---- */

evc_status evc__coord_make(const evc_config *k, const char *func,
			   evc_coord *parent, evc_coord **ret_c);
void evc__coord_destroy(evc_coord *c);
/* Take c down and free c.  Only the helper, and threads inside the refgate, can
   still reach c. */
void evc__coord_take_down(evc_coord *c);
/* The checks before c is freed: the reason against it, in buf perhaps.  NULL:
   c is to be taken down now.  A function of the program's on the helper thread
   has ns to return. */
const char *evc__coord_claim(evc_coord *c, uint64_t ns, char *buf, size_t room);
/* evc_free, which waits for functions that hang for twice ns at most. */
evc_status evc__free(evc_coord *c, uint64_t ns);
/* Remove the signal handlers that belong to c. */
void evc__coord_release_handlers(evc_coord *c);

/* Register the fork handler: a child forgets its thread's state in the parent's
   coordinators. */
void evc__inherit_watch(void);

#endif
