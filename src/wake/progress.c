/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress texts: a member says how far its work is, for reports and joins.
 * Called by: the program, on a member's thread.
 * Locks: none to write, the mark has two relaxed atomics; the coordinator's
 * lock to find a member.
 */
#include "core/core.h"

void
evc_progress(const char *text)
{
	struct evc__mark *m = evc__self()->mark;

	if (m == NULL)
		return;
	/* Relaxed, without an order: a report may show the new text with the
	   old time for a moment. */
	sync_store_relaxed(&m->text, text);
	sync_store_relaxed(&m->ns, evc__mark_now(m->c));
}

evc_status
evc_progress_get(const evc_coord *c, evc_id id, const char **ret_text,
		 double *ret_age)
{
	evc_coord *locked = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	const struct evc__member *m;
	const char *text = NULL;
	uint64_t ns = 0, now;

	if (st < 0)
		return st;
	sync_lock(&locked->lock);
	m = evc__member_find(c, id);
	if (m != NULL) {
		text = sync_load_relaxed(&m->mark.text);
		ns = sync_load_relaxed(&m->mark.ns);
	}
	sync_unlock(&locked->lock);
	if (text == NULL)
		return evc__refuse(
			-EVC_NOT_FOUND, "evc_progress_get: member %llu %s",
			(unsigned long long)id,
			m != NULL ? "has said nothing" : "is not there");
	now = evc__mark_now(c);
	if (ret_text != NULL)
		*ret_text = text;
	if (ret_age != NULL)
		*ret_age = now > ns ? (double)(now - ns) / 1e9 : 0;
	return 0;
}
