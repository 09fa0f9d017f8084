/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors from the inside: the state of an attached loop.
 */
#ifndef EVC_CORE_REACTOR_H
#define EVC_CORE_REACTOR_H

#include <ev.h>
#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"
#include "core/loop/loop_waker.h"
#include "core/loop/timer.h"
#include "core/stop/listener.h"
#include "core/member/member.h"

struct text;

#define TASK_CLASSES 15
struct evc__task_count {
	/* atomic: the loop's thread -> reports */
	_Atomic(const evc_task_class *) cls; /* NULL in the last element: all
						other classes */
	_Atomic uint32_t n;
};

/* What reports say of single tasks: a copy, because only the loop's thread may
   touch tasks.  The loop's thread makes the copy in its turns after a stop. */
#define TASK_TEXTS 4
struct evc__task_texts {
	/* lock; written by the loop's thread */
	uint32_t stop;     /* number of the stop of the copy; 0: none */
	/* of the reactor, when the copy was made */
	uint32_t n_tasks, n_after;
	unsigned n;
	uint64_t ns;       /* time of the copy */
	struct evc__task_text {
		const evc_task *task; /* not to be followed */
		const struct evc__task_count *count;
		uint32_t n;    /* tasks of the class when the copy was made: a
				  later end of a task makes the text stale */
		double age;    /* seconds, at the time of the copy */
		char text[56]; /* by `describe` of the class, or "" */
	} of[TASK_TEXTS]; /* the oldest tasks, the oldest first */
};

/* Lock held, any thread: from text *i of r on, the next one about one of the n
   tasks that class k has now, and the present age of this task; *i goes behind
   that text.  NULL: there is none. */
const struct evc__task_text *
evc__task_text_next(const evc_reactor *r, unsigned *i,
		    const struct evc__task_count *k, uint32_t n,
		    double *ret_age);

/* The lists of a reactor's tasks, in the order of the tasks' begin. */
#define TASK_LISTS 4
#define TASK_HEADS(r) \
	{ &(r)->over, &(r)->pending, &(r)->tasks, &(r)->after }

/* When the tasks of a reactor are late: see members/task_late.c; loop thread
   only. */
struct evc__task_late {
	bool wanted;       /* a class with on_late has had a task here */
	bool walking;      /* a walk has begun and is not over */
	bool armed;        /* the timer is on the loop */
	uint32_t stop;     /* the fields below are about this stop */
	uint64_t begin, most; /* its time, and the coordinator's grace, in ns */
	uint64_t cut;      /* the grace was cut at this time; 0: it was not */
	uint64_t due;      /* time of the next walk */
	uint64_t next;     /* ... after the walk that goes on */
	uint64_t armed_for;
	struct evc__timer timer;
	struct evc__stand stand;
};

/* A running callback of the library for a reactor; a local variable of the
   callback.  gone: evc_free or a detach has taken the reactor away
   meanwhile. */
struct evc__frame {
	struct evc__frame *up;
	bool gone;
};

/* The operations of tasks for a reactor; loop thread.  See members/task.c. */
struct evc__task_ops {
	/* A stop: tell some of the tasks.  false: the reactor is gone. */
	bool (*tell)(evc_reactor *r, const struct evc__frame *f);
	/* A stop: copy what reports may say of single tasks.  false: the
	   reactor is gone. */
	bool (*describe)(evc_reactor *r, const struct evc__frame *f);
	/* The loop is gone: the tasks have ended. */
	void (*drop)(evc_reactor *r);
};

/* A looper on a loop, as counts and reports see it. */
struct evc__looper_view {
	const struct evc__entry *e;
	const evc_reactor *reactor; /* NULL: the looper has a thread of its
				       own */
	const char *name;
	bool alive;   /* false: created paused and not started yet */
	double grace; /* its own grace; 0: none */
	uint64_t since_ns, ticks, missed;
	const char *state; /* "paused", or "" */
};

/* The operations of loopers for a reactor; see members/. The coordinator's lock
   guards the table of loopers. */
struct evc__looper_ops {
	/* Loop thread, a stop: end some loopers; when loopers are left, poke
	   the reactor for another turn.  false: the reactor is gone. */
	bool (*stop)(evc_reactor *r, const struct evc__frame *f);
	/* No lock.  By the loop's thread when the loop is being destroyed: the
	   loopers end, without a call.  Then, or instead, when r goes and no
	   looper is alive, by any thread: forget r. */
	void (*drop)(evc_reactor *r);
	/* Loop thread, no lock, in every turn: set the loopers' timer. */
	void (*turn)(evc_reactor *r);
	/* Lock held, any thread: loopers that were created paused and never
	   started vanish. */
	void (*forget)(evc_reactor *r);
	/* Lock held, perhaps given up meanwhile: as evc__member_ops.remove. */
	int (*remove)(struct evc__entry *e);
	/* Lock held: a looper, on a loop or on a thread of its own. */
	void (*view)(const struct evc__entry *e, struct evc__looper_view *v);
	/* Lock held: call fn for each looper, in any order. */
	void (*each)(const evc_reactor *r,
		     void (*fn)(const struct evc__looper_view *v, void *arg),
		     void *arg);
};

/* This part of a coordinator. */
struct evc__coord_loop {
	/* atomic: set at creation, or by the first hosted reactor, under the
	   lock -> any thread; until its loop goes */
	_Atomic(evc_reactor *) home;
	bool no_home;        /* set at creation: EVC_NO_HOME */
	/* lock */
	struct list reactors;
	struct list hooks;
	_Atomic uint32_t n_hooks; /* changed under the lock */
	_Atomic uint32_t n_hooks_below;
};

struct evc_reactor {
	struct evc__listener listener; /* first: tell() casts it to a reactor */
	/* set at creation */
	evc_coord *c;
	struct evc__loop_waker *waker;
	bool owner;                 /* of the loop_waker: this reactor attached
				       the loop */
	bool hosted;                /* `loop` is the inner loop of a host */
	int tid;                    /* the loop's thread */
	char name[48];
	evc_loop_ref *inbox;              /* see post.h; outlives r */
	struct list node;           /* lock: c->reactors */
	struct notify_place at;      /* loop_waker's lock */
	/* atomic: the loop's thread, loop_waker's lock -> the thread that takes
	   r away: how many calls have r pinned */
	_Atomic uint32_t turning;
	bool awaited;               /* loop_waker's lock: a thread waits for the
				       end of `turning` */

	/* written by the loop's thread; others read under the lock */
	struct ev_loop *loop;       /* NULL: the loop was destroyed */
	bool leaving;               /* the loop is being destroyed */

	/* loop thread only */
	/* heads of circular lists: tasks to be told; begun after the stop, and
	   not told; late, and told so; seen by the walk for on_late, and not
	   late yet */
	evc_task tasks, after, over, pending;
	struct evc__task_late late;
	evc_task *cursor;           /* the next task to tell, or &tasks */
	uint32_t told;              /* number of the stop that began to be
				       told */
	unsigned n_live;            /* tasks in all lists */
	bool describing;            /* inside `describe` of a class */
	const evc_task_class *last_class;
	struct evc__task_count *last_count;
	struct evc__frame *frames;
	struct evc__driver *driver; /* the present ev_run of the library; see
				       run.c */
	ev_prepare prepare;         /* ends that ev_run from depth 1 */
	const struct evc__task_ops *task_ops; /* set by the first task */
	struct list joins;          /* evented joins here; also under lock */
	bool host_runs;             /* see evc_reactor_host_runs */
	struct evc__timer again;    /* turns a host that runs after the answer
				       of its join */
	uint64_t again_ns;          /* the present wait of `again` */

	/* lock */
	struct evc__loopers *loopers; /* NULL: none yet */
	const struct evc__looper_ops *looper_ops; /* set by the first looper */
	unsigned n_loopers;         /* loopers that are alive */
	unsigned n_loopers_background, n_loopers_own_grace; /* counts of the
							       loopers */
	unsigned n_runners;         /* runners with calls on this loop */

	struct evc__mark mark;      /* progress of the library's callback that
				       runs */
	/* atomic, relaxed: the loop's thread -> reports, under the lock: the
	   function of this coordinator that runs; see busy.c */
	_Atomic uint32_t busy_kind; /* enum evc__busy_kind */
	_Atomic(const char *) busy_name; /* valid for a thread that holds the
					    lock */
	/* atomic: joins -> the loop's thread: ask the runners */
	_Atomic bool probe_runners;
	/* atomic: the loop's thread -> reports: number of the last stop seen */
	_Atomic uint32_t heard;
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint32_t n_tasks;
	_Atomic uint32_t n_after; /* tasks begun after a stop, ended or not */
	_Atomic uint32_t
		tasks_wrong; /* atomic, relaxed: the loop's thread, and a thread
				that ends a task wrongly -> reports */
	struct evc__task_count count[TASK_CLASSES + 1];
	struct evc__task_texts texts;
	uint64_t asked_ns; /* lock: when a join has asked for new texts; 0:
			      never */
};

/* evc_reactor.tasks_wrong: why tasks of the reactor may never end. */
#define TASKS_FOREIGN 1 /* evc_task_end on another thread, without effect */
#define TASKS_BROKEN 2  /* a task's memory was used for other data */
/* The text of tasks_wrong, for after the name of the loop; "": none. */
const char *evc__tasks_wrong(const evc_reactor *r);
/* Loop thread: is t in its list, as far as can be seen? */
static inline bool
evc__task_intact(const evc_reactor *r, const evc_task *t)
{
	return t->reactor_ == r && t->next_ != NULL && t->next_->prev_ == t;
}

/* Loop thread: the time for ages of tasks.  The inner loop of a host has the
   time of its last turn only. */
static inline double
evc__reactor_now(const evc_reactor *r)
{
	return __builtin_expect(r->hosted, 0) ? evc__host_now() :
						ev_now(r->loop);
}

/* host: NULL, or that of the loop. */
evc_status evc__reactor_attach(evc_coord *c, const char *name,
			       struct ev_loop *loop, struct evc__host *host,
			       evc_reactor **ret);
/* Any thread: a reactor of c that shares the watchers of another reactor, and
   its name. */
evc_status evc__reactor_share(evc_coord *c, evc_reactor *with,
			      _Atomic(evc_reactor *) *ret);
/* Loop thread, or any thread when r shares and nothing lives on r: take r off
   its loop and free r. */
void evc__reactor_release(evc_reactor *r);
/* Loop thread: r has lost its loop.  false: the reactor is gone as well.  An
   owner's loop_waker has still to be left. */
bool evc__reactor_lost(evc_reactor *r);
/* Loop thread: the loop_waker is left; another thread may now free the
   coordinator. */
void evc__reactor_left(evc_reactor *r);
/* Loop thread, or lock held: turn the loop once more and look. */
void evc__reactor_poke(evc_reactor *r);
/* Loop thread, for a join or a run.  yes: from now on each ring turns r, the
   loop keeps running, and a first turn follows; no: the end of all this. */
void evc__reactor_hear(evc_reactor *r, bool yes);
/* Loop thread: note, for reports, the number of the stop that r has heard of;
   returns the word. */
uint64_t evc__reactor_heard(evc_reactor *r);
/* Loop thread: the host of r runs from now on, or has returned; see
   evc_reactor_host_runs. */
void evc__reactor_host_runs(evc_reactor *r, bool runs);
/* Loop thread: a join is answered with which a run of the host of r ends. */
void evc__reactor_answered(evc_reactor *r);
/* Lock held: a reactor of a loop that the calling thread runs, or NULL. */
evc_reactor *evc__reactor_here(const evc_coord *c, evc_reactor *preferred);
/* How many loopers are alive on r.  No lock. */
unsigned evc__reactor_loopers(const evc_reactor *r);
evc_status evc__reactor_usable(const evc_reactor *r, const char *func);

/* ---- busy.c: the function that a loop's thread is in ---- */

enum evc__busy_kind {
	BUSY_APPLICATION, /* a callback of the application, or outside ev_run */
	BUSY_TURN,        /* the library's own turn, between callbacks */
	BUSY_HOOK,
	BUSY_TASKS,       /* the on_stop of a task class */
	BUSY_LATE,        /* the on_late of a task class */
	BUSY_DESCRIBE,    /* the describe of a task class */
	BUSY_LOOPER,
	BUSY_RUNNER,
	BUSY_JOIN,        /* the callback of an evented join */
	BUSY_ENDED,       /* `ended` of a scope */
	BUSY_SETUP,       /* the setup of evc_reactor_start */
	BUSY_POST,        /* a function of evc_post */
	BUSY_ELSEWHERE    /* a callback for another coordinator */
};

/* A callback in progress, and the state before; a local of the calling
   function. */
struct evc__busy {
	struct evc__busy *up; /* the call around this call */
	evc_reactor *r;       /* NULL: the reactor is gone, or there is none */
	struct evc__mark *mark; /* state before: the thread's progress mark */
	const char *text;     /* state before: r's progress text */
	const char *name;
	uint32_t kind;
	bool counted;         /* in waker->busy: a callback */
	int cancel;           /* state before: cancel state of the thread */
};

/* Loop thread: a callback of c's begins on r (NULL: on the reactor that this
   thread is turning, if any); progress in the callback counts for that reactor.
   name: the name of the callback, valid until evc__busy_end for a thread that
   holds c's lock. Callbacks nest. The thread cannot be cancelled
   meanwhile. */
void evc__busy_begin(evc_reactor *r, const evc_coord *c,
		     enum evc__busy_kind kind, const char *name,
		     struct evc__busy *keep);
/* The callback has returned; the reactor may be gone. */
void evc__busy_end(struct evc__busy *keep);
/* Loop thread, inside evc__busy_begin on r, which stays: a callback begins, of
   many of the same kind; this costs only a few stores. */
struct evc__busy_part {
	const char *name, *text;
};
static inline struct evc__busy_part
evc__busy_enter(evc_reactor *r, const char *name)
{
	struct evc__busy_part before = {
		.name = sync_load_relaxed(&r->busy_name),
		.text = sync_load_relaxed(&r->mark.text),
	};

	sync_store_relaxed(&r->busy_name, name);
	sync_store_relaxed(&r->mark.text, NULL);
	return before;
}
static inline void
evc__busy_leave(evc_reactor *r, struct evc__busy_part before)
{
	sync_store_relaxed(&r->busy_name, before.name);
	sync_store_relaxed(&r->mark.text, before.text);
}
/* r is being taken away: calls in progress on the calling thread forget r. */
void evc__busy_forget(evc_reactor *r);
/* In a fork child: no call is in progress on this thread.  Calls that are still
   on its stack find the reactors gone, and the locks free. */
void evc__busy_inherited(void);
/* The calling thread has left all calls by pthread_exit. */
void evc__busy_left(void);

/* The facts of a loop for a report. */
struct evc__silence {
	/* There is a stop, and the loop has not turned for r since. */
	bool silent;
	/* The loop waits for events; a hosted loop: no turn is due. */
	bool rests;
	/* The age of the present iteration, by its ev_now: the length of the
	   silence of a silent loop; < 0: the loop has not run yet. */
	double since_s;
	bool least; /* of a hosted loop: the silence may be longer */
	/* The function that the thread is in, silent or not: a loop that has
	   heard of the stop may be stuck in a hook. */
	enum evc__busy_kind kind;
	char name[48]; /* "" without a name */
};
/* Lock held, any thread. */
struct evc__silence evc__reactor_silence(const evc_reactor *r);
/* Lock held: for each loop that has not turned since the stop of c, add
   "; loop home has not turned: in looper tick". */
void evc__text_silent_loops(struct text *t, const evc_coord *c);
/* "stop hook" ... "a callback of the application": the words before a name. */
const char *evc__busy_text(enum evc__busy_kind kind);

#endif
