/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads as members, started or registered: how an end is seen and what it
 * means when no result came with it.
 */
#include "core/core.h"

#include "base/self.h"

static struct evc__pthread *
of(struct evc__member *m)
{
	return LIST_OF(m, struct evc__pthread, m);
}

static void
ask(struct evc__member *m, evc_status code, const char *text)
{
	struct evc__request q = { .code = code,
				  .kind = EVC_BY_MEMBER_END,
				  .tid = m->tid,
				  .by = m->e.id,
				  .who = m->name,
				  .text = text };

	evc__request(m->c, &q);
}

/* It is joined, by us; ret is what it returned. */
static void
joined(struct evc__member *m, const void *ret)
{
	struct evc__pthread *p = of(m);

	if (m->e.kind == EVC_REGISTERED && ret == PTHREAD_CANCELED &&
	    !p->after_stop)
		ask(m, EVC_ABORTED, "was cancelled");
	else if (p->has_result)
		return;
	else if (m->e.kind == EVC_REGISTERED && (m->e.flags & EVC_END_STOPS))
		ask(m, 0, "ended");
	else if (m->e.kind != EVC_REGISTERED && !p->after_stop)
		/* It left by a raw exit, which only we have noticed: before
		   the stop, or nobody can tell. */
		ask(m, EVC_ABORTED, "ended without a result");
}

static bool
probe(struct evc__member *m)
{
	struct evc__pthread *p = of(m);
	void *ret = NULL;

	if (sync_thread_join(m->thread, &ret, 0) != 0)
		return false;
	/* Of one that the helper watches its end before the stop would have
	   been seen, whoever comes first now. */
	if ((m->e.kind == EVC_REGISTERED || m->watched) &&
	    sync_load(&m->state) == EVC_LIVE)
		p->after_stop = evc_should_stop(m->c);
	joined(m, ret);
	return true;
}

static bool
reap(struct evc__member *m, uint64_t ns)
{
	void *ret = NULL;

	if (sync_thread_join(m->thread, &ret, ns) != 0)
		return false;
	joined(m, ret);
	return true;
}

/* A join reads what a thread returned; but what its end alone means is asked for
   here, for nobody may be joining. */
static void
vanished(struct evc__member *m)
{
	struct evc__pthread *p = of(m);

	evc__helper_unwatch(m->c, m);
	if (sync_load(&m->state) != EVC_LIVE)
		return; /* it has step by itself */
	p->after_stop = evc_should_stop(m->c);
	if (m->e.kind != EVC_REGISTERED && !p->after_stop) {
		ask(m, EVC_ABORTED, "ended without a result");
		p->has_result = true;
	} else if (m->e.kind == EVC_REGISTERED && (m->e.flags & EVC_END_STOPS)) {
		ask(m, 0, "ended");
		p->has_result = true;
	}
	evc__member_done(m);
}

static void
release(struct evc__member *m)
{
	evc__helper_unwatch(m->c, m);
}

const struct evc__member_ops evc__pthread_ops = {
	.probe = probe,
	.reap = reap,
	.vanished = vanished,
	.release = release,
};

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
	/* It may have ended in between, and its number be somebody else's. */
	if (evc__pthread_tid(m->thread) == tid && evc__helper_watch(m->c, m))
		return true;
	sync_fd_close(m->pidfd);
	m->pidfd = -1;
	return false;
}
