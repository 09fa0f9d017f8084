/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads of a tree that never call a function of the program.  The watch
 * thread relieves a helper that hangs.  With evc_escalation_opts.at_end a second
 * thread ends the process when a stop of the root is not over in its time; this
 * thread never waits for a lock, and allocates nothing, because a thread that
 * hangs may hold any lock, also the lock of malloc, which the watch thread
 * needs for a new thread.
 *
 * Called by: src/wake, which makes the threads; evc_free.
 * Locks: the tree's guards tree->watch; the root's is tried for each look.
 * Atomics: watch_seq, quit, answered, reported.
 */
#include "core/core.h"
#include "core/helper/threads.h"
#include "core/join/watch.h"

#include "base/self.h"
#include "base/spawn.h"
#include "base/text.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* The end of the stop may move without a wake-up for this thread, so a look
   comes at least so often while a stop stands. */
#define LOOK_NS (100 * UINT64_C(1000000))
/* So long after its end, a stop without an answer ends the process; a join of
   the program has had time to answer. */
#define AFTER_END_NS (50 * UINT64_C(1000000))
/* So long the end of the process waits for the report of the helper. */
#define REPORT_NS (100 * UINT64_C(1000000))
#define STATUS_LATE 124 /* as timeout(1), and as evc_finish */

struct evc__watch_thread {
	struct evc__listener listener; /* first: tell() casts it to a watch */
	/* set at creation */
	evc_coord *root;
	/* root's lock */
	pthread_t thread, end_thread;
	bool has_end;      /* end_thread is a thread */
	_Atomic bool quit; /* atomic: evc_free -> the threads */
	/* end_thread only */
	uint32_t seen;     /* the last stop with a known end */
	uint64_t seen_end; /* its end at the last look, by the clock of the
			      root */
};

static void
tell_watch(struct evc__listener *l)
{
	evc__watch_wake(((struct evc__watch_thread *)l)->root->tree);
}

/* Lock of c held: when the time of the stop is over.  Force that a join uses, or
   a stop that a join puts off, takes its time. */
static uint64_t
end_of_stop(evc_coord *c, uint32_t stop, uint64_t now)
{
	uint64_t end = evc__own_end(c), returns;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->join.all) {
		uint64_t until = LIST_OF(n, struct evc__join, node)->end_ns;
		uint64_t force = until != 0 ? evc__deadline_left_ns(until) : 0;

		if (force > 0 && end < now + force)
			end = now + force;
	}
	returns = evc__returns_end(c, stop);
	return end > returns ? end : returns;
}

/* No lock, because a thread that hangs has the lock: the end of the stop without
   joins and extensions. */
static uint64_t
guess_end(evc_coord *c, uint64_t w, uint64_t now)
{
	const evc_reason *r = evc__reason_peek(c, WORD_WIN_SLOT(w), w);
	struct evc__view v = {
		.stop = r != NULL ? r->mono_ns | 1 : now | 1,
		.grace = evc__stop_grace(c, w),
		.longest = INFINITY,
		.grace_cut = evc__grace_cut_at(c, WORD_STOP_NUMBER(w)),
		.cut_grace = sync_load(&c->wake.cut_grace_ns),
	};

	return evc__deadline(&v);
}

/* No lock: how long until the process is to end, in real nanoseconds; 0: now;
   SYNC_FOREVER: not by this stop. */
static uint64_t
until_end(struct evc__watch_thread *watch, uint32_t stop)
{
	evc_coord *c = watch->root;
	bool locked = evc__lock_tree(c);
	uint64_t w = sync_load_sc(&c->word), now, end, left = SYNC_FOREVER;

	if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
	    sync_load_sc(&c->tree->answered) != stop &&
	    !sync_load(&c->life.abandoned)) {
		now = evc__now(c);
		if (locked)
			watch->seen_end = end_of_stop(c, stop, now);
		else if (watch->seen != stop)
			watch->seen_end = guess_end(c, w, now);
		watch->seen = stop;
		end = evc__after(watch->seen_end, AFTER_END_NS);
		left = end > now ? evc__real_ns(c, end - now) : 0;
	}
	if (locked)
		sync_unlock(&c->lock);
	return left;
}

static void
await_reported(evc_coord *c, uint32_t stop, uint64_t until)
{
	evc__helper_ring(c);
	while (sync_load_sc(&c->tree->reported) != stop &&
	       (sync_mono() < until || evc__helper_may_take(c)) &&
	       !evc__log_hangs(c->tree))
		evc__nap(BACKOFF_FIRST_NS);
}

void
evc__await_report(evc_coord *c, uint32_t stop, uint64_t ns)
{
	uint64_t until = evc__deadline_in_ns(ns);
	struct evc__busy busy;

	/* A loop is not late while its thread waits for the report. */
	sync_lock(&c->lock);
	evc__busy_begin(evc__reactor_here(c, NULL), c, BUSY_TURN, NULL, &busy);
	sync_unlock(&c->lock);
	await_reported(c, stop, until);
	evc__busy_end(&busy);
	evc__log_settle(c, evc__deadline_left_ns(until));
}

/* evc__await_report without a lock. */
static void
await_lines(evc_coord *c, uint32_t stop, uint64_t ns)
{
	const struct evc__log_queue *q = &c->tree->log;
	uint64_t until = evc__deadline_in_ns(ns);

	await_reported(c, stop, until);
	while ((sync_load(&q->n) > 0 || sync_load(&q->calling_ns) != 0) &&
	       sync_mono() < until && !evc__log_hangs(c->tree))
		evc__nap(BACKOFF_FIRST_NS);
}

static void
add_late(evc_coord *c, struct text *t)
{
	char names[160];
	unsigned n = 0;
	bool locked = evc__lock_tree(c);

	if (locked) {
		n = evc__names_live(c, true, names, sizeof names);
		sync_unlock(&c->lock);
	}
	if (n > 0)
		evc__text_fmt(t, "; still running: %s", names);
	else if (!locked)
		evc__text_add(t, "; a thread hangs and holds the lock of the "
				 "members");
	if (sync_load_sc(&c->stop.n_driving) == 0 &&
	    sync_load_sc(&c->stop.n_host_runs) == 0)
		evc__text_add(t, "; no join waits");
}

static void
write_line(evc_coord *c, unsigned how, int status)
{
	char buf[400];
	/* One byte is kept for the end of the line. */
	struct text t = evc__lines_in(buf, sizeof buf - 1);
	struct pollfd line = { .fd = STDERR_FILENO, .events = POLLOUT };

	evc__text_fmt(&t, "evcoord: stop of %s is not over in its time: ",
		      c->name);
	if (how == EVC_AT_END_ABORT)
		evc__text_add(&t, "aborting");
	else
		evc__text_fmt(&t, "leaving with status %d", status);
	add_late(c, &t);
	strcat(buf, "\n");
	/* A full pipe or a stopped terminal must not delay the end. */
	if (sync_ppoll(&line, 1, 0) == 1)
		(void)!write(STDERR_FILENO, buf, strlen(buf));
}

static void
end_process(evc_coord *c, unsigned how)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	int status = WORD_ERR_CODE(sync_load(&c->word)) != 0 ? 1 : STATUS_LATE;

	write_line(c, how, status);
	if (how == EVC_AT_END_ABORT) {
		/* No handler of the program is called. */
		sigaction(SIGABRT, &by_default, NULL);
		abort();
	}
	_exit(status);
}

/* Look at the stop of the root; returns how long until the next look. */
static uint64_t
look_at_end(struct evc__watch_thread *watch)
{
	evc_coord *c = watch->root;
	uint64_t w = sync_load_sc(&c->word), left;
	uint32_t stop = WORD_STOP_NUMBER(w);
	unsigned how = evc__escalation(c)->at_end;

	if (!(w & WORD_FLAG) || sync_load_sc(&c->tree->answered) == stop)
		return SYNC_FOREVER;
	if (how == 0)
		return LOOK_NS;
	left = until_end(watch, stop);
	if (left > 0)
		return left < LOOK_NS ? left : LOOK_NS;
	await_lines(c, stop, REPORT_NS);
	/* A join may have returned, or the stop was cleared, meanwhile. */
	if (until_end(watch, stop) == 0)
		end_process(c, how);
	return 0;
}

/* Does a stop of the root stand, without an answer? */
static bool
stop_stands(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);

	return (w & WORD_FLAG) &&
	       sync_load_sc(&c->tree->answered) != WORD_STOP_NUMBER(w);
}

static void *
watch_main(void *arg)
{
	struct evc__watch_thread *watch = arg;
	struct evc__tree *tree = watch->root->tree;
	uint64_t wait;
	uint32_t seq;

	evc__thread_rename("evcoord-watch");
	for (;;) {
		seq = sync_load_sc(&tree->watch_seq);
		if (sync_load_sc(&watch->quit))
			return NULL;
		wait = evc__helper_watch_over(tree);
		if (wait > LOOK_NS && stop_stands(watch->root))
			wait = LOOK_NS;
		sync_futex_wait(&tree->watch_seq, seq, wait);
	}
}

static void *
end_main(void *arg)
{
	struct evc__watch_thread *watch = arg;
	struct evc__tree *tree = watch->root->tree;
	uint32_t seq;

	evc__thread_rename("evcoord-end");
	evc__lock_never_hangs();
	for (;;) {
		seq = sync_load_sc(&tree->watch_seq);
		if (sync_load_sc(&watch->quit))
			return NULL;
		sync_futex_wait(&tree->watch_seq, seq, look_at_end(watch));
	}
}

/* An errno value, or 0. */
static int
start_thread(pthread_t *ret, void *(*fn)(void *),
	     struct evc__watch_thread *watch)
{
	struct evc__spawn s;
	int e;

	evc__spawn_begin(&s, 0, false);
	e = sync_thread_create(ret, &s.attr, fn, watch);
	evc__spawn_end(&s);
	return e;
}

/* Lock of the root held.  NULL: errno says why. */
static struct evc__watch_thread *
make_watch(evc_coord *root)
{
	struct evc__watch_thread *watch = sync_alloc(1, sizeof *watch);
	int e;

	if (watch == NULL)
		return NULL;
	watch->root = root;
	watch->listener.tell = tell_watch;
	if (!evc__listen(root, &watch->listener)) {
		sync_free(watch);
		return NULL;
	}
	e = start_thread(&watch->thread, watch_main, watch);
	if (e == 0)
		return watch;
	evc__unlisten(root, &watch->listener);
	sync_free(watch);
	errno = e;
	return NULL;
}

bool
evc__watch_need(evc_coord *root, bool at_end)
{
	struct evc__watch_thread *watch = root->tree->watch;

	if (watch == NULL)
		watch = root->tree->watch = make_watch(root);
	if (watch != NULL && at_end && !watch->has_end)
		watch->has_end = start_thread(&watch->end_thread, end_main,
					      watch) == 0;
	return watch != NULL && (!at_end || watch->has_end);
}

void
evc__watch_end(evc_coord *root)
{
	struct evc__watch_thread *watch = root->tree->watch;

	if (watch == NULL)
		return;
	sync_store_sc(&watch->quit, true);
	evc__watch_wake(root->tree);
	(void)sync_thread_join(watch->thread, NULL, SYNC_FOREVER);
	if (watch->has_end)
		(void)sync_thread_join(watch->end_thread, NULL, SYNC_FOREVER);
	sync_lock(&root->lock);
	evc__unlisten(root, &watch->listener);
	sync_unlock(&root->lock);
	root->tree->watch = NULL;
	sync_free(watch);
}
