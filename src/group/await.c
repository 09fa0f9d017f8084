/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait for groups that were told to stop.  A thread of the program joins
 * the scope.  A worker cannot: a join leaves the worker out of one scope only,
 * so two workers that stop each other's groups would wait until their time is
 * over.  So a worker, a thread inside a function of a group, and a thread that
 * exits wait on the group's own counts, without workers that wait for groups
 * themselves.
 * Called by: stop_api.c, start.c and hold.c.
 * Locks: the group's, taken; evc__group_names and _calls_over need the lock
 * held.
 */
#include "group/group.h"

#include "base/self.h"
#include "base/text.h"

/* ---- the awaited workers ---- */

/* Lock held. */
static bool
is_waited_for(const struct evc__worker *w, enum evc__who who)
{
	return w->live && who != EVC__NOBODY &&
	       (who == EVC__EVERYBODY ||
		(w->n_waits == 0 && w != evc__worker_self()));
}

/* Lock held: a function of the group runs on another thread. */
static bool
is_busy(const evc_group *g)
{
	return (g->shutting || g->cleaning) && g->inside_tid != evc__tid();
}

enum evc__who
evc__whom(void)
{
	return evc__worker_self() != NULL || evc__inside_of() != NULL ?
		       EVC__AWAITED :
		       EVC__EVERYBODY;
}

/* Lock held: is there anything to wait for? */
static bool
is_awaited(const evc_group *g, unsigned life, enum evc__who who)
{
	unsigned i;

	/* Other threads have finished the stop, and perhaps started the group
	   again. */
	if (evc__group_rests(g) || g->life != life)
		return false;
	if (is_busy(g))
		return true;
	for (i = 0; i < g->n_workers && g->n_live > 0; i++)
		if (is_waited_for(g->worker[i], who))
			return true;
	return false;
}

static void
add_worker_name(struct text *t, unsigned *n, const char *group,
		const char *name)
{
	if ((*n)++ > 0)
		evc__text_add(t, ", ");
	evc__text_add(t, group);
	evc__text_add(t, name);
}

unsigned
evc__group_names(const evc_group *g, struct text *t, enum evc__who who)
{
	unsigned i, n = t->len > 0;
	unsigned before = n;

	for (i = 0; i < g->n_workers; i++)
		if (is_waited_for(g->worker[i], who))
			add_worker_name(t, &n, "", g->worker[i]->name);
	if (g->shutting && is_busy(g))
		add_worker_name(t, &n, g->name, "/shutdown");
	if (g->cleaning && is_busy(g))
		add_worker_name(t, &n, g->name, "/cleanup");
	return n - before;
}

/* ---- the log ---- */

/* "train/1 is late: in run 7 since 5.012 s, tid 123, "reading" 5.010 s ago" */
static void
log_late(evc_group *g, unsigned index, enum evc__who whom)
{
	struct evc__worker *w;
	evc_member_info m = { .where = "" };
	char text[192];
	struct text t = evc__text_in(text, sizeof text);
	const char *said = NULL;
	uint64_t began;
	double age;

	sync_lock(&g->lock);
	w = g->worker[index];
	if (!is_waited_for(w, whom)) {
		sync_unlock(&g->lock);
		return;
	}
	evc__text_fmt(&t, "%s is late", w->name);
	began = sync_load_relaxed(&w->run_began);
	if (began != 0)
		evc__text_fmt(&t, ": in run %llu since %.3f s",
			      (unsigned long long)sync_load_relaxed(&w->n_runs),
			      (double)(sync_mono() - began) / 1e9);
	if (w->member != 0) {
		(void)evc_member_get(g->scope, w->member, &m);
		(void)evc_progress_get(g->scope, w->member, &said, &age);
	}
	sync_unlock(&g->lock);
	if (m.where[0] != '\0')
		evc__text_fmt(&t, ", %s", m.where);
	if (said != NULL)
		evc__text_fmt(&t, ", \"%s\" %.3f s ago", said, age);
	evc_log(g->scope, EVC_LOG_ERROR, NULL, "%s", text);
}

static void
log_all_late(evc_group *g, enum evc__who whom)
{
	unsigned i, n;

	sync_lock(&g->lock);
	n = g->n_workers;
	sync_unlock(&g->lock);
	for (i = 0; i < n; i++)
		log_late(g, i, whom);
	evc_log(g->scope, EVC_LOG_WARNING, NULL, "not all have ended");
}

/* ---- the wait ---- */

static void
log_wait(evc_group *g, enum evc__who whom, uint64_t until_ns)
{
	unsigned i, n = 0;

	sync_lock(&g->lock);
	for (i = 0; i < g->n_workers; i++)
		n += is_waited_for(g->worker[i], whom);
	sync_unlock(&g->lock);
	if (n > 0)
		evc_log(g->scope, EVC_LOG_INFO, NULL,
			"waiting for %u worker%s, %.3f s at most", n,
			n == 1 ? "" : "s", evc__deadline_left(until_ns));
}

/* Counts a join in n_joining.  false: not counted, other threads have finished
   the stop. */
static bool
begin_join(const struct evc__held_group *h)
{
	evc_group *g = h->g;
	bool stops;

	sync_lock(&g->lock);
	stops = g->state == EVC_GROUP_STOPPING && g->life == h->life;
	g->n_joining += stops;
	sync_unlock(&g->lock);
	return stops;
}

static void
end_join(evc_group *g)
{
	sync_lock(&g->lock);
	g->n_joining--;
	evc__group_changed(g);
	sync_unlock(&g->lock);
}

static void
join_scope(const struct evc__held_group *h, uint64_t until_ns)
{
	evc_group *g = h->g;
	double left = evc__deadline_left(until_ns);
	evc_join_opts j = { .grace = left > 0 ? left : EVC_NO_GRACE,
			    .flags = EVC_JOIN_IGNORE_LIVE | EVC_JOIN_STRICT };
	evc_verdict v;

	if (!begin_join(h))
		return;
	if (evc_join(g->scope, &j, &v) >= 0 && v.n_stragglers == 0)
		evc__group_bury(g);
	end_join(g);
}

/* Lock held, given up meanwhile.  A worker outside the wait may have been the
   last to end, and another thread cleans up after this worker. */
static void
calls_over(evc_group *g, unsigned life, uint64_t until_ns)
{
	while (is_awaited(g, life, EVC__NOBODY) &&
	       evc__group_wait(g, until_ns))
		;
}

bool
evc__group_calls_over(evc_group *g, unsigned life, uint64_t until_ns)
{
	bool over;

	sync_lock(&g->lock);
	calls_over(g, life, until_ns);
	over = !is_awaited(g, life, EVC__NOBODY);
	sync_unlock(&g->lock);
	return over;
}

bool
evc__group_wait_for(evc_group *g, unsigned life, enum evc__who who,
		    uint64_t until_ns)
{
	bool more, in_time = true;

	sync_lock(&g->lock);
	while ((more = is_awaited(g, life, who)) && in_time)
		in_time = evc__group_wait(g, until_ns);
	sync_unlock(&g->lock);
	return !more;
}

/* If another thread stops the group and waits for its workers, wait with this
   thread.  false: the time is over. */
static bool
stop_awaited(evc_group *g, uint64_t until_ns)
{
	unsigned life;
	bool awaited;

	sync_lock(&g->lock);
	life = g->life;
	awaited = g->state == EVC_GROUP_STOPPING && g->n_awaiting > 0 &&
		  evc__worker_here(g) == NULL;
	sync_unlock(&g->lock);
	return !awaited ||
	       evc__group_wait_for(g, life, EVC__AWAITED, until_ns);
}

bool
evc__stops_awaited(const struct evc__held *h, uint64_t until_ns)
{
	bool in_time = true;
	unsigned i;

	for (i = 0; i < h->n; i++)
		in_time &= stop_awaited(h->group[i].g, until_ns);
	return in_time;
}

/* While a worker waits for groups, no other worker waits for the worker. */
void
evc__worker_waits(bool yes)
{
	struct evc__worker *w = evc__worker_self();

	if (w == NULL)
		return;
	sync_lock(&w->group->lock);
	w->n_waits += yes ? 1 : (unsigned)-1;
	evc__group_changed(w->group);
	sync_unlock(&w->group->lock);
}

static void
await_workers(const struct evc__held_group *h, uint64_t until_ns,
	      enum evc__who whom, struct text *names)
{
	evc_group *g = h->g;
	enum evc__who who = EVC__NOBODY;
	unsigned late = 0;

	log_wait(g, whom, until_ns);
	if (whom == EVC__EVERYBODY)
		join_scope(h, until_ns);
	/* A worker outside the wait may have ended its own wait when we look
	   for names. */
	if (!evc__group_wait_for(g, h->life, whom, until_ns))
		who = whom;
	(void)evc__group_settle(g, until_ns);
	sync_lock(&g->lock);
	calls_over(g, h->life, until_ns);
	/* A start that has failed since is shut down in a life of its own. */
	if (g->life == h->life)
		late = evc__group_names(g, names, who);
	g->n_awaiting--;
	sync_unlock(&g->lock);
	if (late > 0)
		log_all_late(g, whom);
	/* `ended` may have left the cleanup to us meanwhile. */
	(void)evc__group_settle(g, 0);
}

evc_status
evc__groups_await(struct evc__held *h, uint64_t until_ns, bool exiting,
		  const char *func)
{
	enum evc__who whom = exiting ? EVC__AWAITED : evc__whom();
	char buf[400];
	struct text names = evc__text_in(buf, sizeof buf);
	unsigned i;

	evc__worker_waits(true);
	for (i = 0; i < h->n; i++)
		if (h->group[i].awaits)
			await_workers(&h->group[i], until_ns, whom, &names);
	evc__worker_waits(false);
	if (names.len == 0)
		return 0;
	return evc_refuse(EVC_DEADLINE_EXCEEDED, "%s: still running: %s", func,
			  buf);
}
