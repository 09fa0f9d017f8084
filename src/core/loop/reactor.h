/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors from the inside: what an attached loop knows.
 */
#ifndef EVC_CORE_REACTOR_H
#define EVC_CORE_REACTOR_H

#include <ev.h>
#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"
#include "core/loop/loop_waker.h"
#include "core/stop/listener.h"
#include "core/member/member.h"

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

/* A looper on a loop, as counts and reports see it. */
struct evc__looper_view {
	const struct evc__entry *e;
	const evc_reactor *reactor; /* NULL: on a thread of its own */
	const char *name;
	bool alive;   /* false: created paused and not started yet */
	double grace; /* its own; 0: none */
	uint64_t since_ns, ticks, missed;
	const char *state; /* "paused", or "" */
};

/* What a reactor asks of its loopers; see members/.  Their table is guarded by
   the coordinator's lock. */
struct evc__looper_ops {
	/* Loop thread: the stop is there: end some of them; who needs another
	   turn pokes the reactor.  false: the reactor is gone. */
	bool (*stop)(evc_reactor *r, const struct evc__frame *f);
	/* No lock.  By the loop's thread when the loop is being destroyed: they
	   end, without a call.  Then, or instead, when r goes and none is
	   alive, by any thread: forget r. */
	void (*drop)(evc_reactor *r);
	/* Loop thread, no lock, in every turn: set its timer. */
	void (*turn)(evc_reactor *r);
	/* Lock held, any thread: those that were created paused and never
	   started vanish. */
	void (*forget)(evc_reactor *r);
	/* Lock held, perhaps given up meanwhile: as evc__member_ops.remove. */
	int (*remove)(struct evc__entry *e);
	/* Lock held: one, on a loop or on a thread of its own. */
	void (*view)(const struct evc__entry *e, struct evc__looper_view *v);
	/* Lock held: each of them, in any order. */
	void (*each)(const evc_reactor *r,
		     void (*fn)(const struct evc__looper_view *v, void *arg),
		     void *arg);
};

/* The part of a coordinator. */
struct evc__coord_loop {
	evc_reactor *home;   /* lock; set at creation, until its loop goes */
	bool no_home;        /* set at creation: EVC_NO_HOME */
	/* lock */
	struct list reactors;
	struct list hooks;
	_Atomic uint32_t n_hooks; /* changed under the lock */
	_Atomic uint32_t n_hooks_below;
};

struct evc_reactor {
	struct evc__listener listener; /* first: tell() gets it */
	/* set at creation */
	evc_coord *c;
	struct evc__loop_waker *waker;
	bool owner;                 /* of the bell: it attached the loop */
	int tid;                    /* the loop's thread */
	char name[48];
	evc_loop_ref *inbox;              /* see post.h; outlives r */
	struct list node;           /* lock: c->reactors */
	struct notify_place at;      /* bell's lock */
	/* atomic: the loop's thread, bell's lock -> who takes r away */
	_Atomic uint32_t turning;
	bool awaited;               /* bell's lock: somebody waits for that */

	/* written by the loop's thread; others read under the lock */
	struct ev_loop *loop;       /* NULL: it was destroyed */
	bool leaving;               /* it is being destroyed */

	/* loop thread only */
	evc_task tasks, late;       /* heads of circular lists */
	evc_task *cursor;           /* the next task to tell, or &tasks */
	uint32_t told;              /* stop number whose telling began */
	unsigned n_live;            /* tasks in both lists */
	const evc_task_class *last_class;
	struct evc__task_count *last_count;
	struct evc__frame *frames;
	struct evc__driver *driver; /* an ev_run of ours; see run.c */
	ev_prepare prepare;         /* ends that ev_run from its depth 1 */
	const struct evc__task_ops *task_ops; /* set by the first task */
	struct list joins;          /* evented joins here; also under lock */

	/* lock */
	struct evc__loopers *loopers; /* NULL: none yet */
	const struct evc__looper_ops *looper_ops; /* set by the first looper */
	unsigned n_loopers;         /* that are alive */
	unsigned n_loopers_background, n_loopers_own_grace; /* of them */
	unsigned n_runners;         /* that have to be called here */

	struct evc__mark mark;      /* of the callback of ours that runs */
	/* atomic, relaxed: the loop's thread -> reports, under the lock: what
	   it is in for this coordinator; see busy.c */
	_Atomic uint32_t busy_kind; /* enum evc__busy_kind */
	_Atomic(const char *) busy_name; /* valid for whoever has the lock */
	/* atomic: joins -> the loop's thread: ask the runners */
	_Atomic bool probe_runners;
	/* atomic: the loop's thread -> reports: the stop number it has seen */
	_Atomic uint32_t heard;
	/* atomic, relaxed: the loop's thread -> reports */
	_Atomic uint32_t n_tasks;
	_Atomic uint32_t
		tasks_wrong; /* likewise, and whoever ends one wrongly */
	struct evc__task_count count[TASK_CLASSES + 1];
};

/* evc_reactor.tasks_wrong: why some of its tasks may never end. */
#define TASKS_FOREIGN 1 /* evc_task_end on another thread, which did nothing */
#define TASKS_BROKEN 2  /* a task's memory was used for something else */
/* In words, after the name of the loop; "". */
const char *evc__tasks_wrong(const evc_reactor *r);
/* Loop thread: does t stand in its list, as far as can be seen? */
static inline bool
evc__task_intact(const evc_reactor *r, const evc_task *t)
{
	return t->reactor_ == r && t->next_ != NULL && t->next_->prev_ == t;
}

evc_status evc__reactor_attach(evc_coord *c, const char *name,
			       struct ev_loop *loop, evc_reactor **ret);
/* Any thread: a reactor of c that shares the watchers of another's. */
evc_status evc__reactor_share(evc_coord *c, const char *name,
			      evc_reactor *with, evc_reactor **ret);
/* Loop thread, or any when it shares and nothing lives on it: take it off its
   loop and free it. */
void evc__reactor_release(evc_reactor *r);
/* Loop thread: its loop is gone for it.  false: so is the reactor.  An owner's
   bell has still to be left. */
bool evc__reactor_lost(evc_reactor *r);
/* Loop thread: it is; from now on another thread may free the coordinator. */
void evc__reactor_left(evc_reactor *r);
/* Loop thread, or lock held: turn the loop once more and look. */
void evc__reactor_poke(evc_reactor *r);
/* Loop thread: for a join or a run, hear every ring and keep the loop running,
   and begin with a look; or do so no more. */
void evc__reactor_hear(evc_reactor *r, bool yes);
/* Loop thread: note, for reports, which stop it has heard of; the word. */
uint64_t evc__reactor_heard(evc_reactor *r);
/* Lock held: a reactor whose loop the calling thread runs, or NULL. */
evc_reactor *evc__reactor_here(const evc_coord *c, evc_reactor *preferred);
/* How many loopers are alive on it.  No lock. */
unsigned evc__reactor_loopers(const evc_reactor *r);
evc_status evc__reactor_usable(const evc_reactor *r, const char *func);

/* ---- busy.c: what a loop's thread is in just now ---- */

enum evc__busy_kind {
	BUSY_APPLICATION, /* nothing of ours: a callback of the application, or
			     outside ev_run */
	BUSY_TURN,        /* our own turn, between callbacks */
	BUSY_HOOK,
	BUSY_TASKS,       /* the on_stop of a task class */
	BUSY_LOOPER,
	BUSY_RUNNER,
	BUSY_JOIN,        /* the callback of an evented join */
	BUSY_ENDED,       /* of a scope */
	BUSY_SETUP,       /* of evc_reactor_start */
	BUSY_LOG,         /* the log hook */
	BUSY_POST,        /* of evc_post */
	BUSY_ELSEWHERE    /* something of ours for another coordinator */
};

/* A callback in progress, and what stood there before; in the frame that calls
   it. */
struct evc__busy {
	struct evc__busy *up; /* the one that this one is nested in */
	evc_reactor *r;       /* NULL: it is gone, or there is none */
	struct evc__mark *mark; /* the rest is of before: whose mark it was */
	const char *text;     /* what r's own said */
	const char *name;
	uint32_t kind;
	int cancel;           /* whether the thread could be cancelled */
};

/* Loop thread: a callback of c's begins on r (NULL: on the reactor that this
   thread is turning, if it is); its progress speaks for that one.  name: what it
   is called; it must be valid for whoever holds c's lock until
   evc__busy_end.  They nest.  The thread cannot be cancelled meanwhile. */
void evc__busy_begin(evc_reactor *r, const evc_coord *c,
		     enum evc__busy_kind kind, const char *name,
		     struct evc__busy *keep);
/* It has returned; the reactor may be gone. */
void evc__busy_end(struct evc__busy *keep);
/* Loop thread, inside a stretch on r, which stays: one of many callbacks of that
   kind, for a store or two. */
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
/* Who takes r away: stretches on it that the calling thread is in have lost
   it. */
void evc__busy_forget(evc_reactor *r);
/* In a fork child: its stretches are over.  What is still on its stack of them
   finds the reactors gone, and can take the locks. */
void evc__busy_inherited(void);
/* The calling thread has left them all by pthread_exit. */
void evc__busy_left(void);

/* What a report says of a loop. */
struct evc__silence {
	/* A stop stands, and the loop has not turned for r since. */
	bool silent;
	/* How old the present iteration is, by its ev_now: how long silent, when
	   it is; < 0: the loop has not run yet. */
	double since_s;
	/* What it is in, silent or not: one that has heard of the stop may be
	   stuck in a hook. */
	enum evc__busy_kind kind;
	char name[48]; /* "" where there is none */
};
/* Lock held, any thread. */
struct evc__silence evc__reactor_silence(const evc_reactor *r);
/* "stop hook" ... "a callback of the application": to stand before its
   name. */
const char *evc__busy_text(enum evc__busy_kind kind);

#endif
