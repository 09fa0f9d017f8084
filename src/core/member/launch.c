/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The launch of a thread of the library's own, and the work of such a thread
 * before and after its function, for each kind of member with a thread.
 *
 * Called by: threads and loopers of src/members.
 * Locks: evc__launch needs the coordinator's lock, over pthread_create too; a
 * new thread takes that lock once at its begin.
 */
#include <limits.h>

#include "base/kick.h"
#include "base/self.h"
#include "base/spawn.h"
#include "core/core.h"

/* The last use of the record by a started thread.  From DONE on, only the
   joining thread keeps the record, and the join waits for the end of this
   thread. */
static void
end_pthread(struct evc__pthread *p)
{
	struct evc__member *m = &p->m;
	evc_coord *s = NULL;

	p->has_result = true;
	evc__wakers_end();
	if (m->scope != NULL) {
		sync_lock(&m->c->lock);
		s = evc__member_leaves_scope(m);
		sync_unlock(&m->c->lock);
	}
	if (s != NULL)
		m->c->tree->upper->own_scope_end(s);
	evc__member_done(&p->m);
}

/* Not inlined: the locals of this function have a stack frame of their own. */
static __attribute__((noinline)) void
end_without_result(struct evc__pthread *p)
{
	struct evc__request q = { .code = EVC_ABORTED,
				  .kind = EVC_BY_MEMBER_END,
				  .by = p->m.e.id,
				  .who = p->m.name,
				  .text = "ended without a result" };

	if (!evc__same_process(p->m.c))
		return;
	evc__busy_left();
	if (p->m.scope != NULL)
		q.by = 0;
	if (!evc_should_stop(evc__heard_by(&p->m)))
		evc__request(evc__heard_by(&p->m), &q);
	end_pthread(p);
}

/* Cleanup handler: fn has left by pthread_exit or cancellation. */
static void
ended_without_result(void *arg)
{
	sync_unwound();
	end_without_result(arg);
}

/* An error goes by the thread's own scope; EVC_END_STOPS is for c.  A member's
   id is valid in its own coordinator only. */
static void
report_to_scope(struct evc__member *m, evc_status st)
{
	const unsigned ends = EVC_END_STOPS;
	evc_coord *s = m->scope;
	bool clean = evc_is_clean(s, st);

	evc__member_result(s, 0, m->name, m->e.flags & ~ends, st, false);
	if ((m->e.flags & ends) && clean)
		evc__member_result(m->c, m->e.id, m->name, ends,
				   evc_is_clean(m->c, st) ? st : 0, false);
}

static void *
thread_main(void *arg)
{
	struct evc__pthread *p = arg;
	struct evc__member *m = &p->m;
	evc_status st;
	int old;

	/* Wait for the lock, and so until the member is in the register and the
	   round is open: an error of fn would count as late in a closed
	   round. */
	sync_lock(&m->c->lock);
	sync_unlock(&m->c->lock);
	evc__thread_rename(m->name);
	evc__self_is(m);
	if (m->e.flags & EVC_KICK)
		evc__kick_unblock(NULL);
	pthread_cleanup_push(ended_without_result, p);
	st = p->fn(evc__heard_by(m), p->arg);
	/* From here on a cancellation has no effect, because fn has its
	   result. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cleanup_pop(0);
	/* fn has forked, and the child has returned here.  The thread is the
	   only thread of the child, so the child ends as by exit(0), and tells
	   nothing to the coordinator of the parent process. */
	if (!evc__same_process(m->c))
		return NULL;
	evc__outcome_is(m, st);
	if (m->scope != NULL)
		report_to_scope(m, st);
	else if (!p->reports)
		evc__member_result(m->c, m->e.id, m->name, m->e.flags, st,
				   false);
	end_pthread(p);
	return NULL;
}

evc_status
evc__launch_check(size_t stack, const char *func)
{
	pthread_attr_t attr;
	bool good;

	if (stack == 0)
		return 0;
	pthread_attr_init(&attr);
	good = stack >= (size_t)PTHREAD_STACK_MIN &&
	       pthread_attr_setstacksize(&attr, evc__stack_with_tls(stack)) ==
		       0;
	pthread_attr_destroy(&attr);
	return good ? 0 :
		      evc__refuse(-EVC_INVALID_ARGUMENT,
				  "%s: a stack of %zu bytes is too small",
				  func, stack);
}

static int
create_thread(struct evc__pthread *p, size_t stack)
{
	struct evc__spawn s;
	int e;

	evc__spawn_begin(&s, stack, false);
	e = sync_thread_create(&p->m.thread, &s.attr, thread_main, p);
	evc__spawn_end(&s);
	return e;
}

evc_status
evc__launch(evc_coord *c, struct evc__pthread *p, size_t stack,
	    const char *func)
{
	struct evc__member *m = &p->m;
	bool listed = m->e.id != 0;
	int e;

	evc__members_bury(c);
	if (!listed && !evc__id_reserve(c, 1))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	if (!listed)
		m->e.id = c->member.ids.last + 1;
	e = create_thread(p, stack);
	if (e != 0) {
		if (!listed)
			m->e.id = 0;
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "%s: no thread: %s", func, strerror(e));
	}
	if (listed)
		evc__member_enter(c, m);
	else
		evc__member_add(c, m); /* has its place: cannot fail */
	m->tid = evc__pthread_tid(m->thread);
	if ((m->e.flags & EVC_WATCHED) && !evc__pthread_watch(m))
		evc__member_probed(m, true);
	/* A waiting join has another member to wait for. */
	evc__ring(c);
	return 0;
}
