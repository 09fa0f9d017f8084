/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a coordinator: made, freed, abandoned.
 */
#ifndef EVC_CORE_LIFE_H
#define EVC_CORE_LIFE_H

#include <evcoord.h>

#include "base/refgate.h"
#include "base/sync.h"

struct evc__helper_job;
struct evc__systemd;

/* This part of a coordinator. */
struct evc__coord_life {
	unsigned fork_generation; /* set at creation */
	struct refgate gate;    /* around ends, joins, waits */
	/* lock */
	bool held;           /* evc_scope_ready has not been called */
	bool dying;          /* evc_free goes on to the end */
	uint64_t ready_ns;   /* when it was made, for its age */
	unsigned n_conds;    /* conds made and not freed; see wake/cond.c */
	struct evc__helper_job *owner; /* set by evc_abandon */
	struct evc__systemd *systemd;
	/* set by rooms above; called when c goes, before its parts go */
	void (*release_signals)(evc_coord *c);
	void (*release_dump)(evc_coord *c);
	void (*release_systemd)(evc_coord *c);
	/* atomic: evc_abandon -> the helper, which frees c when no member is
	   alive */
	_Atomic bool abandoned;
};

/* ---- coord.c ---- */

evc_status evc__coord_make(const evc_config *k, const char *func,
			   evc_coord *parent, evc_coord **ret_c);
void evc__coord_destroy(evc_coord *c);
/* No other thread but those inside the refgate, and the helper, can reach c:
   take c down and free c. */
void evc__coord_take_down(evc_coord *c);
/* Remove the signal handlers that belong to c. */
void evc__coord_release_handlers(evc_coord *c);

/* Register the fork handler: a child forgets its thread's state in the parent's
   coordinators. */
void evc__inherit_watch(void);

#endif
