/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a coordinator: new, and free; why_not.c has the checks.
 *
 * Called by: evc_new, evc_free; finish.c; scope.c and abandon.c
 * take coordinators down.
 * Locks: the coordinator's, for the checks; then the refgate is closed, and no
 * other thread can reach c.  Atomics: the word.
 */
#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/scope_join.h"
#include "core/join/join.h"
#include "core/join/watch.h"
#include "core/life/part.h"
#include "core/life/scope.h"
#include "core/status/trace.h"
#include "core/wake/left.h"

#define REASONS_DEFAULT 32
#define REASONS_SCOPE 8
#define REASONS_MOST 254

_Static_assert(offsetof(struct evc_coord, word) == 0,
	       "evcoord/coord.h reads the word at offset 0");
_Static_assert(sizeof(evc_task) <= 64, "a task is 64 bytes for ever");

static evc_status
check_config(const evc_config *k, bool scope, const char *func)
{
	unsigned i;

	if (evc__check_reserved(k->reserved_, func) < 0 ||
	    evc__check_grace(k->grace, func) < 0)
		return -EVC_INVALID_ARGUMENT;
	if (k->flags & ~(unsigned)(EVC_STRICT_SETUP | EVC_NO_CLEAN_CODES |
				   EVC_NO_HOME | EVC_KICK_RESTORE))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: unknown flags %#x", func, k->flags);
	if ((k->flags & EVC_NO_HOME) && !scope)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_NO_HOME is for scopes", func);
	if (k->max_reasons > REASONS_MOST)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: max_reasons is %d at most", func,
				   REASONS_MOST);
	if (k->n_clean > 0 && k->clean == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: n_clean without clean", func);
	if (k->n_clean > 0 && (k->flags & EVC_NO_CLEAN_CODES))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: a list of clean codes, and "
				   "EVC_NO_CLEAN_CODES",
				   func);
	for (i = 0; i < k->n_clean; i++)
		if (k->clean[i] < 0 || k->clean[i] > 255)
			return evc__refuse(-EVC_INVALID_ARGUMENT,
					   "%s: clean code %d is none", func,
					   k->clean[i]);
	return 0;
}

static void
set_clean(evc_coord *c, evc_status code)
{
	c->status.clean[code / 64] |= UINT64_C(1) << (code % 64);
}

WALLED(bool, call_is_clean, (const evc_config *k, evc_status code),
       k->is_clean(code, k->arg))

static void
configure_clean(evc_coord *c, const evc_config *k)
{
	bool said = k->n_clean > 0 || (k->flags & EVC_NO_CLEAN_CODES) ||
		    k->is_clean != NULL;
	evc_status code;
	unsigned i;

	if (!said && c->parent != NULL) {
		memcpy(c->status.clean, c->parent->status.clean,
		       sizeof c->status.clean);
		return;
	}
	set_clean(c, EVC_OK);
	for (i = 0; i < k->n_clean; i++)
		set_clean(c, k->clean[i]);
	if (k->n_clean == 0 && !(k->flags & EVC_NO_CLEAN_CODES))
		set_clean(c, EVC_OUT_OF_RANGE);
	/* is_clean is called here for all codes, because a request may be in a
	   signal handler, where no function of the user's may be called. */
	for (code = 1; k->is_clean != NULL && code <= 255; code++)
		if (call_is_clean(k, code))
			set_clean(c, code);
}

static void
configure_coord(evc_coord *c, const evc_config *k)
{
	const evc_coord *p = c->parent;

	evc__copy_dots(c->name, sizeof c->name,
		  k->name != NULL && k->name[0] != '\0' ? k->name :
		  p != NULL				? "scope" :
							  "coord");
	c->join.grace = k->grace;
	c->flags = k->flags;
	if (p != NULL)
		c->flags |= p->flags & EVC_KICK_RESTORE;
	if (k->log == NULL && p != NULL) {
		c->log.fn = p->log.fn;
		c->log.arg = p->log.arg;
		c->log.of = p->log.of;
	} else {
		c->log.fn = k->log;
		c->log.arg = k->arg;
		c->log.of = c;
	}
	c->status.clock = p != NULL ? p->status.clock : k->clock;
	c->status.clock_arg = p != NULL ? p->status.clock_arg : k->arg;
	c->stop.n_slots = k->max_reasons != 0 ? k->max_reasons :
			  p != NULL	      ? REASONS_SCOPE :
						REASONS_DEFAULT;
	if (c->stop.n_slots < 2)
		c->stop.n_slots = 2;
	configure_clean(c, k);
}

void
evc__coord_destroy(evc_coord *c)
{
	unsigned i;

	for (i = 0; i < LISTENER_KINDS; i++)
		evc__notify_set_free(&c->stop.listeners[i]);
	evc__stop_fd_close(c);
	sync_lock_destroy(&c->lock);
	if (c->parent == NULL && c->tree != NULL) {
		evc__trace_free(c->tree);
		evc__left_forget(c->tree);
		sync_lock_destroy(&c->tree->lock);
		evc__log_queue_destroy(&c->tree->log);
		sync_free(c->tree);
	}
	sync_free(sync_load(&c->join.scope_join));
	evc__escalation_free(c);
	evc__describers_free(c);
	sync_free(c->join.drain);
	sync_free(c->life.signals_job);
	evc__table_free(&c->member.ids.table);
	evc__outcomes_free(c);
	sync_free(c->stop.slot);
	sync_free((void *)c->stop.slot_word);
	sync_free(c);
}

static const struct evc__upper upper = {
	.run_hooks = evc__hooks_run,
	.log_news = evc__log_errors,
	.drain_log = evc__log_drain,
	.serve = evc__scope_join_serve,
	.run_later = evc__later_run,
	.own_scope_end = evc__own_scope_end,
	.own_scopes_free = evc__own_scopes_free,
	.end_abandoned = evc__abandoned_end,
	.wake_blocked = evc__wake_blocked,
	.turn = evc__turn,
	.cancel_joins = evc__joins_cancel,
};

static bool
build_coord(evc_coord *c, const evc_config *k)
{
	configure_coord(c, k);
	c->life.fork_generation = sync_load(&evc__fork_generation);
	sync_store(&c->stop.fd, -1);
	sync_lock_init(&c->lock);
	list_init(&c->sibling);
	list_init(&c->member.all);
	list_init(&c->loop.hooks);
	list_init(&c->loop.reactors);
	list_init(&c->join.all);
	list_init(&c->scopes);
	list_init(&c->life.describers);
	list_init(&c->member.dormant);
	list_init(&c->member.kept);
	list_init(&c->helper.jobs);
	list_init(&c->wake.wakers);
	list_init(&c->wake.echoes);
	list_init(&c->wake.extensions);
	c->life.ready_ns = evc__now(c);
	if (c->parent != NULL) {
		c->depth = c->parent->depth + 1;
		c->tree = c->parent->tree;
	} else {
		c->tree = sync_alloc(1, sizeof *c->tree);
		if (c->tree != NULL) {
			c->tree->upper = &upper;
			list_init(&c->tree->left);
			sync_lock_init(&c->tree->lock);
			evc__log_queue_init(&c->tree->log);
		}
	}
	if (c->tree != NULL)
		c->number = sync_add(&c->tree->n_coords, 1) + 1;
	c->stop.slot_word =
		sync_alloc(c->stop.n_slots, sizeof *c->stop.slot_word);
	c->stop.slot = sync_alloc(c->stop.n_slots, sizeof *c->stop.slot);
	return c->tree != NULL && c->stop.slot_word != NULL &&
	       c->stop.slot != NULL;
}

evc_status
evc__coord_make(const evc_config *k, const char *func, evc_coord *parent,
		evc_coord **ret_c)
{
	evc_status st = check_config(k, parent != NULL, func);
	evc_coord *c;

	if (st < 0)
		return st;
	c = sync_alloc_aligned(_Alignof(struct evc_coord), sizeof *c);
	if (c == NULL || !evc__fork_watch()) {
		sync_free(c);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	}
	evc__inherit_watch();
	c->parent = parent;
	if (!build_coord(c, k)) {
		evc__coord_destroy(c);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	}
	*ret_c = c;
	return 0;
}

void
evc__coord_release_handlers(evc_coord *c)
{
	if (c->life.release_signals != NULL)
		c->life.release_signals(c);
	if (c->life.release_dump != NULL)
		c->life.release_dump(c);
}

void
evc__coord_take_down(evc_coord *c)
{
	/* Signal handlers go first, because a handler could ask for a stop. */
	evc__coord_release_handlers(c);
	if (c->life.release_systemd != NULL)
		c->life.release_systemd(c);
	/* Other threads may be at the end of a call on c, or about to sleep:
	   they see the change of the word, and then the shut refgate.  Joins
	   above enter by the refgate, too.  The helper may be in the call that
	   has led here. */
	evc__refgate_shut(&c->life.gate);
	sync_or(&c->word, WORD_CLOSING);
	evc__wake_waiters(c);
	if (evc__helper_let_go(c))
		evc__refgate_leave(&c->life.gate);
	evc__refgate_close(&c->life.gate);
	/* The helper ends before the hooks go, because the helper may be in a
	   hook. */
	if (c->parent == NULL)
		evc__watch_end(c);
	if (c->log.of == c)
		(void)evc__log_flush(c, FREE_FLUSH_NS);
	evc__log_forget(c);
	evc__helper_end(c);
	evc__scope_join_drop(c);
	evc__step_drop(c);
	sync_lock(&c->lock);
	evc__dormant_drop(c);
	sync_unlock(&c->lock);
	while (!list_empty(&c->loop.reactors))
		evc__reactor_release(
			LIST_OF(c->loop.reactors.next, evc_reactor, node));
	sync_lock(&c->lock);
	evc__hooks_drop(c, NULL);
	/* Threads that rang during evc_free may have been joined by a probe,
	   and still be in the chain. */
	evc__members_reap(c, 0);
	if (c->life.held)
		evc__alive_sub(c);
	sync_unlock(&c->lock);
	evc__later_run(c);
	if (c->parent != NULL)
		evc__scope_leave(c);
	evc__coord_destroy(c);
}

const char *
evc__coord_claim(evc_coord *c, uint64_t ns, char *buf, size_t room)
{
	static const struct evc__gone none;
	const char *why;

	sync_lock(&c->lock);
	evc__members_refresh(c);
	sync_unlock(&c->lock);
	/* A thread that has ended may have left its scope. */
	evc__later_run(c);
	sync_lock(&c->lock);
	why = evc__free_why_not(c, &none, ns, buf, room);
	c->life.dying = why == NULL;
	sync_unlock(&c->lock);
	return why;
}

/* Lines are out, or their hook is of a coordinator above, which stays: then a
   hook that hangs keeps nothing, and its lines come later. */
static bool
lines_let_go(evc_coord *c, uint64_t ns)
{
	if (c->log.fn == NULL)
		return true;
	if (c->log.of == c)
		return evc__log_flush(c, ns);
	evc__log_settle(c, ns);
	return true;
}

evc_status
evc__free(evc_coord *c, uint64_t ns)
{
	evc_status st;
	const char *why;
	char buf[128];

	if (c == NULL)
		return 0;
	st = evc__check(c, "evc_free");
	if (st < 0)
		return st;
	evc__log_end(c);
	if (!lines_let_go(c, ns))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_free: a log hook has not returned");
	why = evc__coord_claim(c, ns, buf, sizeof buf);
	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION, "evc_free: %s",
				   why);
	/* The last member may have ended since the first call of
	   evc__log_end. */
	evc__log_end(c);
	evc__coord_take_down(c);
	return 0;
}

evc_status
evc_free(evc_coord *c)
{
	return evc__free(c, FREE_FLUSH_NS);
}
