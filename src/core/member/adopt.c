/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered threads: pthreads of the program's own that the coordinator joins.
 * The code is in core, and not with the members, because a join takes a list of
 * such threads.
 *
 * Called by: evc_register_thread, evc__adopt_list for joins with a list.
 * Locks: the coordinator's is held where a function says so, and given up while
 * another thread joins.
 */
#include "core/core.h"

#include "base/deadline.h"
#include "base/kick.h"
#include "base/text.h"

/* Is t detached, or no thread?  When there is no answer, t counts as
   joinable. */
static int
is_detached(pthread_t t)
{
	pthread_attr_t attr;
	int state = PTHREAD_CREATE_JOINABLE;

	if (t == 0)
		return 1; /* t is no thread at all */
	if (pthread_getattr_np(t, &attr) != 0)
		return 0;
	pthread_attr_getdetachstate(&attr, &state);
	pthread_attr_destroy(&attr);
	return state == PTHREAD_CREATE_DETACHED;
}

/* Lock held: the member of the thread t, or NULL.  *ret_busy: another thread is
   joining t now. */
static struct evc__member *
find_pthread(const evc_coord *c, pthread_t t, bool *ret_busy)
{
	struct list *n, *tmp;

	*ret_busy = false;
	LIST_EACH(n, tmp, &c->member.all) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		if (!evc__is_thread(m) || (m->e.flags & EVC_NOT_JOINED) ||
		    !pthread_equal(m->thread, t))
			continue;
		if (sync_load(&m->state) != EVC_REAPING)
			return m;
		*ret_busy = true;
	}
	return NULL;
}

static struct evc__member *
make_adopted(evc_coord *c, const char *name, pthread_t t,
	     const evc_member_opts *o)
{
	char kernel[48] = "";
	struct evc__member *m;

	if (name == NULL || name[0] == '\0') {
		pthread_getname_np(t, kernel, sizeof kernel);
		name = kernel;
	}
	m = evc__member_new(c, sizeof(struct evc__pthread), EVC_REGISTERED,
			    name, o);
	if (m == NULL)
		return NULL;
	m->ops = &evc__pthread_ops;
	m->thread = t;
	m->tid = evc__pthread_tid(t);
	return m;
}

/* Lock held: if the calling thread is the thread of m, store m as its
   member. */
static void
is_self(struct evc__member *m)
{
	struct evc__self *self = evc__self();

	if (!pthread_equal(m->thread, pthread_self()))
		return;
	if (self->member == NULL)
		evc__self_is(m);
	if (m->kick != NULL)
		evc__kick_unblock(NULL);
}

/* Lock held, given up while another thread joins an equal pthread_t: put m into
   the register, or free m.  Returns the entry of the thread, perhaps an older
   entry than m; NULL: no memory. */
static struct evc__member *
adopt_member(evc_coord *c, struct evc__member *m, const evc_member_opts *o)
{
	struct evc__member *old;
	bool busy;

	/* After the join of a thread its pthread_t may be used again.  So while
	   another thread joins an equal pthread_t, this pthread_t may be the
	   old thread or a new thread.  The end of the join rings. */
	sync_add(&c->stop.n_sleepers, 1);
	while ((old = find_pthread(c, m->thread, &busy)) == NULL && busy)
		evc__await_change(&c->lock, &c->stop.join_seq,
				  evc__deadline_in_ns(BACKOFF_FIRST_NS));
	sync_sub(&c->stop.n_sleepers, 1);
	if (old != NULL) {
		sync_free(m);
		is_self(old);
		return old;
	}
	if (evc__wakers_add(m, o, NULL, "evc_register_thread") < 0 ||
	    evc__member_add(c, m) < 0) {
		evc__wakers_drop(m);
		sync_free(m);
		return NULL;
	}
	is_self(m);
	if (!evc__pthread_watch(m))
		evc__member_probed(m, true);
	if (m->name[0] == '\0') {
		struct text name = evc__text_in(m->name, sizeof m->name);

		evc__text_add(&name, "thread ");
		evc__text_int(&name, m->tid);
	}
	/* A waiting join has another member to wait for. */
	evc__ring(c);
	return m;
}

evc_status
evc__adopt_list(evc_coord *c, const evc_join_opts *o)
{
	unsigned n = o != NULL ? o->n_threads : 0, i;
	struct evc__member **made;
	evc_status st = 0;

	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		if (is_detached(o->threads[i]))
			return evc__refuse(
				-EVC_INVALID_ARGUMENT,
				"thread %u of the list is none, or detached",
				i);
	/* All memory is allocated first, so that the whole list is registered,
	   or nothing. */
	made = sync_alloc(n, sizeof *made);
	for (i = 0; made != NULL && i < n; i++) {
		made[i] = make_adopted(c, NULL, o->threads[i], NULL);
		if (made[i] == NULL)
			break;
	}
	sync_lock(&c->lock);
	if (made == NULL || i < n || !evc__id_reserve(c, n)) {
		while (made != NULL && i > 0)
			sync_free(made[--i]);
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "no memory for the list of threads");
	}
	for (i = 0; st == 0 && i < n; i++)
		adopt_member(c, made[i], NULL);
	sync_unlock(&c->lock);
	sync_free(made);
	return st;
}

static evc_status
register_thread(evc_coord *c, const char *name, pthread_t t,
		const evc_member_opts *o, evc_id *ret_id)
{
	evc_status st =
		evc__check_opts(o, EVC_REGISTERED, "evc_register_thread");
	struct evc__member *m;

	if (st == 0 && o != NULL && (o->flags & EVC_NOT_JOINED))
		return evc__not_joined_add(c, name, t, o, ret_id,
					   "evc_register_thread");
	if (st == 0 && pthread_equal(t, pthread_self()))
		st = evc__not_joined_check(c, "evc_register_thread");
	if (st < 0)
		return st;
	if (is_detached(t))
		return evc__refuse(
			-EVC_INVALID_ARGUMENT,
			"evc_register_thread: no thread, or one that "
			"is detached");
	m = make_adopted(c, name, t, o);
	if (m == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_register_thread: no memory");
	sync_lock(&c->lock);
	m = adopt_member(c, m, o);
	if (m != NULL && ret_id != NULL)
		*ret_id = m->e.id;
	sync_unlock(&c->lock);
	return m != NULL ? 0 : -EVC_RESOURCE_EXHAUSTED;
}

evc_status
evc_register_thread(evc_coord *c, const char *name, pthread_t t,
		    const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = register_thread(c, name, t, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}
