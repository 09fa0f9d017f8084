/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closure, and the lines in which closures are queued: of one priority, they
 * are taken in the order in which they came.
 */
#ifndef EVC_CLUSTER_CLOSURE_LINE_H
#define EVC_CLUSTER_CLOSURE_LINE_H

#include <evcoord.h>

#include "base/list.h"

#define PRIORITIES 16 /* EVC_PRIORITY_MOST comes first */
#define TAG_ANY UINT32_MAX

/* struct closure.where */
enum {
	CLOSURE_OUT,    /* in no list: not put yet, or over */
	CLOSURE_HELD,   /* accepted; waits for inputs, or for a retry */
	CLOSURE_QUEUED,
	CLOSURE_ALONE,  /* queued, to run alone */
	CLOSURE_TAKEN
};

struct closure {
	struct list link; /* held: closures.held; queued: a line; taken: the
			     owner's list */
	uint64_t n;       /* number of the attempt: set by take, greater than
			     all before */
	uint32_t tag;     /* the only worker, or TAG_ANY */
	int8_t priority;  /* EVC_PRIORITY_LEAST .. _MOST */
	uint8_t where;
};

/* Closures in the order of the takes. */
struct closure_line {
	struct list at[PRIORITIES];
	uint32_t some; /* bit i: at[i] has closures */
};

static inline void
closure_line_init(struct closure_line *line)
{
	int i;

	for (i = 0; i < PRIORITIES; i++)
		list_init(&line->at[i]);
	line->some = 0;
}

/* The greatest priority comes first. */
static inline unsigned
closure_place(const struct closure *cl)
{
	return (unsigned)(PRIORITIES / 2 - 1 - cl->priority);
}

/* Behind all of its priority; first: in front of them. */
static inline void
closure_line_put(struct closure_line *line, struct closure *cl, bool first)
{
	unsigned i = closure_place(cl);

	/* Behind the list's head is in front of all. */
	list_append(first ? line->at[i].next : &line->at[i], &cl->link);
	line->some |= 1u << i;
}

static inline void
closure_line_remove(struct closure_line *line, struct closure *cl)
{
	unsigned i = closure_place(cl);

	list_remove(&cl->link);
	if (list_empty(&line->at[i]))
		line->some &= ~(1u << i);
}

/* NULL: there is none. */
static inline struct closure *
closure_line_first(const struct closure_line *line)
{
	const struct list *head;

	if (line->some == 0)
		return NULL;
	head = &line->at[__builtin_ctz(line->some)];
	return LIST_OF(head->next, struct closure, link);
}

#endif
