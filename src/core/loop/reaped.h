/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children reaped by libev's default loop, which reaps every child of the
 * process.  Before Linux 6.15 only ev_child watchers know the status then.  So
 * each attached default loop has a watcher for all children, and notes the
 * status of the children expected here.
 */
#ifndef EVC_CORE_REAPED_H
#define EVC_CORE_REAPED_H

#include <ev.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/reap.h"

struct evc__reaped {
	/* set by evc__reaped_expect */
	struct list node;
	pid_t pid; /* 0: not expected */
	unsigned fork_generation;
	/* the lock of reaped.c */
	bool told;
	int status; /* as by wait(2) */
};

/* Any thread: e is told of the end of the child from now on. */
void evc__reaped_expect(struct evc__reaped *e, pid_t pid);
/* Any thread; a second call, and one before evc__reaped_expect, does nothing. */
void evc__reaped_forget(struct evc__reaped *e);
/* Any thread: has a default loop reaped the child?  Then *ret is the child's end. */
bool evc__reaped_told(struct evc__reaped *e, siginfo_t *ret);
/* Any thread: is there a default loop, which may have reaped a child and tells
   soon? */
bool evc__reaped_may_be_told(void);

/* Loop thread: a watcher of the loop, which may be any loop, and its end. */
void evc__reaped_watch(ev_child *w, struct ev_loop *loop,
		       void (*on_child)(struct ev_loop *loop, ev_child *w,
					int revents));
void evc__reaped_unwatch(ev_child *w, struct ev_loop *loop, bool inherited);
/* From on_child. */
void evc__reaped_note(const ev_child *w);

/* In a fork child, before anything else. */
void evc__reaped_inherited(void);

#endif
