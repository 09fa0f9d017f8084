/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter for libuv (1.0 and later): a coordinator in a program whose loop
 * is a uv_loop_t.  See evcoord/adapter.h and evcoord-loops(7).
 */
#ifndef EVCOORD_UV_H
#define EVCOORD_UV_H

#include <evcoord/adapter.h>

#include <stdlib.h>
#include <uv.h>

typedef struct evc_uv {
	struct evc_adapter adapter; /* adapter.reactor is for the program */
	uv_poll_t poll;
} evc_uv;

static inline uv_handle_t *
evc_uv_handle(evc_uv *u)
{
	return EVC_CAST_(uv_handle_t *, EVC_CAST_(void *, &u->poll));
}

static inline void
evc_uv_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static inline void
evc_uv_readable(uv_poll_t *poll, int status, int events)
{
	evc_uv *u = EVC_CAST_(evc_uv *, poll->data);

	(void)status;
	(void)events;
	if (evc_adapter_turn(&u->adapter))
		uv_stop(poll->loop);
	if (!u->adapter.watched && !uv_is_closing(evc_uv_handle(u)))
		uv_poll_stop(poll);
}

/*
 * Attach a loop (NULL: the default one) to c.  The handle is not referenced
 * (uv_unref): only evc_uv_run keeps the loop running.  The program must not
 * close the handle, for instance in a uv_walk.
 *
 * Thread:    the one that runs the loop.
 * Ownership: *ret is the caller's, until evc_uv_detach.  name is copied.
 * Returns:   as evc_reactor_foreign; without 0, *ret is NULL.
 * Since:     0.2
 */
static inline evc_status
evc_uv_attach(evc_coord *c, const char *name, uv_loop_t *loop, evc_uv **ret)
{
	evc_uv *u;
	evc_status st;
	int err;

	if (ret == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_uv_attach",
					  -EVC_INVALID_ARGUMENT, "no result");
	*ret = NULL;
	u = EVC_CAST_(evc_uv *, calloc(1, sizeof(*u)));
	if (u == EVC_NULL_)
		return evc_adapter_refuse(c, "evc_uv_attach",
					  -EVC_RESOURCE_EXHAUSTED, "no memory");
	st = evc_adapter_open(&u->adapter, c, name);
	if (st < 0) {
		free(u);
		return st;
	}
	err = uv_poll_init(loop != EVC_NULL_ ? loop : uv_default_loop(),
			   &u->poll, u->adapter.fd);
	if (err < 0) {
		st = evc_adapter_fail(&u->adapter, "evc_uv_attach",
				      uv_strerror(err));
		free(u);
		return st;
	}
	u->poll.data = u;
	err = uv_poll_start(&u->poll, UV_READABLE, evc_uv_readable);
	if (err < 0) {
		uv_close(evc_uv_handle(u), evc_uv_closed);
		return evc_adapter_fail(&u->adapter, "evc_uv_attach",
					uv_strerror(err));
	}
	uv_unref(evc_uv_handle(u));
	*ret = u;
	return 0;
}

/*
 * Detach the loop.  A call that is refused changes nothing.  libuv frees a
 * handle in the next uv_run: call uv_run(loop, UV_RUN_NOWAIT) once more before
 * uv_loop_close.  (UV_RUN_DEFAULT would wait for handles of late connections.)
 *
 * Thread:    that of the attach; not inside evc_uv_run.
 * Ownership: u is gone after 0, its memory after the next uv_run.  NULL is
 *            fine.
 * Returns:   as evc_reactor_detach.
 * Since:     0.2
 */
static inline evc_status
evc_uv_detach(evc_uv *u)
{
	evc_status st;
	bool closing;

	if (u == EVC_NULL_)
		return 0;
	st = evc_adapter_leaving(&u->adapter, "evc_uv_detach");
	if (st < 0)
		return st;
	/* By the program, against the rule. */
	closing = uv_is_closing(evc_uv_handle(u));
	if (!closing)
		uv_poll_stop(&u->poll);
	st = evc_adapter_detach(&u->adapter);
	if (st < 0 && !closing && u->adapter.watched)
		uv_poll_start(&u->poll, UV_READABLE, evc_uv_readable);
	if (st == 0 && !closing)
		uv_close(evc_uv_handle(u), evc_uv_closed);
	else if (st == 0 && !uv_loop_alive(u->poll.loop))
		free(u); /* else the loop has the handle still */
	return st;
}

/*
 * Run the loop until the members have ended after a stop: in place of
 * uv_run(loop, UV_RUN_DEFAULT).  A uv_stop by the program requests the stop.
 *
 * Thread:    that of the attach; not inside a callback of the loop.
 * Ownership: *ret_verdict as for evc_run.
 * Returns:   as evc_run.
 * Since:     0.2
 */
static inline evc_status
evc_uv_run(evc_uv *u, const evc_join_opts *opts, evc_verdict *ret_verdict)
{
	evc_status st = evc_adapter_begin(u != EVC_NULL_ ? &u->adapter :
							   EVC_NULL_,
					  "evc_uv_run", false, opts);

	if (st < 0)
		return st;
	uv_ref(evc_uv_handle(u));
	while (evc_adapter_goes_on(&u->adapter)) {
		uv_run(u->poll.loop, UV_RUN_DEFAULT);
		if (uv_is_closing(evc_uv_handle(u)))
			u->adapter.watched = false;
		evc_adapter_ended(&u->adapter, 0, 0,
				  u->adapter.watched ?
					  "uv_stop by the application" :
					  "the application has closed the "
					  "handle of evc_uv_attach");
	}
	uv_unref(evc_uv_handle(u));
	return evc_adapter_end(&u->adapter, ret_verdict);
}

#endif
