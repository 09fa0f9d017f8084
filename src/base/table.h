/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of records by number or by name.  A record begins with its node, so
 * an entry has no memory of its own, and a pointer to the node is one to the
 * record.  A record with an id may have both in a union: the id is the key.
 */
#ifndef EVC_BASE_TABLE_H
#define EVC_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_node {
	uint64_t key;
	struct table_node *next; /* in the same bucket */
};

/* The node of a record with a name. */
struct table_name {
	struct table_node node;
	const char *text; /* stays while the record is in the table */
};

/* Zeroed before the first use. */
struct table {
	struct table_node **buckets;
	size_t n_buckets, n; /* n_buckets: 0, or a power of two */
};

/* Make room for `more` records.  false: no memory for the first ones; later
   records find room in any case, and the table is slower. */
bool evc__table_reserve(struct table *t, size_t more);
/* Free the memory of the table, not the records. */
void evc__table_free(struct table *t);

/* There is room, and no other record has the number, or the name. */
void evc__table_add(struct table *t, struct table_node *e);
void evc__table_add_name(struct table *t, struct table_name *e);
void evc__table_remove(struct table *t, struct table_node *e);

/* The record; NULL: none. */
void *evc__table_find(const struct table *t, uint64_t key);
void *evc__table_find_name(const struct table *t, const char *name);

/* The record behind e, in no order; e NULL: the first.  NULL: no more. */
void *evc__table_next(const struct table *t, const void *e);
/* The record e itself may be freed meanwhile. */
#define TABLE_EACH(e, behind, t) \
	for ((e) = evc__table_next((t), NULL); \
	     (e) != NULL && ((behind) = evc__table_next((t), (e)), true); \
	     (e) = (behind))

#endif
