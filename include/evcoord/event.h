/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for libevent (2.1 and later): a coordinator in a program whose
 * loop is an event_base.  See evcoord/adapter.h and evcoord-loops(7).
 */
#ifndef EVCOORD_EVENT_H
#define EVCOORD_EVENT_H

#include <evcoord/adapter.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

typedef struct evc_event {
	struct evc_adapter adapter; /* adapter.reactor is for the program */
	struct event_base *base;
	struct event *event;
} evc_event;

static inline void
evc_event_readable(evutil_socket_t fd, short what, void *arg)
{
	evc_event *e = EVC_CAST_(evc_event *, arg);

	(void)fd;
	(void)what;
	if (evc_adapter_turn(&e->adapter))
		event_base_loopbreak(e->base);
	if (!e->adapter.watched)
		event_del(e->event);
}

/*
 * Attach a base to c.  libevent knows no weak events: the event of the adapter
 * keeps event_base_dispatch running until evc_event_detach.
 *
 * Thread:    the one that runs the base.
 * Ownership: *ret is the caller's, until evc_event_detach, which comes before
 *            event_base_free.  name is copied.
 * Returns:   as evc_reactor_foreign; without 0, *ret is NULL.
 * Since:     0.2
 */
static inline evc_status
evc_event_attach(evc_coord *c, const char *name, struct event_base *base,
		 evc_event **ret)
{
	evc_event *e;
	evc_status st;

	if (base == EVC_NULL_ || ret == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_event_attach",
					  -EVC_INVALID_ARGUMENT,
					  "no base or no result");
	*ret = NULL;
	e = EVC_CAST_(evc_event *, calloc(1, sizeof(*e)));
	if (e == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_event_attach",
					  -EVC_RESOURCE_EXHAUSTED, "no memory");
	st = evc_adapter_open(&e->adapter, c, name);
	if (st < 0) {
		free(e);
		return st;
	}
	e->base = base;
	e->event = event_new(base, e->adapter.fd, EV_READ | EV_PERSIST,
			     evc_event_readable, e);
	if (e->event == EVC_NULL_ || event_add(e->event, EVC_NULL_) < 0) {
		if (e->event != EVC_NULL_)
			event_free(e->event);
		st = evc_adapter_fail(&e->adapter, "evc_event_attach",
				      "libevent refuses the event");
		free(e);
		return st;
	}
	*ret = e;
	return 0;
}

/*
 * Detach the base.  A call that is refused changes nothing.
 *
 * Thread:    that of the attach; not inside evc_event_run.
 * Ownership: e is gone after 0.  NULL is fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
static inline evc_status
evc_event_detach(evc_event *e)
{
	evc_status st;

	if (e == EVC_NULL_)
		return 0;
	st = evc_adapter_leaving(&e->adapter, "evc_event_detach");
	if (st < 0)
		return st;
	event_del(e->event);
	st = evc_adapter_detach(&e->adapter);
	if (st < 0) {
		if (e->adapter.watched)
			event_add(e->event, EVC_NULL_);
		return st;
	}
	event_free(e->event);
	free(e);
	return 0;
}

/*
 * Run the base until the members have ended after a stop: in place of
 * event_base_dispatch.  An event_base_loopbreak or event_base_loopexit by the
 * program requests the stop.  A base that cannot run, for instance because it
 * runs already, is an error that requests the stop.
 *
 * Thread:    that of the attach; not inside a callback of the base.
 * Ownership: *ret_verdict as for evc_run.
 * Returns:   as evc_run.
 * Since:     0.2
 */
static inline evc_status
evc_event_run(evc_event *e, const evc_join_opts *opts,
	      evc_verdict *ret_verdict)
{
	evc_status st;
	int got;

	st = evc_adapter_begin(e != EVC_NULL_ ? &e->adapter : EVC_NULL_,
			       "evc_event_run",
			       false, opts);
	if (st < 0)
		return st;
	while (evc_adapter_goes_on(&e->adapter)) {
		errno = 0;
		got = event_base_loop(e->base, 0);
		if (got != 0)
			e->adapter.watched = false;
		evc_adapter_ended(&e->adapter, got != 0 ? EVC_INTERNAL : 0,
				  errno,
				  got != 0 ? "event_base_loop cannot run" :
					     "event_base_loopbreak by the "
					     "application");
	}
	return evc_adapter_end(&e->adapter, ret_verdict);
}

#endif
