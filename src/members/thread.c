/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Started threads: the coordinator's own.
 */
#include <limits.h>
#include <signal.h>

#include "base/self.h"
#include "base/tls.h"
#include "core/core.h"

#define STACK_DEFAULT ((size_t)256 << 10)

/* The last thing a started thread does with the coordinator: from DONE on only
   its join keeps the record alive, and that waits for the thread. */
static void
end(struct evc__pthread *p)
{
	p->has_result = true;
	evc__member_done(&p->m);
}

/* pthread_exit or cancellation. */
static void
ended_without_result(void *arg)
{
	struct evc__pthread *p = arg;
	struct evc__request q = { .code = EVC_ABORTED,
				  .kind = EVC_BY_MEMBER_END,
				  .by = p->m.id,
				  .who = p->m.name,
				  .text = "ended without a result" };

	if (!evc_should_stop(p->m.c))
		evc__request(p->m.c, &q);
	end(p);
}

static void *
thread_main(void *arg)
{
	struct evc__pthread *p = arg;
	struct evc__member *m = &p->m;
	evc_status st;
	int old;

	/* Not before we stand in the register: an error reported at once must
	   not meet a round that is closed still. */
	sync_lock(&m->c->lock);
	sync_unlock(&m->c->lock);
	evc__thread_rename(m->name);
	evc__self()->member = m;
	pthread_cleanup_push(ended_without_result, p);
	st = p->fn(m->c, p->arg);
	/* A cancellation from here on comes too late to change the result. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cleanup_pop(0);
	evc__member_result(m->c, m->id, m->name, m->flags, st, false);
	end(p);
	return NULL;
}

/* Lock held, also over pthread_create: whoever finds the record finds its
   pthread_t in it.  The round is opened again, if it was closed, only when there
   is a thread; that waits for the lock before it does anything. */
static evc_status
launch(evc_coord *c, struct evc__pthread *p, const pthread_attr_t *attr)
{
	struct evc__member *m = &p->m;
	sigset_t old;
	int e;

	if (!evc__id_room(c, 1))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_thread_start: no memory");
	m->id = c->last_id + 1;
	evc__block_signals(&old);
	e = sync_thread_create(&m->thread, attr, thread_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e != 0)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_thread_start: no thread: %s",
				   strerror(e));
	evc__member_add(c, m); /* has its room: cannot fail */
	m->tid = evc__pthread_tid(m->thread);
	if ((m->flags & EVC_WATCHED) && !evc__pthread_watch(m))
		evc__member_probed(m, true);
	/* A join that waits has one more to wait for. */
	evc__ring(c);
	return 0;
}

static evc_status
start(evc_coord *c, struct evc__pthread *p, const pthread_attr_t *attr,
      evc_id *ret_id)
{
	evc_id before = 0;
	evc_status st;

	sync_lock(&c->lock);
	if (evc_should_stop(c) && !(p->m.flags & EVC_LATE)) {
		sync_unlock(&c->lock);
		sync_free(p);
		return evc__refuse(-EVC_CANCELLED,
				   "evc_thread_start: a stop was asked for");
	}
	/* Set before the thread can run, put back if it does not. */
	if (ret_id != NULL) {
		before = *ret_id;
		*ret_id = c->last_id + 1;
	}
	st = launch(c, p, attr);
	if (st < 0 && ret_id != NULL)
		*ret_id = before;
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(p);
	return st;
}

static evc_status
thread_start(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	     const evc_member_opts *o, evc_id *ret_id)
{
	size_t stack = o != NULL && o->stack != 0 ? o->stack : STACK_DEFAULT;
	evc_status st = evc__check_name(name, "evc_thread_start");
	struct evc__pthread *p;
	pthread_attr_t attr;

	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_thread_start: no function");
	if (st == 0)
		st = evc__check_opts(o, "evc_thread_start");
	if (st < 0)
		return st;
	pthread_attr_init(&attr);
	if (stack < (size_t)PTHREAD_STACK_MIN ||
	    pthread_attr_setstacksize(&attr, evc__stack_with_tls(stack)) != 0) {
		pthread_attr_destroy(&attr);
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_thread_start: a stack of %zu bytes is "
				   "too small",
				   stack);
	}
	p = (struct evc__pthread *)evc__member_new(
		c, sizeof *p, EVC_THREAD,
		name != NULL && name[0] != '\0' ? name : "thread", o);
	if (p == NULL) {
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_thread_start: no memory");
	} else {
		p->m.ops = &evc__pthread_ops;
		p->fn = fn;
		p->arg = arg;
		st = start(c, p, &attr, ret_id);
	}
	pthread_attr_destroy(&attr);
	return st;
}

evc_status
evc_thread_start(evc_coord *c, const char *name, evc_fn *fn, void *arg,
		 const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = thread_start(c, name, fn, arg, opts, ret_id);
	return evc__refuse_setup(c, __func__, st);
}
