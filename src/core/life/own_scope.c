/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scopes of started threads (EVC_OWN_SCOPE).  The library makes such a
 * scope before its thread begins, and frees the scope when the thread has
 * ended.  What the thread has left in the scope - members, queues, other
 * scopes - is asked to stop; the scope is then freed later, by one of the calls
 * that make the calls of evc__later_add.
 *
 * Called by: evc_thread_start; the end of a started thread, and later.c, by
 * struct evc__upper.
 * Locks: the scope's, for its flags; the coordinator's, for its list `left`.
 */
#include "core/core.h"
#include "core/join/join.h"
#include "core/life/scope.h"

evc_status
evc__own_scope_new(evc_coord *parent, const char *name, const char *func,
		   evc_coord **ret_scope)
{
	const evc_scope_opts opts = { .config.flags = EVC_NO_HOME };
	evc_status st = evc__scope_make(parent, name, &opts, ret_scope);

	if (st < 0)
		return evc__refuse(st, "%s: no scope: %s", func,
				   evc_last_error());
	sync_lock(&(*ret_scope)->lock);
	(*ret_scope)->life.of_thread = true;
	(*ret_scope)->life.thread_runs = true;
	sync_unlock(&(*ret_scope)->lock);
	return evc_scope_ready(*ret_scope);
}

/* later: what keeps the scope is not waited for, and a thread inside the scope's
   refgate keeps it, too, because this thread may be there: a report calls the
   program while it keeps all scopes. */
static void
free_or_stop(evc_coord *s, bool later)
{
	evc_coord *c = s->parent;
	char buf[128];

	evc__log_end(s);
	if (!later || evc__refgate_is_empty(&s->life.gate)) {
		if (evc__coord_claim(s, LOG_HANGS_NS, buf, sizeof buf) ==
		    NULL) {
			evc__coord_take_down(s);
			return;
		}
		if (!evc_should_stop(s))
			(evc_request_stop)(s, 0, "its thread has ended");
	}
	sync_lock(&c->lock);
	s->life.next_left = c->member.left;
	c->member.left = s;
	sync_store(&c->member.has_later, true);
	sync_unlock(&c->lock);
}

void
evc__own_scopes_free(evc_coord *s)
{
	evc_coord *next;

	for (; s != NULL; s = next) {
		next = s->life.next_left;
		free_or_stop(s, true);
	}
}

void
evc__own_scope_end(evc_coord *s)
{
	if (s != NULL)
		free_or_stop(s, false);
}
