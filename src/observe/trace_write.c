/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_trace_write: the recorded timeline, on a descriptor.
 * Called by: the program (evc_trace_start, _write).
 * Locks: none of its own; trace_alive.c takes locks, and none is held during a
 * write.
 */
#include "observe/trace_lanes.h"
#include "observe/trace_out.h"

#define N_DEFAULT 4096u

evc_status
evc_trace_start(evc_coord *c, size_t n_events)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = evc__trace_start(c, n_events != 0 ? n_events : N_DEFAULT);
	return evc__refuse_setup(c, __func__, st);
}

evc_status
evc_trace_write(const evc_coord *c, int fd, unsigned format)
{
	evc_status st = evc__check(c, __func__);
	struct evc__timeline t;
	struct out *o;

	if (st < 0)
		return st;
	if (format != EVC_TRACE_JSON)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_trace_write: unknown format %u",
				   format);
	st = evc__timeline_make(c, &t);
	/* Not on the stack: stacks of threads may be small. */
	o = st == 0 ? sync_alloc(1, sizeof *o) : NULL;
	if (st == 0 && o == NULL)
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_trace_write: no memory");
	if (st == 0) {
		evc__out_begin(o, fd);
		evc__trace_json(o, &t);
		st = evc__out_end(o);
	}
	sync_free(o);
	evc__timeline_free(&t);
	return st;
}
