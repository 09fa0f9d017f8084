/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meaning of the result of a member's function, and evc_guard, which calls
 * a function of the program in the way of a member's function.
 *
 * Called by: launch.c, hooks, runners, loopers, holds; programs: evc_guard.
 * Locks: none held; the coordinator's is taken for the wakers of a guard.
 */
#include <signal.h>

#include "base/kick.h"
#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"

evc_status
evc__member_result(evc_coord *c, evc_id by, const char *name, unsigned flags,
		   evc_status result, bool guard)
{
	uint64_t w = sync_load(&c->word);
	struct evc__request q = { .kind = EVC_BY_MEMBER_END,
				  .by = by,
				  .who = name };
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	bool unknown;

	q.code = evc__normal(result, &unknown);
	if (evc__just_reported(c, q.code) &&
	    evc__reported.stops == WORD_STOPS(w))
		return evc__reported.handed_back ? q.code : 0;
	if (evc__is_clean(c, w, q.code) && !(flags & EVC_END_STOPS) &&
	    (!guard || q.code == 0))
		return 0;
	evc__text_add(&t, "ended with ");
	if (unknown) {
		evc__text_int(&t, result);
		evc__text_add(&t, ", which is no code");
	} else {
		evc__text_add(&t, evc_status_name(q.code));
		if (q.code > EVC_UNAUTHENTICATED) {
			evc__text_add(&t, " ");
			evc__text_int(&t, q.code);
		}
	}
	q.text = buf;
	return evc__request(c, &q);
}

/* The wakers of the calling thread inside a guard. */
struct guard {
	evc_coord *c;
	struct evc__waker *unblock, *kick;
	sigset_t signals;
};

/* The end of a guard, also when fn has left by pthread_exit or an exception. */
static void
end_wakers(struct guard *w)
{
	if (w->unblock == NULL && w->kick == NULL)
		return;
	if (w->kick != NULL)
		pthread_sigmask(SIG_SETMASK, &w->signals, NULL);
	if (!evc__same_process(w->c))
		return;
	sync_lock(&w->c->lock);
	if (w->kick != NULL)
		evc__waker_pop(w->kick);
	if (w->unblock != NULL)
		evc__waker_pop(w->unblock);
	sync_unlock(&w->c->lock);
}

static evc_status
begin_wakers(struct guard *w, const evc_member_opts *o, void *arg)
{
	bool kicks = o != NULL && (o->flags & EVC_KICK), none;

	if (!kicks && (o == NULL || o->unblock == NULL))
		return 0;
	if (kicks && evc__kick_install(0) < 0)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_guard: no signal is free for kicks");
	sync_lock(&w->c->lock);
	if (o->unblock != NULL)
		w->unblock = evc__waker_push(w->c, o->unblock, arg, true);
	if (kicks)
		w->kick = evc__waker_push(w->c, NULL, NULL, true);
	sync_unlock(&w->c->lock);
	if (kicks)
		evc__kick_unblock(&w->signals);
	none = (o->unblock != NULL && w->unblock == NULL) ||
	       (kicks && w->kick == NULL);
	return none ? evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_guard: no memory or no helper thread to "
				  "wake it with") :
		      0;
}

/* < 0: fn was not called.  *ret_thrown: fn has no result. */
static evc_status
call_guarded(evc_coord *c, evc_fn *fn, void *arg, const evc_member_opts *o,
	     evc_status *ret_result, bool *ret_thrown)
{
	struct guard w LEAVING(end_wakers) = { .c = c };
	evc_status st = begin_wakers(&w, o, arg);

	if (st < 0)
		return st;
	/* Earlier reports of this thread do not count as reports of fn. */
	evc__reported_forget();
	*ret_thrown = !evc__fn_catching(fn, c, arg, ret_result);
	return 0;
}

evc_status
evc_guard(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	  const evc_member_opts *opts)
{
	struct evc__request q = { .code = EVC_ABORTED,
				  .kind = EVC_BY_MEMBER_END,
				  .who = name,
				  .text = "was left by an exception" };
	evc_status st = evc__check(c, __func__), result = 0;
	bool thrown = false;

	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_guard: no function");
	if (st == 0)
		st = evc__check_opts(opts, EVC_GUARD, __func__);
	if (st == 0)
		st = call_guarded(c, fn, arg, opts, &result, &thrown);
	if (st < 0)
		return st;
	if (!evc__same_process(c))
		return evc__check(c, __func__); /* a child, made in fn */
	if (thrown)
		return evc__request(c, &q);
	return evc__member_result(c, 0, name, opts != NULL ? opts->flags : 0,
				  result, true);
}
