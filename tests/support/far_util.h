/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests with a loop thread share: a loop on a thread of its own, a reactor
 * of the test's coordinator.  The loop runs until the stop, and is destroyed
 * then: the next round needs a new one.
 */
#ifndef TESTS_SUPPORT_FAR_UTIL_H
#define TESTS_SUPPORT_FAR_UTIL_H

#include "api_util.h"

#include <ev.h>

/* The callback of a timer that ends all runs of the loop. */
static MAYBE_UNUSED void
break_all(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

struct far {
	/* the test says; begin may be NULL, and is called on the thread before
	   the loop runs */
	evc_coord *c;
	evc_status (*begin)(evc_reactor *r, void *arg);
	void *arg;
	/* what was seen */
	pthread_t thread;
	_Atomic(evc_reactor *) r; /* set when begin has returned */
	atomic_int tid;
	evc_status status;
	char error[200];
};

static MAYBE_UNUSED void *
far_main(void *arg)
{
	struct far *f = arg;
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_reactor *r = NULL;

	f->status = evc_reactor_attach(f->c, "far", loop, &r);
	if (f->status == 0 && f->begin != NULL)
		f->status = f->begin(r, f->arg);
	atomic_store(&f->tid, own_tid());
	atomic_store(&f->r, r);
	if (f->status == 0)
		f->status = evc_reactor_run(r);
	snprintf(f->error, sizeof(f->error), "%s", evc_last_error());
	ev_loop_destroy(loop);
	return NULL;
}

static MAYBE_UNUSED void
far_begin(struct far *f)
{
	atomic_store(&f->r, NULL);
	OK(pthread_create(&f->thread, NULL, far_main, f));
	UNTIL(atomic_load(&f->r) != NULL);
}

/* Wait for the end of the loop and of its thread, which is no member. */
static MAYBE_UNUSED void
far_end(struct far *f)
{
	OK(pthread_join(f->thread, NULL));
	ck_assert_msg(f->status == 0, "evc_reactor_run: %d, %s", f->status,
		      f->error);
}

/* Begin a loop whose thread is a member of c: joins of c wait for it. */
static MAYBE_UNUSED void
far_begin_member(struct far *f)
{
	far_begin(f);
	OK(evc_register_thread(f->c, "far", f->thread, NULL, NULL));
}

#endif
