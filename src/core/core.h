/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a coordinator, and what the rooms above may call.
 *
 * One word is the truth about the stop; every wake-up is only a hint to look
 * at it.  A coordinator has one lock; nothing of the user's is ever called under
 * it.  Requests and rings take no lock.
 */
#ifndef EVC_CORE_CORE_H
#define EVC_CORE_CORE_H

#include <evcoord.h>

#include "base/fork.h"
#include "base/gate.h"
#include "base/list.h"
#include "base/sync.h"
#include "core/listener.h"
#include "core/member.h"
#include "core/reactor.h"

/*
 * The word.  Low half: flags, and the number of stops that were cleared; high
 * half: code and slot of the winning request and of the first error.  The low
 * half is also what threads that wait for the stop sleep on.
 */
#define WORD_FLAG UINT64_C(1)    /* a stop was asked for: the header reads it */
#define WORD_CLOSING UINT64_C(4) /* somebody tries to close the round */
#define WORD_JOINED UINT64_C(8)  /* the round is closed */
#define WORD_STOPS(w) ((uint32_t)(w) >> 4)
#define WORD_STOPS_MASK UINT32_C(0x0fffffff)
#define WORD_WIN_SLOT(w) ((unsigned)((w) >> 40 & 255))
#define WORD_ERR_CODE(w) ((evc_status)((w) >> 48 & 255))
#define WORD_ERR_SLOT(w) ((unsigned)((w) >> 56 & 255))
#define WORD_WIN(code, slot) \
	((uint64_t)(unsigned)(code) << 32 | (uint64_t)(slot) << 40)
#define WORD_ERR(code, slot) \
	((uint64_t)(unsigned)(code) << 48 | (uint64_t)(slot) << 56)
#define NO_SLOT 255u

/* The number of the round a word stands in, as people see it. */
#define WORD_ROUND(w) (WORD_STOPS(w) + 1)

/* How many stops there have been, the present one included. */
#define WORD_STOP_NUMBER(w) \
	((WORD_STOPS(w) + (uint32_t)((w) & WORD_FLAG)) & WORD_STOPS_MASK)

/* A kept reason: the text apart from its slot word, which is its lock. */
struct evc__slot {
	evc_reason r;
	uint32_t seq; /* in the order of arrival, as far as times are equal */
	bool error;  /* not clean when it came */
	bool named;  /* who is not the thread's own name */
	bool logged; /* lock */
};

struct evc__helper;
struct evc__join;

/*
 * A coordinator.
 */
struct evc_coord {
	/* The word: see above; evcoord/coord.h reads it at offset 0.  Alone on
	   its cache line, so that asking costs nothing while nothing happens. */
	_Alignas(64) _Atomic uint64_t word;

	/* set at creation */
	_Alignas(64) char name[48];
	double grace;      /* as configured: 0 = none configured */
	unsigned flags;
	unsigned n_slots;
	unsigned fork_generation;
	uint64_t clean[4]; /* bit = the code is clean */
	void (*log)(int, const char *, const evc_reason *, void *);
	uint64_t (*clock)(void *);
	void *arg;
	evc_reactor *home;
	_Atomic uint32_t *slot_word; /* partner: slot[]; see reason.c */
	struct evc__slot *slot;

	/* atomic: any requester -> joins */
	_Atomic uint32_t arrivals; /* numbers the reasons */
	_Atomic uint64_t errors;  /* (stops << 32 | n): errors not in the word */
	_Atomic uint32_t mark;    /* stop number whose walk is complete */
	_Atomic uint64_t hurry;      /* a second signal; see coord.c */
	_Atomic uint64_t hurry_grace_ns; /* signals/ -> joins */

	/* atomic: who sleeps -> who wakes; see wait.c */
	_Atomic uint32_t n_waiters;  /* on the word, for the stop */
	_Atomic uint32_t join_seq;   /* moves before each wake of joins */
	_Atomic uint32_t n_sleepers; /* on join_seq */
	_Atomic int stop_fd;         /* -1: not made yet */
	struct gate fd_gate;         /* around uses of stop_fd */
	struct gate gate;            /* around ends, joins, waits */

	/* listeners; see notify.c */
	struct walkers walkers;
	_Atomic uint32_t n_listeners;
	_Atomic uint32_t n_loop_joins;
	_Atomic uint32_t n_hooks; /* changed under the lock */
	struct evc__chunk chunk;

	/* atomic: threads and holds one each, a reactor with tasks one */
	_Atomic uint32_t alive;
	/* atomic chain of threads that have ended; see member.c */
	_Atomic(struct evc__member *) done;
	/* atomic: stop number + 1 of the round that a join returned from */
	_Atomic uint32_t joined_mark;

	_Alignas(64) pthread_mutex_t lock;
	/* lock */
	struct list members; /* threads, holds; by id */
	struct list hooks;
	struct list reactors;
	struct list joins;   /* see join.h */
	struct evc__member **id_table;
	unsigned id_buckets, n_entries;
	evc_id last_id;
	unsigned n_members;  /* entries of members */
	unsigned n_threads, n_probed, n_own_grace, n_background; /* of them */
	unsigned n_lingering; /* likewise */
	unsigned n_ended;    /* in this round, tasks aside */
	uint64_t seen_ns;    /* when a stop without a slot was first seen */
	unsigned lost_logged; /* errors without a slot, already told */
	evc_verdict verdict; /* of the closed round */
	struct evc__helper *helper;
	void (*release_signals)(evc_coord *c); /* set by signals/ */
};

/* ---- coord.c ---- */

/* 0, or why a call may not go on: c is NULL or inherited by a fork child. */
evc_status evc__check(const evc_coord *c, const char *func);

/* Monotonic nanoseconds by c's clock. */
uint64_t evc__now(const evc_coord *c);

/* Is this process the one that made c? */
static inline bool
evc__same_process(const evc_coord *c)
{
	return sync_load_relaxed(&evc__fork_generation) == c->fork_generation;
}

/* ---- status.c ---- */

/* Note why the calling thread's call is refused; returns s. */
evc_status evc__refuse(evc_status s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for calls that set something up: with EVC_STRICT_SETUP the
   refusal is also reported to c. */
evc_status evc__refuse_setup(evc_coord *c, const char *func, evc_status s);
/* A name of the user's: not longer than there is room for. */
evc_status evc__check_name(const char *name, const char *func);
evc_status evc__check_opts(const evc_member_opts *o, const char *func);
/* Reserved room is zero; a grace is a time or EVC_NO_GRACE. */
evc_status evc__check_room(const uint64_t room[8], const char *func);
evc_status evc__check_grace(double grace, const char *func);
/* A code as it is recorded: 0..255; what it was, when it was not one. */
evc_status evc__normal(evc_status code, bool *ret_unknown);

/* ---- stop.c, reason.c ---- */

struct evc__request {
	evc_status code; /* 0..255 */
	int err;
	unsigned kind;   /* 0: EVC_BY_REQUEST or EVC_BY_ERROR */
	int tid;         /* 0: the calling thread's */
	evc_id by;       /* 0: the calling thread's member, if it is one */
	const char *who; /* NULL: the calling thread's name */
	const char *text, *file, *func;
	int line;
	uint32_t stop; /* not 0: it is for the stop with this number alone */
};

/* Ask for the stop; signal-safe.  0, or the code handed back. */
evc_status evc__request(evc_coord *c, const struct evc__request *q);
bool evc__is_clean(const evc_coord *c, uint64_t w, evc_status code);

/* Lock held: the reason in a slot as it stands, if it is of the round of w,
   else NULL. */
const evc_reason *evc__reason_peek(const evc_coord *c, unsigned slot,
				   uint64_t w);
/* Lock held, round r of w: copy the reason in a slot, if it is there. */
bool evc__reason_copy(const evc_coord *c, unsigned slot, uint64_t w,
		      evc_reason *ret);
/* Lock held: m is about to leave the register; reasons that its thread gave
   keep its id and name. */
void evc__reasons_sign(evc_coord *c, const struct evc__member *m);
/* Lock held: is the reason an error of its round? */
bool evc__reason_is_error(const evc_coord *c, unsigned slot, uint64_t w);
/* Lock held: did the one in slot a come before the one in slot b? */
bool evc__reason_before(const evc_coord *c, unsigned a, unsigned b);
/* Lock held: did it come after the round was closed? */
bool evc__reason_late(const evc_coord *c, unsigned slot);
unsigned evc__n_errors(const evc_coord *c, uint64_t w);
/* Slots, for stop.c. */
unsigned evc__slot_claim(evc_coord *c, uint64_t w, bool error, bool late);
void evc__slot_fill(evc_coord *c, unsigned slot, uint64_t w, bool error,
		    const struct evc__request *q);
void evc__slot_publish(evc_coord *c, unsigned slot, uint64_t w, bool late);
/* It was published as READY, but its round was closed. */
void evc__slot_late(evc_coord *c, unsigned slot, uint64_t w);
void evc__slots_forget_late(evc_coord *c); /* lock held */
void evc__error_count(evc_coord *c, uint64_t w);

/* ---- self: what the calling thread last did; stop.c ---- */

struct evc__self {
	struct evc__member *member; /* the member this thread is */
	/* the last error it reported, for members that return it */
	const evc_coord *reported_to;
	uint32_t reported_stops;
	evc_status reported;
	bool handed_back; /* it came after the round was closed */
};
struct evc__self *evc__self(void);

/* ---- wait.c ---- */

void evc__wake_waiters(evc_coord *c);
void evc__settle(evc_coord *c);
void evc__stop_fd_close(evc_coord *c);

/* ---- helper.c ---- */

/* Lock held: make the helper thread unless it is there; with fds also its
   descriptors.  false: it cannot be had. */
bool evc__helper_need(evc_coord *c, bool fds);
/* Lock held: let it watch m's pidfd. */
bool evc__helper_watch(evc_coord *c, struct evc__member *m);
void evc__helper_unwatch(evc_coord *c, struct evc__member *m);
void evc__helper_ring(evc_coord *c);
void evc__helper_end(evc_coord *c);
bool evc__helper_is_self(const evc_coord *c);

/* ---- log.c ---- */

/* Tell the log hook of errors it has not heard of.  No lock. */
void evc__log_errors(evc_coord *c);
/* What a hook said of a stop that was cleared. */
void evc__log_hook(evc_coord *c, const char *name, evc_status st);
void evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored);

/* ---- signals ---- */

/* Signal-safe: cut the grace of the joins of the stop with this number. */
void evc__hurry(evc_coord *c, uint32_t stop);
/* That stop was cleared. */
void evc__hurry_forget(evc_coord *c, uint32_t stop);
/* When that was, or 0. */
uint64_t evc__hurried(const evc_coord *c, uint32_t stop);

#endif
