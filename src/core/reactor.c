/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: one ev_async at EV_MAXPRI for each attached loop.
 *
 * The watcher is a doorbell: what it means stands in the coordinator's word and
 * lists, and evc__reactor_turn does whatever they ask for.  A send before the
 * watcher was started is lost, so attach starts it, stands in the table, and
 * then looks at the word.
 */
#include "core/join.h"

#include "base/self.h"
#include "base/text.h"

/* Any thread, inside the walkers or under the lock. */
static void
tell(struct evc__listener *l)
{
	evc_reactor *r = (evc_reactor *)l;

	ev_async_send(r->loop, &r->async);
}

static void
on_async(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)revents;
	evc__reactor_turn(w->data);
}

void
evc__reactor_poke(evc_reactor *r)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ev_async_send(r->loop, &r->async);
	pthread_setcancelstate(old, NULL);
}

void
evc__reactor_hear(evc_reactor *r, bool yes)
{
	uint32_t d = yes ? 1 : (uint32_t)-1;

	/* Heard first: the look that follows misses nothing. */
	sync_add(&r->listener.n_joins, d);
	sync_add(&r->c->n_loop_joins, d);
	if (yes) {
		ev_ref(r->loop);
		evc__reactor_poke(r);
	} else if (r->loop != NULL)
		ev_unref(r->loop);
}

void
evc__reactor_turn(evc_reactor *r)
{
	struct evc__frame f = { r->frames, false };
	evc_coord *c = r->c;

	r->frames = &f;
	evc__log_errors(c);
	evc__hooks_run(c, r);
	if (evc_should_stop(c) && r->task_ops != NULL &&
	    !r->task_ops->tell(r, &f))
		return;
	if (!evc__joins_turn(r, &f))
		return;
	evc__driver_turn(r);
	r->frames = f.up;
}

/* ev_loop_destroy under us: everything that lived there has ended. */
static void
on_cleanup(struct ev_loop *loop, ev_cleanup *w, int revents)
{
	evc_reactor *r = w->data;
	evc_coord *c = r->c;
	struct evc__frame f = { r->frames, false };

	(void)revents;
	sync_lock(&c->lock);
	evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	r->loop = NULL;
	/* Until we are done, no other thread may free c. */
	r->leaving = true;
	sync_unlock(&c->lock);
	ev_ref(loop);
	ev_async_stop(loop, &r->async);
	if (r->task_ops != NULL)
		r->task_ops->drop(r);
	r->frames = &f;
	evc__joins_cancel(r, loop, &f);
	if (f.gone)
		return;
	r->frames = f.up;
	sync_lock(&c->lock);
	r->leaving = false;
	sync_unlock(&c->lock);
}

/* Lock held. */
static evc_reactor *
find(const evc_coord *c, const struct ev_loop *loop)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->reactors)
		if (LIST_OF(n, evc_reactor, node)->loop == loop)
			return LIST_OF(n, evc_reactor, node);
	return NULL;
}

/* libev aborts when it finds no descriptor for the loop's wake-up: look first
   whether there is one. */
static bool
descriptor_left(void)
{
	int fd = sync_eventfd();

	if (fd < 0)
		return false;
	sync_fd_close(fd);
	return true;
}

static void
start_watchers(evc_reactor *r)
{
	ev_async_init(&r->async, on_async);
	ev_set_priority(&r->async, EV_MAXPRI);
	r->async.data = r;
	ev_async_start(r->loop, &r->async);
	ev_unref(r->loop);
	/* Grow libev's list of pending events now, so that no dispatch that a
	   stop causes allocates. */
	ev_feed_event(r->loop, &r->async, EV_ASYNC);
	ev_clear_pending(r->loop, &r->async);
	ev_cleanup_init(&r->cleanup, on_cleanup);
	r->cleanup.data = r;
	ev_cleanup_start(r->loop, &r->cleanup);
}

static void
stop_watchers(evc_reactor *r)
{
	ev_cleanup_stop(r->loop, &r->cleanup);
	ev_ref(r->loop);
	ev_async_stop(r->loop, &r->async);
}

evc_status
evc__reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		    evc_reactor **ret)
{
	evc_reactor *r;
	bool listens;

	sync_lock(&c->lock);
	r = find(c, loop);
	sync_unlock(&c->lock);
	if (r != NULL)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "this loop is attached as %s", r->name);
	r = sync_alloc(1, sizeof *r);
	if (r == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a reactor");
	if (!descriptor_left()) {
		sync_free(r);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no descriptor for the loop's wake-up");
	}
	r->listener.tell = tell;
	r->c = c;
	r->tid = evc__tid();
	r->loop = loop;
	evc__copy(r->name, sizeof r->name, name);
	list_init(&r->node);
	list_init(&r->joins);
	r->tasks.next_ = r->tasks.prev_ = &r->tasks;
	r->late.next_ = r->late.prev_ = &r->late;
	r->cursor = &r->tasks;
	start_watchers(r);
	sync_lock(&c->lock);
	listens = evc__listen(c, &r->listener);
	if (listens)
		list_append(&c->reactors, &r->node);
	sync_unlock(&c->lock);
	if (!listens) {
		stop_watchers(r);
		sync_free(r);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a listener");
	}
	/* In the table first, then look: a stop that came before is not
	   missed, one that comes from here on tells us. */
	if (sync_load_sc(&c->word) & WORD_FLAG)
		evc__reactor_poke(r);
	*ret = r;
	return 0;
}

void
evc__reactor_release(evc_reactor *r)
{
	evc_coord *c = r->c;
	struct evc__frame *f;

	sync_lock(&c->lock);
	if (r->loop != NULL)
		evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	list_remove(&r->node);
	sync_unlock(&c->lock);
	for (f = r->frames; f != NULL; f = f->up)
		f->gone = true;
	if (r->loop != NULL)
		stop_watchers(r);
	sync_free(r);
}

evc_reactor *
evc__reactor_here(const evc_coord *c, evc_reactor *preferred)
{
	evc_reactor *r, *found = NULL;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->reactors) {
		r = LIST_OF(n, evc_reactor, node);
		if (r->tid != evc__tid() || r->loop == NULL)
			continue;
		if (r == preferred || (preferred == NULL && r == c->home))
			return r;
		if (preferred == NULL && found == NULL)
			found = r;
	}
	return found;
}

evc_status
evc__reactor_usable(const evc_reactor *r, const char *func)
{
	if (r->loop == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: loop %s was destroyed", func, r->name);
	return 0;
}

evc_status
evc_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		   evc_reactor **ret_reactor)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && (loop == NULL || ret_reactor == NULL))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_reactor_attach: no loop, or no place for "
				 "the reactor");
	if (st == 0)
		st = evc__check_name(name, __func__);
	if (st == 0)
		st = evc__reactor_attach(c, name != NULL ? name : "loop", loop,
					 ret_reactor);
	return evc__refuse_setup(c, __func__, st);
}

evc_status
evc_reactor_detach(evc_reactor *r)
{
	evc_status st;
	const char *why = NULL;

	if (r == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_reactor_detach: no reactor");
	st = evc__check(r->c, __func__);
	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		why = "another thread's loop";
	else if (r == r->c->home)
		why = "the home stays until evc_free";
	else if (r->frames != NULL)
		why = "inside one of its own callbacks";
	else if (r->n_live > 0)
		why = "it has live tasks";
	else if (!list_empty(&r->joins) || r->driver != NULL)
		why = "a join runs on it";
	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_reactor_detach: %s", why);
	evc__reactor_release(r);
	return 0;
}

evc_reactor *
evc_home(const evc_coord *c)
{
	return c != NULL ? c->home : NULL;
}

struct ev_loop *
evc_reactor_loop(const evc_reactor *r)
{
	return r != NULL ? r->loop : NULL;
}

evc_coord *
evc_reactor_coord(const evc_reactor *r)
{
	return r != NULL ? r->c : NULL;
}
