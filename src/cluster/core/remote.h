/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function that was scheduled, from its acceptance to its last reference: one
 * piece of memory, with the arguments behind.  Included by
 * cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_REMOTE_H
#define EVC_CLUSTER_REMOTE_H

struct remotes {
	uint64_t last_id;        /* lock: last id of remotes and per-worker
				    values */
	struct table named;      /* lock: the remotes that values name; each
				    has kept the cluster, so the last unref
				    finds none */
	evc_remote *garbage;     /* lock: freed when the lock is given up */
	_Atomic uint64_t n_fetched; /* atomic: outcomes that were handed out */
};

/* A settled remote tells a function that has it among its arguments, or a
   fetch. */
struct cluster_edge {
	struct cluster_edge *next, **at; /* at: what points to this edge; NULL:
					    not among the edges of a remote */
	evc_remote *waits;       /* NULL: a fetch waits */
	struct cluster_fetch *fetches;
};

/* Fields that few remotes need. lock, but those of the call, which are
   creation. */
struct remote_more {
	evc_exec_fn *call; /* of evc_schedule_call */
	void *call_arg;
	double deadline;
	evc_backoff retry;
	unsigned retries;      /* retries made */
	uint64_t due_ns;       /* time of the next attempt; 0: the function
				  waits for inputs */
	/* A reference of each input, until the outcome. */
	evc_remote **inputs;
	evc_engine_input *values; /* the inputs' values, for tasks, when all
				     have come */
	unsigned n_inputs, n_missing;
	struct cluster_edge *own; /* of inputs without an outcome, each with a
				     reference of this remote; allocated */
	unsigned n_own;
	evc_per_worker **uses; /* a reference of each per-worker value, until
				  the outcome */
	unsigned n_uses;
};

/* A value, and the bytes that stand in front of it in its memory. */
struct held_value {
	evc_value value;
	uint32_t at;
};

static inline void
held_free(struct held_value *v)
{
	if (v->value.data != NULL)
		sync_free((char *)v->value.data - v->at);
	*v = (struct held_value){ { NULL, 0 }, 0 };
}

/* evc_remote.flags */
#define REMOTE_TRANSACTIONAL 1
#define REMOTE_ASKED 128 /* evc_remote_cancel came while the function ran, at
			    done_ns */
#define REMOTE_LEFT 64   /* given up: the worker may still read the inputs */
#define REMOTE_SEEN 32   /* admit.c: the remote is among the inputs already */

struct evc_remote {
	union {                  /* lock */
		uint64_t id;     /* never used twice in the cluster */
		struct table_node node; /* in remotes.named */
	};
	struct closure closure;  /* lock */
	evc_cluster *cl;         /* creation: stays as long as this object */
	/* atomic: the settling thread -> all, slept on.  Fields below that are
	   no longer under the lock then are constant. */
	_Atomic uint32_t done;   /* 0, 1 */
	_Atomic uint32_t sleepers;
	_Atomic uint32_t refs;   /* atomic: one of the cluster's, until the
				    outcome */
	uint32_t value_at;       /* held_value.at of `value` */
	const struct cluster_name *function; /* lock: NULL: a call */
	struct remote_more *more;
	struct cluster_edge *edges;
	evc_remote *more_garbage; /* lock: remotes.garbage */
	evc_value value;
	char *text;              /* text of an error; NULL: none */
	uint64_t queued_ns, done_ns;
	uint32_t worker;         /* lock: the worker that has the function, or
				    had it last; TAG_ANY: none */
	uint32_t args_size, kwargs_size; /* creation: bytes in `tail` */
	uint16_t attempts, deaths;
	uint8_t code, kind, deaths_most, flags;
	uint8_t conflicts;       /* lock: runs with reads that did not hold,
				    or UINT8_MAX */
	_Atomic uint8_t named;   /* atomic: the remote is in remotes.named:
				    under the lock -> the last owner */
	_Atomic uint8_t fetched; /* atomic: the outcome was handed out */
	unsigned char tail[];    /* creation: args, then kwargs */
};

/* A function overtaken so often runs alone. */
#define CONFLICTS_MOST 8

#define REMOTE_OF(c) LIST_OF(c, evc_remote, closure)

static inline const char *
remote_name(const evc_remote *r)
{
	return r->function != NULL ? r->function->at.text : "call";
}

/* remote_named.c: the remote that a value means */

/* For evc__pack: values can name a packed remote from then on. */
extern const struct pack_refs evc__pack_refs;
/* Lock held: the remote with this id; NULL: none. evc__remote_hold keeps it
   beyond the lock, unless the remote is going. */
evc_remote *evc__remote_find(evc_cluster *cl, uint64_t id);
/* Lock held. */
void evc__remote_unname(evc_remote *r);

/* remote.c */

/* Lock held: take a reference of a remote that was found; false: the remote is
   going. */
bool evc__remote_hold(evc_remote *r);

/* Lock held: drop a reference; the last one puts the remote on
   remotes.garbage. */
void evc__remote_drop(evc_remote *r);
/* The end of each call: give up the lock, then free remotes.garbage. */
void evc__cluster_unlock(evc_cluster *cl);
/* The outcome was handed out: count it once. */
void evc__remote_count_fetch(evc_remote *r);

/* Lock held: into r's edges, and out. */
void evc__edge_add(evc_remote *r, struct cluster_edge *e);
void evc__edge_remove(struct cluster_edge *e);

/* outcome.c: lock held */

struct outcome {
	evc_status code;
	unsigned kind;     /* EVC_FAILED_...; 0 */
	const char *text;  /* copied */
	struct held_value value; /* the remote's from then on */
	uint64_t now_ns;   /* 0: the clock is read */
	bool raise;        /* the cluster raises the error, and those of
			      functions that depend on the remote */
};

/* Without the lock: copy the value of a result, or take its memory over.  false:
   no memory, or no value, and the memory is the caller's still. */
bool evc__value_hold(const evc_engine_result *res, struct held_value *ret);
/* The function was queued: a worker may take it. */
void evc__remote_queued(evc_remote *r);
/* Give a remote its outcome and tell all that wait for it, with all that
   follows.  The closure is OUT of the queue. */
void evc__remote_settle(evc_remote *r, const struct outcome *o);
/* A function that waits fails, with an error that is raised; the caller cancels
   the others in the queue. */
void evc__waiting_fails(evc_remote *r, const struct outcome *o);
/* A taken function, in no list, fails: o->code is not 0. */
void evc__taken_fails(evc_remote *r, const struct outcome *o);
/* An attempt of a taken function, in no list, has failed: a retry may follow.
   asked: the function was asked to stop. */
void evc__attempt_fails(struct evc_cluster *cl, evc_remote *r, evc_status code,
			unsigned kind, const char *text, bool asked,
			uint64_t now);
/* The outcome of a function with the failed r among its arguments: the same
   error, never wrapped. */
struct outcome evc__remote_passes(const evc_remote *r);
/* All inputs have come: their values are for the task. */
void evc__remote_fill(struct remote_more *m);
/* Drop the inputs and per-worker values. */
void evc__remote_let_go(evc_remote *r);
/* For evc__closures_init: an error or the stop has cancelled a function. */
void evc__closure_cancelled(struct closures *q, struct closure *c);
/* The reason of a remote's error, for the queue. */
void evc__remote_reason(const evc_remote *r, const struct outcome *o,
			evc_reason *ret);

#endif
