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
#include "core/stop/listener.h"
#include "core/member/member.h"
#include "core/loop/reactor.h"

/*
 * The word.  Low half: flags, and the number of stops that were cleared; high
 * half: code and slot of the winning request and of the first error.  The low
 * half is also what threads that wait for the stop sleep on.
 */
#define WORD_FLAG UINT64_C(1)    /* a stop was asked for: the header reads it */
#define WORD_DRAIN UINT64_C(2)   /* a drain was: likewise */
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
	/* atomic: a scope's report, once the word has it -> clear */
	_Atomic bool reported;
};

struct evc__chore;
struct evc__helper;
struct evc__join;
struct evc__keeper;
struct evc__ladder;
struct evc__systemd;
struct evc__trace;

/*
 * What lower parts of core have done by the parts above them; one table, in
 * life/coord.c.
 */
struct evc__upper {
	/* loop/hook.c, helper thread: run the stop hooks without a loop. */
	void (*run_hooks)(evc_coord *c, evc_reactor *r);
	/* join/keeper.c, helper thread: keep the join of a coordinator without
	   a home. */
	bool (*serve)(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns);
	/* life/abandon.c, helper thread: nobody is left in an abandoned root. */
	void (*end_abandoned)(evc_coord *c);
	/* join/rouse.c, helper thread: wake members that cannot hear. */
	uint64_t (*rouse)(evc_coord *c, struct evc__chore *k);
	/* join/turn.c, loop thread: do what is due.  false: r is gone. */
	bool (*turn)(evc_reactor *r);
	/* join/loop.c, loop thread: the loop is gone, answer its joins. */
	void (*cancel_joins)(evc_reactor *r, struct ev_loop *loop,
			     const struct evc__frame *f);
};

/* What all coordinators of a tree share; in its root. */
struct evc__tree {
	const struct evc__upper *upper; /* set at creation */
	/* A leaf: nothing but bells and gates are under it. */
	pthread_mutex_t lock;
	struct evc__helper *helper; /* lock; one for all */
	_Atomic bool has_helper;    /* atomic: who made it -> joins */
	/* atomic: the helper -> joins: since when it is at one client, in real
	   monotonic time; 0: it is not */
	_Atomic uint64_t serving_ns;
	/* atomic: threads of the helper that were relieved and end -> joins:
	   how many are to be joined */
	_Atomic uint32_t n_ended;
	/* atomic: somebody in the tree has a grace of its own -> joins */
	_Atomic bool own_grace;
	/* atomic: some scope has a phase -> joins */
	_Atomic bool phased;
	/* atomic: the timeline, while it is on; see trace.h */
	_Atomic(struct evc__trace *) trace;
	_Atomic(struct evc__trace *) recorded; /* the last one that was on */
	struct evc__trace *rings; /* root's lock: all there are */
	_Atomic uint32_t n_coords; /* numbers them */
};

/* What has happened since a coordinator was made; its lock. */
#define TOOK_BUCKETS 9
struct evc__stats {
	uint64_t stops;     /* that a join has ended, or that were cleared */
	uint64_t kicks, unblocks;
	uint64_t stragglers; /* named by joins, each join's once */
	uint64_t missed;    /* runs of loopers that have ended */
	uint64_t took[TOOK_BUCKETS + 1]; /* stops by how long they took */
	double took_sum;
};
/* Seconds: took[i] counts those up to it, the last one all others. */
extern const double evc__took_bounds[TOOK_BUCKETS];

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
	void *log_arg;
	uint64_t (*clock)(void *);
	void *clock_arg;
	evc_reactor *home;

	/* set at creation: where it stands in the tree; see scope.c */
	evc_coord *parent;       /* NULL: a root */
	struct evc__tree *tree;
	unsigned depth, on_error;
	bool no_home;            /* EVC_NO_HOME */
	uint32_t number;         /* in the tree; the root is 1 */
	int phase;
	struct evc__listener up; /* in the parent's table */
	struct list sibling;     /* parent's lock: in its scopes */
	_Atomic uint32_t *slot_word; /* partner: slot[]; see reason.c */
	struct evc__slot *slot;

	/* atomic: any requester -> joins */
	_Atomic uint32_t arrivals; /* numbers the reasons */
	_Atomic uint64_t errors;  /* (stops << 32 | n): errors not in the word */
	_Atomic uint32_t mark;    /* stop number whose walk is complete */
	_Atomic uint32_t own;     /* stop number somebody but the parent asked
				     for */
	_Atomic uint32_t told;    /* the parent's stop number that was told */
	_Atomic uint32_t swept;   /* stop number that a clear of the parent has
				     ended, or tries to */
	_Atomic uint64_t drain_end; /* when a drain becomes a stop; 0: none was
				       asked for here */
	_Atomic uint64_t hurry;      /* a second signal; see hurry.c */
	_Atomic uint64_t hurry_grace_ns; /* signals/ -> joins */

	/* atomic: who sleeps -> who wakes; see wait.c */
	_Atomic uint32_t n_waiters;  /* for the stop: on the word, in wake/ */
	_Atomic uint32_t join_seq;   /* moves before each wake of joins */
	_Atomic uint32_t n_sleepers; /* on join_seq */
	_Atomic int stop_fd;         /* -1: not made yet */
	struct gate fd_gate;         /* around uses of stop_fd */
	struct gate gate;            /* around ends, joins, waits */
	struct walkers pollers;      /* waits by stop_fd; see wake/wait_fd.c */

	/* listeners; see notify.c */
	struct walkers walkers;
	_Atomic uint32_t n_listeners;
	_Atomic uint32_t n_loop_joins;
	_Atomic uint32_t n_hooks; /* changed under the lock */
	struct board listeners[LISTENER_KINDS];
	/* atomic: joins in progress, the library's own aside -> requests */
	_Atomic uint32_t n_driving;

	/* atomic: threads and holds one each, a reactor with tasks one, a
	   looper one, a scope that is held or in which something lives one */
	_Atomic uint32_t alive;
	_Atomic uint32_t n_live_scopes; /* of them */
	/* atomic: in the scopes below, at any depth */
	_Atomic uint32_t n_probed_below, n_lingering_below, n_ended_below;
	_Atomic uint32_t n_hooks_below;
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
	struct list scopes;  /* by their sibling */
	unsigned n_phased;   /* of them, with a phase */
	uint32_t phases_done; /* stop number of which all were told */
	bool held;           /* evc_scope_ready has not been called */
	bool dying;          /* evc_free goes on to the end */
	uint64_t ready_ns;   /* when it was made, for its age */
	_Atomic(struct evc__keeper *) keeper; /* see keeper.c */
	struct evc__drain *drain;   /* see drain.c */
	struct evc__step *step;     /* see join_step.c */
	struct evc__client *client; /* see helper.c */
	struct evc__entry **id_table;
	unsigned id_buckets, n_entries;
	evc_id last_id;
	unsigned n_members;  /* entries of members */
	unsigned n_threads, n_probed, n_own_grace, n_background; /* of them */
	unsigned n_lingering; /* likewise */
	unsigned n_ended;    /* in this round, tasks aside */
	uint64_t spent_ns;   /* when a join of this stop gave up; 0: none did */
	uint64_t put_off_ns; /* its end was put off to then; 0: it was not, */
	uint64_t put_off_at; /* at that time */
	uint64_t seen_ns;    /* when a stop without a slot was first seen */
	unsigned lost_logged; /* errors without a slot, already told */
	/* atomic, changed under the lock: numbers of the last stops whose begin,
	   whose end was told to the log */
	_Atomic uint32_t begun_logged, over_logged;
	evc_verdict verdict; /* of the closed round */
	void (*release_signals)(evc_coord *c); /* set by signals/ */
	unsigned n_runners;  /* of members */
	unsigned n_conds;    /* made and not freed; see wake/cond.c */
	const struct evc__runner_driver *runners; /* set by the first one */
	struct list runner_list; /* by members/; made by the first one */
	const struct evc__looper_ops *looper_ops; /* set by the first one */
	struct list dormant; /* loopers with a thread of their own to come, that
				were created paused; made by the first looper */
	struct list chores;  /* see chore.h */
	uint32_t chore_pass, rouse_pass;
	struct list wakers;  /* see ladder.h, and what they do: */
	struct list echoes;  /* wakers that run, whose members are gone */
	unsigned n_echoes, n_pushed;
	struct evc__chore *rouse;
	struct evc__chore *last_chance; /* or NULL */
	struct evc__chore *owner; /* set by evc_abandon */
	uint64_t rung_ns[5]; /* when the present stop reached each; 0: not, or
				the first, which is the stop itself */
	unsigned n_kicks, n_unblocks; /* in the present stop */
	const char *kicks_lost; /* in it: why kicks wake nobody; or NULL */
	struct list vetoes;  /* of the present stop */
	uint64_t last_mark;  /* the latest of those that have left; see
				ladder.c */
	struct evc__stats stats;
	/* atomic: evc_ladder_set -> anybody; NULL: that of the parent */
	_Atomic(struct evc__ladder *) ladder;
	/* atomic: evc_abandon -> the helper: it frees c when nobody is alive */
	_Atomic bool abandoned;
	/* set by rooms above; called when c goes, before its parts do */
	void (*release_dump)(evc_coord *c);
	void (*release_systemd)(evc_coord *c);
	struct evc__systemd *systemd; /* lock */
};

/* ---- coord.c ---- */

evc_status evc__coord_make(const evc_config *k, const char *func,
			   evc_coord *parent, evc_coord **ret_c);
void evc__coord_destroy(evc_coord *c);
/* Nobody else but those inside the gate, and the helper, can reach c: take it
   down and free it. */
void evc__coord_take_down(evc_coord *c);
/* The signal handlers that belong to c go. */
void evc__coord_release_handlers(evc_coord *c);

/* 0, or why a call may not go on: c is NULL or inherited by a fork child. */
evc_status evc__check(const evc_coord *c, const char *func);
/* 0: inside c's own gate, to be left again; else `refused`: c is being freed.
   Callers check first. */
evc_status evc__enter(evc_coord *c, evc_status refused, const char *func);

/* Monotonic nanoseconds by c's clock. */
uint64_t evc__now(const evc_coord *c);

/* Is this process the one that made c? */
static inline bool
evc__same_process(const evc_coord *c)
{
	return sync_load_relaxed(&evc__fork_generation) == c->fork_generation;
}

/* Let a fork child begin anew with what its one thread was to the parent's
   coordinators. */
void evc__inherit_watch(void);

/* ---- status.c ---- */

/* Has c not had the text of evc_last_error as an error of its own?  From now on,
   it has. */
bool evc__refusal_is_new(const evc_coord *c);
/* Note why the calling thread's call is refused; returns the status. */
#define evc__refuse evc_refuse
/* The same without a format, and safe in signal handlers: "func: why". */
evc_status evc__refuse_plain(evc_status s, const char *func, const char *why);
#define evc__refuse_setup evc_refuse_setup
/* A name of the user's: not longer than there is room for. */
evc_status evc__check_name(const char *name, const char *func);
/* kind: whose options; EVC_GUARD is no member. */
#define EVC_GUARD 0
evc_status evc__check_opts(const evc_member_opts *o, unsigned kind,
			   const char *func);
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
	bool report;     /* an error that asks for no stop */
	evc_id by;       /* 0: the calling thread's member, if it is one */
	const char *who; /* NULL: the calling thread's name */
	const char *text, *file, *func;
	int line;
	uint32_t stop; /* not 0: it is for the stop with this number alone */
};

/* Ask for the stop; signal-safe.  0, or the code handed back. */
evc_status evc__request(evc_coord *c, const struct evc__request *q);
/* The same, but tell nobody yet. */
evc_status evc__request_record(evc_coord *c, const struct evc__request *q,
			       bool *ret_error);
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
/* Lock held: a round without a stop is over: what scopes have reported. */
void evc__reports_forget(evc_coord *c, uint64_t w);
void evc__error_count(evc_coord *c, uint64_t w);

/* ---- self: what the calling thread last did; stop.c ---- */

/* Whose function this thread is in: a looper on a loop. */
struct evc__acting {
	const evc_coord *c;
	evc_id id;
	const char *name;
};

struct evc__self {
	struct evc__member *member; /* the member this thread is */
	struct evc__mark *mark;     /* where a checkpoint of its goes, or NULL */
	struct evc__waker *pushed;  /* the innermost cancel hook of its */
	const evc_coord *roused_in; /* whose cancel hook was called before it */
	uint32_t roused_stop;       /* was popped, in the stop with this number */
	const struct evc__acting *acting; /* for the time of a call, or NULL */
};
struct evc__self *evc__self(void);
/* In a fork child: it is nobody; where it was, it can take the lock. */
void evc__self_inherited(void);
/* The calling thread is this member. */
void evc__self_is(struct evc__member *m);

/* ---- wait.c ---- */

/* evc_wait_for_stop, also inside ev_run. */
bool evc__wait_for_stop(evc_coord *c, double timeout);
void evc__wake_waiters(evc_coord *c);
void evc__settle(evc_coord *c);
void evc__stop_fd_close(evc_coord *c);

/* ---- helper.c ---- */

/* Lock held: make the tree's helper thread unless it is there, and let it serve
   c; with fds also its descriptors.  false: it cannot be had. */
bool evc__helper_need(evc_coord *c, bool fds);
/* Lock held: let it watch m's pidfd. */
bool evc__helper_watch(evc_coord *c, struct evc__member *m);
void evc__helper_unwatch(evc_coord *c, struct evc__member *m);
/* Any thread: let it look at c, if it serves c. */
void evc__helper_ring(evc_coord *c);
/* It serves c no more; of a root, it ends. */
void evc__helper_end(evc_coord *c);
bool evc__helper_is_self(const evc_coord *c);
/* Any thread but it, in a stop: if it hangs in a function of the user's, have
   another one.  c's lock may be held. */
void evc__helper_relieve(evc_coord *c);
/* Lock held: it hears every ring of c; or does so no more. */
void evc__helper_hear(evc_coord *c, bool yes);
/* Helper thread: c is a root that was abandoned by all; it ends with it. */
void evc__helper_farewell(evc_coord *c);
void evc__abandoned_end(evc_coord *c); /* abandon.c: for that */
/* The helper thread is in a call for c, from which c may be freed: it will not
   touch c again. */
bool evc__helper_let_go(evc_coord *c);

/* ---- log.c ---- */

/* Tell the log hook what it has not heard of: that a stop was asked for, errors,
   that the stop is over.  No lock. */
void evc__log_errors(evc_coord *c);
/* Lock held: is the end of w's stop still to be told?  From now on, not. */
bool evc__log_over_due(evc_coord *c, uint64_t w);
/* The stop is over, as v says. */
void evc__log_over(evc_coord *c, const evc_verdict *v);
/* join/verdict.c: evc__log_errors, also for a round that no join has closed: its
   stop is over when nobody is alive. */
void evc__log_end(evc_coord *c);
/* What a hook said of a stop that was cleared. */
void evc__log_hook(evc_coord *c, const char *name, evc_status st);
void evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored);
/* A rung of ladder.h was reached, with these still alive; somebody has asked for
   more time.  No lock. */
void evc__log_rung(evc_coord *c, unsigned rung, const char *names);
void evc__log_veto(evc_coord *c, const char *name, double granted,
		   const char *reason);

/* ---- signals ---- */

/* Signal-safe: cut the grace of the joins of the stop with this number. */
void evc__hurry(evc_coord *c, uint32_t stop);
/* That stop was cleared. */
void evc__hurry_forget(evc_coord *c, uint32_t stop);
/* When that was, or 0. */
uint64_t evc__hurried(const evc_coord *c, uint32_t stop);

#endif
