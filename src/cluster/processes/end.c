/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of workers.  Only the kernel proves that a process does not run: a
 * pidfd says so at once.  Without pidfds (Linux before 5.3, valgrind) the
 * kernel is asked again and again.
 * Bytes that a worker wrote before its end are read first, unless the worker
 * was fenced: results among them count.
 * Called by: the loop's watchers; turn.c.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#include "base/libc.h"
#include "base/reap.h"

#define NAP_NS UINT64_C(2000000)

/* ---- in words ---- */

static bool
is_lease_over(const struct processes *p)
{
	return p->until_ns != 0 && sync_mono() >= p->until_ns;
}

/* The lease may have ended the worker. */
static void
add_lease(struct text *t, const struct process *w)
{
	const struct processes *p = w->p;

	if (is_lease_over(p))
		evc__text_add(t, ": the lease was over");
	else if (w->closed_ns != 0)
		evc__text_add(t, ": it had closed its streams");
	else if (p->until_ns != 0 && w->ping_ns != 0)
		evc__text_fmt(t,
			      ": it gave no sign of life for %.1f s, and the "
			      "lease of %.1f s that it last heard of was over",
			      (double)(sync_mono() - w->ping_ns) / 1e9,
			      (double)p->lease_ns / 1e9);
}

static void
add_status(struct text *t, const struct process *w, enum reap l,
	   const siginfo_t *info)
{
	const char *name;

	if (l == REAP_LOST) {
		evc__text_add(t, "ended, and somebody else has reaped it");
		return;
	}
	if (info->si_code == CLD_EXITED) {
		evc__text_fmt(t, "ended with exit status %d", info->si_status);
		return;
	}
	name = evc__signal_name(info->si_status);
	evc__text_fmt(t, "was killed by signal %d", info->si_status);
	if (name != NULL)
		evc__text_fmt(t, " (SIG%s)", name);
	if (info->si_code == CLD_DUMPED)
		evc__text_add(t, " (core dumped)");
	if (info->si_status == SIGKILL)
		add_lease(t, w);
}

/* "worker 2 (pid 17) was killed by signal 11 (SIGSEGV); its last words: ..."
   how: an end in good order needs no last words. */
static void
describe_end(const struct process *w, enum reap l, const siginfo_t *info,
	     unsigned how, char *why)
{
	struct text t = evc__text_in(why, DEATH_SIZE);

	evc__text_fmt(&t, "%s (pid %d) ", w->name, (int)w->pid);
	if (w->why[0] != '\0')
		evc__text_add(&t, w->why);
	else
		add_status(&t, w, l, info);
	if (w->state == PROCESS_STARTING && w->why[0] == '\0')
		evc__text_add(&t, " before it was up");
	if (how != EVC_ENGINE_LEFT)
		evc__process_words(w, &t);
}

/* ---- gone ---- */

/* Does no other life follow? */
static bool
is_last(const struct processes *p)
{
	return p->left || p->lost;
}

static bool
was_to_end(const struct process *w)
{
	return is_last(w->p) || w->dismissed;
}

/* The kind of an end that no function has caused. */
static unsigned
how_idle(const struct process *w, enum reap l, const siginfo_t *info)
{
	if (w->why[0] != '\0' ||
	    (l == REAP_ENDED &&
	     (info->si_code != CLD_EXITED || info->si_status != 0)))
		return EVC_ENGINE_DIED;
	/* Nobody knows, so what was asked for is taken to be so. */
	if (l == REAP_LOST)
		return was_to_end(w) ? EVC_ENGINE_LEFT : EVC_ENGINE_DIED;
	return w->state != PROCESS_STARTING || was_to_end(w) ? EVC_ENGINE_LEFT :
							       EVC_ENGINE_DIED;
}

static void
process_ended(struct process *w, enum reap l, const siginfo_t *info)
{
	struct processes *p = w->p;
	char why[DEATH_SIZE];
	unsigned how;

	evc__link_read(&w->data, true);
	evc__process_output_close(w);
	how = w->n_taken + w->n_building > 0 && !w->settled &&
				      !is_lease_over(p) ?
		      EVC_ENGINE_DIED_RUNNING :
		      how_idle(w, l, info);
	describe_end(w, l, info, how, why);
	evc__process_words_drop(w);
	evc__process_deadline_stop(w);
	ev_io_stop(p->ev, &w->end);
	ev_timer_stop(p->ev, &w->ask);
	ev_child_stop(p->ev, &w->reaped);
	if (w->pidfd >= 0)
		sync_fd_close(w->pidfd);
	w->pidfd = -1;
	w->pid = 0;
	evc__link_close(&w->data);
	evc__link_close(&w->control);
	evc__kept_clear(&w->kept);
	w->n_taken = 0;
	w->asks = false;
	evc__process_again(w);
	p->sink->gone(p->core, w->index, why, how);
	if (is_last(p)) {
		evc__process_over(w);
		return;
	}
	if (w->dismissed)
		evc__process_has_left(w);
	evc__processes_spawn(p);
}

static void
check_process(struct process *w)
{
	siginfo_t info;
	enum reap l = evc__reap(w->pidfd, w->pid, &info);

	if (l != REAP_RUNS)
		process_ended(w, l, &info);
}

void
evc__process_on_end(struct ev_loop *ev, struct ev_io *io, int events)
{
	struct process *w = io->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&w->p->on))
		check_process(w);
}

void
evc__process_on_ask(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct process *w = timer->data;

	(void)ev;
	(void)events;
	if (!on_loop_inherited(&w->p->on))
		check_process(w);
}

/* The loop calls this before the other watchers of the same end. */
void
evc__process_on_reaped(struct ev_loop *ev, struct ev_child *child, int events)
{
	struct process *w = child->data;
	siginfo_t info = { 0 };

	(void)ev;
	(void)events;
	if (on_loop_inherited(&w->p->on))
		return;
	evc__reap_status(child->rstatus, &info);
	process_ended(w, REAP_ENDED, &info);
}

void
evc__process_end_now(struct process *w, uint64_t until)
{
	enum reap l;
	siginfo_t info;

	if (w->pid == 0) {
		evc__process_over(w);
		return;
	}
	evc__process_fence(w, "was killed: its coordinator's loop is gone");
	while ((l = evc__reap(w->pidfd, w->pid, &info)) == REAP_RUNS &&
	       evc__deadline_left_ns(until) > 0)
		evc__nap(NAP_NS);
	process_ended(w, l == REAP_RUNS ? REAP_LOST : l, &info);
}
