/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the result of a member's function means, and the guard.
 */
#include "base/text.h"
#include "core/core.h"

evc_status
evc__member_result(evc_coord *c, evc_id by, const char *name, unsigned flags,
		   evc_status result, bool guard)
{
	struct evc__self *self = evc__self();
	uint64_t w = sync_load(&c->word);
	struct evc__request q = { .kind = EVC_BY_MEMBER_END,
				  .by = by,
				  .who = name };
	char buf[96];
	struct text t = evc__text_in(buf, sizeof buf);
	bool unknown;

	q.code = evc__normal(result, &unknown);
	if (q.code != 0 && self->reported == q.code &&
	    self->reported_to == c && self->reported_stops == WORD_STOPS(w))
		return self->handed_back ? q.code : 0;
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

evc_status
evc_guard(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	  const evc_member_opts *opts)
{
	evc_status st = evc__check(c, __func__);
	struct evc__self *self = evc__self();

	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_guard: no function");
	if (st == 0)
		st = evc__check_name(name, __func__);
	if (st == 0)
		st = evc__check_opts(opts, EVC_HOLD, __func__);
	if (st < 0)
		return st;
	/* Only what fn itself reports counts as reported by it. */
	self->reported_to = NULL;
	return evc__member_result(c, 0, name, opts != NULL ? opts->flags : 0,
				  fn(c, arg), true);
}
