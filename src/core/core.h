/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a coordinator, and what the rooms above may call.
 *
 * One word is the truth about the stop; every wake-up is only a hint to look
 * at it.  Lock order: a coordinator's lock is the only lock; nothing of the
 * user's is ever called under it.  Requests and rings take no lock.
 */
#ifndef EVC_CORE_CORE_H
#define EVC_CORE_CORE_H

#include <ev.h>
#include <evcoord.h>

#include "base/fork.h"
#include "base/gate.h"
#include "base/list.h"
#include "base/sync.h"

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

/*
 * What is told of a request: a reactor, the helper thread.  It stands in the
 * coordinator's table; tell() is called by the requesting thread and must be
 * safe in a signal handler.
 */
struct evc__listener {
	void (*tell)(struct evc__listener *l);
	/* How many joins (or runs) on it want to hear every ring.
	   Atomic: the loop's thread -> whoever rings. */
	_Atomic uint32_t n_joins;
};

/* Slots for listeners come in chunks that are only ever added. */
#define CHUNK_SLOTS 14
struct evc__chunk {
	_Atomic(struct evc__listener *) slot[CHUNK_SLOTS];
	_Atomic(struct evc__chunk *) next;
};

/* A kept reason: the text apart from its slot word, which is its lock. */
struct evc__slot {
	evc_reason r;
	bool error;  /* not clean when it came */
	bool named;  /* who is not the thread's own name */
	bool logged; /* lock */
};

struct evc__member;
struct evc__helper;
struct evc__join;

/* What the register asks of a kind of thread; see members/pthread.c. */
struct evc__member_ops {
	/* Lock held, never blocks.  true: it has ended and is joined. */
	bool (*probe)(struct evc__member *m);
	/* Claimed by the caller, no lock; blocks for ns at most.  true: it is
	   joined. */
	bool (*reap)(struct evc__member *m, uint64_t ns);
	/* Lock held: its pidfd became readable. */
	void (*vanished)(struct evc__member *m);
	/* Lock held: it is about to be freed. */
	void (*release)(struct evc__member *m);
};

/*
 * An entry of the register.
 */
struct evc__member {
	/* set at creation */
	evc_coord *c;
	const struct evc__member_ops *ops; /* threads only */
	evc_id id;
	unsigned kind, flags, round;
	double grace;
	uint64_t since_ns;
	char name[48];
	pthread_t thread; /* threads only */
	int tid;          /* threads: kernel id, 0 when not known */

	/* lock */
	struct list node;           /* c->members or c->hooks */
	struct evc__member *by_id;  /* chain of the id table */
	unsigned n_joining;         /* joins of c that it waits in */
	bool queued;                /* stands in c->done, or was taken out of
				       it and not looked at yet */
	bool probed;                /* cannot ring: counted in c->n_probed */
	bool watched;               /* has a pidfd in the helper's set */
	int pidfd;                  /* -1: none */

	/* atomic: LIVE -> DONE by the member's own thread or by who saw it
	   end; DONE -> REAPING -> REAPED (or back) by who claimed it */
	_Atomic uint32_t state;
	/* atomic: chain of c->done; written by the thread that ends, read by
	   who takes the chain */
	struct evc__member *done_next;
};

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
	_Atomic uint64_t errors;  /* (stops << 32 | n): errors not in the word */
	_Atomic uint32_t mark;    /* stop number whose walk is complete */
	_Atomic uint64_t hurry_ns;   /* when the second signal came */
	_Atomic uint32_t hurry_mark; /* stop number it belongs to */
	_Atomic uint64_t hurry_grace_ns;

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
bool evc__is_zero(const uint64_t *room, size_t n);
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
};

/* Ask for the stop; signal-safe.  0, or the code handed back. */
evc_status evc__request(evc_coord *c, const struct evc__request *q);
bool evc__is_clean(const evc_coord *c, uint64_t w, evc_status code);

/* Lock held, round r of w: copy the reason in a slot, if it is there. */
bool evc__reason_copy(const evc_coord *c, unsigned slot, uint64_t w,
		      evc_reason *ret);
/* Lock held: m is about to leave the register; reasons that its thread gave
   keep its id and name. */
void evc__reasons_sign(evc_coord *c, const struct evc__member *m);
/* Lock held: did it come after the round was closed? */
bool evc__reason_late(const evc_coord *c, unsigned slot);
unsigned evc__n_errors(const evc_coord *c, uint64_t w);
/* Slots, for stop.c. */
unsigned evc__slot_claim(evc_coord *c, uint64_t w, bool error, bool late);
void evc__slot_fill(evc_coord *c, unsigned slot, uint64_t w, bool error,
		    const struct evc__request *q);
void evc__slot_publish(evc_coord *c, unsigned slot, uint64_t w, bool late);
void evc__slots_clear(evc_coord *c, bool all); /* lock held */
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

/* ---- notify.c ---- */

/* Something that can change a join's answer has happened. */
void evc__ring(evc_coord *c);
/* Tell everybody of the stop, unless somebody has done it. */
void evc__tell_all(evc_coord *c);
/* Lock held: stand in the table; false: no memory. */
bool evc__listen(evc_coord *c, struct evc__listener *l);
/* Lock held: leave it; nobody calls tell() afterwards. */
void evc__unlisten(evc_coord *c, struct evc__listener *l);

/* ---- member.c: the register ---- */

/* Lock held: room in the table of ids for some more; false: no memory. */
bool evc__id_room(evc_coord *c, unsigned more);
/* Lock held: number it, count it alive, open a closed round again. */
evc_status evc__member_add(evc_coord *c, struct evc__member *m);
struct evc__member *evc__member_new(evc_coord *c, size_t size, unsigned kind,
				    const char *name,
				    const evc_member_opts *o);
/* Lock held: out of the lists; the memory stays. */
void evc__member_unlink(struct evc__member *m);
/* Lock held: it has ended and is accounted for. */
void evc__member_gone(struct evc__member *m);
struct evc__member *evc__member_find(const evc_coord *c, evc_id id);
/* Its own thread, or who saw it end: LIVE -> DONE, and ring. */
void evc__member_done(struct evc__member *m);
/* Lock held: can it not ring? */
void evc__member_probed(struct evc__member *m, bool yes);
/* Lock held, given up meanwhile: join those that have ended, blocking for ns
   at most on those that do not get to their end.  true: the lock was given up. */
bool evc__members_reap(evc_coord *c, uint64_t ns);
/* Lock held: try each thread that may have ended unnoticed. */
void evc__members_probe(evc_coord *c);
/* Lock held: the member that the calling thread is, or NULL. */
struct evc__member *evc__member_self(const evc_coord *c);
/* Add to or take from what is alive; add opens a closed round again. */
void evc__alive_add(evc_coord *c);
void evc__alive_sub(evc_coord *c);

/* ---- result.c ---- */

/* What a member's function returned; name and by say whose it is. */
evc_status evc__member_result(evc_coord *c, evc_id by, const char *name,
			      unsigned flags, evc_status result, bool guard);

/* ---- census.c ---- */

/* Who keeps a join waiting. */
struct evc__census {
	unsigned alive;      /* all kinds; each task counts one */
	unsigned foreground; /* those not EVC_BACKGROUND */
	double longest;      /* the longest own grace; INFINITY: one has none */
};
/* Lock held.  self and, if it is one, members that join are left out; hooks count only
   when hooks is set, and not those of thread tid. */
struct evc__census evc__census(evc_coord *c, const struct evc__member *self,
			       bool hooks, int hooks_not_of);
/* Lock held: "a, b, c (+n more)" into buf; returns how many they are. */
unsigned evc__names(evc_coord *c, const struct evc__member *self, bool hooks,
		    int hooks_not_of, char *buf, size_t room);

/* ---- pthread.c, adopt.c: threads as members ---- */

struct evc__pthread {
	struct evc__member m;
	evc_fn *fn; /* started threads: set at creation */
	void *arg;
	/* started: written by the thread before it is DONE; registered: by who
	   saw it end, under the lock; read by who joined it */
	bool has_result;
	bool after_stop; /* it is known to have ended after the stop */
};
extern const struct evc__member_ops evc__pthread_ops;
/* The kernel's id of a thread, 0 when it has ended: the only public way there
   goes through the number of its CPU clock. */
int evc__pthread_tid(pthread_t t);
/* Lock held: have the helper watch it; false: it cannot. */
bool evc__pthread_watch(struct evc__member *m);
/* Lock not held: check the list of a join whole, then register it. */
evc_status evc__adopt_list(evc_coord *c, const evc_join_opts *o);

/* ---- hook.c ---- */

struct evc__hook {
	struct evc__member m;
	evc_fn *fn;          /* set at creation */
	void *arg;
	evc_reactor *reactor; /* NULL: the helper thread */
	uint32_t told;       /* lock: the stop number it was called for */
	int running;         /* lock: the thread id that is in it, or 0 */
	bool removed;        /* lock: free it when it has returned */
};
/* Run what is due on r (NULL: the helper's).  No lock. */
void evc__hooks_run(evc_coord *c, evc_reactor *r);
/* Lock held: is one of r's due or running? */
bool evc__hooks_due(evc_coord *c, const evc_reactor *r);
bool evc__hook_pending(const struct evc__hook *h, uint64_t w);
/* Lock held: forget all hooks of r. */
void evc__hooks_drop(evc_coord *c, const evc_reactor *r);

/* ---- reactor.c ---- */

#define TASK_CLASSES 15
struct evc__task_count {
	/* atomic: the loop's thread -> reports */
	_Atomic(const evc_task_class *) cls; /* NULL in the last: all others */
	_Atomic uint32_t n;
};

/* A stretch of callbacks on a loop's thread; says whether evc_free or detach
   took the reactor away meanwhile. */
struct evc__frame {
	struct evc__frame *up;
	bool gone;
};

/* What a reactor asks of its tasks; loop thread.  See members/task.c. */
struct evc__task_ops {
	/* The stop is there: tell some of them.  false: the reactor is gone. */
	bool (*tell)(evc_reactor *r, const struct evc__frame *f);
	/* The loop is gone: they have ended. */
	void (*drop)(evc_reactor *r);
};

struct evc_reactor {
	struct evc__listener listener; /* first: tell() gets it */
	/* set at creation */
	evc_coord *c;
	int tid;                    /* the loop's thread */
	char name[48];
	struct list node;           /* lock: c->reactors */
	ev_async async;             /* loop thread; sent to by any */

	/* written by the loop's thread; others read under the lock */
	struct ev_loop *loop;       /* NULL: it was destroyed */

	/* loop thread only */
	evc_task tasks, late;       /* heads of circular lists */
	evc_task *cursor;           /* the next task to tell, or &tasks */
	uint32_t told;              /* stop number whose telling began */
	unsigned n_live;            /* tasks in both lists */
	const evc_task_class *last_class;
	struct evc__task_count *last_count;
	struct evc__frame *frames;
	struct evc__driver *driver; /* an ev_run of ours; see run.c */
	ev_cleanup cleanup;
	ev_prepare prepare;         /* ends that ev_run from its depth 1 */
	const struct evc__task_ops *task_ops; /* set by the first task */
	struct list joins;          /* evented joins here; also under lock */

	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint32_t n_tasks;
	struct evc__task_count count[TASK_CLASSES + 1];
};

evc_status evc__reactor_attach(evc_coord *c, const char *name,
			       struct ev_loop *loop, evc_reactor **ret);
/* Loop thread: take it off its loop and free it. */
void evc__reactor_release(evc_reactor *r);
/* Loop thread: turn the loop once more and look. */
void evc__reactor_poke(evc_reactor *r);
/* Loop thread: hooks, tasks, joins - whatever the state asks for. */
void evc__reactor_turn(evc_reactor *r);
/* Lock held: a reactor whose loop the calling thread runs, or NULL. */
evc_reactor *evc__reactor_here(const evc_coord *c, evc_reactor *preferred);
evc_status evc__reactor_usable(const evc_reactor *r, const char *func);

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
void evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored);

/* ---- signals ---- */

/* Signal-safe: cut the grace of this round's joins. */
void evc__hurry(evc_coord *c, uint64_t grace_ns);

#endif
