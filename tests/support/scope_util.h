/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of scopes, phases and drains share: scopes with the options
 * that matter, holds, and a coordinator that a thread of its own joins in one
 * of five ways.
 */
#ifndef TESTS_SUPPORT_SCOPE_UTIL_H
#define TESTS_SUPPORT_SCOPE_UTIL_H

#include "far_util.h"

/* A scope whose set-up is not finished. */
static MAYBE_UNUSED evc_coord *
new_scope(evc_coord *parent, const char *name, const evc_scope_opts *opts)
{
	evc_coord *s = NULL;

	OK(evc_scope_new(parent, name, opts, &s));
	ck_assert_ptr_nonnull(s);
	return s;
}

/* One whose set-up is finished. */
static MAYBE_UNUSED evc_coord *
ready_scope(evc_coord *parent, const char *name, const evc_scope_opts *opts)
{
	evc_coord *s = new_scope(parent, name, opts);

	OK(evc_scope_ready(s));
	return s;
}

/* One of a phase, whose limit is grace. */
static MAYBE_UNUSED evc_coord *
phase_scope(evc_coord *parent, const char *name, int phase, double grace)
{
	evc_scope_opts opts = { .phase = phase, .config.grace = grace };

	return ready_scope(parent, name, &opts);
}

static MAYBE_UNUSED evc_id
hold(evc_coord *c, const char *name)
{
	evc_id id = 0;

	OK(evc_hold_begin(c, name, NULL, &id));
	ck_assert_uint_ne(id, 0);
	return id;
}

static MAYBE_UNUSED evc_reason
reason_of(evc_coord *c, unsigned index)
{
	evc_reason r;

	memset(&r, 0, sizeof(r));
	OK(evc_reason_get(c, index, &r));
	return r;
}

/* Stopped by nobody but the one above. */
#define BY_PARENT(scope) \
	do { \
		evc_reason by_ = reason_of((scope), 0); \
		ck_assert(evc_should_stop(scope)); \
		ck_assert_uint_eq(by_.kind, EVC_BY_PARENT); \
		ck_assert_int_eq(by_.code, EVC_OK); \
	} while (0)

/* ---- loops ---- */

/* Let a loop do what it has to do at once; NULL: there is none. */
static MAYBE_UNUSED void
turn(struct ev_loop *loop)
{
	int i;

	for (i = 0; i < 3 && loop != NULL; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

/* ---- a coordinator and the thread that joins it ---- */

enum {
	BY_RUN,        /* evc_run; c has a home */
	BY_START,      /* evc_join_start; c has a home */
	BY_JOIN,       /* evc_join, blocking; c has no home */
	BY_STEP,       /* evc_join_step, with evc_join_fd; no home */
	BY_JOIN_FIRST, /* evc_join that asks for the stop itself; no home */
	N_WAYS
};

struct driver {
	int how;
	evc_config config;
	evc_join_opts opts;
	pthread_t thread;
	struct ev_loop *loop;
	evc_coord *c;
	evc_status made, status, freed;
	evc_verdict v; /* of the last join */
	atomic_int tid, rounds, begun, returned, leave;
};

static MAYBE_UNUSED void
driver_take(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct driver *d = arg;

	(void)c;
	d->v = *v;
	d->status = v->code;
}

static MAYBE_UNUSED void
driver_step(struct driver *d)
{
	struct pollfd p = { .fd = evc_join_fd(d->c), .events = POLLIN };
	double wait = 0;

	for (;;) {
		d->status = evc_join_step(d->c, &d->opts, &wait, &d->v);
		if (d->status != EVC_PENDING)
			return;
		poll(&p, 1, isinf(wait) ? -1 : (int)(wait * 1000) + 1);
	}
}

static MAYBE_UNUSED void
driver_join(struct driver *d)
{
	switch (d->how) {
	case BY_RUN:
		d->status = evc_run(d->c, &d->opts, &d->v);
		break;
	case BY_START:
		d->status = evc_join_start(d->c, driver_take, d, &d->opts);
		if (d->status == 0)
			ev_run(d->loop, 0);
		break;
	case BY_STEP:
		driver_step(d);
		break;
	default:
		d->status = evc_join(d->c, &d->opts, &d->v);
		break;
	}
}

static MAYBE_UNUSED void *
driver_main(void *arg)
{
	struct driver *d = arg;
	int n = 0;

	if (d->how == BY_RUN || d->how == BY_START)
		d->loop = ev_loop_new(0);
	d->made = evc_new(d->loop, &d->config, &d->c);
	atomic_store(&d->tid, own_tid());
	for (;;) {
		if (atomic_load(&d->leave))
			break;
		if (atomic_load(&d->rounds) > n) {
			atomic_store(&d->begun, ++n);
			driver_join(d);
			atomic_store(&d->returned, n);
		}
		t_sleep(0.001);
	}
	d->freed = d->made == 0 ? evc_free(d->c) : 0;
	if (d->loop != NULL)
		ev_loop_destroy(d->loop);
	return NULL;
}

/* The coordinator is there and nobody joins it yet.  What d held before is
   forgotten, its config and opts aside; their flags are ours. */
static MAYBE_UNUSED evc_coord *
driver_make(struct driver *d, int how)
{
	evc_config config = d->config;
	evc_join_opts opts = d->opts;

	memset(d, 0, sizeof(*d));
	d->how = how;
	d->config = config;
	d->opts = opts;
	d->opts.flags = how == BY_JOIN_FIRST ? EVC_JOIN_STOP_FIRST : 0;
	OK(pthread_create(&d->thread, NULL, driver_main, d));
	UNTIL(atomic_load(&d->tid) != 0);
	OK(d->made);
	return d->c;
}

static MAYBE_UNUSED bool
driver_returned(struct driver *d)
{
	return atomic_load(&d->returned) == atomic_load(&d->rounds);
}

/* The join begins, and waits; with EVC_JOIN_STOP_FIRST the stop comes too. */
static MAYBE_UNUSED void
driver_go(struct driver *d)
{
	int n = atomic_fetch_add(&d->rounds, 1) + 1;

	UNTIL(atomic_load(&d->begun) == n);
	if (d->how != BY_JOIN_FIRST)
		until_asleep(atomic_load(&d->tid));
	else /* it may not last long */
		UNTIL(evc_should_stop(d->c) || driver_returned(d));
}

/* Ask for the stop, unless the join does. */
static MAYBE_UNUSED void
driver_stop(struct driver *d)
{
	if (d->how != BY_JOIN_FIRST)
		OK(evc_request_stop(d->c, 0, "by the test"));
}

/* What the join answered. */
static MAYBE_UNUSED evc_status
driver_wait(struct driver *d)
{
	UNTIL(driver_returned(d));
	return d->status;
}

static MAYBE_UNUSED void
driver_end(struct driver *d)
{
	atomic_store(&d->leave, 1);
	OK(pthread_join(d->thread, NULL));
	OK(d->freed);
}

#endif
