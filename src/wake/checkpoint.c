/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saying where one is.
 */
#include "core/ladder.h"

void
evc_checkpoint(const char *text)
{
	struct evc__mark *m = evc__self()->mark;

	if (m == NULL)
		return;
	/* Relaxed, and in no order: a report that meets the new text with the
	   old time is right within a moment. */
	sync_store_relaxed(&m->text, text);
	sync_store_relaxed(&m->ns, evc__mark_now(m->c));
}
