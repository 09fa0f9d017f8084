/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Troubles that the log has, so that one that goes on has one line: commands that
 * are tried again may fail with several texts in turn, and others succeed between
 * them.
 * Called by: engine/state.c, node/session.c; those whose commands succeed.
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
