/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service manager's view of a stop.  The thread that asks says that the
 * stop has begun; then the helper thread says which members are left, that the
 * stop may take longer while members progress, and that the process is alive.
 * The number of the stop decides which thread speaks.  The job waits for the
 * first words, so its first status does not overtake them.
 * Called by: the listener of core/stop; the helper thread; systemd.c.
 * Locks: the coordinator's and the locks below, taken, for progress; stopping,
 * said, unheard and draining are atomic.
 */
#include "observe/systemd.h"

#include "core/core.h"
#include "core/join/join.h"

/* How long to wait for the thread that tells of the stop. */
#define RETRY_NS UINT64_C(1000000)
#define AWAIT_NS UINT64_C(20000000)

static bool
send_text(const struct evc__systemd *sd, const char *lines)
{
	return evc__manager_send(&sd->manager, lines, strlen(lines));
}

/* ---- the beginning: any thread, signal-safe ---- */

void
evc__systemd_tell(struct evc__listener *l)
{
	struct evc__systemd *sd =
		LIST_OF(l, struct evc__systemd, listener);
	uint64_t w = sync_load_sc(&sd->c->word);
	uint32_t n = WORD_STOP_NUMBER(w), old;

	/* A clear waits for threads that tell, so the word is not an old
	   one. */
	if (w & WORD_FLAG) {
		old = sync_load(&sd->stopping);
		if (old == n || !sync_cas(&sd->stopping, &old, n))
			return;
		if (!send_text(sd, "STOPPING=1\nSTATUS=stopping\n"))
			sync_store(&sd->unheard, n);
		sync_store_sc(&sd->said, n);
	} else if (w & WORD_DRAIN) {
		n = (n + 1) & WORD_STOPS_MASK;
		old = sync_load(&sd->draining);
		if (old != n && sync_cas(&sd->draining, &old, n))
			send_text(sd, "STATUS=draining\n");
	}
}

/* ---- progress; lock held ---- */

static void
raise_mark(struct evc__progress *p, const struct evc__mark *m)
{
	uint64_t ns = sync_load_relaxed(&m->ns);

	p->mark = ns > p->mark ? ns : p->mark;
}

static void
raise_marks(struct evc__progress *p, const struct list *members)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, members)
		raise_mark(p, &LIST_OF(n, struct evc__member, node)->mark);
}

/* Time granted to members, which the manager is to grant as well. */
static double
time_granted(const evc_coord *c)
{
	struct list *n, *tmp;
	double sum = 0;

	LIST_EACH(n, tmp, &c->wake.extensions)
		sum += LIST_OF(n, struct evc__extension, node)->granted;
	return sum;
}

/* Marks of this coordinator and of the scopes below. */
static void
all_marks(struct evc__progress *p, evc_coord *c)
{
	struct list *n, *tmp;

	raise_marks(p, &c->member.all);
	raise_marks(p, &c->loop.hooks);
	LIST_EACH(n, tmp, &c->loop.reactors)
		raise_mark(p, &LIST_OF(n, evc_reactor, node)->mark);
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (sync_load_sc(&s->stop.alive) == 0)
			continue;
		sync_lock(&s->lock);
		all_marks(p, s);
		sync_unlock(&s->lock);
	}
}

static void
add_asker(struct text *t, const evc_coord *c, uint64_t w)
{
	evc_reason r;

	if (!evc__reason_copy(c, WORD_WIN_SLOT(w), w, &r))
		return;
	evc__text_fmt(t, "; requested by %s", r.who);
	if (r.text[0] != '\0')
		evc__text_fmt(t, ": %s", r.text);
	else if (r.code != 0)
		evc__text_fmt(t, ": %s", evc_status_name(r.code));
}

/* No lock held: the members left, and the status about them.  false: by now
   there is another stop, or none. */
static bool
look_at_stop(struct evc__systemd *sd, struct evc__progress *p, char *status,
	     uint64_t *ret_time_left)
{
	evc_coord *c = sd->c;
	const evc_escalation_opts *o = evc__escalation(c);
	/* The last moment of the budget, extended or not. */
	double most = o->hard_end > o->budget ? o->hard_end : o->budget;
	struct text t = evc__lines_in(status, STATUS_SIZE), silent;
	char names[STATUS_SIZE / 2], loops[STATUS_SIZE / 2];
	uint64_t w, end, now;
	unsigned left;
	bool ours;

	sync_lock(&c->lock);
	/* Ended threads are not left, although no join buries them yet.  A join
	   in progress does this itself, with more patience for each thread. */
	if (sync_load_sc(&c->stop.n_driving) == 0)
		evc__bury_threads(c, BACKOFF_FIRST_NS);
	w = sync_load_sc(&c->word);
	if (!(w & WORD_FLAG) || WORD_STOP_NUMBER(w) != sd->stop) {
		sync_unlock(&c->lock);
		return false;
	}
	left = evc__names(c, NULL, true, 0, names, sizeof names);
	silent = evc__text_in(loops, sizeof loops);
	evc__text_silent_loops(&silent, c);
	if (left > 0)
		evc__text_fmt(&t, "stopping: %u member%s left: %s", left,
			      left == 1 ? "" : "s", names);
	else if (silent.len > 0)
		evc__text_fmt(&t, "stopping: %s", loops + strlen("; "));
	if (t.len > 0)
		add_asker(&t, c, w);
	else
		evc__text_add(&t, "stopped");
	/* The end of our own looper is no progress. */
	ours = sd->looper != 0 && evc__id_find(c, sd->looper) != NULL;
	*p = (struct evc__progress){
		.ended = c->member.n_ended +
			 sync_load(&c->member.n_ended_below) + ours,
		.left = left - ours,
		.granted = time_granted(c),
	};
	all_marks(p, c);
	now = evc__now(c);
	end = most > 0 ? evc__after(evc__stop_time(c, w), evc__ns(most)) :
			 SYNC_FOREVER;
	sync_unlock(&c->lock);
	*ret_time_left = end == SYNC_FOREVER ? end : end > now ? end - now : 0;
	return true;
}

/* ---- the job, while a stop stands ---- */

static bool
got_on(const struct evc__progress *now, const struct evc__progress *before)
{
	return now->ended > before->ended || now->left < before->left ||
	       now->mark > before->mark || now->granted > before->granted;
}

static void
add_extension(const struct evc__systemd *sd, struct text *t,
	      const struct evc__progress *p, uint64_t left)
{
	uint64_t ns = evc__ns(sd->extend + p->granted - sd->before.granted);

	ns = ns < left ? ns : left;
	if (ns >= 1000)
		evc__text_fmt(t, "EXTEND_TIMEOUT_USEC=%llu\n",
			      (unsigned long long)(ns / 1000));
}

/* The watchdog's looper ends at once: on a loop that hangs a stop would not end
   the looper, and a list would name the looper as late. */
static void
end_looper(struct evc__systemd *sd)
{
	evc_coord *c = sd->c;
	struct evc__entry *e;

	sync_lock(&c->lock);
	e = sd->looper != 0 ? evc__id_find(c, sd->looper) : NULL;
	if (e != NULL && e->on_loop)
		(void)c->member.looper_ops->remove(e);
	sync_unlock(&c->lock);
}

/* The job sees the stop for the first time. */
static void
begin_stop(struct evc__systemd *sd, uint32_t stop, uint64_t now)
{
	end_looper(sd);
	sd->stop = stop;
	sd->status_due = now;
	/* The looper ends now, in the middle of its interval. */
	sd->watchdog_due = sd->watchdog > 0 ? now : SYNC_FOREVER;
	/* Before the first look there is no progress. */
	sd->before = (struct evc__progress){ UINT64_MAX, UINT64_MAX, 0, 0 };
	sd->status[0] = '\0';
}

/* One datagram with all words that are due. */
static void
tell_due(struct evc__systemd *sd, uint64_t now)
{
	char lines[STATUS_SIZE + 128], status[STATUS_SIZE];
	struct text t = evc__text_in(lines, sizeof lines);
	struct evc__progress p = sd->before;
	uint64_t left;
	bool on = false;

	if (sync_load(&sd->unheard) == sd->stop)
		evc__text_add(&t, "STOPPING=1\n");
	strcpy(status, sd->status);
	if (sd->status_due <= now) {
		if (!look_at_stop(sd, &p, status, &left))
			return;
		on = got_on(&p, &sd->before);
		if (strcmp(status, sd->status) != 0)
			evc__text_fmt(&t, "STATUS=%s\n", status);
		if (on && sd->extend > 0)
			add_extension(sd, &t, &p, left);
		sd->status_due = evc__after(now, sd->status_ns);
	}
	if (sd->watchdog_due <= now) {
		evc__text_add(&t, "WATCHDOG=1\n");
		sd->watchdog_due = evc__after(now, evc__ns(sd->watchdog));
	}
	if (t.len > 0 && !evc__manager_send(&sd->manager, lines, t.len)) {
		/* The next call says all again, with newer facts. */
		if (sd->watchdog_due > sd->status_due && sd->watchdog > 0)
			sd->watchdog_due = sd->status_due;
		return;
	}
	if (sync_load(&sd->unheard) == sd->stop)
		sync_store(&sd->unheard, 0);
	strcpy(sd->status, status);
	/* Measures may go up again, for example when a member begins late. */
	sd->before = p;
}

static uint64_t
while_stopping(struct evc__systemd *sd, uint64_t w)
{
	uint32_t n = WORD_STOP_NUMBER(w);
	uint64_t now, due;

	/* The asking thread may have woken us first, and be no further.  Under
	   the lock, for the sake of a clear. */
	if (sync_load_sc(&sd->stopping) != n && sd->awaited != n) {
		/* A moment for this thread: its words have arrived when its
		   request returns. */
		sd->awaited = n;
		return AWAIT_NS;
	}
	if (sync_load_sc(&sd->stopping) != n) {
		sync_lock(&sd->c->lock);
		evc__systemd_tell(&sd->listener);
		sync_unlock(&sd->c->lock);
	}
	if (sync_load_sc(&sd->said) != n)
		return RETRY_NS;
	now = sync_mono();
	if (sd->stop != n)
		begin_stop(sd, n, now);
	tell_due(sd, now);
	due = sd->status_due < sd->watchdog_due ? sd->status_due :
						  sd->watchdog_due;
	return due > now ? due - now : 0;
}

/* ---- after a clear of a stop, or of a drain ---- */

static void
back_to_work(struct evc__systemd *sd, uint32_t said, uint32_t drained)
{
	uint64_t w;

	/* The next drain of this round has the same number. */
	(void)sync_cas(&sd->draining, &drained, 0);
	/* Only once: a manager that does not listen is not waited for. */
	if (said != sd->closed)
		send_text(sd, "READY=1\nSTATUS=running\n");
	else
		send_text(sd, "STATUS=running\n");
	/* The looper has ended with the stop. */
	sd->no_looper |= said != sd->closed && sd->watchdog > 0;
	sd->closed = said;
	/* The words about the next stop may have come just before. */
	w = sync_load_sc(&sd->c->word);
	if (w & WORD_FLAG)
		send_text(sd, "STOPPING=1\n");
	else if (w & WORD_DRAIN)
		send_text(sd, "STATUS=draining\n");
}

uint64_t
evc__systemd_run(evc_coord *c, struct evc__helper_job *k)
{
	struct evc__systemd *sd = LIST_OF(k, struct evc__systemd, job);
	/* Read before the word: when no stop stands, the stop of `said` is
	   over. */
	uint32_t said = sync_load_sc(&sd->said);
	uint32_t drained = sync_load_sc(&sd->draining);
	uint64_t w = sync_load_sc(&c->word), wait;

	if (w & WORD_FLAG)
		return while_stopping(sd, w);
	wait = evc__systemd_answers(sd);
	/* A drain may be taken back, and nothing tells of this. */
	if (w & WORD_DRAIN)
		return wait < sd->status_ns ? wait : sd->status_ns;
	if (drained != 0 || said != sd->closed)
		back_to_work(sd, said, drained);
	if (!sd->no_looper)
		return wait;
	sd->no_looper = evc__systemd_watch(sd) == -EVC_RESOURCE_EXHAUSTED;
	return sd->no_looper ? evc__ns(sd->watchdog) : wait;
}

void
evc__systemd_last_word(struct evc__systemd *sd)
{
	uint64_t w = sync_load_sc(&sd->c->word);

	if ((w & WORD_FLAG) && (sd->stop != WORD_STOP_NUMBER(w) ||
				strcmp(sd->status, "stopped") != 0))
		send_text(sd, "STATUS=stopped\n");
}
