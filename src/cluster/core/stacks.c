/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where workers stand, for reports: see stacks.h.
 * A question is asked once; a worker that is stopped answers when it goes on,
 * and then a report has that answer, or nobody any more.
 * Called by: told.c, stuck.c, workers.c, stop.c.
 * Locks: the cluster's, taken in evc__stacks_take; else held.
 * bell is atomic.
 */
#include "cluster/core/cluster.h"

#include "base/proc.h"

/* Time for all answers; shorter while a stop stands, because a late stop's own
   report must not come too late. */
#define WAIT_NS UINT64_C(2000000000)
#define WAIT_STOP_NS UINT64_C(300000000)

static char *
copy_lines(const char *lines)
{
	size_t n = lines != NULL ? strnlen(lines, STACK_SIZE - 1) : 0;
	char *s = n > 0 ? sync_alloc(1, n + 1) : NULL;

	if (s != NULL)
		memcpy(s, lines, n);
	return s;
}

static void
ring(evc_cluster *cl)
{
	sync_add(&cl->stacks.bell, 1);
	sync_futex_wake(&cl->stacks.bell);
}

void
evc__stack_answer(evc_cluster *cl, struct cluster_worker *w, const char *lines)
{
	w->stack_asked = false;
	if (cl->stacks.n_waiting == 0)
		return;
	sync_free(w->stack);
	w->stack = copy_lines(lines);
	ring(cl);
}

void
evc__stacks_hurry(evc_cluster *cl)
{
	if (cl->stacks.n_waiting > 0)
		ring(cl);
}

void
evc__stack_forget(evc_cluster *cl, struct cluster_worker *w)
{
	if (w->stack_asked)
		ring(cl);
	w->stack_asked = false;
	sync_free(w->stack);
	w->stack = NULL;
}

/* ---- a report ---- */

static void
say_why(struct worker_stack *s, const char *why)
{
	evc__copy(s->why, sizeof s->why, why);
}

/* Lock held. */
static void
ask_worker(evc_cluster *cl, struct worker_stack *s, bool on_loop)
{
	struct cluster_worker *w = cl->workers.all[s->index];
	const evc_engine_ops *ops = cl->engine.ops;
	int is;

	s->lives = w->lives;
	if (ops->stack == NULL || cl->engine.at == NULL) {
		say_why(s, "its engine cannot ask for it");
	} else if (w->state != EVC_WORKER_UP && w->state != EVC_WORKER_HUNG) {
		say_why(s, "the worker answers nothing any more");
	} else if (on_loop && !(ops->caps & EVC_ENGINE_CALLS)) {
		say_why(s, "this report was made on the loop that hears the "
			   "worker");
	} else if (w->stack_asked) {
		s->waits = true;
	} else {
		is = ops->stack(cl->engine.at, s->index);
		s->tid = is > 0 ? is : 0;
		s->waits = w->stack_asked = is == 0;
		if (is < 0)
			say_why(s, "the worker cannot be asked");
	}
}

/* Lock held: has the worker answered?  The answer is copied at once, because
   another report may ask again. */
static void
look_for_answer(evc_cluster *cl, struct worker_stack *s)
{
	const struct cluster_worker *w = cl->workers.all[s->index];

	if (w->lives != s->lives || w->state == EVC_WORKER_GONE)
		say_why(s, "the worker has ended meanwhile");
	else if (w->stack_asked)
		return;
	else if (w->stack != NULL)
		s->lines = copy_lines(w->stack);
	else
		say_why(s, "the worker cannot be asked");
	s->waits = false;
}

static unsigned
count_waits(evc_cluster *cl, struct worker_stack *s, unsigned n)
{
	unsigned i, left = 0;

	sync_lock(&cl->q.lock);
	for (i = 0; i < n; i++)
		if (s[i].waits) {
			look_for_answer(cl, &s[i]);
			left += s[i].waits;
		}
	sync_unlock(&cl->q.lock);
	return left;
}

/* Workers that are threads: each takes a tenth of a second at most. */
static void
look_at_threads(struct worker_stack *s, unsigned n, uint64_t until)
{
	char lines[STACK_SIZE];
	unsigned i;

	for (i = 0; i < n; i++) {
		if (s[i].tid == 0)
			continue;
		if (evc__deadline_left_ns(until) == 0) {
			say_why(&s[i], "others were looked at first");
			continue;
		}
		(void)evc_stack_of(s[i].tid, lines, sizeof lines);
		s[i].lines = copy_lines(lines);
	}
}

/* What the kernel says of its process often says why; the place of a worker on
   another machine does not begin with a pid. */
void
evc__stack_silent(const struct cluster_worker *w, uint64_t waited, char *buf,
		  size_t n)
{
	struct text t = evc__text_in(buf, n);
	char state = '\0';

	evc__text_fmt(&t, "it has not answered within %.1f s",
		      (double)waited / 1e9);
	if (strncmp(w->where, "pid ", 4) == 0)
		state = evc__proc_process_state(
			(pid_t)strtol(w->where + 4, NULL, 10));
	if (state != '\0')
		evc__text_fmt(&t, "; kernel: %c, %s", state,
			      evc__proc_state(state));
}

/* Lock held: the last report goes. */
static void
drop_answers(evc_cluster *cl)
{
	unsigned i;

	if (--cl->stacks.n_waiting > 0)
		return;
	for (i = 0; i < cl->workers.n; i++) {
		sync_free(cl->workers.all[i]->stack);
		cl->workers.all[i]->stack = NULL;
	}
}

static uint64_t
wait_ns(const evc_cluster *cl)
{
	return evc_should_stop(cl->scope) ? WAIT_STOP_NS : WAIT_NS;
}

void
evc__stacks_take(evc_cluster *cl, struct worker_stack *s, unsigned n)
{
	uint64_t begin = sync_mono(), left;
	bool on_loop = evc__cluster_on_loop(cl);
	unsigned i;
	uint32_t seen;

	sync_lock(&cl->q.lock);
	cl->stacks.n_waiting++;
	for (i = 0; i < n; i++)
		ask_worker(cl, &s[i], on_loop);
	sync_unlock(&cl->q.lock);
	look_at_threads(s, n, evc__after(begin, wait_ns(cl)));
	do {
		seen = sync_load_sc(&cl->stacks.bell);
		left = evc__deadline_left_ns(evc__after(begin, wait_ns(cl)));
		if (count_waits(cl, s, n) == 0)
			break;
		if (left > 0)
			sync_futex_wait(&cl->stacks.bell, seen, left);
	} while (left > 0);
	sync_lock(&cl->q.lock);
	for (i = 0; i < n; i++)
		if (s[i].waits) {
			s[i].waits = false;
			evc__stack_silent(cl->workers.all[s[i].index],
					  sync_mono() - begin, s[i].why,
					  sizeof s[i].why);
		}
	drop_answers(cl);
	sync_unlock(&cl->q.lock);
}

void
evc__stacks_free(struct worker_stack *s, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		sync_free(s[i].lines);
	sync_free(s);
}

char *
evc__stack_line(char **at)
{
	char *line = *at, *end;

	if (line == NULL || *line == '\0')
		return NULL;
	end = strchr(line, '\n');
	if (end != NULL)
		*end++ = '\0';
	*at = end;
	return line;
}
