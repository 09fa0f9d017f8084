/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line of a report about a loop: does the loop turn, and if not, the
 * function that its thread is in, and since when.
 * Called by: report.c.
 * Locks: none; facts.c has copied the facts.
 */
#include "observe/facts.h"

#include "base/text.h"

static void
add_place(struct text *t, const struct evc__facts_loop *l)
{
	evc__text_fmt(t, " in %s", evc__busy_text(l->silence.kind));
	if (l->silence.name[0] != '\0')
		evc__text_fmt(t, " \"%s\"", l->silence.name);
}

static void
add_silence(struct text *t, const struct evc__facts_loop *l)
{
	evc__text_fmt(t, " for %s%.3f s",
		      l->silence.least ? "at least " : "", l->silence.since_s);
}

void
evc__loop_text(struct text *t, const struct evc__facts_loop *l)
{
	evc__text_fmt(t, "loop \"%s\" (tid %d)", l->name, l->tid);
	switch (l->state) {
	case LOOP_TURNS:
		evc__text_add(t, " turns");
		return;
	case LOOP_DESTROYED:
		evc__text_add(t, " was destroyed");
		return;
	case LOOP_HELD:
		evc__text_add(t, " has not turned");
		add_silence(t, l);
		evc__text_add(t, ":");
		add_place(t, l);
		if (l->silence.kind == BUSY_APPLICATION)
			evc__text_add(t, ", or not run any more");
		return;
	case LOOP_SILENT:
		evc__text_add(t, " has not turned since the stop:");
		break;
	default:
		evc__text_add(t, " is");
	}
	add_place(t, l);
	if (l->silence.since_s >= 0) {
		evc__text_add(t, ",");
		add_silence(t, l);
	} else
		evc__text_add(t, ", or nobody has run it yet");
}
