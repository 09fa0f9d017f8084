/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A circular list with its links inside the elements.
 */
#ifndef EVC_BASE_LIST_H
#define EVC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_OF(node, type, field) \
	((type *)(void *)((char *)(node) - offsetof(type, field)))

/* Visit each element; the loop may remove the element n, no other. */
#define LIST_EACH(n, tmp, head) \
	for ((n) = (head)->next; (n) != (head) && ((tmp) = (n)->next, 1); \
	     (n) = (tmp))

static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool
list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void
list_append(struct list *head, struct list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* n becomes an empty list, so a second removal is harmless. */
static inline void
list_remove(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

#endif
