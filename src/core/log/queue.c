/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a tree that wait for their log hooks.  Any thread puts a line
 * into the queue; the helper thread alone calls hooks, one line after the
 * other.  So a cause stands before its consequence, and a hook that hangs holds
 * up the helper alone, which is relieved (helper/serve.c).
 *
 * Called by: log.c; the helper thread, through the table struct evc__upper;
 * evc_free.
 * Locks: the queue's own, a leaf, given up while a hook runs; a coordinator's
 * lock may be held by a thread that adds a line.  Atomics: n, changed,
 * calling_ns.
 */
#include "core/core.h"
#include "core/helper/threads.h"

#include "base/deadline.h"
#include "base/text.h"
#include "base/unwind.h"

/* Lines that wait, at most: a hook that hangs must not cost all memory.  Lines
   of the program do not take the last places, which are the library's. */
#define LINES_MOST    1100
#define PROGRAMS_MOST 1000

/* The event of the line that the calling thread hands to a hook; 0: none. */
static __thread uint64_t event_ns;
/* The tree whose hook the calling thread is in; or NULL. */
static __thread const struct evc__tree *inside;

uint64_t
evc__log_event_ns(void)
{
	return event_ns != 0 ? event_ns : sync_real();
}

bool
evc__log_inside(const evc_coord *c)
{
	return inside == c->tree;
}

void
evc__log_inherited(void)
{
	inside = NULL;
	event_ns = 0;
}

SHUT_VOID(call, (evc_coord *c, int level, const char *line,
		 const evc_reason *r),
	  c->log.fn(level, line, r, c->log.arg))

/* The hook may write, and a write is a cancellation point: so cancellation is
   off during the call. */
static void
call_hook(evc_coord *c, int level, const char *line, const evc_reason *r)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	call(c, level, line, r);
	pthread_setcancelstate(old, NULL);
}

void
evc__log_queue_init(struct evc__log_queue *q)
{
	sync_lock_init(&q->lock);
	list_init(&q->lines);
}

void
evc__log_queue_destroy(struct evc__log_queue *q)
{
	sync_lock_destroy(&q->lock);
}

static void
wake_helper(struct evc__tree *tree)
{
	sync_lock(&tree->lock);
	if (tree->helper != NULL)
		evc__helper_wake(tree->helper);
	sync_unlock(&tree->lock);
}

/* Queue's lock held: a line that was made with the tree; NULL: all are in
   use. */
static struct evc__log_line *
take_spare(struct evc__log_queue *q)
{
	unsigned i;

	for (i = 0; i < LOG_SPARES; i++)
		if (q->spare[i].line.c == NULL) {
			q->spare[i].line.spare = true;
			q->spare[i].line.text = q->spare[i].text;
			return &q->spare[i].line;
		}
	return NULL;
}

/* Queue's lock held, unless l is NULL. */
static void
free_line(struct evc__log_line *l)
{
	if (l != NULL && l->spare)
		l->c = NULL;
	else
		sync_free(l);
}

static void
put_line(evc_coord *c, bool programs, int level, uint64_t real_ns,
	 const evc_reason *r, const char *text)
{
	struct evc__log_queue *q = &c->tree->log;
	size_t size = strlen(text) + 1;
	struct evc__log_line *l;

	if (c->log.fn == NULL)
		return;
	/* A fork child has no helper thread. */
	if (!evc__same_process(c)) {
		call_hook(c, level, text, r);
		return;
	}
	l = sync_alloc(1, sizeof *l + size);
	if (l != NULL) {
		l->text = (char *)(l + 1);
		memcpy(l->text, text, size);
	}
	sync_lock(&q->lock);
	if (l == NULL && !programs && (l = take_spare(q)) != NULL)
		evc__copy_dots(l->text, LOG_SPARE_TEXT, text);
	if (l == NULL ||
	    sync_load(&q->n) >= (programs ? PROGRAMS_MOST : LINES_MOST)) {
		q->n_lost++;
		free_line(l);
		sync_unlock(&q->lock);
		return;
	}
	l->c = c->log.of;
	l->level = level;
	l->real_ns = real_ns != 0 ? real_ns : sync_real();
	l->number = ++q->last;
	l->has_reason = r != NULL;
	if (r != NULL)
		l->reason = *r;
	list_append(&q->lines, &l->node);
	sync_add(&q->n, 1);
	sync_unlock(&q->lock);
	wake_helper(c->tree);
}

void
evc__log_put(evc_coord *c, int level, uint64_t real_ns, const evc_reason *r,
	     const char *text)
{
	put_line(c, false, level, real_ns, r, text);
}

void
evc__log_put_programs(evc_coord *c, int level, const evc_reason *r,
		      const char *text)
{
	put_line(c, true, level, 0, r, text);
}

static struct evc__log_line *
first_line(const struct evc__log_queue *q)
{
	return LIST_OF(q->lines.next, struct evc__log_line, node);
}

/* Queue's lock held: take the first line out. */
static struct evc__log_line *
take_line(struct evc__log_queue *q)
{
	struct evc__log_line *l = first_line(q);

	list_remove(&l->node);
	q->calling = l->c;
	q->calling_number = l->number;
	/* The watch thread, which takes no lock, sees the line in one of
	   them. */
	sync_store(&q->calling_ns, sync_mono() | 1);
	sync_sub(&q->n, 1);
	return l;
}

/* No lock: call the hook for each line of l, and then for lines that were
   lost. */
static void
hand_out(struct evc__log_line *l, unsigned lost)
{
	evc_coord *c = l->c;
	char text[96], *one = l->text, *next;
	struct text t = evc__lines_in(text, sizeof text);

	inside = c->tree;
	event_ns = l->real_ns;
	for (; one != NULL && inside != NULL; one = next) {
		next = strchr(one, '\n');
		if (next != NULL)
			*next++ = '\0';
		call_hook(c, l->level, one, l->has_reason ? &l->reason : NULL);
	}
	if (lost > 0 && inside != NULL) {
		event_ns = 0;
		evc__text_fmt(&t, "%u lines of the log are lost: too many "
				  "waited for the log hook, or no memory",
			      lost);
		call_hook(c, EVC_LOG_WARNING, text, NULL);
	}
	/* The hook has forked: the child has no helper. */
	if (inside == NULL)
		pthread_exit(NULL);
	event_ns = 0;
	inside = NULL;
}

void
evc__log_drain(struct evc__tree *tree)
{
	struct evc__log_queue *q = &tree->log;
	struct evc__log_line *l;
	unsigned lost;

	if (sync_load_sc(&q->n) == 0)
		return;
	sync_lock(&q->lock);
	/* Another thread of the helper is inside a hook, and goes on with the
	   lines when the hook returns. */
	while (q->calling == NULL && !list_empty(&q->lines)) {
		l = take_line(q);
		lost = list_empty(&q->lines) ? q->n_lost : 0;
		q->n_lost -= lost;
		sync_unlock(&q->lock);
		hand_out(l, lost);
		sync_lock(&q->lock);
		free_line(l);
		q->calling = NULL;
		sync_store(&q->calling_ns, 0);
		sync_add(&q->changed, 1);
		sync_futex_wake(&q->changed);
	}
	sync_unlock(&q->lock);
}

/* Queue's lock held: is a line with this number, or an older line, not handed
   out yet? */
static bool
waits_for(const struct evc__log_queue *q, uint32_t number)
{
	if (q->calling != NULL && (int32_t)(q->calling_number - number) <= 0)
		return true;
	return !list_empty(&q->lines) &&
	       (int32_t)(first_line(q)->number - number) <= 0;
}

bool
evc__log_flush(evc_coord *c, uint64_t ns)
{
	struct evc__log_queue *q = &c->tree->log;
	uint64_t until = evc__deadline_in_ns(ns);
	uint32_t number;
	bool flushed;

	if (evc__log_inside(c) || !evc__same_process(c))
		return true;
	if (evc__helper_is_self(c))
		evc__log_drain(c->tree);
	sync_lock(&q->lock);
	number = q->last;
	while (waits_for(q, number) &&
	       evc__await_change(&q->lock, &q->changed, until))
		;
	flushed = !waits_for(q, number);
	sync_unlock(&q->lock);
	return flushed;
}

bool
evc__log_hangs(const struct evc__tree *tree)
{
	uint64_t since = sync_load(&tree->log.calling_ns);

	return since != 0 && sync_mono() - since >= LOG_HANGS_NS;
}

void
evc__log_forget(evc_coord *c)
{
	struct evc__log_queue *q = &c->tree->log;
	struct list *n, *tmp;

	sync_lock(&q->lock);
	LIST_EACH(n, tmp, &q->lines) {
		struct evc__log_line *l =
			LIST_OF(n, struct evc__log_line, node);

		if (l->c != c)
			continue;
		list_remove(&l->node);
		sync_sub(&q->n, 1);
		free_line(l);
	}
	while (q->calling == c && !evc__log_inside(c))
		evc__await_change(&q->lock, &q->changed, SYNC_FOREVER);
	sync_add(&q->changed, 1);
	sync_futex_wake(&q->changed);
	sync_unlock(&q->lock);
}
