/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline's ring: what happens is noted here, while it is on.
 *
 * Off, a note costs one load and a branch that is predicted.  On, it takes no
 * lock and no memory, so it may stand in a request that a signal handler makes.
 */
#ifndef EVC_CORE_TRACE_H
#define EVC_CORE_TRACE_H

#include "core/core.h"

/* What happened; arg is 0 where nothing is said of it. */
enum evc__trace_what {
	/* a member, a scope (arg: the number of the one above), a loop */
	TRACE_BEGIN = 1,
	/* It has ended by itself; arg: since when it was alive, 0 when that is
	   not real time; more: its last progress text. */
	TRACE_END,
	TRACE_REAPED,   /* it is accounted for; likewise */
	/* A request has arrived; kind: EVC_BY_..., name: its text, more: who,
	   arg: see below. */
	TRACE_REQUEST,
	TRACE_DRAIN,    /* a drain was asked for; name: its text */
	TRACE_CLEAR,    /* the stop is over: evc_clear_stop */
	TRACE_HEARD,    /* a loop turns for the first time in a stop */
	TRACE_AWAKE,    /* a thread leaves its wait for the stop */
	TRACE_CALL,     /* a function of a member is called; arg: which */
	TRACE_RETURN,   /* and has returned */
	TRACE_TELL,     /* a loop begins to tell its tasks; arg: how many */
	TRACE_TOLD,     /* all were told */
	TRACE_IDLE,     /* a loop's last task has ended, in a stop */
	TRACE_JOIN,     /* a join begins; id: its thread's */
	TRACE_VERDICT,  /* it is answered; kind: the code, arg: stragglers */
	TRACE_PHASE,    /* scopes were told; arg: up to this phase */
	TRACE_STEP,     /* of the escalation; arg: which one */
	TRACE_UNBLOCK,  /* a waker's function was called; arg: how often so
			   far */
	TRACE_KICK,     /* a thread was kicked; likewise */
	TRACE_EXTEND,   /* evc_extend_stop; name: its reason, arg: nanoseconds
			   granted */
	/* Not in the ring: alive when it was read; arg: since when. */
	TRACE_ALIVE
};

/* Kinds of what is no member, beside EVC_THREAD and so on. */
enum {
	TRACE_COORD = 0,
	TRACE_LOOP = 32,  /* id: its thread's */
	TRACE_JOINER = 33, /* id: its thread's */
	TRACE_WAITER = 34  /* a thread that is no member; id: its thread's */
};

/* arg of TRACE_REQUEST: the code, whether it made the stop, and the number of
   that stop. */
#define TRACE_ASKED(code, won, stop) \
	((uint64_t)(unsigned)(code) | (uint64_t)(won) << 8 | \
	 (uint64_t)(stop) << 32)
#define TRACE_ASKED_CODE(arg) ((evc_status)((arg) & 255))
#define TRACE_ASKED_WON(arg) (((arg) >> 8 & 1) != 0)

/* arg of TRACE_CALL. */
enum {
	TRACE_FN = 0,   /* its one function */
	TRACE_STOP = 1, /* a runner's stop */
	TRACE_REAP = 2  /* a runner's join */
};

#define TRACE_NAME 48
#define TRACE_MORE 32

struct evc__note {
	enum evc__trace_what what;
	unsigned kind;
	uint64_t ns; /* 0: now */
	uint64_t id, arg;
	int tid;     /* 0: the calling thread's */
	const char *name, *more; /* copied, cut to fit; NULL is "" */
};

/* On: write it down.  Signal-safe. */
void evc__trace_put(const evc_coord *c, const struct evc__note *n)
	__attribute__((cold));
void evc__trace_put_member(enum evc__trace_what what,
			   const struct evc__member *m)
	__attribute__((cold));
void evc__trace_put_request(const evc_coord *c, const struct evc__request *q,
			    uint64_t ns, uint64_t arg) __attribute__((cold));

void evc__trace_put_heard(const evc_reactor *r) __attribute__((cold));
void evc__trace_put_awake(const evc_coord *c) __attribute__((cold));

static inline bool
evc__trace_on(const evc_coord *c)
{
	/* Who finds it on looks again, in order, before it writes. */
	return __builtin_expect(sync_load_relaxed(&c->tree->trace) != NULL, 0);
}

static inline void
evc__trace(const evc_coord *c, enum evc__trace_what what, uint64_t id,
	   unsigned kind, const char *name, uint64_t arg)
{
	if (evc__trace_on(c))
		evc__trace_put(c, &(struct evc__note){ .what = what,
						       .kind = kind,
						       .id = id,
						       .arg = arg,
						       .name = name });
}

/* BEGIN, END or REAPED, or a call of its. */
static inline void
evc__trace_member(enum evc__trace_what what, const struct evc__member *m)
{
	if (evc__trace_on(m->c))
		evc__trace_put_member(what, m);
}

/* A time for evc__trace_request: before what it asks for can be seen. */
static inline uint64_t
evc__trace_now(const evc_coord *c)
{
	return evc__trace_on(c) ? sync_mono() : 0;
}

static inline void
evc__trace_request(const evc_coord *c, const struct evc__request *q,
		   uint64_t ns, uint64_t arg)
{
	if (ns != 0)
		evc__trace_put_request(c, q, ns, arg);
}

/* Loop thread, before it notes in r->heard which stop it has seen. */
static inline void
evc__trace_heard(const evc_reactor *r)
{
	if (evc__trace_on(r->c))
		evc__trace_put_heard(r);
}

/* Loop thread: its last task has ended. */
static inline void
evc__trace_idle(const evc_reactor *r)
{
	if (evc__trace_on(r->c) && evc_should_stop(r->c))
		evc__trace(r->c, TRACE_IDLE, (uint64_t)r->tid, TRACE_LOOP,
			   r->name, 0);
}

/* The calling thread leaves its wait for c's stop. */
static inline void
evc__trace_awake(const evc_coord *c)
{
	if (evc__trace_on(c))
		evc__trace_put_awake(c);
}

/* No lock: have a ring for n events, and write in it from now on. */
evc_status evc__trace_start(evc_coord *c, size_t n);

/* ---- to read it ---- */

struct evc__record {
	uint64_t number; /* in the order of arrival */
	uint64_t ns, id, arg;
	uint32_t coord;  /* evc_coord.number */
	int tid;
	uint8_t what, kind;
	char name[TRACE_NAME], more[TRACE_MORE];
};

/* The ring that was written last, or NULL. */
struct evc__trace *evc__trace_last(const evc_coord *c);
/* How many records there can be. */
size_t evc__trace_room(const struct evc__trace *t);
/* While it goes on: the latest, by their numbers, and how many are lost. */
size_t evc__trace_read(struct evc__trace *t, struct evc__record *to,
		       uint64_t *ret_lost);
/* When it was started. */
uint64_t evc__trace_since(const struct evc__trace *t);
/* The tree goes. */
void evc__trace_free(struct evc__tree *tree);

#endif
