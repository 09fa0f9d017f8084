/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline: a ring of events, which the library writes while the timeline
 * is on.
 *
 * While the timeline is off, a note costs one load and a predicted branch.
 * While it is on, a note takes no lock and no memory, so a request in a signal
 * handler may write notes.
 */
#ifndef EVC_CORE_TRACE_H
#define EVC_CORE_TRACE_H

#include "core/core.h"

/* The kinds of events; arg is 0 where the comment names none. */
enum evc__trace_what {
	/* a member, a scope (arg: the number of the parent) or a loop begins */
	TRACE_BEGIN = 1,
	/* A member, a scope or a loop has ended by itself; arg: begin of its
	   life, 0 with a clock of the user's; more: its last progress text. */
	TRACE_END,
	TRACE_REAPED,   /* a member was joined and has left the register; fields
			   as for TRACE_END */
	/* A request has arrived; kind: EVC_BY_..., name: the text, more: the
	   author, arg: TRACE_ASKED. */
	TRACE_REQUEST,
	TRACE_DRAIN,    /* a drain was asked for; name: the text */
	TRACE_CLEAR,    /* the stop is over: evc_clear_stop */
	TRACE_HEARD,    /* a loop turns for the first time in a stop */
	TRACE_AWAKE,    /* a thread leaves its wait for the stop */
	TRACE_CALL,     /* a function of a member is called; arg: TRACE_FN... */
	TRACE_RETURN,   /* a function of a member has returned */
	TRACE_TELL,     /* a loop begins to tell its tasks; arg: how many */
	TRACE_TOLD,     /* a loop has told all its tasks */
	TRACE_IDLE,     /* a loop's last task has ended, in a stop */
	TRACE_JOIN,     /* a join begins; id: tid of the joiner */
	TRACE_VERDICT,  /* a join answers; kind: the code, arg: stragglers */
	TRACE_PHASE,    /* scopes were told; arg: the last phase told */
	TRACE_STEP,     /* a step of the escalation; arg: enum
			   evc__escalation_step */
	TRACE_UNBLOCK,  /* a waker's function was called; arg: calls so far */
	TRACE_KICK,     /* a thread was kicked; arg: kicks so far */
	TRACE_EXTEND,   /* evc_extend_stop; name: the reason, arg: nanoseconds
			   granted */
	/* Not written into the ring, but made for reports: a member is alive
	   when the ring is read; arg: begin of its life. */
	TRACE_ALIVE
};

/* Kinds that are no member, beside EVC_THREAD and so on. */
enum {
	TRACE_COORD = 0,
	TRACE_LOOP = 32,  /* id: tid of the loop */
	TRACE_JOINER = 33, /* id: tid of the joiner */
	TRACE_WAITER = 34  /* a thread that is no member; id: its tid */
};

/* arg of TRACE_REQUEST: the code, whether the request made the stop, and the
   number of that stop. */
#define TRACE_ASKED(code, won, stop) \
	((uint64_t)(unsigned)(code) | (uint64_t)(won) << 8 | \
	 (uint64_t)(stop) << 32)
#define TRACE_ASKED_CODE(arg) ((evc_status)((arg) & 255))
#define TRACE_ASKED_WON(arg) (((arg) >> 8 & 1) != 0)

/* arg of TRACE_CALL. */
enum {
	TRACE_FN = 0,   /* the only function */
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

/* The timeline is on: write an event.  Signal-safe. */
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
	/* evc__trace_put loads again, in order, before it writes. */
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

/* A member begins, ends or is reaped, or a call of a member's function. */
static inline void
evc__trace_member(enum evc__trace_what what, const struct evc__member *m)
{
	if (evc__trace_on(m->c))
		evc__trace_put_member(what, m);
}

/* The time for evc__trace_request, read before another thread can see the
   request. */
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

/* Loop thread, before r->heard gets the number of the stop. */
static inline void
evc__trace_heard(const evc_reactor *r)
{
	if (evc__trace_on(r->c))
		evc__trace_put_heard(r);
}

/* Loop thread: the loop's last task has ended. */
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

/* No lock: make a ring for n events, and write into the ring from now on. */
evc_status evc__trace_start(evc_coord *c, size_t n);

/* ---- reading ---- */

struct evc__record {
	uint64_t number; /* in the order of arrival */
	uint64_t ns, id, arg;
	uint32_t coord;  /* evc_coord.number */
	int tid;
	uint8_t what, kind;
	char name[TRACE_NAME], more[TRACE_MORE];
};

/* The latest ring that was written, or NULL. */
struct evc__trace *evc__trace_last(const evc_coord *c);
/* How many records a ring holds. */
size_t evc__trace_room(const struct evc__trace *t);
/* Copy the latest events, not sorted, while other threads may write; *ret_lost:
   how many events are lost. */
size_t evc__trace_read(struct evc__trace *t, struct evc__record *to,
		       uint64_t *ret_lost);
/* When the timeline was started. */
uint64_t evc__trace_since(const struct evc__trace *t);
/* The tree is being freed. */
void evc__trace_free(struct evc__tree *tree);

#endif
