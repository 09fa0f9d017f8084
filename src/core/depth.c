/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How deep a loop's thread is in ev_run of that loop.  libev counts, too, but an
 * exception that leaves an ev_run leaves its count behind.
 *
 * Levels that were lost in an ev_run of ours are known at once; of the others
 * the stack knows, which is read only where libev's count says more than
 * expected.
 */
#include "core/join.h"

#include "base/unwind.h"

static int
calls_of_run(const void *outer)
{
	return evc__calls_of((void (*)(void))ev_run, outer);
}

void
evc__depth_begin(struct evc__bell *b)
{
	/* A call that does not show on the stack would never count. */
	b->shows = calls_of_run(NULL) > 0;
}

unsigned
evc__depth(struct evc__bell *b, const struct evc__driver *d)
{
	unsigned depth = ev_depth(b->loop) - b->n_lost;
	int n;

	if (depth <= (d != NULL) || !b->shows)
		return depth;
	n = calls_of_run(d != NULL ? d->frame : NULL);
	if (n >= 0 && (unsigned)n < depth) {
		b->n_lost += depth - (unsigned)n;
		depth = (unsigned)n;
	}
	return depth;
}

void
evc__depth_is_none(struct evc__bell *b)
{
	b->n_lost = ev_depth(b->loop);
}
