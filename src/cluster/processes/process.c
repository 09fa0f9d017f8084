/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One worker as all other files here see it: its number, the deadline of its
 * function, its fence, its last word.
 * Called by: all other files of this room.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#include "base/proc.h"
#include "base/reap.h"

/* ---- the begin ---- */

evc_status
evc__process_rank(struct process *w, unsigned index)
{
	const evc_member_opts late = { .flags = EVC_AFTER_STOP |
						EVC_BACKGROUND };
	struct text t = evc__text_in(w->name, sizeof w->name);

	w->rank = index;
	w->ranked = true;
	evc__text_fmt(&t, "worker %u", index);
	return evc_hold_begin(w->p->scope, w->name, &late, &w->hold);
}

/* ---- the deadline ---- */

void
evc__process_begun(struct process *w)
{
	w->begun = true;
	ev_timer_set(&w->deadline, process_taken(w, 0)->deadline, 0.);
	ev_now_update(w->p->ev);
	ev_timer_start(w->p->ev, &w->deadline);
}

void
evc__process_deadline_stop(struct process *w)
{
	if (w->begun)
		ev_timer_stop(w->p->ev, &w->deadline);
	w->begun = false;
}

/* ---- the end ---- */

/* The kernel has refused the kill. told: `said` tells of a kill. */
static void
add_not_killed(struct text *t, const char *said, bool told, int error)
{
	static const char killed[] = "was killed";
	const char *at = told ? strstr(said, killed) : NULL;

	if (at == NULL)
		evc__text_fmt(t, "%s; could not be killed: %s", said,
			      strerror(error));
	else
		evc__text_fmt(t, "%.*scould not be killed (%s)%s",
			      (int)(at - said), said, strerror(error),
			      at + sizeof killed - 1);
}

void
evc__process_fence(struct process *w, const char *fmt, ...)
{
	char plan[2 * WHY_SIZE], said[2 * WHY_SIZE], why[sizeof w->why + 80];
	struct text t = evc__text_in(plan, sizeof plan);
	struct processes *p = w->p;
	bool was_up = w->state == PROCESS_UP;
	int error;
	char state;
	va_list ap;

	if (w->state != PROCESS_STARTING && w->state != PROCESS_UP)
		return;
	w->state = PROCESS_FENCED;
	evc__process_deadline_stop(w);
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	/* A stopped process cannot say why it was silent. */
	state = evc__proc_process_state(w->pid);
	error = evc__reap_signal(w->pidfd, w->pid, SIGKILL);
	t = evc__text_in(said, sizeof said);
	if (error == 0)
		evc__text_add(&t, plan);
	else
		add_not_killed(&t, plan, strstr(fmt, "was killed") != NULL,
			       error);
	if (state != '\0' && strchr("TtD", state) != NULL)
		evc__text_fmt(&t, "; kernel: %c, %s", state,
			      evc__proc_state(state));
	evc__copy_ends(w->why, sizeof w->why, said);
	t = evc__text_in(why, sizeof why);
	evc__text_fmt(&t, "%s (pid %d) %s", w->name, (int)w->pid, w->why);
	if (was_up)
		p->sink->fenced(p->core, w->index, why);
}

void
evc__process_over(struct process *w)
{
	struct processes *p = w->p;
	unsigned i;

	w->state = PROCESS_OVER;
	if (w->hold != 0)
		evc_hold_end(p->scope, w->hold);
	w->hold = 0;
	for (i = 0; i < p->n; i++)
		if (p->workers[i]->state != PROCESS_OVER)
			return;
	p->ended = true;
	/* The message ends the engine: the caller has p still in hand. */
	evc__notes_ring(&p->notes);
}
