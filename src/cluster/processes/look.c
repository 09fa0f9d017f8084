/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a worker stands: the cluster asks for reports; the engine asks, for the
 * log, before it kills a worker that has not left.
 * Called by: turn.c, lease.c and hear.c.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#define LOOK_LINES 48 /* of a stack, in the log */

bool
evc__process_ask_stack(struct process *w)
{
	/* The answer to an earlier question is still to come. */
	if (w->stack_asked)
		return true;
	w->stack_asked = w->state == PROCESS_UP &&
			 evc__frame_put_bare(&w->control.out.own,
					     FRAME_LOOK) == 0;
	if (w->stack_asked)
		evc__link_flush(&w->control);
	return w->stack_asked;
}

bool
evc__process_look(struct process *w)
{
	if (w->last_look != LOOK_NONE || !evc__process_ask_stack(w))
		return false;
	w->last_look = LOOK_WANTED;
	return true;
}

static void
log_stack(struct process *w, const char *lines)
{
	evc_coord *scope = w->p->scope;
	size_t n, left = strnlen(lines, FRAME_STACK_MOST);
	unsigned i;

	evc_log(scope, EVC_LOG_WARNING, NULL,
		"%s (pid %d) was told to leave, and has not ended:", w->name,
		(int)w->pid);
	for (i = 0; i < LOOK_LINES && left > 0; i++) {
		n = strcspn(lines, "\n");
		n = n < left ? n : left;
		evc_log(scope, EVC_LOG_WARNING, NULL, "%s: %.*s", w->name,
			(int)n, lines);
		n += n < left;
		lines += n;
		left -= n;
	}
}

bool
evc__process_hear_stack(struct process *w, const struct frame *f)
{
	struct frame_note said;

	if (!w->stack_asked || evc__frame_get_note(f, &said) < 0)
		return false;
	w->stack_asked = false;
	if (w->last_look == LOOK_WANTED) {
		w->last_look = LOOK_DONE;
		log_stack(w, said.text);
	}
	if (w->stack_due) {
		w->stack_due = false;
		w->p->sink->stack(w->p->core, w->index, said.text);
	}
	return true;
}
