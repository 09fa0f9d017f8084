/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Troubles in the log: a lasting one has a single line.  Commands are tried again
 * and may fail with several texts in turn, while others succeed.
 * Called by: engine/state.c, node/session.c; files whose commands succeed.
 * Locks: none; loop thread only.
 */
#include "redis/client/redis.h"

bool
evc__trouble_is_told(struct told *told, enum trouble_of of, const char *text)
{
	unsigned i;

	for (i = 0; i < TOLD_MOST; i++)
		if (told->at[i].of == of &&
		    strcmp(told->at[i].text, text) == 0)
			return true;
	i = told->n++ % TOLD_MOST;
	told->at[i].of = of;
	evc__copy(told->at[i].text, sizeof told->at[i].text, text);
	return false;
}

void
evc__trouble_over(struct told *told, enum trouble_of of)
{
	unsigned i;

	for (i = 0; i < TOLD_MOST && told->n > 0; i++)
		if (told->at[i].of == of)
			told->at[i].of = TROUBLE_NONE;
}
