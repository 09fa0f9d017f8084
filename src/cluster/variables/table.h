/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the variables: what one is, and the table they stand in.  Lock held,
 * all of it.
 */
#ifndef EVC_CLUSTER_VARIABLE_TABLE_H
#define EVC_CLUSTER_VARIABLE_TABLE_H

#include "cluster/variables/variable.h"

#define CONTENT_SMALL 16 /* bytes of a value that need no memory of their own */

/* What a variable is: the bytes of a value; of none: it is not there. */
struct content {
	size_t size;
	unsigned char *big; /* NULL: they stand in small */
	unsigned char small[CONTENT_SMALL];
	bool is_number;
	double number;      /* then: as a double */
};

struct variable {
	struct variable *next;
	uint32_t hash;
	unsigned n_held;    /* of its contents are held at the moment */
	struct content is;
	char name[];
};

/* Of a name, for tables. */
static inline uint32_t
name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	while (*name != '\0')
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return h ^ h >> 15;
}

static inline evc_value
content_value(const struct content *c)
{
	return (evc_value){ c->size == 0 ? NULL :
			    c->big != NULL ? c->big : c->small, c->size };
}

/* ---- variable_content.c ---- */

/* Is this a value that a variable may have? */
evc_status evc__content_check(const char *name, const evc_value *v);
/* Of such a value; nil comes out as one of no bytes. */
evc_status evc__content_make(const char *name, const evc_value *v,
			     struct content *ret);
/* As an integer, while it is one that a double says exactly. */
void evc__content_of_number(double x, struct content *ret);

/* ---- variable_table.c ---- */

struct variable *evc__variable_find(struct variables *v, const char *name);
/* The one with this name, made as one that is not there if need be; NULL: no
   memory. */
struct variable *evc__variable_make(struct variables *v, const char *name);
/* One that is not there, and that nobody is about to undo, goes. */
void evc__variable_remove_if_gone(struct variables *v, struct variable *x);

#endif
