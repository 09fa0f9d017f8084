/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads as members, started or registered: how their end is seen, and the
 * meaning of an end without a result.
 *
 * Called by: the register and the helper, through evc__member_ops; adopt.c,
 * launch.c.
 * Locks: the coordinator's is held for probe and vanished, and free for reap;
 * the caller of reap has claimed the record.
 */
#include "core/core.h"

#include "base/self.h"

static struct evc__pthread *
pthread_of(struct evc__member *m)
{
	return LIST_OF(m, struct evc__pthread, m);
}

static void
request_by_end(struct evc__member *m, evc_status code, const char *text)
{
	struct evc__request q = { .code = code,
				  .kind = EVC_BY_MEMBER_END,
				  .tid = m->tid,
				  .by = m->e.id,
				  .who = m->name,
				  .text = text };

	evc__request(m->c, &q);
}

/* This thread has joined m; ret is the return value of m's thread. */
static void
pthread_joined(struct evc__member *m, const void *ret)
{
	struct evc__pthread *p = pthread_of(m);

	if (m->e.kind == EVC_REGISTERED && ret == PTHREAD_CANCELED &&
	    !p->after_stop)
		request_by_end(m, EVC_ABORTED, "was cancelled");
	else if (p->has_result)
		return;
	else if (m->e.kind == EVC_REGISTERED && (m->e.flags & EVC_END_STOPS))
		request_by_end(m, 0, "ended");
	else if (m->e.kind != EVC_REGISTERED && !p->after_stop)
		/* The thread left by a raw exit, seen only by the join: before
		   the stop, or at an unknown time. */
		request_by_end(m, EVC_ABORTED, "ended without a result");
}

/* Lock held.  The thread of m gets no kick after the join: wakers of its own
   scope have the lock of the scope. */
static bool
try_join(struct evc__member *m, void **ret)
{
	evc_coord *s = m->scope;
	bool joined;

	if (s == NULL)
		return sync_thread_join(m->thread, ret, 0) == 0;
	sync_lock(&s->lock);
	joined = sync_thread_join(m->thread, ret, 0) == 0;
	if (joined)
		evc__wakers_drop(m);
	sync_unlock(&s->lock);
	return joined;
}

static bool
probe_pthread(struct evc__member *m)
{
	struct evc__pthread *p = pthread_of(m);
	void *ret = NULL;

	if (!try_join(m, &ret))
		return false;
	/* The end of a thread that the helper watches would have been seen
	   before the stop, whichever thread comes first now. */
	if ((m->e.kind == EVC_REGISTERED || m->watched) &&
	    sync_load(&m->state) == EVC_LIVE)
		p->after_stop = evc_should_stop(evc__heard_by(m));
	pthread_joined(m, ret);
	return true;
}

static bool
reap_pthread(struct evc__member *m, uint64_t ns)
{
	void *ret = NULL;

	if (sync_thread_join(m->thread, &ret, ns) != 0)
		return false;
	pthread_joined(m, ret);
	return true;
}

/* Lock held: the pidfd says that the thread has ended.  Only a join can read
   the return value.  But a stop for the end itself is asked for here, because
   there may be no join. */
static void
pthread_vanished(struct evc__member *m)
{
	struct evc__pthread *p = pthread_of(m);

	evc__helper_unwatch(m->c, m);
	if (sync_load(&m->state) != EVC_LIVE)
		return; /* m's thread has stepped to DONE by itself */
	p->after_stop = evc_should_stop(evc__heard_by(m));
	if (m->e.kind != EVC_REGISTERED && !p->after_stop) {
		request_by_end(m, EVC_ABORTED, "ended without a result");
		p->has_result = true;
	} else if (m->e.kind == EVC_REGISTERED && (m->e.flags & EVC_END_STOPS)) {
		request_by_end(m, 0, "ended");
		p->has_result = true;
	}
	/* Before the state is DONE, for a join may come at once, and no kick
	   may follow. */
	evc__member_leaves_scope_behind(m);
	evc__member_done(m);
}

static void
release_pthread(struct evc__member *m)
{
	evc__helper_unwatch(m->c, m);
}

const struct evc__member_ops evc__pthread_ops = {
	.probe = probe_pthread,
	.reap = reap_pthread,
	.vanished = pthread_vanished,
	.release = release_pthread,
};

/* ---- threads that somebody else joins; see not_joined.c ---- */

static bool
note_end(struct evc__member *m, uint64_t ns)
{
	(void)ns;
	pthread_joined(m, NULL);
	return true;
}

static bool
probe_not_joined(struct evc__member *m)
{
	bool lives = sync_load(&m->state) == EVC_LIVE;

	/* The thread is gone, and has called no destructor. */
	if (lives && (sync_tid_signal(m->tid, 0) == 0 || errno != ESRCH))
		return false;
	if (lives)
		pthread_of(m)->after_stop = evc_should_stop(m->c);
	return note_end(m, 0);
}

const struct evc__member_ops evc__not_joined_ops = {
	.probe = probe_not_joined,
	.reap = note_end,
	.vanished = pthread_vanished,
	.release = release_pthread,
};

/* ---- the watch ---- */

int
evc__pthread_tid(pthread_t t)
{
	clockid_t clock;

	return pthread_getcpuclockid(t, &clock) == 0 ? (int)~(clock >> 3) : 0;
}

bool
evc__pthread_watch(struct evc__member *m)
{
	int tid = m->tid;

	if (tid == 0)
		return false;
	/* There is no such pidfd for the first thread of a process. */
	if (tid == getpid())
		return false;
	m->pidfd = sync_pidfd(tid);
	if (m->pidfd < 0)
		return false;
	/* The thread may have ended before sync_pidfd, and a new thread may
	   have got its number; not so the calling thread. */
	if ((tid == evc__tid() || evc__pthread_tid(m->thread) == tid) &&
	    evc__helper_watch(m->c, m))
		return true;
	sync_fd_close(m->pidfd);
	m->pidfd = -1;
	return false;
}
