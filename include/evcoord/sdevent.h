/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for sd-event of systemd (229 and later): a coordinator in a
 * program whose loop is an sd_event.  See evcoord/adapter.h and
 * evcoord-loops(7).
 */
#ifndef EVCOORD_SDEVENT_H
#define EVCOORD_SDEVENT_H

#include <evcoord/adapter.h>

#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

typedef struct evc_sdevent {
	struct evc_adapter adapter; /* adapter.reactor is for the program */
	sd_event *event;
	sd_event_source *source;
} evc_sdevent;

static inline int
evc_sdevent_readable(sd_event_source *source, int fd, uint32_t revents,
		     void *arg)
{
	evc_sdevent *s = EVC_CAST_(evc_sdevent *, arg);

	(void)fd;
	(void)revents;
	evc_adapter_turn(&s->adapter);
	if (!s->adapter.watched)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

/*
 * Attach an event loop to c.  The source has the normal priority, so sources of
 * the program with a more important one must not be ready all the time.
 *
 * Thread:    the one that runs the event loop.
 * Ownership: *ret is the caller's, until evc_sdevent_detach; it holds a
 *            reference to the event loop.  name is copied.
 * Returns:   as evc_reactor_foreign; without 0, *ret is NULL.
 * Since:     0.2
 */
static inline evc_status
evc_sdevent_attach(evc_coord *c, const char *name, sd_event *event,
		   evc_sdevent **ret)
{
	evc_sdevent *s;
	evc_status st;
	int err;

	if (event == EVC_NULL_ || ret == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_sdevent_attach",
					  -EVC_INVALID_ARGUMENT,
					  "no event loop or no result");
	*ret = NULL;
	s = EVC_CAST_(evc_sdevent *, calloc(1, sizeof(*s)));
	if (s == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_sdevent_attach",
					  -EVC_RESOURCE_EXHAUSTED, "no memory");
	st = evc_adapter_open(&s->adapter, c, name);
	if (st < 0) {
		free(s);
		return st;
	}
	err = sd_event_add_io(event, &s->source, s->adapter.fd, EPOLLIN,
			      evc_sdevent_readable, s);
	if (err < 0) {
		st = evc_adapter_fail(&s->adapter, "evc_sdevent_attach",
				      strerror(-err));
		free(s);
		return st;
	}
	s->event = sd_event_ref(event);
	*ret = s;
	return 0;
}

/*
 * Detach the event loop.  A call that is refused changes nothing.
 *
 * Thread:    that of the attach; not inside evc_sdevent_run.
 * Ownership: s is gone after 0.  NULL is fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
static inline evc_status
evc_sdevent_detach(evc_sdevent *s)
{
	evc_status st;

	if (s == EVC_NULL_)
		return 0;
	st = evc_adapter_leaving(&s->adapter, "evc_sdevent_detach");
	if (st < 0)
		return st;
	sd_event_source_set_enabled(s->source, SD_EVENT_OFF);
	st = evc_adapter_detach(&s->adapter);
	if (st < 0) {
		if (s->adapter.watched)
			sd_event_source_set_enabled(s->source, SD_EVENT_ON);
		return st;
	}
	sd_event_source_unref(s->source);
	sd_event_unref(s->event);
	free(s);
	return 0;
}

/*
 * Run the event loop until the members have ended after a stop: in place of
 * sd_event_loop.  An sd_event_exit by the program requests the stop; a code
 * other than 0 is an error.  sd-event cannot run again after its exit: the
 * members on the reactor then end as usual, and sources of the program are not
 * heard any more.
 *
 * Thread:    that of the attach; not inside a callback of the event loop.
 * Ownership: *ret_verdict as for evc_run.
 * Returns:   as evc_run.
 * Since:     0.2
 */
static inline evc_status
evc_sdevent_run(evc_sdevent *s, const evc_join_opts *opts,
		evc_verdict *ret_verdict)
{
	evc_status st;
	int err = 0, code = 0;

	st = evc_adapter_begin(
		s != EVC_NULL_ ? &s->adapter : EVC_NULL_, "evc_sdevent_run",
		s != EVC_NULL_ &&
			sd_event_get_state(s->event) == SD_EVENT_RUNNING,
		opts);
	if (st < 0)
		return st;
	while (evc_adapter_goes_on(&s->adapter) && err >= 0 &&
	       sd_event_get_state(s->event) != SD_EVENT_FINISHED)
		err = sd_event_run(s->event, UINT64_MAX);
	if (err < 0)
		evc_adapter_ended(&s->adapter, EVC_INTERNAL, -err,
				  "sd_event_run cannot run");
	else if (sd_event_get_exit_code(s->event, &code) >= 0)
		evc_adapter_ended(&s->adapter, code != 0 ? EVC_ABORTED : 0,
				  code < 0 ? -code : 0,
				  "sd_event_exit by the application");
	return evc_adapter_end(&s->adapter, ret_verdict);
}

#endif
