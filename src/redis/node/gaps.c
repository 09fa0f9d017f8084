/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of the node's stream that have not come, because the server refused
 * them.  The coordinator may not know the refusal, and sends such an entry
 * again with a new number; the node has to hear the entry once.
 * Called by: hear.c.
 * Locks: none; loop thread only.
 */
#include "redis/node/node.h"

static void
remove_range(struct gaps *g, unsigned i)
{
	for (g->n--; i < g->n; i++)
		g->at[i] = g->at[i + 1];
}

void
evc__node_gaps_add(struct gaps *g, uint64_t from, uint64_t to)
{
	if (from > to)
		return;
	/* The oldest range is forgotten, and a question for it is answered with
	   -1. */
	if (g->n == GAPS) {
		if (g->lost < g->at[0].to)
			g->lost = g->at[0].to;
		remove_range(g, 0);
	}
	g->at[g->n].from = from;
	g->at[g->n++].to = to;
}

int
evc__node_gaps_fill(struct gaps *g, uint64_t number)
{
	uint64_t to;
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (number >= g->at[i].from && number <= g->at[i].to)
			break;
	if (i == g->n)
		return number <= g->lost ? -1 : 0;
	to = g->at[i].to;
	/* The rest of the range, on both sides. */
	if (g->at[i].from < number)
		g->at[i].to = number - 1;
	else
		remove_range(g, i);
	evc__node_gaps_add(g, number + 1, to);
	return 1;
}
