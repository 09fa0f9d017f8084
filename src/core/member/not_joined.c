/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered threads that somebody else joins, such as a std::thread.  The
 * calling thread registers itself, and the library never uses the pthread_t of
 * the thread.  A thread-specific destructor notices the end of the thread: it
 * sets its value again until the last round of destructors but one, so that
 * other destructors run before.  A pidfd, where the kernel has one, and joins
 * after the stop notice also an end without destructors (SYS_exit).
 *
 * Called by: evc_register_thread; the C library, at the end of a thread.
 * Locks: the coordinator's is held where a function says so; inside the refgate
 * at the end of a thread.  The chain of a thread's members is thread-local.
 */
#include "core/core.h"

#include "base/kick.h"
#include "base/self.h"

/* The round of destructors in which a thread ends.  In the last round, the next
   one, sanitizers take down what they keep for the thread, and no code that
   they watch may run afterwards. */
#define END_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key; /* set once, before its first use */
/* The members that are the calling thread, by their field `beside`. */
static __thread struct evc__pthread *mine;
static __thread unsigned rounds;

static struct evc__pthread *
pthread_of(struct evc__member *m)
{
	return LIST_OF(m, struct evc__pthread, m);
}

/* ---- the end ---- */

/* The calling thread, which is m, is about to end.  m lives, so the refgate of
   its coordinator is open. */
static void
end_member(struct evc__member *m)
{
	struct evc__self *self = evc__self();
	evc_coord *c = m->c;

	if (!evc__refgate_enter(&c->life.gate))
		return;
	if (self->member == m) {
		self->member = NULL;
		self->mark = NULL;
	}
	sync_lock(&c->lock);
	m->ops->vanished(m);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
}

/* The destructor of `key`. */
static void
thread_ends(void *value)
{
	struct evc__pthread *p, *next;

	if (++rounds < END_ROUND &&
	    pthread_setspecific(key, value) == 0)
		return;
	evc__wakers_end();
	for (p = mine; p != NULL; p = next) {
		next = p->beside;
		/* The members of a fork child belong to the parent. */
		if (evc__same_process(p->m.c))
			end_member(&p->m);
	}
	mine = NULL;
}

static void
make_key(void)
{
	has_key = pthread_key_create(&key, thread_ends) == 0;
}

/* ---- the begin ---- */

/* Has the key a value for the calling thread? */
static bool
watch_end(void)
{
	pthread_once(&once, make_key);
	return has_key && pthread_setspecific(key, &mine) == 0;
}

evc_status
evc__not_joined_check(const evc_coord *c, const char *func)
{
	const struct evc__pthread *p;

	for (p = mine; p != NULL; p = p->beside)
		if (p->m.c == c)
			return evc__refuse(-EVC_ALREADY_EXISTS,
					   "%s: the thread is registered as one "
					   "that somebody else joins",
					   func);
	return 0;
}

/* Lock held: put m, which is new, into the register. */
static evc_status
enter_member(struct evc__member *m, const evc_member_opts *o, const char *func)
{
	evc_coord *c = m->c;
	evc_status st = evc__wakers_add(m, o, NULL, func);

	if (st == 0)
		st = evc__member_add(c, m);
	if (st < 0) {
		evc__wakers_drop(m);
		return st;
	}
	pthread_of(m)->beside = mine;
	mine = pthread_of(m);
	if (evc__self()->member == NULL)
		evc__self_is(m);
	if (m->kick != NULL)
		evc__kick_unblock(NULL);
	(void)evc__pthread_watch(m);
	/* A waiting join has another member to wait for. */
	evc__ring(c);
	return 0;
}

static evc_status
add_member(evc_coord *c, const char *name, const evc_member_opts *o,
	   evc_id *ret_id, const char *func)
{
	struct evc__member *m = NULL;
	evc_status st = 0;
	char kernel[48] = "";

	if (name == NULL || name[0] == '\0') {
		pthread_getname_np(pthread_self(), kernel, sizeof kernel);
		name = kernel;
	}
	if (watch_end())
		m = evc__member_new(c, sizeof(struct evc__pthread),
				    EVC_REGISTERED, name, o);
	if (m == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	m->ops = &evc__not_joined_ops;
	m->tid = evc__tid();
	sync_lock(&c->lock);
	evc__members_bury(c);
	if (evc__member_self(c) != NULL)
		st = evc__refuse(-EVC_ALREADY_EXISTS,
				 "%s: the coordinator joins this thread", func);
	if (st == 0)
		st = enter_member(m, o, func);
	if (st == 0 && ret_id != NULL)
		*ret_id = m->e.id;
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(m);
	evc__later_run(c);
	return st;
}

evc_status
evc__not_joined_add(evc_coord *c, const char *name, pthread_t t,
		    const evc_member_opts *o, evc_id *ret_id, const char *func)
{
	const struct evc__pthread *p;

	if (!pthread_equal(t, pthread_self()))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_NOT_JOINED is for the calling "
				   "thread alone",
				   func);
	for (p = mine; p != NULL; p = p->beside)
		if (p->m.c == c) {
			if (ret_id != NULL)
				*ret_id = p->m.e.id;
			return 0;
		}
	return add_member(c, name, o, ret_id, func);
}
