/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: functions to be run on a loop's thread.  In this file and post.h, l is
 * an inbox.
 *
 * Called by: evc_post, evc_post_message and the other calls of evc_loop_ref,
 * any thread; the loop_waker's turn.
 * Locks: posting takes none and enters the inbox's refgate; the loop takes the
 * loop_waker's.  Atomics: in, n, marked.
 */

/*
 * A posting thread pushes a message on the inbox's chain.  The thread that
 * finds the chain empty puts the inbox into the loop_waker's list and sends the
 * ev_async.  The loop takes the whole list, and then the whole chain of each
 * inbox in the list.  Nothing else takes a chain, so a list never has an inbox
 * twice.  Taken messages wait in the loop_waker's queue of inboxes until their
 * call; if a post runs the loop, the inner run finds the other messages in the
 * queue.
 *
 * A post counts as alive from before its push until its function has returned,
 * so no join is over in between.  The refgate keeps the reactor, and with the
 * reactor the loop_waker and the coordinator, for posting threads; no function
 * of the user's runs inside the refgate.
 */
#include "core/loop/post.h"

#include "base/reserved.h"
#include "base/unwind.h"
#include "core/core.h"

void
evc__inbox_drop(evc_loop_ref *l)
{
	if (l != NULL && sync_sub(&l->refs, 1) == 1)
		sync_free(l);
}

evc_loop_ref *
evc__inbox_new(evc_reactor *r)
{
	evc_loop_ref *l = sync_alloc(1, sizeof *l);

	if (l == NULL)
		return NULL;
	sync_store_relaxed(&l->refs, 1);
	l->r = r;
	l->todo_end = &l->todo;
	return l;
}

evc_loop_ref *
evc_loop_of(evc_reactor *r)
{
	if (r == NULL)
		return NULL;
	sync_add(&r->inbox->refs, 1);
	return r->inbox;
}

void
evc_loop_release(evc_loop_ref *loop)
{
	evc__inbox_drop(loop);
}

evc_reactor *
evc_loop_reactor(const evc_loop_ref *loop)
{
	/* The calling thread itself has shut the refgate, so no memory order is
	   needed. */
	return loop == NULL || evc__refgate_is_shut(
				       (struct refgate *)&loop->gate)
		       ? NULL
		       : loop->r;
}

/* ---- to the loop ---- */

static void
push_message(evc_loop_ref *l, evc_message *m)
{
	struct evc__loop_waker *lw = l->r->waker;
	evc_message *first = sync_load(&l->in);
	evc_loop_ref *marked;

	do
		m->next_ = first;
	while (!sync_cas(&l->in, &first, m));
	/* From now on another thread may take the chain and call m, so this
	   thread does not use m any more. */
	if (first != NULL)
		return;
	sync_add(&l->refs, 1);
	marked = sync_load(&lw->marked);
	do
		l->marked_next = marked;
	while (!sync_cas(&lw->marked, &marked, l));
	evc__loop_waker_send(lw);
}

/* Count a new post.  While there are posts, c counts 1 as alive for this inbox:
   from before the first push until the last function has returned. */
static void
count_in(evc_loop_ref *l, evc_coord *c)
{
	uint32_t n = sync_load_sc(&l->n);

	for (;;) {
		if (n > 0) {
			if (sync_cas(&l->n, &n, n + 1))
				return;
			continue;
		}
		evc__alive_add(c);
		if (sync_cas(&l->n, &n, 1))
			return;
		/* Another thread was first, and has counted a post. */
		evc__alive_sub(c);
	}
}

/* n posts have returned.  While the posts were alive, no thread could free c;
   from now on the refgate keeps c until the ring is done.  ring is false when
   tasks live on the loop: joins wait for the tasks anyway. */
static void
count_out(evc_loop_ref *l, evc_coord *c, uint32_t n, bool ring)
{
	bool kept;

	if (n == 0)
		return;
	kept = evc__refgate_enter(&c->life.gate);
	if (sync_sub(&l->n, n) == n) {
		evc__alive_sub(c);
		if (ring)
			evc__ring(c);
	}
	if (kept)
		evc__refgate_leave(&c->life.gate);
}

/* Inside the refgate, so that r and c stay: accept a post.  NULL: done; else
   the reason of the refusal. */
static const char *
accept_post(evc_loop_ref *l, evc_message *m, evc_status *ret)
{
	evc_coord *c = l->r->c;
	bool late = m->flags & EVC_AFTER_STOP;

	*ret = -EVC_CANCELLED;
	if (!late && evc_should_stop(c))
		return "a stop was requested";
	*ret = -EVC_ALREADY_EXISTS;
	if (sync_xchg((_Atomic uint32_t *)&m->posted_, 1) != 0)
		return "it is posted already";
	/* The post is counted before this second look at the flag.  If a join
	   has not seen the count, the stop came before, and this thread sees
	   the stop. */
	count_in(l, c);
	if (late || !(sync_load_sc(&c->word) & WORD_FLAG)) {
		push_message(l, m);
		*ret = 0;
		return NULL;
	}
	sync_store((_Atomic uint32_t *)&m->posted_, 0);
	count_out(l, c, 1, true);
	*ret = -EVC_CANCELLED;
	return "a stop was requested";
}

static evc_status
try_post(evc_loop_ref *l, evc_message *m, const char *func)
{
	const char *why;
	evc_status st;

	if (l == NULL || m == NULL || m->fn == NULL ||
	    (m->flags & ~(unsigned)EVC_AFTER_STOP) ||
	    !RESERVED_IS_ZERO(m->reserved_))
		return evc__refuse_plain(-EVC_INVALID_ARGUMENT, func,
					 "no loop, no function, unknown "
					 "flags, or a message that was not "
					 "zeroed");
	/* In a fork child a thread of the parent's may be inside the
	   refgate. */
	if (!evc__refgate_enter(&l->gate))
		return evc__refuse_plain(-EVC_NOT_FOUND, func,
					 "the loop is gone");
	if (evc__same_process(l->r->c))
		why = accept_post(l, m, &st);
	else {
		st = -EVC_FAILED_PRECONDITION;
		why = "this is a fork child, the loop is its parent's";
	}
	evc__refgate_leave(&l->gate);
	return st < 0 ? evc__refuse_plain(st, func, why) : 0;
}

evc_status
evc_post_message(evc_loop_ref *loop, evc_message *m)
{
	return try_post(loop, m, __func__);
}

bool
evc__inbox_put(evc_loop_ref *l, evc_message *m)
{
	if (!evc__refgate_enter(&l->gate))
		return false;
	m->posted_ = POSTED_UNCOUNTED;
	push_message(l, m);
	evc__refgate_leave(&l->gate);
	return true;
}

/* A post by evc_post, with its message in memory of the library. */
struct post {
	evc_message message; /* first */
	evc_loop_ref *loop;  /* stays while the message is posted */
	evc_post_fn *fn;
	void *arg;
};

static void
run_call(evc_message *m, evc_status why)
{
	struct post p = *(struct post *)m;

	sync_free(m);
	p.fn(why == 0 ? p.loop->r : NULL, why, p.arg);
}

evc_status
evc_post(evc_loop_ref *loop, evc_post_fn *fn, void *arg)
{
	struct post *p;
	evc_status st;

	if (loop == NULL || fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_post: no loop, or no function");
	p = sync_alloc(1, sizeof *p);
	if (p == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_post: no memory");
	p->message.fn = run_call;
	p->loop = loop;
	p->fn = fn;
	p->arg = arg;
	st = try_post(loop, &p->message, __func__);
	if (st < 0)
		sync_free(p);
	return st;
}

/* ---- on the loop ---- */

/* Take the chain, and append its messages to the queue `todo` in their order;
   the chain has the latest message first. */
static void
take_chain(evc_loop_ref *l)
{
	evc_message *m = sync_xchg(&l->in, NULL), *first = NULL, *next;
	evc_message **end = &first;

	for (; m != NULL; m = next) {
		next = m->next_;
		if (first == NULL)
			end = &m->next_;
		m->next_ = first;
		first = m;
	}
	if (first == NULL)
		return;
	*l->todo_end = first;
	l->todo_end = end;
}

SHUT_VOID(call, (evc_message * m, evc_status why), m->fn(m, why))

/* Call the first message of the queue.  Returns how many posts are to be
   counted out: 1 or 0. */
static uint32_t
deliver_message(evc_loop_ref *l, evc_coord *c, evc_status why)
{
	evc_message *m = l->todo;
	bool counted;

	l->todo = m->next_;
	if (l->todo == NULL)
		l->todo_end = &l->todo;
	counted = sync_load_relaxed((_Atomic uint32_t *)&m->posted_) !=
		  POSTED_UNCOUNTED;
	sync_store((_Atomic uint32_t *)&m->posted_, 0);
	/* The function may use c. */
	if (!counted && why == 0) {
		count_in(l, c);
		counted = true;
	}
	call(m, why);
	return counted;
}

/* Call all messages of the queue.  Later posts run in the next turn, or in a
   run of the loop inside a post.  false: r is gone. */
static bool
serve_posts(evc_loop_ref *l, evc_reactor *r)
{
	struct evc__frame f = { r->frames, false };
	evc_coord *c = r->c;
	struct evc__busy busy;
	uint32_t n = 0;

	r->frames = &f;
	evc__busy_begin(r, c, BUSY_POST, NULL, &busy);
	while (!f.gone && l->todo != NULL)
		n += deliver_message(l, c, 0);
	evc__busy_end(&busy);
	if (!evc__same_process(c))
		return false; /* a fork child, made in the post */
	if (!f.gone)
		r->frames = f.up;
	count_out(l, c, n, f.gone || r->n_live == 0);
	return !f.gone;
}

/* Loop thread, lw's lock held: take the list of inboxes and all their chains,
   and queue the inboxes. */
static void
collect_inboxes(struct evc__loop_waker *lw)
{
	evc_loop_ref *l = sync_load(&lw->marked) != NULL
				  ? sync_xchg(&lw->marked, NULL)
				  : NULL;
	evc_loop_ref *first = NULL, *next;

	for (; l != NULL; l = next) {
		next = l->marked_next;
		l->marked_next = first;
		first = l;
	}
	for (l = first; l != NULL; l = next) {
		/* marked_next is read before the chain is taken: afterwards a
		   posting thread may put the inbox into a list again. */
		next = l->marked_next;
		if (l->r != NULL)
			take_chain(l);
		if (l->r == NULL || l->queued) {
			evc__inbox_drop(l);
			continue;
		}
		l->queued = true;
		l->next = NULL;
		*lw->inboxes_end = l;
		lw->inboxes_end = &l->next;
	}
}

/* Loop thread, lw's lock held: the first inbox leaves the queue. */
static void
dequeue_inbox(struct evc__loop_waker *lw)
{
	evc_loop_ref *l = lw->inboxes;

	lw->inboxes = l->next;
	if (lw->inboxes == NULL)
		lw->inboxes_end = &lw->inboxes;
	l->queued = false;
	evc__inbox_drop(l);
}

/* Loop thread, lw's lock held: the first inbox with a message; its reactor is
   pinned, and the caller gets a reference to the inbox. */
static evc_loop_ref *
next_inbox(struct evc__loop_waker *lw)
{
	evc_loop_ref *l;

	while ((l = lw->inboxes) != NULL && (l->r == NULL || l->todo == NULL))
		dequeue_inbox(lw);
	if (l != NULL) {
		sync_add(&l->refs, 1);
		evc__loop_waker_pin(l->r);
	}
	return l;
}

bool
evc__inboxes_serve(struct evc__loop_waker *lw,
		   const struct evc__loop_waker_frame *f)
{
	evc_reactor *r;
	evc_loop_ref *l;
	bool stays;

	sync_lock(&lw->lock);
	collect_inboxes(lw);
	while ((l = next_inbox(lw)) != NULL) {
		r = l->r;
		sync_unlock(&lw->lock);
		stays = serve_posts(l, r);
		evc__inbox_drop(l);
		if (f->gone)
			return false;
		sync_lock(&lw->lock);
		if (stays)
			evc__loop_waker_unpin(r);
	}
	sync_unlock(&lw->lock);
	return true;
}

void
evc__inboxes_drop(struct evc__loop_waker *lw)
{
	evc_loop_ref *l = sync_load(&lw->marked), *next;

	for (; l != NULL; l = next) {
		next = l->marked_next;
		evc__inbox_drop(l);
	}
	while (lw->inboxes != NULL)
		dequeue_inbox(lw);
}

void
evc__inbox_shut(evc_loop_ref *l)
{
	if (!evc__refgate_is_shut(&l->gate))
		evc__refgate_close(&l->gate);
}

void
evc__inbox_empty(evc_loop_ref *l, evc_coord *c)
{
	uint32_t n = 0;

	take_chain(l);
	while (l->todo != NULL)
		n += deliver_message(l, c, EVC_CANCELLED);
	count_out(l, c, n, true);
}
