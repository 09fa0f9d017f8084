/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function that was scheduled, from its acceptance to its outcome and as long
 * as somebody holds it: one piece of memory, with its arguments behind it.
 * Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_REMOTE_H
#define EVC_CLUSTER_REMOTE_H

struct remotes {
	uint64_t last_id;        /* lock: of remotes and per-worker values */
	struct remote_table *named; /* lock: the remotes that values name, by
				    id */
	evc_remote *garbage;     /* lock: freed when the lock is given up */
	_Atomic uint64_t n_fetched; /* atomic: outcomes that were handed out */
};

/* A settled remote tells a function that has it among its arguments, or a
   fetch. */
struct cluster_edge {
	struct cluster_edge *next;
	evc_remote *waits;       /* NULL: a fetch waits */
	struct cluster_fetch *fetches;
};

/* What few of them have. */
struct remote_more {
	evc_exec_fn *call; /* of evc_schedule_call */
	void *call_arg;
	double deadline;
	evc_retry retry;
	unsigned retries;      /* made */
	uint64_t due_ns;       /* held until then; 0: for inputs */
	/* Inputs: a reference of each is kept until this is settled. */
	evc_remote **inputs;
	evc_engine_input *values; /* the same, for tasks, when all have come */
	unsigned n_inputs, n_missing;
	evc_per_worker **uses; /* a reference of each, likewise */
	unsigned n_uses;
};

/* evc_remote.flags */
#define REMOTE_TRANSACTIONAL 1
#define REMOTE_ASKED 128 /* cancelled by name while it ran: since done_ns */
#define REMOTE_LEFT 64   /* given up: its worker may read its inputs still */
#define REMOTE_SEEN 32   /* admit.c: it stands among the inputs already */

struct evc_remote {
	struct closure closure;  /* under the lock */
	evc_cluster *cl;         /* alive as long as this */
	/* atomic: EVC_REMOTE_DONE published by who settles it -> everybody,
	   slept on; then all below is read without the lock */
	_Atomic uint32_t done;   /* 0, 1 */
	_Atomic uint32_t sleepers;
	_Atomic uint32_t refs;   /* the cluster's is one until it is settled */
	uint64_t id;             /* never used twice in the cluster */
	const struct cluster_name *function; /* NULL: call */
	struct remote_more *more;
	struct cluster_edge *edges;
	evc_remote *more_garbage; /* cl->garbage */
	evc_value value;
	char *text;              /* of an error; NULL: none */
	uint64_t queued_ns, done_ns;
	uint32_t worker;         /* that has it, or had it last; TAG_ANY */
	uint32_t args_size, kwargs_size; /* in tail */
	uint16_t attempts, deaths;
	uint8_t code, kind, deaths_most, flags;
	_Atomic uint8_t named;   /* it stands in remote_table: under the lock
				    -> who frees it */
	_Atomic uint8_t fetched; /* its outcome was handed out */
	unsigned char tail[];    /* args, then kwargs */
};

#define REMOTE_OF(c) LIST_OF(c, evc_remote, closure)

static inline const char *
remote_name(const evc_remote *r)
{
	return r->function != NULL ? r->function->name : "call";
}

/* remote_named.c: which remote a value means */

/* For evc__pack: a remote that it was given can be named from then on. */
extern const struct pack_refs evc__pack_refs;
/* Lock held: the one with this id, NULL: there is none (any more).  To keep it
   beyond the lock takes evc__remote_hold, which may find that it is going. */
evc_remote *evc__remote_find(evc_cluster *cl, uint64_t id);
/* Lock held. */
void evc__remote_unname(evc_remote *r);
void evc__remotes_destroy(evc_cluster *cl);

/* remote.c */

/* Lock held: one reference more of one that was found; false: it is going. */
bool evc__remote_hold(evc_remote *r);

/* Lock held: one reference less; what has none is put on cl->garbage. */
void evc__remote_drop(evc_remote *r);
/* The lock given up, and then cl->garbage freed: how each call ends. */
void evc__cluster_unlock(evc_cluster *cl);
/* Its outcome was handed out: count it once. */
void evc__remote_count_fetch(evc_remote *r);

/* One edge for each of these remotes that has no outcome yet, in front of *ret.
   false: no memory, and *ret is NULL. */
bool evc__edges_make(evc_remote *const *r, size_t n, struct cluster_edge **ret);
void evc__edges_free(struct cluster_edge *e);

/* settle.c: lock held */

struct outcome {
	evc_status code;
	unsigned kind;     /* EVC_FAILED_...; 0 */
	const char *text;  /* copied */
	evc_value value;   /* taken over */
	uint64_t now_ns;   /* 0: the clock is read */
	bool raise;        /* the cluster raises it, and that of whoever has it
			      among its arguments */
};

/* It was queued: a worker may take it. */
void evc__remote_queued(evc_remote *r);
/* Give it its outcome; tell all that wait for it, and what follows from that,
   to the end.  It is OUT of the queue already. */
void evc__remote_settle(evc_remote *r, const struct outcome *o);
/* One that waits fails with an error that is raised; what else is queued is the
   caller's to cancel. */
void evc__waiting_fails(evc_remote *r, const struct outcome *o);
/* One that was taken, and is in no list, fails: o->code is not 0. */
void evc__taken_fails(evc_remote *r, const struct outcome *o);
/* The outcome of what has r, which has failed, among its arguments: the same
   error, never wrapped. */
struct outcome evc__remote_passes(const evc_remote *r);
/* All inputs have come: their values are what tasks are given. */
void evc__remote_fill(struct remote_more *m);
/* The inputs and per-worker values it had are not its any more. */
void evc__remote_let_go(evc_remote *r);
/* For evc__closures_init: by an error of another one, or the stop. */
void evc__closure_cancelled(struct closures *q, struct closure *c);
/* The reason of an error of this remote, for the queue. */
void evc__remote_reason(const evc_remote *r, const struct outcome *o,
			evc_reason *ret);

#endif
