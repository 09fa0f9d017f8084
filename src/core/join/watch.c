/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watch thread, one for a tree, never calls a function of the program, so
 * nothing can hold it up.  It relieves a helper that hangs, and ends the
 * process when a stop of the root is not over in its time
 * (evc_escalation_opts.at_end).
 *
 * Called by: src/wake, which makes the thread; evc_free.
 * Locks: the tree's guards tree->watch; the root's is taken for each look.
 * Atomics: watch_seq, quit, answered, reported.
 */
#include "core/core.h"
#include "core/helper/threads.h"
#include "core/join/watch.h"

#include "base/self.h"
#include "base/spawn.h"
#include "base/text.h"

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
	pthread_t thread;
	_Atomic bool quit; /* atomic: evc_free -> the thread */
};

static void
tell_watch(struct evc__listener *l)
{
	evc__watch_wake(((struct evc__watch_thread *)l)->root->tree);
}

/* No lock: how long until the process is to end, in real nanoseconds; 0: now;
   SYNC_FOREVER: not by this stop.  Force that a join uses, or a stop that a join
   puts off, takes its time. */
static uint64_t
until_end(evc_coord *c, uint32_t stop)
{
	uint64_t w, end, now, left = SYNC_FOREVER;
	struct list *n, *tmp;

	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
	    sync_load_sc(&c->tree->answered) != stop &&
	    !sync_load(&c->life.abandoned)) {
		now = evc__now(c);
		end = evc__own_end(c);
		LIST_EACH(n, tmp, &c->join.all) {
			uint64_t until =
				LIST_OF(n, struct evc__join, node)->end_ns;
			uint64_t force = until != 0 ?
						 evc__deadline_left_ns(until) :
						 0;

			if (force > 0 && end < now + force)
				end = now + force;
		}
		end = evc__after(end, AFTER_END_NS);
		if (end < evc__returns_end(c, stop))
			end = evc__returns_end(c, stop);
		left = end > now ? evc__real_ns(c, end - now) : 0;
	}
	sync_unlock(&c->lock);
	return left;
}

void
evc__await_report(evc_coord *c, uint32_t stop, uint64_t ns)
{
	uint64_t until = evc__deadline_in_ns(ns);

	evc__helper_ring(c);
	while (sync_load_sc(&c->tree->reported) != stop &&
	       sync_mono() < until && !evc__log_hangs(c->tree))
		evc__nap(BACKOFF_FIRST_NS);
	evc__log_settle(c, evc__deadline_left_ns(until));
}

static void
write_line(const evc_coord *c, unsigned how, int status)
{
	char buf[160];
	/* One byte is kept for the end of the line. */
	struct text t = evc__lines_in(buf, sizeof buf - 1);
	struct pollfd line = { .fd = STDERR_FILENO, .events = POLLOUT };

	evc__text_fmt(&t, "evcoord: stop of %s is not over in its time: ",
		      c->name);
	if (how == EVC_AT_END_ABORT)
		evc__text_add(&t, "aborting");
	else
		evc__text_fmt(&t, "leaving with status %d", status);
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
look_at_end(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word), left;
	uint32_t stop = WORD_STOP_NUMBER(w);
	unsigned how = evc__escalation(c)->at_end;

	if (!(w & WORD_FLAG) || sync_load_sc(&c->tree->answered) == stop)
		return SYNC_FOREVER;
	if (how == 0)
		return LOOK_NS;
	left = until_end(c, stop);
	if (left > 0)
		return left < LOOK_NS ? left : LOOK_NS;
	evc__await_report(c, stop, REPORT_NS);
	/* A join may have returned, or the stop was cleared, meanwhile. */
	if (until_end(c, stop) == 0)
		end_process(c, how);
	return 0;
}

static void *
watch_main(void *arg)
{
	struct evc__watch_thread *watch = arg;
	struct evc__tree *tree = watch->root->tree;
	uint64_t wait, end;
	uint32_t seq;

	evc__thread_rename("evcoord-watch");
	for (;;) {
		seq = sync_load_sc(&tree->watch_seq);
		if (sync_load_sc(&watch->quit))
			return NULL;
		wait = evc__helper_watch_over(tree);
		end = look_at_end(watch->root);
		wait = end < wait ? end : wait;
		sync_futex_wait(&tree->watch_seq, seq, wait);
	}
}

/* Lock of the root held. */
static struct evc__watch_thread *
make_watch(evc_coord *root)
{
	struct evc__watch_thread *watch = sync_alloc(1, sizeof *watch);
	struct evc__spawn s;
	int e;

	if (watch == NULL)
		return NULL;
	watch->root = root;
	watch->listener.tell = tell_watch;
	if (!evc__listen(root, &watch->listener)) {
		sync_free(watch);
		return NULL;
	}
	evc__spawn_begin(&s, 0, false);
	e = sync_thread_create(&watch->thread, &s.attr, watch_main, watch);
	evc__spawn_end(&s);
	if (e == 0)
		return watch;
	evc__unlisten(root, &watch->listener);
	sync_free(watch);
	return NULL;
}

bool
evc__watch_need(evc_coord *root)
{
	if (root->tree->watch == NULL)
		root->tree->watch = make_watch(root);
	return root->tree->watch != NULL;
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
	sync_lock(&root->lock);
	evc__unlisten(root, &watch->listener);
	sync_unlock(&root->lock);
	root->tree->watch = NULL;
	sync_free(watch);
}
