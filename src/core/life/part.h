/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts: objects that evc_finish frees together with their coordinator.
 */
#ifndef EVC_CORE_PART_H
#define EVC_CORE_PART_H

#include <evcoord.h>

#include "base/list.h"
#include "base/refgate.h"

/* How long a free waits for a log hook, and for a function of the program's on
   the helper thread. */
#define FREE_FLUSH_NS UINT64_C(1000000000)

/* What will have gone before a coordinator is freed. */
struct evc__gone {
	bool parts;       /* the scopes of its parts */
	bool members;     /* all that is alive */
	unsigned n_conds; /* so many of its conditions */
};

/* ---- why_not.c ---- */

/* Lock held, given up meanwhile: the reason against freeing c once that has
   gone, in buf perhaps; NULL: none.  A function of the program's on the helper
   thread has ns to return. */
const char *evc__free_why_not(evc_coord *c, const struct evc__gone *gone,
			      uint64_t ns, char *buf, size_t room);

/* ---- part.c ---- */

/* Lock of its coordinator held: p is a part no more.  NULL is fine. */
void evc__part_drop(evc_part *p);

/* What reports call for a part. */
struct evc__describer {
	struct list node; /* lock: in the list of its coordinator */
	/* set at creation */
	char kind[16], name[48];
	evc_describe_fn *fn;
	void *arg;
	struct refgate gate; /* around calls of fn */
	/* atomic: the list, each report -> the last frees the describer */
	_Atomic uint32_t refs;
	_Atomic bool in_describe; /* atomic: a thread of the helper is in fn */
};

/* A call of a report's in progress; a local variable of the caller. */
struct evc__inside_describer {
	struct evc__describer *d; /* NULL: a scope's own function */
	evc_coord *c;
	_Atomic bool *mark;       /* cleared at the end; NULL: no helper */
	struct evc__inside_describer *up;
};

/* Give a reference back. */
void evc__describer_drop(struct evc__describer *d);
/* Around a call of d's function, on its thread; the caller has entered d's
   refgate, which evc__describer_leave leaves.  d NULL: the function of c itself.
   false: another thread of the helper hangs in the function, which is not to be
   called. */
bool evc__describer_enter(struct evc__inside_describer *in, evc_coord *c,
			  struct evc__describer *d);
void evc__describer_leave(struct evc__inside_describer *in);
/* c is being destroyed. */
void evc__describers_free(evc_coord *c);

#endif
